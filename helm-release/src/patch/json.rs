//! JSON merge patches, for objects whose types Helm does not know.
//!
//! Lists are replaced as a whole and null means "remove". Numbers are compared by value and kept as written, where Go sends
//! `1.0` as `1` and rounds integers beyond 2⁵³.

use super::list::Fields;
use serde_json::{Map, Value};

/// The merge patch that leads from `from` to `to`; anything but objects counts as empty.
///
/// Mirrors `CreateMergePatch` of `evanphx/json-patch`, which Helm uses to upgrade custom resources: changes made to the live
/// object are neither seen nor undone.
pub fn two_way_json(from: &Value, to: &Value) -> Value {
    let empty = Map::new();
    let patch = difference(from.as_object().unwrap_or(&empty), to.as_object().unwrap_or(&empty));
    Value::Object(patch)
}

/// The merge patch that brings `current` to `modified` and removes what only `original` had.
///
/// Mirrors `jsonmergepatch.CreateThreeWayJSONMergePatch`; anything but objects counts as empty.
pub fn three_way_json(original: &Value, modified: &Value, current: &Value) -> Value {
    let changes = without_nulls(two_way_json(current, modified));
    let mut patch = only_nulls(two_way_json(original, modified));
    merge(&mut patch, changes);
    patch
}

/// The object after a JSON merge patch.
///
/// Mirrors `MergePatch` of `evanphx/json-patch`, which the API server uses. It differs from RFC 7386 in objects inside lists:
/// there too, nulls are dropped if the list is new.
pub fn apply_json(patch: &Value, current: &Value) -> Value {
    let mut object = current.clone();
    merge(&mut object, patch.clone());
    object
}

fn difference(from: &Fields, to: &Fields) -> Fields {
    let mut patch = Map::new();
    for (key, wanted) in to {
        match (from.get(key), wanted) {
            (Some(Value::Object(known)), Value::Object(wanted)) => {
                let inner = difference(known, wanted);
                if !inner.is_empty() {
                    patch.insert(key.clone(), Value::Object(inner));
                }
            }
            (Some(known), wanted) if same(known, wanted) => {}
            (_, wanted) => {
                patch.insert(key.clone(), wanted.clone());
            }
        }
    }
    let gone = from.keys().filter(|key| !to.contains_key(*key));
    patch.extend(gone.map(|key| (key.clone(), Value::Null)));
    patch
}

/// Equality, with numbers compared by value.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let found = |(key, left)| right.get(key).is_some_and(|right| same(left, right));
            left.len() == right.len() && left.iter().all(found)
        }
        _ => left == right,
    }
}

/// The additions and changes of a patch. An empty map stays only if it was empty before.
fn without_nulls(patch: Value) -> Value {
    let Value::Object(fields) = patch else {
        return patch;
    };
    let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
    let kept = kept.filter_map(|(key, value)| match non_empty(value) {
        Some(value) => Some((key, non_empty(without_nulls(value))?)),
        None => Some((key, Value::Object(Map::new()))),
    });
    Value::Object(kept.collect())
}

/// The deletions of a patch.
fn only_nulls(patch: Value) -> Value {
    let Value::Object(fields) = patch else {
        return patch;
    };
    let kept = fields.into_iter().filter_map(|(key, value)| match value {
        Value::Null => Some((key, Value::Null)),
        Value::Object(_) => Some((key, non_empty(only_nulls(value))?)),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    });
    Value::Object(kept.collect())
}

/// The value, unless it is an empty map.
fn non_empty(value: Value) -> Option<Value> {
    (value.as_object().is_none_or(|fields| !fields.is_empty())).then_some(value)
}

fn merge(base: &mut Value, patch: Value) {
    match (base, patch) {
        (Value::Object(fields), Value::Object(patch)) => {
            for (key, value) in patch {
                merge_field(fields, key, value);
            }
        }
        (base @ Value::Object(_), patch) => *base = patch,
        (base, mut patch) => {
            prune(&mut patch);
            *base = patch;
        }
    }
}

fn merge_field(fields: &mut Fields, key: String, value: Value) {
    if value.is_null() {
        fields.remove(&key);
    } else {
        merge(fields.entry(key).or_insert(Value::Null), value);
    }
}

/// Drops null fields everywhere, but not null elements of lists.
pub(super) fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(prune);
        }
        Value::Array(list) => list.iter_mut().for_each(prune),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
