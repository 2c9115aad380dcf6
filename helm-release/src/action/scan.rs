//! Finds stuck releases. The fast path asks the server for the labels that can mean trouble, and reads payloads only
//! of those releases; the deep one decodes the newest record of every release, for labels can lie.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt};

use super::error::Error;
use super::{Client, Planned, RepairOptions};
use crate::cluster::Stop;
use crate::plan::{Intent, Plan, Policy, State, Suspects, target};
use crate::release::{ChartInfo, Content, Entry, Namespace, RecordKey, ReleaseName, Revision};
use crate::storage::{self, Detail, Query, Record};

/// How many releases are looked at at once.
pub(super) const AT_ONCE: usize = 8;
/// Labels that mean no trouble: whatever else a record says, or does not say, is looked at.
const QUIET: &str = "status notin (deployed,superseded,failed,uninstalled)";

/// Where to look.
#[derive(Debug, Clone)]
pub struct Scope {
    /// In which namespaces.
    pub namespaces: Namespaces,
    /// A label selector on the records, as `kubectl -l` takes it.
    pub selector: Option<String>,
}

/// In which namespaces.
#[derive(Debug, Clone)]
pub enum Namespaces {
    /// In all.
    All,
    /// In one.
    One(Namespace),
}

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Trust the labels to find candidates; decode only those.
    Labels,
    /// Decode the newest record of every release.
    Payloads,
}

/// How to scan.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// How closely.
    pub depth: Depth,
    /// What the plans may do.
    pub policy: Policy,
}

/// What a scan found.
#[derive(Debug, Default)]
pub struct Scan {
    /// Releases for which something is due, by namespace and name.
    pub items: Vec<ScanItem>,
    /// Records that cannot be read, whether or not they are the newest of their release.
    pub unreadable: Vec<Damaged>,
    /// Releases that could not be looked at.
    pub failures: Vec<Failure>,
    /// Records of Helm 2, which are left alone.
    pub helm2: usize,
}

/// A release for which something is due.
#[derive(Debug)]
pub struct ScanItem {
    /// What `repair` would do.
    pub plan: Plan,
    /// The newest record's status, verbatim; `unreadable` if it cannot be read.
    pub status: String,
    /// When the newest record was created, by the server's clock.
    pub since: Option<DateTime<Utc>>,
    /// The last good revision.
    pub last_deployed: Option<Revision>,
    /// The newest record's chart.
    pub chart: Option<ChartInfo>,
    /// When it was looked at, by the server's clock.
    pub now: DateTime<Utc>,
}

/// What a release is.
#[derive(Debug)]
pub enum Sight {
    /// Something is due.
    Stuck(Box<ScanItem>),
    /// Nothing is due; this is its newest record.
    Usable(Box<Entry>),
    /// There is no record of it.
    Absent,
    /// It could not be looked at.
    Failed(Error),
}

/// A record that cannot be read.
#[derive(Debug)]
pub struct Damaged {
    /// Where it is.
    pub namespace: String,
    /// Its object name.
    pub key: String,
    /// Why.
    pub why: String,
}

/// A release that could not be looked at.
#[derive(Debug)]
pub struct Failure {
    /// Where its records are.
    pub namespace: Namespace,
    /// Which.
    pub name: ReleaseName,
    /// Why.
    pub error: Error,
}

/// The newest record of a release.
#[derive(Debug, Clone)]
pub struct Head {
    /// Where its records are.
    pub namespace: Namespace,
    /// Which.
    pub name: ReleaseName,
    /// The record.
    pub entry: Entry,
}

type Releases<T> = BTreeMap<(Namespace, ReleaseName), T>;

impl Client {
    /// The newest record of every release.
    ///
    /// # Errors
    /// The records cannot be listed.
    pub async fn releases(&self, scope: &Scope, stop: &Stop) -> Result<Vec<Head>, Error> {
        let records = self.list(scope, "", Detail::Payload, stop).await?;
        let mut newest: Releases<Entry> = BTreeMap::new();
        for record in records {
            let Some(place) = place(&record) else { continue };
            let Some(entry) = storage::entry(record) else { continue };
            if newest.get(&place).is_none_or(|known| known.revision < entry.revision) {
                newest.insert(place, entry);
            }
        }
        Ok(newest.into_iter().map(|((namespace, name), entry)| Head { namespace, name, entry }).collect())
    }

    /// Finds the releases for which something is due.
    ///
    /// # Errors
    /// The records cannot be listed. A single release that cannot be looked at is a [`Failure`] in the result.
    pub async fn scan(&self, scope: &Scope, options: &ScanOptions, stop: &Stop) -> Result<Scan, Error> {
        let mut scan = Scan { helm2: self.helm2(scope, stop).await?, ..Scan::default() };
        let candidates = match options.depth {
            Depth::Labels => self.by_labels(scope, stop).await?,
            Depth::Payloads => self.by_payloads(scope, &mut scan, stop).await?,
        };
        let looks = candidates.into_iter().map(|(namespace, name)| self.look(namespace, name, options, stop));
        let mut looked = stream::iter(looks).buffered(AT_ONCE);
        while let Some(result) = looked.next().await {
            match result {
                Ok(Some(item)) => scan.items.push(item),
                Ok(None) => {}
                Err(failure) if failure.error.is_stopped() => return Err(failure.error),
                Err(failure) => scan.failures.push(failure),
            }
        }
        Ok(scan)
    }

    async fn look(
        &self,
        namespace: Namespace,
        name: ReleaseName,
        options: &ScanOptions,
        stop: &Stop,
    ) -> Result<Option<ScanItem>, Failure> {
        match self.sight(namespace.clone(), name.clone(), options, stop).await {
            Sight::Stuck(item) => Ok(Some(*item)),
            Sight::Usable(_) | Sight::Absent => Ok(None),
            Sight::Failed(error) => Err(Failure { namespace, name, error }),
        }
    }

    /// What one release is.
    pub(super) async fn sight(
        &self,
        namespace: Namespace,
        name: ReleaseName,
        options: &ScanOptions,
        stop: &Stop,
    ) -> Sight {
        let client = self.in_namespace(namespace);
        match client.plan(&name, Intent::Usable, &options.policy, &RepairOptions::default(), stop).await {
            Ok(planned) => seen(planned),
            Err(error) => Sight::Failed(error),
        }
    }

    /// Releases whose newest record, by its label, can mean trouble. A pending record below a healthy one does not.
    async fn by_labels(&self, scope: &Scope, stop: &Stop) -> Result<Vec<(Namespace, ReleaseName)>, Error> {
        let suspects = self.list(scope, QUIET, Detail::Metadata, stop).await?;
        let mut highest: Releases<Revision> = BTreeMap::new();
        for record in &suspects {
            if let (Some(place), Some(revision)) = (place(record), revision(record)) {
                let known = highest.entry(place).or_insert(revision);
                *known = revision.max(*known);
            }
        }
        let mut stuck = Vec::new();
        for ((namespace, name), revision) in highest {
            let scope =
                Scope { namespaces: Namespaces::One(namespace.clone()), selector: Some(format!("name={name}")) };
            let all = self.list(&scope, "", Detail::Metadata, stop).await?;
            if all.iter().filter_map(self::revision).max() <= Some(revision) {
                stuck.push((namespace, name));
            }
        }
        Ok(stuck)
    }

    async fn by_payloads(
        &self,
        scope: &Scope,
        scan: &mut Scan,
        stop: &Stop,
    ) -> Result<Vec<(Namespace, ReleaseName)>, Error> {
        let mut all = Vec::new();
        for head in self.releases(scope, stop).await? {
            if let Content::Unreadable { why } = &head.entry.content {
                let (namespace, key) = (head.namespace.to_string(), head.entry.stored.key.clone());
                scan.unreadable.push(Damaged { namespace, key, why: why.clone() });
            }
            all.push((head.namespace, head.name));
        }
        Ok(all)
    }

    /// Helm 2 kept its records as ConfigMaps of its own, with labels in capitals.
    async fn helm2(&self, scope: &Scope, stop: &Stop) -> Result<usize, Error> {
        let namespace = match &scope.namespaces {
            Namespaces::All => None,
            Namespaces::One(namespace) => Some(namespace.clone()),
        };
        let query = Query { namespace, selector: "OWNER=TILLER".into(), detail: Detail::Metadata };
        let driver = storage::Kubernetes::new(self.wire.clone(), storage::DriverKind::ConfigMaps);
        match storage::Driver::list(&driver, &query, stop).await {
            Ok(listing) => Ok(listing.records.len()),
            Err(storage::Error::Cluster(error)) if error.code() == Some(403) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn list(
        &self,
        scope: &Scope,
        selector: &str,
        detail: Detail,
        stop: &Stop,
    ) -> Result<Vec<Record>, Error> {
        let terms = ["owner=helm", selector, scope.selector.as_deref().unwrap_or_default()];
        let selector = terms.into_iter().filter(|term| !term.is_empty()).collect::<Vec<_>>().join(",");
        let namespace = match &scope.namespaces {
            Namespaces::All => None,
            Namespaces::One(namespace) => Some(namespace.clone()),
        };
        let query = Query { namespace, selector, detail };
        Ok(self.storage.driver().list(&query, stop).await?.records)
    }
}

impl ScanItem {
    /// Where its records are, and which it is.
    pub(super) fn place(&self) -> (Namespace, ReleaseName) {
        (self.plan.namespace.clone(), self.plan.name.clone())
    }
}

fn seen(planned: Planned) -> Sight {
    let Planned { plan, observation, .. } = planned;
    let Some(last) = observation.history.last() else { return Sight::Absent };
    if !plan.is_due() {
        return Sight::Usable(Box::new(last.clone()));
    }
    let below = target(&observation.history, last.revision, Suspects::Skip).target;
    Sight::Stuck(Box::new(ScanItem {
        status: last.status().map_or_else(|| "unreadable".into(), ToString::to_string),
        since: last.stored.created,
        // Where several say deployed, the newest record may be the good one itself.
        last_deployed: plan.target.filter(|_| plan.state == State::Untidy).or(below),
        chart: last.release().and_then(crate::release::Release::chart),
        now: observation.evidence.now,
        plan,
    }))
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
