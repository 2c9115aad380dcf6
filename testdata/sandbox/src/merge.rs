//! How one object comes into another: server-side apply, and strategic merge patches.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::fields::{Fields, step_of};
use crate::schema::{Field, ListKind, Shape};

/// `live` with all that `wanted` sets.
pub(crate) fn merge(shape: Shape, live: &Value, wanted: &Value) -> Value {
    match (shape, live, wanted) {
        (Shape::Struct(_) | Shape::Map(_) | Shape::Free, Value::Object(old), Value::Object(new)) => {
            let mut merged = old.clone();
            for (name, value) in new {
                let value = match old.get(name) {
                    Some(live) => merge(shape.member(name), live, value),
                    None => value.clone(),
                };
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        (Shape::List(field), Value::Array(old), Value::Array(new)) if field.list() != ListKind::Atomic => {
            merge_list(field, old, new)
        }
        _ => wanted.clone(),
    }
}

/// The elements in the order of `new`; what only `old` has keeps its place among them.
fn merge_list(field: &'static Field, old: &[Value], new: &[Value]) -> Value {
    let steps = |items: &[Value]| -> Vec<String> { items.iter().map(|item| step_of(field, item)).collect() };
    let (left, right) = (steps(old), steps(new));
    let mut shared = right.iter().filter(|step| left.contains(step)).peekable();
    let (mut l, mut r, mut merged) = (0, 0, Vec::new());
    while l < left.len() || r < right.len() {
        if let Some(step) = left.get(l) {
            let is_shared = right.contains(step);
            let is_next = shared.peek().is_some_and(|next| *next == step);
            if !is_shared {
                merged.push(old[l].clone());
                l += 1;
                continue;
            }
            if !is_next || right.get(r) != Some(step) {
                // It comes later, or was taken already, at its place in the new order.
                if !is_next {
                    l += 1;
                    continue;
                }
            } else {
                merged.push(merge(field.element(), &old[l], &new[r]));
                (l, r) = (l + 1, r + 1);
                shared.next();
                continue;
            }
        }
        let Some(step) = right.get(r) else { continue };
        match left.iter().position(|known| known == step) {
            Some(known) => {
                merged.push(merge(field.element(), &old[known], &new[r]));
                shared.next();
            }
            None => merged.push(new[r].clone()),
        }
        r += 1;
    }
    Value::Array(merged)
}

/// Takes away what its applier does not set any more and nobody else owns.
pub(crate) fn prune(shape: Shape, value: &mut Value, last: &Fields, owned: &Fields) {
    for (step, before) in last.steps() {
        let now = owned.child(step);
        let is_gone = before.is_own() && now.is_none_or(Fields::is_empty);
        match (shape, step.split_once(':')) {
            (Shape::Struct(_) | Shape::Map(_) | Shape::Free, Some(("f", name))) => {
                let Some(members) = value.as_object_mut() else { continue };
                let has_below = before.steps().next().is_some();
                if is_gone {
                    members.remove(name);
                } else if let Some(member) = members.get_mut(name).filter(|_| has_below) {
                    prune(shape.member(name), member, before, now.unwrap_or(&Fields::default()));
                    if is_empty(member) && now.is_none_or(Fields::is_empty) {
                        members.remove(name);
                    }
                }
            }
            (Shape::List(field), Some(_)) => {
                let Some(items) = value.as_array_mut() else { continue };
                let Some(place) = items.iter().position(|item| step_of(field, item) == step) else { continue };
                if is_gone {
                    items.remove(place);
                } else {
                    prune(field.element(), &mut items[place], before, now.unwrap_or(&Fields::default()));
                }
            }
            _ => {}
        }
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// `live` after a strategic merge patch.
pub(crate) fn strategic(shape: Shape, live: &Map<String, Value>, patch: &Map<String, Value>) -> Map<String, Value> {
    let mut merged = match patch.get("$patch").and_then(Value::as_str) {
        Some("replace" | "delete") => Map::new(),
        Some(_) | None => live.clone(),
    };
    if patch.get("$patch").is_some_and(|word| word == "delete") {
        return merged;
    }
    if let Some(Value::Array(kept)) = patch.get("$retainKeys") {
        merged.retain(|name, _| kept.iter().any(|word| word == name));
    }
    for (name, value) in patch {
        if let Some(name) = name.strip_prefix("$deleteFromPrimitiveList/") {
            if let (Some(Value::Array(items)), Value::Array(gone)) = (merged.get_mut(name), value) {
                items.retain(|item| !gone.contains(item));
            }
        } else if !name.starts_with('$') {
            member(shape, &mut merged, name, value);
        }
    }
    for (name, order) in patch {
        if let (Some(name), Value::Array(order)) = (name.strip_prefix("$setElementOrder/"), order) {
            let key = shape.field(name).map_or("", |field| field.key.as_str());
            let before = live.get(name).and_then(Value::as_array);
            if let Some(Value::Array(items)) = merged.get_mut(name) {
                sort(items, key, order, before.map_or(&[], Vec::as_slice));
            }
        }
    }
    merged
}

fn member(shape: Shape, merged: &mut Map<String, Value>, name: &str, value: &Value) {
    let field = shape.field(name);
    let is = |word: &str| field.is_some_and(|field| field.has_strategy(word));
    let value = match (merged.get(name), value) {
        (_, Value::Null) => {
            merged.remove(name);
            return;
        }
        (Some(Value::Object(live)), Value::Object(patch)) if !is("replace") => {
            Value::Object(strategic(shape.member(name), live, patch))
        }
        (_, Value::Object(patch)) => Value::Object(strategic(shape.member(name), &Map::new(), patch)),
        (live, Value::Array(patch)) if is("merge") => {
            let live = live.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            Value::Array(list(field, live, patch))
        }
        (_, other) => other.clone(),
    };
    merged.insert(name.to_owned(), value);
}

fn list(field: Option<&'static Field>, live: &[Value], patch: &[Value]) -> Vec<Value> {
    let key = field.map_or("", |field| field.key.as_str());
    let element = field.map_or(Shape::Free, Field::element);
    let mut items = live.to_vec();
    if patch.iter().any(|item| item["$patch"] == "replace") {
        items.clear();
    }
    for item in patch {
        let Value::Object(members) = item else {
            if !items.contains(item) {
                items.push(item.clone());
            }
            continue;
        };
        let place = items.iter().position(|known| known.get(key) == members.get(key));
        match (members.get("$patch").and_then(Value::as_str), place) {
            (Some("delete"), _) => items.retain(|known| known.get(key) != members.get(key)),
            (Some("replace"), _) if members.len() == 1 => {}
            (_, Some(place)) => {
                let known = items[place].as_object().cloned().unwrap_or_default();
                items[place] = Value::Object(strategic(element, &known, members));
            }
            (_, None) => items.push(Value::Object(strategic(element, &Map::new(), members))),
        }
    }
    items
}

/// Elements that the patch orders, and those that it does not know where they stood before.
fn sort(items: &mut Vec<Value>, key: &str, order: &[Value], before: &[Value]) {
    let name = |item: &Value| if key.is_empty() { item.clone() } else { item[key].clone() };
    let order: Vec<Value> = order.iter().map(name).collect();
    let before: BTreeMap<String, usize> =
        before.iter().enumerate().map(|(place, item)| (name(item).to_string(), place)).collect();
    let place = |item: &Value| before.get(&name(item).to_string()).copied();
    let (mut known, mut others): (Vec<Value>, Vec<Value>) =
        items.drain(..).partition(|item| order.contains(&name(item)));
    known.sort_by_key(|item| order.iter().position(|entry| *entry == name(item)));
    others.sort_by_key(|item| place(item));
    let (mut known, mut others) = (known.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(left), Some(right)) = (known.peek(), others.peek()) {
        let is_first = matches!((place(left), place(right)), (Some(left), Some(right)) if left < right);
        items.extend(if is_first { known.next() } else { others.next() });
    }
    items.extend(known);
    items.extend(others);
}
