//! The newest record of every release, of which no more is held than is wanted.

use std::collections::{BTreeMap, btree_map::Entry as Slot};

use super::Client;
use super::error::Error;
use super::scan::Scope;
use crate::cluster::{self, Stop};
use crate::release::{Entry, Namespace, RecordKey, ReleaseName, Revision};
use crate::storage::{self, Detail, Record};

/// Most records say this, and hardly ever is one of them the newest of its release: their metadata is enough until then.
const OLD: &str = "status=superseded";
const OTHERS: &str = "status!=superseded";

/// By namespace and name.
pub(super) type Releases<T> = BTreeMap<(Namespace, ReleaseName), T>;

/// What is kept of a release while its records go by.
pub(super) trait Keep: Default + Send {
    /// Takes in a record; `rank` says how it stands to those that went before it.
    fn see(&mut self, namespace: &Namespace, entry: Entry, rank: Rank);
}

/// How a record stands to those of its release that were seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    /// It is the newest so far.
    Newest,
    /// It is not.
    Older,
}

/// A release: which record is its newest, and what was kept.
#[derive(Debug)]
pub(super) struct Line<K> {
    head: Head,
    /// Whether the payload of the newest was read.
    read: bool,
    pub(super) kept: K,
}

/// The newest record of a release, by its number and its object name.
#[derive(Debug)]
struct Head {
    revision: Revision,
    key: String,
    /// Whether a second record has the same number.
    twice: bool,
}

impl Client {
    /// What `K` keeps of every release: of records whose label says that they are old only the newest is read.
    ///
    /// # Errors
    /// The records cannot be listed or read.
    pub(super) async fn newest<K: Keep>(&self, scope: &Scope, stop: &Stop) -> Result<Releases<Line<K>>, Error> {
        let driver = self.storage.driver();
        let (others, old) = (scope.query(OTHERS, Detail::Payload), scope.query(OLD, Detail::Metadata));
        let (mut lines, old) = futures::try_join!(
            storage::fold(driver, &others, stop, take_in::<K>),
            storage::fold(driver, &old, stop, note)
        )?;
        for (place, head) in old {
            match lines.get_mut(&place) {
                Some(line) => line.read &= line.head.meet(head) == Rank::Older,
                None => drop(lines.insert(place, Line { head, read: false, kept: K::default() })),
            }
        }
        let unread = lines.iter_mut().filter(|(_, line)| !line.read);
        cluster::all(unread.map(|((namespace, _), line)| self.read(namespace, line, stop)).collect()).await?;
        Ok(lines)
    }

    async fn read<K: Keep>(&self, namespace: &Namespace, line: &mut Line<K>, stop: &Stop) -> Result<(), Error> {
        let record = self.storage.driver().get(namespace, &line.head.key, stop).await?;
        if let Some(entry) = record.and_then(storage::entry) {
            line.kept.see(namespace, entry, Rank::Newest);
        }
        Ok(())
    }
}

impl<K> Line<K> {
    /// Whether two records have the newest's number.
    pub(super) fn is_twice(&self) -> bool {
        self.head.twice
    }
}

impl Head {
    /// Takes the place of this one if it is newer. The same record may be seen twice, before and after it was relabelled.
    fn meet(&mut self, other: Self) -> Rank {
        if other.revision > self.revision {
            *self = other;
            return Rank::Newest;
        }
        self.twice |= other.revision == self.revision && (other.twice || other.key != self.key);
        Rank::Older
    }
}

fn take_in<K: Keep>(lines: &mut Releases<Line<K>>, record: Record) {
    let Some(place) = place(&record) else { return };
    let Some(entry) = storage::entry(record) else { return };
    let namespace = place.0.clone();
    let head = Head { revision: entry.revision, key: entry.stored.key.clone(), twice: false };
    match lines.entry(place) {
        Slot::Vacant(slot) => {
            let line = slot.insert(Line { head, read: true, kept: K::default() });
            line.kept.see(&namespace, entry, Rank::Newest);
        }
        Slot::Occupied(slot) => {
            let line = slot.into_mut();
            let rank = line.head.meet(head);
            line.kept.see(&namespace, entry, rank);
        }
    }
}

fn note(heads: &mut Releases<Head>, record: Record) {
    let (Some(place), Some(revision)) = (place(&record), revision(&record)) else { return };
    let head = Head { revision, key: record.stored.key, twice: false };
    match heads.entry(place) {
        Slot::Vacant(slot) => drop(slot.insert(head)),
        Slot::Occupied(slot) => {
            slot.into_mut().meet(head);
        }
    }
}

/// The release that a record belongs to: by its label, else by its object name.
pub(super) fn place(record: &Record) -> Option<(Namespace, ReleaseName)> {
    let labelled = record.stored.labels.get("name").and_then(|name| name.parse().ok());
    let name = labelled.or_else(|| record.stored.key.parse::<RecordKey>().ok().map(|key| key.name))?;
    Some((record.namespace.parse().ok()?, name))
}

/// The revision that a record is, without its payload: by its object name, else by its label.
fn revision(record: &Record) -> Option<Revision> {
    let named = record.stored.key.parse::<RecordKey>().ok().map(|key| key.revision);
    named.or_else(|| record.stored.labels.get("version")?.parse().ok())
}
