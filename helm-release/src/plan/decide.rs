//! State, evidence, intent and policy to a plan. The table of the product: the first row that fits, from the top.

use super::classify::{State, classify, deployed, lying_labels};
use super::evidence::{Evidence, Finding, HookPhase, Lease, Live};
use super::liveness::{Liveness, liveness};
use super::obstacles::{hooks_are_over, may_act, obstacles, target_fits};
use super::policy::{Intent, Policy, Strategy};
use super::target::{BROUGHT_BACK, begins_at_uninstalling};
use super::view::{PostHooks, View, holds};
use super::{Plan, Step, Verdict, deletes, goal, rollback_target, steps};
use crate::release::{Entry, History, Release, Revision, Status};

/// What to do about a release. Total: every history has an answer.
///
/// # Guarantees
/// Nothing is read and nothing is written. The objects to delete are listed one by one, each with its proof.
#[must_use]
pub fn decide(history: &History, evidence: &Evidence, intent: Intent, policy: &Policy) -> Plan {
    let state = classify(history, evidence, policy);
    let mut plan = Plan::new(history, state.clone());
    plan.evidence.extend(evidence.weaker.iter().map(|why| Finding::new(why.clone(), "weaker evidence")));
    for copy in history.copies() {
        let what = format!(
            "{} is a copy of revision {}: it is set aside, and a purge leaves it",
            copy.stored.key, copy.revision
        );
        plan.note(what, "records");
    }
    match state {
        State::Absent => absent(&mut plan, evidence),
        State::Healthy | State::NotStuck => {}
        State::Uninstalled => kept_history(&mut plan, history),
        State::Untidy => tidy(&mut plan, history),
        State::InProgress | State::Interrupted => pending(&mut plan, history, evidence, policy),
        State::InterruptedUninstall => uninstalling(&mut plan, history, evidence, intent, policy),
        State::Undecided(word) => undecided(&mut plan, &word, history, evidence, policy),
        State::Unreadable(why) => unreadable(&mut plan, &why, policy),
        State::Inconsistent(why) => {
            plan.refuse(format!("the newest record is inconsistent: {why}"), None);
        }
    }
    if plan.acts() {
        steps::relabel(&mut plan, lying_labels(history));
    }
    plan
}

/// No record here; but another driver may hold the history, and installing over it would do it twice.
fn absent(plan: &mut Plan, evidence: &Evidence) {
    if let Some(driver) = evidence.elsewhere {
        let flag = format!("--storage {driver}");
        plan.refuse(format!("there is no record here, but the {driver} driver holds some"), Some(&flag));
    }
}

fn tidy(plan: &mut Plan, history: &History) {
    plan.verdict = Verdict::Tidy;
    if let Some(newest) = deployed(history).next_back() {
        plan.target = Some(newest.revision);
        plan.note(format!("several records may say deployed; {} is the newest of them", newest.revision), "records");
    }
    steps::supersede(plan, history, plan.target);
    steps::relabel(plan, lying_labels(history));
}

/// The release is gone and its records stay: they are put right, and there is nothing to go back to.
fn kept_history(plan: &mut Plan, history: &History) {
    steps::supersede(plan, history, deployed(history).next_back().map(|entry| entry.revision));
    steps::relabel(plan, lying_labels(history));
    if plan.acts() {
        plan.verdict = Verdict::Tidy;
    }
}

fn unreadable(plan: &mut Plan, why: &str, policy: &Policy) {
    let Some(revision) = plan.revision else { return };
    if policy.quarantine {
        plan.verdict = Verdict::Quarantine;
        plan.note(format!("record {revision} cannot be read: {why}"), "record");
        plan.steps.push(Step::Quarantine { revision });
    } else {
        plan.refuse(format!("record {revision} cannot be read: {why}"), Some("--quarantine"));
    }
}

fn undecided(plan: &mut Plan, word: &str, history: &History, evidence: &Evidence, policy: &Policy) {
    match policy.strategy {
        Strategy::Auto => {
            plan.refuse(format!("the newest record says {word:?}, which decides nothing"), Some("--strategy"));
        }
        Strategy::Rollback | Strategy::Uninstall | Strategy::Finish | Strategy::Unlock => {
            interrupted(plan, history, evidence, policy);
        }
    }
}

/// A pending record: is its author alive, is a hook at work, and if neither, what is to be done.
fn pending(plan: &mut Plan, history: &History, evidence: &Evidence, policy: &Policy) {
    if author_is_gone(plan, history, evidence, policy) {
        interrupted(plan, history, evidence, policy);
    }
}

fn author_is_gone(plan: &mut Plan, history: &History, evidence: &Evidence, policy: &Policy) -> bool {
    if let Lease::Unreadable(why) = &evidence.author.lease {
        plan.note(format!("the Lease of this release could not be read: {why}"), "weaker evidence");
    }
    match liveness(history, evidence, policy) {
        Liveness::Alive(wait) => {
            plan.wait_for(wait);
            false
        }
        Liveness::PresumedDead(why) => {
            plan.evidence.push(why);
            true
        }
    }
}

fn interrupted(plan: &mut Plan, history: &History, evidence: &Evidence, policy: &Policy) {
    let Some((last, release)) = history.last().and_then(|last| Some((last, last.sound()?))) else { return };
    if !may_act(plan, evidence, policy) {
        return;
    }
    let goal = goal(history, last.revision, policy);
    plan.skipped = goal.skipped;
    plan.target = goal.target;
    let view = View {
        evidence,
        last: last.revision,
        release,
        target: goal.target,
        last_deployed: goal.last_deployed,
        baseline: goal.baseline,
    };
    facts(plan, &view);
    if !hooks_are_over(plan, &view, policy) || !target_fits(plan, history, policy) {
        return;
    }
    plan.alternative = alternative(release, history, plan.target);
    choose(plan, history, &view, policy);
    deletes::hooks(plan, &view, policy);
    obstacles(plan, &view, policy);
}

/// The rows of the table, from "its manifest equals the target's" down.
fn choose(plan: &mut Plan, history: &History, view: &View<'_>, policy: &Policy) {
    let applied = view.is_applied();
    let ready = view.unready().is_empty();
    match policy.strategy {
        Strategy::Finish if applied => return finish(plan, history, view, policy),
        Strategy::Finish => return steps::refuse_finish(plan, view),
        Strategy::Unlock => return unlock(plan, history, view),
        Strategy::Uninstall => return scoped_uninstall(plan, history, view, policy),
        Strategy::Auto | Strategy::Rollback => {}
    }
    let half_done = !view.unapplied().is_empty() || applied && !ready && view.has_leftovers();
    if let Some(target) = plan.target
        && same_manifest(history, target, view.release)
        && (half_done || policy.strategy == Strategy::Rollback)
    {
        return steps::resume(plan, history, view, policy);
    }
    if policy.strategy == Strategy::Rollback {
        return match plan.target {
            Some(target) => steps::rollback(plan, history, view, target, policy),
            None => plan.refuse("there is no revision to go back to".into(), Some("--to REVISION")),
        };
    }
    let bound_elsewhere = policy.to.is_some_and(|to| !same_manifest(history, to, view.release));
    if applied && ready && !bound_elsewhere && !view.may_not_have_begun() {
        return match view.post_hooks() {
            PostHooks::Settled => finish(plan, history, view, policy),
            PostHooks::Failed => close(plan, history, view, policy, "a hook after the objects failed"),
            PostHooks::NotRun => close(plan, history, view, policy, "a hook after the objects never ran"),
        };
    }
    match plan.target {
        Some(target) if view.last_deployed == Some(target) && view.is_untouched() => unlock(plan, history, view),
        Some(target) => steps::rollback(plan, history, view, target, policy),
        None if begins_at_uninstalling(history, view.last) => {
            plan.refuse("an interrupted uninstall lies below the pending record".into(), Some("--strategy"));
        }
        None => first_install(plan, history, view, policy),
    }
}

/// Nothing to go back to: a first install, or a history without one good revision.
fn first_install(plan: &mut Plan, history: &History, view: &View<'_>, policy: &Policy) {
    let living = view.living();
    if view.release.status() != &Status::PendingInstall {
        plan.note("there is no revision to go back to, so every object is kept".into(), "records");
        unlock(plan, history, view);
    } else if living.is_empty() {
        scoped_uninstall(plan, history, view, policy);
    } else {
        for seen in living {
            plan.note(format!("{} lives: it is or has been in service, or holds data", seen.id), "live object");
        }
        unlock(plan, history, view);
    }
}

fn scoped_uninstall(plan: &mut Plan, history: &History, view: &View<'_>, policy: &Policy) {
    plan.verdict = Verdict::Uninstall;
    plan.target = None;
    deletes::scoped(plan, view, policy);
    steps::delete_objects(plan);
    steps::close_below(plan, history, view.last);
    steps::supersede(plan, history, deployed(history).next_back().map(|entry| entry.revision));
    plan.steps.push(Step::DeleteRecord { revision: view.last });
}

fn unlock(plan: &mut Plan, history: &History, view: &View<'_>) {
    plan.verdict = Verdict::Unlock;
    let what = steps::operation(view.release);
    steps::close(plan, view.last, Status::Failed, &format!("Interrupted {what}: unlocked, no object was touched"));
    let keep = deployed(history).next_back().map(|entry| entry.revision);
    steps::supersede(plan, history, keep);
}

fn finish(plan: &mut Plan, history: &History, view: &View<'_>, policy: &Policy) {
    plan.verdict = Verdict::Finish;
    plan.target = None;
    plan.note("every object holds this revision's manifest".into(), "live objects");
    steps::prune(plan, view, view.last, policy);
    steps::close(plan, view.last, Status::Deployed, &steps::completed(view.release));
    steps::supersede(plan, history, Some(view.last));
}

/// Helm's own outcome when a hook after the objects fails: install and upgrade fail, a rollback is deployed.
fn close(plan: &mut Plan, history: &History, view: &View<'_>, policy: &Policy, why: &str) {
    if view.release.status() == &Status::PendingRollback {
        plan.note(format!("{why}; a rollback is deployed all the same"), "record and hook object");
        return finish(plan, history, view, policy);
    }
    plan.verdict = Verdict::Close;
    plan.target = None;
    plan.note(format!("everything is applied and ready, but {why}"), "record and hook object");
    steps::prune(plan, view, view.last, policy);
    let what = steps::operation(view.release);
    steps::close(plan, view.last, Status::Failed, &format!("Interrupted {what}: {why}; every object was kept"));
    steps::supersede(plan, history, deployed(history).next_back().map(|entry| entry.revision));
}

/// An uninstall that did not end: by what lives, and by what is wanted.
fn uninstalling(plan: &mut Plan, history: &History, evidence: &Evidence, intent: Intent, policy: &Policy) {
    let Some((last, release)) = history.last().and_then(|last| Some((last, last.sound()?))) else { return };
    if !author_is_gone(plan, history, evidence, policy) || !may_act(plan, evidence, policy) {
        return;
    }
    let baseline = vec![last.revision];
    let view =
        View { evidence, last: last.revision, release, target: Some(last.revision), last_deployed: None, baseline };
    facts(plan, &view);
    if !hooks_are_over(plan, &view, policy) {
        return;
    }
    let living = view.living();
    match (policy.strategy, intent) {
        (Strategy::Uninstall, _) | (Strategy::Auto, Intent::Absent) => complete(plan, history, &view, policy),
        (Strategy::Auto, _) if living.is_empty() => complete(plan, history, &view, policy),
        (Strategy::Rollback, _) | (Strategy::Auto, Intent::Present) => restore(plan, history, &view, policy),
        (Strategy::Auto, Intent::Usable) => {
            let names: Vec<_> = living.iter().map(|seen| seen.id.to_string()).collect();
            let reason = format!("an interrupted uninstall, and {} still lives", names.join(", "));
            plan.refuse(reason, Some("--strategy uninstall"));
            plan.refuse("or bring it back".into(), Some("--strategy rollback"));
        }
        (Strategy::Finish | Strategy::Unlock, _) => {
            plan.refuse(
                "an interrupted uninstall can only be completed or undone".into(),
                Some("--strategy uninstall"),
            );
        }
    }
    deletes::hooks(plan, &view, policy);
    obstacles(plan, &view, policy);
}

fn complete(plan: &mut Plan, history: &History, view: &View<'_>, policy: &Policy) {
    plan.verdict = Verdict::CompleteUninstall;
    plan.target = None;
    deletes::all(plan, view, policy);
    steps::delete_objects(plan);
    let records = history.entries().iter().map(|entry| Step::DeleteRecord { revision: entry.revision });
    plan.steps.extend(records);
}

fn restore(plan: &mut Plan, history: &History, view: &View<'_>, policy: &Policy) {
    plan.verdict = Verdict::Restore;
    steps::apply(plan, view, view.last, vec![view.last], policy);
    steps::close(plan, view.last, Status::Deployed, BROUGHT_BACK);
    steps::supersede(plan, history, Some(view.last));
}

/// What was seen of the objects, in numbers: what the row of the table was chosen by.
fn facts(plan: &mut Plan, view: &View<'_>) {
    plan.note(applied(view), "live objects");
    if let Some(target) = view.target.filter(|target| *target != view.last && !view.is_applied()) {
        let of_target = view.of(target).count();
        let held = view.of(target).filter(|seen| holds(seen, target)).count();
        plan.note(format!("{held} of {of_target} objects hold the manifest of revision {target}"), "live objects");
    }
    for seen in view.unready() {
        let why = seen.live.as_ref().map_or_else(|| "missing".into(), |live| live.readiness.to_string());
        plan.note(format!("{} is not ready: {why}", seen.id), "live object");
    }
    for hook in &view.evidence.hooks {
        let phase = match hook.phase {
            HookPhase::Missing => "has not run",
            HookPhase::Active => "is running",
            HookPhase::Succeeded => "has succeeded",
            HookPhase::Failed => "has failed",
        };
        plan.note(format!("hook {} {phase}", hook.id), "hook object");
    }
    if let Some(manager) = &view.evidence.author.manager {
        plan.note(format!("its objects were written by field manager {manager}"), "managedFields");
    }
}

/// Whether the last revision is applied, as far as it was found out: one object that is not decides it.
fn applied(view: &View<'_>) -> String {
    let (all, last) = (view.of_last().count(), view.last);
    let gone = view.of_last().filter(|seen| !seen.live.as_ref().is_some_and(Live::is_ours)).count();
    match (gone, view.is_applied()) {
        (0, true) => format!("all {all} objects hold the manifest of revision {last}"),
        (0, false) => format!("not every object holds the manifest of revision {last}"),
        _ => format!("{gone} of {all} objects of revision {last} are missing, being deleted, or another's"),
    }
}

/// A pending rollback's own target: a person was fleeing the last deployed revision.
fn alternative(release: &Release, history: &History, target: Option<Revision>) -> Option<Revision> {
    if release.status() != &Status::PendingRollback {
        return None;
    }
    let equal = || history.entries().iter().find(|e| e.sound().is_some_and(|r| equal_text(r, release)));
    let named = rollback_target(release).or_else(|| equal().map(|entry| entry.revision))?;
    history.get(named).and_then(Entry::sound).map(|_| named).filter(|_| Some(named) != target)
}

fn same_manifest(history: &History, target: Revision, release: &Release) -> bool {
    history.get(target).and_then(Entry::sound).is_some_and(|other| equal_text(other, release))
}

fn equal_text(a: &Release, b: &Release) -> bool {
    a.manifest().trim() == b.manifest().trim()
}
