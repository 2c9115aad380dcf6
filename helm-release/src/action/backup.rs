//! Saves a release before it is changed: its records and live objects as they are.

use std::collections::BTreeSet;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::error::Error;
use super::observe::{self, Observation};
use super::report::Events;
use super::scene::Scene;
use super::{Client, Planned};
use crate::backup::{Absent, Backup, Creation, Run, SavedRelease, Words};
use crate::cluster::Stop;
use crate::plan::{Step, Suspects, target};
use crate::release::{Entry, History, Namespace, ReleaseName, Revision, Status};
use crate::storage::{self, Detail, Listing, Record};

impl Client {
    /// Saves a release as it is: all records, and the live objects of the newest and of the last deployed revision.
    ///
    /// `None` if there is no such release.
    ///
    /// # Errors
    /// A read failed: a backup is whole or none.
    pub async fn backup(&self, name: &ReleaseName, stop: &Stop) -> Result<Option<Backup>, Error> {
        let Listing { records, date } = self.storage.records(&self.namespace, name, Detail::Whole, stop).await?;
        if records.is_empty() {
            return Ok(None);
        }
        let history = storage::history(&self.namespace, name, records.clone());
        let scene = Scene::gather(&self.wire, &history, &in_service(&history), stop).await?;
        let manager = observe::manager(&scene, history.apply_method(&in_service(&history)));
        let release = SavedRelease {
            objects: scene.items.values().filter_map(|item| item.live.clone()).collect(),
            left_out: scene.unknown.iter().map(|listed| listed.id.to_string()).collect(),
            ..self.saved(name, manager, records, stop).await?
        };
        Ok(Some(Backup::new(date.unwrap_or_else(Utc::now), vec![release])))
    }

    /// A release of which only the records are saved so far.
    pub(super) async fn saved(
        &self,
        name: &ReleaseName,
        manager: String,
        records: Vec<Record>,
        stop: &Stop,
    ) -> Result<SavedRelease, Error> {
        let site = observe::site(&self.wire, &self.namespace, stop).await?;
        Ok(SavedRelease {
            namespace: self.namespace.clone(),
            namespace_uid: site.uid(),
            name: name.clone(),
            driver: self.driver.as_str().into(),
            manager,
            run: None,
            records: records.into_iter().filter_map(|record| record.object).collect(),
            objects: Vec::new(),
            absent: Vec::new(),
            left_out: Vec::new(),
        })
    }
}

/// The newest revision and the last deployed one, which may be the same.
fn in_service(history: &History) -> Vec<Revision> {
    let Some(last) = history.last() else { return Vec::new() };
    let below = || target(history, last.revision, Suspects::Skip).target;
    let deployed = if last.status() == Some(&Status::Deployed) { None } else { below() };
    deployed.into_iter().chain([last.revision]).collect()
}

/// Saves what the plan is about to change or delete, and has the caller keep it.
pub(super) async fn before_repair(
    client: &Client,
    planned: &Planned,
    records: Vec<Record>,
    now: DateTime<Utc>,
    stop: &Stop,
    events: &dyn Events,
) -> Result<Option<PathBuf>, Error> {
    let Planned { plan, observation, .. } = planned;
    let release = SavedRelease {
        run: Some(run(planned, now)),
        objects: objects(planned),
        absent: absent(planned),
        ..client.saved(&plan.name, observation.manager.clone(), records, stop).await?
    };
    keep(Backup::new(observation.evidence.now, vec![release]), events)
}

pub(super) fn keep(backup: Backup, events: &dyn Events) -> Result<Option<PathBuf>, Error> {
    events.keep(backup).map_err(Error::Keep)
}

/// What the plan does to records. `now` is the time that a record it creates is going to hold.
fn run(planned: &Planned, now: DateTime<Utc>) -> Run {
    let Planned { plan, observation: Observation { history, .. }, .. } = planned;
    let verdict = serde_json::to_value(plan.verdict).unwrap_or_default();
    let what = format!("repair ({})", verdict.as_str().unwrap_or_default());
    let mut run = Run { what, closes: Vec::new(), creates: Vec::new(), deletes: Vec::new() };
    let key = |revision: &Revision| {
        history.get(*revision).map_or_else(|| history.key(*revision).to_string(), |entry| entry.stored.key.clone())
    };
    for step in &plan.steps {
        match step {
            Step::CreateRollback { revision, .. } => {
                run.creates.push(Creation { key: key(revision), last_deployed: Some(now) });
            }
            Step::Close { revision, status, description } => run.closes.push(Words {
                key: key(revision),
                status: status.0.to_string(),
                description: description.clone(),
            }),
            Step::DeleteRecord { revision } | Step::Quarantine { revision } => run.deletes.push(key(revision)),
            Step::Relabel { .. } | Step::Apply { .. } | Step::DeleteObjects { .. } | Step::AwaitReady { .. } => {}
        }
    }
    run
}

/// The live objects that the plan changes or deletes.
fn objects(planned: &Planned) -> Vec<Value> {
    let Planned { plan, observation, .. } = planned;
    let changes = plan.changes.iter().map(|change| &change.object);
    let ids: BTreeSet<_> = changes.chain(plan.deletes.iter().map(|deletion| &deletion.object)).collect();
    ids.into_iter().filter_map(|id| observation.scene.live(id).cloned()).collect()
}

/// The objects that the plan creates.
fn absent(planned: &Planned) -> Vec<Absent> {
    let Planned { plan, observation, .. } = planned;
    let missing = plan.changes.iter().filter(|change| observation.scene.live(&change.object).is_none());
    let placed = missing.filter_map(|change| Some((change, observation.scene.resource(&change.object)?)));
    placed
        .map(|(change, resource)| Absent { api_version: resource.api_version.clone(), object: change.object.clone() })
        .collect()
}

/// What was read once more just before the run, if it still is what the plan was made from.
pub(super) async fn unchanged(
    client: &Client,
    name: &ReleaseName,
    namespace: &Namespace,
    known: &[Entry],
    stop: &Stop,
) -> Result<Option<Vec<Record>>, Error> {
    let records = client.storage.records(namespace, name, Detail::Whole, stop).await?.records;
    let now = storage::history(namespace, name, records.clone());
    let stored = |entries: &[Entry]| entries.iter().map(|entry| entry.stored.clone()).collect::<Vec<_>>();
    Ok((stored(now.entries()) == stored(known)).then_some(records))
}
