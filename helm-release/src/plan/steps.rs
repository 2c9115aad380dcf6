//! The steps of a plan, in the order in which a crash between any two leaves a state that can be repaired.

use super::classify::own;
use super::policy::Policy;
use super::view::View;
use super::{Change, ChangeAction, Plan, StatusWord, Step, Verdict, deletes};
use crate::release::{Entry, History, Release, Revision, Status};

/// Back to `target`: the new record is the lock; then the interrupted one fails, the objects go back, the new one is
/// deployed, the old ones are superseded. A crash before the last leaves two deployed records, which everybody
/// resolves to the newest; Helm's own order leaves none.
pub(super) fn rollback(plan: &mut Plan, history: &History, view: &View<'_>, target: Revision, policy: &Policy) {
    let Some(revision) = view.last.next() else {
        return plan.refuse("there is no revision number left".into(), None);
    };
    plan.verdict = Verdict::Rollback;
    plan.steps.push(Step::CreateRollback { revision, target });
    fail_pending(plan, history, view.last, target);
    apply(plan, view, target, view.baseline.clone(), policy);
    close(plan, revision, Status::Deployed, &format!("Rollback to {target}"));
    supersede(plan, history, Some(revision));
}

/// A rollback that is half done goes on in its own record: never another one on top.
pub(super) fn resume(plan: &mut Plan, history: &History, view: &View<'_>, policy: &Policy) {
    let target = plan.target.unwrap_or(view.last);
    plan.verdict = Verdict::Resume;
    plan.note(format!("revision {} holds the manifest of {target} and is not fully applied", view.last), "records");
    if let Some(below) = history.entries().iter().rev().find(|entry| entry.revision < view.last) {
        fail_pending(plan, history, below.revision, target);
    }
    apply(plan, view, view.last, view.baseline.clone(), policy);
    close(plan, view.last, Status::Deployed, &completed(view.release));
    supersede(plan, history, Some(view.last));
}

/// Apply, then prune, then wait: what an operation does to objects.
pub(super) fn apply(plan: &mut Plan, view: &View<'_>, revision: Revision, baseline: Vec<Revision>, policy: &Policy) {
    for seen in view.of(revision) {
        let action = match &seen.live {
            None => ChangeAction::Create,
            Some(live) if live.holds.contains(&revision) => continue,
            Some(_) => ChangeAction::Update,
        };
        plan.changes.push(Change { object: seen.id.clone(), action });
    }
    plan.steps.push(Step::Apply { revision, baseline });
    prune(plan, view, revision, policy);
    if policy.wait {
        plan.steps.push(Step::AwaitReady { revision });
    }
}

/// Deletes what the baseline lists and `goal` does not.
pub(super) fn prune(plan: &mut Plan, view: &View<'_>, goal: Revision, policy: &Policy) {
    deletes::stale(plan, view, goal, policy);
    delete_objects(plan);
}

/// A step for the deletes that the plan lists, if there are any.
pub(super) fn delete_objects(plan: &mut Plan) {
    let count = plan.deletes.len();
    if count > 0 {
        plan.steps.push(Step::DeleteObjects { count });
    }
}

/// Every record that says `deployed` but `keep` is superseded, keeping its description.
pub(super) fn supersede(plan: &mut Plan, history: &History, keep: Option<Revision>) {
    for entry in super::classify::deployed(history).filter(|entry| Some(entry.revision) != keep) {
        let description = entry.release().map(|release| release.info().description.clone()).unwrap_or_default();
        close(plan, entry.revision, Status::Superseded, &description);
    }
}

/// Marks the record right below `last` failed if it is pending: with `last` gone it would lock the release again.
pub(super) fn close_below(plan: &mut Plan, history: &History, last: Revision) {
    let below = history.entries().iter().rev().find(|entry| entry.revision < last);
    if let Some((entry, release)) = below.and_then(|entry| Some((entry, own(history, entry)?)))
        && release.status().is_pending()
    {
        let text = format!("Interrupted {}: superseded by {last}, which was removed", operation(release));
        close(plan, entry.revision, Status::Failed, &text);
    }
}

pub(super) fn close(plan: &mut Plan, revision: Revision, status: Status, description: &str) {
    plan.steps.push(Step::Close { revision, status: StatusWord(status), description: description.into() });
}

/// Labels that lie are rewritten from the payload, unless the record is written or deleted anyway.
pub(super) fn relabel<'a>(plan: &mut Plan, lying: impl Iterator<Item = &'a Entry>) {
    for entry in lying {
        let revision = entry.revision;
        let written = plan.steps.iter().any(|step| match step {
            Step::Close { revision: at, .. }
            | Step::DeleteRecord { revision: at }
            | Step::Quarantine { revision: at }
            | Step::Relabel { revision: at } => *at == revision,
            Step::CreateRollback { .. } | Step::Apply { .. } | Step::DeleteObjects { .. } | Step::AwaitReady { .. } => {
                false
            }
        });
        if !written {
            plan.steps.push(Step::Relabel { revision });
        }
    }
}

pub(super) fn refuse_finish(plan: &mut Plan, view: &View<'_>) {
    let unserved = view.evidence.unknown_kinds.iter().filter(|listed| listed.revision == view.last);
    let missing = view.unapplied().into_iter().map(|seen| &seen.id).chain(unserved.map(|listed| &listed.id));
    let missing: Vec<_> = missing.map(ToString::to_string).collect();
    plan.refuse(format!("not applied: {}", missing.join(", ")), Some("--strategy rollback"));
}

/// What an operation is called.
pub(crate) fn operation(release: &Release) -> &'static str {
    match release.status() {
        Status::PendingInstall => "install",
        Status::PendingUpgrade => "upgrade",
        Status::PendingRollback => "rollback",
        Status::Uninstalling | Status::Uninstalled => "uninstall",
        Status::Unknown | Status::Deployed | Status::Superseded | Status::Failed | Status::Other(_) => "operation",
    }
}

/// The description that Helm gives an operation that ended well. A rollback keeps the one it was made with.
pub(super) fn completed(release: &Release) -> String {
    match release.status() {
        Status::PendingInstall => "Install complete".into(),
        Status::PendingUpgrade => "Upgrade complete".into(),
        Status::Unknown
        | Status::Deployed
        | Status::Uninstalled
        | Status::Superseded
        | Status::Failed
        | Status::Uninstalling
        | Status::PendingRollback
        | Status::Other(_) => release.info().description.clone(),
    }
}

/// Marks the pending records from above `target` to `upto` failed.
fn fail_pending(plan: &mut Plan, history: &History, upto: Revision, target: Revision) {
    let open = history.entries().iter().filter(|e| e.revision > target && e.revision <= upto);
    for entry in open {
        if let Some(release) =
            own(history, entry).filter(|r| r.status().is_pending() || entry.revision == upto && !is_closed(r))
        {
            let text = format!("Interrupted {}: rolled back to {target}", operation(release));
            close(plan, entry.revision, Status::Failed, &text);
        }
    }
}

fn is_closed(release: &Release) -> bool {
    matches!(release.status(), Status::Failed | Status::Superseded | Status::Deployed | Status::Uninstalled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::State;
    use crate::release::{Content, Stored};

    fn record(revision: u32, status: &str) -> Entry {
        let json = format!(
            r#"{{"name":"web","version":{revision},"info":{{"status":"{status}","description":"Preparing upgrade"}}}}"#
        );
        let content = Content::Readable(Box::new(Release::parse(&json).unwrap()));
        let stored = Stored { key: format!("sh.helm.release.v1.web.v{revision}"), ..Stored::default() };
        Entry::place(stored, content).unwrap()
    }

    #[test]
    fn a_closed_record_says_what_was_interrupted_and_a_finished_one_what_helm_would() {
        let records = vec![record(1, "deployed"), record(2, "pending-upgrade")];
        let history = History::new("web".parse().unwrap(), "shop".parse().unwrap(), records);
        let [target, last] = [1, 2].map(|number| Revision::new(number).unwrap());
        let mut plan = Plan::new(&history, State::Interrupted);
        fail_pending(&mut plan, &history, last, target);
        let description = "Interrupted upgrade: rolled back to 1".into();
        assert_eq!(plan.steps, [Step::Close { revision: last, status: StatusWord(Status::Failed), description }]);
        assert_eq!(completed(record(2, "pending-upgrade").release().unwrap()), "Upgrade complete");
    }
}
