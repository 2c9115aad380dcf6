//! Runs a plan, step by step, and settles what it opened on every way out.
//!
//! # Guarantees
//! Every record write carries the resourceVersion that was read, every delete the UID. A record that this run opened
//! is closed before it returns; after it has returned, no request is under way.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::error::Error;
use super::observe::Observation;
use super::report::{Event, Events, Outcome, Report, StepReport};
use super::{Client, Planned, RepairOptions, backup};
use crate::cluster::{self, Place, Stop, WriteMode};
use crate::manifest::ObjectId;
use crate::plan::{Plan, Step, Verdict};
use crate::readiness::{self, Readiness};
use crate::release::{Entry, Release, Revision, RollbackHeader, Status};
use crate::storage::Record;

/// How long the closing record write may take after everything else has been stopped. With the grace of a write that
/// is under way it stays below the five seconds in which a cancelled run must have ended.
const SETTLE: Duration = Duration::from_millis(2500);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

struct Run<'a> {
    client: &'a Client,
    plan: &'a Plan,
    observation: &'a Observation,
    options: &'a RepairOptions,
    events: &'a dyn Events,
    /// The records as they are now, by revision.
    records: BTreeMap<Revision, (Record, Option<Release>)>,
    /// The pending record that this run has to close.
    open: Option<Revision>,
    /// When it began: the time in a record that it creates, by which the backup knows it again.
    begun: DateTime<Utc>,
    /// Whether a backup keeps the records.
    kept: Kept,
}

/// Whether a backup keeps what is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    No,
}

/// Runs the plan that was shown, unless the records have changed since.
pub(super) async fn run(
    client: &Client,
    planned: &Planned,
    options: &RepairOptions,
    stop: &Stop,
    events: &dyn Events,
) -> Report {
    let mut report = Report::new(&planned.plan, &planned.observation.history);
    if !planned.plan.acts() {
        report.outcome = Outcome::of_idle(planned.plan.verdict);
        report.requests = client.requests();
        return report;
    }
    let history = &planned.observation.history;
    let ended = match backup::unchanged(client, &history.name, &history.namespace, history.entries(), stop).await {
        Ok(Some(records)) => guarded(client, planned, records, options, stop, events, &mut report).await,
        Ok(None) => Ok(Outcome::Changed),
        Err(error) => Err(error),
    };
    match ended {
        Ok(outcome) => {
            report.outcome = outcome;
            report.after = newest(client, planned).await;
        }
        Err(error) => {
            report.outcome = if error.is_stopped() { Outcome::Cancelled } else { Outcome::Failed };
            report.error = Some(error);
        }
    }
    report.requests = client.requests();
    report
}

/// The steps, once what they change is kept.
async fn guarded(
    client: &Client,
    planned: &Planned,
    records: Vec<Record>,
    options: &RepairOptions,
    stop: &Stop,
    events: &dyn Events,
    report: &mut Report,
) -> Result<Outcome, Error> {
    let begun = Utc::now();
    report.backup = backup::before_repair(client, planned, records, begun, stop, events).await?;
    let kept = if report.backup.is_some() { Kept::Yes } else { Kept::No };
    steps(Run::new(client, planned, options, events, begun, kept), stop, report).await
}

/// The newest record's status as the server has it now; a failure to read it is no failure of the repair.
async fn newest(client: &Client, planned: &Planned) -> Option<String> {
    let history = &planned.observation.history;
    let stop = Stop::never().within(SETTLE);
    let read = client.storage.history(&history.namespace, &history.name, &stop).await.ok()?;
    read.history.last().and_then(Entry::status).map(ToString::to_string)
}

async fn steps(mut run: Run<'_>, stop: &Stop, report: &mut Report) -> Result<Outcome, Error> {
    let events = run.events;
    for step in &run.plan.steps {
        events.event(&Event::StepStarted { step });
        let begun = Instant::now();
        let result = match stop.check() {
            Ok(()) => run.step(step, stop).await,
            Err(stopped) => Err(stopped.into()),
        };
        let error = result.as_ref().err().map(Error::one_line);
        events.event(&Event::StepEnded { step, error: error.as_deref() });
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        report.steps.push(StepReport { step: step.clone(), error, ms });
        match result {
            Ok(()) => {}
            Err(error) if error.is_conflict() && run.open.is_none() => return Ok(Outcome::Changed),
            Err(error) => {
                run.settle(&error, report).await;
                report.after = run.newest();
                return Err(error);
            }
        }
    }
    Ok(Outcome::Repaired)
}

impl<'a> Run<'a> {
    fn new(
        client: &'a Client,
        planned: &'a Planned,
        options: &'a RepairOptions,
        events: &'a dyn Events,
        begun: DateTime<Utc>,
        kept: Kept,
    ) -> Self {
        let Planned { plan, observation, .. } = planned;
        let namespace = observation.history.namespace.to_string();
        let record = |entry: &Entry| {
            let record =
                Record { namespace: namespace.clone(), stored: entry.stored.clone(), body: None, object: None };
            (entry.revision, (record, entry.release().cloned()))
        };
        let records = observation.history.entries().iter().map(record).collect();
        let open = plan.revision.filter(|_| matches!(plan.verdict, Verdict::Resume));
        Self { client, plan, observation, options, events, records, open, begun, kept }
    }

    /// The newest record's status as this run wrote or read it.
    fn newest(&self) -> Option<String> {
        let (_, release) = self.records.values().next_back()?;
        release.as_ref().map(|release| release.status().to_string())
    }

    async fn step(&mut self, step: &Step, stop: &Stop) -> Result<(), Error> {
        match step {
            Step::CreateRollback { revision, target } => self.create_rollback(*revision, *target, stop).await,
            Step::Close { revision, status, description } => {
                self.close(*revision, status.0.clone(), description, stop).await
            }
            Step::Relabel { revision } => self.relabel(*revision, stop).await,
            Step::Apply { revision, baseline } => self.apply(*revision, baseline, stop).await,
            Step::DeleteObjects { .. } => self.delete_objects(stop).await,
            Step::AwaitReady { revision } => self.await_ready(*revision, stop).await,
            Step::DeleteRecord { revision } => self.delete_record(*revision, stop).await,
            Step::Quarantine { revision } => self.quarantine(*revision, stop).await,
        }
    }

    async fn create_rollback(&mut self, revision: Revision, target: Revision, stop: &Stop) -> Result<(), Error> {
        let history = &self.observation.history;
        let (seen, release) = self.records.get(&target).ok_or(Error::NoRecord(target))?;
        let release = release.as_ref().ok_or(Error::NoRecord(target))?;
        let current = history.last().and_then(Entry::sound);
        let header = RollbackHeader {
            revision,
            first_deployed: current.unwrap_or(release).info().first_deployed,
            now: self.begun,
            description: format!("Rollback to {target}"),
            apply_method: history.apply_method(self.plan.applies().map_or(&[], |(_, baseline)| baseline)),
        };
        let record = release.to_rollback(&header).map_err(|source| Error::Payload { revision, source })?;
        let (key, labels) = (history.key(revision), &seen.stored.labels);
        let now = self.observation.evidence.now;
        let created = self.client.storage.create(&key, &history.namespace, &record, labels, now, stop).await?;
        self.records.insert(revision, (created, Some(record)));
        self.open = Some(revision);
        Ok(())
    }

    async fn close(&mut self, revision: Revision, status: Status, text: &str, stop: &Stop) -> Result<(), Error> {
        let (seen, release) = self.records.get(&revision).ok_or(Error::NoRecord(revision))?;
        let release = release.as_ref().ok_or(Error::NoRecord(revision))?;
        let changed = release.with_status(status, text).map_err(|source| Error::Payload { revision, source })?;
        let key = self.observation.history.key(revision);
        let written = self.client.storage.update(seen, &key, &changed, stop).await?;
        self.records.insert(revision, (written, Some(changed)));
        if self.open == Some(revision) {
            self.open = None;
        }
        Ok(())
    }

    async fn relabel(&mut self, revision: Revision, stop: &Stop) -> Result<(), Error> {
        let (seen, release) = self.records.get(&revision).ok_or(Error::NoRecord(revision))?;
        let release = release.clone().ok_or(Error::NoRecord(revision))?;
        let key = self.observation.history.key(revision);
        let written = self.client.storage.relabel(seen, &key, &release, stop).await?;
        self.records.insert(revision, (written, Some(release)));
        Ok(())
    }

    async fn delete_record(&mut self, revision: Revision, stop: &Stop) -> Result<(), Error> {
        let (seen, _) = self.records.remove(&revision).ok_or(Error::NoRecord(revision))?;
        Ok(self.client.storage.driver().delete(&seen, stop).await?)
    }

    /// Only where the backup holds it.
    async fn quarantine(&mut self, revision: Revision, stop: &Stop) -> Result<(), Error> {
        let (seen, _) = self.records.get(&revision).ok_or(Error::NoRecord(revision))?;
        match self.kept {
            Kept::Yes => Ok(self.client.storage.driver().delete(seen, stop).await?),
            Kept::No => Err(Error::Unkept(seen.stored.key.clone())),
        }
    }

    /// Applies in Helm's install order; objects of one kind at once. What already holds the manifest is not written.
    async fn apply(&self, revision: Revision, baseline: &[Revision], stop: &Stop) -> Result<(), Error> {
        let order = self.observation.scene.in_install_order(revision);
        let wanted: Vec<_> =
            order.into_iter().filter(|id| self.plan.changes.iter().any(|c| c.object == **id)).collect();
        let total = wanted.len();
        let mut done = 0;
        for kind in wanted.chunk_by(|a, b| (&a.group, &a.kind) == (&b.group, &b.kind)) {
            stop.check()?;
            // On a failure the writes that are under way are let end, so that none is left behind.
            let writes = kind.iter().map(|id| self.apply_one(id, revision, baseline, stop)).collect();
            let tell = || {
                done += 1;
                self.events.event(&Event::Objects { done, total });
            };
            cluster::all_to_end(writes, tell).await?;
        }
        Ok(())
    }

    async fn apply_one(&self, id: &ObjectId, goal: Revision, baseline: &[Revision], stop: &Stop) -> Result<(), Error> {
        stop.check()?;
        let item = self.observation.scene.items.get(id).ok_or_else(|| Error::UnknownKind(id.to_string()))?;
        let method = self.observation.history.apply_method(baseline);
        let patched = |source| Error::Patch { object: id.to_string(), source };
        let merge = item.merge(goal, baseline, method, self.options.force_conflicts).map_err(patched)?;
        let Some((body, merge)) = merge else { return Ok(()) };
        let place = Place { id, resource: &item.resource };
        place.write(&self.client.wire, &body, &merge, &self.observation.manager, WriteMode::Real, stop).await?;
        Ok(())
    }

    async fn delete_objects(&self, stop: &Stop) -> Result<(), Error> {
        let uids: BTreeMap<_, _> = self.plan.deletes.iter().map(|d| (&d.object, d.uid.as_str())).collect();
        let order = self.observation.scene.in_uninstall_order(uids.keys().copied());
        let total = order.len();
        let mut gone = Vec::new();
        for (done, id) in order.iter().enumerate() {
            stop.check()?;
            let (Some(uid), Some(resource)) = (uids.get(id), self.observation.scene.resource(id)) else { continue };
            let place = Place { id, resource };
            place.delete(&self.client.wire, uid, stop).await?;
            gone.push((place, *uid));
            self.events.event(&Event::Objects { done: done + 1, total });
        }
        self.await_gone(gone, stop).await
    }

    /// What is recreated later must really be gone before; a finalizer can take its time.
    async fn await_gone(&self, mut left: Vec<(Place<'_>, &str)>, stop: &Stop) -> Result<(), Error> {
        let limit = stop.within(self.options.timeout);
        let mut pause = FIRST_PAUSE;
        loop {
            let looks = left.iter().map(|(place, uid)| self.is_there(place, uid, stop));
            let there = cluster::all(looks.collect()).await?;
            let mut flags = there.into_iter();
            left.retain(|_| flags.next().unwrap_or(false));
            if left.is_empty() || !self.options.wait {
                return Ok(());
            }
            stop.check()?;
            if limit.run(tokio::time::sleep(pause)).await.is_err() {
                stop.check()?;
                let names: Vec<_> = left.iter().map(|(place, _)| place.id.to_string()).collect();
                return Err(Error::NotGone(names.join(", ")));
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Workloads only: a claim may stay pending for good reasons.
    async fn await_ready(&self, revision: Revision, stop: &Stop) -> Result<(), Error> {
        let scene = &self.observation.scene;
        let listed = scene.items.iter().filter(|(_, item)| item.bodies.contains_key(&revision));
        let workloads = listed.filter(|(id, _)| readiness::is_workload(&id.group, &id.kind));
        let mut left: Vec<_> = workloads.map(|(id, item)| Place { id, resource: &item.resource }).collect();
        let total = left.len();
        let limit = stop.within(self.options.timeout);
        let mut pause = FIRST_PAUSE;
        while !left.is_empty() {
            let whys = cluster::all(left.iter().map(|place| self.unready(place, stop)).collect()).await?;
            let mut flags = whys.iter();
            left.retain(|_| flags.next().is_some_and(Option::is_some));
            let waiting_for: Vec<_> = whys.into_iter().flatten().collect();
            self.events.event(&Event::Ready { ready: total - left.len(), total, waiting_for: &waiting_for });
            if left.is_empty() {
                break;
            }
            if limit.run(tokio::time::sleep(pause)).await.is_err() {
                stop.check()?;
                return Err(Error::NotReady(waiting_for.join(", ")));
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(())
    }

    async fn is_there(&self, place: &Place<'_>, uid: &str, stop: &Stop) -> Result<bool, Error> {
        let found = place.get(&self.client.wire, stop).await?;
        Ok(found.is_some_and(|object| object["metadata"]["uid"] == uid))
    }

    /// Why an object is not ready; `None` if it is.
    async fn unready(&self, place: &Place<'_>, stop: &Stop) -> Result<Option<String>, Error> {
        let found = place.get(&self.client.wire, stop).await?;
        Ok(unready(place.id, found.as_ref()))
    }

    /// Closes the record that this run opened, with a fresh short deadline of its own.
    async fn settle(&mut self, error: &Error, report: &mut Report) {
        let Some(revision) = self.open else { return };
        let text = format!("Interrupted rollback: {}", error.one_line());
        let stop = Stop::never().within(SETTLE);
        match self.close(revision, Status::Failed, &text, &stop).await {
            Ok(()) => report.settled = Some(revision),
            Err(why) => report.unsettled = Some(format!("record {revision} is still pending: {}", why.one_line())),
        }
    }
}

fn unready(id: &ObjectId, found: Option<&Value>) -> Option<String> {
    match found.map_or(Readiness::NotFound, |object| readiness::readiness(object, Utc::now())) {
        Readiness::Current => None,
        Readiness::InProgress { why } | Readiness::Failed { why } => Some(format!("{id} ({why})")),
        Readiness::Terminating => Some(format!("{id} (being deleted)")),
        Readiness::NotFound => Some(format!("{id} (missing)")),
        Readiness::Unknown => Some(format!("{id} (unknown)")),
    }
}
