//! All revisions of one release, unreadable ones included.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::{ApplyMethod, Namespace, RecordKey, Release, ReleaseName, Revision, Status};

/// The stored object around a record: where it is, and the server's own marks on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// The object's name; canonical unless somebody copied or renamed it.
    pub key: String,
    /// The object's labels: a pre-filter that can lie.
    pub labels: BTreeMap<String, String>,
    /// What a write must carry; empty where the driver has none.
    pub resource_version: String,
    /// The object's UID.
    pub uid: String,
    /// When the server created it.
    pub created: Option<DateTime<Utc>>,
    /// The newest managedFields time: when the server last saw it written.
    pub touched: Option<DateTime<Utc>>,
}

/// One record in its place.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The revision: from the payload, else from the object's name, else from the label.
    pub revision: Revision,
    /// The object around it.
    pub stored: Stored,
    /// What it holds.
    pub content: Content,
}

/// What a record holds.
#[derive(Debug, Clone)]
pub enum Content {
    /// Decoded; [`Release::faults`] may still say that Helm cannot read it.
    Readable(Box<Release>),
    /// Listed, never skipped: a damaged record still occupies its revision.
    Unreadable {
        /// Why it could not be decoded.
        why: String,
    },
}

/// A disagreement between a record's payload and the object around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// Label `status` is missing or says something else; rewritten from the payload.
    StatusLabel,
    /// Label `version` is missing or says something else; rewritten from the payload.
    VersionLabel,
    /// Label `name` or `owner` is missing or names another; never rewritten.
    NameLabel,
    /// The payload names another release; refused.
    PayloadName(String),
    /// The payload's revision is not the one in the object's name; refused.
    PayloadRevision(Revision),
}

/// All records of one release, lowest revision first.
#[derive(Debug, Clone)]
pub struct History {
    /// The release.
    pub name: ReleaseName,
    /// Where its records are.
    pub namespace: Namespace,
    entries: Vec<Entry>,
    copies: Vec<Entry>,
}

impl Entry {
    /// Places a record: payload first, then the object's name, then the label.
    ///
    /// `None` if none of the three holds a revision.
    #[must_use]
    pub fn place(stored: Stored, content: Content) -> Option<Self> {
        let payload = match &content {
            Content::Readable(release) => release.revision(),
            Content::Unreadable { .. } => None,
        };
        let key = || stored.key.parse().map(|key: RecordKey| key.revision).ok();
        let label = || stored.labels.get("version").and_then(|text| text.parse().ok());
        let revision = payload.or_else(key).or_else(label)?;
        Some(Self { revision, stored, content })
    }

    /// The release, if it could be decoded.
    #[must_use]
    pub fn release(&self) -> Option<&Release> {
        match &self.content {
            Content::Readable(release) => Some(release),
            Content::Unreadable { .. } => None,
        }
    }

    /// The release, if Helm too can read it.
    #[must_use]
    pub fn sound(&self) -> Option<&Release> {
        self.release().filter(|release| release.faults().is_empty())
    }

    /// The payload's status; `None` where the record is unreadable.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        self.release().map(Release::status)
    }

    /// Whether payload and object disagree, and in what.
    #[must_use]
    pub fn mismatches(&self, name: &ReleaseName) -> Vec<Mismatch> {
        let label = |key: &str| self.stored.labels.get(key).map(String::as_str);
        let mut found = Vec::new();
        let Some(release) = self.release() else { return found };
        if label("status") != Some(release.status().as_str()) {
            found.push(Mismatch::StatusLabel);
        }
        if label("version") != Some(self.revision.to_string().as_str()) {
            found.push(Mismatch::VersionLabel);
        }
        if label("name") != Some(name.as_str()) || label("owner") != Some("helm") {
            found.push(Mismatch::NameLabel);
        }
        if let Some(other) = release.name().filter(|payload| *payload != name.as_str()) {
            found.push(Mismatch::PayloadName(other.into()));
        }
        let in_key = self.stored.key.parse::<RecordKey>().map(|key| key.revision);
        if let (Some(payload), Ok(in_key)) = (release.revision(), in_key)
            && payload != in_key
        {
            found.push(Mismatch::PayloadRevision(payload));
        }
        found
    }
}

impl History {
    /// Orders the records by revision; a second record of a revision is a copy unless its object name is canonical.
    #[must_use]
    pub fn new(name: ReleaseName, namespace: Namespace, records: Vec<Entry>) -> Self {
        let canonical = |entry: &Entry| RecordKey::new(name.clone(), entry.revision).to_string() == entry.stored.key;
        let mut records = records;
        records.sort_by_key(|entry| (entry.revision, !canonical(entry)));
        let (mut entries, mut copies) = (Vec::<Entry>::new(), Vec::new());
        for record in records {
            match entries.last() {
                Some(last) if last.revision == record.revision => copies.push(record),
                _ => entries.push(record),
            }
        }
        Self { name, namespace, entries, copies }
    }

    /// The records, lowest revision first, one a revision.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Further records of a revision that is listed already: somebody copied them.
    #[must_use]
    pub fn copies(&self) -> &[Entry] {
        &self.copies
    }

    /// Whether there is no record at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The newest record, unreadable ones included: the one that locks.
    #[must_use]
    pub fn last(&self) -> Option<&Entry> {
        self.entries.last()
    }

    /// The record of `revision`.
    #[must_use]
    pub fn get(&self, revision: Revision) -> Option<&Entry> {
        let at = self.entries.binary_search_by_key(&revision, |entry| entry.revision).ok()?;
        self.entries.get(at)
    }

    /// How to apply over the objects that `revisions` left: server-side only if all of them were.
    ///
    /// What a client-side merge set belongs to an `Update` entry of managedFields, and no apply takes it away again
    /// (observed); so one revision of that kind makes the next a merge, and its record has to say so.
    #[must_use]
    pub fn apply_method(&self, revisions: &[Revision]) -> ApplyMethod {
        let mut methods = revisions.iter().filter_map(|at| self.get(*at)?.sound()).map(Release::apply_method);
        if methods.all(|method| method == ApplyMethod::ServerSide) {
            ApplyMethod::ServerSide
        } else {
            ApplyMethod::ClientSide
        }
    }

    /// The key of `revision` of this release.
    #[must_use]
    pub fn key(&self, revision: Revision) -> RecordKey {
        RecordKey::new(self.name.clone(), revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, json: &str) -> Entry {
        let stored = Stored { key: key.into(), ..Stored::default() };
        Entry::place(stored, Content::Readable(Box::new(Release::parse(json).unwrap()))).unwrap()
    }

    #[test]
    fn a_copied_record_is_set_aside_and_the_canonical_one_stays() {
        let json = r#"{"name":"r","version":2,"info":{"status":"deployed"}}"#;
        let copy = entry("sh.helm.release.v1.r.v2-copy", json);
        let real = entry("sh.helm.release.v1.r.v2", json);
        let history = History::new("r".parse().unwrap(), "ns".parse().unwrap(), vec![copy, real]);
        assert_eq!(history.entries()[0].stored.key, "sh.helm.release.v1.r.v2");
        assert_eq!(history.copies()[0].stored.key, "sh.helm.release.v1.r.v2-copy");
    }

    #[test]
    fn an_unreadable_record_keeps_its_number_from_its_name() {
        let stored = Stored { key: "sh.helm.release.v1.r.v7".into(), ..Stored::default() };
        let entry = Entry::place(stored, Content::Unreadable { why: "not gzip".into() }).unwrap();
        assert_eq!(entry.revision.get(), 7);
    }

    #[test]
    fn every_disagreement_is_named() {
        let mut entry = entry("sh.helm.release.v1.r.v5", r#"{"name":"zzz","version":2,"info":{"status":"failed"}}"#);
        entry.stored.labels = [("owner", "helm"), ("name", "r"), ("status", "deployed"), ("version", "5")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        assert_eq!(
            entry.mismatches(&"r".parse().unwrap()),
            [
                Mismatch::StatusLabel,
                Mismatch::VersionLabel,
                Mismatch::PayloadName("zzz".into()),
                Mismatch::PayloadRevision(Revision::new(2).unwrap()),
            ]
        );
    }
}
