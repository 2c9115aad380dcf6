//! What stands in the way of a plan: deployers, hooks at work, objects that are going, kinds that nobody serves.

use std::collections::BTreeSet;

use super::classify::own;
use super::evidence::{Evidence, HookObject, Listed, NamespacePhase, Owner};
use super::policy::Policy;
use super::view::View;
use super::{Plan, Verdict, Wait};
use crate::release::{History, Revision};

/// What forbids any action: another deployer.
pub(super) fn may_act(plan: &mut Plan, evidence: &Evidence, policy: &Policy) -> bool {
    if let Some(deployer) = evidence.deployer.as_ref().filter(|_| !policy.override_deployer) {
        let reason = format!("{} keeps these objects ({}) and would undo a repair", deployer.name, deployer.mark);
        plan.refuse(reason, Some("--override-deployer"));
        return false;
    }
    true
}

/// Whether no hook is at work. One that is may be a schema migration: it is waited for, not killed.
pub(super) fn hooks_are_over(plan: &mut Plan, view: &View<'_>, policy: &Policy) -> bool {
    let stays = |hook: &&HookObject| !(policy.stop_hooks && hook.born);
    let active: Vec<_> = view.active_hooks().filter(stays).collect();
    if active.is_empty() {
        return true;
    }
    let names: Vec<_> = active.iter().map(|hook| hook.id.to_string()).collect();
    let way_out = if active.iter().all(|hook| hook.born) {
        "--stop-hooks deletes it"
    } else {
        "it is older than the interrupted operation, so it is not stopped"
    };
    let reason = format!("hook {} is still running; {way_out}", names.join(", "));
    plan.wait_for(Wait { reason, until: None, author: false });
    false
}

/// Refuses a `--to` that cannot be gone back to.
pub(super) fn target_fits(plan: &mut Plan, history: &History, policy: &Policy) -> bool {
    let Some(wanted) = policy.to else { return true };
    let found = history.get(wanted).and_then(|entry| own(history, entry));
    let fits = found.is_some() && Some(wanted) < plan.revision;
    if !fits {
        plan.refuse(format!("revision {wanted} is not a readable record below the newest one"), Some("--to REVISION"));
    }
    fits
}

/// What stands in the way of the steps that were chosen: then none of them is taken.
pub(super) fn obstacles(plan: &mut Plan, view: &View<'_>, policy: &Policy) {
    let Some((revision, _)) = plan.applies() else {
        // An unlock touches no object and asks for none.
        let deletes = [Verdict::Uninstall, Verdict::CompleteUninstall, Verdict::Finish, Verdict::Close];
        if deletes.contains(&plan.verdict) {
            unknown_kinds(plan, view, None, policy);
        }
        return;
    };
    if view.evidence.namespace == NamespacePhase::Terminating {
        // What is going there goes with it: there is nothing to wait for.
        return plan.refuse("the namespace is terminating: nothing can be created in it".into(), None);
    }
    let going: Vec<_> = view.terminating(revision).map(|seen| seen.id.to_string()).collect();
    if !going.is_empty() {
        let reason = format!("{} is being deleted, and the plan needs it", going.join(", "));
        return plan.wait_for(Wait { reason, until: None, author: false });
    }
    unknown_kinds(plan, view, Some(revision), policy);
    foreign_objects(plan, view, revision);
}

/// An object whose kind is not served cannot exist, so one that is not `needed` may be skipped; one that is, never.
fn unknown_kinds(plan: &mut Plan, view: &View<'_>, needed: Option<Revision>, policy: &Policy) {
    let unknown = &view.evidence.unknown_kinds;
    let text = |listed: &Listed| format!("{} ({})", listed.id, listed.api_version);
    let (of_needed, others): (Vec<_>, Vec<_>) = unknown.iter().partition(|listed| Some(listed.revision) == needed);
    for listed in &of_needed {
        let reason =
            format!("the server does not serve the kind of {}, which revision {} needs", text(listed), listed.revision);
        plan.refuse(reason, Some("--to REVISION"));
    }
    let only_others = others.into_iter().filter(|other| of_needed.iter().all(|listed| listed.id != other.id));
    let old: BTreeSet<_> = only_others.map(text).collect();
    if !old.is_empty() && !policy.skip_unknown_kinds {
        let old: Vec<_> = old.into_iter().collect();
        plan.refuse(format!("the server does not serve the kind of {}", old.join(", ")), Some("--skip-unknown-kinds"));
    }
}

fn foreign_objects(plan: &mut Plan, view: &View<'_>, revision: Revision) {
    for seen in view.of(revision) {
        if let Some(live) = &seen.live
            && let Owner::Other { namespace, name } = &live.owner
        {
            plan.refuse(format!("{} belongs to release {namespace}/{name}", seen.id), None);
        }
    }
}
