//! Merging a strategic patch: into another patch, as the client does, or into an object, as the API server does.

use super::error::Error;
use super::json::prune;
use super::list::{
    Fields, List, arranged, as_map, element_type, is_deletion, merge_key, position_of, same_element,
    without_duplicates, wrong_type,
};
use super::schema::{Merging, Schema, Strategy};
use super::text::{Type, go_text, list_text, map_text};
use serde_json::{Map, Value};

/// What a patch is merged into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Onto {
    /// Another patch: directives and nulls stay.
    Patch,
    /// An object: directives are carried out, nulls remove.
    Object,
}

const DELETE_PREFIX: &str = "$deleteFromPrimitiveList";
const ORDER_PREFIX: &str = "$setElementOrder";
const RETAIN_KEYS: &str = "$retainKeys";

/// Merges `patch` into `base`.
///
/// # Errors
/// See [`Error`].
pub(super) fn merge(base: Fields, patch: Fields, schema: Schema, onto: Onto) -> Result<Fields, Error> {
    Merge { onto, schema }.maps(base, patch)
}

#[derive(Debug, Clone, Copy)]
struct Merge {
    onto: Onto,
    /// What the maps at hand, or the elements of the lists at hand, are.
    schema: Schema,
}

impl Merge {
    fn maps(self, mut base: Fields, mut patch: Fields) -> Result<Fields, Error> {
        if let Some(directive) = patch.remove("$patch") {
            return whole_map(&directive, patch);
        }
        if let Some(keys) = patch.remove(RETAIN_KEYS) {
            self.retain_keys(&mut base, &patch, keys)?;
        }
        self.ordered_lists(&mut base, &mut patch)?;
        for (key, value) in patch {
            self.field(&mut base, key, value)?;
        }
        Ok(base)
    }

    fn retain_keys(self, base: &mut Fields, patch: &Fields, keys: Value) -> Result<(), Error> {
        if self.onto == Onto::Object {
            return clear_all_but(base, patch, &into_keys(keys)?);
        }
        match base.insert(RETAIN_KEYS.to_owned(), keys.clone()) {
            Some(other) if other != keys => Err(Error::RetainKeys),
            _ => Ok(()),
        }
    }

    /// Handles every `$setElementOrder/…` together with the list it orders.
    fn ordered_lists(self, base: &mut Fields, patch: &mut Fields) -> Result<(), Error> {
        let ordered = patch.keys().filter(|key| key.starts_with(ORDER_PREFIX));
        for directive in ordered.cloned().collect::<Vec<_>>() {
            let order = patch.remove(&directive).unwrap_or_default();
            if self.onto == Onto::Patch {
                match base.insert(directive.clone(), order.clone()) {
                    Some(other) if other != order => return Err(Error::ElementOrder),
                    _ => {}
                }
            }
            let key = directive.strip_prefix("$setElementOrder/").ok_or(Error::ElementOrder)?;
            self.ordered_list(base, key, patch.remove(key), &into_list(order)?)?;
        }
        Ok(())
    }

    fn ordered_list(self, base: &mut Fields, key: &str, patch: Option<Value>, order: &[Value]) -> Result<(), Error> {
        let live = base.get(key).cloned().map(into_list).transpose()?;
        let patch = patch.map(into_list).transpose()?;
        let (schema, merging) = self.schema.list_field(key)?;
        let old = live.as_deref().unwrap_or_default();
        let new = patch.as_deref().unwrap_or_default();
        check_order(new, order, merging.key)?;
        let kind = element_type(&[old, new]);
        let live_order = order_after_deletions(old, new, merging.key);
        let merged = match (live, patch) {
            (None, None) => return Ok(()),
            (Some(live), None) => live,
            (None, Some(patch)) => without_directives_in(patch),
            (Some(live), Some(patch)) => self.at(schema).by_strategy(live, patch, merging)?,
        };
        let kind = kind?;
        let list = arranged(merged, order, &live_order, merging.key, kind)?;
        base.insert(key.to_owned(), Value::Array(list));
        Ok(())
    }

    fn field(self, base: &mut Fields, key: String, value: Value) -> Result<(), Error> {
        if key.starts_with(DELETE_PREFIX) {
            return self.deletions(base, key, value);
        }
        match (base.remove(&key), value) {
            (_, Value::Null) if self.onto == Onto::Object => {}
            (Some(Value::Object(known)), Value::Object(patch)) => {
                let merged = self.objects(known, patch, &key)?;
                base.insert(key, Value::Object(merged));
            }
            (Some(Value::Array(known)), Value::Array(patch)) => {
                let merged = self.list_field(known, patch, &key)?;
                base.insert(key, Value::Array(merged));
            }
            (_, value) => base.extend(self.taken(value).map(|value| (key, value))),
        }
        Ok(())
    }

    fn objects(self, known: Fields, patch: Fields, key: &str) -> Result<Fields, Error> {
        let (schema, merging) = self.schema.object_field(key)?;
        match merging.strategy {
            Strategy::Replace => Ok(patch),
            Strategy::Default | Strategy::Merge => self.at(schema).maps(known, patch),
        }
    }

    fn list_field(self, known: List, patch: List, key: &str) -> Result<List, Error> {
        let (schema, merging) = self.schema.list_field(key)?;
        self.at(schema).by_strategy(known, patch, merging)
    }

    fn by_strategy(self, known: List, patch: List, merging: Merging) -> Result<List, Error> {
        match merging.strategy {
            Strategy::Merge => self.lists(known, patch, merging.key),
            Strategy::Default | Strategy::Replace => Ok(patch),
        }
    }

    /// `$deleteFromPrimitiveList/…`: kept in a patch, carried out on an object.
    fn deletions(self, base: &mut Fields, directive: String, value: Value) -> Result<(), Error> {
        if self.onto == Onto::Patch {
            base.insert(directive, value);
            return Ok(());
        }
        let key = directive.strip_prefix("$deleteFromPrimitiveList/").ok_or(Error::DeletionList)?;
        if let (Some(Value::Array(known)), Value::Array(gone)) = (base.get_mut(key), value) {
            self.schema.list_field(key)?;
            known.retain(|element| !gone.contains(element));
        }
        Ok(())
    }

    /// A value the base does not have yet.
    fn taken(self, mut value: Value) -> Option<Value> {
        if self.onto == Onto::Object {
            prune(&mut value);
        }
        without_directives(value)
    }

    fn lists(self, known: List, patch: List, key: &str) -> Result<List, Error> {
        if known.is_empty() && patch.is_empty() {
            return Ok(known);
        }
        let kind = element_type(&[&known, &patch])?;
        let [merged, known, patch] = if kind == Type::Map {
            self.lists_of_maps(known, patch, key)?
        } else {
            let both = known.iter().chain(&patch).cloned().collect();
            [without_duplicates(both), known, patch]
        };
        arranged(merged, &patch, &known, key, kind)
    }

    /// The merged list, and what is left of the two once special elements have been carried out.
    fn lists_of_maps(self, known: List, patch: List, key: &str) -> Result<[List; 3], Error> {
        if key.is_empty() {
            return Err(Error::NoDeclaredMergeKey { shape: self.schema.word() });
        }
        let (known, patch) = special_elements(known, patch, key)?;
        let mut merged = known.clone();
        for element in &patch {
            let fields = as_map(element)?;
            match position_of(&merged, key, merge_key(fields, key)?)? {
                Some(index) => {
                    let base = as_map(&merged[index])?.clone();
                    merged[index] = Value::Object(self.maps(base, fields.clone())?);
                }
                None => merged.push(element.clone()),
            }
        }
        Ok([merged, known, patch])
    }

    fn at(self, schema: Schema) -> Self {
        Self { schema, ..self }
    }
}

/// Carries out `$retainKeys`: what it does not name goes, and the patch may not name anything else.
fn clear_all_but(base: &mut Fields, patch: &Fields, keys: &[Value]) -> Result<(), Error> {
    let named = |key: &str| keys.iter().any(|other| other == key);
    let directive = |key: &str| key.starts_with(DELETE_PREFIX) || key.starts_with(ORDER_PREFIX);
    let allowed = |(key, value): (&String, &Value)| value.is_null() || directive(key) || named(key);
    base.retain(|key, _| named(key));
    if patch.iter().all(allowed) { Ok(()) } else { Err(Error::RetainKeys) }
}

/// `$patch` in a map: `replace` takes the rest of the patch as it is, `delete` leaves nothing.
fn whole_map(directive: &Value, mut patch: Fields) -> Result<Fields, Error> {
    match directive.as_str() {
        Some("replace") => Ok(patch),
        Some("delete") => Ok(Map::new()),
        _ => {
            patch.insert("$patch".to_owned(), directive.clone());
            Err(unknown_directive(directive, &patch))
        }
    }
}

/// Carries out `$patch` in list elements; returns the live list and the ordinary elements of the patch.
fn special_elements(mut known: List, patch: List, key: &str) -> Result<(List, List), Error> {
    let mut ordinary = Vec::with_capacity(patch.len());
    let mut replace = false;
    for element in patch {
        let fields = as_map(&element)?;
        match fields.get("$patch") {
            None => ordinary.push(element),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    let gone = merge_key(fields, key)?;
                    known.retain(|other| other.get(key) != Some(gone));
                }
                Some("replace") => replace = true,
                Some("merge") => return Err(Error::MergeDirective),
                _ => return Err(unknown_directive(directive, fields)),
            },
        }
    }
    Ok(if replace { (ordinary, Vec::new()) } else { (known, ordinary) })
}

/// The order of the live list that elements are put in.
///
/// Kubernetes keeps the list in the memory of the old one: new elements take the room that deleted ones leave, and from there
/// count as live. Without deletions this is the live list.
fn order_after_deletions(live: &[Value], patch: &[Value], key: &str) -> List {
    let (gone, ordinary): (Vec<_>, Vec<_>) = patch.iter().partition(|element| is_deletion(element));
    let among = |list: &[&Value], element: &Value| list.iter().any(|other| other.get(key) == element.get(key));
    let mut order: Vec<_> = live.iter().filter(|element| key.is_empty() || !among(&gone, element)).collect();
    for element in ordinary {
        if order.len() < live.len() && !among(&order, element) {
            order.push(element);
        }
    }
    order.into_iter().cloned().collect()
}

/// Whether the elements of a patched list come in the order that goes with it.
fn check_order(list: &[Value], order: &[Value], key: &str) -> Result<(), Error> {
    if list.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut waiting = list.iter().filter(|element| element.get("$patch").is_none()).peekable();
    for named in order {
        let Some(next) = waiting.peek() else { break };
        if same_element(next, named, key)? {
            waiting.next();
        }
    }
    match waiting.next() {
        None => Ok(()),
        Some(_) => Err(Error::OrderMismatch { list: list_text(list), order: list_text(order) }),
    }
}

/// The value without any map that holds a directive; `None` if that is the value itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key("$patch") => None,
        Value::Object(fields) => {
            let kept = fields.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(list) => Some(Value::Array(without_directives_in(list))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value),
    }
}

fn without_directives_in(list: List) -> List {
    list.into_iter().filter_map(without_directives).collect()
}

fn into_list(value: Value) -> Result<List, Error> {
    if let Value::Array(list) = value {
        return Ok(list);
    }
    Err(wrong_type(Type::List, &value))
}

fn into_keys(value: Value) -> Result<List, Error> {
    into_list(value).map_err(|_| Error::RetainKeys)
}

fn unknown_directive(directive: &Value, fields: &Fields) -> Error {
    Error::UnknownDirective { directive: go_text(directive), map: map_text(fields) }
}
