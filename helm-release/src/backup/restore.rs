//! From a backup and from what is there now to the way back. Total: what cannot come back is named, each with its reason.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::content::{Next, birth, identity, irretrievable, next, stranger};
use super::goal::{Goal, Trace, goal, is_creation, trace};
use super::{Absent, SavedRelease};
use crate::manifest::{Object, ObjectId, is_kept, sort_for_install, sort_for_uninstall};
use crate::plan::{Marks, Owner, Refusal, StatusWord, is_guarded_kind};
use crate::release::{Entry, History, Namespace, Release, ReleaseName, Revision, Status};

/// What is there now, of all that a backup speaks of.
#[derive(Debug, Clone)]
pub struct Here {
    /// The records.
    pub history: History,
    /// The namespace.
    pub home: Home,
    /// Whether it is the namespace that was saved.
    pub sameness: Sameness,
    /// The objects, and `None` for each that does not exist.
    pub live: BTreeMap<ObjectId, Option<Value>>,
    /// Objects whose kind the server does not serve.
    pub unserved: BTreeSet<ObjectId>,
}

/// The namespace of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// It is there, or may not be read.
    Open,
    /// It is being deleted.
    Terminating,
    /// It does not exist.
    Missing,
}

/// Whether a namespace is the one that was saved, by its UID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sameness {
    /// It is, or nothing shows that it is not, or a person has said that it does not matter.
    Taken,
    /// It is another of the same name.
    Another,
}

/// How a release is brought back to what was saved of it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestorePlan {
    /// Where its records are.
    pub namespace: Namespace,
    /// Which release.
    pub name: ReleaseName,
    /// When the backup was made.
    pub taken: DateTime<Utc>,
    /// The run that the backup was made for, and that is undone; `None` if it was made by hand.
    pub undoes: Option<String>,
    /// What is done, in this order.
    pub steps: Vec<RestoreStep>,
    /// What is already as it was.
    pub equal: Vec<String>,
    /// What cannot come back as it was.
    pub lost: Vec<Lost>,
    /// Why nothing is done, and which flag would change that.
    pub refusals: Vec<Refusal>,
}

/// Something that cannot come back as it was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Lost {
    /// A record or an object.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// One step of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "step")]
pub enum RestoreStep {
    /// Create a record that is gone.
    CreateRecord {
        /// Which.
        revision: Revision,
        /// What it says of itself.
        status: StatusWord,
        /// Its description.
        description: String,
    },
    /// Make an object what it was.
    WriteObject {
        /// Which.
        object: ObjectId,
        /// Whether it exists.
        action: Action,
    },
    /// Delete an object that the run made.
    DeleteObject {
        /// Which.
        object: ObjectId,
        /// Its UID: no other object of that name is deleted.
        uid: String,
        /// What proves that it may go.
        proof: String,
    },
    /// Change a record's status and description.
    CloseRecord {
        /// Which.
        revision: Revision,
        /// Its status.
        status: StatusWord,
        /// Its description.
        description: String,
    },
    /// Delete a record that the run made.
    DeleteRecord {
        /// Which.
        revision: Revision,
    },
}

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It is gone: it is made again.
    Create,
    /// It differs: it is changed back.
    Update,
}

/// The way back from `here` to what was saved. `before` are the saved records, read.
///
/// # Guarantees
/// Nothing is done where a record or the namespace is not what the run that is undone left. An object is written only if it
/// is this release's and nobody else has written it since; one that is deleted was made by that run.
#[must_use]
pub fn decide(saved: &SavedRelease, taken: DateTime<Utc>, before: &History, here: &Here) -> RestorePlan {
    let mut plan = RestorePlan {
        namespace: saved.namespace.clone(),
        name: saved.name.clone(),
        taken,
        undoes: saved.run.as_ref().map(|run| run.what.clone()),
        steps: Vec::new(),
        equal: Vec::new(),
        lost: Vec::new(),
        refusals: Vec::new(),
    };
    place(&mut plan, saved, here);
    let (creates, closes) = records(&mut plan, saved, before, here);
    let deletes = creations(&mut plan, saved, before, here);
    plan.steps.extend(creates);
    objects(&mut plan, saved, here);
    absent(&mut plan, saved, taken, here);
    // A pending record that nobody has touched is left alone unless something of the run is undone.
    let undone = !plan.steps.is_empty() || !deletes.is_empty();
    plan.steps.extend(closes.into_iter().filter(|close| close.touched || undone).map(|close| close.step));
    plan.steps.extend(deletes);
    plan.lost.sort();
    if !plan.refusals.is_empty() {
        plan.steps.clear();
    }
    plan
}

impl RestorePlan {
    /// Whether running it writes something.
    #[must_use]
    pub fn acts(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Nothing is done, for this reason.
    pub fn refuse(&mut self, reason: impl Into<String>, flag: Option<&str>) {
        self.refusals.push(Refusal { reason: reason.into(), flag: flag.map(Into::into) });
    }

    pub(crate) fn lose(&mut self, what: impl ToString, reason: impl Into<String>) {
        self.lost.push(Lost { what: what.to_string(), reason: reason.into() });
    }
}

fn place(plan: &mut RestorePlan, saved: &SavedRelease, here: &Here) {
    let namespace = &saved.namespace;
    match here.home {
        Home::Missing => plan.refuse(format!("namespace {namespace} does not exist: create it first"), None),
        Home::Terminating => {
            plan.refuse(format!("namespace {namespace} is being deleted: nothing can be created in it"), None);
        }
        Home::Open if here.sameness == Sameness::Another => {
            let reason = format!(
                "namespace {namespace} is not the one that was saved: it was made anew, or is another cluster's"
            );
            plan.refuse(reason, Some("--elsewhere"));
        }
        Home::Open => {}
    }
    let pending = here.history.last().and_then(Entry::status).is_some_and(Status::is_pending);
    if saved.run.is_none() && pending {
        plan.refuse("its newest record is pending: somebody may be at work, or it has to be repaired first", None);
    }
}

struct Close {
    step: RestoreStep,
    /// Whether the record is not as it was saved.
    touched: bool,
}

/// The records that are to be created, lowest first, and to be changed: the deployed one first, so that there always is one.
fn records(
    plan: &mut RestorePlan,
    saved: &SavedRelease,
    before: &History,
    here: &Here,
) -> (Vec<RestoreStep>, Vec<Close>) {
    let (mut creates, mut closes) = (Vec::new(), Vec::new());
    for entry in before.entries() {
        let revision = entry.revision;
        let found = here.history.entries().iter().find(|found| found.stored.key == entry.stored.key);
        let trace = trace(saved, before, entry, &here.history);
        if let Trace::Strange(why) = trace {
            plan.refuse(why, None);
            continue;
        }
        let now = found.and_then(Entry::release);
        let Some(Goal { status, description, lost }) = goal(before, entry, now) else {
            if trace == Trace::Gone {
                plan.lose(
                    named(revision),
                    "it cannot be read, and a Helm would stumble over it: only the backup keeps it",
                );
            }
            continue;
        };
        lost.into_iter().for_each(|reason| plan.lose(named(revision), reason));
        labels(plan, entry, found);
        let word = StatusWord(status.clone());
        match now {
            None => creates.push(RestoreStep::CreateRecord { revision, status: word, description }),
            Some(now) if says(now, &status, &description) => plan.equal.push(named(revision)),
            Some(now) => {
                let touched = entry.release().is_none_or(|was| !says(now, was.status(), &was.info().description));
                closes.push(Close { step: RestoreStep::CloseRecord { revision, status: word, description }, touched });
            }
        }
    }
    closes.sort_by_key(|close| match &close.step {
        RestoreStep::CloseRecord { status, .. } => status.0 != Status::Deployed,
        RestoreStep::CreateRecord { .. }
        | RestoreStep::WriteObject { .. }
        | RestoreStep::DeleteObject { .. }
        | RestoreStep::DeleteRecord { .. } => true,
    });
    (creates, closes)
}

/// Labels that lied are not made to lie again.
fn labels(plan: &mut RestorePlan, entry: &Entry, found: Option<&Entry>) {
    let Some(release) = entry.release() else { return };
    let label = |entry: &Entry, key: &str| entry.stored.labels.get(key).cloned().unwrap_or_default();
    let lied =
        label(entry, "status") != release.status().as_str() || label(entry, "version") != entry.revision.to_string();
    if lied && found.is_none_or(|found| found.stored.labels != entry.stored.labels) {
        plan.lose(named(entry.revision), "its labels did not say what it holds, and are not made to lie again");
    }
}

fn says(release: &Release, status: &Status, description: &str) -> bool {
    release.status() == status && release.info().description == description
}

/// The records that were not saved: the run made them, or somebody has gone on since.
fn creations(plan: &mut RestorePlan, saved: &SavedRelease, before: &History, here: &Here) -> Vec<RestoreStep> {
    let mut deletes = Vec::new();
    let known: BTreeSet<&str> = before.entries().iter().map(|entry| entry.stored.key.as_str()).collect();
    for entry in here.history.entries().iter().filter(|entry| !known.contains(entry.stored.key.as_str())) {
        let revision = entry.revision;
        if is_creation(saved.run.as_ref(), entry) {
            deletes.push(RestoreStep::DeleteRecord { revision });
        } else {
            let reason = format!("record {revision} was made since, by somebody else: going back would undo that too");
            plan.refuse(reason, None);
        }
    }
    deletes
}

fn objects(plan: &mut RestorePlan, saved: &SavedRelease, here: &Here) {
    let mut writes = Vec::new();
    for object in &saved.objects {
        let id = identity(object);
        if here.unserved.contains(&id) {
            plan.lose(&id, "the server does not serve its kind");
            continue;
        }
        match here.live.get(&id).and_then(Option::as_ref) {
            None => match irretrievable(object).or_else(|| foreign(object, saved)) {
                Some(reason) => plan.lose(&id, reason),
                None => {
                    plan.lose(&id, "it comes back as a new object, with another UID");
                    writes.push((placed(&id, object), Action::Create));
                }
            },
            Some(live) => judge(plan, saved, &id, object, live, &mut writes),
        }
    }
    let mut order: Vec<Object> = writes.iter().map(|(object, _)| object.clone()).collect();
    sort_for_install(&mut order);
    let actions: BTreeMap<ObjectId, Action> = writes.into_iter().map(|(object, action)| (object.id, action)).collect();
    let steps = order.into_iter().filter_map(|object| {
        let action = *actions.get(&object.id)?;
        Some(RestoreStep::WriteObject { object: object.id, action })
    });
    plan.steps.extend(steps);
}

/// An object that is there: what it was, or to be changed, or somebody else's by now.
fn judge(
    plan: &mut RestorePlan,
    saved: &SavedRelease,
    id: &ObjectId,
    object: &Value,
    live: &Value,
    writes: &mut Vec<(Object, Action)>,
) {
    if live["metadata"]["deletionTimestamp"].is_string() {
        return plan.refuse(format!("{id} is being deleted: restore again once it is gone"), None);
    }
    if object["metadata"]["uid"] != live["metadata"]["uid"] {
        plan.lose(id, "it has come back as a new object, with another UID");
    }
    match next(object, Some(live)) {
        Ok(Next::Nothing) => return plan.equal.push(id.to_string()),
        Ok(Next::Create(_) | Next::Patch(_) | Next::Managers(_)) => {}
        Err(why) => return plan.lose(id, format!("no patch brings it back: {why}")),
    }
    match owner(live, saved) {
        Owner::Ours => {}
        Owner::Nobody => return plan.lose(id, "it carries nobody's marks by now: it is left as it is"),
        Owner::Other { namespace, name } => {
            return plan.lose(id, format!("it belongs to release {namespace}/{name} by now: it is left as it is"));
        }
    }
    if let Some(manager) = stranger(object, live, &saved.manager) {
        return plan.lose(id, format!("{manager} has written it since: it is left as it is"));
    }
    writes.push((placed(id, object), Action::Update));
}

/// Objects that the run made go again, with the guards that stand before every delete of a repair.
fn absent(plan: &mut RestorePlan, saved: &SavedRelease, taken: DateTime<Utc>, here: &Here) {
    let claims = here.live.iter().any(|(id, live)| id.kind == "PersistentVolumeClaim" && live.is_some());
    let mut deletes = Vec::new();
    for Absent { object: id, .. } in &saved.absent {
        let Some(live) = here.live.get(id).and_then(Option::as_ref) else {
            plan.equal.push(format!("{id} (absent)"));
            continue;
        };
        let (manager, created) = birth(live);
        let made =
            created.is_some_and(|at| at.timestamp() >= taken.timestamp()) && manager.as_ref() == Some(&saved.manager);
        let strange =
            live["metadata"]["managedFields"].as_array().map(|_| stranger(&Value::Null, live, &saved.manager));
        let kept = match (owner(live, saved), strange.flatten()) {
            (Owner::Ours, None) if !made => Some("the run did not make it".into()),
            (Owner::Ours, None) => guard(id, live, claims).map(str::to_owned),
            (Owner::Ours, Some(manager)) => Some(format!("{manager} has written it since")),
            (Owner::Nobody | Owner::Other { .. }, _) => Some("it is not this release's".into()),
        };
        match kept {
            Some(why) => plan.lose(id, format!("it did not exist, and is kept all the same: {why}")),
            None => deletes.push(placed(id, live)),
        }
    }
    sort_for_uninstall(&mut deletes);
    let uid = |object: &Object| object.value["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let proof = "our marks, and made by the run that is undone";
    plan.steps.extend(deletes.into_iter().map(|object| RestoreStep::DeleteObject {
        uid: uid(&object),
        object: object.id,
        proof: proof.into(),
    }));
}

fn guard(id: &ObjectId, live: &Value, claims: bool) -> Option<&'static str> {
    let going = live["metadata"]["deletionTimestamp"].is_string();
    let secret = id.group.is_empty() && id.kind == "Secret" && claims;
    match () {
        () if going => Some("it is being deleted already"),
        () if is_kept(live) => Some("its resource policy says keep"),
        () if is_guarded_kind(id) => Some("its kind is guarded: others depend on it"),
        () if secret => Some("a Secret beside a claim of this release: it may open its data"),
        () => None,
    }
}

fn foreign(object: &Value, saved: &SavedRelease) -> Option<&'static str> {
    (owner(object, saved) != Owner::Ours)
        .then_some("it did not carry this release's marks: who had it may make it again")
}

fn owner(live: &Value, saved: &SavedRelease) -> Owner {
    let note = |key: &str| live["metadata"]["annotations"][key].as_str();
    let marks = Marks {
        release_name: note("meta.helm.sh/release-name"),
        release_namespace: note("meta.helm.sh/release-namespace"),
    };
    Owner::read(marks, &saved.name, &saved.namespace)
}

fn placed(id: &ObjectId, value: &Value) -> Object {
    let api_version = value["apiVersion"].as_str().unwrap_or_default().to_owned();
    Object { id: id.clone(), api_version, value: value.clone(), source: None }
}

fn named(revision: Revision) -> String {
    format!("record {revision}")
}
