//! Brings a release back to what a backup says of it: plans like a repair, compares before it writes, and saves first.
//!
//! # Guarantees
//! Every record write carries the resourceVersion that was read, every delete the UID, every change of an object its
//! resourceVersion. What is already as it was is not written. A run that was stopped or killed is completed by the next.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::backup::{keep, unchanged};
use super::error::{Error, Unusable};
use super::observe::{self, Site};
use super::report::{Event, Events, Outcome, StepReport};
use super::{Client, preflight};
use crate::backup::{
    Absent, Action, Backup, Creation, Here, Home, Next, RestorePlan, RestoreStep, Run, Sameness, SavedRelease, Words,
    decide, identity, next,
};
use crate::cluster::{self, Kinds, Merge, Permission, Place, Requests, Resource, Stop, WriteMode};
use crate::manifest::ObjectId;
use crate::patch::Patch;
use crate::release::{Entry, History, Namespace, RecordKey, ReleaseName, Revision, Status};
use crate::storage::{self, Detail, DriverKind, NewRecord, Record, stored_record};

/// How often an object is looked at again because something else wrote it in between.
const ATTEMPTS: usize = 8;

/// What a person allows a restore.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreOptions {
    /// Restore into a namespace that is not the one that was saved, but has its name.
    pub elsewhere: bool,
}

/// A restore that was planned, and what it was planned from.
#[derive(Clone)]
pub struct PlannedRestore {
    /// The plan.
    pub plan: RestorePlan,
    /// Permissions that it needs and this identity lacks; each is a refusal too.
    pub missing: Vec<Permission>,
    /// Who lacks them, as the server knows this identity; asked only where something is missing.
    pub identity: Option<String>,
    client: Client,
    saved: SavedRelease,
    /// The saved records: as they were stored, and read.
    stored: Vec<Record>,
    before: History,
    here: Here,
    resources: BTreeMap<ObjectId, Resource>,
    now: DateTime<Utc>,
}

/// What a restore did to one release.
#[derive(Debug)]
pub struct RestoreReport {
    /// Where its records are.
    pub namespace: Namespace,
    /// Which release.
    pub name: ReleaseName,
    /// How it ended.
    pub outcome: Outcome,
    /// The plan that was run.
    pub plan: RestorePlan,
    /// The steps that were begun.
    pub steps: Vec<StepReport<RestoreStep>>,
    /// What was sent, planning included.
    pub requests: Requests,
    /// Where what was there before is kept.
    pub backup: Option<PathBuf>,
    /// Why it ended, if it did not go through.
    pub error: Option<Error>,
}

impl Client {
    /// How one release of a backup would be restored. Reads only; what would fail shows in the plan.
    ///
    /// The namespace and the driver are those of the backup, whatever this client's are.
    ///
    /// # Errors
    /// A read failed, or the backup makes no sense.
    pub async fn plan_restore(
        &self,
        taken: DateTime<Utc>,
        saved: &SavedRelease,
        options: &RestoreOptions,
        stop: &Stop,
    ) -> Result<PlannedRestore, Error> {
        let unusable = |source| Error::Backup { name: saved.name.clone(), source };
        let driver: DriverKind = saved.driver.parse().map_err(|why| unusable(Unusable::Driver(why)))?;
        let client = Self::over(self.wire.recount(), saved.namespace.clone(), driver);
        let stored = saved.records.iter().map(|object| stored_record(driver, object.clone()));
        let stored: Vec<Record> = stored.collect::<Result<_, _>>().map_err(|why| unusable(Unusable::Record(why)))?;
        let before = storage::history(&saved.namespace, &saved.name, stored.clone());
        let (here, resources, now) = client.see(saved, options, stop).await?;
        let plan = decide(saved, taken, &before, &here);
        let saved = saved.clone();
        let mut planned = PlannedRestore {
            plan,
            missing: Vec::new(),
            identity: None,
            client,
            saved,
            stored,
            before,
            here,
            resources,
            now,
        };
        planned.check(stop).await?;
        Ok(planned)
    }

    /// Runs a restore that was planned.
    ///
    /// # Guarantees
    /// Nothing is written if the records are no longer those that the plan was made from, or if what is there now cannot be
    /// kept. After the return no request is under way.
    pub async fn restore(&self, planned: &PlannedRestore, stop: &Stop, events: &dyn Events) -> RestoreReport {
        planned.run(stop, events).await
    }

    async fn see(
        &self,
        saved: &SavedRelease,
        options: &RestoreOptions,
        stop: &Stop,
    ) -> Result<(Here, BTreeMap<ObjectId, Resource>, DateTime<Utc>), Error> {
        let read = self.storage.history(&saved.namespace, &saved.name, stop).await?;
        let site = observe::site(&self.wire, &saved.namespace, stop).await?;
        let (resources, unserved) = self.serve(saved, stop).await?;
        let reads = resources.iter().map(|(id, resource)| self.live(id, resource, stop)).collect();
        let live = resources.keys().cloned().zip(cluster::all(reads).await?).collect();
        let here = Here {
            history: read.history,
            home: home(&site),
            sameness: sameness(saved, &site, options),
            live,
            unserved,
        };
        Ok((here, resources, read.date.unwrap_or_else(Utc::now)))
    }

    /// How the objects of a backup are served, and those that are not.
    async fn serve(
        &self,
        saved: &SavedRelease,
        stop: &Stop,
    ) -> Result<(BTreeMap<ObjectId, Resource>, BTreeSet<ObjectId>), Error> {
        let version = |object: &Value| object["apiVersion"].as_str().unwrap_or_default().to_owned();
        let live = saved.objects.iter().map(|object| (identity(object), version(object)));
        let absent = saved.absent.iter().map(|absent| (absent.object.clone(), absent.api_version.clone()));
        let wanted: BTreeMap<ObjectId, String> = live.chain(absent).collect();
        let kinds = Kinds::discover(&self.wire, &wanted.values().cloned().collect(), stop).await?;
        let (mut served, mut unserved) = (BTreeMap::new(), BTreeSet::new());
        for (id, version) in wanted {
            match kinds.get(&version, &id.kind) {
                Some(resource) => drop(served.insert(id, resource.clone())),
                None => drop(unserved.insert(id)),
            }
        }
        Ok((served, unserved))
    }

    async fn live(&self, id: &ObjectId, resource: &Resource, stop: &Stop) -> Result<Option<Value>, Error> {
        Ok(Place { id, resource }.get(&self.wire, stop).await?)
    }
}

fn home(site: &Site) -> Home {
    match site {
        Site::Missing => Home::Missing,
        Site::There(_) if site.is_going() => Home::Terminating,
        Site::There(_) | Site::Hidden => Home::Open,
    }
}

fn sameness(saved: &SavedRelease, site: &Site, options: &RestoreOptions) -> Sameness {
    let differ = saved.namespace_uid.as_ref().zip(site.uid().as_ref()).is_some_and(|(was, is)| was != is);
    if differ && !options.elsewhere { Sameness::Another } else { Sameness::Taken }
}

impl PlannedRestore {
    /// Permissions, and a dry run of every write of an object. What the server would refuse is named as lost.
    async fn check(&mut self, stop: &Stop) -> Result<(), Error> {
        if !self.plan.acts() {
            return Ok(());
        }
        self.missing = preflight::missing(&self.client.wire, self.needed(), stop).await?;
        for permission in &self.missing {
            self.plan.refuse(preflight::lacks(permission), None);
        }
        if !self.missing.is_empty() {
            self.identity = cluster::identity(&self.client.wire, stop).await?;
            self.plan.steps.clear();
            return Ok(());
        }
        let tries = self.plan.steps.iter().map(|step| self.attempt(step, stop)).collect();
        let answers: Vec<Option<String>> = cluster::all(tries).await?;
        let steps = std::mem::take(&mut self.plan.steps);
        for (step, refused) in steps.into_iter().zip(answers) {
            match (refused, &step) {
                (Some(why), RestoreStep::WriteObject { object, .. }) => {
                    self.plan.lose(object, format!("the server would refuse it: {why}"));
                }
                _ => self.plan.steps.push(step),
            }
        }
        Ok(())
    }

    /// What the server would say against the first write of an object.
    async fn attempt(&self, step: &RestoreStep, stop: &Stop) -> Result<Option<String>, Error> {
        let RestoreStep::WriteObject { object: id, .. } = step else { return Ok(None) };
        let (Some(saved), Some(resource)) = (self.object(id), self.resources.get(id)) else { return Ok(None) };
        let live = self.here.live.get(id).and_then(Option::as_ref);
        let Some((body, merge)) = write(id, saved, live)? else { return Ok(None) };
        let place = Place { id, resource };
        match place.write(&self.client.wire, &body, &merge, &self.saved.manager, WriteMode::DryRun, stop).await {
            Ok(_) => Ok(None),
            Err(error) if error.is_conflict() || preflight::admits_anything(&error.cause) => Ok(None),
            Err(error) if error.code().is_some_and(|code| (400..500).contains(&code)) => {
                Ok(Some(error.cause.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn needed(&self) -> BTreeSet<Permission> {
        let records = preflight::records_of(self.client.driver);
        let of_object = |verb: &str, id: &ObjectId| {
            let resource = self.resources.get(id);
            let namespace = id.namespace.clone().unwrap_or_default();
            resource.map(|resource| preflight::permission(verb, resource.group(), &resource.plural, &namespace))
        };
        let of_record = |verb: &str| Some(preflight::permission(verb, "", records, self.plan.namespace.as_str()));
        let needs = self.plan.steps.iter().flat_map(|step| match step {
            RestoreStep::CreateRecord { .. } => vec![of_record("create")],
            RestoreStep::CloseRecord { .. } => vec![of_record("get"), of_record("update")],
            RestoreStep::DeleteRecord { .. } => vec![of_record("delete")],
            RestoreStep::WriteObject { object, action: Action::Create } => {
                vec![of_object("create", object), of_object("patch", object)]
            }
            RestoreStep::WriteObject { object, action: Action::Update } => vec![of_object("patch", object)],
            RestoreStep::DeleteObject { object, .. } => vec![of_object("delete", object)],
        });
        needs.flatten().collect()
    }

    /// A saved record as it was stored.
    fn record(&self, key: &str) -> Option<&Record> {
        self.stored.iter().find(|record| record.stored.key == key)
    }

    fn object(&self, id: &ObjectId) -> Option<&Value> {
        self.saved.objects.iter().find(|object| identity(object) == *id)
    }

    async fn run(&self, stop: &Stop, events: &dyn Events) -> RestoreReport {
        let mut report = RestoreReport {
            namespace: self.plan.namespace.clone(),
            name: self.plan.name.clone(),
            outcome: if self.plan.refusals.is_empty() { Outcome::NothingToDo } else { Outcome::Refused },
            plan: self.plan.clone(),
            steps: Vec::new(),
            requests: Requests::default(),
            backup: None,
            error: None,
        };
        if self.plan.acts() {
            match self.guarded(stop, events, &mut report).await {
                Ok(outcome) => report.outcome = outcome,
                Err(error) if error.is_conflict() && report.steps.len() <= 1 => report.outcome = Outcome::Changed,
                Err(error) => {
                    report.outcome = if error.is_stopped() { Outcome::Cancelled } else { Outcome::Failed };
                    report.error = Some(error);
                }
            }
        }
        report.requests = self.client.requests();
        report
    }

    /// The steps, once what they change is kept.
    async fn guarded(&self, stop: &Stop, events: &dyn Events, report: &mut RestoreReport) -> Result<Outcome, Error> {
        let known = self.here.history.entries();
        let Some(records) = unchanged(&self.client, &self.plan.name, &self.plan.namespace, known, stop).await? else {
            return Ok(Outcome::Changed);
        };
        report.backup = self.keep(records, stop, events).await?;
        let place = |entry: &Entry| {
            let record = Record {
                namespace: self.plan.namespace.to_string(),
                stored: entry.stored.clone(),
                body: None,
                object: None,
            };
            (entry.revision, record)
        };
        let mut runner = Runner { planned: self, records: known.iter().map(place).collect(), closing: false };
        for step in &self.plan.steps {
            events.event(&Event::Restoring { step });
            let begun = Instant::now();
            let result = match stop.check() {
                Ok(()) => runner.step(step, stop).await,
                Err(stopped) => Err(stopped.into()),
            };
            let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            let error = result.as_ref().err().map(Error::one_line);
            report.steps.push(StepReport { step: step.clone(), error, ms });
            result?;
        }
        Ok(Outcome::Restored)
    }

    /// Saves what this restore changes, so that it can be undone in its turn.
    async fn keep(&self, records: Vec<Record>, stop: &Stop, events: &dyn Events) -> Result<Option<PathBuf>, Error> {
        let blank = self.client.saved(&self.plan.name, self.saved.manager.clone(), records, stop).await?;
        let mut release = SavedRelease { run: Some(self.as_run()), ..blank };
        for step in &self.plan.steps {
            let (RestoreStep::WriteObject { object: id, .. } | RestoreStep::DeleteObject { object: id, .. }) = step
            else {
                continue;
            };
            match (self.here.live.get(id).and_then(Option::as_ref), self.resources.get(id)) {
                (Some(live), _) => release.objects.push(live.clone()),
                (None, Some(resource)) => {
                    let api_version = resource.api_version.clone();
                    release.absent.push(Absent { api_version, object: id.clone() });
                }
                (None, None) => {}
            }
        }
        keep(Backup::new(self.now, vec![release]), events)
    }

    fn as_run(&self) -> Run {
        let undoes = self.saved.run.as_ref().map(|run| format!("restore that undid a {}", run.what));
        let what = undoes.unwrap_or_else(|| "restore of a backup".into());
        let mut run = Run { what, closes: Vec::new(), creates: Vec::new(), deletes: Vec::new() };
        let key = |revision: &Revision| {
            let entry = self.here.history.get(*revision).or_else(|| self.before.get(*revision));
            entry.map_or_else(|| self.before.key(*revision).to_string(), |entry| entry.stored.key.clone())
        };
        for step in &self.plan.steps {
            match step {
                RestoreStep::CreateRecord { revision, .. } => {
                    let release = self.before.get(*revision).and_then(Entry::release);
                    let last_deployed = release.and_then(|release| release.info().last_deployed);
                    run.creates.push(Creation { key: key(revision), last_deployed });
                }
                RestoreStep::CloseRecord { revision, status, description } => run.closes.push(Words {
                    key: key(revision),
                    status: status.0.to_string(),
                    description: description.clone(),
                }),
                RestoreStep::DeleteRecord { revision } => run.deletes.push(key(revision)),
                RestoreStep::WriteObject { .. } | RestoreStep::DeleteObject { .. } => {}
            }
        }
        run
    }
}

/// A restore that is under way.
struct Runner<'a> {
    planned: &'a PlannedRestore,
    /// The records as they are now.
    records: BTreeMap<Revision, Record>,
    /// Whether the records have been looked at again since the objects were written.
    closing: bool,
}

impl Runner<'_> {
    async fn step(&mut self, step: &RestoreStep, stop: &Stop) -> Result<(), Error> {
        match step {
            RestoreStep::CreateRecord { revision, status, description } => {
                self.create(*revision, &status.0, description, stop).await
            }
            RestoreStep::WriteObject { object, .. } => self.write(object, stop).await,
            RestoreStep::DeleteObject { object, uid, .. } => self.delete(object, uid, stop).await,
            RestoreStep::CloseRecord { revision, status, description } => {
                self.nobody_else_went_on(stop).await?;
                self.close(*revision, &status.0, description, stop).await
            }
            RestoreStep::DeleteRecord { revision } => {
                self.nobody_else_went_on(stop).await?;
                let seen = self.records.remove(revision).ok_or(Error::NoRecord(*revision))?;
                Ok(self.planned.client.storage.driver().delete(&seen, stop).await?)
            }
        }
    }

    /// Creating a record is the lock: whoever was faster has the release.
    async fn create(
        &mut self,
        revision: Revision,
        status: &Status,
        description: &str,
        stop: &Stop,
    ) -> Result<(), Error> {
        let PlannedRestore { client, before, .. } = self.planned;
        let entry = before.get(revision).ok_or(Error::NoRecord(revision))?;
        let body = self.body(revision, status, description, stop).await?;
        let mut labels = entry.stored.labels.clone();
        labels.extend(told(revision, status));
        for (label, value) in [("name", before.name.as_str()), ("owner", "helm")] {
            labels.entry(label.into()).or_insert_with(|| value.into());
        }
        let notes = self.planned.record(&entry.stored.key).and_then(|record| record.object.as_ref());
        let notes = notes.and_then(|object| serde_json::from_value(object["metadata"]["annotations"].clone()).ok());
        let new = NewRecord { key: before.key(revision), labels, annotations: notes.unwrap_or_default(), body };
        let created = client.storage.driver().create(&before.namespace, &new, stop).await?;
        self.records.insert(revision, created);
        Ok(())
    }

    async fn close(
        &mut self,
        revision: Revision,
        status: &Status,
        description: &str,
        stop: &Stop,
    ) -> Result<(), Error> {
        let seen = self.records.get(&revision).ok_or(Error::NoRecord(revision))?;
        let body = self.body(revision, status, description, stop).await?;
        let driver = self.planned.client.storage.driver();
        let written = driver.update(seen, &told(revision, status), Some(&body), stop).await?;
        self.records.insert(revision, written);
        Ok(())
    }

    /// The text of a record: as it was stored, unless its words have to change.
    async fn body(&self, revision: Revision, status: &Status, description: &str, stop: &Stop) -> Result<String, Error> {
        let entry = self.planned.before.get(revision).ok_or(Error::NoRecord(revision))?;
        let release = entry.release().ok_or(Error::NoRecord(revision))?;
        if release.status() == status
            && release.info().description == description
            && let Some(body) = self.planned.record(&entry.stored.key).and_then(|record| record.body.clone())
            && let Ok(text) = String::from_utf8(body)
        {
            return Ok(text);
        }
        let changed = release.with_status(status.clone(), description);
        let changed = changed.map_err(|source| Error::Payload { revision, source })?;
        Ok(storage::encode(&entry.stored.key, &changed, stop).await?)
    }

    /// Before the first record is closed: whoever began an operation meanwhile stands on these records.
    async fn nobody_else_went_on(&mut self, stop: &Stop) -> Result<(), Error> {
        if self.closing {
            return Ok(());
        }
        let PlannedRestore { client, before, .. } = self.planned;
        let now = client.storage.records(&before.namespace, &before.name, Detail::Metadata, stop).await?.records;
        let mark = |record: &Record| {
            let stored = &record.stored;
            (stored.key.clone(), (stored.uid.clone(), stored.resource_version.clone()))
        };
        let now: BTreeMap<_, _> = now.iter().map(mark).collect();
        let known: BTreeMap<_, _> = self.records.values().map(mark).collect();
        // A copy under another name counts for nobody.
        let counts = |key: &str| key.parse::<RecordKey>().is_ok_and(|key| key.name == before.name);
        let strange = now.iter().find(|(key, mark)| counts(key) && known.get(*key) != Some(*mark));
        let gone = known.keys().find(|key| !now.contains_key(*key));
        match strange.map(|(key, _)| key).or(gone) {
            Some(key) => Err(storage::Error::Conflict { key: key.clone() }.into()),
            None => {
                self.closing = true;
                Ok(())
            }
        }
    }

    /// Looks, decides, writes, and looks at what that left: until the object is what it was.
    async fn write(&self, id: &ObjectId, stop: &Stop) -> Result<(), Error> {
        let PlannedRestore { client, saved, here, resources, .. } = self.planned;
        let object = self.planned.object(id).ok_or_else(|| Error::UnknownKind(id.to_string()))?;
        let resource = resources.get(id).ok_or_else(|| Error::UnknownKind(id.to_string()))?;
        let place = Place { id, resource };
        let mut live = here.live.get(id).cloned().flatten();
        for _ in 0..ATTEMPTS {
            stop.check()?;
            if live.as_ref().is_some_and(|live| crate::backup::is_strange(object, live, &saved.manager)) {
                return Err(Error::Written(id.to_string()));
            }
            let Some((body, merge)) = write(id, object, live.as_ref())? else { return Ok(()) };
            live = match place.write(&client.wire, &body, &merge, &saved.manager, WriteMode::Real, stop).await {
                Ok(after) => Some(after),
                Err(error) if !error.is_stopped() && (error.is_conflict() || error.is_ambiguous()) => {
                    place.get(&client.wire, stop).await?
                }
                Err(error) => return Err(error.into()),
            };
        }
        Err(Error::Written(id.to_string()))
    }

    async fn delete(&self, id: &ObjectId, uid: &str, stop: &Stop) -> Result<(), Error> {
        let PlannedRestore { client, resources, .. } = self.planned;
        let resource = resources.get(id).ok_or_else(|| Error::UnknownKind(id.to_string()))?;
        Place { id, resource }.delete(&client.wire, uid, stop).await?;
        Ok(())
    }
}

/// The labels that follow from what a record says.
fn told(revision: Revision, status: &Status) -> BTreeMap<String, String> {
    [("status", status.to_string()), ("version", revision.to_string())]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
}

/// The next write that brings an object back; `None` if it is what it was.
fn write(id: &ObjectId, saved: &Value, live: Option<&Value>) -> Result<Option<(Value, Merge)>, Error> {
    let next = next(saved, live).map_err(|source| Error::Patch { object: id.to_string(), source })?;
    Ok(match next {
        Next::Nothing => None,
        Next::Create(body) => Some((body, Merge::Create)),
        Next::Patch(Patch::Strategic { body, .. }) => Some((Value::Null, Merge::Strategic(body))),
        Next::Patch(Patch::Merge { body }) => Some((Value::Null, Merge::Json(body))),
        Next::Managers(operations) => Some((Value::Null, Merge::Operations(operations))),
    })
}
