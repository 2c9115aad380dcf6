//! Gathers evidence: reads and dry runs, never a write.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::error::Error;
use super::probe::Probe;
use super::scene::{self, Scene};
use crate::cluster::{self, Kinds, Place, Resource, Stop, Wire, encode};
use crate::manifest::{Manifest, ObjectId};
use crate::plan::{Author, Deployer, Evidence, Goal, HookObject, HookPhase, Lease, NamespacePhase, Policy, goal};
use crate::release::{ApplyMethod, Entry, History, Hook, Namespace, Release, Status};

/// The manager that Helm itself is, where no live object tells better.
const HELM: &str = "helm";
const CONTROLLERS: [&str; 3] = ["kube-controller-manager", "kube-scheduler", "kubelet"];

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

    /// Reads the objects of all revisions in question, and tries manifests on them.
    pub(super) async fn look(&mut self, wire: &Wire, policy: &Policy, stop: &Stop) -> Result<(), Error> {
        let Some((last, release)) = open_operation(&self.history) else { return Ok(()) };
        let (last, release) = (last.clone(), release.clone());
        let Goal { target, baseline: revisions, .. } = goal(&self.history, last.revision, policy);
        self.scene = Scene::gather(wire, &self.history, &revisions, stop).await?;
        self.manager = manager(&self.scene, release.apply_method());
        self.evidence.unknown_kinds = self.scene.unknown.clone();
        self.evidence.deployer = deployer(&self.scene);
        self.evidence.namespace = site(wire, &self.history.namespace, stop).await?.phase();
        for (hook, resource, live) in hooks(wire, &self.history, &last, &release, stop).await? {
            self.scene.hooks.insert(hook.id.clone(), (resource, live));
            self.evidence.hooks.push(hook);
        }
        let probe = Probe { wire, observation: self, last: &last, target, revisions: &revisions, stop };
        let (objects, weaker) = probe.all().await?;
        self.evidence.objects = objects;
        self.evidence.weaker = weaker;
        self.evidence.author =
            Author { lease: Lease::Free, last_sign: self.last_sign(&last), manager: Some(self.manager.clone()) };
        Ok(())
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

pub(super) struct ManagedFields {
    pub(super) manager: String,
    operation: String,
    pub(super) time: Option<DateTime<Utc>>,
}

/// Who wrote an object, subresources aside.
pub(super) fn managed(object: &Value) -> impl Iterator<Item = ManagedFields> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.filter(|entry| entry["subresource"].as_str().is_none_or(str::is_empty)).map(|entry| {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        ManagedFields { manager: text("manager"), operation: text("operation"), time: text("time").parse().ok() }
    })
}

/// The manager that most live objects show for the way they were applied.
pub(super) fn manager(scene: &Scene, method: ApplyMethod) -> String {
    let operation = match method {
        ApplyMethod::ServerSide => "Apply",
        ApplyMethod::ClientSide => "Update",
    };
    let mut votes = BTreeMap::<String, usize>::new();
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

/// The namespace of a release, as far as it may be read.
pub(super) enum Site {
    Missing,
    Hidden,
    There(Value),
}

impl Site {
    fn phase(&self) -> NamespacePhase {
        match self {
            Self::There(_) if self.is_going() => NamespacePhase::Terminating,
            Self::There(_) => NamespacePhase::Active,
            Self::Missing | Self::Hidden => NamespacePhase::Unknown,
        }
    }

    pub(super) fn is_going(&self) -> bool {
        matches!(self, Self::There(namespace) if namespace["metadata"]["deletionTimestamp"].is_string())
    }

    pub(super) fn uid(&self) -> Option<String> {
        match self {
            Self::There(namespace) => namespace["metadata"]["uid"].as_str().map(str::to_owned),
            Self::Missing | Self::Hidden => None,
        }
    }
}

pub(super) async fn site(wire: &Wire, namespace: &Namespace, stop: &Stop) -> Result<Site, Error> {
    let path = format!("/api/v1/namespaces/{}", encode(namespace.as_str()));
    let call = cluster::Call::get(format!("read namespace {namespace}"), path);
    match wire.find(call, stop).await {
        Ok(None) => Ok(Site::Missing),
        Ok(Some(answer)) => Ok(Site::There(answer.json()?)),
        Err(error) if error.code() == Some(403) => Ok(Site::Hidden),
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
) -> Result<Vec<(HookObject, Resource, Value)>, Error> {
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
            found.push((hook_object(id, hook, &live, last), resource.clone(), live));
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
