//! What is done to releases: look, decide, act, and look again.
//!
//! The shell remembers nothing: what a killed run leaves is the ordinary state *interrupted*, which the next run finds.

mod backup;
mod doctor;
mod drift;
mod error;
mod follow;
mod newest;
mod observe;
mod preflight;
mod probe;
mod repair;
mod report;
mod restore;
mod scan;
mod scene;

pub use doctor::{Diagnosis, PermissionCheck};
pub use drift::Drift;
pub use error::{Error, Remedy, Unusable};
pub use follow::{Follow, News};
pub use observe::Observation;
pub use report::{Event, Events, Outcome, Report, StepReport};
pub use restore::{PlannedRestore, RestoreOptions, RestoreReport};
pub use scan::{Damaged, Depth, Failure, Head, Namespaces, Scan, ScanItem, ScanOptions, Scope, Sight};

pub use crate::cluster::{Requests, Stop};

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;

use crate::cluster::{self, Permission, Wire};
use crate::plan::{Intent, Plan, Policy, Strategy, decide};
use crate::release::{History, Namespace, ReleaseName};
use crate::storage::{Detail, DriverKind, Kubernetes, Query, Read, Storage};
use probe::Tries;

/// Releases of one namespace on one server.
#[derive(Clone)]
pub struct Client {
    wire: Wire,
    storage: Storage,
    driver: DriverKind,
    namespace: Namespace,
    manager: Option<String>,
}

/// A plan, and what it was made from.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// What was seen.
    pub observation: Observation,
    /// Permissions that the plan needs and this identity lacks; each is a refusal too.
    pub missing: Vec<Permission>,
    /// Who lacks them, as the server knows this identity; asked only where something is missing.
    pub identity: Option<String>,
}

/// How a repair runs.
#[derive(Debug, Clone)]
pub struct RepairOptions {
    /// How long to wait for readiness, and for deleted objects to go.
    pub timeout: Duration,
    /// Whether to wait for deleted objects to go. Waiting for readiness is a step of the plan.
    pub wait: bool,
    /// Take fields that another manager owns.
    pub force_conflicts: bool,
}

impl Default for RepairOptions {
    /// Five minutes, waiting, never by force.
    fn default() -> Self {
        Self { timeout: Duration::from_secs(300), wait: true, force_conflicts: false }
    }
}

impl Client {
    /// Releases of `namespace`, recorded by `driver`.
    ///
    /// Build `kube` with its `default_retry` off: what may be sent twice is decided here.
    #[must_use]
    pub fn new(kube: kube::Client, namespace: Namespace, driver: DriverKind) -> Self {
        Self::over(Wire::new(kube), namespace, driver)
    }

    fn over(wire: Wire, namespace: Namespace, driver: DriverKind) -> Self {
        let storage = Storage::new(Arc::new(Kubernetes::new(wire.clone(), driver)));
        Self { wire, storage, driver, namespace, manager: None }
    }

    /// Writes objects as field manager `manager`, instead of the one that the live objects show.
    #[must_use]
    pub fn with_field_manager(self, manager: impl Into<String>) -> Self {
        Self { manager: Some(manager.into()), ..self }
    }

    /// The same server and driver, another namespace, and requests counted anew.
    #[must_use]
    pub fn in_namespace(&self, namespace: Namespace) -> Self {
        let manager = self.manager.clone();
        Self { manager, ..Self::over(self.wire.recount(), namespace, self.driver) }
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// How many requests this client has sent.
    #[must_use]
    pub fn requests(&self) -> Requests {
        self.wire.requests()
    }

    /// The user name by which the server knows this identity; `None` where it does not tell.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub async fn identity(&self, stop: &Stop) -> Result<Option<String>, Error> {
        Ok(cluster::identity(&self.wire, stop).await?)
    }

    /// All revisions of a release; an empty history if it is absent.
    ///
    /// # Errors
    /// The records cannot be read.
    pub async fn history(&self, name: &ReleaseName, stop: &Stop) -> Result<History, Error> {
        Ok(self.storage.history(&self.namespace, name, stop).await?.history)
    }

    /// Reads the records, and the cluster where an operation is open: which revision every object holds, too.
    ///
    /// # Errors
    /// A read failed: then nothing is known, least of all that the release is absent.
    pub async fn observe(&self, name: &ReleaseName, policy: &Policy, stop: &Stop) -> Result<Observation, Error> {
        let read = self.storage.history(&self.namespace, name, stop).await?;
        self.look_around(read, name, policy, Tries::All, stop).await
    }

    /// Reads the cluster too, where an operation is open.
    async fn look_around(
        &self,
        read: Read,
        name: &ReleaseName,
        policy: &Policy,
        tries: Tries,
        stop: &Stop,
    ) -> Result<Observation, Error> {
        let now = read.date.unwrap_or_else(Utc::now);
        let mut observation = Observation::of_records(read.history, now);
        if observation.history.is_empty() {
            observation.evidence.elsewhere = self.elsewhere(name, stop).await?;
        }
        // Who wants a finish is told of every object that is in its way.
        let tries = if policy.strategy == Strategy::Finish { Tries::All } else { tries };
        observation.look(&self.wire, policy, tries, stop).await?;
        if let Some(manager) = &self.manager
            && observation.manager != *manager
        {
            observation.manager.clone_from(manager);
            // What one manager may do, another may not.
            observation.admitted.clear();
        }
        Ok(observation)
    }

    /// What `repair` would do. Reads only; what would fail shows as a refusal.
    ///
    /// # Errors
    /// A read failed.
    pub async fn plan(
        &self,
        name: &ReleaseName,
        intent: Intent,
        policy: &Policy,
        options: &RepairOptions,
        stop: &Stop,
    ) -> Result<Planned, Error> {
        let read = self.storage.history(&self.namespace, name, stop).await?;
        let observation = self.look_around(read, name, policy, Tries::Decisive, stop).await?;
        self.plan_from(observation, intent, policy, options, stop).await
    }

    /// What `repair` would do about what was observed. [`Client::plan`] observes no more than that needs.
    ///
    /// # Errors
    /// A read failed.
    pub async fn plan_from(
        &self,
        observation: Observation,
        intent: Intent,
        policy: &Policy,
        options: &RepairOptions,
        stop: &Stop,
    ) -> Result<Planned, Error> {
        let plan = decide(&observation.history, &observation.evidence, intent, policy);
        let mut planned = Planned { plan, observation, missing: Vec::new(), identity: None };
        preflight::check(&self.wire, self.driver, &mut planned, options.force_conflicts, stop).await?;
        Ok(planned)
    }

    /// Runs a plan that was made by [`Client::plan`].
    ///
    /// # Guarantees
    /// Nothing is written if the records are no longer those that the plan was made from, or if `events` cannot keep what is
    /// about to be changed. On every way out the record that this run opened is closed, and no request is under way.
    pub async fn repair(&self, planned: &Planned, options: &RepairOptions, stop: &Stop, events: &dyn Events) -> Report {
        repair::run(self, planned, options, stop, events).await
    }

    /// The driver that holds records of `name` although this one holds none.
    async fn elsewhere(&self, name: &ReleaseName, stop: &Stop) -> Result<Option<&'static str>, Error> {
        let other = self.driver.other();
        let query = Query {
            namespace: Some(self.namespace.clone()),
            selector: format!("owner=helm,name={name}"),
            detail: Detail::Metadata,
        };
        let driver = Kubernetes::new(self.wire.clone(), other);
        match crate::storage::Driver::list(&driver, &query, stop).await {
            Ok(listing) if listing.records.is_empty() => Ok(None),
            Ok(_) => Ok(Some(other.as_str())),
            // Not being allowed to look there is no reason to fail here.
            Err(crate::storage::Error::Cluster(error)) if error.code() == Some(403) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Controllers spawn: every future of the public API must be able to move between threads.
    #[test]
    fn every_future_is_send() {
        fn is_send<T: Send>(_: impl Fn(&'static Client, &'static ReleaseName, &'static Stop) -> T) {}
        is_send(|client, name, stop| client.history(name, stop));
        is_send(|client, _, stop| client.doctor(stop));
        is_send(|client, name, stop| async move {
            let Some(backup) = client.backup(name, stop).await? else { return Ok(None) };
            let options = RestoreOptions::default();
            let planned = client.plan_restore(backup.taken, &backup.releases[0], &options, stop).await?;
            Ok::<_, Error>(Some(client.restore(&planned, stop, &()).await))
        });
        is_send(|client, name, stop| async move {
            let (policy, options) = (Policy::default(), RepairOptions::default());
            let planned = client.plan(name, Intent::Usable, &policy, &options, stop).await?;
            Ok::<_, Error>(client.repair(&planned, &options, stop, &()).await)
        });
        is_send(|client, _, stop| async move {
            let scope = Scope { namespaces: Namespaces::All, selector: None };
            let options = ScanOptions { depth: Depth::Labels, policy: Policy::default() };
            client.follow(scope, options).next(stop).await
        });
        is_send(|client, _, stop| async move {
            let scope = Scope { namespaces: Namespaces::All, selector: None };
            let options = ScanOptions { depth: Depth::Labels, policy: Policy::default() };
            client.scan(&scope, &options, stop).await
        });
    }
}
