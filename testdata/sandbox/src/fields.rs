//! Sets of fields, as `managedFields` write them: which there are, what differs between two objects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::schema::{Field, ListKind, Shape};

/// A set of paths. The steps are those of `fieldsV1`: `f:name`, `k:{"name":"web"}`, `v:"x"`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    /// Whether the path that ends here is in the set.
    own: bool,
    below: BTreeMap<String, Self>,
}

/// What differs between an object and the one that is to follow it.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    pub(crate) changed: Fields,
    pub(crate) removed: Fields,
}

impl Fields {
    pub(crate) fn parse(value: &Value) -> Self {
        let mut fields = Self::default();
        for (step, below) in value.as_object().into_iter().flatten() {
            if step == "." {
                fields.own = true;
                continue;
            }
            let mut child = Self::parse(below);
            // A step with nothing below it is the end of a path.
            child.own |= child.below.is_empty();
            fields.below.insert(step.clone(), child);
        }
        fields
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut members = Map::new();
        for (step, child) in &self.below {
            let mut below = child.to_json();
            if child.own && !child.below.is_empty() {
                below["."] = json!({});
            }
            members.insert(step.clone(), below);
        }
        Value::Object(members)
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.own && self.below.values().all(Self::is_empty)
    }

    pub(crate) fn child(&self, step: &str) -> Option<&Self> {
        self.below.get(step)
    }

    pub(crate) fn is_own(&self) -> bool {
        self.own
    }

    /// The steps from here, and what is below each.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.below.iter().map(|(step, child)| (step.as_str(), child))
    }

    pub(crate) fn union(mut self, other: &Self) -> Self {
        self.own |= other.own;
        for (step, child) in &other.below {
            let mine = self.below.remove(step).unwrap_or_default();
            self.below.insert(step.clone(), mine.union(child));
        }
        self
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.keep(Some(other), |mine, theirs| mine && !theirs)
    }

    pub(crate) fn common(&self, other: &Self) -> Self {
        self.keep(Some(other), |mine, theirs| mine && theirs)
    }

    fn keep(&self, other: Option<&Self>, rule: fn(bool, bool) -> bool) -> Self {
        let below = self.below.iter().map(|(step, child)| {
            let theirs = other.and_then(|other| other.below.get(step));
            (step.clone(), child.keep(theirs, rule))
        });
        let own = rule(self.own, other.is_some_and(|other| other.own));
        Self { own, below: below.filter(|(_, child)| !child.is_empty()).collect() }
    }

    /// Without a path that begins with these steps.
    pub(crate) fn without(mut self, path: &[&str]) -> Self {
        self.drop_path(path);
        self
    }

    /// With what is below a step, but not the step itself.
    pub(crate) fn disown(mut self, step: &str) -> Self {
        if let Some(child) = self.below.get_mut(step) {
            child.own = false;
        }
        self.below.retain(|_, child| !child.is_empty());
        self
    }

    fn drop_path(&mut self, path: &[&str]) {
        let Some((first, rest)) = path.split_first() else { return };
        if rest.is_empty() {
            self.below.remove(*first);
        } else if let Some(child) = self.below.get_mut(*first) {
            child.drop_path(rest);
            if child.is_empty() {
                self.below.remove(*first);
            }
        }
    }

    /// Every path, as conflicts name it: `.spec.containers[name="web"].image`.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect(&mut paths, "");
        paths
    }

    fn collect(&self, paths: &mut Vec<String>, prefix: &str) {
        if self.own {
            paths.push(prefix.to_owned());
        }
        for (step, child) in &self.below {
            child.collect(paths, &format!("{prefix}{}", readable(step)));
        }
    }

    fn add(&mut self, path: &[String]) {
        match path.split_first() {
            Some((first, rest)) => self.below.entry(first.clone()).or_default().add(rest),
            None => self.own = true,
        }
    }
}

fn readable(step: &str) -> String {
    let (kind, text) = step.split_once(':').unwrap_or(("", step));
    match kind {
        "f" => format!(".{text}"),
        "v" => format!("[={text}]"),
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
            let pairs: Vec<_> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", pairs.join(","))
        }
        _ => format!("[{text}]"),
    }
}

/// The fields that an object sets: what its applier comes to own.
pub(crate) fn fields_of(shape: Shape, value: &Value) -> Fields {
    let mut fields = Fields::default();
    walk(shape, value, &mut Vec::new(), &mut fields);
    fields
}

fn walk(shape: Shape, value: &Value, path: &mut Vec<String>, fields: &mut Fields) {
    match (shape, value) {
        (Shape::Struct(_) | Shape::Map(_) | Shape::Free, Value::Object(members)) => {
            let is_struct = |name: &str| matches!(shape, Shape::Struct(_)) && shape.field(name).is_some();
            for (name, value) in members {
                path.push(format!("f:{name}"));
                walk(shape.member(name), value, path, fields);
                let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                if is_empty || !is_struct(name) {
                    fields.add(path);
                }
                path.pop();
            }
        }
        (Shape::List(field), Value::Array(items)) if field.list() != ListKind::Atomic => {
            for item in items {
                path.push(step_of(field, item));
                walk(field.element(), item, path, fields);
                fields.add(path);
                path.pop();
            }
        }
        _ => fields.add(path),
    }
}

/// What tells an element of a list apart.
pub(crate) fn step_of(field: &'static Field, item: &Value) -> String {
    if field.list() == ListKind::Set {
        return format!("v:{item}");
    }
    let key = |name: &String| {
        let value = item.get(name).cloned();
        let default = || field.element().field(name).and_then(|known| known.default.clone());
        value.or_else(default).map(|value| (name.clone(), value))
    };
    let keys: Map<String, Value> = field.keys.iter().filter_map(key).collect();
    format!("k:{}", Value::Object(keys))
}

/// What an update changes and removes.
pub(crate) fn difference(shape: Shape, before: Option<&Value>, after: Option<&Value>) -> Difference {
    let mut found = Difference::default();
    compare(shape, before, after, &mut Vec::new(), &mut found);
    found
}

fn compare(
    shape: Shape,
    before: Option<&Value>,
    after: Option<&Value>,
    path: &mut Vec<String>,
    found: &mut Difference,
) {
    let sides = [before, after];
    let is_leaf = sides.iter().all(|side| is_bare(*side));
    let all = |is_kind: fn(&Value) -> bool| sides.iter().flatten().all(|value| value.is_null() || is_kind(value));
    match shape {
        Shape::Struct(_) | Shape::Map(_) | Shape::Free if !is_leaf && all(Value::is_object) => {
            let (old, new) = (members(before), members(after));
            for name in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
                let (old, new) = (old.get(name).copied(), new.get(name).copied());
                step(format!("f:{name}"), shape.member(name), old, new, path, found);
            }
        }
        Shape::List(field) if field.list() != ListKind::Atomic && !is_leaf && all(Value::is_array) => {
            let (old, new) = (elements(field, before), elements(field, after));
            for name in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
                let (old, new) = (old.get(name).copied(), new.get(name).copied());
                step(name.clone(), field.element(), old, new, path, found);
            }
        }
        Shape::Struct(_) | Shape::Map(_) | Shape::List(_) | Shape::Whole | Shape::Free => match (before, after) {
            (_, None) => found.removed.add(path),
            (None, Some(_)) => found.changed.add(path),
            (Some(before), Some(after)) if before != after => found.changed.add(path),
            (Some(_), Some(_)) => {}
        },
    }
}

/// What holds nothing is compared as a whole.
fn is_bare(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Null) | None => true,
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => false,
    }
}

fn members(value: Option<&Value>) -> BTreeMap<&str, &Value> {
    let members = value.and_then(Value::as_object).into_iter().flatten();
    members.map(|(name, value)| (name.as_str(), value)).collect()
}

fn elements<'a>(field: &'static Field, value: Option<&'a Value>) -> BTreeMap<String, &'a Value> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.map(|item| (step_of(field, item), item)).collect()
}

/// One member or element: it is itself in the set where it is new or gone.
fn step(
    name: String,
    shape: Shape,
    before: Option<&Value>,
    after: Option<&Value>,
    path: &mut Vec<String>,
    found: &mut Difference,
) {
    path.push(name);
    compare(shape, before, after, path, found);
    match (before, after) {
        (None, Some(_)) => found.changed.add(path),
        (Some(_), None) => found.removed.add(path),
        (Some(_), Some(_)) | (None, None) => {}
    }
    path.pop();
}
