//! A plan in plain words: what the release is, what would be done, on what evidence, and which flag changes that.

use chrono::{DateTime, Utc};
use helm_release::action::{Observation, Planned};
use helm_release::cluster::Permission;
use helm_release::plan::{
    Change, ChangeAction, Deletion, Evidence, Finding, Kept, Plan, Refusal, Skipped, State, Step, Verdict, Wait,
};
use helm_release::release::{Entry, History, Namespace, ReleaseName, Revision, Status};
use serde::Serialize;

use crate::again::Again;
use crate::grant::Grant;
use crate::output::{Page, View, Width, age, ago, stamp};

/// A plan with what it was made from, to be shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Explained<'a> {
    namespace: &'a Namespace,
    name: &'a ReleaseName,
    revision: Option<Revision>,
    status: Option<String>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    /// The newest sign of whoever wrote the last record, in server time.
    since: Option<DateTime<Utc>>,
    verdict: Verdict,
    target: Option<Revision>,
    alternative: Option<Revision>,
    evidence: &'a [Finding],
    steps: &'a [Step],
    changes: &'a [Change],
    deletes: &'a [Deletion],
    kept: &'a [Kept],
    skipped: &'a [Skipped],
    refusals: &'a [Refusal],
    wait: &'a Option<Wait>,
    /// Permissions that the plan needs and this identity lacks.
    missing: &'a [Permission],
    /// Who lacks them.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<&'a str>,
    #[serde(skip)]
    plan: &'a Plan,
    #[serde(skip)]
    now: DateTime<Utc>,
    #[serde(skip)]
    again: &'a Again,
}

impl<'a> Explained<'a> {
    pub(crate) fn new(planned: &'a Planned, again: &'a Again) -> Self {
        let Observation { history, evidence, .. } = &planned.observation;
        let identity = planned.identity.as_deref();
        Self { identity, ..Self::of(&planned.plan, history, evidence, &planned.missing, again) }
    }

    fn of(plan: &'a Plan, history: &History, evidence: &Evidence, missing: &'a [Permission], again: &'a Again) -> Self {
        let last = history.last();
        Self {
            namespace: &plan.namespace,
            name: &plan.name,
            revision: plan.revision,
            status: last.and_then(Entry::status).map(Status::to_string),
            state: plan.state.word(),
            detail: plan.state.detail(),
            since: evidence.author.last_sign.or(last.and_then(|last| last.stored.touched.or(last.stored.created))),
            verdict: plan.verdict,
            target: plan.target,
            alternative: plan.alternative,
            evidence: &plan.evidence,
            steps: &plan.steps,
            changes: &plan.changes,
            deletes: &plan.deletes,
            kept: &plan.kept,
            skipped: &plan.skipped,
            refusals: &plan.refusals,
            wait: &plan.wait,
            missing,
            identity: None,
            plan,
            now: evidence.now,
            again,
        }
    }

    fn repair(&self, extra: &str) -> String {
        self.again.command("repair", self.namespace, self.name, extra)
    }

    /// The first sentence: what the release is, and since when.
    pub(crate) fn headline(&self) -> String {
        let subject = format!("Release {} in namespace {}", self.name, self.namespace);
        let revision = self.revision.map_or_else(|| "?".into(), |revision| revision.to_string());
        let status = self.status.as_deref().unwrap_or("nothing readable");
        let says = format!("revision {revision} says {status}{}", self.silence());
        match &self.plan.state {
            State::Absent => format!("There is no release {} in namespace {}.", self.name, self.namespace),
            State::Uninstalled => format!("{subject} is uninstalled, with its history kept."),
            State::Healthy => format!("{subject} is deployed, at revision {revision}."),
            State::NotStuck => {
                format!("{subject} is not stuck: revision {revision} says {status}, and an upgrade is accepted.")
            }
            State::Untidy => format!(
                "{subject} is usable, but its records contradict each other: revision {revision} says {status}."
            ),
            State::InProgress => format!("{subject} may be in progress: {says}."),
            State::Interrupted => format!("{subject} is interrupted: {says}."),
            State::InterruptedUninstall => format!("{subject} is half uninstalled: {says}."),
            State::Undecided(_) => format!("{subject} is undecided: {says}."),
            State::Unreadable(why) => format!("{subject} cannot be read: record {revision} {why}."),
            State::Inconsistent(why) => format!("{subject} is inconsistent: of record {revision}, {why}."),
        }
    }

    fn silence(&self) -> String {
        self.since
            .map(|since| format!(", last written {} ago ({})", ago(since, self.now), stamp(since)))
            .unwrap_or_default()
    }

    fn verdict(&self, page: &mut Page) {
        page.gap();
        match (&self.plan.verdict, self.wait) {
            (Verdict::Nothing, _) => page.item("", "There is nothing to repair."),
            (Verdict::Wait, Some(wait)) => self.waits(page, wait),
            (Verdict::Refuse, _) => page.item("", "Repair refuses to act on its own."),
            _ => page.item("", &format!("Repair would {}:", deed(self.plan))),
        }
    }

    fn waits(&self, page: &mut Page, wait: &Wait) {
        page.item("", &format!("Repair waits: {}.", wait.reason));
        if let Some(until) = wait.until {
            page.item(
                "",
                &format!("Until {} at the latest, in {}; then look again.", stamp(until), age(until - self.now)),
            );
        }
        if wait.author {
            page.item("", "If you know that whoever wrote it is dead, say so:");
            page.verbatim(&format!("  {}", self.repair("--assume-dead")));
        }
    }

    fn steps(&self, page: &mut Page) {
        for (at, step) in self.steps.iter().enumerate() {
            page.item(&format!("{:>3}. ", at + 1), &long(step, self.plan));
        }
    }

    fn objects(&self, page: &mut Page) {
        section(page, "Objects to change", self.changes, |page, change| {
            let verb = match change.action {
                ChangeAction::Create => "create",
                ChangeAction::Update => "update",
            };
            page.item("  - ", &format!("{verb} {}", change.object));
        });
        section(page, "Objects to delete", self.deletes, |page, deletion| {
            page.item("  - ", &format!("{}: {}", deletion.object, deletion.proof));
        });
        section(page, "Objects kept", self.kept, |page, kept| {
            let flag = kept.flag.as_ref().map(|flag| format!(" ({flag} deletes it)")).unwrap_or_default();
            page.item("  - ", &format!("{}: {}{flag}", kept.object, kept.reason));
        });
    }

    fn refusals(&self, page: &mut Page) {
        section(page, "Refusals", self.refusals, |page, refusal| {
            page.item("  - ", &refusal.reason);
            if let Some(flag) = &refusal.flag {
                page.verbatim(&format!("      {}", self.repair(&spelled(flag))));
            }
        });
    }

    fn missing(&self, page: &mut Page) {
        Grant::new(self.missing.iter().cloned(), self.identity).tell(page);
    }

    pub(crate) fn grounds(&self, page: &mut Page) {
        section(page, "Evidence", self.evidence, |page, finding| {
            page.item("  - ", &format!("{} [{}]", finding.fact, finding.source));
        });
        section(page, "Passed over as the revision to go back to", self.skipped, |page, skipped| {
            page.item("  - ", &format!("revision {}: {}", skipped.revision, skipped.reason));
        });
    }

    fn next(&self, page: &mut Page) {
        if self.plan.acts() {
            page.gap();
            page.verbatim(&format!("To do it:  {}", self.repair("")));
        }
        if let Some(other) = self.alternative {
            let lead = format!("Or to revision {other}, where the interrupted rollback was going:  ");
            page.verbatim(&(lead + &self.repair(&format!("--to {other}"))));
        }
    }

    /// Everything but the proposal to run it.
    pub(crate) fn body(&self) -> Page {
        let mut page = Page::default();
        page.lead(&self.headline());
        self.verdict(&mut page);
        self.steps(&mut page);
        self.refusals(&mut page);
        self.missing(&mut page);
        self.objects(&mut page);
        self.grounds(&mut page);
        page
    }
}

impl View for Explained<'_> {
    const KIND: &'static str = "Plan";

    fn text(&self, _: Width) -> String {
        let mut page = self.body();
        self.next(&mut page);
        page.into_text()
    }

    fn names(&self) -> Vec<String> {
        vec![format!("{}/{}", self.namespace, self.name)]
    }
}

fn section<T>(page: &mut Page, heading: &str, items: &[T], mut show: impl FnMut(&mut Page, &T)) {
    if !items.is_empty() {
        page.heading(&format!("{heading} ({})", items.len()));
        items.iter().for_each(|item| show(page, item));
    }
}

/// What `repair` would do, after "would".
fn deed(plan: &Plan) -> String {
    let target = || plan.target.map(|target| format!(" revision {target}")).unwrap_or_default();
    match plan.verdict {
        Verdict::Nothing => "do nothing".into(),
        Verdict::Wait => "wait".into(),
        Verdict::Refuse => "refuse".into(),
        Verdict::Tidy => "tidy the records and touch no object".into(),
        Verdict::Finish => "bring the record forward, for the cluster already holds its manifest".into(),
        Verdict::Close => "close the record as failed and keep its objects".into(),
        Verdict::Resume => format!("go on with the rollback to{}", target()),
        Verdict::Unlock => "mark the interrupted record failed and touch no object".into(),
        Verdict::Rollback => format!("roll back to{}", target()),
        Verdict::Uninstall => "remove what the first install left".into(),
        Verdict::CompleteUninstall => "complete the uninstall".into(),
        Verdict::Restore => "bring back what the uninstall began to remove".into(),
        Verdict::Quarantine => "save and delete the record that cannot be read".into(),
    }
}

/// What `repair` would do, for a column.
pub(crate) fn next(plan: &Plan) -> String {
    let target = || plan.target.map(|target| format!(" to {target}")).unwrap_or_default();
    match plan.verdict {
        Verdict::Nothing => "-".into(),
        Verdict::Wait => match plan.wait.as_ref().and_then(|wait| wait.until) {
            Some(until) => format!("wait until {}", until.format("%TZ")),
            None => "wait".into(),
        },
        Verdict::Refuse => match plan.refusals.iter().find_map(|refusal| refusal.flag.as_deref()) {
            Some(flag) => format!("decide: {flag}"),
            None => "decide: see plan".into(),
        },
        Verdict::Tidy => "tidy records".into(),
        Verdict::Finish => "finish".into(),
        Verdict::Close => "close as failed".into(),
        Verdict::Resume => format!("resume rollback{}", target()),
        Verdict::Unlock => "unlock".into(),
        Verdict::Rollback => format!("rollback{}", target()),
        Verdict::Uninstall => "uninstall".into(),
        Verdict::CompleteUninstall => "complete uninstall".into(),
        Verdict::Restore => "bring back".into(),
        Verdict::Quarantine => "quarantine".into(),
    }
}

/// A step in a few words.
pub(crate) fn short(step: &Step) -> String {
    match step {
        Step::CreateRollback { revision, target } => {
            format!("create record {revision}, a rollback to revision {target}")
        }
        Step::Close { revision, status, .. } => format!("mark record {revision} {}", status.0),
        Step::Relabel { revision } => format!("rewrite the labels of record {revision} from its payload"),
        Step::Apply { revision, .. } => format!("apply the stored manifest of revision {revision}"),
        Step::DeleteObjects { count: 1 } => "delete 1 object".into(),
        Step::DeleteObjects { count } => format!("delete {count} objects"),
        Step::AwaitReady { revision } => format!("wait until the workloads of revision {revision} are ready"),
        Step::DeleteRecord { revision } => format!("delete record {revision}"),
        Step::Quarantine { revision } => format!("save record {revision}, then delete it"),
    }
}

/// A step as a sentence, with what a person wants to check.
fn long(step: &Step, plan: &Plan) -> String {
    let detail = match step {
        Step::CreateRollback { .. } => "; this is the lock".into(),
        Step::Close { status, description, .. } if status.0 != Status::Superseded => format!(": {description:?}"),
        Step::Apply { revision, baseline } => applied(*revision, baseline, plan),
        Step::DeleteObjects { .. } => ", listed below".into(),
        Step::Close { .. }
        | Step::Relabel { .. }
        | Step::AwaitReady { .. }
        | Step::DeleteRecord { .. }
        | Step::Quarantine { .. } => String::new(),
    };
    let text = short(step);
    let (first, rest) = text.split_at(1);
    format!("{}{rest}{detail}.", first.to_uppercase())
}

fn applied(revision: Revision, baseline: &[Revision], plan: &Plan) -> String {
    let changes = match plan.changes.len() {
        0 => ": no object differs".into(),
        1 => ": 1 object differs".into(),
        count => format!(": {count} objects differ"),
    };
    let others = baseline.iter().filter(|other| **other != revision);
    let others: Vec<String> = others.map(Revision::to_string).collect();
    match others.as_slice() {
        [] => changes,
        [one] => format!("{changes}; what only revision {one} set is removed"),
        several => format!("{changes}; what only revisions {} set is removed", several.join(", ")),
    }
}

/// A flag whose value is the person's to choose, with the choices.
fn spelled(flag: &str) -> String {
    match flag {
        "--strategy" => "--strategy rollback|uninstall|finish|unlock".into(),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;
    use helm_release::manifest::ObjectId;
    use helm_release::plan::{Author, Intent, Lease, Live, NamespacePhase, Owner, Policy, Seen, Strategy, decide};
    use helm_release::readiness::Readiness;
    use helm_release::release::{Content, Release, Stored};

    use super::*;
    use crate::cli::Cli;

    const NOW: i64 = 1_796_082_246;

    fn again(line: &str) -> Again {
        let mut command = Cli::command();
        command.build();
        let matches = command.clone().try_get_matches_from(line.split(' ')).unwrap();
        Again::read(command, &matches)
    }

    fn entry(revision: u32, status: &str, description: &str) -> Entry {
        let json = format!(
            r#"{{"name":"web","version":{revision},"manifest":"a: {revision}","info":{{"status":"{status}","description":"{description}"}}}}"#
        );
        let labels = [("owner", "helm"), ("name", "web"), ("status", status), ("version", &revision.to_string())];
        let stored = Stored {
            key: format!("sh.helm.release.v1.web.v{revision}"),
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            ..Stored::default()
        };
        Entry::place(stored, Content::Readable(Box::new(Release::parse(&json).unwrap()))).unwrap()
    }

    fn history() -> History {
        let entries = vec![
            entry(2, "deployed", "Upgrade complete"),
            entry(3, "failed", "Upgrade failed"),
            entry(4, "pending-upgrade", "Preparing upgrade"),
        ];
        History::new("web".parse().unwrap(), "shop".parse().unwrap(), entries)
    }

    fn seen(kind: &str, name: &str, listed: &[u32], holds: Option<u32>) -> Seen {
        let revisions = |numbers: &[u32]| numbers.iter().filter_map(|n| Revision::new(*n)).collect::<BTreeSet<_>>();
        let id =
            ObjectId { group: String::new(), kind: kind.into(), namespace: Some("shop".into()), name: name.into() };
        let live = holds.map(|revision| Live {
            uid: "u".into(),
            owner: Owner::Ours,
            terminating: false,
            readiness: Readiness::Current,
            lives: false,
            born: true,
            holds: revisions(&[revision]),
        });
        Seen { id, listed: revisions(listed), keep: false, live }
    }

    fn evidence(silent: i64) -> Evidence {
        let at = |seconds| DateTime::from_timestamp(NOW - seconds, 0).unwrap();
        Evidence {
            now: at(0),
            author: Author { lease: Lease::Free, last_sign: Some(at(silent)), manager: Some("helm".into()) },
            hooks: Vec::new(),
            objects: vec![
                seen("ConfigMap", "settings", &[2, 4], Some(4)),
                seen("Service", "web", &[2], None),
                seen("Secret", "new", &[4], Some(4)),
                seen("PersistentVolumeClaim", "cache", &[4], Some(4)),
                seen("ConfigMap", "late", &[4], None),
            ],
            deployer: None,
            namespace: NamespacePhase::Active,
            unknown_kinds: Vec::new(),
            elsewhere: None,
            weaker: Vec::new(),
        }
    }

    fn text(history: &History, evidence: &Evidence, policy: &Policy) -> String {
        let plan = decide(history, evidence, Intent::Usable, policy);
        let again = again("gwrepair plan web -n shop --context prod");
        let text = Explained::of(&plan, history, evidence, &[], &again).text(Width::Normal);
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn a_rollback_is_explained_from_the_state_to_the_command() {
        let expected = "\
Release web in namespace shop is interrupted: revision 4 says pending-upgrade, last written 12m ago
(2026-11-30T23:32:06Z).

Repair would roll back to revision 2:
  1. Create record 5, a rollback to revision 2; this is the lock.
  2. Mark record 4 failed: \"Interrupted upgrade: rolled back to 2\".
  3. Apply the stored manifest of revision 2: 2 objects differ; what only revisions 3, 4 set is
     removed.
  4. Wait until the workloads of revision 2 are ready.
  5. Mark record 5 deployed: \"Rollback to 2\".
  6. Mark record 2 superseded.

Objects to change (2)
  - update configmap/settings
  - create service/web

Objects kept (2)
  - secret/new: a Secret beside a claim of this release: it may open its data (--allow-delete secret
    deletes it)
  - persistentvolumeclaim/cache: its kind is guarded: others depend on it (--allow-delete
    persistentvolumeclaim deletes it)

Evidence (4)
  - the author would be writing, and has been silent for 12m, since 2026-11-30T23:32:06Z [server
    time of the newest write]
  - 1 of 4 objects of revision 4 are missing, being deleted, or another's [live objects]
  - 0 of 2 objects hold the manifest of revision 2 [live objects]
  - its objects were written by field manager helm [managedFields]

Passed over as the revision to go back to (1)
  - revision 3: it is failed

To do it:  gwrepair repair web -n shop --context prod
";
        assert_eq!(text(&history(), &evidence(720), &Policy::default()), expected);
    }

    #[test]
    fn a_wait_says_until_when_and_how_a_person_ends_it() {
        let expected = "\
Release web in namespace shop may be in progress: revision 4 says pending-upgrade, last written 60s
ago (2026-11-30T23:43:06Z).

Repair waits: the author would be writing, and his last sign is 1m old, less than 5m.
Until 2026-11-30T23:48:06Z at the latest, in 4m; then look again.
If you know that whoever wrote it is dead, say so:
  gwrepair repair web -n shop --context prod --assume-dead
";
        assert_eq!(text(&history(), &evidence(60), &Policy::default()), expected);
    }

    #[test]
    fn a_refusal_gives_the_exact_next_command() {
        let policy = Policy { strategy: Strategy::Finish, ..Policy::default() };
        let text = text(&history(), &evidence(720), &policy);
        let expected = "\
Repair refuses to act on its own.

Refusals (1)
  - not applied: configmap/late
      gwrepair repair web -n shop --context prod --strategy rollback
";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn no_line_of_a_plan_is_wider_than_a_page() {
        let mut evidence = evidence(720);
        evidence.weaker.push("a long reason that goes on ".repeat(9));
        let text = text(&history(), &evidence, &Policy::default());
        assert_eq!(text.lines().find(|line| line.chars().count() > 100), None);
    }

    #[test]
    fn the_json_is_flat_and_has_the_documented_members() {
        let (history, evidence) = (history(), evidence(720));
        let plan = decide(&history, &evidence, Intent::Usable, &Policy::default());
        let value =
            serde_json::to_value(Explained::of(&plan, &history, &evidence, &[], &again("gwrepair scan"))).unwrap();
        assert_eq!(value["state"], "interrupted");
        assert_eq!((value["verdict"].as_str(), value["target"].as_u64()), (Some("rollback"), Some(2)));
        assert_eq!(value["skipped"][0]["revision"], 3);
        for member in ["namespace", "name", "evidence", "steps", "changes", "deletes", "refusals"] {
            assert!(!value[member].is_null(), "{member}");
        }
    }
}
