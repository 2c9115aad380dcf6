//! What a repair did, and what it tells while it is at work.

use std::path::PathBuf;

use serde::Serialize;

use super::error::Error;
use crate::backup::{Backup, RestoreStep};
use crate::cluster::Requests;
use crate::plan::{Plan, Step, Verdict};
use crate::release::{Entry, History, Namespace, ReleaseName, Revision};

/// How a repair ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every step was taken.
    Repaired,
    /// Every step of a restore was taken.
    Restored,
    /// There was nothing to do.
    NothingToDo,
    /// Somebody may be at work, or something is not over.
    Waiting,
    /// A person's word is missing.
    Refused,
    /// A step failed; the steps tell which.
    Failed,
    /// It was stopped.
    Cancelled,
    /// The records changed since the plan was made: nothing was done; look again.
    Changed,
}

impl Outcome {
    /// How a plan ends that has no step to take.
    #[must_use]
    pub fn of_idle(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Nothing => Self::NothingToDo,
            Verdict::Wait => Self::Waiting,
            Verdict::Refuse
            | Verdict::Tidy
            | Verdict::Finish
            | Verdict::Close
            | Verdict::Resume
            | Verdict::Unlock
            | Verdict::Rollback
            | Verdict::Uninstall
            | Verdict::CompleteUninstall
            | Verdict::Restore
            | Verdict::Quarantine => Self::Refused,
        }
    }
}

/// What was done to one release.
#[derive(Debug)]
pub struct Report {
    /// Where its records are.
    pub namespace: Namespace,
    /// Which release.
    pub name: ReleaseName,
    /// How it ended.
    pub outcome: Outcome,
    /// The newest record's status before.
    pub before: Option<String>,
    /// The newest record's status after; `None` if there is none, or it could not be read.
    pub after: Option<String>,
    /// The plan that was run.
    pub plan: Plan,
    /// The steps that were begun.
    pub steps: Vec<StepReport>,
    /// What was sent.
    pub requests: Requests,
    /// Where what was changed or deleted is kept.
    pub backup: Option<PathBuf>,
    /// Why it ended, if it did not go through.
    pub error: Option<Error>,
    /// The record that was opened and had to be closed as failed.
    pub settled: Option<Revision>,
    /// Why a record that was opened could not be closed.
    pub unsettled: Option<String>,
}

/// One step that was begun.
#[derive(Debug, Clone, Serialize)]
pub struct StepReport<S = Step> {
    /// Which.
    pub step: S,
    /// Why it failed; `None` if it went through.
    pub error: Option<String>,
    /// How long it took, in milliseconds.
    pub ms: u64,
}

/// What a repair tells while it is at work.
#[derive(Debug)]
pub enum Event<'a> {
    /// A step begins.
    StepStarted {
        /// Which.
        step: &'a Step,
    },
    /// A step has ended.
    StepEnded {
        /// Which.
        step: &'a Step,
        /// Why it failed; `None` if it went through.
        error: Option<&'a str>,
    },
    /// A step of a restore begins.
    Restoring {
        /// Which.
        step: &'a RestoreStep,
    },
    /// Objects were written or deleted.
    Objects {
        /// So many.
        done: usize,
        /// Of so many.
        total: usize,
    },
    /// Workloads were looked at.
    Ready {
        /// So many are ready.
        ready: usize,
        /// Of so many.
        total: usize,
        /// The others, each with its reason.
        waiting_for: &'a [String],
    },
}

/// Who listens to a repair, and where it puts what it must not lose.
pub trait Events: Sync {
    /// Something happened.
    fn event(&self, event: &Event<'_>);

    /// Keeps what is about to be changed or deleted, so that it can be undone, and says where.
    ///
    /// By default nothing is kept; then a record that cannot be read is not deleted either.
    ///
    /// # Errors
    /// It was to be kept and could not be: then nothing is written.
    fn keep(&self, backup: Backup) -> std::io::Result<Option<PathBuf>> {
        let _ = backup;
        Ok(None)
    }
}

/// Nobody listens.
impl Events for () {
    fn event(&self, _event: &Event<'_>) {}
}

impl Report {
    pub(super) fn new(plan: &Plan, history: &History) -> Self {
        Self {
            namespace: plan.namespace.clone(),
            name: plan.name.clone(),
            outcome: Outcome::NothingToDo,
            before: history.last().and_then(Entry::status).map(ToString::to_string),
            after: None,
            plan: plan.clone(),
            steps: Vec::new(),
            requests: Requests::default(),
            backup: None,
            error: None,
            settled: None,
            unsettled: None,
        }
    }
}
