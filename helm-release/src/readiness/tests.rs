//! Every case of `testdata/readiness`, judged by kstatus itself; and the questions kstatus has no answer to.

use super::*;
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;

#[derive(Deserialize)]
struct Case {
    case: String,
    object: Value,
    status: String,
    error: Option<String>,
    /// The word we answer where kstatus gives an error.
    ours: Option<String>,
}

fn cases() -> Vec<Case> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/readiness");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let goldens = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let texts: Vec<_> = goldens.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let lines = texts.iter().flat_map(|text| text.lines());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Later than every past and earlier than every future the cases mention.
fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_900_000_000, 0).unwrap()
}

fn judged(object: Value) -> Readiness {
    readiness(&object, now())
}

#[test]
fn objects_are_judged_as_kstatus_judges_them() {
    let all = cases();
    assert!(all.len() >= 50, "only {} cases were found", all.len());
    for case in all.iter().filter(|case| case.ours.is_none()) {
        let got = readiness(&case.object, now());
        assert_eq!(got.word(), case.status, "{}: {got}", case.case);
    }
}

#[test]
fn where_kstatus_gives_up_over_a_generation_we_do_not() {
    for case in cases() {
        let Some(ours) = case.ours else { continue };
        assert!(case.error.is_some(), "{}: kstatus says {}", case.case, case.status);
        assert_eq!(readiness(&case.object, now()).word(), ours, "{}", case.case);
    }
}

#[test]
fn a_pod_says_which_image_it_cannot_pull() {
    let state = json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"a:1\""}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "status": {
        "phase": "Pending",
        "containerStatuses": [{"name": "app", "state": state}, {"name": "side", "state": {"running": {}}}],
    }});
    let why = "container app: ImagePullBackOff: Back-off pulling image \"a:1\"".to_owned();
    assert_eq!(judged(pod), Readiness::InProgress { why });
}

#[test]
fn a_pod_says_which_container_crashes() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "status": {
        "phase": "Running",
        "containerStatuses": [{"name": "app", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
    }});
    assert_eq!(judged(pod), Readiness::Failed { why: "container app: CrashLoopBackOff".to_owned() });
}

#[test]
fn a_pod_says_why_it_finds_no_node() {
    let condition =
        json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"});
    let pod = |created: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"creationTimestamp": created},
            "status": {"phase": "Pending", "conditions": [condition.clone()]}})
    };
    let why = "Unschedulable: 0/3 nodes".to_owned();
    let ten_seconds_ago = pod("2030-03-17T17:46:30Z");
    let twenty_seconds_ago = pod("2030-03-17T17:46:20Z");
    assert_eq!(judged(ten_seconds_ago), Readiness::InProgress { why: why.clone() });
    assert_eq!(judged(twenty_seconds_ago), Readiness::Failed { why });
}

#[test]
fn a_suspended_job_says_so() {
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": [{"type": "Suspended", "status": "True"}]}});
    assert_eq!(judged(job).why(), Some("the job is suspended"));
}

fn job(status: Value) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "status": status})
}

#[test]
fn a_running_job_is_current_but_not_complete() {
    let running = job(json!({"startTime": "2024-01-01T00:00:00Z", "active": 1}));
    assert_eq!(readiness(&running, now()), Readiness::Current);
    assert_eq!(completion(&running).word(), "InProgress");
}

#[test]
fn a_job_ends_by_its_conditions() {
    let with = |kind: &str| job(json!({"conditions": [{"type": kind, "status": "True"}]}));
    assert_eq!(completion(&with("Complete")), Readiness::Current);
    assert_eq!(completion(&with("Failed")).word(), "Failed");
    assert_eq!(completion(&with("Suspended")).word(), "InProgress");
}

#[test]
fn a_failed_pod_is_current_but_its_completion_failed() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "status": {
        "phase": "Failed",
        "containerStatuses": [{"name": "hook", "state": {"terminated": {"exitCode": 3}}}],
    }});
    assert_eq!(readiness(&pod, now()), Readiness::Current);
    assert_eq!(completion(&pod), Readiness::Failed { why: "container hook ended with exit code 3".to_owned() });
}

#[test]
fn workloads_are_told_by_group_and_kind() {
    let workloads = [("apps", "Deployment"), ("extensions", "ReplicaSet"), ("", "Pod"), ("batch", "Job")];
    assert!(workloads.iter().all(|(group, kind)| is_workload(group, kind)));
    let others = [("", "Deployment"), ("", "Service"), ("batch", "CronJob"), ("example.com", "Job")];
    assert!(!others.iter().any(|(group, kind)| is_workload(group, kind)));
}

fn of(api_version: &str, kind: &str, status: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "status": status})
}

#[test]
fn what_is_or_was_ready_has_lived() {
    let available = json!({"conditions": [{"type": "Available", "status": "True"}]});
    let rolled_out =
        json!({"conditions": [{"type": "Progressing", "status": "False", "reason": "NewReplicaSetAvailable"}]});
    assert!(has_lived(&of("apps/v1", "Deployment", &available)));
    assert!(has_lived(&of("apps/v1", "Deployment", &rolled_out)));
    assert!(has_lived(&of("apps/v1", "StatefulSet", &json!({"readyReplicas": 1}))));
    assert!(has_lived(&of("apps/v1", "DaemonSet", &json!({"numberReady": 1}))));
    assert!(has_lived(&of("v1", "Pod", &json!({"containerStatuses": [{"restartCount": 2}]}))));
    assert!(has_lived(&of("v1", "Pod", &json!({"conditions": [{"type": "Ready", "status": "True"}]}))));
    assert!(has_lived(&of("batch/v1", "Job", &json!({"succeeded": 1}))));
    assert!(has_lived(&of("v1", "PersistentVolumeClaim", &json!({}))));
}

#[test]
fn what_never_came_up_has_not_lived() {
    let unavailable = json!({"replicas": 1, "conditions": [
        {"type": "Available", "status": "False"},
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"},
    ]});
    assert!(!has_lived(&of("apps/v1", "Deployment", &unavailable)));
    assert!(!has_lived(&of("apps/v1", "StatefulSet", &json!({"replicas": 1, "readyReplicas": 0}))));
    assert!(!has_lived(&of("v1", "Pod", &json!({"phase": "Pending", "containerStatuses": [{"restartCount": 0}]}))));
    assert!(!has_lived(&of("batch/v1", "Job", &json!({"failed": 3}))));
    assert!(!has_lived(&of("v1", "ConfigMap", &json!({}))));
}
