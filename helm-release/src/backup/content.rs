//! What of a live object can be restored, and what brings it back.
//!
//! The server's own fields, the status, and what controllers hold are left alone: they would be written anew at once. Who
//! owns which field is restored too, or the next `helm upgrade` by server-side apply would meet a conflict.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use crate::manifest::ObjectId;
use crate::patch::{self, Patch, Unstructured};
use crate::readiness::{Readiness, completion};

/// Managers that only write what follows from the rest.
const CONTROLLERS: [&str; 4] = ["kube-controller-manager", "cloud-controller-manager", "kube-scheduler", "kubelet"];

/// What the server alone writes, and owners, which may be gone.
const SERVERS_OWN: [&str; 9] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
    "ownerReferences",
];

/// What the server fills in for one object of a kind: another object gets its own.
const GENERATED: [(&str, &str, &[&str]); 5] = [
    ("Job", "/spec", &["selector"]),
    ("Job", "/metadata/labels", &["controller-uid", "batch.kubernetes.io/controller-uid"]),
    ("Job", "/spec/template/metadata/labels", &["controller-uid", "batch.kubernetes.io/controller-uid"]),
    ("Pod", "/spec", &["nodeName"]),
    ("PersistentVolumeClaim", "/spec", &["volumeName"]),
];

/// The next write that brings an object back.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// None: it is what it was.
    Nothing,
    /// It is gone: create it with this body.
    Create(Value),
    /// It differs: send this patch, bound to the resourceVersion.
    Patch(Patch),
    /// It says what it said, but other managers own its fields: send this JSON patch.
    Managers(Value),
}

/// What the next write is. Called again with what the write left, until it is none.
pub(crate) fn next(saved: &Value, live: Option<&Value>) -> Result<Next, patch::Error> {
    let Some(live) = live else { return Ok(Next::Create(fresh(saved))) };
    let (before, now) = (restorable(saved, saved, live), restorable(live, saved, live));
    if before != now {
        let (version, kind) = (text(saved, "/apiVersion"), text(saved, "/kind"));
        let patch = patch::three_way(version, kind, &now, &before, live, Unstructured::ThreeWay)?;
        if !patch.is_empty() {
            return Ok(Next::Patch(bound(patch, live)));
        }
    }
    let goal = goal_managers(saved, live);
    if goal.is_empty() || owners(&goal) == owners(&entries(live)) {
        return Ok(Next::Nothing);
    }
    Ok(Next::Managers(json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": goal},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
    ])))
}

/// Which object a live one is.
pub(crate) fn identity(object: &Value) -> ObjectId {
    let group = text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
    ObjectId {
        group: group.into(),
        kind: text(object, "/kind").into(),
        namespace: object["metadata"]["namespace"].as_str().map(str::to_owned),
        name: text(object, "/metadata/name").into(),
    }
}

/// Why an object that is gone cannot or must not be made again, if so.
pub(super) fn irretrievable(saved: &Value) -> Option<&'static str> {
    let id = identity(saved);
    let runs = matches!((id.group.as_str(), id.kind.as_str()), ("batch", "Job") | ("", "Pod"));
    if saved["metadata"]["deletionTimestamp"].is_string() {
        return Some("it was being deleted already when the backup was made");
    }
    if saved["metadata"]["annotations"]["helm.sh/hook"].is_string() {
        // One that is left behind can make the next upgrade of Helm 3 fail, too.
        return Some("a hook: no hook is run again");
    }
    if runs && matches!(completion(saved), Readiness::Current | Readiness::Failed { .. }) {
        return Some("it has run to its end, and is not run again");
    }
    match (id.group.as_str(), id.kind.as_str()) {
        ("", "PersistentVolumeClaim")
            if saved["spec"]["volumeName"].is_string() || saved["status"]["phase"] == "Bound" =>
        {
            Some("a claim that was bound: an empty volume would take the place of its data")
        }
        ("", "PersistentVolume") => Some("a volume: its data does not come back with it"),
        _ => None,
    }
}

/// Whoever else has written the object since it was saved; `ours` is the manager of the run that is undone.
pub(super) fn stranger(saved: &Value, live: &Value, ours: &str) -> Option<String> {
    let mark =
        |entry: &Value| ["manager", "operation", "time"].map(|key| entry[key].as_str().unwrap_or_default().to_owned());
    let known: BTreeSet<_> = writers(saved).iter().map(mark).collect();
    let strange = writers(live).into_iter().find(|entry| entry["manager"] != ours && !known.contains(&mark(entry)));
    strange.map(|entry| entry["manager"].as_str().unwrap_or_default().to_owned())
}

/// Whether somebody else has written the object since it was saved.
#[cfg(feature = "kube")]
pub(crate) fn is_strange(saved: &Value, live: &Value, ours: &str) -> bool {
    stranger(saved, live, ours).is_some()
}

/// Who wrote an object first, and when it was made.
pub(super) fn birth(live: &Value) -> (Option<String>, Option<DateTime<Utc>>) {
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<DateTime<Utc>>().ok());
    let first = writers(live).into_iter().min_by_key(|entry| time(&entry["time"]));
    (first.and_then(|entry| entry["manager"].as_str().map(str::to_owned)), time(&live["metadata"]["creationTimestamp"]))
}

/// The body that makes an object again.
fn fresh(saved: &Value) -> Value {
    let mut body = without_server(saved);
    without_generated(&mut body);
    body
}

/// What of `object` is compared and written: not what a controller holds, nor has held and nobody else holds now.
fn restorable(object: &Value, saved: &Value, live: &Value) -> Value {
    let mut body = without_server(object);
    let theirs = entries(saved).into_iter().chain(entries(live)).filter(is_controllers);
    let ours: Vec<Value> = writers(live).into_iter().map(|entry| entry["fieldsV1"].clone()).collect();
    for entry in theirs {
        strip(&mut body, &entry["fieldsV1"], &ours.iter().collect::<Vec<_>>());
    }
    if saved["metadata"]["uid"] != live["metadata"]["uid"] {
        without_generated(&mut body);
    }
    body
}

fn without_server(object: &Value) -> Value {
    let mut body = object.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = body["metadata"].as_object_mut() {
        metadata.retain(|key, _| !SERVERS_OWN.contains(&key.as_str()));
    }
    body
}

fn without_generated(body: &mut Value) {
    let kind = text(body, "/kind").to_owned();
    for (_, place, names) in GENERATED.iter().filter(|(of, ..)| *of == kind) {
        if let Some(fields) = body.pointer_mut(place).and_then(Value::as_object_mut) {
            fields.retain(|key, _| !names.contains(&key.as_str()));
        }
    }
}

/// A patch that is refused where the object has changed since it was read.
fn bound(patch: Patch, live: &Value) -> Patch {
    let bind = |mut body: Value| {
        body["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        body
    };
    match patch {
        Patch::Strategic { body, schema } => Patch::Strategic { body: bind(body), schema },
        Patch::Merge { body } => Patch::Merge { body: bind(body) },
    }
}

fn entries(object: &Value) -> Vec<Value> {
    object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default()
}

fn is_controllers(entry: &Value) -> bool {
    let manager = entry["manager"].as_str().unwrap_or_default();
    CONTROLLERS.contains(&manager) || entry["subresource"].as_str().is_some_and(|name| !name.is_empty())
}

/// The entries of those who write what an object is to be.
fn writers(object: &Value) -> Vec<Value> {
    entries(object).into_iter().filter(|entry| !is_controllers(entry)).collect()
}

/// The writers as they were, and the controllers as they are. Empty where the backup knows no writer.
fn goal_managers(saved: &Value, live: &Value) -> Vec<Value> {
    let writers = writers(saved);
    if writers.is_empty() {
        return writers;
    }
    writers.into_iter().chain(entries(live).into_iter().filter(is_controllers)).collect()
}

/// Who owns what, whenever it was written.
fn owners(entries: &[Value]) -> BTreeSet<String> {
    let timeless = |entry: &Value| {
        let mut fields: Map<String, Value> = entry.as_object().cloned().unwrap_or_default();
        fields.remove("time");
        Value::Object(fields).to_string()
    };
    entries.iter().map(timeless).collect()
}

/// Takes out of `value` the fields that `fields` (as in `fieldsV1`) names, unless one of `kept` names them too.
fn strip(value: &mut Value, fields: &Value, kept: &[&Value]) {
    for (key, below) in fields.as_object().into_iter().flatten() {
        let kept: Vec<&Value> = kept.iter().filter_map(|fields| fields.get(key)).collect();
        let leaf = below.as_object().is_none_or(Map::is_empty);
        match key.split_once(':') {
            Some(("f", name)) if leaf && kept.is_empty() => {
                if let Some(fields) = value.as_object_mut() {
                    fields.remove(name);
                }
            }
            Some(("f", name)) if !leaf => strip_member(value, name, below, &kept),
            Some(("k", item)) => strip_item(value, item, below, &kept),
            Some(("v", item)) if kept.is_empty() => {
                let item: Value = serde_json::from_str(item).unwrap_or_default();
                if let Some(items) = value.as_array_mut() {
                    items.retain(|found| *found != item);
                }
            }
            _ => {}
        }
    }
}

/// A map or list that held nothing else goes too.
fn strip_member(value: &mut Value, name: &str, fields: &Value, kept: &[&Value]) {
    let Some(member) = value.get_mut(name) else { return };
    strip(member, fields, kept);
    let empty = member.as_object().is_some_and(Map::is_empty) || member.as_array().is_some_and(Vec::is_empty);
    if empty && let Some(members) = value.as_object_mut() {
        members.remove(name);
    }
}

fn strip_item(value: &mut Value, keys: &str, fields: &Value, kept: &[&Value]) {
    let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
    let is_it = |item: &Value| !keys.is_empty() && keys.iter().all(|(key, value)| item.get(key) == Some(value));
    let Some(items) = value.as_array_mut() else { return };
    let whole = kept.is_empty() && fields.get(".").is_some();
    if whole {
        return items.retain(|item| !is_it(item));
    }
    for item in items.iter_mut().filter(|item| is_it(item)) {
        strip(item, fields, kept);
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
