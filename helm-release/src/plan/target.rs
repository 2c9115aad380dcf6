//! Which revision is "last deployed": the one to go back to. Never "revision minus one".

use std::collections::BTreeSet;

use serde::Serialize;

use super::classify::{inconsistent, own};
use super::policy::Policy;
use crate::release::{Entry, History, Release, Revision, Status};

/// The description of a record that was brought back from an interrupted uninstall. It keeps the time of that uninstall.
pub(super) const BROUGHT_BACK: &str = "Brought back: its uninstall was interrupted";

/// The search for a revision to go back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// The revision found.
    pub target: Option<Revision>,
    /// What was passed over, newest first, each with its reason.
    pub skipped: Vec<Skipped>,
}

/// A candidate that was passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Which.
    pub revision: Revision,
    /// Why.
    pub reason: String,
}

/// Whether a revision that is only suspected of having worked may be gone back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspects {
    /// Passed over.
    Skip,
    /// Taken where nothing better is found.
    Allow,
}

/// Where a repair of the newest record may go, and what it takes back on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    /// The revision to go back to: the one that is named, else the last deployed one.
    pub target: Option<Revision>,
    /// The last deployed revision, whatever was named.
    pub last_deployed: Option<Revision>,
    /// Whose fields and objects may be removed, lowest first: the last deployed revision and all after it, and the
    /// target. Where none was deployed, all of the epoch.
    pub baseline: Vec<Revision>,
    /// What was passed over, each with its reason.
    pub skipped: Vec<Skipped>,
}

/// Where a repair of the record `last` may go. An uninstall goes nowhere: its own objects are all that it is about.
#[must_use]
pub fn goal(history: &History, last: Revision, policy: &Policy) -> Goal {
    if history.get(last).and_then(Entry::status) == Some(&Status::Uninstalling) {
        return Goal { target: Some(last), last_deployed: None, baseline: vec![last], skipped: Vec::new() };
    }
    let suspects = if policy.allow_suspect_target { Suspects::Allow } else { Suspects::Skip };
    let Search { target: last_deployed, mut skipped } = target(history, last, suspects);
    if let Some(wanted) = policy.to {
        if let Some(found) = last_deployed.filter(|found| *found != wanted) {
            skipped.insert(0, Skipped { revision: found, reason: "--to names another".into() });
        }
        skipped.retain(|skip| skip.revision != wanted);
    }
    let first = last_deployed.or_else(|| epoch(history, last).first().map(|entry| entry.revision)).unwrap_or(last);
    let counts = |entry: &&Entry| (first..=last).contains(&entry.revision) || policy.to == Some(entry.revision);
    let known = history.entries().iter().filter(counts).filter(|entry| own(history, entry).is_some());
    let baseline: BTreeSet<_> = known.map(|entry| entry.revision).collect();
    Goal { target: policy.to.or(last_deployed), last_deployed, baseline: baseline.into_iter().collect(), skipped }
}

/// Finds the revision to go back to below `before`: the highest `deployed` one of the current epoch, else the highest
/// clean `superseded` one, else, with [`Suspects::Allow`], the highest suspect one.
#[must_use]
pub fn target(history: &History, before: Revision, suspects: Suspects) -> Search {
    let epoch = epoch(history, before);
    let mut found = [None; 3];
    let (mut clean, mut skipped) = (Vec::new(), Vec::new());
    for entry in epoch.iter().rev() {
        match grade(history, entry) {
            Grade::Deployed => found[0] = found[0].or(Some(entry.revision)),
            Grade::Clean => {
                found[1] = found[1].or(Some(entry.revision));
                clean.push(entry.revision);
            }
            Grade::Suspect(reason) => {
                found[2] = found[2].or(Some(entry.revision));
                skipped.push(Skipped { revision: entry.revision, reason });
            }
            Grade::No(reason) => skipped.push(Skipped { revision: entry.revision, reason }),
        }
    }
    let suspect = found[2].filter(|_| suspects == Suspects::Allow);
    let target = found[0].or(found[1]).or(suspect);
    if found[0].is_some() {
        let reason = || "a record that says deployed goes first".into();
        skipped.extend(clean.into_iter().map(|revision| Skipped { revision, reason: reason() }));
    }
    // What lies below the target was not passed over.
    skipped.retain(|skip| target.is_none_or(|target| skip.revision > target));
    skipped.sort_by_key(|skip| std::cmp::Reverse(skip.revision));
    Search { target, skipped }
}

/// The records below `before` since the release was last uninstalled or installed over kept history.
fn epoch(history: &History, before: Revision) -> &[Entry] {
    let entries = below(history, before);
    let start = entries.iter().rposition(ends_epoch).map_or(0, |at| at + 1);
    entries.get(start..).unwrap_or_default()
}

/// Whether the epoch below `before` begins at an uninstall that did not end.
pub(super) fn begins_at_uninstalling(history: &History, before: Revision) -> bool {
    let end = below(history, before).iter().rev().find(|entry| ends_epoch(entry));
    end.is_some_and(|entry| entry.status() == Some(&Status::Uninstalling))
}

fn below(history: &History, before: Revision) -> &[Entry] {
    let below = history.entries().partition_point(|entry| entry.revision < before);
    history.entries().get(..below).unwrap_or_default()
}

fn ends_epoch(entry: &Entry) -> bool {
    let Some(release) = entry.release() else { return false };
    match release.status() {
        Status::Uninstalled | Status::Uninstalling => true,
        Status::Superseded => {
            let info = release.info();
            let uninstalled = info.deleted.is_some() && info.description != BROUGHT_BACK;
            uninstalled || info.description == "superseded by new release"
        }
        Status::Unknown
        | Status::Deployed
        | Status::Failed
        | Status::PendingInstall
        | Status::PendingUpgrade
        | Status::PendingRollback
        | Status::Other(_) => false,
    }
}

enum Grade {
    Deployed,
    Clean,
    Suspect(String),
    No(String),
}

fn grade(history: &History, entry: &Entry) -> Grade {
    let Some(release) = entry.sound() else { return Grade::No("its record cannot be read".into()) };
    if let Some(why) = inconsistent(history, entry) {
        return Grade::No(why);
    }
    match release.status() {
        Status::Deployed => Grade::Deployed,
        Status::Superseded => suspicion(history, entry.revision, release).map_or(Grade::Clean, Grade::Suspect),
        Status::Unknown
        | Status::Uninstalled
        | Status::Failed
        | Status::Uninstalling
        | Status::PendingInstall
        | Status::PendingUpgrade
        | Status::PendingRollback
        | Status::Other(_) => Grade::No(format!("it is {}", release.status())),
    }
}

/// Why a superseded record may never have worked, if so.
fn suspicion(history: &History, revision: Revision, release: &Release) -> Option<String> {
    let description = &release.info().description;
    if unfinished(description) {
        return Some(format!("superseded, but its description is still {description:?}"));
    }
    if let Some(after) = successor(history, revision)
        && after.release().is_some_and(is_failed_rollback)
    {
        let by = after.revision;
        return Some(format!("superseded by the failed rollback {by}, which relabels whatever was current"));
    }
    let to = rollback_target(release).filter(|to| *to < revision)?;
    let origin = history.get(to)?.release()?;
    let bad = match origin.status() {
        Status::Deployed => None,
        Status::Superseded => suspicion(history, to, origin),
        Status::Unknown
        | Status::Uninstalled
        | Status::Failed
        | Status::Uninstalling
        | Status::PendingInstall
        | Status::PendingUpgrade
        | Status::PendingRollback
        | Status::Other(_) => Some(format!("it is {}", origin.status())),
    };
    bad.map(|why| format!("a rollback to {to}, which is no good revision: {why}"))
}

/// Descriptions that Helm leaves on an operation that did not end, or ended badly; and ours. A person's own may speak of
/// failures, too.
fn unfinished(description: &str) -> bool {
    let begun = ["Preparing upgrade", "Initial install underway", "Deletion in progress", "Interrupted"];
    let failing = ["Release \"", "Upgrade \"", "Rollback \""];
    begun.iter().any(|text| description.starts_with(text))
        || failing.iter().any(|text| description.starts_with(text)) && description.contains("\" failed")
}

fn successor(history: &History, revision: Revision) -> Option<&Entry> {
    history.entries().iter().find(|entry| entry.revision > revision)
}

/// Whether a rollback failed under Helm. One that was interrupted and then closed by a repair relabelled nothing.
fn is_failed_rollback(release: &Release) -> bool {
    release.status() == &Status::Failed
        && !release.info().description.starts_with("Interrupted")
        && (release.info().rollback_revision > 0 || release.info().description.starts_with("Rollback"))
}

/// Where a rollback goes back to: Helm 4 says it in a field, Helm 3 only in its description.
#[must_use]
pub fn rollback_target(release: &Release) -> Option<Revision> {
    let described = || release.info().description.strip_prefix("Rollback to ").and_then(|text| text.parse().ok());
    Revision::new(release.info().rollback_revision).or_else(described)
}
