//! The words that the plan table is written in, each decided from what was seen.

use super::evidence::{Evidence, HookObject, HookPhase, Live, Seen};
use crate::readiness::{Readiness, is_workload};
use crate::release::{Release, Revision, Status};

/// What was seen, from the standpoint of the last record.
pub(super) struct View<'a> {
    pub(super) evidence: &'a Evidence,
    pub(super) last: Revision,
    pub(super) release: &'a Release,
    pub(super) target: Option<Revision>,
    pub(super) last_deployed: Option<Revision>,
    /// The revisions whose objects count; see [`super::Goal`].
    pub(super) baseline: Vec<Revision>,
}

/// How the hooks that run after the objects were applied stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PostHooks {
    /// All ended well, or there are none.
    Settled,
    /// One failed.
    Failed,
    /// One never ran, or its end is not known.
    NotRun,
}

impl<'a> View<'a> {
    /// The objects of the last record's manifest.
    pub(super) fn of_last(&self) -> impl Iterator<Item = &'a Seen> {
        self.of(self.last)
    }

    pub(super) fn of(&self, revision: Revision) -> impl Iterator<Item = &'a Seen> {
        self.evidence.objects.iter().filter(move |seen| seen.listed.contains(&revision))
    }

    /// The objects of the last manifest that are missing, not ours, going, or do not hold it.
    pub(super) fn unapplied(&self) -> Vec<&'a Seen> {
        self.of_last().filter(|seen| !holds(seen, self.last)).collect()
    }

    /// Every object of the last manifest is there, ours, not terminating, and holds what it says.
    pub(super) fn is_applied(&self) -> bool {
        self.unapplied().is_empty() && !self.evidence.unknown_kinds.iter().any(|listed| listed.revision == self.last)
    }

    /// The workloads of the last manifest that are not ready.
    pub(super) fn unready(&self) -> Vec<&'a Seen> {
        self.of_last().filter(|seen| is_workload(&seen.id.group, &seen.id.kind) && !is_ready(seen)).collect()
    }

    /// Live objects, whosever, that the baseline lists and the manifest of `goal` does not.
    pub(super) fn stale(&self, goal: Revision) -> impl Iterator<Item = &'a Seen> {
        self.in_question().filter(move |seen| !seen.listed.contains(&goal) && seen.live.is_some())
    }

    /// Whether something of ours that the last manifest drops is left.
    pub(super) fn has_leftovers(&self) -> bool {
        self.stale(self.last).any(|seen| seen.live.as_ref().is_some_and(Live::is_ours))
    }

    /// The objects that a revision of the baseline lists; what was dropped before that stays out.
    fn in_question(&self) -> impl Iterator<Item = &'a Seen> {
        self.evidence.objects.iter().filter(|seen| seen.listed.iter().any(|at| self.baseline.contains(at)))
    }

    /// No object differs from the baseline: what the target lists holds it, what only the last lists is not there.
    pub(super) fn is_untouched(&self) -> bool {
        self.in_question().all(|seen| match self.target {
            Some(target) if seen.listed.contains(&target) => holds(seen, target),
            Some(_) | None => seen.live.as_ref().is_none_or(|live| !live.is_ours()),
        })
    }

    /// The objects of the last manifest that are or have been in service, or hold data.
    pub(super) fn living(&self) -> Vec<&'a Seen> {
        let lives = |seen: &&Seen| seen.live.as_ref().is_some_and(|live| live.is_ours() && live.lives);
        self.of_last().filter(lives).collect()
    }

    /// The hook objects that are at work.
    pub(super) fn active_hooks(&self) -> impl Iterator<Item = &'a HookObject> {
        self.evidence.hooks.iter().filter(|hook| hook.phase == HookPhase::Active)
    }

    /// The objects of `revision` that are being deleted.
    pub(super) fn terminating(&self, revision: Revision) -> impl Iterator<Item = &'a Seen> {
        self.of(revision).filter(|seen| seen.live.as_ref().is_some_and(|live| live.terminating))
    }

    /// How the hooks of this operation that come after the apply stand: by the record, and by what is live.
    pub(super) fn post_hooks(&self) -> PostHooks {
        let event = match self.release.status() {
            Status::PendingUpgrade => "post-upgrade",
            Status::PendingRollback => "post-rollback",
            Status::Uninstalling | Status::Uninstalled => "post-delete",
            Status::PendingInstall
            | Status::Unknown
            | Status::Deployed
            | Status::Superseded
            | Status::Failed
            | Status::Other(_) => "post-install",
        };
        let hooks = self.release.hooks();
        let phases: Vec<_> = hooks.iter().filter(|h| h.runs_at(event)).map(|h| self.hook_phase(h)).collect();
        if phases.contains(&HookPhase::Failed) {
            PostHooks::Failed
        } else if phases.iter().all(|phase| *phase == HookPhase::Succeeded) {
            PostHooks::Settled
        } else {
            PostHooks::NotRun
        }
    }

    /// Whether the objects hold the last manifest only because it changes none of them, and nothing shows that the
    /// hooks before it ended well. A repair runs no hooks, so a rollback needs none.
    pub(super) fn may_not_have_begun(&self) -> bool {
        let (pre, post) = match self.release.status() {
            Status::PendingInstall => ("pre-install", "post-install"),
            Status::PendingUpgrade => ("pre-upgrade", "post-upgrade"),
            Status::PendingRollback
            | Status::Unknown
            | Status::Deployed
            | Status::Uninstalled
            | Status::Superseded
            | Status::Failed
            | Status::Uninstalling
            | Status::Other(_) => return false,
        };
        let hooks = self.release.hooks();
        let missed = |hook: &crate::release::Hook| hook.runs_at(pre) && self.hook_phase(hook) != HookPhase::Succeeded;
        let later = |hook: &crate::release::Hook| hook.runs_at(post) && self.hook_phase(hook) != HookPhase::Missing;
        self.is_untouched() && hooks.iter().any(missed) && !hooks.iter().any(later)
    }

    /// A live hook object of this operation speaks first; for one that is gone, the record does, where its run is not
    /// older than the record itself (a rollback by Helm 3 copies the old one).
    fn hook_phase(&self, hook: &crate::release::Hook) -> HookPhase {
        let live = self.evidence.hooks.iter().find(|seen| seen.id.kind == hook.kind && seen.id.name == hook.name);
        if let Some(seen) = live.filter(|seen| seen.born) {
            return seen.phase;
        }
        let fresh = hook.last_run.started_at.is_some() && hook.last_run.started_at >= self.release.info().last_deployed;
        match hook.last_run.phase.as_str() {
            "Succeeded" if fresh => HookPhase::Succeeded,
            "Failed" if fresh => HookPhase::Failed,
            _ => HookPhase::Missing,
        }
    }
}

/// Whether an object is there, ours, not terminating, and holds what a revision says of it.
pub(super) fn holds(seen: &Seen, revision: Revision) -> bool {
    seen.live.as_ref().is_some_and(|live| live.is_ours() && live.holds.contains(&revision))
}

fn is_ready(seen: &Seen) -> bool {
    seen.live.as_ref().is_some_and(|live| live.readiness == Readiness::Current)
}
