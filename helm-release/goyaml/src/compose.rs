//! Events → nodes: the first document as a tree, with each alias pointing at the node it names.

use std::collections::HashMap;

use crate::error::Error;
use crate::parser::{Event, Parser, Scalar};

/// The place of a node in [`Document::nodes`].
pub(crate) type Id = usize;

pub(crate) struct Document {
    pub(crate) nodes: Vec<Node>,
}

pub(crate) enum Node {
    Alias {
        name: String,
        target: Id,
    },
    Scalar(Scalar),
    Sequence(Vec<Id>),
    /// Key, value, key, value, …
    Mapping(Vec<Id>),
}

/// The first document of a stream; what follows it is not even looked at.
pub(crate) fn compose(bytes: &[u8]) -> Result<Option<Document>, Error> {
    let mut parser = Parser::new(bytes);
    while !matches!(parser.next()?, Event::DocumentStart) {
        if parser.is_done() {
            return Ok(None);
        }
    }
    let mut composer = Composer::default();
    loop {
        match parser.next()? {
            Event::Alias { name } => composer.alias(name)?,
            Event::Scalar(mut scalar) => {
                let anchor = scalar.anchor.take();
                composer.add(Node::Scalar(scalar), anchor);
            }
            Event::SequenceStart { anchor } => composer.open(Node::Sequence(Vec::new()), anchor)?,
            Event::MappingStart { anchor } => composer.open(Node::Mapping(Vec::new()), anchor)?,
            Event::CollectionEnd => {
                composer.open.pop();
            }
            Event::StreamStart | Event::DocumentStart | Event::DocumentEnd | Event::StreamEnd => break,
        }
    }
    Ok(Some(Document { nodes: composer.nodes }))
}

#[derive(Default)]
struct Composer {
    nodes: Vec<Node>,
    open: Vec<Id>,
    anchors: HashMap<String, Id>,
}

impl Composer {
    fn add(&mut self, node: Node, anchor: Option<String>) -> Id {
        let id = self.nodes.len();
        self.nodes.push(node);
        if let Some(name) = anchor {
            self.anchors.insert(name, id);
        }
        let parent = self.open.last().and_then(|&parent| self.nodes.get_mut(parent));
        if let Some(Node::Sequence(children) | Node::Mapping(children)) = parent {
            children.push(id);
        }
        id
    }

    fn open(&mut self, node: Node, anchor: Option<String>) -> Result<(), Error> {
        let id = self.add(node, anchor);
        self.open.push(id);
        if self.open.len() > crate::MAX_DEPTH {
            return Err(Error::Depth);
        }
        Ok(())
    }

    fn alias(&mut self, name: String) -> Result<(), Error> {
        match self.anchors.get(&name) {
            Some(&target) => {
                self.add(Node::Alias { name, target }, None);
                Ok(())
            }
            None => Err(Error::UnknownAnchor { name }),
        }
    }
}
