//! Where release records live: a [`Driver`] for each of Helm's, and [`Storage`] that makes histories of them.

mod items;
mod kubernetes;
mod memory;
mod watch;

pub use kubernetes::{Kubernetes, stored_record};
pub use memory::Memory;
pub(crate) use watch::{Seen, Watch};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use serde_json::Value;
use thiserror::Error as ThisError;

use crate::cluster::{self, Stop};
use crate::codec;
use crate::release::{Content, Entry, History, Namespace, RecordKey, Release, ReleaseName};

/// Helm's storage drivers that live in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DriverKind {
    /// Secrets of type `helm.sh/release.v1`: Helm's default.
    Secrets,
    /// ConfigMaps.
    ConfigMaps,
}

/// A word that names no driver that we can reach.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
pub enum UnknownDriver {
    /// Helm knows it, but its records are in no cluster.
    #[error("records of the {0} driver are in no cluster; secret and configmap can be read")]
    OutOfReach(String),
    /// Helm does not know it either.
    #[error("{0:?} is no storage driver: secret or configmap")]
    Unknown(String),
}

/// Why records could not be read or written.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The request failed.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// Another writer was faster: look again.
    #[error("record {key} was changed by somebody else")]
    Conflict {
        /// The record.
        key: String,
    },
    /// The record does not fit.
    #[error("record {key} has {bytes} bytes, and {max} fit{}", named(parts), max = codec::MAX_STORED)]
    TooLarge {
        /// The record.
        key: String,
        /// Its size as it would be stored, in bytes.
        bytes: usize,
        /// What fills it, the largest first: names of parts, most of them chart files, and their sizes as stored.
        parts: Vec<(String, usize)>,
    },
    /// The record cannot be encoded.
    #[error("record {key} cannot be encoded")]
    Codec {
        /// The record.
        key: String,
        /// Why.
        source: codec::Error,
    },
}

/// Which records.
#[derive(Debug, Clone)]
pub struct Query {
    /// In one namespace, or in all.
    pub namespace: Option<Namespace>,
    /// A label selector.
    pub selector: String,
    /// Whether the payloads are wanted too.
    pub detail: Detail,
}

/// How much of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Names and labels.
    Metadata,
    /// The payload too.
    Payload,
    /// The stored object too, as the server has it.
    Whole,
}

/// A stored object that is, or claims to be, a record.
#[derive(Debug, Clone)]
pub struct Record {
    /// Where it is.
    pub namespace: String,
    /// The object around it.
    pub stored: crate::release::Stored,
    /// The text that the codec reads; `None` if only metadata was asked for or the object has none.
    pub body: Option<Vec<u8>>,
    /// The stored object as it is; `None` unless it was asked for, or where there is none.
    pub object: Option<Value>,
}

/// An answer to a [`Query`].
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The records.
    pub records: Vec<Record>,
    /// The server's clock at the time, if it has one.
    pub date: Option<DateTime<Utc>>,
}

/// What a driver says while it lists records one by one.
#[derive(Debug)]
pub enum Told {
    /// The list begins, or begins anew: what was told before does not count.
    Begun,
    /// The next record.
    Record(Box<Record>),
}

/// A record to be created.
#[derive(Debug, Clone)]
pub struct NewRecord {
    /// Its key.
    pub key: RecordKey,
    /// Its labels, all of them.
    pub labels: BTreeMap<String, String>,
    /// Its annotations; Helm gives it none.
    pub annotations: BTreeMap<String, String>,
    /// Its text, as the codec writes it.
    pub body: String,
}

/// Where release records live. `create` is the lock: of two writers one wins.
///
/// # Guarantees
/// `update` and `delete` act on exactly the stored object that was read, or fail with [`Error::Conflict`].
/// An ambiguous answer to a write is settled by reading back.
pub trait Driver: Send + Sync {
    /// Lists records.
    fn list<'a>(&'a self, query: &'a Query, stop: &'a Stop) -> BoxFuture<'a, Result<Listing, Error>>;

    /// Lists records one by one, however many there are: none is held once it was told.
    fn each<'a>(
        &'a self,
        query: &'a Query,
        stop: &'a Stop,
        take: &'a mut (dyn FnMut(Told) + Send),
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Reads one record by its object name.
    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Option<Record>, Error>>;

    /// Creates a record that must not exist.
    fn create<'a>(
        &'a self,
        namespace: &'a Namespace,
        record: &'a NewRecord,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Record, Error>>;

    /// Replaces labels and text of a record; labels that are not named stay.
    fn update<'a>(
        &'a self,
        seen: &'a Record,
        labels: &'a BTreeMap<String, String>,
        body: Option<&'a str>,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Record, Error>>;

    /// Deletes a record; one that is gone already is no failure.
    fn delete<'a>(&'a self, seen: &'a Record, stop: &'a Stop) -> BoxFuture<'a, Result<(), Error>>;
}

/// Lists records and keeps what `add` makes of them.
///
/// # Errors
/// The records cannot be listed.
pub async fn fold<T: Default + Send>(
    driver: &dyn Driver,
    query: &Query,
    stop: &Stop,
    add: impl Fn(&mut T, Record) + Send + Sync,
) -> Result<T, Error> {
    let mut kept = T::default();
    let mut take = |told| match told {
        Told::Begun => kept = T::default(),
        Told::Record(record) => add(&mut kept, *record),
    };
    driver.each(query, stop, &mut take).await?;
    Ok(kept)
}

/// Histories over a driver.
#[derive(Clone)]
pub struct Storage {
    driver: Arc<dyn Driver>,
}

/// A history and the server's clock when it was read.
#[derive(Debug, Clone)]
pub struct Read {
    /// The history; empty if there is no record.
    pub history: History,
    /// The server's clock.
    pub date: Option<DateTime<Utc>>,
}

impl Storage {
    /// Histories over `driver`.
    #[must_use]
    pub fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver }
    }

    /// The driver.
    #[must_use]
    pub fn driver(&self) -> &dyn Driver {
        &*self.driver
    }

    /// All records of a release: those that its labels name, and those that only their object names tell.
    ///
    /// # Errors
    /// The records cannot be listed. An absent release is an empty history, never an error.
    pub async fn history(&self, namespace: &Namespace, name: &ReleaseName, stop: &Stop) -> Result<Read, Error> {
        let Listing { records, date } = self.records(namespace, name, Detail::Payload, stop).await?;
        Ok(Read { history: history(namespace, name, records), date })
    }

    /// The same records as they are stored.
    ///
    /// # Errors
    /// As [`Storage::history`].
    pub async fn records(
        &self,
        namespace: &Namespace,
        name: &ReleaseName,
        detail: Detail,
        stop: &Stop,
    ) -> Result<Listing, Error> {
        let labelled = labelled(namespace, name, detail);
        let all = Query { selector: String::new(), detail: Detail::Metadata, ..labelled.clone() };
        let (listed, all) = futures::try_join!(self.driver.list(&labelled, stop), self.driver.list(&all, stop))?;
        let mut records = listed.records;
        let known: BTreeSet<String> = records.iter().map(|record| record.stored.key.clone()).collect();
        for other in all.records.into_iter().filter(|other| !known.contains(&other.stored.key)) {
            let key = other.stored.key.parse::<RecordKey>();
            if key.is_ok_and(|key| key.name == *name)
                && let Some(record) = self.driver.get(namespace, &other.stored.key, stop).await?
            {
                records.push(record);
            }
        }
        Ok(Listing { records, date: listed.date })
    }

    /// The records of a release that its labels name: all that Helm knows of, and all that there are but for copies and
    /// labels that somebody took away. Looking for those reads the metadata of every record of the namespace.
    ///
    /// # Errors
    /// The records cannot be listed.
    pub async fn labelled_history(
        &self,
        namespace: &Namespace,
        name: &ReleaseName,
        stop: &Stop,
    ) -> Result<Read, Error> {
        let Listing { records, date } = self.driver.list(&labelled(namespace, name, Detail::Payload), stop).await?;
        Ok(Read { history: history(namespace, name, records), date })
    }

    /// Creates the record of a new revision with Helm's labels, and those of the user that `inherited` carries.
    ///
    /// # Errors
    /// [`Error::Conflict`] if it exists: somebody else took the lock. [`Error::TooLarge`] before anything is sent.
    pub async fn create(
        &self,
        key: &RecordKey,
        namespace: &Namespace,
        release: &Release,
        inherited: &BTreeMap<String, String>,
        now: DateTime<Utc>,
        stop: &Stop,
    ) -> Result<Record, Error> {
        let body = encode(&key.to_string(), release, stop).await?;
        let mut labels = user_labels(inherited);
        labels.extend(status_labels(key, release));
        labels.insert("name".into(), key.name.to_string());
        labels.insert("owner".into(), "helm".into());
        labels.insert("createdAt".into(), now.timestamp().to_string());
        let record = NewRecord { key: key.clone(), labels, annotations: BTreeMap::new(), body };
        self.driver.create(namespace, &record, stop).await
    }

    /// Writes a changed release back over the record that was read.
    ///
    /// The labels `name` and `owner` are added where they are missing, for Helm sees no record without them; where they
    /// say something else, they stay.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the record is no longer the one that was read.
    pub async fn update(
        &self,
        seen: &Record,
        key: &RecordKey,
        release: &Release,
        stop: &Stop,
    ) -> Result<Record, Error> {
        let body = encode(&seen.stored.key, release, stop).await?;
        self.driver.update(seen, &labels_of(seen, key, release), Some(&body), stop).await
    }

    /// Rewrites the labels `status` and `version` from the payload.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the record is no longer the one that was read.
    pub async fn relabel(
        &self,
        seen: &Record,
        key: &RecordKey,
        release: &Release,
        stop: &Stop,
    ) -> Result<Record, Error> {
        self.driver.update(seen, &labels_of(seen, key, release), None, stop).await
    }
}

/// Helm's own question for the records of a release.
fn labelled(namespace: &Namespace, name: &ReleaseName, detail: Detail) -> Query {
    let selector = format!("owner=helm,name={name}");
    Query { namespace: Some(namespace.clone()), selector, detail }
}

/// The history that `records` make up.
#[must_use]
pub fn history(namespace: &Namespace, name: &ReleaseName, records: Vec<Record>) -> History {
    History::new(name.clone(), namespace.clone(), records.into_iter().filter_map(entry).collect())
}

/// Places a record in its history; `None` if neither payload, name nor label holds a revision.
#[must_use]
pub fn entry(record: Record) -> Option<Entry> {
    let content = match record.body.as_deref().map(codec::decode) {
        Some(Ok(release)) => Content::Readable(Box::new(release)),
        Some(Err(error)) => Content::Unreadable { why: error.to_string() },
        None => Content::Unreadable { why: "holds no release".into() },
    };
    Entry::place(record.stored, content)
}

/// Denser compression saves some percent, never this much.
const WORTH_A_TRY: usize = codec::MAX_STORED / 5 * 6;
const NAMED_PARTS: usize = 3;

/// The text to store, if it fits. A record that Helm filled to the limit must stay writable: its description gives way
/// first, then time.
pub(crate) async fn encode(key: &str, release: &Release, stop: &Stop) -> Result<String, Error> {
    let failed = |source| Error::Codec { key: key.into(), source };
    let fits = |body: &String| body.len() <= codec::MAX_STORED;
    let whole = codec::encode(release).map_err(failed)?;
    if fits(&whole) {
        return Ok(whole);
    }
    let short = release.with_short_description().map_err(|why| failed(codec::Error::Json(why)))?;
    let mut body = codec::encode(&short).map_err(failed)?;
    if !fits(&body) && body.len() < WORTH_A_TRY {
        let dense = densely(key, short, stop).await?.map_err(failed)?;
        body = if dense.len() < body.len() { dense } else { body };
    }
    if !fits(&body) {
        let parts = codec::largest_parts(release, NAMED_PARTS);
        return Err(Error::TooLarge { key: key.into(), bytes: body.len(), parts });
    }
    Ok(body)
}

/// On a thread of its own: it takes seconds, which nobody has to wait out who stops.
async fn densely(key: &str, release: Release, stop: &Stop) -> Result<Result<String, codec::Error>, Error> {
    let (done, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || done.send(codec::encode_densely(&release)));
    let stopped = |cause: cluster::Cause| cluster::Error { attempt: format!("compress record {key}"), cause };
    match stop.run(answer).await {
        Ok(Ok(encoded)) => Ok(encoded),
        Ok(Err(gone)) => Err(stopped(cluster::Cause::Unreachable(gone.into())).into()),
        Err(why) => Err(stopped(why.into()).into()),
    }
}

fn named(parts: &[(String, usize)]) -> String {
    let part = |(name, bytes): &(String, usize)| format!("{name} ({bytes})");
    let list = parts.iter().map(part).collect::<Vec<_>>().join(", ");
    if list.is_empty() { list } else { format!("; the largest parts: {list}") }
}

fn status_labels(key: &RecordKey, release: &Release) -> BTreeMap<String, String> {
    [("status", release.status().to_string()), ("version", key.revision.to_string())]
        .map(|(label, value)| (label.to_owned(), value))
        .into()
}

/// The labels that a record is written back with.
fn labels_of(seen: &Record, key: &RecordKey, release: &Release) -> BTreeMap<String, String> {
    let mut labels = status_labels(key, release);
    for (label, value) in [("name", key.name.as_str()), ("owner", "helm")] {
        if !seen.stored.labels.contains_key(label) {
            labels.insert(label.into(), value.into());
        }
    }
    labels
}

/// The labels that are not Helm's own.
fn user_labels(labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let system = ["name", "owner", "status", "version", "createdAt", "modifiedAt"];
    let own = |label: &str| system.contains(&label);
    labels.iter().filter(|(label, _)| !own(label)).map(|(label, value)| (label.clone(), value.clone())).collect()
}

impl FromStr for DriverKind {
    type Err = UnknownDriver;

    /// Takes the words that Helm takes for `HELM_DRIVER`; empty means Secrets.
    fn from_str(word: &str) -> Result<Self, UnknownDriver> {
        match word.to_ascii_lowercase().as_str() {
            "" | "secret" | "secrets" => Ok(Self::Secrets),
            "configmap" | "configmaps" => Ok(Self::ConfigMaps),
            "memory" | "sql" => Err(UnknownDriver::OutOfReach(word.into())),
            _ => Err(UnknownDriver::Unknown(word.into())),
        }
    }
}

impl DriverKind {
    /// The driver that holds histories when this one holds none.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Secrets => Self::ConfigMaps,
            Self::ConfigMaps => Self::Secrets,
        }
    }

    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secrets => "secret",
            Self::ConfigMaps => "configmap",
        }
    }
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::release::Status;

    /// So many words of a small language.
    fn words(count: usize) -> String {
        let mut seed = 1_u64;
        let mut word = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("{:x} ", (seed >> 33) % 50_000)
        };
        (0..count).map(|_| word()).collect()
    }

    fn wordy(manifest: &str, description: &str) -> Release {
        let info = json!({"status": "failed", "description": description});
        let record = json!({"name": "r", "version": 1, "info": info, "manifest": manifest});
        Release::parse(&record.to_string()).unwrap()
    }

    async fn encoded(release: &Release) -> Result<String, Error> {
        encode("k", release, &Stop::never()).await
    }

    /// As short as can be without fitting by [`codec::encode`].
    fn just_over(description: &str) -> Release {
        let text = words(330_000);
        let over = |end| codec::encode(&wordy(&text[..end], description)).unwrap().len() > codec::MAX_STORED;
        let (mut fits, mut step) = (1_470_000, 1 << 16);
        while step > 0 {
            fits += if over(fits + step) { 0 } else { step };
            step /= 2;
        }
        wordy(&text[..=fits], description)
    }

    #[tokio::test]
    async fn a_record_at_the_limit_gives_up_its_description_before_anything_else() {
        let full = just_over("Interrupted upgrade: marked as failed, with many words of why");
        let body = encoded(&full).await.unwrap();
        let back = codec::decode(body.as_bytes()).unwrap();
        assert_eq!((back.info().description.as_str(), back.status()), ("Interrupted", &Status::Failed));
        assert_eq!(back.manifest(), full.manifest());
    }

    #[tokio::test]
    async fn a_record_at_the_limit_that_says_little_is_compressed_densely_unless_stopped() {
        let full = just_over("Interrupted");
        let stop = Stop::never().within(std::time::Duration::ZERO);
        assert!(matches!(encode("k", &full, &stop).await, Err(Error::Cluster(error)) if error.is_stopped()));
        let body = encoded(&full).await.unwrap();
        assert_eq!(codec::decode(body.as_bytes()).unwrap().to_json().unwrap(), full.to_json().unwrap());
    }

    #[tokio::test]
    async fn a_record_far_over_the_limit_is_refused_with_its_size_and_what_fills_it() {
        let manifest = words(400_000);
        let files = json!([{"name": "files/a.tgz", "data": manifest}, {"name": "README.md", "data": "eA=="}]);
        let record = json!({"name": "r", "version": 1, "info": {}, "manifest": "x", "chart": {"files": files}});
        let error = encoded(&Release::parse(&record.to_string()).unwrap()).await.unwrap_err();
        let Error::TooLarge { bytes, parts, .. } = &error else { panic!("{error:?}") };
        assert!(*bytes > codec::MAX_STORED && parts[0].1 > codec::MAX_STORED);
        assert_eq!((parts[0].0.as_str(), parts.len()), ("files/a.tgz", NAMED_PARTS));
        assert!(error.to_string().contains("and 1048576 fit; the largest parts: files/a.tgz ("), "{error}");
    }
}
