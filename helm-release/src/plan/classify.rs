//! History to state: what the newest record says a release is.

use serde::ser::{Serialize, Serializer};

use super::evidence::Evidence;
use super::liveness::{Liveness, liveness};
use super::policy::Policy;
use crate::release::{Entry, History, Mismatch, Release, Status};

/// What a release is. Not the same as the word in its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// No record.
    Absent,
    /// Uninstalled, with its history kept: an install at the next number is accepted.
    Uninstalled,
    /// Deployed.
    Healthy,
    /// Failed or superseded: an upgrade is accepted.
    NotStuck,
    /// Usable, but its records contradict each other in a way that can be tidied.
    Untidy,
    /// Pending, and the author may be alive.
    InProgress,
    /// Pending, and the author is presumed dead.
    Interrupted,
    /// An uninstall that began and did not end. Helm refuses install and upgrade.
    InterruptedUninstall,
    /// A status that tells nothing.
    Undecided(String),
    /// The newest record cannot be read.
    Unreadable(String),
    /// The newest record says it belongs elsewhere.
    Inconsistent(String),
}

impl State {
    /// The state in a word, as tables and JSON show it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Uninstalled => "uninstalled",
            Self::Healthy => "healthy",
            Self::NotStuck => "not-stuck",
            Self::Untidy => "untidy",
            Self::InProgress => "in-progress",
            Self::Interrupted => "interrupted",
            Self::InterruptedUninstall => "interrupted-uninstall",
            Self::Undecided(_) => "undecided",
            Self::Unreadable(_) => "unreadable",
            Self::Inconsistent(_) => "inconsistent",
        }
    }

    /// What makes it so, where the word alone does not tell.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::Undecided(why) | Self::Unreadable(why) | Self::Inconsistent(why) => Some(why),
            Self::Absent
            | Self::Uninstalled
            | Self::Healthy
            | Self::NotStuck
            | Self::Untidy
            | Self::InProgress
            | Self::Interrupted
            | Self::InterruptedUninstall => None,
        }
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// What the release is, by its newest record and by the evidence on whoever wrote it.
#[must_use]
pub fn classify(history: &History, evidence: &Evidence, policy: &Policy) -> State {
    let Some(last) = history.last() else { return State::Absent };
    if let Some(why) = unreadable(last) {
        return State::Unreadable(why);
    }
    if let Some(why) = inconsistent(history, last) {
        return State::Inconsistent(why);
    }
    match last.status().unwrap_or(&Status::Unknown) {
        Status::Deployed if is_untidy(history) => State::Untidy,
        Status::Deployed => State::Healthy,
        Status::Failed | Status::Superseded if is_untidy(history) => State::Untidy,
        Status::Failed | Status::Superseded => State::NotStuck,
        Status::PendingInstall | Status::PendingUpgrade | Status::PendingRollback => {
            match liveness(history, evidence, policy) {
                Liveness::Alive(_) => State::InProgress,
                Liveness::PresumedDead(_) => State::Interrupted,
            }
        }
        Status::Uninstalling => State::InterruptedUninstall,
        Status::Uninstalled => State::Uninstalled,
        word @ (Status::Unknown | Status::Other(_)) => State::Undecided(word.to_string()),
    }
}

fn unreadable(entry: &Entry) -> Option<String> {
    match &entry.content {
        crate::release::Content::Unreadable { why } => Some(why.clone()),
        crate::release::Content::Readable(release) => {
            release.faults().first().map(|fault| format!("{}: {}", fault.path, fault.why))
        }
    }
}

/// The release, if Helm can read it and its record says that it is this one's.
pub(super) fn own<'a>(history: &History, entry: &'a Entry) -> Option<&'a Release> {
    entry.sound().filter(|_| inconsistent(history, entry).is_none())
}

pub(super) fn inconsistent(history: &History, entry: &Entry) -> Option<String> {
    entry.mismatches(&history.name).into_iter().find_map(|mismatch| match mismatch {
        Mismatch::PayloadName(name) => Some(format!("its payload names release {name:?}")),
        Mismatch::PayloadRevision(revision) => Some(format!("its payload says revision {revision}")),
        Mismatch::StatusLabel | Mismatch::VersionLabel | Mismatch::NameLabel => None,
    })
}

/// Whether records can be tidied without touching an object: several deployed, or labels that lie.
fn is_untidy(history: &History) -> bool {
    deployed(history).count() > 1 || lying_labels(history).next().is_some()
}

/// The records that say `deployed`, lowest first.
pub(super) fn deployed(history: &History) -> impl DoubleEndedIterator<Item = &Entry> {
    let says_so = |entry: &&Entry| own(history, entry).is_some_and(|release| release.status() == &Status::Deployed);
    history.entries().iter().filter(says_so)
}

/// The records whose labels `status` or `version` do not say what their payload does.
pub(super) fn lying_labels(history: &History) -> impl Iterator<Item = &Entry> {
    history.entries().iter().filter(|entry| {
        let mismatches = entry.mismatches(&history.name);
        let lies = mismatches.iter().any(|m| matches!(m, Mismatch::StatusLabel | Mismatch::VersionLabel));
        lies && own(history, entry).is_some()
    })
}
