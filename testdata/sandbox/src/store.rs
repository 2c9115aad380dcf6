//! What is stored, and what happened: objects by key, and a log of changes that watches and pages read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

/// How many changes are remembered; what is older is answered 410.
const REMEMBERED: usize = 4096;

/// Where an object is. The order is that in which the server lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// One change.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) key: Key,
    pub(crate) before: Option<Arc<Value>>,
    pub(crate) after: Option<Arc<Value>>,
}

#[derive(Debug)]
pub(crate) struct Store {
    objects: BTreeMap<Key, Arc<Value>>,
    log: VecDeque<Change>,
    version: u64,
    /// Nothing before this version is remembered.
    oldest: u64,
}

impl Default for Store {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), log: VecDeque::new(), version: 1, oldest: 1 }
    }
}

impl Key {
    /// Whether it is one of a collection; no namespace means all of them.
    pub(crate) fn is_of(&self, group: &str, plural: &str, namespace: Option<&str>) -> bool {
        self.group == group && self.plural == plural && namespace.is_none_or(|namespace| namespace == self.namespace)
    }
}

impl Store {
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.objects.iter()
    }

    /// Stores an object under the next version.
    pub(crate) fn put(&mut self, key: &Key, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        let before = self.objects.insert(key.clone(), object.clone());
        self.record(key.clone(), before, Some(object.clone()));
        object
    }

    /// Removes an object; what is returned carries the version of its end.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<Value>> {
        let before = self.objects.remove(key)?;
        self.version += 1;
        let mut last = Value::clone(&before);
        last["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.record(key.clone(), Some(Arc::new(last.clone())), None);
        Some(Arc::new(last))
    }

    /// Forgets what happened so far: whoever has not seen it is answered 410.
    pub(crate) fn forget(&mut self) {
        self.log.clear();
        self.oldest = self.version;
    }

    /// What happened after `version`.
    pub(crate) fn since(&self, version: u64) -> impl Iterator<Item = &Change> {
        self.log.iter().filter(move |change| change.version > version)
    }

    /// A collection as it was at `version`, in order.
    pub(crate) fn at(&self, version: u64, is_wanted: impl Fn(&Key) -> bool) -> BTreeMap<Key, Arc<Value>> {
        let now = self.objects.iter().filter(|(key, _)| is_wanted(key));
        let mut objects: BTreeMap<_, _> = now.map(|(key, object)| (key.clone(), object.clone())).collect();
        for change in self.log.iter().rev().take_while(|change| change.version > version) {
            if is_wanted(&change.key) {
                match &change.before {
                    Some(before) => objects.insert(change.key.clone(), before.clone()),
                    None => objects.remove(&change.key),
                };
            }
        }
        objects
    }

    fn record(&mut self, key: Key, before: Option<Arc<Value>>, after: Option<Arc<Value>>) {
        self.log.push_back(Change { version: self.version, key, before, after });
        while self.log.len() > REMEMBERED {
            self.oldest = self.log.pop_front().map_or(self.oldest, |change| change.version);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key { group: String::new(), plural: "configmaps".into(), namespace: "ns".into(), name: name.into() }
    }

    #[test]
    fn a_collection_can_be_seen_as_it_was() {
        let mut store = Store::default();
        store.put(&key("a"), json!({"metadata": {}, "n": 1}));
        let then = store.version();
        store.put(&key("a"), json!({"metadata": {}, "n": 2}));
        store.put(&key("b"), json!({"metadata": {}}));
        store.remove(&key("a"));
        let seen = store.at(then, |_| true);
        assert_eq!(seen.keys().collect::<Vec<_>>(), [&key("a")]);
        assert_eq!(seen[&key("a")]["n"], 1);
        assert_eq!(store.at(store.version(), |_| true).keys().collect::<Vec<_>>(), [&key("b")]);
    }

    #[test]
    fn what_is_forgotten_is_older_than_the_oldest() {
        let mut store = Store::default();
        for _ in 0..=REMEMBERED {
            store.put(&key("a"), json!({"metadata": {}}));
        }
        assert_eq!(store.since(0).count(), REMEMBERED);
        assert_eq!(store.oldest(), 2);
    }
}
