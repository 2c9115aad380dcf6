//! Finds stuck releases. The fast path asks the server for the labels that can mean trouble, and reads payloads only
//! of those releases; the deep one decodes the newest record of every release, for labels can lie.

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt};

use super::error::Error;
use super::newest::{Keep, Rank, Releases, place};
use super::probe::Tries;
use super::{Client, Observation};
use crate::cluster::Stop;
use crate::plan::{Intent, Plan, Policy, State, Suspects, decide, target};
use crate::release::{ChartInfo, Content, Entry, Namespace, Release, ReleaseName, Revision, Status};
use crate::storage::{self, Detail, Query, Record};

/// How many releases are looked at at once. Each reads several objects at once, and every request that is under way has
/// a connection of its own, which costs more than a read.
pub(super) const AT_ONCE: usize = 4;
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
    /// Newest records that cannot be read; only where payloads were read.
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

/// A release that has to be looked at, and how far.
type Candidate = ((Namespace, ReleaseName), Reach);

/// How far to look for the records of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// As far as Helm does.
    Labels,
    /// To those, too, that only their object names tell.
    Names,
}

impl Scope {
    /// Asks for the records of Helm in this place to which `selector` applies, too.
    pub(super) fn query(&self, selector: &str, detail: Detail) -> Query {
        let terms = ["owner=helm", selector, self.selector.as_deref().unwrap_or_default()];
        let selector = terms.into_iter().filter(|term| !term.is_empty()).collect::<Vec<_>>().join(",");
        let namespace = match &self.namespaces {
            Namespaces::All => None,
            Namespaces::One(namespace) => Some(namespace.clone()),
        };
        Query { namespace, selector, detail }
    }
}

/// What a scan keeps of a release to know whether its history has to be looked at.
#[derive(Default)]
struct Glance {
    /// Whether the newest record is sound and says that nothing is under way.
    quiet: bool,
    damaged: Option<Damaged>,
    /// How many records say `deployed`.
    deployed: usize,
    /// Whether the labels of a record do not say what its payload does.
    lies: bool,
}

impl Keep for Option<Entry> {
    fn see(&mut self, _: &Namespace, entry: Entry, rank: Rank) {
        if rank == Rank::Newest {
            *self = Some(entry);
        }
    }
}

impl Keep for Glance {
    fn see(&mut self, namespace: &Namespace, entry: Entry, rank: Rank) {
        let status = entry.sound().map(Release::status);
        self.deployed += usize::from(status == Some(&Status::Deployed));
        self.lies |= entry.release().is_some() && !is_labelled(&entry);
        if rank == Rank::Newest {
            self.quiet = status.is_some_and(is_quiet);
            self.damaged = Damaged::of(namespace, entry);
        }
    }
}

impl Glance {
    fn is_suspect(&self) -> bool {
        !self.quiet || self.lies || self.deployed > 1
    }
}

impl Damaged {
    fn of(namespace: &Namespace, entry: Entry) -> Option<Self> {
        match entry.content {
            Content::Unreadable { why } => Some(Self { namespace: namespace.to_string(), key: entry.stored.key, why }),
            Content::Readable(_) => None,
        }
    }
}

/// Whether the object around a record says what its payload does.
fn is_labelled(entry: &Entry) -> bool {
    let name = entry.stored.labels.get("name").and_then(|name| name.parse().ok());
    name.is_some_and(|name| entry.mismatches(&name).is_empty())
}

/// Whether the newest record of a release may say so without anything being due.
fn is_quiet(status: &Status) -> bool {
    match status {
        Status::Deployed | Status::Superseded | Status::Failed | Status::Uninstalled => true,
        Status::PendingInstall
        | Status::PendingUpgrade
        | Status::PendingRollback
        | Status::Uninstalling
        | Status::Unknown
        | Status::Other(_) => false,
    }
}

impl Client {
    /// The newest record of every release.
    ///
    /// # Errors
    /// The records cannot be listed.
    pub async fn releases(&self, scope: &Scope, stop: &Stop) -> Result<Vec<Head>, Error> {
        let lines = self.newest::<Option<Entry>>(scope, stop).await?.into_iter();
        let heads = lines.filter_map(|((namespace, name), line)| Some(Head { namespace, name, entry: line.kept? }));
        Ok(heads.collect())
    }

    /// Finds the releases for which something is due, by what the evidence says. Whether this identity may do it, and
    /// what admission says to it, is found out by [`Client::plan`].
    ///
    /// # Errors
    /// The records cannot be listed. A single release that cannot be looked at is a [`Failure`] in the result.
    pub async fn scan(&self, scope: &Scope, options: &ScanOptions, stop: &Stop) -> Result<Scan, Error> {
        let candidates = async {
            match options.depth {
                Depth::Labels => Ok((self.by_labels(scope, stop).await?, Vec::new())),
                Depth::Payloads => self.by_payloads(scope, stop).await,
            }
        };
        let (helm2, (candidates, unreadable)) = futures::try_join!(self.helm2(scope, stop), candidates)?;
        let mut scan = Scan { helm2, unreadable, ..Scan::default() };
        let client = Self { wire: self.wire.remembering(), ..self.clone() };
        let looks = candidates.into_iter().map(|candidate| client.look(candidate, &options.policy, stop));
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

    async fn look(&self, candidate: Candidate, policy: &Policy, stop: &Stop) -> Result<Option<ScanItem>, Failure> {
        let ((namespace, name), reach) = candidate;
        match self.glance(namespace.clone(), &name, reach, policy, stop).await {
            Sight::Stuck(item) => Ok(Some(*item)),
            Sight::Usable(_) | Sight::Absent => Ok(None),
            Sight::Failed(error) => Err(Failure { namespace, name, error }),
        }
    }

    /// What one release is.
    pub(super) async fn sight(&self, namespace: Namespace, name: &ReleaseName, policy: &Policy, stop: &Stop) -> Sight {
        self.glance(namespace, name, Reach::Names, policy, stop).await
    }

    async fn glance(
        &self,
        namespace: Namespace,
        name: &ReleaseName,
        reach: Reach,
        policy: &Policy,
        stop: &Stop,
    ) -> Sight {
        match self.in_namespace(namespace).examine(name, reach, policy, stop).await {
            Ok(observation) => seen(&observation, policy),
            Err(error) => Sight::Failed(error),
        }
    }

    async fn examine(
        &self,
        name: &ReleaseName,
        reach: Reach,
        policy: &Policy,
        stop: &Stop,
    ) -> Result<Observation, Error> {
        let read = match reach {
            Reach::Labels => self.storage.labelled_history(&self.namespace, name, stop).await?,
            Reach::Names => self.storage.history(&self.namespace, name, stop).await?,
        };
        self.look_around(read, name, policy, Tries::Decisive, stop).await
    }

    /// Releases of which a record, by its label, can mean trouble. A pending one below a healthy one does not.
    async fn by_labels(&self, scope: &Scope, stop: &Stop) -> Result<Vec<Candidate>, Error> {
        let mut found = Releases::new();
        for record in self.list(scope, QUIET, Detail::Metadata, stop).await? {
            let Some(place) = place(&record) else { continue };
            let reach = if record.stored.labels.contains_key("name") { Reach::Labels } else { Reach::Names };
            found.insert(place, reach);
        }
        Ok(found.into_iter().collect())
    }

    /// Releases whose newest record, or whose records together, can mean trouble; and which of the newest are damaged.
    async fn by_payloads(&self, scope: &Scope, stop: &Stop) -> Result<(Vec<Candidate>, Vec<Damaged>), Error> {
        let (mut candidates, mut unreadable) = (Vec::new(), Vec::new());
        for (place, line) in self.newest::<Glance>(scope, stop).await? {
            if line.is_twice() || line.kept.is_suspect() {
                candidates.push((place, Reach::Names));
            }
            unreadable.extend(line.kept.damaged);
        }
        Ok((candidates, unreadable))
    }

    /// Helm 2 kept its records as ConfigMaps of its own, with labels in capitals.
    async fn helm2(&self, scope: &Scope, stop: &Stop) -> Result<usize, Error> {
        let query = Query { selector: "OWNER=TILLER".into(), ..scope.query("", Detail::Metadata) };
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
        let query = scope.query(selector, detail);
        Ok(self.storage.driver().list(&query, stop).await?.records)
    }
}

impl ScanItem {
    /// Where its records are, and which it is.
    pub(super) fn place(&self) -> (Namespace, ReleaseName) {
        (self.plan.namespace.clone(), self.plan.name.clone())
    }
}

fn seen(observation: &Observation, policy: &Policy) -> Sight {
    let history = &observation.history;
    let plan = decide(history, &observation.evidence, Intent::Usable, policy);
    let Some(last) = history.last() else { return Sight::Absent };
    if !plan.is_due() {
        return Sight::Usable(Box::new(last.clone()));
    }
    let below = target(history, last.revision, Suspects::Skip).target;
    Sight::Stuck(Box::new(ScanItem {
        status: last.status().map_or_else(|| "unreadable".into(), ToString::to_string),
        since: last.stored.created,
        // Where several say deployed, the newest record may be the good one itself.
        last_deployed: plan.target.filter(|_| plan.state == State::Untidy).or(below),
        chart: last.release().and_then(Release::chart),
        now: observation.evidence.now,
        plan,
    }))
}
