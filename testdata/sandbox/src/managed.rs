//! Who owns which field: server-side apply, and what all other writes do to ownership.

use serde_json::{Value, json};

use crate::fields::{self, Fields};
use crate::merge;
use crate::refusal::Refusal;
use crate::schema::Shape;

/// Paths that nobody owns.
const UNOWNED: [&[&str]; 11] = [
    &["f:apiVersion"],
    &["f:kind"],
    &["f:metadata", "f:creationTimestamp"],
    &["f:metadata", "f:deletionGracePeriodSeconds"],
    &["f:metadata", "f:deletionTimestamp"],
    &["f:metadata", "f:generation"],
    &["f:metadata", "f:managedFields"],
    &["f:metadata", "f:name"],
    &["f:metadata", "f:namespace"],
    &["f:metadata", "f:resourceVersion"],
    &["f:metadata", "f:uid"],
];

/// Who writes, and through which door.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    pub(crate) manager: String,
    pub(crate) api_version: String,
    /// `status`, or nothing.
    pub(crate) subresource: String,
    pub(crate) has_status: bool,
    pub(crate) time: String,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    manager: String,
    operation: String,
    api_version: String,
    subresource: String,
    time: String,
    fields: Fields,
}

impl Entry {
    fn parse(value: &Value) -> Self {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        Self {
            manager: text("manager"),
            operation: text("operation"),
            api_version: text("apiVersion"),
            subresource: text("subresource"),
            time: text("time"),
            fields: Fields::parse(&value["fieldsV1"]),
        }
    }

    fn to_json(&self) -> Value {
        let mut entry = json!({
            "manager": self.manager, "operation": self.operation, "apiVersion": self.api_version, "time": self.time,
            "fieldsType": "FieldsV1", "fieldsV1": self.fields.to_json(),
        });
        if !self.subresource.is_empty() {
            entry["subresource"] = json!(self.subresource);
        }
        entry
    }

    fn is_by(&self, writer: &Writer, operation: &str) -> bool {
        let door = (&self.api_version, &self.subresource);
        self.manager == writer.manager
            && self.operation == operation
            && door == (&writer.api_version, &writer.subresource)
    }

    /// How a conflict names it.
    fn words(&self) -> String {
        let subresource = match self.subresource.as_str() {
            "" => String::new(),
            name => format!(" with subresource {name:?}"),
        };
        match self.operation.as_str() {
            "Update" => format!("{:?}{subresource} using {}", self.manager, self.api_version),
            _ => format!("{:?}{subresource}", self.manager),
        }
    }
}

impl Writer {
    /// Without what this door does not open, and what nobody owns.
    fn owned(&self, mut fields: Fields) -> Fields {
        for path in UNOWNED {
            fields = fields.without(path);
        }
        fields = fields.disown("f:metadata");
        match self.subresource.as_str() {
            "" if self.has_status => fields.without(&["f:status"]),
            "" => fields,
            _ => fields.without(&["f:spec"]).without(&["f:metadata", "f:labels"]),
        }
    }

    fn entry(&self, operation: &str, fields: Fields) -> Entry {
        Entry {
            manager: self.manager.clone(),
            operation: operation.into(),
            api_version: self.api_version.clone(),
            subresource: self.subresource.clone(),
            time: self.time.clone(),
            fields,
        }
    }

    /// Brings the ownership of `after` up to date with a write that is no apply.
    pub(crate) fn update(&self, shape: Shape, before: Option<&Value>, after: &mut Value) {
        let given = entries(after);
        // One empty entry is the way to ask for nobody to own anything any more.
        let is_reset = after["metadata"]["managedFields"] == json!([{}]);
        let mut managers = match before {
            Some(before) if given.is_empty() => entries(before),
            Some(_) | None => given,
        };
        let bare = |value: &Value| {
            let mut value = value.clone();
            strip(&mut value);
            value
        };
        let old = before.map_or_else(|| empty(shape), bare);
        let found = fields::difference(shape, Some(&old), Some(&bare(after)));
        let changed = self.owned(found.changed);
        for entry in &mut managers {
            entry.fields = entry.fields.minus(&changed).minus(&found.removed);
        }
        if !changed.is_empty() {
            match managers.iter_mut().find(|entry| entry.is_by(self, "Update")) {
                Some(mine) => {
                    mine.fields = std::mem::take(&mut mine.fields).union(&changed);
                    mine.time.clone_from(&self.time);
                }
                None => managers.push(self.entry("Update", changed)),
            }
        }
        store(after, if is_reset { Vec::new() } else { managers });
    }

    /// What `live` is once `wanted` is applied.
    pub(crate) fn apply(
        &self,
        shape: Shape,
        live: Option<&Value>,
        wanted: &Value,
        force: bool,
    ) -> Result<Value, Refusal> {
        let mut managers = live.map(entries).unwrap_or_default();
        let untouched = managers.clone();
        let last = managers.iter().find(|entry| entry.is_by(self, "Apply")).map(|entry| entry.fields.clone());
        managers.retain(|entry| !entry.is_by(self, "Apply"));

        let mut wanted = wanted.clone();
        strip(&mut wanted);
        let mine = self.owned(fields::fields_of(shape, &wanted));
        let old = live.map_or_else(
            || json!({"apiVersion": wanted["apiVersion"], "kind": wanted["kind"], "metadata": {}}),
            |live| {
                let mut live = live.clone();
                strip(&mut live);
                live
            },
        );
        let mut merged = merge::merge(shape, &old, &wanted);
        let owned = managers.iter().fold(mine.clone(), |owned, entry| owned.union(&entry.fields));
        if let Some(last) = last {
            merge::prune(shape, &mut merged, &last, &owned);
        }

        let found = fields::difference(shape, Some(&old), Some(&merged));
        self.contest(&mut managers, &found.changed, force)?;
        for entry in &mut managers {
            entry.fields = entry.fields.minus(&found.removed);
        }
        managers.push(self.entry("Apply", mine));
        let same = merged == old && same_owners(&untouched, &managers);
        if let (true, Some(live)) = (same, live) {
            return Ok(live.clone());
        }
        store(&mut merged, managers);
        Ok(merged)
    }

    /// Refuses what others own, or takes it from them.
    fn contest(&self, managers: &mut [Entry], changed: &Fields, force: bool) -> Result<(), Refusal> {
        let mut conflicts = Vec::new();
        for entry in managers {
            let contested = entry.fields.common(changed);
            let paths = contested.paths();
            conflicts.extend(paths.into_iter().map(|path| (entry.words(), path)));
            if force {
                entry.fields = entry.fields.minus(&contested);
            }
        }
        conflicts.sort();
        if force || conflicts.is_empty() { Ok(()) } else { Err(Refusal::owned(&conflicts)) }
    }
}

/// An empty object as Go makes it.
fn empty(shape: Shape) -> Value {
    let mut object = json!({});
    for (name, field) in shape.present() {
        let inner = match (field.is_list(), shape.member(name)) {
            (false, inner @ Shape::Struct(_)) => empty(inner),
            _ => Value::Null,
        };
        object[name] = inner;
    }
    object
}

fn entries(object: &Value) -> Vec<Entry> {
    object["metadata"]["managedFields"].as_array().into_iter().flatten().map(Entry::parse).collect()
}

fn same_owners(old: &[Entry], new: &[Entry]) -> bool {
    let bare = |entries: &[Entry]| {
        let mut bare: Vec<_> = entries.iter().map(|entry| Entry { time: String::new(), ..entry.clone() }).collect();
        bare.retain(|entry| !entry.fields.is_empty());
        bare.sort_by(order);
        bare
    };
    bare(old) == bare(new)
}

fn order(a: &Entry, b: &Entry) -> std::cmp::Ordering {
    let key = |entry: &Entry| {
        let Entry { operation, time, manager, api_version, subresource, .. } = entry.clone();
        (operation, time, manager, api_version, subresource)
    };
    key(a).cmp(&key(b))
}

fn store(object: &mut Value, mut managers: Vec<Entry>) {
    managers.retain(|entry| !entry.fields.is_empty());
    managers.sort_by(order);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    if !managers.is_empty() {
        object["metadata"]["managedFields"] = managers.iter().map(Entry::to_json).collect();
    }
}

/// Ownership is no field.
fn strip(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
}
