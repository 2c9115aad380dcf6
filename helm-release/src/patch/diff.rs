//! One half of a three-way strategic merge: what to add and change, or what to delete.

use super::error::Error;
use super::list::{
    Fields, List, element_type, in_order, merge_key, same_element, sorted_maps, sorted_scalars, without_duplicates,
};
use super::schema::{Merging, Schema, Strategy};
use super::text::{Type, go_text};
use serde_json::{Map, Value, json};
use std::cmp::Ordering;

/// Which differences the result holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    /// What `to` has and `from` has not, or has otherwise.
    Changes,
    /// What `from` has and `to` has not.
    Deletions,
}

/// The patch that brings this half of the differences.
///
/// # Errors
/// See [`Error`].
pub(super) fn difference(from: &Fields, to: &Fields, schema: Schema, half: Half) -> Result<Fields, Error> {
    let diff = Diff { half, schema, retain_keys: false };
    diff.maps(from, to)
}

#[derive(Debug, Clone, Copy)]
struct Diff {
    half: Half,
    /// What the maps at hand, or the elements of the lists at hand, are.
    schema: Schema,
    /// Whether the maps at hand are merged with `$retainKeys`.
    retain_keys: bool,
}

impl Diff {
    fn maps(self, from: &Fields, to: &Fields) -> Result<Fields, Error> {
        let mut patch = Map::new();
        for (key, wanted) in to {
            match from.get(key) {
                Some(known) if key == "$patch" => directive(known, wanted, &mut patch)?,
                Some(known) => self.field(key, known, wanted, &mut patch)?,
                None => self.change(key, wanted, &mut patch),
            }
        }
        if self.half == Half::Deletions {
            let gone = from.keys().filter(|key| !to.contains_key(*key));
            patch.extend(gone.map(|key| (key.clone(), Value::Null)));
        }
        if self.retain_keys {
            add_retained_keys(from, to, &mut patch);
        }
        Ok(patch)
    }

    fn field(self, key: &str, from: &Value, to: &Value, patch: &mut Fields) -> Result<(), Error> {
        match (from, to) {
            (Value::Object(from), Value::Object(to)) => self.object_field(key, from, to, patch),
            (Value::Array(from), Value::Array(to)) => self.list_field(key, from, to, patch),
            _ => {
                if from != to {
                    self.change(key, to, patch);
                }
                Ok(())
            }
        }
    }

    fn object_field(self, key: &str, from: &Fields, to: &Fields, patch: &mut Fields) -> Result<(), Error> {
        let (schema, merging) = match self.schema.object_field(key) {
            Err(_) if from == to => return Ok(()),
            found => found?,
        };
        if merging.strategy == Strategy::Replace {
            self.change(key, &Value::Object(to.clone()), patch);
            return Ok(());
        }
        let inner = self.at(schema, merging).maps(from, to)?;
        if !inner.is_empty() {
            patch.insert(key.to_owned(), Value::Object(inner));
        }
        Ok(())
    }

    fn list_field(self, key: &str, from: &[Value], to: &[Value], patch: &mut Fields) -> Result<(), Error> {
        let (schema, merging) = match self.schema.list_field(key) {
            Err(_) if from == to => return Ok(()),
            found => found?,
        };
        if merging.strategy == Strategy::Merge {
            let lists = self.at(schema, merging).lists(from, to, merging.key)?;
            lists.write(key, patch);
        } else if from != to {
            self.change(key, &Value::Array(to.to_vec()), patch);
        }
        Ok(())
    }

    fn lists(self, from: &[Value], to: &[Value], key: &str) -> Result<ListPatch, Error> {
        if from.is_empty() {
            return Ok(self.all_of(to));
        }
        let kind = element_type(&[from, to])?;
        if kind == Type::Map { self.lists_of_maps(from, to, key) } else { self.lists_of_scalars(from, to, key, kind) }
    }

    fn all_of(self, to: &[Value]) -> ListPatch {
        let items = if self.half == Half::Changes { to.to_vec() } else { Vec::new() };
        ListPatch { items, ..ListPatch::default() }
    }

    fn lists_of_maps(self, from: &[Value], to: &[Value], key: &str) -> Result<ListPatch, Error> {
        let (items, deletions) = self.joined_maps(from, to, key)?;
        let mut items = in_order(items, to, key, Type::Map)?;
        let reordered = !same_order(from, to, key)?;
        items.extend(deletions);
        let ordered = !items.is_empty() || (self.half == Half::Changes && reordered);
        let order = if ordered { keys_only(to, key)? } else { Vec::new() };
        Ok(ListPatch { items, order, deletions: Vec::new() })
    }

    /// Walks both lists in the order of their merge keys.
    fn joined_maps(self, from: &[Value], to: &[Value], key: &str) -> Result<(List, List), Error> {
        let (mut items, mut deletions) = (Vec::new(), Vec::new());
        let mut from = sorted_maps(from, key)?.into_iter().peekable();
        let mut to = sorted_maps(to, key)?.into_iter().peekable();
        while let Some(side) = next_side(from.peek(), to.peek()) {
            let known = from.next_if(|_| side.is_le());
            let wanted = to.next_if(|_| side.is_ge());
            for (_, fields) in known.iter().chain(&wanted) {
                merge_key(fields, key)?;
            }
            match (known, wanted) {
                (Some((_, known)), Some((_, wanted))) => {
                    items.extend(self.element(known, wanted, key)?);
                }
                (Some((_, known)), None) => deletions.extend(self.deletion(known, key)),
                (None, Some((_, wanted))) => items.extend(self.addition(wanted)),
                (None, None) => {}
            }
        }
        Ok((items, deletions))
    }

    fn element(self, from: &Fields, to: &Fields, key: &str) -> Result<Option<Value>, Error> {
        let mut patch = self.maps(from, to)?;
        if patch.is_empty() {
            return Ok(None);
        }
        patch.insert(key.to_owned(), merge_key(to, key)?.clone());
        Ok(Some(Value::Object(patch)))
    }

    fn deletion(self, from: &Fields, key: &str) -> Option<Value> {
        let identity = from.get(key)?;
        (self.half == Half::Deletions).then(|| json!({ key: identity, "$patch": "delete" }))
    }

    fn addition(self, to: &Fields) -> Option<Value> {
        (self.half == Half::Changes).then(|| Value::Object(to.clone()))
    }

    fn lists_of_scalars(self, from: &[Value], to: &[Value], key: &str, kind: Type) -> Result<ListPatch, Error> {
        let known = sorted_scalars(from);
        let (additions, deletions) = joined_scalars(&known, &sorted_scalars(to));
        match self.half {
            // Kubernetes has sorted the live list by now, so an order other than the alphabetical one always counts as a change.
            Half::Changes => Ok(ListPatch {
                items: in_order(additions, to, key, kind)?,
                order: if known == to { Vec::new() } else { to.to_vec() },
                ..ListPatch::default()
            }),
            Half::Deletions => Ok(ListPatch {
                order: if deletions.is_empty() { Vec::new() } else { to.to_vec() },
                deletions: without_duplicates(deletions),
                ..ListPatch::default()
            }),
        }
    }

    fn change(self, key: &str, wanted: &Value, patch: &mut Fields) {
        if self.half == Half::Changes {
            patch.insert(key.to_owned(), wanted.clone());
        }
    }

    fn at(self, schema: Schema, merging: Merging) -> Self {
        Self { schema, retain_keys: merging.retain_keys, ..self }
    }
}

/// What a patch says about one merging list.
#[derive(Debug, Default)]
struct ListPatch {
    items: List,
    deletions: List,
    order: List,
}

impl ListPatch {
    fn write(self, key: &str, patch: &mut Fields) {
        let parts = [
            (key.to_owned(), self.items),
            (format!("$deleteFromPrimitiveList/{key}"), self.deletions),
            (format!("$setElementOrder/{key}"), self.order),
        ];
        let present = parts.into_iter().filter(|(_, list)| !list.is_empty());
        patch.extend(present.map(|(key, list)| (key, Value::Array(list))));
    }
}

/// Which list the next smallest element comes from; `Equal` means both.
fn next_side(from: Option<&(String, &Fields)>, to: Option<&(String, &Fields)>) -> Option<Ordering> {
    match (from, to) {
        (Some((from, _)), Some((to, _))) => Some(from.cmp(to)),
        (Some(_), None) => Some(Ordering::Less),
        (None, Some(_)) => Some(Ordering::Greater),
        (None, None) => None,
    }
}

/// The additions and deletions between two sorted lists.
fn joined_scalars(from: &[Value], to: &[Value]) -> (List, List) {
    let (mut additions, mut deletions) = (Vec::new(), Vec::new());
    let (mut from, mut to) = (from.iter().peekable(), to.iter().peekable());
    loop {
        let side = match (from.peek(), to.peek()) {
            (Some(known), Some(wanted)) => go_text(known).cmp(&go_text(wanted)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return (additions, deletions),
        };
        let known = from.next_if(|_| side.is_le());
        let wanted = to.next_if(|_| side.is_ge());
        if side != Ordering::Equal {
            deletions.extend(known.cloned());
            additions.extend(wanted.cloned());
        }
    }
}

fn directive(from: &Value, to: &Value, patch: &mut Fields) -> Result<(), Error> {
    let (Value::String(known), Value::String(wanted)) = (from, to) else {
        return Err(Error::DirectiveValue);
    };
    if known != wanted {
        patch.insert("$patch".to_owned(), to.clone());
    }
    Ok(())
}

/// Names the fields to keep, if anything changes at all.
fn add_retained_keys(from: &Fields, to: &Fields, patch: &mut Fields) {
    let mut kept: Vec<_> = to.iter().filter(|(_, value)| !value.is_null()).map(|(key, _)| key.as_str()).collect();
    let clears = from.iter().any(|(key, value)| !value.is_null() && !to.contains_key(key));
    if !kept.is_empty() && (clears || !patch.is_empty()) {
        kept.sort_unstable();
        patch.insert("$retainKeys".to_owned(), json!(kept));
    }
}

fn same_order(from: &[Value], to: &[Value], key: &str) -> Result<bool, Error> {
    if from.len() != to.len() {
        return Ok(false);
    }
    for (known, wanted) in from.iter().zip(to) {
        if !same_element(known, wanted, key)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn keys_only(list: &[Value], key: &str) -> Result<List, Error> {
    let keys = list.iter().map(|element| Ok(json!({ key: merge_key(super::list::as_map(element)?, key)? })));
    keys.collect()
}
