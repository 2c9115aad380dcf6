//! Gathers evidence: reads and dry runs, never a write.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::error::Error;
use super::scene::{self, Item, Scene};
use crate::cluster::{self, Cause, Kinds, Place, Resource, Stop, Wire, WriteMode, encode};
use crate::manifest::{Manifest, ObjectId};
use crate::plan::{
    Author, Deployer, Evidence, HookObject, HookPhase, Lease, Live, Marks, NamespacePhase, Owner, Policy, Seen,
    Suspects, target,
};
use crate::readiness;
use crate::release::{Entry, History, Hook, Release, Revision, Status};

/// The manager that Helm itself is, where no live object tells better.
const HELM: &str = "helm";
const CONTROLLERS: [&str; 4] = ["kube-controller-manager", "kube-scheduler", "kubelet", "kwok"];

/// A history and what was seen of it.
#[derive(Debug, Clone)]
pub struct Observation {
    /// All records.
    pub history: History,
    /// What was seen of the author and of the cluster.
    pub evidence: Evidence,
    pub(crate) scene: Scene,
    pub(crate) manager: String,
}

/// What a try of a revision's manifest on a live object showed.
enum Tried {
    Holds,
    Differs,
    /// It may not be tried, so that the text was compared.
    Compared {
        holds: bool,
        why: String,
    },
}

impl Observation {
    /// Nothing but records: enough where no operation is open.
    pub(super) fn of_records(history: History, now: DateTime<Utc>) -> Self {
        let evidence = Evidence {
            now,
            author: Author::default(),
            hooks: Vec::new(),
            objects: Vec::new(),
            deployer: None,
            namespace: NamespacePhase::Active,
            unknown_kinds: Vec::new(),
            elsewhere: None,
            weaker: Vec::new(),
        };
        Self { history, evidence, scene: Scene::default(), manager: HELM.into() }
    }

    /// Reads the objects of all revisions from the target to the last, and tries their manifests on them.
    pub(super) async fn look(&mut self, wire: &Wire, policy: &Policy, stop: &Stop) -> Result<(), Error> {
        let Some((last, release)) = open_operation(&self.history) else { return Ok(()) };
        let (last, release) = (last.clone(), release.clone());
        let revisions = in_question(&self.history, last.revision, policy);
        self.scene = Scene::gather(wire, &self.history, &revisions, stop).await?;
        self.manager = manager(&self.scene, release.apply_method());
        self.evidence.unknown_kinds = self.scene.unknown.clone();
        self.evidence.deployer = deployer(&self.scene);
        self.evidence.namespace = namespace_phase(wire, &self.history, stop).await?;
        for (hook, resource) in hooks(wire, &self.history, &last, &release, stop).await? {
            self.scene.hooks.insert(hook.id.clone(), resource);
            self.evidence.hooks.push(hook);
        }
        self.try_manifests(wire, &revisions, &last, stop).await?;
        self.evidence.author =
            Author { lease: Lease::Free, last_sign: self.last_sign(&last), manager: Some(self.manager.clone()) };
        Ok(())
    }

    async fn try_manifests(
        &mut self,
        wire: &Wire,
        revisions: &[Revision],
        last: &Entry,
        stop: &Stop,
    ) -> Result<(), Error> {
        let looks = self.scene.items.iter().map(|(id, item)| self.seen(wire, id, item, revisions, last, stop));
        let mut all = cluster::all(looks.collect()).await?;
        all.sort_by(|(a, _), (b, _)| a.id.cmp(&b.id));
        for (seen, weaker) in all {
            self.evidence.objects.push(seen);
            self.evidence.weaker.extend(weaker);
        }
        self.evidence.weaker.dedup();
        Ok(())
    }

    async fn seen(
        &self,
        wire: &Wire,
        id: &ObjectId,
        item: &Item,
        revisions: &[Revision],
        last: &Entry,
        stop: &Stop,
    ) -> Result<(Seen, Vec<String>), Error> {
        let mut keep = item.bodies.values().any(crate::manifest::Object::is_kept);
        let mut weaker = Vec::new();
        let live = match &item.live {
            None => None,
            Some(value) => {
                keep |= crate::manifest::is_kept(value);
                let mut live = self.live(value, last);
                // What is being deleted, or is another's, holds nothing, whatever it says.
                if live.is_ours() {
                    let found = self.holds(wire, id, item, revisions, stop).await?;
                    live.holds = found.0;
                    weaker = found.1;
                }
                Some(live)
            }
        };
        Ok((Seen { id: id.clone(), listed: item.listed(), keep, live }, weaker))
    }

    fn live(&self, value: &Value, last: &Entry) -> Live {
        let meta = |key: &str| value["metadata"][key].as_str();
        let note = |key: &str| value["metadata"]["annotations"][key].as_str();
        let marks = Marks {
            release_name: note("meta.helm.sh/release-name"),
            release_namespace: note("meta.helm.sh/release-namespace"),
        };
        let created = meta("creationTimestamp").and_then(|text| text.parse::<DateTime<Utc>>().ok());
        let first = managed(value).min_by_key(|entry| entry.time).map(|entry| entry.manager);
        Live {
            uid: meta("uid").unwrap_or_default().into(),
            owner: Owner::read(marks, &self.history.name, &self.history.namespace),
            terminating: meta("deletionTimestamp").is_some(),
            readiness: readiness::readiness(value, self.evidence.now),
            lives: readiness::has_lived(value),
            born: created.is_some() && created >= last.stored.created && first.as_deref() == Some(&self.manager),
            holds: Default::default(),
        }
    }

    /// Which of the listed revisions the live object holds. Revisions that say the same share one try.
    async fn holds(
        &self,
        wire: &Wire,
        id: &ObjectId,
        item: &Item,
        revisions: &[Revision],
        stop: &Stop,
    ) -> Result<(std::collections::BTreeSet<Revision>, Vec<String>), Error> {
        let mut holds = std::collections::BTreeSet::new();
        let mut weaker = Vec::new();
        let mut tried: Vec<(&Value, bool)> = Vec::new();
        for (revision, body) in item.bodies.iter().rev() {
            let known = tried.iter().find(|(value, _)| *value == &body.value).map(|(_, held)| *held);
            let held = match known {
                Some(held) => held,
                None => match self.try_one(wire, id, item, *revision, revisions, stop).await? {
                    Tried::Holds => true,
                    Tried::Differs => false,
                    Tried::Compared { holds, why } => {
                        weaker.push(why);
                        holds
                    }
                },
            };
            tried.push((&body.value, held));
            if held {
                holds.insert(*revision);
            }
        }
        Ok((holds, weaker))
    }

    /// Tries the very operation that a repair would run, as a dry run, and compares.
    async fn try_one(
        &self,
        wire: &Wire,
        id: &ObjectId,
        item: &Item,
        revision: Revision,
        revisions: &[Revision],
        stop: &Stop,
    ) -> Result<Tried, Error> {
        let method = self.history.get(revision).and_then(Entry::sound).map(Release::apply_method);
        let Some((method, live)) = method.zip(item.live.as_ref()) else { return Ok(Tried::Differs) };
        let patched = |source| Error::Patch { object: id.to_string(), source };
        let Some((body, merge)) = item.merge(revision, revisions, method, true).map_err(patched)? else {
            return Ok(Tried::Holds);
        };
        let place = Place { id, resource: &item.resource };
        match place.write(wire, &body, &merge, &self.manager, WriteMode::DryRun, stop).await {
            Ok(after) if scene::is_unchanged(live, &after) => Ok(Tried::Holds),
            Ok(_) => Ok(Tried::Differs),
            Err(error) => untried(error, || scene::contains(live, &body)),
        }
    }

    /// The newest sign of whoever wrote the last record, in server time.
    fn last_sign(&self, last: &Entry) -> Option<DateTime<Utc>> {
        let of_last = self.scene.items.values().filter(|item| item.bodies.contains_key(&last.revision));
        let writes = of_last.filter_map(|item| item.live.as_ref()).flat_map(|live| {
            managed(live).filter(|entry| entry.manager == self.manager).filter_map(|entry| entry.time)
        });
        writes.chain(last.stored.created).chain(last.stored.touched).max()
    }
}

/// A refusal of the content is an answer; a missing right or a webhook without dry run leaves the text to compare.
fn untried(error: cluster::Error, text_holds: impl Fn() -> bool) -> Result<Tried, Error> {
    match &error.cause {
        Cause::Forbidden { verb, resource, .. } => {
            let why = format!("no right to {verb} {resource}: the text was compared instead of a dry run");
            Ok(Tried::Compared { holds: text_holds(), why })
        }
        Cause::Refused { message, .. } if message.contains("does not support dry run") => {
            let why = "a webhook does not support dry run: the text was compared".into();
            Ok(Tried::Compared { holds: text_holds(), why })
        }
        Cause::Refused { code: 400..=499, .. } => Ok(Tried::Differs),
        Cause::Refused { .. } | Cause::Unreachable(_) | Cause::Malformed(_) | Cause::Stopped(_) => Err(error.into()),
    }
}

/// The last record, if an operation on it is open.
pub(super) fn open_operation(history: &History) -> Option<(&Entry, &Release)> {
    let last = history.last()?;
    let release = last.sound()?;
    match release.status() {
        Status::PendingInstall
        | Status::PendingUpgrade
        | Status::PendingRollback
        | Status::Uninstalling
        | Status::Unknown
        | Status::Other(_) => Some((last, release)),
        Status::Deployed | Status::Uninstalled | Status::Superseded | Status::Failed => None,
    }
}

/// All readable revisions from the target to the last.
fn in_question(history: &History, last: Revision, policy: &Policy) -> Vec<Revision> {
    let suspects = if policy.allow_suspect_target { Suspects::Allow } else { Suspects::Skip };
    let target = policy.to.or(target(history, last, suspects).target).unwrap_or(last);
    let between = |entry: &&Entry| (target..=last).contains(&entry.revision) && entry.sound().is_some();
    history.entries().iter().filter(between).map(|entry| entry.revision).collect()
}

struct ManagedFields {
    manager: String,
    operation: String,
    time: Option<DateTime<Utc>>,
}

/// Who wrote an object, subresources aside.
fn managed(object: &Value) -> impl Iterator<Item = ManagedFields> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.filter(|entry| entry["subresource"].as_str().is_none_or(str::is_empty)).map(|entry| {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        ManagedFields { manager: text("manager"), operation: text("operation"), time: text("time").parse().ok() }
    })
}

/// The manager that most live objects show for the way they were applied.
fn manager(scene: &Scene, method: crate::release::ApplyMethod) -> String {
    let operation = match method {
        crate::release::ApplyMethod::ServerSide => "Apply",
        crate::release::ApplyMethod::ClientSide => "Update",
    };
    let mut votes = std::collections::BTreeMap::<String, usize>::new();
    for live in scene.items.values().filter_map(|item| item.live.as_ref()) {
        let mut entries: Vec<_> = managed(live)
            .filter(|entry| entry.operation == operation && !CONTROLLERS.contains(&entry.manager.as_str()))
            .collect();
        entries.sort_by_key(|entry| entry.time);
        if let Some(first) = entries.into_iter().next() {
            *votes.entry(first.manager).or_default() += 1;
        }
    }
    votes.into_iter().max_by_key(|(_, count)| *count).map_or_else(|| HELM.into(), |(manager, _)| manager)
}

/// Argo CD and Flux put back what a repair changes.
fn deployer(scene: &Scene) -> Option<Deployer> {
    let marked = |live: &Value| {
        let metadata = &live["metadata"];
        let argo = "argocd.argoproj.io/tracking-id";
        if metadata["annotations"][argo].is_string() {
            return Some(Deployer { name: "Argo CD", mark: format!("annotation {argo}") });
        }
        if managed(live).any(|entry| entry.manager == "argocd-controller") {
            return Some(Deployer { name: "Argo CD", mark: "field manager argocd-controller".into() });
        }
        let flux = ["helm.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/name"];
        let label = flux.into_iter().find(|label| metadata["labels"][*label].is_string())?;
        Some(Deployer { name: "Flux", mark: format!("label {label}") })
    };
    scene.items.values().filter_map(|item| item.live.as_ref()).find_map(marked)
}

async fn namespace_phase(wire: &Wire, history: &History, stop: &Stop) -> Result<NamespacePhase, Error> {
    let path = format!("/api/v1/namespaces/{}", encode(history.namespace.as_str()));
    let call = cluster::Call::get(format!("read namespace {}", history.namespace), path);
    match wire.find(call, stop).await {
        Ok(None) => Ok(NamespacePhase::Unknown),
        Ok(Some(answer)) => {
            let namespace: Value = answer.json()?;
            let going = namespace["metadata"]["deletionTimestamp"].is_string();
            Ok(if going { NamespacePhase::Terminating } else { NamespacePhase::Active })
        }
        Err(error) if error.code() == Some(403) => Ok(NamespacePhase::Unknown),
        Err(error) => Err(error.into()),
    }
}

/// The hook objects of the open operation: ours by the record's hook manifest and the hook annotation.
async fn hooks(
    wire: &Wire,
    history: &History,
    last: &Entry,
    release: &Release,
    stop: &Stop,
) -> Result<Vec<(HookObject, Resource)>, Error> {
    let revision = last.revision;
    let mut wanted = Vec::new();
    for hook in release.hooks().into_iter().filter(|hook| concerns(hook, release.status())) {
        let manifest = Manifest::parse(&hook.manifest).map_err(|source| Error::Manifest { revision, source })?;
        wanted.extend(manifest.objects.into_iter().map(|object| (hook.clone(), object)));
    }
    let versions = wanted.iter().map(|(_, object)| object.api_version.clone()).collect();
    let kinds = Kinds::discover(wire, &versions, stop).await?;
    let mut found = Vec::new();
    for (hook, object) in wanted {
        let Some(resource) = kinds.get(&object.api_version, &object.id.kind) else { continue };
        let id = scene::identity(&object.id, resource, &history.namespace);
        let Some(live) = Place { id: &id, resource }.get(wire, stop).await? else { continue };
        if live["metadata"]["annotations"]["helm.sh/hook"].is_string() {
            found.push((hook_object(id, hook, &live, last), resource.clone()));
        }
    }
    Ok(found)
}

fn hook_object(id: ObjectId, hook: Hook, live: &Value, last: &Entry) -> HookObject {
    let text = |key: &str| live["metadata"][key].as_str();
    let created = text("creationTimestamp").and_then(|text| text.parse::<DateTime<Utc>>().ok());
    HookObject {
        id,
        uid: text("uid").unwrap_or_default().into(),
        events: hook.events,
        delete_policies: hook.delete_policies,
        born: created.is_some() && created >= last.stored.created,
        phase: hook_phase(live),
    }
}

/// Whether a hook runs in the operation that a status tells of.
fn concerns(hook: &Hook, status: &Status) -> bool {
    let operation = match status {
        Status::PendingInstall => "-install",
        Status::PendingUpgrade => "-upgrade",
        Status::PendingRollback => "-rollback",
        Status::Uninstalling => "-delete",
        Status::Unknown
        | Status::Deployed
        | Status::Uninstalled
        | Status::Superseded
        | Status::Failed
        | Status::Other(_) => return false,
    };
    hook.events.iter().any(|event| event.ends_with(operation))
}

/// Only Jobs and Pods run; any other hook object is over once it is there.
fn hook_phase(live: &Value) -> HookPhase {
    let condition = |kind: &str| {
        let conditions = live["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|entry| entry["type"] == kind && entry["status"] == "True")
    };
    match (live["kind"].as_str(), live["status"]["phase"].as_str()) {
        (Some("Job"), _) if condition("Complete") => HookPhase::Succeeded,
        (Some("Job"), _) if condition("Failed") => HookPhase::Failed,
        (Some("Job"), _) => HookPhase::Active,
        (Some("Pod"), Some("Succeeded")) => HookPhase::Succeeded,
        (Some("Pod"), Some("Failed")) => HookPhase::Failed,
        (Some("Pod"), _) => HookPhase::Active,
        _ => HookPhase::Succeeded,
    }
}
