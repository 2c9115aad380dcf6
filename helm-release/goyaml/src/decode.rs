//! Nodes → data: aliases expanded, merge keys applied, scalars resolved.

use std::collections::{BTreeMap, HashSet};

use crate::compose::{Document, Id, Node};
use crate::error::Error;
use crate::resolve;
use crate::value::{Data, Key};

type Entries = BTreeMap<Key, Data>;

pub(crate) fn decode(document: &Document) -> Result<Data, Error> {
    let mut decoder = Decoder { nodes: &document.nodes, expanding: HashSet::new(), depth: 0, decoded: 0, aliased: 0 };
    decoder.node(0)
}

struct Decoder<'a> {
    nodes: &'a [Node],
    /// The aliases we are inside of.
    expanding: HashSet<Id>,
    depth: usize,
    decoded: u32,
    aliased: u32,
}

impl<'a> Decoder<'a> {
    fn node(&mut self, id: Id) -> Result<Data, Error> {
        self.count()?;
        match &self.nodes[id] {
            Node::Alias { name, target } => {
                self.expand(id, name)?;
                let data = self.node(*target)?;
                self.expanding.remove(&id);
                Ok(data)
            }
            Node::Scalar(scalar) => resolve::scalar(scalar),
            Node::Sequence(items) => self.sequence(items),
            Node::Mapping(children) => {
                let mut entries = Entries::new();
                self.mapping(children, &mut entries)?;
                Ok(Data::Mapping(entries))
            }
        }
    }

    fn sequence(&mut self, items: &'a [Id]) -> Result<Data, Error> {
        self.enter()?;
        let mut data = Vec::with_capacity(items.len());
        for &item in items {
            data.push(self.node(item)?);
        }
        self.depth -= 1;
        Ok(Data::Sequence(data))
    }

    fn mapping(&mut self, children: &'a [Id], entries: &mut Entries) -> Result<(), Error> {
        self.enter()?;
        for pair in children.chunks_exact(2) {
            let &[key, value] = pair else { continue };
            if self.is_merge(key) {
                self.merge(value, entries)?;
            } else {
                let key = self.key(key)?;
                let value = self.node(value)?;
                entries.insert(key, value);
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn key(&mut self, id: Id) -> Result<Key, Error> {
        self.node(id)?.into_key().map_err(|key| Error::CollectionKey { key: key.go_syntax() })
    }

    fn is_merge(&self, id: Id) -> bool {
        let Node::Scalar(scalar) = &self.nodes[id] else { return false };
        scalar.text == "<<" && (scalar.implicit || scalar.tag == "tag:yaml.org,2002:merge")
    }

    /// Puts the entries of the mapping, or of each in a list, over what is there already. In a list the first wins.
    fn merge(&mut self, id: Id, entries: &mut Entries) -> Result<(), Error> {
        let Node::Sequence(items) = &self.nodes[id] else {
            return self.merge_one(id, entries);
        };
        items.iter().rev().try_for_each(|&item| self.merge_one(item, entries))
    }

    fn merge_one(&mut self, id: Id, entries: &mut Entries) -> Result<(), Error> {
        match &self.nodes[id] {
            Node::Mapping(children) => {
                self.count()?;
                self.mapping(children, entries)
            }
            Node::Alias { name, target } if matches!(self.nodes[*target], Node::Mapping(_)) => {
                self.count()?;
                self.expand(id, name)?;
                self.merge_one(*target, entries)?;
                self.expanding.remove(&id);
                Ok(())
            }
            Node::Alias { .. } | Node::Scalar(_) | Node::Sequence(_) => Err(Error::Merge),
        }
    }

    fn expand(&mut self, alias: Id, name: &str) -> Result<(), Error> {
        let entered = self.expanding.insert(alias);
        if entered { Ok(()) } else { Err(Error::Cycle { name: name.into() }) }
    }

    /// One level deeper. Aliases add levels that the text does not have, so it is not enough to count those.
    fn enter(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > crate::MAX_DEPTH { Err(Error::Depth) } else { Ok(()) }
    }

    fn count(&mut self) -> Result<(), Error> {
        self.decoded = self.decoded.saturating_add(1);
        self.aliased = self.aliased.saturating_add(u32::from(!self.expanding.is_empty()));
        let share = f64::from(self.aliased) / f64::from(self.decoded);
        if self.aliased > 100 && self.decoded > 1000 && share > allowed_share(self.decoded) {
            return Err(Error::Aliasing);
        }
        Ok(())
    }
}

/// How much of a document may come from aliases: nearly all of a small one, a tenth of a large one.
fn allowed_share(decoded: u32) -> f64 {
    const SMALL: u32 = 400_000;
    const LARGE: u32 = 4_000_000;
    if decoded <= SMALL {
        0.99
    } else if decoded >= LARGE {
        0.10
    } else {
        0.99 - 0.89 * (f64::from(decoded - SMALL) / f64::from(LARGE - SMALL))
    }
}
