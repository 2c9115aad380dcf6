//! The lives of workloads, claims and Pods, as the statuses that real controllers write.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use crate::controllers::PROTECTION;
use crate::kinds::Resource;
use crate::rules::{Fate, Rules};
use crate::store::Key;

/// Which of its ReplicaSets is a Deployment's own.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// How often the Pods' template of a DaemonSet was changed.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// One step of a life.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// The object as it is then.
    pub(crate) object: Option<Value>,
    /// When to look again.
    pub(crate) again: Option<Duration>,
}

/// Whether objects of this kind have a life.
pub(crate) fn has(key: &Key) -> bool {
    matches!(
        (key.group.as_str(), key.plural.as_str()),
        ("apps", "deployments" | "statefulsets" | "daemonsets" | "replicasets")
            | ("batch", "jobs")
            | ("", "pods" | "persistentvolumeclaims")
            | ("apiextensions.k8s.io", "customresourcedefinitions")
    )
}

/// What a new object is given besides its defaults.
pub(crate) fn begin(resource: &Resource, object: &mut Value) {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => object["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"}),
        ("", "PersistentVolumeClaim") => object["status"] = json!({"phase": "Pending"}),
        ("", "Namespace") => object["status"] = json!({"phase": "Active"}),
        ("apps", "DaemonSet") => object["metadata"]["annotations"][TEMPLATE_GENERATION] = json!("1"),
        _ => {}
    }
}

/// What the server gives a new object without giving it to its creator's ownership.
pub(crate) fn allot(resource: &Resource, object: &mut Value) {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "PersistentVolumeClaim") => object["metadata"]["finalizers"] = json!([PROTECTION]),
        ("", "Namespace") => object["spec"] = json!({"finalizers": ["kubernetes"]}),
        ("", "Service") => address(object, &uid),
        ("batch", "Job") => mark(object, &uid),
        _ => {}
    }
}

fn address(object: &mut Value, uid: &str) {
    let spec = &mut object["spec"];
    if spec["type"] == "ExternalName" {
        return;
    }
    let number = u64::from_str_radix(uid.rsplit('-').next().unwrap_or_default(), 16).unwrap_or_default();
    if spec["clusterIP"].as_str().unwrap_or_default().is_empty() {
        spec["clusterIP"] = json!(format!("10.96.{}.{}", (number / 250) % 250, number % 250 + 1));
    }
    spec["clusterIPs"] = json!([spec["clusterIP"]]);
    if spec["clusterIP"] != "None" || spec["selector"].is_object() {
        spec["ipFamilies"] = json!(["IPv4"]);
        spec["ipFamilyPolicy"] = json!("SingleStack");
    }
}

fn mark(object: &mut Value, uid: &str) {
    let name = object["metadata"]["name"].clone();
    object["spec"]["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    let labels = &mut object["spec"]["template"]["metadata"]["labels"];
    for (key, value) in [
        ("batch.kubernetes.io/controller-uid", json!(uid)),
        ("batch.kubernetes.io/job-name", name.clone()),
        ("controller-uid", json!(uid)),
        ("job-name", name),
    ] {
        labels[key] = value;
    }
}

/// The ReplicaSet for the template of a Deployment, and its name.
pub(crate) fn replica_set(deployment: &Value) -> (String, Value) {
    let (metadata, spec) = (&deployment["metadata"], &deployment["spec"]);
    let hash = hash(&spec["template"].to_string());
    let name = format!("{}-{hash}", metadata["name"].as_str().unwrap_or_default());
    let mut template = spec["template"].clone();
    template["metadata"]["labels"]["pod-template-hash"] = json!(hash);
    let mut selector = spec["selector"].clone();
    selector["matchLabels"]["pod-template-hash"] = json!(hash);
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "name": metadata["name"], "uid": metadata["uid"],
        "controller": true, "blockOwnerDeletion": true,
    });
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": name, "labels": template["metadata"]["labels"], "ownerReferences": [owner], "generation": 1,
            "annotations": {REVISION: "1"},
        },
        "spec": {"replicas": spec["replicas"], "selector": selector, "template": template},
        "status": {"replicas": 0},
    });
    (name, set)
}

/// Ten digits that differ where texts do (FNV-1a).
fn hash(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{:010x}", hash & 0xff_ffff_ffff)
}

/// The next step of an object's life; none if there is none.
pub(crate) fn next(key: &Key, live: &Value, rules: &Rules, now: DateTime<Utc>) -> Option<Step> {
    let life = Life { live, rules, now };
    match (key.group.as_str(), key.plural.as_str()) {
        ("apps", "deployments") => Some(life.deployment()),
        ("apps", _) => Some(life.set(&key.plural)),
        ("batch", "jobs") => life.job(),
        ("", "pods") => life.pod(),
        ("", "persistentvolumeclaims") => life.claim(),
        _ => life.definition(),
    }
}

struct Life<'a> {
    live: &'a Value,
    rules: &'a Rules,
    now: DateTime<Utc>,
}

impl Life<'_> {
    fn stamp(&self) -> String {
        self.now.to_rfc3339_opts(SecondsFormat::Secs, true)
    }

    fn condition(&self, kind: &str, status: &str, reason: &str, message: &str) -> Value {
        let seen = self.live["status"]["conditions"].as_array();
        let old = seen.into_iter().flatten().find(|known| known["type"] == kind);
        let since = old.filter(|old| old["status"] == status).map(|old| old["lastTransitionTime"].clone());
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since.unwrap_or(json!(self.stamp())),
        })
    }

    fn with_status(&self, status: Value) -> Option<Value> {
        let mut object = self.live.clone();
        if object["kind"] == "Deployment" && object["metadata"]["annotations"].get(REVISION).is_none() {
            object["metadata"]["annotations"][REVISION] = json!("1");
        }
        object["status"] = status;
        Some(object)
    }

    fn deployment(&self) -> Step {
        let (metadata, spec, status) = (&self.live["metadata"], &self.live["spec"], &self.live["status"]);
        let generation = &metadata["generation"];
        let wanted = spec["replicas"].as_u64().unwrap_or(1);
        let fate = Fate::of(&spec["template"]["metadata"]);
        let is_fresh = status["observedGeneration"] != *generation;
        let name = metadata["name"].as_str().unwrap_or_default();
        if is_fresh && (fate != Fate::Well || !self.rules.ready_after.is_zero()) {
            let was_ready = status["availableReplicas"].as_u64().unwrap_or_default();
            let available = if was_ready > 0 {
                self.condition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
            } else {
                let why = "Deployment does not have minimum availability.";
                self.condition("Available", "False", "MinimumReplicasUnavailable", why)
            };
            let text = format!("ReplicaSet for {name:?} is progressing.");
            let progressing = self.condition("Progressing", "True", "ReplicaSetUpdated", &text);
            let mut fresh = json!({
                "observedGeneration": generation, "replicas": was_ready + wanted.min(1), "updatedReplicas": wanted.min(1),
                "unavailableReplicas": wanted.min(1), "conditions": [available, progressing],
            });
            if was_ready > 0 {
                fresh["readyReplicas"] = json!(was_ready);
                fresh["availableReplicas"] = json!(was_ready);
            }
            let again = (fate == Fate::Well).then_some(self.rules.ready_after);
            return Step { object: self.with_status(fresh), again };
        }
        if fate != Fate::Well {
            return Step::default();
        }
        let text = format!("ReplicaSet for {name:?} has successfully progressed.");
        let mut ready = json!({
            "observedGeneration": generation,
            "conditions": [
                self.condition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
                self.condition("Progressing", "True", "NewReplicaSetAvailable", &text),
            ],
        });
        if wanted > 0 {
            for member in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"] {
                ready[member] = json!(wanted);
            }
        }
        Step { object: self.with_status(ready), again: None }
    }

    /// Stateful sets, daemon sets and replica sets count their Pods, each in words of its own.
    fn set(&self, plural: &str) -> Step {
        let (metadata, spec) = (&self.live["metadata"], &self.live["spec"]);
        let fate = Fate::of(&spec["template"]["metadata"]);
        let is_fresh = self.live["status"]["observedGeneration"] != metadata["generation"];
        let takes_time = is_fresh && !self.rules.ready_after.is_zero();
        let is_well = fate == Fate::Well && !takes_time;
        let wanted = spec["replicas"].as_u64().unwrap_or(1);
        let ready = if is_well { wanted } else { 0 };
        let mut status = json!({"observedGeneration": metadata["generation"]});
        match plural {
            "daemonsets" => {
                for member in ["currentNumberScheduled", "desiredNumberScheduled", "updatedNumberScheduled"] {
                    status[member] = json!(1);
                }
                for member in ["numberReady", "numberAvailable"] {
                    status[member] = json!(u64::from(is_well));
                }
                status["numberMisscheduled"] = json!(0);
            }
            "statefulsets" => {
                let name = metadata["name"].as_str().unwrap_or_default();
                let revision = format!("{name}-{}", metadata["generation"]);
                for member in ["replicas", "currentReplicas", "updatedReplicas"] {
                    status[member] = json!(wanted);
                }
                for member in ["readyReplicas", "availableReplicas"] {
                    status[member] = json!(ready);
                }
                for member in ["currentRevision", "updateRevision"] {
                    status[member] = json!(revision);
                }
                status["collisionCount"] = json!(0);
            }
            _ => {
                status["replicas"] = json!(wanted);
                status["fullyLabeledReplicas"] = json!(wanted);
                status["readyReplicas"] = json!(ready);
                status["availableReplicas"] = json!(ready);
            }
        }
        let again = (takes_time && fate == Fate::Well).then_some(self.rules.ready_after);
        Step { object: self.with_status(status), again }
    }

    fn job(&self) -> Option<Step> {
        let status = &self.live["status"];
        let is_over = |kind: &str| {
            let conditions = status["conditions"].as_array().into_iter().flatten();
            conditions.into_iter().any(|known| known["type"] == kind && known["status"] == "True")
        };
        if is_over("Complete") || is_over("Failed") {
            return None;
        }
        let fate = Fate::of(&self.live["spec"]["template"]["metadata"]);
        if status.get("startTime").is_none() {
            let begun = json!({"startTime": self.stamp(), "active": 1, "ready": 1, "terminating": 0, "uncountedTerminatedPods": {}});
            let ends = [Fate::Well, Fate::Fails].contains(&fate);
            return Some(Step { object: self.with_status(begun), again: ends.then_some(self.rules.complete_after) });
        }
        if ![Fate::Well, Fate::Fails].contains(&fate) {
            return None;
        }
        let start = &status["startTime"];
        let ended = if fate == Fate::Well {
            json!({
                "startTime": start, "completionTime": self.stamp(), "succeeded": 1, "ready": 0, "terminating": 0,
                "uncountedTerminatedPods": {},
                "conditions": [
                    self.over("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods"),
                    self.over("Complete", "CompletionsReached", "Reached expected number of succeeded pods"),
                ],
            })
        } else {
            let why = "Job has reached the specified backoff limit";
            json!({
                "startTime": start, "failed": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
                "conditions": [
                    self.over("FailureTarget", "BackoffLimitExceeded", why),
                    self.over("Failed", "BackoffLimitExceeded", why),
                ],
            })
        };
        Some(Step { object: self.with_status(ended), again: None })
    }

    fn over(&self, kind: &str, reason: &str, message: &str) -> Value {
        let mut condition = self.condition(kind, "True", reason, message);
        condition["lastProbeTime"] = json!(self.stamp());
        condition
    }

    fn pod(&self) -> Option<Step> {
        let status = &self.live["status"];
        if status["phase"] != "Pending" && status["phase"] != "Running" {
            return None;
        }
        let fate = Fate::of(&self.live["metadata"]);
        let ends = self.live["spec"]["restartPolicy"] != "Always" && [Fate::Well, Fate::Fails].contains(&fate);
        let waits = if ends { self.rules.complete_after } else { self.rules.ready_after };
        if status["phase"] == "Pending" {
            let running = json!({"phase": "Running", "qosClass": "BestEffort", "startTime": self.stamp()});
            return Some(Step {
                object: self.with_status(running),
                again: (fate != Fate::NeverReady).then_some(waits),
            });
        }
        let phase = match (ends, fate) {
            (true, Fate::Fails) => "Failed",
            (true, _) => "Succeeded",
            (false, _) => "Running",
        };
        let is_ready = if ends { "False" } else { "True" };
        let mut settled = status.clone();
        settled["phase"] = json!(phase);
        settled["conditions"] = json!([
            self.condition("Ready", is_ready, if ends { "PodCompleted" } else { "" }, ""),
            self.condition("ContainersReady", is_ready, "", ""),
        ]);
        (settled != *status).then(|| Step { object: self.with_status(settled), again: None })
    }

    fn claim(&self) -> Option<Step> {
        if self.live["status"]["phase"] != "Pending" || self.live["spec"]["storageClassName"].is_string() {
            return None;
        }
        let age =
            self.live["metadata"]["creationTimestamp"].as_str().and_then(|text| text.parse::<DateTime<Utc>>().ok());
        let left = age.map(|created| (created + self.rules.bound_after - self.now).to_std().unwrap_or_default());
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            return Some(Step { object: None, again: Some(left) });
        }
        let spec = &self.live["spec"];
        let status =
            json!({"phase": "Bound", "accessModes": spec["accessModes"], "capacity": spec["resources"]["requests"]});
        let mut object = self.with_status(status)?;
        object["spec"]["volumeName"] =
            json!(format!("pvc-{}", self.live["metadata"]["uid"].as_str().unwrap_or_default()));
        Some(Step { object: Some(object), again: None })
    }

    fn definition(&self) -> Option<Step> {
        if self.live["status"]["conditions"].is_array() {
            return None;
        }
        let stored = self.live["spec"]["versions"].as_array().into_iter().flatten();
        let stored: Vec<_> =
            stored.filter(|version| version["storage"] == true).map(|version| &version["name"]).collect();
        let status = json!({
            "acceptedNames": self.live["spec"]["names"], "storedVersions": stored,
            "conditions": [
                self.condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
                self.condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
            ],
        });
        Some(Step { object: self.with_status(status), again: None })
    }
}
