//! Deletes: preconditions, finalizers, and what becomes of the dependents.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use crate::call::Call;
use crate::controllers;
use crate::read::shown;
use crate::refusal::Refusal;
use crate::state::State;
use crate::store::Key;
use crate::write::document;

/// Kinds that a delete answers with, where the others are answered with a word of success.
const TOLD: [(&str, &str); 8] = [
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "Pod"),
    ("", "PodTemplate"),
    ("", "ResourceQuota"),
    ("", "Service"),
    ("", "ServiceAccount"),
    ("storage.k8s.io", "StorageClass"),
];

/// What becomes of the dependents of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Propagation {
    Background,
    Foreground,
    Orphan,
}

impl State {
    pub(crate) fn delete(&mut self, call: &Call) -> Result<(StatusCode, Value), Refusal> {
        let name = call.name.clone().unwrap_or_default();
        let live = self.live(call, &name)?;
        let options = options(call)?;
        meets(call, &name, &live, &options["preconditions"])?;
        let dry = call.is_dry_run() || options["dryRun"].as_array().is_some_and(|words| !words.is_empty());
        let key = call.key(&name);
        let going = self.going(&key, &live, propagation(call, &options));
        if let Some(left) = &going {
            let left = if dry { left.clone() } else { self.mark_going(&key, &live, left) };
            return Ok((StatusCode::OK, shown(call, left)));
        }
        let last = if dry { None } else { self.end(&key) };
        let is_told = TOLD.contains(&(call.resource.group.as_str(), call.resource.kind.as_str()));
        let answer = match last {
            Some(last) if is_told => shown(call, Value::clone(&last)),
            None if is_told => shown(call, live),
            Some(_) | None => done(call, &name, &live),
        };
        Ok((StatusCode::OK, answer))
    }

    pub(crate) fn delete_collection(&mut self, call: &Call) -> Result<(StatusCode, Value), Refusal> {
        let options = options(call)?;
        let found = self.selected(call, self.store.version())?;
        let list = self.list(call)?;
        if !call.is_dry_run() {
            for (key, live) in found {
                match self.going(&key, &live, propagation(call, &options)) {
                    Some(left) => drop(self.mark_going(&key, &live, &left)),
                    None => drop(self.end(&key)),
                }
            }
        }
        Ok((StatusCode::OK, list))
    }

    /// The object as it is on its way out, where something holds it; none where it is gone at once.
    fn going(&self, key: &Key, live: &Value, propagation: Propagation) -> Option<Value> {
        let mut object = live.clone();
        match propagation {
            Propagation::Background => {}
            Propagation::Foreground => add_finalizer(&mut object, "foregroundDeletion"),
            Propagation::Orphan => add_finalizer(&mut object, "orphan"),
        }
        let is_going = object["metadata"].get("deletionTimestamp").is_some();
        if !is_going && key.plural == "customresourcedefinitions" {
            add_finalizer(&mut object, controllers::CLEANUP);
        }
        if controllers::is_free(&object) && !controllers::lingers(key) {
            return None;
        }
        if !is_going {
            object["metadata"]["deletionTimestamp"] = json!(self.clock.stamp());
            match key.plural.as_str() {
                "namespaces" => object["status"]["phase"] = json!("Terminating"),
                "customresourcedefinitions" => {}
                _ => object["metadata"]["deletionGracePeriodSeconds"] = json!(0),
            }
            let is_definition = key.plural == "customresourcedefinitions";
            if let Some(generation) = object["metadata"]["generation"].as_u64().filter(|_| !is_definition) {
                object["metadata"]["generation"] = json!(generation + 1);
            }
        }
        Some(object)
    }

    fn mark_going(&mut self, key: &Key, live: &Value, going: &Value) -> Value {
        if going == live {
            return live.clone();
        }
        let stored = self.store.put(key, going.clone());
        self.observe(key, Some(live), Some(&stored));
        Value::clone(&stored)
    }

    /// The object is gone; what depends on it follows.
    pub(crate) fn end(&mut self, key: &Key) -> Option<Arc<Value>> {
        let last = self.store.remove(key)?;
        self.observe(key, Some(&last), None);
        Some(last)
    }
}

fn options(call: &Call) -> Result<Value, Refusal> {
    if call.body.is_empty() {
        return Ok(json!({}));
    }
    document(call)
}

fn meets(call: &Call, name: &str, live: &Value, conditions: &Value) -> Result<(), Refusal> {
    let words = [
        ("uid", "UID", "The object might have been deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "The object might have been modified"),
    ];
    for (member, word, guess) in words {
        let (wanted, seen) = (conditions[member].as_str(), live["metadata"][member].as_str().unwrap_or_default());
        if let Some(wanted) = wanted.filter(|wanted| *wanted != seen) {
            let why = format!(
                "the {word} in the precondition ({wanted}) does not match the {word} in record ({seen}). {guess}"
            );
            return Err(Refusal::unmet(&call.resource, name, &why));
        }
    }
    Ok(())
}

fn propagation(call: &Call, options: &Value) -> Propagation {
    let word = options["propagationPolicy"].as_str().or_else(|| call.query.get("propagationPolicy"));
    match word {
        Some("Foreground") => Propagation::Foreground,
        Some("Orphan") => Propagation::Orphan,
        Some(_) => Propagation::Background,
        None if options["orphanDependents"] == true => Propagation::Orphan,
        // Jobs are the one kind whose Pods stay unless one says otherwise.
        None if call.resource.is("batch", "Job") => Propagation::Orphan,
        None => Propagation::Background,
    }
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let mut finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.iter().any(|known| known == finalizer) {
        finalizers.push(json!(finalizer));
    }
    object["metadata"]["finalizers"] = json!(finalizers);
}

fn done(call: &Call, name: &str, live: &Value) -> Value {
    let mut details = json!({"name": name, "kind": call.resource.plural, "uid": live["metadata"]["uid"]});
    if !call.resource.group.is_empty() {
        details["group"] = json!(call.resource.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
