//! Records in memory: the reference that the other drivers are held to.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::Utc;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};

use super::{Detail, Driver, Error, Listing, NewRecord, Query, Record, Told};
use crate::cluster::Stop;
use crate::release::{Namespace, Stored};

/// Records that live as long as this value.
#[derive(Default)]
pub struct Memory {
    records: Mutex<Records>,
}

#[derive(Default)]
struct Records {
    by_key: BTreeMap<(String, String), Record>,
    version: u64,
}

impl Records {
    fn stamp(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    fn seen(&mut self, seen: &Record) -> Result<&mut Record, Error> {
        let conflict = || Error::Conflict { key: seen.stored.key.clone() };
        let found = self.by_key.get_mut(&place(seen)).ok_or_else(conflict)?;
        if found.stored.resource_version == seen.stored.resource_version { Ok(found) } else { Err(conflict()) }
    }
}

impl Memory {
    /// No records.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listing(&self, query: &Query) -> Listing {
        let records = self.lock();
        let wanted = |record: &&Record| {
            query.namespace.as_ref().is_none_or(|namespace| namespace.as_str() == record.namespace)
                && selects(&query.selector, &record.stored.labels)
        };
        let shown = |record: &Record| match query.detail {
            Detail::Payload | Detail::Whole => record.clone(),
            Detail::Metadata => Record { body: None, ..record.clone() },
        };
        Listing { records: records.by_key.values().filter(wanted).map(shown).collect(), date: Some(Utc::now()) }
    }

    fn insert(&self, namespace: &Namespace, new: &NewRecord) -> Result<Record, Error> {
        let mut records = self.lock();
        let key = new.key.to_string();
        let version = records.stamp();
        let stored = Stored {
            key: key.clone(),
            labels: new.labels.clone(),
            uid: version.clone(),
            resource_version: version,
            created: Some(Utc::now()),
            touched: Some(Utc::now()),
        };
        let record = Record {
            namespace: namespace.to_string(),
            stored,
            body: Some(new.body.clone().into_bytes()),
            object: None,
        };
        if records.by_key.contains_key(&place(&record)) {
            return Err(Error::Conflict { key });
        }
        records.by_key.insert(place(&record), record.clone());
        Ok(record)
    }

    fn replace(&self, seen: &Record, labels: &BTreeMap<String, String>, body: Option<&str>) -> Result<Record, Error> {
        let mut records = self.lock();
        let version = records.stamp();
        let record = records.seen(seen)?;
        record.stored.labels.extend(labels.clone());
        record.stored.resource_version = version;
        record.stored.touched = Some(Utc::now());
        if let Some(body) = body {
            record.body = Some(body.into());
        }
        Ok(record.clone())
    }

    fn remove(&self, seen: &Record) -> Result<(), Error> {
        let mut records = self.lock();
        if records.by_key.contains_key(&place(seen)) {
            records.seen(seen)?;
            records.by_key.remove(&place(seen));
        }
        Ok(())
    }
}

impl Driver for Memory {
    fn list<'a>(&'a self, query: &'a Query, _stop: &'a Stop) -> BoxFuture<'a, Result<Listing, Error>> {
        ready(Ok(self.listing(query))).boxed()
    }

    fn each<'a>(
        &'a self,
        query: &'a Query,
        _stop: &'a Stop,
        take: &'a mut (dyn FnMut(Told) + Send),
    ) -> BoxFuture<'a, Result<(), Error>> {
        take(Told::Begun);
        self.listing(query).records.into_iter().for_each(|record| take(Told::Record(Box::new(record))));
        ready(Ok(())).boxed()
    }

    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        _stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Option<Record>, Error>> {
        ready(Ok(self.lock().by_key.get(&(namespace.to_string(), key.to_owned())).cloned())).boxed()
    }

    fn create<'a>(
        &'a self,
        namespace: &'a Namespace,
        record: &'a NewRecord,
        _stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Record, Error>> {
        ready(self.insert(namespace, record)).boxed()
    }

    fn update<'a>(
        &'a self,
        seen: &'a Record,
        labels: &'a BTreeMap<String, String>,
        body: Option<&'a str>,
        _stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Record, Error>> {
        ready(self.replace(seen, labels, body)).boxed()
    }

    fn delete<'a>(&'a self, seen: &'a Record, _stop: &'a Stop) -> BoxFuture<'a, Result<(), Error>> {
        ready(self.remove(seen)).boxed()
    }
}

fn place(record: &Record) -> (String, String) {
    (record.namespace.clone(), record.stored.key.clone())
}

/// `key=value` and `key!=value`, joined by commas: what this crate asks of a driver.
fn selects(selector: &str, labels: &BTreeMap<String, String>) -> bool {
    let label = |key: &str| labels.get(key).map(String::as_str);
    selector.split(',').filter(|term| !term.is_empty()).all(|term| match term.split_once("!=") {
        Some((key, value)) => label(key) != Some(value),
        None => term.split_once('=').is_some_and(|(key, value)| label(key) == Some(value)),
    })
}
