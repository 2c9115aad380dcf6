//! The rules of kstatus, kind by kind.

use super::Readiness;
use super::observed::{Condition, Observed};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

/// How long a Pod may wait for a node before that counts as a failure.
const SCHEDULE_WINDOW: TimeDelta = TimeDelta::seconds(15);

/// Judges an object that is not being deleted and whose latest generation has been observed.
pub(super) fn judge(observed: &Observed<'_>, conditions: &[Condition<'_>], now: DateTime<Utc>) -> Readiness {
    if let Some(standard) = conditions.iter().find_map(|condition| standard(*condition)) {
        return standard;
    }
    match (observed.group(), observed.kind()) {
        ("apps", "StatefulSet") => stateful_set(observed),
        ("apps" | "extensions", "DaemonSet") => daemon_set(observed),
        ("apps" | "extensions", "Deployment") => deployment(observed, conditions),
        ("apps" | "extensions", "ReplicaSet") => replica_set(observed, conditions),
        ("batch", "Job") => job(observed, conditions),
        ("", "Pod") => pod(observed, conditions, now),
        ("", "PersistentVolumeClaim") => claim(observed),
        ("", "Service") => service(observed),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(conditions),
        ("", "Secret" | "ConfigMap") | ("batch", "CronJob") | ("policy", "PodDisruptionBudget") => Readiness::Current,
        _ => by_ready_condition(conditions),
    }
}

/// The end of a Job, if it has come.
pub(super) fn finished_job(observed: &Observed<'_>, conditions: &[Condition<'_>]) -> Option<Readiness> {
    conditions.iter().find_map(|condition| match condition {
        _ if condition.is_true("Complete") => Some(Readiness::Current),
        _ if condition.is_true("Failed") => Some(Readiness::failed(format!(
            "the job failed after {} failed pods: {}",
            observed.count("failed"),
            condition.says()
        ))),
        _ => None,
    })
}

/// How far a Pod that is meant to end has come.
pub(super) fn finished_pod(observed: &Observed<'_>) -> Readiness {
    match observed.text("/status/phase") {
        Some("Succeeded") => Readiness::Current,
        Some("Failed") => Readiness::failed(troubles(observed).unwrap_or_else(|| "the pod failed".to_owned())),
        _ => Readiness::in_progress(troubles(observed).unwrap_or_else(|| "the pod has not finished".to_owned())),
    }
}

/// Conditions that mean the same on every kind.
fn standard(condition: Condition<'_>) -> Option<Readiness> {
    let why = || condition.says();
    let working = condition.is_true("Reconciling").then(|| Readiness::InProgress { why: why() });
    working.or_else(|| condition.is_true("Stalled").then(|| Readiness::Failed { why: why() }))
}

fn by_ready_condition(conditions: &[Condition<'_>]) -> Readiness {
    let known = |condition: &&Condition<'_>| {
        condition.kind == "Ready" && matches!(condition.status, "True" | "False" | "Unknown")
    };
    match conditions.iter().find(known) {
        Some(condition) if condition.status != "True" => Readiness::InProgress { why: condition.says() },
        _ => Readiness::Current,
    }
}

fn deployment(observed: &Observed<'_>, conditions: &[Condition<'_>]) -> Readiness {
    let late =
        |condition: &&Condition<'_>| condition.kind == "Progressing" && condition.reason == "ProgressDeadlineExceeded";
    if let Some(condition) = conditions.iter().find(late) {
        return Readiness::Failed { why: condition.says() };
    }
    let wanted = wanted_replicas(observed);
    let updated = observed.count("updatedReplicas");
    first(&[
        fewer("replicas", observed.count("replicas"), wanted),
        fewer("updated", updated, wanted),
        surplus(observed, wanted),
        fewer("available", observed.count("availableReplicas"), updated),
        fewer("ready", observed.count("readyReplicas"), wanted),
        unless(rolled_out(observed, conditions), "the new replica set is not available"),
        unless(conditions.iter().any(|condition| condition.is_true("Available")), "the deployment is not available"),
    ])
}

/// Without a deadline the controller sets no `Progressing` condition.
fn rolled_out(observed: &Observed<'_>, conditions: &[Condition<'_>]) -> bool {
    let no_deadline = i64::from(i32::MAX);
    observed.number("/spec/progressDeadlineSeconds").unwrap_or(no_deadline) == no_deadline
        || conditions
            .iter()
            .any(|condition| condition.is_true("Progressing") && condition.reason == "NewReplicaSetAvailable")
}

fn stateful_set(observed: &Observed<'_>) -> Readiness {
    if observed.text("/spec/updateStrategy/type") == Some("OnDelete") {
        return Readiness::Current;
    }
    let wanted = wanted_replicas(observed);
    let scale = first(&[
        fewer("replicas", observed.count("replicas"), wanted),
        fewer("ready", observed.count("readyReplicas"), wanted),
        surplus(observed, wanted),
    ]);
    match (scale, observed.number("/spec/updateStrategy/rollingUpdate/partition")) {
        (Readiness::Current, None | Some(-1)) => fully_rolled_out(observed, wanted),
        (Readiness::Current, Some(partition)) => {
            first(&[fewer("updated", observed.count("updatedReplicas"), wanted - partition)])
        }
        (unfinished, _) => unfinished,
    }
}

fn fully_rolled_out(observed: &Observed<'_>, wanted: i64) -> Readiness {
    let revision = |name| observed.text(name).unwrap_or_default();
    first(&[
        fewer("current", observed.count("currentReplicas"), wanted),
        unless(
            revision("/status/currentRevision") == revision("/status/updateRevision"),
            "the updated revision is not the current one yet",
        ),
    ])
}

fn replica_set(observed: &Observed<'_>, conditions: &[Condition<'_>]) -> Readiness {
    if let Some(condition) = conditions.iter().find(|condition| condition.is_true("ReplicaFailure")) {
        return Readiness::InProgress { why: condition.says() };
    }
    let wanted = wanted_replicas(observed);
    first(&[
        fewer("labelled", observed.count("fullyLabeledReplicas"), wanted),
        fewer("available", observed.count("availableReplicas"), wanted),
        fewer("ready", observed.count("readyReplicas"), wanted),
        surplus(observed, wanted),
    ])
}

fn daemon_set(observed: &Observed<'_>) -> Readiness {
    let seen = observed.generation().is_some() && observed.observed_generation().is_some();
    let Some(wanted) = observed.number("/status/desiredNumberScheduled").filter(|wanted| seen && *wanted != -1) else {
        return Readiness::in_progress("the controller has not counted the nodes yet");
    };
    first(&[
        fewer("current", observed.count("currentNumberScheduled"), wanted),
        fewer("updated", observed.count("updatedNumberScheduled"), wanted),
        fewer("available", observed.count("numberAvailable"), wanted),
        fewer("ready", observed.count("numberReady"), wanted),
    ])
}

/// A Job is Current once it runs; see [`super::completion`].
fn job(observed: &Observed<'_>, conditions: &[Condition<'_>]) -> Readiness {
    if let Some(end) = finished_job(observed, conditions) {
        return end;
    }
    let started = observed.text("/status/startTime").is_some_and(|time| !time.is_empty());
    let suspended = conditions.iter().any(|condition| condition.is_true("Suspended"));
    let why = if suspended { "the job is suspended" } else { "the job has not started" };
    first(&[unless(started, why)])
}

fn pod(observed: &Observed<'_>, conditions: &[Condition<'_>], now: DateTime<Utc>) -> Readiness {
    match observed.text("/status/phase").unwrap_or_default() {
        "Succeeded" | "Failed" => Readiness::Current,
        "Running" => running_pod(observed, conditions),
        "Pending" => pending_pod(observed, conditions, now),
        "" => Readiness::in_progress("the pod has not been observed"),
        _ => Readiness::Unknown,
    }
}

fn running_pod(observed: &Observed<'_>, conditions: &[Condition<'_>]) -> Readiness {
    if conditions.iter().any(|condition| condition.is_true("Ready")) {
        return Readiness::Current;
    }
    let looping = observed.main_containers().any(|status| waiting(status, "reason") == Some("CrashLoopBackOff"));
    match (looping, troubles(observed)) {
        (true, why) => Readiness::failed(why.unwrap_or_else(|| "CrashLoopBackOff".to_owned())),
        (false, Some(why)) => Readiness::InProgress { why },
        (false, None) => Readiness::in_progress("the pod is running but not ready"),
    }
}

fn pending_pod(observed: &Observed<'_>, conditions: &[Condition<'_>], now: DateTime<Utc>) -> Readiness {
    match conditions.iter().find(|condition| condition.is_false("PodScheduled")) {
        Some(condition) if condition.reason == "Unschedulable" => {
            let why = condition.says();
            if is_new(observed, now) { Readiness::InProgress { why } } else { Readiness::Failed { why } }
        }
        _ => Readiness::in_progress(troubles(observed).unwrap_or_else(|| "the pod is pending".to_owned())),
    }
}

fn is_new(observed: &Observed<'_>, now: DateTime<Utc>) -> bool {
    let created = observed.text("/metadata/creationTimestamp");
    let created = created.and_then(|time| DateTime::parse_from_rfc3339(time).ok());
    created.is_some_and(|created| now - SCHEDULE_WINDOW < created)
}

/// What keeps containers from running: crashes, images that cannot be pulled, bad configuration.
fn troubles(observed: &Observed<'_>) -> Option<String> {
    let found: Vec<_> = observed.containers().filter_map(trouble).collect();
    (!found.is_empty()).then(|| found.join("; "))
}

fn trouble(status: &Value) -> Option<String> {
    let name = status.get("name").and_then(Value::as_str).unwrap_or("?");
    if let Some(code) = status.pointer("/state/terminated/exitCode").and_then(Value::as_i64) {
        return (code != 0).then(|| format!("container {name} ended with exit code {code}"));
    }
    match (waiting(status, "reason")?, waiting(status, "message").unwrap_or_default()) {
        ("ContainerCreating" | "PodInitializing", _) => None,
        (reason, "") => Some(format!("container {name}: {reason}")),
        (reason, message) => Some(format!("container {name}: {reason}: {message}")),
    }
}

fn waiting<'a>(status: &'a Value, field: &str) -> Option<&'a str> {
    status.pointer("/state/waiting")?.get(field)?.as_str()
}

fn claim(observed: &Observed<'_>) -> Readiness {
    let phase = observed.text("/status/phase").unwrap_or("unknown");
    let unbound = (phase != "Bound").then(|| format!("the claim is not bound: {phase}"));
    first(&[unbound])
}

fn service(observed: &Observed<'_>) -> Readiness {
    let balanced = observed.text("/spec/type") == Some("LoadBalancer");
    let address = observed.text("/spec/clusterIP").unwrap_or_default();
    first(&[unless(!balanced || !address.is_empty(), "the load balancer has no cluster address")])
}

fn definition(conditions: &[Condition<'_>]) -> Readiness {
    let judged = conditions.iter().find_map(|condition| match condition {
        _ if condition.is_true("Established") => Some(Readiness::Current),
        _ if condition.is_false("NamesAccepted") => Some(Readiness::Failed { why: condition.says() }),
        _ if condition.is_false("Established") && condition.reason != "Installing" => {
            Some(Readiness::Failed { why: condition.says() })
        }
        _ => None,
    });
    judged.unwrap_or_else(|| Readiness::in_progress("the definition is being installed"))
}

/// The first obstacle decides; without any the object is Current.
fn first(obstacles: &[Option<String>]) -> Readiness {
    match obstacles.iter().flatten().next() {
        Some(why) => Readiness::in_progress(why),
        None => Readiness::Current,
    }
}

fn fewer(what: &str, have: i64, wanted: i64) -> Option<String> {
    (have < wanted).then(|| format!("{what}: {have}/{wanted}"))
}

fn surplus(observed: &Observed<'_>, wanted: i64) -> Option<String> {
    let extra = observed.count("replicas") - wanted;
    (extra > 0).then(|| format!("{extra} replicas are to terminate"))
}

fn unless(satisfied: bool, why: &str) -> Option<String> {
    (!satisfied).then(|| why.to_owned())
}

fn wanted_replicas(observed: &Observed<'_>) -> i64 {
    observed.number("/spec/replicas").unwrap_or(1)
}
