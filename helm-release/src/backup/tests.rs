use serde_json::json;

use super::content::{irretrievable, next, stranger};
use super::*;
use crate::release::{Content, Entry, History, Release, Stored};

const TAKEN: &str = "2026-12-01T02:00:00Z";

fn taken() -> DateTime<Utc> {
    TAKEN.parse().unwrap()
}

fn key(revision: u32) -> String {
    format!("sh.helm.release.v1.web.v{revision}")
}

/// A record, last written by `turn`.
fn record(revision: u32, status: &str, description: &str, turn: u32) -> Entry {
    let json = json!({
        "name": "web", "version": revision, "manifest": format!("m{revision}"),
        "info": {"status": status, "description": description, "last_deployed": format!("2026-12-01T01:00:0{revision}.5Z")},
    });
    let labels = [("name", "web"), ("owner", "helm"), ("status", status), ("version", &revision.to_string())]
        .map(|(label, value)| (label.to_owned(), value.to_owned()));
    let stored = Stored {
        key: key(revision),
        labels: labels.into(),
        resource_version: format!("{revision}{turn}"),
        uid: format!("u{revision}"),
        ..Stored::default()
    };
    Entry::place(stored, Content::Readable(Box::new(Release::parse(&json.to_string()).unwrap()))).unwrap()
}

fn unreadable(revision: u32) -> Entry {
    let stored = Stored { key: key(revision), uid: "x".into(), resource_version: "1".into(), ..Stored::default() };
    Entry::place(stored, Content::Unreadable { why: "not gzip".into() }).unwrap()
}

fn history(records: Vec<Entry>) -> History {
    History::new("web".parse().unwrap(), "shop".parse().unwrap(), records)
}

fn saved(run: Option<Run>) -> SavedRelease {
    SavedRelease {
        namespace: "shop".parse().unwrap(),
        namespace_uid: None,
        name: "web".parse().unwrap(),
        driver: "secret".into(),
        manager: "helm".into(),
        run,
        records: vec![],
        objects: vec![],
        absent: vec![],
        left_out: vec![],
    }
}

fn here(records: Vec<Entry>) -> Here {
    Here {
        history: history(records),
        home: Home::Open,
        sameness: Sameness::Taken,
        live: [].into(),
        unserved: [].into(),
    }
}

/// The run that rolls an interrupted upgrade back.
fn rollback() -> Run {
    let words = |revision, status: &str, description: &str| Words {
        key: key(revision),
        status: status.into(),
        description: description.into(),
    };
    Run {
        what: "repair (rollback)".into(),
        closes: vec![
            words(2, "failed", "Interrupted upgrade: rolled back to 1"),
            words(3, "deployed", "Rollback to 1"),
            words(1, "superseded", "Install complete"),
        ],
        creates: vec![Creation { key: key(3), last_deployed: "2026-12-01T01:00:03.5Z".parse().ok() }],
        deletes: vec![],
    }
}

fn before() -> Vec<Entry> {
    vec![record(1, "deployed", "Install complete", 0), record(2, "pending-upgrade", "Preparing upgrade", 0)]
}

fn after() -> Vec<Entry> {
    vec![
        record(1, "superseded", "Install complete", 1),
        record(2, "failed", "Interrupted upgrade: rolled back to 1", 1),
        record(3, "deployed", "Rollback to 1", 1),
    ]
}

fn words(plan: &RestorePlan) -> Vec<String> {
    let steps = plan.steps.iter().map(|step| match step {
        RestoreStep::CreateRecord { revision, status, .. } => format!("create {revision} {}", status.0),
        RestoreStep::CloseRecord { revision, status, .. } => format!("close {revision} {}", status.0),
        RestoreStep::DeleteRecord { revision } => format!("delete {revision}"),
        RestoreStep::WriteObject { object, action } => format!("{action:?} {object}").to_lowercase(),
        RestoreStep::DeleteObject { object, uid, .. } => format!("delete {object} {uid}"),
    });
    steps.collect()
}

fn lost(plan: &RestorePlan, what: &str) -> String {
    let found = plan.lost.iter().filter(|lost| lost.what == what);
    found.map(|lost| lost.reason.as_str()).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_rollback_is_undone_but_for_the_lock() {
    let plan = decide(&saved(Some(rollback())), taken(), &history(before()), &here(after()));
    assert_eq!(words(&plan), ["close 1 deployed", "delete 3"]);
    assert!(lost(&plan, "record 2").contains("said pending-upgrade, and no record is locked again: it stays failed"));
    assert!(plan.refusals.is_empty());
}

#[test]
fn what_is_restored_already_is_not_written_again() {
    let now = vec![record(1, "deployed", "Install complete", 2), after().remove(1)];
    let plan = decide(&saved(Some(rollback())), taken(), &history(before()), &here(now));
    assert_eq!((words(&plan).len(), plan.refusals.len(), plan.equal.len()), (0, 0, 2));
}

#[test]
fn a_killed_repair_leaves_no_lock_behind_once_it_is_undone() {
    let mut now = before();
    now.push(record(3, "pending-rollback", "Rollback to 1", 0));
    let plan = decide(&saved(Some(rollback())), taken(), &history(before()), &here(now));
    assert_eq!(words(&plan), ["close 2 failed", "delete 3"]);
    let untouched = decide(&saved(Some(rollback())), taken(), &history(before()), &here(before()));
    assert_eq!(words(&untouched), [""; 0], "the repair has done nothing, so there is nothing to undo");
}

#[test]
fn a_pending_record_that_locks_nothing_and_was_not_touched_stays() {
    let pending = || record(1, "pending-upgrade", "Preparing upgrade", 0);
    let records = vec![pending(), record(2, "deployed", "x", 0), record(3, "deployed", "x", 0)];
    let run = Run { creates: vec![], ..rollback() };
    let now = vec![pending(), record(2, "deployed", "x", 0), record(3, "deployed", "x", 0)];
    let plan = decide(&saved(Some(run)), taken(), &history(records), &here(now));
    assert_eq!(lost(&plan, "record 1"), "");
    assert!(!words(&plan).iter().any(|step| step.contains("close 1")), "{:?}", words(&plan));
}

#[test]
fn whoever_went_on_since_is_not_overruled() {
    let refused = |now: Vec<Entry>| {
        let plan = decide(&saved(Some(rollback())), taken(), &history(before()), &here(now));
        assert!(plan.steps.is_empty());
        plan.refusals.first().map(|refusal| refusal.reason.clone()).unwrap_or_default()
    };
    let mut upgraded = after();
    upgraded.push(record(4, "deployed", "Upgrade complete", 0));
    assert!(refused(upgraded).contains("record 4 was made since"));
    let mut another = after();
    another[2] = record(9, "deployed", "Rollback to 1", 0);
    another[2].stored.key = key(3);
    assert!(refused(another).contains("was made since"), "a rollback of somebody else's, by its time");
    let mut closed = after();
    closed[1] = record(2, "failed", "closed by hand", 7);
    assert!(refused(closed).contains("record 2 was changed since"));
    let mut edited = after();
    edited[0] = record(1, "deployed", "Install complete", 7);
    edited[0].content = Content::Readable(Box::new(Release::parse(r#"{"name":"web","version":1,"info":{}}"#).unwrap()));
    assert!(refused(edited).contains("record 1 was changed since"));
    assert!(refused(vec![]).contains("record 1 was deleted since"));
}

#[test]
fn a_record_that_was_full_kept_only_the_beginning_of_its_words() {
    let mut now = after();
    now[1] = record(2, "failed", "Interrupted", 1);
    let plan = decide(&saved(Some(rollback())), taken(), &history(before()), &here(now));
    assert_eq!(words(&plan), ["close 1 deployed", "delete 3"]);
}

#[test]
fn a_release_that_was_removed_comes_back_without_its_lock() {
    let run = Run { deletes: vec![key(1), key(2), key(3)], closes: vec![], creates: vec![], ..rollback() };
    let records =
        vec![record(1, "superseded", "x", 0), record(2, "uninstalling", "Deletion in progress", 0), unreadable(3)];
    let mut saved = saved(Some(run));
    let mut shared = map("shared", "x");
    shared["metadata"]["annotations"]["meta.helm.sh/release-name"] = json!("other");
    saved.objects = vec![map("a", "one"), claim(true), job(), shared];
    let plan = decide(&saved, taken(), &history(records), &here(vec![]));
    assert_eq!(words(&plan), ["create 1 superseded", "create 2 failed", "create configmap/a"]);
    assert!(lost(&plan, "record 2").ends_with("it becomes failed"));
    assert!(lost(&plan, "record 3").contains("cannot be read"));
    assert!(lost(&plan, "configmap/a").contains("another UID"));
    assert!(lost(&plan, "configmap/shared").contains("did not carry this release's marks"));
    assert!(lost(&plan, "persistentvolumeclaim/data").contains("was bound"));
    assert!(lost(&plan, "job.batch/migrate").contains("not run again"));
}

#[test]
fn of_several_deployed_records_only_the_highest_is_deployed_again() {
    let records = vec![record(1, "deployed", "x", 0), record(2, "deployed", "x", 0)];
    let run = Run {
        closes: vec![Words { key: key(1), status: "superseded".into(), description: "x".into() }],
        creates: vec![],
        ..rollback()
    };
    let now = vec![record(1, "superseded", "x", 1), record(2, "deployed", "x", 0)];
    let plan = decide(&saved(Some(run)), taken(), &history(records), &here(now));
    assert_eq!((words(&plan).len(), plan.refusals.len()), (0, 0));
    assert!(lost(&plan, "record 1").contains("only one may"));
}

#[test]
fn a_backup_by_hand_brings_back_what_is_gone_whole_and_no_lock() {
    let records = || vec![record(1, "superseded", "x", 0), record(2, "deployed", "x", 0)];
    let gone = decide(&saved(None), taken(), &history(records()), &here(vec![]));
    assert_eq!(words(&gone), ["create 1 superseded", "create 2 deployed"]);
    let pruned = decide(&saved(None), taken(), &history(records()), &here(vec![records().remove(1)]));
    assert!(pruned.steps.is_empty() && pruned.refusals[0].reason.contains("record 1 was deleted since"));
    let pending = decide(&saved(None), taken(), &history(before()), &here(before()));
    assert!(pending.refusals[0].reason.contains("its newest record is pending"));
}

#[test]
fn a_namespace_that_is_gone_going_or_another_is_refused() {
    let refused = |home, sameness| {
        let there = Here { home, sameness, ..here(after()) };
        let plan = decide(&saved(Some(rollback())), taken(), &history(before()), &there);
        assert!(plan.steps.is_empty());
        plan.refusals.into_iter().map(|refusal| (refusal.reason, refusal.flag)).next().unwrap_or_default()
    };
    assert!(refused(Home::Missing, Sameness::Taken).0.contains("does not exist"));
    assert!(refused(Home::Terminating, Sameness::Taken).0.contains("is being deleted"));
    assert_eq!(refused(Home::Open, Sameness::Another).1.as_deref(), Some("--elsewhere"));
}

fn object(kind: &str, name: &str, rest: Value) -> Value {
    let notes = json!({"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"});
    let mut object = json!({
        "apiVersion": "v1", "kind": kind,
        "metadata": {"name": name, "namespace": "shop", "uid": "1", "resourceVersion": "7", "annotations": notes,
            "creationTimestamp": "2026-12-01T01:00:00Z", "managedFields": [entry("helm", "Update", json!({"f:data": {}}))]},
    });
    for (member, value) in rest.as_object().unwrap() {
        object[member] = value.clone();
    }
    object
}

fn entry(manager: &str, operation: &str, fields: Value) -> Value {
    json!({"manager": manager, "operation": operation, "time": "2026-12-01T01:00:00Z", "fieldsV1": fields})
}

fn map(name: &str, message: &str) -> Value {
    object("ConfigMap", name, json!({"data": {"message": message}}))
}

fn claim(bound: bool) -> Value {
    let phase = if bound { "Bound" } else { "Pending" };
    object(
        "PersistentVolumeClaim",
        "data",
        json!({"spec": {"accessModes": ["ReadWriteOnce"]}, "status": {"phase": phase}}),
    )
}

fn job() -> Value {
    let status = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    object("Job", "migrate", json!({"apiVersion": "batch/v1", "spec": {}, "status": status}))
}

#[test]
fn an_object_is_changed_back_only_if_it_is_ours_and_nobody_wrote_it_since() {
    let judged = |live: Value| {
        let mut saved = saved(Some(rollback()));
        saved.objects = vec![map("a", "two")];
        let mut there = here(after());
        there.live.insert(identity(&live), Some(live));
        let plan = decide(&saved, taken(), &history(before()), &there);
        let written = words(&plan).contains(&"update configmap/a".to_owned());
        (written, lost(&plan, "configmap/a"), plan.refusals.len())
    };
    assert_eq!(judged(map("a", "one")), (true, String::new(), 0));
    assert_eq!(judged(map("a", "two")), (false, String::new(), 0), "as it was");
    let mut theirs = map("a", "one");
    theirs["metadata"]["managedFields"].as_array_mut().unwrap().push(entry("kubectl-edit", "Update", json!({})));
    assert!(judged(theirs).1.contains("kubectl-edit has written it since"));
    let mut foreign = map("a", "one");
    foreign["metadata"]["annotations"]["meta.helm.sh/release-name"] = json!("other");
    assert!(judged(foreign).1.contains("belongs to release shop/other"));
    let mut going = map("a", "one");
    going["metadata"]["deletionTimestamp"] = json!(TAKEN);
    assert_eq!(judged(going).2, 1);
    let mut renewed = map("a", "two");
    renewed["metadata"]["uid"] = json!("2");
    assert!(judged(renewed).1.contains("another UID"));
}

#[test]
fn an_object_that_the_run_made_goes_again_and_no_other() {
    let judged = |live: Value| {
        let mut saved = saved(Some(rollback()));
        saved.absent = vec![Absent { api_version: "v1".into(), object: identity(&live) }];
        let (id, mut there) = (identity(&live), here(after()));
        there.live.insert(id.clone(), Some(live));
        let plan = decide(&saved, taken(), &history(before()), &there);
        let gone = words(&plan).iter().any(|step| step.starts_with(&format!("delete {id}")));
        (gone, lost(&plan, &id.to_string()))
    };
    let made = |mut live: Value| {
        live["metadata"]["creationTimestamp"] = json!("2026-12-01T02:00:05Z");
        live
    };
    assert!(judged(made(map("a", "one"))).0);
    assert!(judged(map("a", "one")).1.contains("the run did not make it"), "older than the backup");
    assert!(judged(made(claim(false))).1.contains("its kind is guarded"));
    let mut kept = made(map("a", "one"));
    kept["metadata"]["annotations"]["helm.sh/resource-policy"] = json!("keep");
    assert!(judged(kept).1.contains("says keep"));
    let mut theirs = made(map("a", "one"));
    theirs["metadata"]["managedFields"].as_array_mut().unwrap().push(entry("kubectl-edit", "Update", json!({})));
    assert!(judged(theirs).1.contains("kubectl-edit has written it"));
}

#[test]
fn what_a_controller_holds_is_left_to_it() {
    let deployment = |replicas: u32, image: &str, revision: &str, scaler: Option<&str>| {
        let mut live = object("Deployment", "web", json!({"apiVersion": "apps/v1"}));
        let containers = json!([{"name": "web", "image": image}]);
        live["spec"] = json!({"replicas": replicas, "template": {"spec": {"containers": containers}}});
        live["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = json!(revision);
        let note = json!({"f:metadata": {"f:annotations": {".": {}, "f:deployment.kubernetes.io/revision": {}}}});
        let mut fields = json!({"f:spec": {"f:template": {}}});
        if scaler.is_none() {
            fields["f:spec"]["f:replicas"] = json!({});
        }
        let mut managers = vec![entry("helm", "Update", fields), entry("kube-controller-manager", "Update", note)];
        if let Some(scaler) = scaler {
            let mut scaled = entry(scaler, "Update", json!({"f:spec": {"f:replicas": {}}}));
            scaled["subresource"] = json!("scale");
            managers.push(scaled);
        }
        live["metadata"]["managedFields"] = json!(managers);
        live
    };
    let saved = deployment(3, "web:2", "4", None);
    let Next::Patch(patch) = next(&saved, Some(&deployment(3, "web:1", "5", None))).unwrap() else {
        panic!("no patch")
    };
    let text = patch.body().to_string();
    assert!(
        text.contains("web:2") && !text.contains("deployment.kubernetes.io") && text.contains("resourceVersion"),
        "{text}"
    );
    assert_eq!(next(&saved, Some(&deployment(3, "web:2", "6", None))).unwrap(), Next::Nothing);
    let scaled = next(&saved, Some(&deployment(7, "web:2", "6", Some("hpa")))).unwrap();
    assert!(matches!(scaled, Next::Managers(_)), "the number is its scaler's: {scaled:?}");
}

#[test]
fn who_owns_which_field_comes_back_too() {
    let mut saved = map("a", "two");
    saved["metadata"]["managedFields"] = json!([entry("helm", "Apply", json!({"f:data": {"f:message": {}}}))]);
    let Next::Managers(patch) = next(&saved, Some(&map("a", "two"))).unwrap() else { panic!("nothing") };
    assert_eq!(patch[0]["value"], saved["metadata"]["managedFields"]);
    assert_eq!(patch[1]["value"], "7", "bound to the resourceVersion");
    saved["metadata"]["managedFields"] = json!([]);
    assert_eq!(next(&saved, Some(&map("a", "two"))).unwrap(), Next::Nothing, "no owner is known");
}

#[test]
fn an_object_that_is_made_again_leaves_the_servers_fields_to_the_server() {
    let mut saved = job();
    saved["spec"] = json!({
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "1"}},
        "template": {"metadata": {"labels": {"controller-uid": "1", "app": "x"}}},
    });
    let Next::Create(body) = next(&saved, None).unwrap() else { panic!("no create") };
    assert_eq!(body["spec"], json!({"template": {"metadata": {"labels": {"app": "x"}}}}));
    assert_eq!(
        (&body["status"], &body["metadata"]["uid"], &body["metadata"]["managedFields"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
}

#[test]
fn nothing_that_ran_or_held_data_is_made_again() {
    assert!(irretrievable(&job()).is_some() && irretrievable(&claim(true)).is_some());
    assert!(irretrievable(&claim(false)).is_none() && irretrievable(&map("a", "x")).is_none());
    let mut hook = object("Job", "pre", json!({"apiVersion": "batch/v1", "spec": {}}));
    assert_eq!(irretrievable(&hook), None);
    hook["metadata"]["annotations"]["helm.sh/hook"] = json!("pre-upgrade");
    assert!(irretrievable(&hook).is_some_and(|why| why.contains("no hook is run again")));
    assert_eq!(stranger(&map("a", "x"), &map("a", "y"), "helm"), None);
}

#[test]
fn a_backup_survives_its_file() {
    let mut release = saved(Some(rollback()));
    release.objects = vec![map("a", "one")];
    let backup = Backup { server: Some("https://127.0.0.1".into()), ..Backup::new(taken(), vec![release]) };
    assert_eq!(Backup::parse(&backup.to_json().unwrap()).unwrap(), backup);
}

#[test]
fn what_is_no_backup_of_ours_is_refused_with_what_it_is() {
    let text = Backup::new(taken(), vec![saved(None)]).to_json().unwrap();
    let wrong = |text: &str| Backup::parse(text).unwrap_err().to_string();
    assert!(wrong(&text[..text.len() / 2]).contains("it ends in the middle"));
    assert!(wrong("").contains("it ends in the middle"));
    assert_eq!(wrong("kind: Backup"), "it is not JSON");
    assert_eq!(wrong("[]"), "it is no backup, but a document without a kind");
    assert_eq!(wrong(&text.replace("\"Backup\"", "\"Report\"")), "it is no backup, but a Report");
    assert!(wrong(&text.replace("gwrepair/v1", "gwrepair/v2")).contains("version \"gwrepair/v2\""));
    assert_eq!(wrong(&text.replace("\"records\":[]", "\"records\":[1]")), "it is a damaged backup");
    assert_eq!(wrong(&text.replace("\"shop\"", "\"Not A Name\"")), "it is a damaged backup");
    let mut future: Value = serde_json::from_str(&text).unwrap();
    future["later"] = json!(1);
    assert!(Backup::parse(&future.to_string()).is_ok(), "what is added is passed over");
}
