//! Which objects may go, each with its proof; and which stay, each with its reason.

use super::evidence::{HookObject, HookPhase, Live, Owner, Seen};
use super::policy::Policy;
use super::view::View;
use super::{Deletion, Kept, Plan, Step};
use crate::manifest::ObjectId;
use crate::release::Revision;

/// Kinds that hold what others depend on: deleted only with `--allow-delete`.
const GUARDED: [(&str, &str); 5] = [
    ("", "Namespace"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("", "PersistentVolumeClaim"),
    ("", "PersistentVolume"),
    ("storage.k8s.io", "StorageClass"),
];

/// Scoped uninstall: only what the last operation created.
pub(super) fn scoped(plan: &mut Plan, view: &View<'_>, policy: &Policy) {
    for seen in view.of_last() {
        let Some(live) = &seen.live else { continue };
        if live.born {
            judge(plan, view, seen, live, policy, "our marks, and made by this operation");
        } else {
            keep(plan, &seen.id, "it was not made by this operation; it may carry our marks all the same", None);
        }
    }
}

/// Everything that the last record's manifest lists: an uninstall.
pub(super) fn all(plan: &mut Plan, view: &View<'_>, policy: &Policy) {
    for seen in view.of_last() {
        if let Some(live) = &seen.live {
            judge(plan, view, seen, live, policy, "our marks, and listed by the record that is being uninstalled");
        }
    }
}

/// What some revision from the target to the last lists, and the one of `goal` does not.
pub(super) fn stale(plan: &mut Plan, view: &View<'_>, goal: Revision, policy: &Policy) {
    for seen in view.stale(goal) {
        if let Some(live) = &seen.live {
            judge(plan, view, seen, live, policy, "our marks, and only listed by revisions that are gone back from");
        }
    }
}

/// Hook objects that the interrupted operation left: by their own delete policy, or by the flags.
pub(super) fn hooks(plan: &mut Plan, view: &View<'_>, policy: &Policy) {
    if !plan.acts() {
        return;
    }
    let before = plan.deletes.len();
    for hook in view.evidence.hooks.iter().filter(|hook| hook.born) {
        let Some(proof) = hook_proof(hook, policy) else {
            keep(plan, &hook.id, "a hook that its own delete policy leaves", Some("--delete-hooks"));
            continue;
        };
        match forbidden(plan, view, &hook.id, policy) {
            Some((reason, flag)) => keep(plan, &hook.id, reason, flag.as_deref()),
            None => plan.deletes.push(Deletion { object: hook.id.clone(), uid: hook.uid.clone(), proof: proof.into() }),
        }
    }
    let count = plan.deletes.len();
    if count == before {
        return;
    }
    match plan.steps.iter_mut().find(|step| matches!(step, Step::DeleteObjects { .. })) {
        Some(step) => *step = Step::DeleteObjects { count },
        None => {
            // After the record that locks was made, and before one is closed: a crash in between leaves a state that is
            // repaired the same way.
            let after_apply = plan.steps.iter().position(|step| matches!(step, Step::Apply { .. })).map(|at| at + 1);
            plan.steps.insert(after_apply.unwrap_or(0), Step::DeleteObjects { count });
        }
    }
}

fn hook_proof(hook: &HookObject, policy: &Policy) -> Option<&'static str> {
    let says = |word: &str| hook.delete_policies.iter().any(|p| p == word);
    match hook.phase {
        HookPhase::Active if policy.stop_hooks => Some("a hook of this operation, and --stop-hooks"),
        HookPhase::Succeeded if says("hook-succeeded") => Some("a hook of this operation, and its own delete policy"),
        HookPhase::Failed if says("hook-failed") => Some("a hook of this operation, and its own delete policy"),
        HookPhase::Active | HookPhase::Missing => None,
        HookPhase::Succeeded | HookPhase::Failed => {
            policy.delete_hooks.then_some("a hook of this operation, and --delete-hooks")
        }
    }
}

/// The guards that stand before every delete of a repair.
fn judge(plan: &mut Plan, view: &View<'_>, seen: &Seen, live: &Live, policy: &Policy, proof: &str) {
    match &live.owner {
        Owner::Ours => {}
        Owner::Nobody => return keep(plan, &seen.id, "it carries nobody's marks", None),
        Owner::Other { namespace, name } => {
            return keep(plan, &seen.id, &format!("it belongs to release {namespace}/{name}"), None);
        }
    }
    if live.terminating {
        return keep(plan, &seen.id, "it is being deleted already", None);
    }
    if seen.keep {
        return keep(plan, &seen.id, "its resource policy says keep", None);
    }
    match forbidden(plan, view, &seen.id, policy) {
        Some((reason, flag)) => keep(plan, &seen.id, reason, flag.as_deref()),
        None => plan.deletes.push(Deletion { object: seen.id.clone(), uid: live.uid.clone(), proof: proof.into() }),
    }
}

/// Why nothing of this identity may go, hooks included, and the flag that would let it.
fn forbidden(plan: &Plan, view: &View<'_>, id: &ObjectId, policy: &Policy) -> Option<(&'static str, Option<String>)> {
    if id.kind == "Namespace" && id.group.is_empty() && id.name == plan.namespace.as_str() {
        return Some(("it holds the release's records", None));
    }
    let reason = guarded(id, view).filter(|_| !is_allowed(id, policy))?;
    Some((reason, Some(format!("--allow-delete {}", id.kind.to_lowercase()))))
}

/// Whether objects of its kind hold what others depend on.
pub(crate) fn is_guarded_kind(id: &ObjectId) -> bool {
    GUARDED.contains(&(id.group.as_str(), id.kind.as_str()))
}

fn guarded(id: &ObjectId, view: &View<'_>) -> Option<&'static str> {
    if is_guarded_kind(id) {
        return Some("its kind is guarded: others depend on it");
    }
    let is_claim = |seen: &Seen| seen.id.kind == "PersistentVolumeClaim" && seen.live.is_some();
    let secret = id.group.is_empty() && id.kind == "Secret";
    (secret && view.evidence.objects.iter().any(is_claim))
        .then_some("a Secret beside a claim of this release: it may open its data")
}

fn is_allowed(id: &ObjectId, policy: &Policy) -> bool {
    let kind = id.kind.to_lowercase();
    policy.allow_delete.contains(&kind) || policy.allow_delete.contains(&format!("{kind}.{}", id.group))
}

fn keep(plan: &mut Plan, id: &ObjectId, reason: &str, flag: Option<&str>) {
    plan.kept.push(Kept { object: id.clone(), reason: reason.into(), flag: flag.map(Into::into) });
}
