//! Events to a value: anchors, merge keys and keys as strings, bounded in depth and in what aliases multiply.

use std::collections::HashMap;

use libyaml_safer::{ErrorKind, Event, EventData, Parser, ScalarStyle};
use serde_json::{Map, Value};

use crate::resolve::{Scalar, resolve};
use crate::{Error, MAX_DEPTH};

/// How many values aliases may stand for in all.
const MAX_ALIASED: usize = 400_000;

pub(crate) fn document(text: &[u8]) -> Result<Value, Error> {
    let mut parser = Parser::new();
    parser.set_input(text);
    let mut composer = Composer { parser, anchors: HashMap::new(), aliased: 0 };
    loop {
        let event = composer.next()?;
        match event.data {
            EventData::StreamEnd => return Ok(Value::Null),
            EventData::StreamStart { .. } | EventData::DocumentStart { .. } => {}
            EventData::DocumentEnd { .. }
            | EventData::Alias { .. }
            | EventData::Scalar { .. }
            | EventData::SequenceStart { .. }
            | EventData::SequenceEnd
            | EventData::MappingStart { .. }
            | EventData::MappingEnd => {
                let node = composer.node(event, 0)?;
                // The document has to end, too.
                composer.next()?;
                return node.value();
            }
        }
    }
}

struct Composer<'t> {
    parser: Parser<&'t [u8]>,
    anchors: HashMap<String, Anchor>,
    aliased: usize,
}

#[derive(Clone)]
enum Anchor {
    /// Its value is being read.
    Open,
    Done(Node, usize),
}

#[derive(Debug, Clone)]
enum Node {
    Scalar(Scalar),
    Tree(Value),
}

impl Node {
    fn value(self) -> Result<Value, Error> {
        match self {
            Self::Scalar(scalar) => scalar.value(),
            Self::Tree(value) => Ok(value),
        }
    }
}

impl Composer<'_> {
    fn next(&mut self) -> Result<Event, Error> {
        self.parser.parse().map_err(|error| syntax(&error))
    }

    fn node(&mut self, event: Event, depth: usize) -> Result<Node, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        let (anchor, node) = match event.data {
            EventData::Alias { anchor } => return self.alias(&anchor),
            EventData::Scalar { anchor, tag, value, style, .. } => {
                let scalar = resolve(&value, tag.as_deref(), style == ScalarStyle::Plain)?;
                (anchor, Node::Scalar(scalar))
            }
            EventData::SequenceStart { anchor, .. } => {
                self.open(anchor.as_ref());
                let items = self.sequence(depth)?;
                (anchor, Node::Tree(items))
            }
            EventData::MappingStart { anchor, .. } => {
                self.open(anchor.as_ref());
                let map = self.mapping(depth)?;
                (anchor, Node::Tree(Value::Object(map)))
            }
            EventData::StreamStart { .. }
            | EventData::StreamEnd
            | EventData::DocumentStart { .. }
            | EventData::DocumentEnd { .. }
            | EventData::SequenceEnd
            | EventData::MappingEnd => (None, Node::Scalar(Scalar::Null)),
        };
        if let Some(anchor) = anchor {
            let size = match &node {
                Node::Scalar(_) => 1,
                Node::Tree(value) => size(value),
            };
            self.anchors.insert(anchor, Anchor::Done(node.clone(), size));
        }
        Ok(node)
    }

    fn open(&mut self, anchor: Option<&String>) {
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor.clone(), Anchor::Open);
        }
    }

    fn alias(&mut self, anchor: &str) -> Result<Node, Error> {
        match self.anchors.get(anchor) {
            None => Err(Error::UnknownAnchor(anchor.into())),
            Some(Anchor::Open) => Err(Error::SelfReference(anchor.into())),
            Some(Anchor::Done(node, size)) => {
                self.aliased = self.aliased.saturating_add(*size);
                if self.aliased > MAX_ALIASED {
                    return Err(Error::ExcessiveAliasing);
                }
                Ok(node.clone())
            }
        }
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, Error> {
        let mut items = Vec::new();
        loop {
            let event = self.next()?;
            if matches!(event.data, EventData::SequenceEnd) {
                return Ok(Value::Array(items));
            }
            items.push(self.node(event, depth + 1)?.value()?);
        }
    }

    /// The last of two equal keys wins; a merge overwrites what stands before it and yields to what stands behind.
    fn mapping(&mut self, depth: usize) -> Result<Map<String, Value>, Error> {
        let mut map = Map::new();
        loop {
            let event = self.next()?;
            if matches!(event.data, EventData::MappingEnd) {
                return Ok(map);
            }
            let key = self.node(event, depth + 1)?;
            let event = self.next()?;
            let value = self.node(event, depth + 1)?;
            match key {
                Node::Scalar(Scalar::Merge) => merge(&mut map, value)?,
                Node::Scalar(scalar) => {
                    map.insert(scalar.key()?, value.value()?);
                }
                Node::Tree(tree) => return Err(Error::InvalidKey(go_syntax(&tree))),
            }
        }
    }
}

fn merge(map: &mut Map<String, Value>, value: Node) -> Result<(), Error> {
    match value.value()? {
        Value::Object(from) => map.extend(from),
        Value::Array(items) => {
            // Earlier maps take precedence.
            for item in items.into_iter().rev() {
                let Value::Object(from) = item else { return Err(Error::Merge) };
                map.extend(from);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Err(Error::Merge),
    }
    Ok(())
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(size).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// A value as Go's `%#v` prints it: what a key that is no scalar is shown as.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(n) => n.to_string(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let pairs: Vec<_> = map.iter().map(|(key, value)| format!("{key:?}:{}", go_syntax(value))).collect();
            format!("map[interface {{}}]interface {{}}{{{}}}", pairs.join(", "))
        }
    }
}

/// go-yaml's choice of the line: the problem's, else the context's; none where it would be the first.
fn syntax(error: &libyaml_safer::Error) -> Error {
    let at = |mark: Option<libyaml_safer::Mark>| mark.map(|mark| mark.line).filter(|line| *line != 0);
    let scanner = u64::from(error.kind() == ErrorKind::Scanner);
    let line = at(error.problem_mark()).map(|line| line + scanner).or_else(|| at(error.context_mark()));
    Error::Syntax { line, problem: error.problem().into() }
}
