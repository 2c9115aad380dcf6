//! From a history to a plan: what state a release is in, and what to do about it. Pure: reads nothing, writes nothing.
//!
//! [`decide`] is total; waiting and refusing are answers. Dry run, log line, event, text and JSON print the same [`Plan`].

mod classify;
mod decide;
mod deletes;
mod evidence;
mod liveness;
mod obstacles;
mod policy;
mod steps;
mod target;
mod view;

pub use classify::{State, classify};
pub use decide::decide;
pub(crate) use deletes::is_guarded_kind;
pub use evidence::{
    Author, Deployer, Evidence, Finding, HookObject, HookPhase, Lease, Listed, Live, Marks, NamespacePhase, Owner, Seen,
};
pub use policy::{AssumeDead, Intent, Policy, Strategy};
pub(crate) use steps::operation;
pub use target::{Goal, Search, Skipped, Suspects, goal, rollback_target, target};

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::manifest::ObjectId;
use crate::release::{History, Namespace, ReleaseName, Revision, Status};

/// What would be done to one release, on what evidence. The value that every output prints.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Where the records are.
    pub namespace: Namespace,
    /// Which release.
    pub name: ReleaseName,
    /// What the release is.
    pub state: State,
    /// What is to be done about it.
    pub verdict: Verdict,
    /// The newest record.
    pub revision: Option<Revision>,
    /// The revision to go back to, if there is one.
    pub target: Option<Revision>,
    /// Another revision that `--to` could name: a pending rollback's own target.
    pub alternative: Option<Revision>,
    /// What the plan stands on.
    pub evidence: Vec<Finding>,
    /// What is done, in this order. Empty unless the verdict is to act.
    pub steps: Vec<Step>,
    /// Objects that an apply would change or create.
    pub changes: Vec<Change>,
    /// Objects that would be deleted, exactly these.
    pub deletes: Vec<Deletion>,
    /// Objects that a delete passes over, each with its reason.
    pub kept: Vec<Kept>,
    /// Candidates for the target that were passed over.
    pub skipped: Vec<Skipped>,
    /// Why nothing is done, and which flag would change that.
    pub refusals: Vec<Refusal>,
    /// What to wait for, if the verdict is to wait.
    pub wait: Option<Wait>,
}

/// What is to be done about a release, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing: a later install or upgrade is accepted.
    Nothing,
    /// Wait: somebody may be at work, or something is not over.
    Wait,
    /// Nothing without a person's word: see the refusals.
    Refuse,
    /// Rewrite labels, or supersede all `deployed` records but one; no object is touched.
    Tidy,
    /// Bring the record forward: the cluster already holds its manifest.
    Finish,
    /// Close the record with the outcome that Helm would have given it; its objects stay.
    Close,
    /// Go on with a rollback that was interrupted.
    Resume,
    /// Mark the interrupted record failed; no object is touched.
    Unlock,
    /// Go back to the target.
    Rollback,
    /// Remove what a first install left, and its record.
    Uninstall,
    /// Complete an interrupted uninstall.
    CompleteUninstall,
    /// Bring back what an interrupted uninstall began to remove.
    Restore,
    /// Export and delete exactly the record that cannot be read.
    Quarantine,
}

/// One step, in words that a person can check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "step")]
pub enum Step {
    /// Create the record of a rollback: the lock.
    CreateRollback {
        /// Its revision.
        revision: Revision,
        /// What it goes back to.
        target: Revision,
    },
    /// Change a record's status and description.
    Close {
        /// Which record.
        revision: Revision,
        /// Its new status.
        status: StatusWord,
        /// Its new description.
        description: String,
    },
    /// Rewrite the labels `status` and `version` from the payload.
    Relabel {
        /// Which record.
        revision: Revision,
    },
    /// Apply a revision's stored manifest.
    Apply {
        /// Whose manifest.
        revision: Revision,
        /// The revisions whose fields the merge may remove.
        baseline: Vec<Revision>,
    },
    /// Delete the objects listed in [`Plan::deletes`].
    DeleteObjects {
        /// How many.
        count: usize,
    },
    /// Wait until the workloads of a revision are ready.
    AwaitReady {
        /// Whose workloads.
        revision: Revision,
    },
    /// Delete one record.
    DeleteRecord {
        /// Which.
        revision: Revision,
    },
    /// Save one record, then delete it.
    Quarantine {
        /// Which.
        revision: Revision,
    },
}

/// A status as a word of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusWord(pub Status);

/// An object that an apply would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Which.
    pub object: ObjectId,
    /// Whether it exists already.
    pub action: ChangeAction,
}

/// What an apply would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeAction {
    /// It does not exist.
    Create,
    /// It exists and differs.
    Update,
}

/// An object that would be deleted, and the proof that it may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// Which.
    pub object: ObjectId,
    /// Its UID: no other object of that name is deleted.
    pub uid: String,
    /// What proves that it may go.
    pub proof: String,
}

/// An object that a delete passes over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// Which.
    pub object: ObjectId,
    /// Why.
    pub reason: String,
    /// The flag that would delete it, if there is one.
    pub flag: Option<String>,
}

/// Why nothing is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// Why.
    pub reason: String,
    /// The flag that goes on all the same, if there is one.
    pub flag: Option<String>,
}

/// What to wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// For what.
    pub reason: String,
    /// Until when at the latest, where that is known; then look again.
    pub until: Option<DateTime<Utc>>,
    /// Whether it is the author who may be alive: the kind of wait that `--assume-dead` ends.
    pub author: bool,
}

impl Plan {
    /// Whether the release is stuck: something is to be done, waited for, or decided.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.verdict != Verdict::Nothing
    }

    /// The revision whose manifest the plan applies, and the baseline of the merge.
    #[must_use]
    pub fn applies(&self) -> Option<(Revision, &[Revision])> {
        self.steps.iter().find_map(|step| match step {
            Step::Apply { revision, baseline } => Some((*revision, baseline.as_slice())),
            Step::CreateRollback { .. }
            | Step::Close { .. }
            | Step::Relabel { .. }
            | Step::DeleteObjects { .. }
            | Step::AwaitReady { .. }
            | Step::DeleteRecord { .. }
            | Step::Quarantine { .. } => None,
        })
    }

    /// Whether running the plan writes something.
    #[must_use]
    pub fn acts(&self) -> bool {
        !self.steps.is_empty()
    }
}

impl Plan {
    fn new(history: &History, state: State) -> Self {
        Self {
            namespace: history.namespace.clone(),
            name: history.name.clone(),
            state,
            verdict: Verdict::Nothing,
            revision: history.last().map(|last| last.revision),
            target: None,
            alternative: None,
            evidence: Vec::new(),
            steps: Vec::new(),
            changes: Vec::new(),
            deletes: Vec::new(),
            kept: Vec::new(),
            skipped: Vec::new(),
            refusals: Vec::new(),
            wait: None,
        }
    }

    fn note(&mut self, fact: String, source: &str) {
        self.evidence.push(Finding::new(fact, source));
    }

    /// Nothing is done: whatever was planned is dropped.
    fn refuse(&mut self, reason: String, flag: Option<&str>) {
        self.verdict = Verdict::Refuse;
        self.drop_steps();
        self.refusals.push(Refusal { reason, flag: flag.map(Into::into) });
    }

    fn wait_for(&mut self, wait: Wait) {
        self.verdict = Verdict::Wait;
        self.drop_steps();
        self.wait = Some(wait);
    }

    fn drop_steps(&mut self) {
        self.steps.clear();
        self.changes.clear();
        self.deletes.clear();
    }
}

impl Serialize for StatusWord {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}
