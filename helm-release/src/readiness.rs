//! How far a live object has come: Current, InProgress, Failed, Terminating, NotFound or Unknown.
//!
//! The rules are those of kstatus (`cli-utils`), by which Helm 4 and Flux wait. They read one object and nothing else: a
//! Deployment is judged by its own status, not by its Pods.
//!
//! # Differences
//! An `observedGeneration` or `generation` of the wrong type counts as text holding a number, or as absent; kstatus gives
//! up and answers Unknown, and a wait never ends.

mod observed;
mod rules;
#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};
use observed::Observed;
use serde_json::Value;

/// How far an object has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It is what its specification asks for.
    Current,
    /// Its controller is at work, or has not looked yet.
    InProgress {
        /// What is missing.
        why: String,
    },
    /// It will not come further without help.
    Failed {
        /// What went wrong.
        why: String,
    },
    /// It is being deleted.
    Terminating,
    /// It does not exist. Never the answer of [`readiness`], which is given an object.
    NotFound,
    /// Its status cannot be read.
    Unknown,
}

impl Readiness {
    /// The kstatus word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Current => "Current",
            Self::InProgress { .. } => "InProgress",
            Self::Failed { .. } => "Failed",
            Self::Terminating => "Terminating",
            Self::NotFound => "NotFound",
            Self::Unknown => "Unknown",
        }
    }

    /// What is missing or went wrong.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::InProgress { why } | Self::Failed { why } => Some(why),
            Self::Current | Self::Terminating | Self::NotFound | Self::Unknown => None,
        }
    }

    fn in_progress(why: impl Into<String>) -> Self {
        Self::InProgress { why: why.into() }
    }

    fn failed(why: impl Into<String>) -> Self {
        Self::Failed { why: why.into() }
    }
}

impl std::fmt::Display for Readiness {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.why() {
            Some(why) => write!(out, "{}: {why}", self.word()),
            None => out.write_str(self.word()),
        }
    }
}

/// How far this object has come.
///
/// Mirrors `status.Compute` of kstatus. `now` tells a Pod that has just been created from one that finds no node.
pub fn readiness(object: &Value, now: DateTime<Utc>) -> Readiness {
    let observed = Observed::of(object);
    if observed.is_being_deleted() {
        return Readiness::Terminating;
    }
    if let Some(why) = observed.unseen_generation() {
        return Readiness::InProgress { why };
    }
    match observed.conditions() {
        Some(conditions) => rules::judge(&observed, &conditions, now),
        None => Readiness::Unknown,
    }
}

/// Whether a Job or Pod has run to its end; anything else is Current at once.
///
/// Mirrors the readers by which Helm 4 waits for hooks and, with `--wait-for-jobs`, for Jobs: to [`readiness`] a Job is
/// Current as soon as it has started, and a Pod even after it has failed.
pub fn completion(object: &Value) -> Readiness {
    let observed = Observed::of(object);
    match (observed.group(), observed.kind()) {
        ("batch", "Job") => observed.conditions().map_or(Readiness::Unknown, |conditions| {
            rules::finished_job(&observed, &conditions)
                .unwrap_or_else(|| Readiness::in_progress("the job has not finished"))
        }),
        ("", "Pod") => rules::finished_pod(&observed),
        _ => Readiness::Current,
    }
}

/// Whether objects of this kind run containers: Deployment, StatefulSet, DaemonSet, ReplicaSet, Pod and Job.
pub fn is_workload(group: &str, kind: &str) -> bool {
    match group {
        "apps" | "extensions" => matches!(kind, "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet"),
        "batch" => kind == "Job",
        "" => kind == "Pod",
        _ => false,
    }
}

/// Whether the object shows that it works or has worked, so that recreating it would lose something.
///
/// A Deployment that is available or has completed a rollout; any other controller with ready Pods; a Pod that is ready
/// or whose containers have started; a Job with a success; every PersistentVolumeClaim. Other kinds do not live.
pub fn has_lived(object: &Value) -> bool {
    let observed = Observed::of(object);
    match (observed.group(), observed.kind()) {
        ("apps" | "extensions", "Deployment") => deployment_has_lived(&observed),
        ("apps" | "extensions", "StatefulSet" | "ReplicaSet") => {
            observed.counts(&["readyReplicas", "availableReplicas"])
        }
        ("apps" | "extensions", "DaemonSet") => observed.counts(&["numberReady", "numberAvailable"]),
        ("batch", "Job") => job_has_lived(&observed),
        ("", "Pod") => pod_has_lived(&observed),
        ("", "PersistentVolumeClaim") => true,
        _ => false,
    }
}

fn deployment_has_lived(observed: &Observed<'_>) -> bool {
    let conditions = observed.conditions().unwrap_or_default();
    conditions.iter().any(|condition| {
        condition.is_true("Available")
            || (condition.kind == "Progressing" && condition.reason == "NewReplicaSetAvailable")
    }) || observed.counts(&["readyReplicas", "availableReplicas"])
}

fn job_has_lived(observed: &Observed<'_>) -> bool {
    let conditions = observed.conditions().unwrap_or_default();
    conditions.iter().any(|condition| condition.is_true("Complete") || condition.is_true("SuccessCriteriaMet"))
        || observed.counts(&["succeeded"])
}

fn pod_has_lived(observed: &Observed<'_>) -> bool {
    let conditions = observed.conditions().unwrap_or_default();
    conditions.iter().any(|condition| condition.is_true("Ready"))
        || observed.text("/status/phase") == Some("Succeeded")
        || observed.containers().any(container_has_started)
}

fn container_has_started(status: &Value) -> bool {
    let flag = |name: &str| status.get(name).and_then(Value::as_bool).unwrap_or(false);
    let restarts = status.get("restartCount").and_then(Value::as_i64).unwrap_or(0);
    flag("ready") || flag("started") || restarts > 0
}
