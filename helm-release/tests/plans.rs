//! Every file of `testdata/plans/` is one case: history, evidence and policy in, plan out, with the reason why.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use helm_release::manifest::ObjectId;
use helm_release::plan::{
    AssumeDead, Author, Deployer, Evidence, HookObject, HookPhase, Intent, Lease, Listed, Live, NamespacePhase, Owner,
    Plan, Policy, Seen, Step, Strategy, decide,
};
use helm_release::readiness::Readiness;
use helm_release::release::{Content, Entry, History, Release, Revision, Stored};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Why the expected plan is right.
    why: String,
    /// The numbers of `docs/failure-modes.md` that this is an instance of, or the rule that it shows, in words.
    #[serde(default)]
    cases: Vec<serde_json::Value>,
    #[serde(default)]
    history: Vec<Record>,
    #[serde(default)]
    objects: Vec<Object>,
    #[serde(default)]
    hooks: Vec<Hook>,
    /// Seconds since the last sign of the author; absent: none can be dated.
    silent: Option<i64>,
    #[serde(default)]
    lease: Option<String>,
    deployer: Option<String>,
    #[serde(default)]
    namespace_terminating: bool,
    #[serde(default)]
    unknown_kinds: Vec<UnknownKind>,
    elsewhere: Option<String>,
    #[serde(default)]
    policy: CasePolicy,
    #[serde(default)]
    intent: Option<String>,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    revision: u32,
    #[serde(default)]
    status: String,
    #[serde(default)]
    description: String,
    /// Records with the same word have the same manifest; default: one of its own.
    manifest: Option<String>,
    rollback_revision: Option<u32>,
    #[serde(default)]
    deleted: bool,
    #[serde(default)]
    unreadable: bool,
    /// Raw JSON payload members that replace or add to the made ones.
    #[serde(default)]
    payload: serde_json::Map<String, serde_json::Value>,
    /// Labels that replace the right ones; null removes one.
    #[serde(default)]
    labels: BTreeMap<String, Option<String>>,
    /// The object's name, where it is not the canonical one.
    key: Option<String>,
    #[serde(default)]
    hooks: Vec<RecordHook>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordHook {
    id: String,
    events: Vec<String>,
    #[serde(default)]
    phase: String,
    /// Whether its last run is older than the record: copied by a rollback.
    #[serde(default)]
    stale: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    id: String,
    r#in: BTreeSet<u32>,
    #[serde(default)]
    keep: bool,
    live: Option<CaseLive>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseLive {
    #[serde(default)]
    holds: BTreeSet<u32>,
    /// `ours` (default), `nobody`, or `namespace/name` of another release.
    owner: Option<String>,
    #[serde(default)]
    terminating: bool,
    /// `current` by default; any other text is why it is in progress.
    ready: Option<String>,
    #[serde(default)]
    lives: bool,
    #[serde(default)]
    born: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hook {
    id: String,
    events: Vec<String>,
    phase: String,
    #[serde(default)]
    delete_policies: Vec<String>,
    #[serde(default)]
    born: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnknownKind {
    revision: u32,
    id: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct CasePolicy {
    strategy: Option<String>,
    to: Option<u32>,
    assume_dead: bool,
    assume_dead_of_another_record: bool,
    allow_delete: BTreeSet<String>,
    allow_suspect_target: bool,
    stop_hooks: bool,
    delete_hooks: bool,
    skip_unknown_kinds: bool,
    override_deployer: bool,
    quarantine: bool,
    no_wait: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    state: String,
    verdict: String,
    target: Option<u32>,
    alternative: Option<u32>,
    #[serde(default)]
    steps: Vec<String>,
    #[serde(default)]
    changes: Vec<String>,
    #[serde(default)]
    deletes: Vec<String>,
    #[serde(default)]
    kept: Vec<String>,
    #[serde(default)]
    skipped: Vec<u32>,
    /// The flag of each refusal; `-` where none helps.
    #[serde(default)]
    refusals: Vec<String>,
    /// `author`, or `other` for a hook or an object that is going.
    wait: Option<String>,
}

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/plans");
const RECORD_TIME: &str = "2026-01-01T00:00:00Z";

#[test]
fn every_case_is_planned_as_its_file_says() {
    let files = case_files();
    assert!(files.len() >= 190, "only {} cases in {FOLDER}", files.len());
    let mut wrong = String::new();
    for file in &files {
        if let Err(why) = check(file) {
            let _ = writeln!(wrong, "{}:\n{why}\n", file.file_name().unwrap_or_default().display());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    println!("{} cases", files.len());
}

#[test]
fn planning_again_gives_the_same_plan() {
    for file in case_files() {
        let case = read(&file).unwrap();
        let (once, twice) = (plan(&case), plan(&case));
        assert_eq!(serde_json::to_string(&once).unwrap(), serde_json::to_string(&twice).unwrap());
    }
}

#[test]
fn a_copy_of_a_record_is_named_by_its_object() {
    let case = read(&Path::new(FOLDER).join("record-that-was-copied-does-not-count-twice.yaml")).unwrap();
    let copies: Vec<_> = case.history.iter().filter_map(|record| record.key.clone()).collect();
    let evidence = plan(&case).evidence;
    assert!(!copies.is_empty());
    for copy in copies {
        assert!(evidence.iter().any(|finding| finding.fact.contains(&copy)), "{copy}: {evidence:?}");
    }
}

fn case_files() -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(FOLDER)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "yaml"))
        .collect();
    files.sort();
    files
}

fn read(file: &Path) -> Result<Case, String> {
    let text = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    let value = goyaml::parse(text.as_bytes()).map_err(|e| e.to_string())?;
    serde_json::from_value(value).map_err(|e| e.to_string())
}

fn check(file: &Path) -> Result<(), String> {
    let case = read(file)?;
    if case.why.len() < 20 || case.cases.iter().any(serde_json::Value::is_null) {
        return Err("`why` says too little".into());
    }
    let (got, want) = (seen(&plan(&case)), expected(&case.expect));
    if got == want { Ok(()) } else { Err(format!("--- expected\n{want}\n--- planned\n{got}")) }
}

fn plan(case: &Case) -> Plan {
    let now: DateTime<Utc> = RECORD_TIME.parse::<DateTime<Utc>>().unwrap() + TimeDelta::days(1);
    let records = case.history.iter().map(entry).collect();
    let history = History::new("web".parse().unwrap(), "ns".parse().unwrap(), records);
    let intent = match case.intent.as_deref() {
        None | Some("usable") => Intent::Usable,
        Some("present") => Intent::Present,
        Some("absent") => Intent::Absent,
        Some(other) => panic!("intent {other}"),
    };
    decide(&history, &evidence(case, now), intent, &policy(&case.policy, &history))
}

fn entry(record: &Record) -> Entry {
    let canonical = format!("sh.helm.release.v1.web.v{}", record.revision);
    let mut labels: BTreeMap<String, String> =
        [("owner", "helm"), ("name", "web"), ("status", &record.status)].map(|(k, v)| (k.into(), v.into())).into();
    labels.insert("version".into(), record.revision.to_string());
    for (key, value) in &record.labels {
        match value {
            Some(value) => labels.insert(key.clone(), value.clone()),
            None => labels.remove(key),
        };
    }
    let stored = Stored {
        key: record.key.clone().unwrap_or(canonical),
        labels,
        resource_version: record.revision.to_string(),
        ..Stored::default()
    };
    let content = if record.unreadable {
        Content::Unreadable { why: "is not base64".into() }
    } else {
        Content::Readable(Box::new(Release::parse(&payload(record)).unwrap()))
    };
    Entry::place(stored, content).unwrap()
}

fn payload(record: &Record) -> String {
    let manifest = record.manifest.clone().unwrap_or_else(|| format!("revision {}", record.revision));
    let mut info = json!({"status": record.status, "description": record.description, "last_deployed": RECORD_TIME});
    if record.deleted {
        info["deleted"] = json!(RECORD_TIME);
    }
    if let Some(to) = record.rollback_revision {
        info["rollback_revision"] = json!(to);
    }
    let hooks: Vec<_> = record.hooks.iter().map(record_hook).collect();
    let mut payload =
        json!({"name": "web", "version": record.revision, "info": info, "manifest": manifest, "hooks": hooks});
    for (key, value) in &record.payload {
        payload[key] = value.clone();
    }
    payload.to_string()
}

fn record_hook(hook: &RecordHook) -> serde_json::Value {
    let id = id(&hook.id);
    let started = if hook.stale { "2025-12-31T00:00:00Z" } else { "2026-01-01T00:00:01Z" };
    let ran = json!({"started_at": started, "phase": hook.phase});
    let last_run = if hook.phase.is_empty() { json!({"phase": ""}) } else { ran };
    json!({"name": id.name, "kind": id.kind, "events": hook.events, "last_run": last_run})
}

fn evidence(case: &Case, now: DateTime<Utc>) -> Evidence {
    let lease = match case.lease.as_deref() {
        None => Lease::Free,
        Some("held") => Lease::Held { holder: "gwrepair".into(), until: now + TimeDelta::seconds(30) },
        Some("expired") => Lease::Expired { holder: "gwrepair".into() },
        Some("unreadable") => Lease::Unreadable("leases.coordination.k8s.io is forbidden".into()),
        Some(other) => panic!("lease {other}"),
    };
    let last_sign = case.silent.map(|seconds| now - TimeDelta::seconds(seconds));
    Evidence {
        now,
        author: Author { lease, last_sign, manager: Some("helm".into()) },
        hooks: case.hooks.iter().map(hook).collect(),
        objects: case.objects.iter().map(object).collect(),
        deployer: case.deployer.as_ref().map(|mark| Deployer { name: "Argo CD", mark: mark.clone() }),
        namespace: if case.namespace_terminating { NamespacePhase::Terminating } else { NamespacePhase::Active },
        unknown_kinds: case.unknown_kinds.iter().map(unknown_kind).collect(),
        elsewhere: case.elsewhere.as_ref().map(|_| "configmap"),
        weaker: Vec::new(),
    }
}

fn object(object: &Object) -> Seen {
    Seen {
        id: id(&object.id),
        listed: revisions(&object.r#in),
        keep: object.keep,
        live: object.live.as_ref().map(|live| self::live(&object.id, live)),
    }
}

fn live(name: &str, live: &CaseLive) -> Live {
    let owner = match live.owner.as_deref() {
        None | Some("ours") => Owner::Ours,
        Some("nobody") => Owner::Nobody,
        Some(other) => {
            let (namespace, name) = other.split_once('/').unwrap();
            Owner::Other { namespace: namespace.into(), name: name.into() }
        }
    };
    let readiness = match live.ready.as_deref() {
        None | Some("current") => Readiness::Current,
        Some(why) => Readiness::InProgress { why: why.into() },
    };
    Live {
        uid: format!("uid of {name}"),
        owner,
        terminating: live.terminating,
        readiness,
        lives: live.lives,
        born: live.born,
        holds: revisions(&live.holds),
    }
}

fn hook(hook: &Hook) -> HookObject {
    let phase = match hook.phase.as_str() {
        "active" => HookPhase::Active,
        "succeeded" => HookPhase::Succeeded,
        "failed" => HookPhase::Failed,
        other => panic!("hook phase {other}"),
    };
    HookObject {
        id: id(&hook.id),
        uid: format!("uid of {}", hook.id),
        events: hook.events.clone(),
        delete_policies: hook.delete_policies.clone(),
        born: hook.born,
        phase,
    }
}

fn unknown_kind(unknown: &UnknownKind) -> Listed {
    let revision = Revision::new(unknown.revision).unwrap();
    Listed { revision, id: id(&unknown.id), api_version: "example.com/v1".into() }
}

fn policy(case: &CasePolicy, history: &History) -> Policy {
    let strategy = match case.strategy.as_deref() {
        None | Some("auto") => Strategy::Auto,
        Some("rollback") => Strategy::Rollback,
        Some("uninstall") => Strategy::Uninstall,
        Some("finish") => Strategy::Finish,
        Some("unlock") => Strategy::Unlock,
        Some(other) => panic!("strategy {other}"),
    };
    let shown = history.last().map(|last| last.stored.resource_version.clone()).unwrap_or_default();
    let assume_dead = match (case.assume_dead, case.assume_dead_of_another_record) {
        (true, _) => AssumeDead::Shown(shown),
        (false, true) => AssumeDead::Shown(format!("{shown}0")),
        (false, false) => AssumeDead::No,
    };
    Policy {
        strategy,
        to: case.to.map(|to| Revision::new(to).unwrap()),
        assume_dead,
        min_age: Duration::from_secs(300),
        foreign_timeout: Duration::from_secs(3600),
        allow_delete: case.allow_delete.clone(),
        allow_suspect_target: case.allow_suspect_target,
        stop_hooks: case.stop_hooks,
        delete_hooks: case.delete_hooks,
        skip_unknown_kinds: case.skip_unknown_kinds,
        override_deployer: case.override_deployer,
        quarantine: case.quarantine,
        wait: !case.no_wait,
    }
}

fn revisions(numbers: &BTreeSet<u32>) -> BTreeSet<Revision> {
    numbers.iter().filter_map(|n| Revision::new(*n)).collect()
}

/// `Kind/name` with the group that the kind usually has.
fn id(text: &str) -> ObjectId {
    let (kind, name) = text.split_once('/').unwrap();
    let group = match kind {
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" => "apps",
        "Job" => "batch",
        "CustomResourceDefinition" => "apiextensions.k8s.io",
        "StorageClass" => "storage.k8s.io",
        "Widget" => "example.com",
        _ => "",
    };
    let cluster = matches!(kind, "Namespace" | "CustomResourceDefinition" | "StorageClass" | "PersistentVolume");
    let namespace = (!cluster).then(|| "ns".into());
    ObjectId { group: group.into(), kind: kind.into(), namespace, name: name.into() }
}

fn short(id: &ObjectId) -> String {
    format!("{}/{}", id.kind, id.name)
}

fn lines(title: &str, items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<_> = items.into_iter().collect();
    if items.is_empty() { String::new() } else { format!("{title}: {}\n", items.join("; ")) }
}

fn expected(expect: &Expect) -> String {
    let number = |n: &u32| n.to_string();
    [
        lines("state", [expect.state.clone()]),
        lines("verdict", [expect.verdict.clone()]),
        lines("target", expect.target.map(|n| n.to_string())),
        lines("alternative", expect.alternative.map(|n| n.to_string())),
        lines("steps", expect.steps.iter().cloned()),
        lines("changes", expect.changes.iter().cloned()),
        lines("deletes", expect.deletes.iter().cloned()),
        lines("kept", expect.kept.iter().cloned()),
        lines("skipped", expect.skipped.iter().map(number)),
        lines("refusals", expect.refusals.iter().cloned()),
        lines("wait", expect.wait.clone()),
    ]
    .concat()
}

fn seen(plan: &Plan) -> String {
    let state = plan.state.word().to_owned();
    let verdict = serde_json::to_value(plan.verdict).unwrap().as_str().unwrap().to_owned();
    let flag = |flag: &Option<String>| flag.clone().unwrap_or_else(|| "-".into());
    [
        lines("state", [state]),
        lines("verdict", [verdict]),
        lines("target", plan.target.map(|n| n.to_string())),
        lines("alternative", plan.alternative.map(|n| n.to_string())),
        lines("steps", plan.steps.iter().map(step)),
        lines("changes", plan.changes.iter().map(|change| short(&change.object))),
        lines("deletes", plan.deletes.iter().map(|deletion| short(&deletion.object))),
        lines("kept", plan.kept.iter().map(|kept| short(&kept.object))),
        lines("skipped", plan.skipped.iter().map(|skip| skip.revision.to_string())),
        lines("refusals", plan.refusals.iter().map(|refusal| flag(&refusal.flag))),
        lines("wait", plan.wait.as_ref().map(|wait| if wait.author { "author".into() } else { "other".to_owned() })),
    ]
    .concat()
}

fn step(step: &Step) -> String {
    match step {
        Step::CreateRollback { revision, target } => format!("create {revision} from {target}"),
        Step::Close { revision, status, .. } => format!("{revision} {}", status.0),
        Step::Relabel { revision } => format!("relabel {revision}"),
        Step::Apply { revision, baseline } => {
            let over: Vec<_> = baseline.iter().map(ToString::to_string).collect();
            format!("apply {revision} over {}", over.join(","))
        }
        Step::DeleteObjects { count } => format!("delete {count} objects"),
        Step::AwaitReady { revision } => format!("ready {revision}"),
        Step::DeleteRecord { revision } => format!("delete record {revision}"),
        Step::Quarantine { revision } => format!("quarantine {revision}"),
    }
}
