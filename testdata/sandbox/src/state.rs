//! The whole state of a sandbox, behind one lock: every request sees it whole.

use std::collections::BTreeMap;

use chrono::Utc;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::controllers::Task;
use crate::kinds::Kinds;
use crate::review::Denial;
use crate::rules::Rules;
use crate::store::{Key, Store};

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) kinds: Kinds,
    pub(crate) rules: Rules,
    pub(crate) denials: Vec<Denial>,
    pub(crate) clock: Clock,
    /// What the controllers do next, and when; the number keeps those of one instant in order.
    pub(crate) tasks: BTreeMap<(Instant, u64), Task>,
    counter: u64,
}

impl State {
    pub(crate) fn new() -> Self {
        let mut state = Self {
            store: Store::default(),
            kinds: Kinds::default(),
            rules: Rules::default(),
            denials: Vec::new(),
            clock: Clock::starting_at(Utc::now()),
            tasks: BTreeMap::new(),
            counter: 0,
        };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            state.add_namespace(name);
        }
        state
    }

    fn add_namespace(&mut self, name: &str) {
        let metadata = json!({
            "name": name, "uid": self.uid(), "creationTimestamp": self.clock.stamp(),
            "labels": {"kubernetes.io/metadata.name": name},
        });
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": metadata,
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
        });
        let stored = self.store.put(&namespace_key(name), object);
        self.observe(&namespace_key(name), None, Some(&stored));
    }

    /// The next of a sequence.
    pub(crate) fn count(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// An identity that no other object has; the same in every run.
    pub(crate) fn uid(&mut self) -> String {
        format!("5a9db0c5-0000-4000-8000-{:012x}", self.count())
    }

    /// Whether new objects may come into a namespace, and whether there is one.
    pub(crate) fn namespace(&self, name: &str) -> Option<&Value> {
        self.store.get(&namespace_key(name)).map(|found| &**found)
    }
}

pub(crate) fn namespace_key(name: &str) -> Key {
    Key { group: String::new(), plural: "namespaces".into(), namespace: String::new(), name: name.into() }
}
