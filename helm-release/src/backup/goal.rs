//! What a record is to say after a restore, and whether what it says now is still what the run that is undone left.
//!
//! A restore brings no lock back: what was pending or being uninstalled comes back as failed, and of several deployed
//! records only the highest. So both Helms go on from what it leaves.

use super::{Run, SavedRelease};
use crate::plan::operation;
use crate::release::{Entry, History, Release, Revision, Status};

/// The words of a record after a restore.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Goal {
    pub(super) status: Status,
    pub(super) description: String,
    /// Why it is not what it was, if so.
    pub(super) lost: Option<String>,
}

/// What became of a saved record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trace {
    /// It is there, as it was or as the run left it.
    There,
    /// The run deleted it, or the whole release is gone.
    Gone,
    /// Somebody else changed or deleted it.
    Strange(String),
}

/// The goal of a record that both Helm and we can read; `now` is the same record as it is.
pub(super) fn goal(before: &History, entry: &Entry, now: Option<&Release>) -> Option<Goal> {
    let release = entry.sound()?;
    let newest = before.last().is_some_and(|last| last.revision == entry.revision);
    let verbatim =
        |lost| Goal { status: release.status().clone(), description: release.info().description.clone(), lost };
    let failed = || Some(unlocked(release, now));
    let locks =
        !matches!(release.status(), Status::Deployed | Status::Uninstalled | Status::Superseded | Status::Failed);
    if locks && !newest && now.is_some_and(|now| now.status() == release.status()) {
        // Below the newest it locks nothing, and nobody has touched it.
        return Some(verbatim(None));
    }
    match release.status() {
        Status::PendingInstall | Status::PendingUpgrade | Status::PendingRollback | Status::Uninstalling => failed(),
        Status::Unknown | Status::Other(_) if newest => failed(),
        Status::Deployed => match kept(before).filter(|kept| *kept != entry.revision) {
            Some(kept) => {
                let lost = format!("it said deployed beside {kept}, and only one may: it stays superseded");
                Some(Goal { status: Status::Superseded, ..verbatim(Some(lost)) })
            }
            None => Some(verbatim(None)),
        },
        Status::Unknown | Status::Other(_) | Status::Uninstalled | Status::Superseded | Status::Failed => {
            Some(verbatim(None))
        }
    }
}

/// A record that locked: it stays as the repair left it where that is failed.
fn unlocked(release: &Release, now: Option<&Release>) -> Goal {
    let word = release.status();
    let already = now.filter(|now| now.status() == &Status::Failed).map(|now| now.info().description.clone());
    let ending = if already.is_some() { "stays failed" } else { "becomes failed" };
    let fresh = || format!("Interrupted {}: restored from a backup, marked failed", operation(release));
    Goal {
        status: Status::Failed,
        description: already.unwrap_or_else(fresh),
        lost: Some(format!("it said {word}, and no record is locked again: it {ending}")),
    }
}

/// Of the records that said deployed the one that still may.
fn kept(before: &History) -> Option<Revision> {
    let says_so = |entry: &&Entry| entry.sound().is_some_and(|release| release.status() == &Status::Deployed);
    before.entries().iter().rev().find(says_so).map(|entry| entry.revision)
}

/// Whether what is there now is what was saved, or what the run made of it.
pub(super) fn trace(saved: &SavedRelease, before: &History, entry: &Entry, now: &History) -> Trace {
    let key = entry.stored.key.as_str();
    let revision = entry.revision;
    let run = saved.run.as_ref();
    let Some(found) = now.entries().iter().find(|found| found.stored.key == key) else {
        let by_run = run.is_some_and(|run| run.deletes.iter().any(|deleted| deleted == key));
        let all = run.is_none() && now.is_empty();
        let strange = || Trace::Strange(format!("record {revision} was deleted since, by somebody else"));
        return if by_run || all { Trace::Gone } else { strange() };
    };
    let untouched =
        (&entry.stored.uid, &entry.stored.resource_version) == (&found.stored.uid, &found.stored.resource_version);
    let ours = untouched
        || entry
            .release()
            .zip(found.release())
            .is_some_and(|(was, is)| same(was, is) || same_but_words(was, is) && expected(run, before, entry, is));
    let strange = || Trace::Strange(format!("record {revision} was changed since, by somebody else"));
    if ours { Trace::There } else { strange() }
}

/// Whether a record that was not saved is the one that the run created.
pub(super) fn is_creation(run: Option<&Run>, entry: &Entry) -> bool {
    let written = entry.release().and_then(|release| release.info().last_deployed);
    let creations = run.into_iter().flat_map(|run| &run.creates);
    written.is_some() && creations.into_iter().any(|made| made.key == entry.stored.key && made.last_deployed == written)
}

fn same(was: &Release, is: &Release) -> bool {
    matches!((was.to_json(), is.to_json()), (Ok(was), Ok(is)) if was == is)
}

fn same_but_words(was: &Release, is: &Release) -> bool {
    let wordless = |release: &Release| release.with_status(Status::Unknown, "").ok();
    wordless(was).zip(wordless(is)).is_some_and(|(was, is)| same(&was, &is))
}

/// Whether the words of `is` are those that the run wrote, or that an earlier restore of this backup did.
fn expected(run: Option<&Run>, before: &History, entry: &Entry, is: &Release) -> bool {
    let (status, description) = (is.status(), is.info().description.as_str());
    let restored = goal(before, entry, None)
        .is_some_and(|goal| (&goal.status, goal.description.as_str()) == (status, description));
    let words = run.into_iter().flat_map(|run| &run.closes).filter(|words| words.key == entry.stored.key);
    restored
        || words.into_iter().any(|words| {
            // A record that is full keeps no more than the beginning of its description.
            let planned = words.status == status.as_str() && words.description.starts_with(description);
            planned || status == &Status::Failed && description.starts_with("Interrupted")
        })
}
