//! What the control plane does on its own: workloads come to life, dependents go with their owners, namespaces empty.
//!
//! Nothing runs in the background. What is due is done before the next request is answered, and a watch wakes for it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::kinds::Resource;
use crate::life;
use crate::managed::Writer;
use crate::state::{State, namespace_key};
use crate::store::Key;

/// Who the controllers are to `managedFields`.
const MANAGER: &str = "kube-controller-manager";
/// Finalizers that the collector of dependents takes away.
const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";
/// What holds a claim; no Pod uses one here, so that it goes at once.
pub(crate) const PROTECTION: &str = "kubernetes.io/pvc-protection";
/// What holds a CustomResourceDefinition while there are objects of its kind.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
/// Finalizers that are taken away by the control plane.
const OWN: [&str; 4] = [FOREGROUND, ORPHAN, PROTECTION, CLEANUP];

/// What the ConfigMap in every namespace says of itself.
const ROOT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints \
    such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of \
    Kubernetes clusters.";

/// Something that is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    /// What every namespace holds from the start.
    Furnish(String),
    /// A workload, a claim or a Pod takes its next step in life.
    Live(Key, String),
    /// The dependents of an owner that is gone, by its UID.
    Collect(String),
    /// An owner that is going and holds on to its dependents.
    Finalize(Key),
    /// A namespace that is going.
    Empty(String),
}

impl State {
    /// Does everything that is due.
    pub(crate) fn tick(&mut self) {
        // A task can bring others that are due at once; they end, for each takes something away or a life further.
        while let Some(((due, number), _)) = self.tasks.first_key_value()
            && *due <= Instant::now()
        {
            let place = (*due, *number);
            if let Some(task) = self.tasks.remove(&place) {
                self.run(task);
            }
        }
    }

    /// When something is due next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.tasks.first_key_value().map(|((due, _), _)| *due)
    }

    /// Looks at a change and plans what follows from it.
    pub(crate) fn observe(&mut self, key: &Key, before: Option<&Value>, after: Option<&Arc<Value>>) {
        match after {
            Some(object) => self.came(key, before, object),
            None => self.went(key, before.unwrap_or(&Value::Null)),
        }
    }

    fn came(&mut self, key: &Key, before: Option<&Value>, object: &Arc<Value>) {
        if key.group == "apiextensions.k8s.io" && key.plural == "customresourcedefinitions" {
            self.kinds.define(object);
        }
        if object["metadata"].get("deletionTimestamp").is_some() {
            if key.plural == "namespaces" {
                self.plan(Duration::ZERO, Task::Empty(key.name.clone()));
            }
            if OWN.iter().any(|word| has_finalizer(object, word)) {
                self.plan(Duration::ZERO, Task::Finalize(key.clone()));
            }
            return;
        }
        if key.plural == "namespaces" && before.is_none() {
            self.plan(Duration::ZERO, Task::Furnish(key.name.clone()));
        }
        let is_new = before.is_none_or(|before| before.get("spec") != object.get("spec"));
        if is_new && life::has(key) {
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            self.plan(Duration::ZERO, Task::Live(key.clone(), uid));
        }
    }

    fn went(&mut self, key: &Key, last: &Value) {
        if key.group == "apiextensions.k8s.io" {
            self.kinds.forget(&key.name);
        }
        let uid = last["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        self.plan(Duration::ZERO, Task::Collect(uid));
        let owner = |reference: &Value| reference["uid"].as_str().unwrap_or_default().to_owned();
        let owners: Vec<String> = references(last).iter().map(owner).collect();
        let waiting = self.store.all().filter(|(_, object)| {
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
            owners.iter().any(|owner| owner == uid) && has_finalizer(object, FOREGROUND)
        });
        let waiting: Vec<Key> = waiting.map(|(key, _)| key.clone()).collect();
        for key in waiting {
            self.plan(Duration::ZERO, Task::Finalize(key));
        }
        let is_going = |found: &Value| found["metadata"].get("deletionTimestamp").is_some();
        if self.namespace(&key.namespace).is_some_and(is_going) {
            self.plan(Duration::ZERO, Task::Empty(key.namespace.clone()));
        }
    }

    fn plan(&mut self, pause: Duration, task: Task) {
        let due = self.clock.after(pause);
        let number = self.count();
        if !self.tasks.values().any(|known| *known == task) {
            self.tasks.insert((due, number), task);
        }
    }

    fn run(&mut self, task: Task) {
        match task {
            Task::Furnish(namespace) => self.furnish(&namespace),
            Task::Live(key, uid) => self.live_on(&key, &uid),
            Task::Collect(uid) => self.collect(&uid),
            Task::Finalize(key) => self.finalize(&key),
            Task::Empty(namespace) => self.empty(&namespace),
        }
    }

    fn furnish(&mut self, namespace: &str) {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        self.issue(
            &Key { namespace: namespace.into(), plural: "serviceaccounts".into(), ..namespace_key("default") },
            account,
        );
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"ca.crt": ""},
            "metadata": {"name": "kube-root-ca.crt", "annotations": {"kubernetes.io/description": ROOT}},
        });
        self.issue(
            &Key { namespace: namespace.into(), plural: "configmaps".into(), ..namespace_key("kube-root-ca.crt") },
            map,
        );
    }

    /// Creates an object of a controller, unless it is there.
    fn issue(&mut self, key: &Key, mut object: Value) {
        let found = self.kinds.any_version(&key.group, &key.plural);
        let Some(resource) = found.filter(|_| self.store.get(key).is_none()) else { return };
        object["metadata"]["namespace"] = json!(key.namespace);
        object["metadata"]["uid"] = json!(self.uid());
        object["metadata"]["creationTimestamp"] = json!(self.clock.stamp());
        self.controller(&resource, "").update(resource.shape(), None, &mut object);
        let stored = self.store.put(key, object);
        self.observe(key, None, Some(&stored));
    }

    /// A ReplicaSet for the Deployment's template; those of earlier templates go down to nothing.
    fn roll_out(&mut self, key: &Key, deployment: &Value) {
        let (name, set) = life::replica_set(deployment);
        let own = Key { plural: "replicasets".into(), name, ..key.clone() };
        let uid = deployment["metadata"]["uid"].as_str().unwrap_or_default();
        for other in self.dependents(uid).into_iter().filter(|known| known.plural == "replicasets") {
            let Some(found) = self.store.get(&other).cloned() else { continue };
            let mut scaled = Value::clone(&found);
            let wanted = if other == own { set["spec"]["replicas"].clone() } else { json!(0) };
            if scaled["spec"]["replicas"] != wanted {
                scaled["spec"]["replicas"] = wanted;
                let generation = scaled["metadata"]["generation"].as_u64().unwrap_or_default();
                scaled["metadata"]["generation"] = json!(generation + 1);
                self.control(&other, &found, scaled);
            }
        }
        self.issue(&own, set);
    }

    fn controller(&self, resource: &Resource, subresource: &str) -> Writer {
        Writer {
            manager: MANAGER.into(),
            api_version: resource.api_version(),
            subresource: subresource.into(),
            has_status: true,
            time: self.clock.stamp(),
        }
    }

    fn live_on(&mut self, key: &Key, uid: &str) {
        let Some(live) = self.store.get(key).filter(|live| live["metadata"]["uid"] == uid).cloned() else { return };
        if key.plural == "deployments" {
            self.roll_out(key, &live);
        }
        let since = self.clock.now();
        let Some(step) = life::next(key, &live, &self.rules, since) else { return };
        if let Some(object) = step.object {
            self.control(key, &live, object);
        }
        if let Some(pause) = step.again {
            self.plan(pause, Task::Live(key.clone(), uid.into()));
        }
    }

    /// Stores what a controller writes.
    fn control(&mut self, key: &Key, live: &Value, mut object: Value) {
        if object == *live {
            return;
        }
        if let Some(resource) = self.kinds.any_version(&key.group, &key.plural) {
            let writer = self.controller(&resource, "status");
            writer.update(resource.shape(), Some(live), &mut object);
        }
        let stored = self.store.put(key, object);
        self.observe(key, Some(live), Some(&stored));
    }

    fn dependents(&self, uid: &str) -> Vec<Key> {
        let is_owned = |object: &Value| references(object).iter().any(|reference| reference["uid"] == uid);
        self.store.all().filter(|(_, object)| is_owned(object)).map(|(key, _)| key.clone()).collect()
    }

    /// The objects of the kind that a CustomResourceDefinition defines.
    fn instances(&self, definition: &Value) -> Vec<Key> {
        if definition["kind"] != "CustomResourceDefinition" {
            return Vec::new();
        }
        let (group, plural) = (&definition["spec"]["group"], &definition["spec"]["names"]["plural"]);
        let is_of = |key: &&Key| key.group == *group && key.plural == *plural;
        self.store.all().map(|(key, _)| key).filter(is_of).cloned().collect()
    }

    /// Dependents go once none of their owners is left.
    fn collect(&mut self, uid: &str) {
        let is_there = |state: &Self, reference: &Value| {
            state.store.all().any(|(_, object)| object["metadata"]["uid"] == reference["uid"])
        };
        for key in self.dependents(uid) {
            let Some(object) = self.store.get(&key).cloned() else { continue };
            if !references(&object).iter().any(|reference| is_there(self, reference)) {
                self.go(&key, &object);
            }
        }
    }

    /// Deletes in the background.
    fn go(&mut self, key: &Key, object: &Arc<Value>) {
        if is_free(object) && !lingers(key) {
            self.end(key);
        } else if object["metadata"].get("deletionTimestamp").is_none() {
            let mut going = Value::clone(object);
            going["metadata"]["deletionTimestamp"] = json!(self.clock.stamp());
            going["metadata"]["deletionGracePeriodSeconds"] = json!(0);
            let stored = self.store.put(key, going);
            self.observe(key, Some(object), Some(&stored));
        }
    }

    fn finalize(&mut self, key: &Key) {
        let Some(object) = self.store.get(key).cloned() else { return };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let mut dependents = self.dependents(uid);
        if has_finalizer(&object, CLEANUP) {
            dependents = self.instances(&object);
        }
        let (is_orphaning, is_foreground) = (has_finalizer(&object, ORPHAN), has_finalizer(&object, FOREGROUND));
        for dependent in &dependents {
            let Some(found) = self.store.get(dependent).cloned() else { continue };
            if is_orphaning {
                let mut free = Value::clone(&found);
                let left: Vec<_> =
                    references(&found).iter().filter(|reference| reference["uid"] != uid).cloned().collect();
                free["metadata"]["ownerReferences"] = json!(left);
                if left.is_empty() {
                    remove(&mut free["metadata"], "ownerReferences");
                }
                self.control(dependent, &found, free);
            } else if is_foreground || has_finalizer(&object, CLEANUP) {
                self.go(dependent, &found);
            }
        }
        if is_foreground && !self.dependents(uid).is_empty() || !self.instances(&object).is_empty() {
            return;
        }
        let mut done = Value::clone(&object);
        let kept = finalizers(&object).iter().filter(|word| OWN.iter().all(|own| *word != own));
        done["metadata"]["finalizers"] = kept.cloned().collect();
        if is_free(&done) {
            self.end(key);
        } else {
            self.control(key, &object, done);
        }
    }

    fn empty(&mut self, namespace: &str) {
        let Some(object) = self.store.get(&namespace_key(namespace)).cloned() else { return };
        let inside = |state: &Self| -> Vec<Key> {
            state.store.all().map(|(key, _)| key).filter(|key| key.namespace == namespace).cloned().collect()
        };
        for key in inside(self) {
            if let Some(found) = self.store.get(&key).cloned() {
                self.go(&key, &found);
            }
        }
        if inside(self).is_empty() && finalizers(&object).is_empty() {
            self.end(&namespace_key(namespace));
        }
    }
}

/// Whether nothing holds an object that is to go.
pub(crate) fn is_free(object: &Value) -> bool {
    finalizers(object).is_empty()
}

/// Whether an object goes by steps although nothing holds it.
pub(crate) fn lingers(key: &Key) -> bool {
    key.plural == "namespaces" && key.group.is_empty()
}

fn finalizers(object: &Value) -> &[Value] {
    object["metadata"]["finalizers"].as_array().map_or(&[], Vec::as_slice)
}

fn has_finalizer(object: &Value, word: &str) -> bool {
    finalizers(object).iter().any(|known| known == word)
}

fn references(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

fn remove(value: &mut Value, member: &str) {
    if let Some(members) = value.as_object_mut() {
        members.remove(member);
    }
}
