//! What holds for every plan, over random histories, evidence and policies; and for the release after its plan was run.
//!
//! Every world comes from a seed that a failure prints. A plan is run on the world that it was made for: records are
//! made, closed and deleted, objects hold what was applied to them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use helm_release::manifest::ObjectId;
use helm_release::plan::{
    AssumeDead, Author, Deployer, Evidence, HookObject, HookPhase, Intent, Lease, Listed, Live, NamespacePhase, Owner,
    Plan, Policy, Seen, Step, Strategy, Verdict, decide,
};
use helm_release::readiness::Readiness;
use helm_release::release::{Content, Entry, History, Release, Revision, Stored};
use serde_json::json;

const SEEDS: u64 = 10_000;
const RECORD_TIME: &str = "2026-01-01T00:00:00Z";

// ---- what holds -----------------------------------------------------------------------------------------------------

#[test]
fn nothing_is_deleted_that_is_not_ours_or_is_guarded() {
    for_every_world(|world| {
        let plan = world.plan();
        for deletion in &plan.deletes {
            let id = &deletion.object;
            match world.objects.iter().find(|object| &object.id == id) {
                Some(object) => {
                    let live = object.live.as_ref().unwrap();
                    assert_eq!((&live.owner, &live.uid), (&Owner::Ours, &deletion.uid));
                    assert!(!object.keep && !live.terminating, "{id} is to be kept, or going");
                    assert!(plan.verdict != Verdict::Uninstall || live.born, "{id} was there before");
                }
                None => assert!(world.hooks.iter().any(|hook| &hook.id == id && hook.born), "{id} is no hook of ours"),
            }
            assert!(!world.is_guarded(id) || world.policy.allow_delete.contains(&id.kind.to_lowercase()), "{id}");
            assert!(id.kind != "Namespace" || id.name != "ns", "the namespace of the records");
        }
    });
}

#[test]
fn nothing_is_done_unless_the_verdict_is_to_act() {
    for_every_world(|world| {
        let plan = world.plan();
        let idle = matches!(plan.verdict, Verdict::Nothing | Verdict::Wait | Verdict::Refuse);
        assert_eq!(idle, plan.steps.is_empty());
        assert!(!idle || plan.deletes.is_empty() && plan.changes.is_empty());
        assert_eq!(plan.verdict == Verdict::Wait, plan.wait.is_some());
        assert_eq!(plan.verdict == Verdict::Refuse, !plan.refusals.is_empty());
    });
}

#[test]
fn nobody_at_work_is_disturbed() {
    for_every_world(|world| {
        let plan = world.plan();
        let open = world.is_locked() || world.newest().is_some_and(|record| record.says("uninstalling"));
        let held = matches!(world.lease, Lease::Held { .. });
        let hook = world.hooks.iter().any(|hook| hook.phase == HookPhase::Active) && !world.policy.stop_hooks;
        assert!(!open || !(held || hook) || !plan.acts());
    });
}

#[test]
fn nothing_is_created_in_a_terminating_namespace() {
    for_every_world(|world| {
        let creates = |step: &Step| matches!(step, Step::CreateRollback { .. } | Step::Apply { .. });
        assert!(!world.terminating || !world.plan().steps.iter().any(creates));
    });
}

#[test]
fn what_lives_is_not_uninstalled_by_itself() {
    for_every_world(|world| {
        let last = world.newest().map(|record| record.manifest);
        let lives = |object: &Object| {
            let live = object.live.as_ref().filter(|live| live.owner == Owner::Ours && !live.terminating);
            last.is_some_and(|last| object.listed.contains(&last)) && live.is_some_and(|live| live.lives)
        };
        if world.policy.strategy == Strategy::Auto && world.intent != Intent::Absent && world.objects.iter().any(lives)
        {
            assert!(!matches!(world.plan().verdict, Verdict::Uninstall | Verdict::CompleteUninstall));
        }
    });
}

#[test]
fn a_plan_that_was_run_leaves_no_lock_and_at_most_one_deployed_record() {
    for_every_world(|world| {
        let plan = world.plan();
        // Exactly one record goes, so what is below it is left for the next repair.
        if !plan.acts() || plan.verdict == Verdict::Quarantine {
            return;
        }
        world.run(&plan, plan.steps.len());
        assert!(!world.is_locked(), "{:?}", world.records);
        assert!(world.deployed() <= 1, "{:?}", world.records);
    });
}

#[test]
fn a_plan_that_was_run_leaves_nothing_to_do() {
    for_every_world(|world| {
        let plan = world.plan();
        world.run(&plan, plan.steps.len());
        let again = world.plan();
        // What a record that goes lays bare is a case of its own.
        let lays_bare = matches!(plan.verdict, Verdict::Quarantine | Verdict::Uninstall);
        assert!(lays_bare || !again.acts(), "then {:?}: {:?}", again.verdict, again.steps);
    });
}

#[test]
fn repairs_come_to_an_end() {
    for_every_world(|world| {
        let mut left = world.records.len() + 2;
        loop {
            let plan = world.plan();
            if !plan.acts() {
                break;
            }
            assert!(left > 0, "still {:?}: {:?}", plan.verdict, plan.steps);
            left -= 1;
            world.run(&plan, plan.steps.len());
        }
    });
}

#[test]
fn a_repair_that_is_killed_after_any_step_is_completed_by_the_next() {
    for_every_world(|world| {
        let plan = world.plan();
        for done in 1..plan.steps.len() {
            let mut killed = world.clone();
            killed.run(&plan, done);
            // The next repair comes hours later, and a person's word was of another record.
            (killed.silent, killed.lease, killed.policy.assume_dead) = (Some(7200), Lease::Free, AssumeDead::No);
            // The record that was repaired is gone: what it lays bare is a case of its own.
            if killed.newest().map(|record| record.revision) < world.newest().map(|record| record.revision) {
                continue;
            }
            let next = killed.plan();
            assert_ne!(next.verdict, Verdict::Refuse, "killed after {done} of {:?}", plan.steps);
            let records = killed.records.len();
            killed.run(&next, next.steps.len());
            let stacks =
                plan.verdict == Verdict::Rollback && killed.records.len() > records.max(world.records.len() + 1);
            assert!(!stacks, "killed after {done} of {:?}, then {:?}", plan.steps, next.steps);
            assert!(!killed.is_locked(), "killed after {done} of {:?}, then {:?}", plan.steps, next.steps);
        }
    });
}

/// The other properties say something only of plans that are made.
#[test]
fn every_verdict_is_reached() {
    let mut reached = BTreeSet::new();
    for seed in 0..SEEDS {
        reached.insert(format!("{:?}", World::random(&mut Dice(seed)).plan().verdict));
    }
    assert_eq!(reached.len(), 13, "{reached:?}");
}

fn for_every_world(holds: impl Fn(&mut World)) {
    for seed in 0..SEEDS {
        let mut world = World::random(&mut Dice(seed));
        let made = format!("{world:?}");
        let run = std::panic::AssertUnwindSafe(|| holds(&mut world));
        assert!(std::panic::catch_unwind(run).is_ok(), "seed {seed}: {made}");
    }
}

// ---- a world, and what a plan does to it ----------------------------------------------------------------------------

#[derive(Debug, Clone)]
struct World {
    records: Vec<Record>,
    objects: Vec<Object>,
    hooks: Vec<HookObject>,
    unknown: BTreeSet<Manifest>,
    silent: Option<i64>,
    lease: Lease,
    deployer: bool,
    terminating: bool,
    policy: Policy,
    intent: Intent,
}

/// Which text a record holds: revisions with the same number have the same manifest.
type Manifest = u32;

#[derive(Debug, Clone)]
struct Record {
    revision: u32,
    status: &'static str,
    description: String,
    manifest: Manifest,
    rollback_revision: Option<u32>,
    deleted: bool,
    post_hook: Option<&'static str>,
    stale_hook: bool,
    label_lies: bool,
    damage: Damage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    None,
    Unreadable,
    OtherName,
}

#[derive(Debug, Clone)]
struct Object {
    id: ObjectId,
    listed: BTreeSet<Manifest>,
    keep: bool,
    live: Option<State>,
}

#[derive(Debug, Clone)]
struct State {
    uid: String,
    owner: Owner,
    terminating: bool,
    ready: bool,
    lives: bool,
    born: bool,
    holds: BTreeSet<Manifest>,
}

impl World {
    fn plan(&self) -> Plan {
        decide(&self.history(), &self.evidence(), self.intent, &self.policy)
    }

    fn newest(&self) -> Option<&Record> {
        self.records.last()
    }

    fn is_locked(&self) -> bool {
        self.newest().is_some_and(|record| record.says("pending"))
    }

    fn deployed(&self) -> usize {
        self.records.iter().filter(|record| record.says("deployed")).count()
    }

    fn is_guarded(&self, id: &ObjectId) -> bool {
        let claim = |object: &Object| object.id.kind == "PersistentVolumeClaim" && object.live.is_some();
        match id.kind.as_str() {
            "Namespace" | "CustomResourceDefinition" | "PersistentVolumeClaim" => true,
            "Secret" => self.objects.iter().any(claim),
            _ => false,
        }
    }

    /// Does the first `count` steps of a plan. Nobody else is at work, and what is applied becomes ready.
    fn run(&mut self, plan: &Plan, count: usize) {
        for step in plan.steps.iter().take(count) {
            match step {
                Step::CreateRollback { revision, target } => self.create_rollback(revision.get(), target.get()),
                Step::Close { revision, status, description } => {
                    let record = self.record(revision.get());
                    record.status = status_word(status.0.as_str());
                    record.description.clone_from(description);
                    record.label_lies = false;
                }
                Step::Relabel { revision } => self.record(revision.get()).label_lies = false,
                Step::Apply { revision, .. } => self.apply(revision.get()),
                Step::DeleteObjects { .. } => {
                    let goes = |id: &ObjectId| plan.deletes.iter().any(|deletion| &deletion.object == id);
                    self.objects.iter_mut().filter(|object| goes(&object.id)).for_each(|object| object.live = None);
                    self.hooks.retain(|hook| !goes(&hook.id));
                }
                Step::AwaitReady { .. } => {}
                Step::DeleteRecord { revision } | Step::Quarantine { revision } => {
                    self.records.retain(|record| record.revision != revision.get());
                }
            }
        }
    }

    fn record(&mut self, revision: u32) -> &mut Record {
        self.records.iter_mut().find(|record| record.revision == revision).unwrap()
    }

    /// The new record is the last one, so nothing that exists was made by its operation.
    fn create_rollback(&mut self, revision: u32, target: u32) {
        let target = self.record(target).clone();
        self.records.push(Record {
            revision,
            status: "pending-rollback",
            description: format!("Rollback to {}", target.revision),
            rollback_revision: Some(target.revision),
            deleted: false,
            stale_hook: true,
            label_lies: false,
            ..target
        });
        self.objects.iter_mut().filter_map(|object| object.live.as_mut()).for_each(|live| live.born = false);
        self.hooks.iter_mut().for_each(|hook| hook.born = false);
    }

    fn apply(&mut self, revision: u32) {
        let manifest = self.record(revision).manifest;
        for object in self.objects.iter_mut().filter(|object| object.listed.contains(&manifest)) {
            let uid = object.live.as_ref().map_or_else(|| format!("new {}", object.id), |live| live.uid.clone());
            let born = object.live.as_ref().is_none_or(|live| live.born);
            let live = object.live.get_or_insert_with(|| State::new(uid));
            (live.owner, live.ready, live.lives, live.born) = (Owner::Ours, true, true, born);
            if !live.holds.contains(&manifest) {
                live.holds = [manifest].into();
            }
        }
    }

    fn history(&self) -> History {
        let entries = self.records.iter().map(Record::entry).collect();
        History::new("web".parse().unwrap(), "ns".parse().unwrap(), entries)
    }

    fn evidence(&self) -> Evidence {
        let now = RECORD_TIME.parse::<DateTime<Utc>>().unwrap() + TimeDelta::days(1);
        let last_sign = self.silent.map(|seconds| now - TimeDelta::seconds(seconds));
        let unknown = |record: &Record| Listed {
            revision: Revision::new(record.revision).unwrap(),
            id: id("example.com", "Widget", "w"),
            api_version: "example.com/v1".into(),
        };
        Evidence {
            now,
            author: Author { lease: self.lease.clone(), last_sign, manager: None },
            hooks: self.hooks.clone(),
            objects: self.objects.iter().map(|object| self.seen(object)).collect(),
            deployer: self.deployer.then(|| Deployer { name: "Argo CD", mark: "annotation".into() }),
            namespace: if self.terminating { NamespacePhase::Terminating } else { NamespacePhase::Active },
            unknown_kinds: self.records.iter().filter(|r| self.unknown.contains(&r.manifest)).map(unknown).collect(),
            elsewhere: None,
            weaker: Vec::new(),
        }
    }

    fn seen(&self, object: &Object) -> Seen {
        let revisions = |manifests: &BTreeSet<Manifest>| {
            let of = self.records.iter().filter(|record| manifests.contains(&record.manifest));
            of.filter_map(|record| Revision::new(record.revision)).collect()
        };
        let live = object.live.as_ref().map(|live| Live {
            uid: live.uid.clone(),
            owner: live.owner.clone(),
            terminating: live.terminating,
            readiness: if live.ready { Readiness::Current } else { Readiness::InProgress { why: "0 of 1".into() } },
            lives: live.lives,
            born: live.born,
            holds: revisions(&live.holds),
        });
        Seen { id: object.id.clone(), listed: revisions(&object.listed), keep: object.keep, live }
    }
}

impl State {
    fn new(uid: String) -> Self {
        let holds = BTreeSet::new();
        Self { uid, owner: Owner::Ours, terminating: false, ready: true, lives: false, born: true, holds }
    }
}

impl Record {
    fn says(&self, word: &str) -> bool {
        self.damage == Damage::None && self.status.starts_with(word)
    }

    fn entry(&self) -> Entry {
        let status = if self.label_lies { "deployed?" } else { self.status };
        let labels: BTreeMap<String, String> = [("owner", "helm"), ("name", "web"), ("status", status)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into_iter()
            .chain([("version".to_owned(), self.revision.to_string())])
            .collect();
        let key = format!("sh.helm.release.v1.web.v{}", self.revision);
        let stored = Stored { key, labels, resource_version: self.revision.to_string(), ..Stored::default() };
        let content = match self.damage {
            Damage::Unreadable => Content::Unreadable { why: "is not base64".into() },
            Damage::None | Damage::OtherName => Content::Readable(Box::new(Release::parse(&self.json()).unwrap())),
        };
        Entry::place(stored, content).unwrap()
    }

    fn json(&self) -> String {
        let started = if self.stale_hook { "2025-12-31T00:00:00Z" } else { RECORD_TIME };
        let hook = |phase: &&str| {
            let run = json!({"started_at": started, "phase": phase});
            let events = ["post-install", "post-upgrade", "post-rollback"];
            json!({"name": "post", "kind": "Job", "events": events, "last_run": run})
        };
        let deleted = if self.deleted { RECORD_TIME } else { "" };
        let mut info = json!({"status": self.status, "description": self.description, "deleted": deleted,
            "last_deployed": RECORD_TIME});
        if let Some(to) = self.rollback_revision {
            info["rollback_revision"] = json!(to);
        }
        let name = if self.damage == Damage::OtherName { "zzz" } else { "web" };
        let hooks: Vec<_> = self.post_hook.iter().map(hook).collect();
        let manifest = format!("manifest {}", self.manifest);
        json!({"name": name, "version": self.revision, "info": info, "manifest": manifest, "hooks": hooks}).to_string()
    }
}

fn status_word(word: &str) -> &'static str {
    STATUSES.into_iter().find(|status| *status == word).unwrap()
}

fn id(group: &str, kind: &str, name: &str) -> ObjectId {
    let cluster = matches!(kind, "Namespace" | "CustomResourceDefinition");
    let namespace = (!cluster).then(|| "ns".into());
    ObjectId { group: group.into(), kind: kind.into(), namespace, name: name.into() }
}

// ---- chance ---------------------------------------------------------------------------------------------------------

const STATUSES: [&str; 10] = [
    "deployed",
    "superseded",
    "failed",
    "pending-install",
    "pending-upgrade",
    "pending-rollback",
    "uninstalling",
    "uninstalled",
    "unknown",
    "banana",
];
const DESCRIPTIONS: [&str; 6] = [
    "Install complete",
    "Upgrade complete",
    "Preparing upgrade",
    "superseded by new release",
    "Rollback \"web\" failed: boom",
    "Interrupted upgrade: unlocked, no object was touched",
];
const KINDS: [(&str, &str, &str); 9] = [
    ("", "ConfigMap", "a"),
    ("", "ConfigMap", "b"),
    ("apps", "Deployment", "web"),
    ("batch", "Job", "seed"),
    ("", "Secret", "password"),
    ("", "PersistentVolumeClaim", "data"),
    ("apiextensions.k8s.io", "CustomResourceDefinition", "widgets.example.com"),
    ("", "Namespace", "other"),
    ("", "Namespace", "ns"),
];
const MANIFESTS: std::ops::Range<Manifest> = 0..3;

/// SplitMix64: the same worlds on every machine, from a seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn subset<T: Ord>(&mut self, from: impl IntoIterator<Item = T>, chance: usize) -> BTreeSet<T> {
        from.into_iter().filter(|_| self.percent(chance)).collect()
    }
}

impl World {
    fn random(dice: &mut Dice) -> Self {
        let count = dice.below(6);
        let mut records: Vec<Record> = Vec::new();
        for at in 1..=count {
            let revision = records.last().map_or(0, |record| record.revision) + if dice.percent(15) { 2 } else { 1 };
            records.push(Record::random(dice, revision, at == count));
        }
        let objects = KINDS.into_iter().filter(|_| dice.percent(50)).collect::<Vec<_>>();
        let hooks = usize::from(dice.percent(30)) + usize::from(dice.percent(10));
        let lease = match dice.below(10) {
            0 => Lease::Held { holder: "gwrepair".into(), until: RECORD_TIME.parse().unwrap() },
            1 => Lease::Expired { holder: "gwrepair".into() },
            2 => Lease::Unreadable("forbidden".into()),
            _ => Lease::Free,
        };
        Self {
            objects: objects
                .into_iter()
                .map(|(group, kind, name)| Object::random(dice, id(group, kind, name)))
                .collect(),
            hooks: (0..hooks).map(|at| random_hook(dice, at)).collect(),
            unknown: if dice.percent(10) { dice.subset(MANIFESTS, 40) } else { BTreeSet::new() },
            silent: dice.pick(&[Some(10), Some(600), Some(7200), Some(7200), Some(7200), None]),
            lease,
            deployer: dice.percent(5),
            terminating: dice.percent(5),
            policy: random_policy(dice, &records),
            intent: dice.pick(&[Intent::Usable, Intent::Usable, Intent::Present, Intent::Absent]),
            records,
        }
    }
}

impl Record {
    fn random(dice: &mut Dice, revision: u32, is_last: bool) -> Self {
        let open = if is_last { dice.percent(70) } else { dice.percent(20) };
        let status = if open { dice.pick(&STATUSES[3..7]) } else { dice.pick(&STATUSES) };
        let to = u32::try_from(dice.below(6)).unwrap();
        let described = if dice.percent(20) { format!("Rollback to {to}") } else { dice.pick(&DESCRIPTIONS).into() };
        Self {
            revision,
            status,
            description: described,
            manifest: dice.pick(&MANIFESTS.collect::<Vec<_>>()),
            rollback_revision: dice.percent(20).then_some(to),
            deleted: dice.percent(5),
            post_hook: dice.percent(30).then(|| dice.pick(&["Succeeded", "Failed", "Running", ""])),
            stale_hook: dice.percent(30),
            label_lies: dice.percent(10),
            damage: match dice.below(20) {
                0 => Damage::Unreadable,
                1 => Damage::OtherName,
                _ => Damage::None,
            },
        }
    }
}

impl Object {
    fn random(dice: &mut Dice, id: ObjectId) -> Self {
        let listed = dice.subset(MANIFESTS, 60);
        let other = Owner::Other { namespace: "other".into(), name: "api".into() };
        let live = dice.percent(80).then(|| State {
            owner: dice.pick(&[Owner::Ours, Owner::Ours, Owner::Ours, Owner::Ours, Owner::Ours, Owner::Nobody, other]),
            terminating: dice.percent(5),
            ready: dice.percent(80),
            lives: dice.percent(40),
            born: dice.percent(50),
            holds: dice.subset(listed.iter().copied(), 60),
            ..State::new(format!("uid of {id}"))
        });
        Self { id, listed, keep: dice.percent(10), live }
    }
}

fn random_hook(dice: &mut Dice, at: usize) -> HookObject {
    let kind = dice.pick(&["Job", "Job", "PersistentVolumeClaim"]);
    let name = ["post", "pre"][at];
    HookObject {
        id: id(if kind == "Job" { "batch" } else { "" }, kind, name),
        uid: format!("uid of hook {name}"),
        events: vec![format!("{name}-upgrade")],
        delete_policies: dice.subset(["hook-succeeded", "hook-failed"], 50).into_iter().map(Into::into).collect(),
        born: dice.percent(80),
        phase: dice.pick(&[HookPhase::Succeeded, HookPhase::Failed, HookPhase::Active, HookPhase::Missing]),
    }
}

fn random_policy(dice: &mut Dice, records: &[Record]) -> Policy {
    let strategies = [Strategy::Rollback, Strategy::Uninstall, Strategy::Finish, Strategy::Unlock];
    let shown = records.last().map_or(0, |record| record.revision).to_string();
    Policy {
        strategy: if dice.percent(60) { Strategy::Auto } else { dice.pick(&strategies) },
        to: dice.percent(10).then(|| dice.pick(&[1, 2, 3, 9])).and_then(Revision::new),
        assume_dead: if dice.percent(10) { AssumeDead::Shown(shown) } else { AssumeDead::No },
        min_age: Duration::from_secs(300),
        foreign_timeout: Duration::from_secs(3600),
        allow_delete: dice.subset(["namespace", "persistentvolumeclaim", "secret"].map(String::from), 15),
        allow_suspect_target: dice.percent(20),
        stop_hooks: dice.percent(20),
        delete_hooks: dice.percent(20),
        skip_unknown_kinds: dice.percent(20),
        override_deployer: dice.percent(20),
        quarantine: dice.percent(30),
        wait: dice.percent(80),
    }
}
