//! A repair is undone: releases wedged by real Helm 3 and 4 are repaired and restored, and are as they were, except for
//! what the restore names.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use futures::stream::{self, StreamExt};
use http::Method;
use serde_json::{Value, json};
use testcluster::{Cluster, Fault, Helm, Namespace, Proxy, Ran, Request, run, until};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

const HELMS: [Helm; 2] = [Helm::V3, Helm::V4];

/// How a release is wedged, and what the repair then does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Rollback,
    RollbackOfWorkloads,
    Finish,
    Unlock,
    ScopedUninstall,
    CompleteUninstall,
    BroughtBack,
    Tidy,
}

impl Case {
    fn verdict(self) -> &'static str {
        match self {
            Self::Rollback | Self::RollbackOfWorkloads => "rollback",
            Self::Finish => "finish",
            Self::Unlock => "unlock",
            Self::ScopedUninstall => "uninstall",
            Self::CompleteUninstall => "complete-uninstall",
            Self::BroughtBack => "restore",
            Self::Tidy => "tidy",
        }
    }

    fn strategy(self) -> &'static str {
        if self == Self::BroughtBack { "rollback" } else { "auto" }
    }

    fn chart(self) -> String {
        match self {
            Self::RollbackOfWorkloads | Self::BroughtBack => chart("guarded"),
            Self::Rollback
            | Self::Finish
            | Self::Unlock
            | Self::ScopedUninstall
            | Self::CompleteUninstall
            | Self::Tidy => chart("plain"),
        }
    }

    async fn wedge(self, ns: &Namespace, helm: Helm) {
        if self != Self::ScopedUninstall {
            let install = ["install", "web", &self.chart(), "--wait", "--set", "message=one,guarded=null"];
            run(ns.helm(helm).args(install)).await.unwrap().ok().unwrap();
        }
        let proxy = Proxy::start(ns).await.unwrap();
        let kill = |method, path| drop(proxy.at_match(method, path, 1, Fault::KillBefore));
        let mut command = ns.helm(helm);
        let upgrade = ["upgrade", "web", &self.chart(), "--set", "message=two,maps={a,d},pod=never-ready,guarded=null"];
        match self {
            Self::RollbackOfWorkloads => return waiting(&proxy, command.args(upgrade).arg("--wait")).await,
            Self::Rollback => kill(Method::PATCH, "persistentvolumeclaims"),
            Self::Finish => kill(Method::DELETE, "configmaps"),
            Self::Unlock => drop(proxy.at_match(Method::POST, "secrets", 1, Fault::KillAfter)),
            Self::ScopedUninstall => {
                kill(Method::POST, "persistentvolumeclaims");
                kill(Method::PATCH, "persistentvolumeclaims");
            }
            Self::CompleteUninstall => kill(Method::DELETE, "configmaps"),
            Self::BroughtBack => drop(proxy.at_match(Method::DELETE, "configmaps", 2, Fault::KillBefore)),
            Self::Tidy => drop(proxy.at_match(Method::PUT, "secrets", 1, Fault::INTERNAL_ERROR)),
        }
        match self {
            Self::ScopedUninstall => command.args(["install", "web", &self.chart(), "--set", "message=one"]),
            Self::CompleteUninstall | Self::BroughtBack => command.args(["uninstall", "web"]),
            Self::Rollback | Self::RollbackOfWorkloads | Self::Finish | Self::Unlock | Self::Tidy => {
                command.args(upgrade)
            }
        };
        proxy.run(&mut command).await.unwrap();
        until("nothing that is being deleted", async || Ok(is_settled(ns).await.then_some(()))).await.unwrap();
    }
}

/// Whether all that Helm began to delete is gone.
async fn is_settled(ns: &Namespace) -> bool {
    let claims = ns.objects("/api/v1", "persistentvolumeclaims").await.unwrap();
    claims.iter().all(|claim| claim["metadata"]["deletionTimestamp"].is_null())
}

/// Kills Helm once it has written the workload and waits for it.
async fn waiting(proxy: &Proxy, command: &mut Command) {
    let mut child = proxy.spawn(command).unwrap();
    let written = |request: &Request| request.path.contains("/deployments") && request.write.is_some();
    proxy.reached(|request| written(request) && request.status.is_some()).await.unwrap();
    child.kill().await.unwrap();
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_rollback_is_undone() {
    undone(Case::Rollback).await;
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_rollback_of_workloads_is_undone() {
    undone(Case::RollbackOfWorkloads).await;
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_finish_is_undone() {
    undone(Case::Finish).await;
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_unlock_is_not_undone_for_no_record_is_locked_again() {
    undone(Case::Unlock).await;
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_scoped_uninstall_is_undone() {
    undone(Case::ScopedUninstall).await;
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_completed_uninstall_is_undone() {
    undone(Case::CompleteUninstall).await;
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn what_was_brought_back_from_an_uninstall_goes_again() {
    undone(Case::BroughtBack).await;
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn of_two_deployed_records_one_stays_superseded() {
    undone(Case::Tidy).await;
}

/// Wedge, repair, restore, restore again, undo the restore, restore once more, and let both Helms go on.
async fn undone(case: Case) {
    for helm in HELMS {
        let at = format!("{case:?} {helm:?}");
        let ns = namespace().await;
        case.wedge(&ns, helm).await;
        let before = Snapshot::take(&ns).await;
        let report = repair(&ns, case).await;
        let repaired = Snapshot::take(&ns).await;
        let file = PathBuf::from(report["backup"].as_str().unwrap());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{at}");

        let dry = gwrepair(&ns, &["restore", path(&file), "--dry-run"]).await;
        assert!(matches!(dry.code, Some(0 | 3)), "{at}: {dry:?}");
        assert_eq!(Snapshot::take(&ns).await, repaired, "{at}: a dry run writes nothing");

        let restored = restore(&ns, &file).await;
        let after = Snapshot::take(&ns).await;
        after.is_but_for(&before, &restored, &at);
        after.is_usable(&at);
        let reads = restored["requests"]["read"].as_u64().unwrap();
        assert!(reads <= 2 * after.objects.len() as u64 + 15, "{at}: {restored:#}");
        let again = restore(&ns, &file).await;
        assert_eq!(
            (&again["outcome"], &again["requests"]["write"]),
            (&json!("nothing-to-do"), &json!(0)),
            "{at}: {again:#}"
        );

        if let Some(undo) = restored["backup"].as_str() {
            let undone = restore(&ns, Path::new(undo)).await;
            assert_eq!(undone["outcome"], "restored", "{at}: {undone:#}");
            Snapshot::take(&ns).await.is_but_for(&repaired, &undone, &format!("{at}, undone"));
            assert_eq!(restore(&ns, &file).await["outcome"], "restored", "{at}");
            Snapshot::take(&ns).await.is_but_for(&before, &restored, &format!("{at}, once more"));
        }
        stock_helm_goes_on(&ns, &case.chart()).await;
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_restore_refuses_and_writes_nothing_where_somebody_went_on_since() {
    for helm in HELMS {
        let (ns, file, _) = repaired(helm).await;
        run(ns.helm(helm).args(["upgrade", "web", &chart("plain")])).await.unwrap().ok().unwrap();
        let before = Snapshot::take(&ns).await;
        let ran = gwrepair(&ns, &["restore", path(&file), "--yes"]).await;
        assert_eq!(ran.code, Some(4), "{ran:?}");
        assert!(ran.stderr.contains("record 4 was made since, by somebody else"), "{ran:?}");
        assert_eq!(Snapshot::take(&ns).await, before);
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_object_that_somebody_wrote_since_is_left_alone_and_named() {
    for helm in HELMS {
        let (ns, file, before) = repaired(helm).await;
        let theirs = r#"{"data":{"theirs":"x"}}"#;
        run(ns.kubectl().args(["patch", "configmap", "a", "-p", theirs])).await.unwrap().ok().unwrap();
        let report = restore(&ns, &file).await;
        assert!(report.to_string().contains("kubectl-patch has written it since: it is left as it is"), "{report:#}");
        let after = Snapshot::take(&ns).await;
        assert_eq!(after.objects["configmap/a"]["data"], json!({"message": "one", "theirs": "x"}));
        assert_eq!(after.objects["configmap/d"]["data"], before.objects["configmap/d"]["data"]);
        stock_helm_goes_on(&ns, &chart("plain")).await;
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_field_that_the_repair_took_from_another_manager_is_given_back() {
    let ns = namespace().await;
    Case::Rollback.wedge(&ns, Helm::V4).await;
    let theirs = ns.dir().join("theirs.yaml");
    std::fs::write(&theirs, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {message: theirs}}").unwrap();
    let apply = ["apply", "--server-side", "--force-conflicts", "--field-manager=theirs", "-f", path(&theirs)];
    run(ns.kubectl().args(apply)).await.unwrap().ok().unwrap();
    let before = Snapshot::take(&ns).await;
    let refused = gwrepair(&ns, &["repair", "web", "--assume-dead", "--yes"]).await;
    assert_eq!(refused.code, Some(4), "{refused:?}");
    let args = ["repair", "web", "--assume-dead", "--yes", "--force-conflicts", "-ojson"];
    let report: Value = serde_json::from_str(&gwrepair(&ns, &args).await.stdout).unwrap();
    assert_eq!(Snapshot::take(&ns).await.objects["configmap/a"]["data"]["message"], "one", "{report:#}");
    let restored = restore(&ns, Path::new(report["backup"].as_str().unwrap())).await;
    Snapshot::take(&ns).await.is_but_for(&before, &restored, "theirs");
}

/// Writes of the longest restore below.
const WRITES: usize = 7;

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_restore_that_is_killed_or_fails_at_any_write_ends_the_same_or_is_completed_by_the_next() {
    let faults = [Fault::KillBefore, Fault::KillAfter, Fault::INTERNAL_ERROR, Fault::Reset, Fault::LoseAnswer];
    let points = faults.into_iter().flat_map(|fault| (1..=WRITES).map(move |write| (fault, write)));
    let runs = points.flat_map(|(fault, write)| HELMS.map(|helm| (helm, fault, write))).map(survive);
    let met: Vec<bool> = stream::iter(runs).buffer_unordered(4).collect().await;
    assert!(met.iter().filter(|met| **met).count() > WRITES * faults.len(), "the faults were not met");
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_repair_that_was_killed_is_undone_by_what_it_kept_before_its_first_write() {
    let points = [Fault::KillBefore, Fault::KillAfter].into_iter().flat_map(|fault| (1..=8).map(move |n| (fault, n)));
    let runs = points.flat_map(|(fault, write)| HELMS.map(|helm| (helm, fault, write))).map(undo_killed);
    let undone: Vec<bool> = stream::iter(runs).buffer_unordered(4).collect().await;
    assert!(undone.iter().filter(|undone| **undone).count() > 16, "{undone:?}");
}

/// Whether there was something to undo.
async fn undo_killed((helm, fault, write): (Helm, Fault, usize)) -> bool {
    let at = format!("{helm:?} {fault:?} at write {write}");
    let ns = namespace().await;
    Case::Rollback.wedge(&ns, helm).await;
    let before = Snapshot::take(&ns).await;
    let proxy = Proxy::start(&ns).await.unwrap();
    proxy.at_write(write, fault);
    let args = ["repair", "web", "--assume-dead", "--yes"];
    proxy.run(&mut command(&ns, &args, &proxy.kubeconfig())).await.unwrap();
    let kept = ns.dir().join(".local/share/gwrepair/backups").join(ns.name());
    let files: Vec<_> = std::fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{at}: {files:?}");
    let report = restore(&ns, &files[0]).await;
    let after = Snapshot::take(&ns).await;
    if report["outcome"] == "nothing-to-do" {
        assert_eq!(after, before, "{at}");
        return false;
    }
    after.is_but_for(&before, &report, &at);
    after.is_usable(&at);
    stock_helm_goes_on(&ns, &chart("plain")).await;
    true
}

/// Whether the fault was met.
async fn survive((helm, fault, write): (Helm, Fault, usize)) -> bool {
    let at = format!("{helm:?} {fault:?} at write {write}");
    let (ns, file, before) = repaired(helm).await;
    let proxy = Proxy::start(&ns).await.unwrap();
    let armed = proxy.at_write(write, fault);
    let first = proxy.run(&mut command(&ns, &["restore", path(&file), "--yes"], &proxy.kubeconfig())).await.unwrap();
    let again = restore(&ns, &file).await;
    let lost: Vec<Value> = [&again["lost"]].into_iter().flat_map(|lost| lost.as_array().unwrap()).cloned().collect();
    Snapshot::take(&ns).await.is_but_for(&before, &json!({"lost": lost}), &format!("{at}: {first:?}"));
    let third = restore(&ns, &file).await;
    assert_eq!(
        (&third["outcome"], &third["requests"]["write"]),
        (&json!("nothing-to-do"), &json!(0)),
        "{at}: {third:#}"
    );
    stock_helm_goes_on(&ns, &chart("plain")).await;
    armed.is_reached()
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_signal_stops_a_restore_and_the_next_one_goes_on() {
    let (ns, file, before) = repaired(Helm::V4).await;
    let proxy = Proxy::start(&ns).await.unwrap();
    let held = proxy.at_write(2, Fault::Hold);
    let mut restore_held = command(&ns, &["restore", path(&file), "--yes"], &proxy.kubeconfig());
    let mut child = proxy.spawn(restore_held.stdout(Stdio::piped()).stderr(Stdio::piped())).unwrap();
    held.reached().await.unwrap();
    run(Command::new("kill").args(["-INT", &child.id().unwrap().to_string()])).await.unwrap().ok().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    while !said.next_line().await.unwrap().unwrap().starts_with("stopping") {}
    held.release();
    let output = child.wait_with_output().await.unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{stdout}");
    assert!(stdout.contains("is restored in part: restore again to go on"), "{stdout}");
    let report = restore(&ns, &file).await;
    assert_eq!(report["outcome"], "restored", "{report:#}");
    Snapshot::take(&ns).await.is_but_for(&before, &report, "stopped");
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_record_that_cannot_be_read_is_kept_by_the_backup_and_not_made_again() {
    let ns = namespace().await;
    for message in ["one", "two"] {
        let values = format!("message={message}");
        let args = ["upgrade", "--install", "web", &chart("plain"), "--set", &values];
        run(ns.helm(Helm::V3).args(args)).await.unwrap().ok().unwrap();
    }
    let garbage = r#"{"data":{"release":"JSUl"}}"#;
    let args = ["patch", "secret", "sh.helm.release.v1.web.v2", "-p", garbage];
    run(ns.kubectl().args(args)).await.unwrap().ok().unwrap();
    let ran = gwrepair(&ns, &["repair", "web", "--quarantine", "--yes", "-ojson"]).await;
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|why| panic!("{why}: {ran:?}"));
    let file = report["backup"].as_str().unwrap();
    let backup: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let records = backup["releases"][0]["records"].as_array().unwrap();
    assert!(records.iter().any(|record| record["data"]["release"] == "JSUl"), "{backup:#}");
    let restored = restore(&ns, Path::new(file)).await;
    assert_eq!(restored["outcome"], "nothing-to-do", "{restored:#}");
    assert!(restored.to_string().contains("only the backup keeps it"), "{restored:#}");
    stock_helm_goes_on(&ns, &chart("plain")).await;
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_repair_that_can_keep_no_backup_writes_nothing_and_says_so() {
    let ns = namespace().await;
    Case::Rollback.wedge(&ns, Helm::V4).await;
    let before = Snapshot::take(&ns).await;
    let file = ns.dir().join("a-file");
    std::fs::write(&file, "").unwrap();
    let args = ["repair", "web", "--assume-dead", "--yes", "--backup-dir", path(&file)];
    let ran = gwrepair(&ns, &args).await;
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.contains("could not keep a backup, so nothing was written"), "{ran:?}");
    assert!(ran.stderr.contains(path(&file)) && ran.stderr.contains("hint: --backup-dir DIR"), "{ran:?}");
    assert_eq!(Snapshot::take(&ns).await, before);
    let lost = gwrepair(&ns, &["repair", "web", "--quarantine", "--no-backup"]).await;
    assert!(lost.code == Some(2) && lost.stderr.contains("that only the backup keeps"), "{lost:?}");
    let ran = gwrepair(&ns, &["repair", "web", "--assume-dead", "--yes", "--no-backup", "-ojson"]).await;
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["outcome"], &report["backup"]), (&json!("repaired"), &Value::Null), "{report:#}");
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_release_that_was_backed_up_by_hand_comes_back_after_it_was_uninstalled() {
    for helm in HELMS {
        let ns = namespace().await;
        for message in ["one", "two"] {
            let values = format!("message={message}");
            let args = ["upgrade", "--install", "web", &chart("plain"), "--set", &values];
            run(ns.helm(helm).args(args)).await.unwrap().ok().unwrap();
        }
        let before = Snapshot::take(&ns).await;
        let file = ns.dir().join("web.json");
        for (args, code) in [(&["-f"][..], 0), (&["-f"], 2), (&["--force", "-f"], 0)] {
            let args: Vec<_> = ["backup", "web"].into_iter().chain(args.iter().copied()).chain([path(&file)]).collect();
            let ran = gwrepair(&ns, &args).await;
            assert_eq!(ran.code, Some(code), "{ran:?}");
        }
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let same = restore(&ns, &file).await;
        assert_eq!((&same["outcome"], &same["requests"]["write"]), (&json!("nothing-to-do"), &json!(0)), "{same:#}");
        run(ns.helm(helm).args(["uninstall", "web", "--wait"])).await.unwrap().ok().unwrap();
        let restored = restore(&ns, &file).await;
        assert_eq!(restored["outcome"], "restored", "{restored:#}");
        Snapshot::take(&ns).await.is_but_for(&before, &restored, &format!("{helm:?}"));
        stock_helm_goes_on(&ns, &chart("plain")).await;
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_file_that_is_no_backup_is_named_with_what_is_wrong_with_it() {
    let (ns, file, _) = repaired(Helm::V3).await;
    let good = std::fs::read_to_string(&file).unwrap();
    let bad = |from: &str, to: &str| good.replacen(from, to, 1);
    let cases = [
        (good[..good.len() / 2].to_owned(), 5, "it ends in the middle"),
        ("apiVersion: v1\n".to_owned(), 5, "it is not JSON"),
        (bad("\"kind\":\"Backup\"", "\"kind\":\"Report\""), 5, "it is no backup, but a Report"),
        (bad("gwrepair/v1", "gwrepair/v9"), 5, "it is a backup of version \"gwrepair/v9\""),
        (bad("\"objects\":[", "\"objects\":[7,"), 5, "an object of release web has no apiVersion"),
        (bad("\"driver\":\"secret\"", "\"driver\":\"sql\""), 5, "records of the sql driver are in no cluster"),
        (good.replace(ns.name(), "no-such-namespace"), 4, "namespace no-such-namespace does not exist"),
        (good.replace(ns.name(), "default"), 4, "namespace default is not the one that was saved"),
    ];
    for (text, code, wrong) in cases {
        let copy = ns.dir().join("copy.json");
        std::fs::write(&copy, text).unwrap();
        let ran = gwrepair(&ns, &["restore", path(&copy), "--yes"]).await;
        assert_eq!(ran.code, Some(code), "{wrong}: {ran:?}");
        assert!(ran.stderr.contains(wrong) && (code == 4 || ran.stderr.contains("error:")), "{wrong}: {ran:?}");
    }
    let ran = gwrepair(&ns, &["restore", "no-such-file.json"]).await;
    assert!(ran.code == Some(5) && ran.stderr.contains("could not read the backup no-such-file.json"), "{ran:?}");
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn every_release_of_a_repair_of_all_is_kept_and_undone() {
    let ns = namespace().await;
    Case::Rollback.wedge(&ns, Helm::V4).await;
    let before = Snapshot::take(&ns).await;
    let ran = gwrepair(&ns, &["repair", "--all", "--assume-dead", "--yes", "-ojson"]).await;
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|why| panic!("{why}: {ran:?}"));
    let file = report["items"][0]["backup"].as_str().unwrap();
    let restored = restore(&ns, Path::new(file)).await;
    Snapshot::take(&ns).await.is_but_for(&before, &restored, "all");
}

/// A release that was rolled back, the backup of that, and what was there before.
async fn repaired(helm: Helm) -> (Namespace, PathBuf, Snapshot) {
    let ns = namespace().await;
    Case::Rollback.wedge(&ns, helm).await;
    let before = Snapshot::take(&ns).await;
    let report = repair(&ns, Case::Rollback).await;
    let file = PathBuf::from(report["backup"].as_str().unwrap());
    (ns, file, before)
}

/// The records and objects of a namespace, without what the server counts.
#[derive(Debug, PartialEq)]
struct Snapshot {
    records: BTreeMap<String, Value>,
    objects: BTreeMap<String, Value>,
}

impl Snapshot {
    async fn take(ns: &Namespace) -> Self {
        let mut records = BTreeMap::new();
        for secret in ns.objects("/api/v1", "secrets").await.unwrap() {
            let key = secret["metadata"]["name"].as_str().unwrap().to_owned();
            if let Some(revision) = key.strip_prefix("sh.helm.release.v1.web.v") {
                records.insert(format!("record {revision}"), json!([secret["metadata"]["labels"], secret["data"]]));
            }
        }
        let mut objects = BTreeMap::new();
        for (version, plural) in
            [("/api/v1", "configmaps"), ("/api/v1", "persistentvolumeclaims"), ("/apis/apps/v1", "deployments")]
        {
            for mut object in ns.objects(version, plural).await.unwrap() {
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                for counted in ["resourceVersion", "generation", "creationTimestamp"] {
                    object["metadata"].as_object_mut().unwrap().remove(counted);
                }
                let writers = object["metadata"]["managedFields"].as_array_mut().unwrap();
                writers.retain(|entry| entry["manager"] != "kube-controller-manager");
                writers.iter_mut().for_each(|entry| drop(entry.as_object_mut().unwrap().remove("time")));
                writers.sort_by_key(Value::to_string);
                object.as_object_mut().unwrap().remove("status");
                // The controller counts on.
                if let Some(notes) = object["metadata"]["annotations"].as_object_mut() {
                    notes.remove("deployment.kubernetes.io/revision");
                }
                let group = if version == "/apis/apps/v1" { ".apps" } else { "" };
                let kind = format!("{}{group}", plural.trim_end_matches('s'));
                objects.insert(format!("{kind}/{name}"), object);
            }
        }
        Self { records, objects }
    }

    /// Both are the same, except for what `report` names as lost; of an object that was made anew only the UID differs.
    fn is_but_for(&self, wanted: &Self, report: &Value, at: &str) {
        let lost = report["lost"].as_array().unwrap();
        let lost: BTreeSet<&str> = lost.iter().map(|lost| lost["what"].as_str().unwrap()).collect();
        for (name, record) in union(&self.records, &wanted.records) {
            if !lost.contains(name.as_str()) {
                assert!(record.0 == record.1, "{at}: {name}\n{report:#}");
            }
        }
        for (name, (is, was)) in union(&self.objects, &wanted.objects) {
            let renewed = is.is_none() || was.is_none() || anonymous(is) == anonymous(was);
            let same = is == was || lost.contains(name.as_str()) && renewed;
            assert!(same, "{at}: {name} is {is:#?}\nand was {was:#?}\n{report:#}");
        }
    }

    /// At most one record is deployed, and the newest is not pending.
    fn is_usable(&self, at: &str) {
        let statuses: Vec<_> = self.records.values().map(|record| record[0]["status"].as_str().unwrap()).collect();
        assert!(statuses.iter().filter(|status| **status == "deployed").count() <= 1, "{at}: {statuses:?}");
        assert!(
            !statuses.iter().any(|status| status.starts_with("pending") || *status == "uninstalling"),
            "{at}: {statuses:?}"
        );
    }
}

type Pair<'a> = (Option<&'a Value>, Option<&'a Value>);

fn union<'a>(a: &'a BTreeMap<String, Value>, b: &'a BTreeMap<String, Value>) -> BTreeMap<&'a String, Pair<'a>> {
    a.keys().chain(b.keys()).map(|name| (name, (a.get(name), b.get(name)))).collect()
}

fn anonymous(object: Option<&Value>) -> Option<Value> {
    let mut object = object?.clone();
    object["metadata"].as_object_mut().unwrap().remove("uid");
    Some(object)
}

async fn repair(ns: &Namespace, case: Case) -> Value {
    let verdict = case.verdict();
    let args = ["repair", "web", "--assume-dead", "--yes", "-ojson", "--strategy", case.strategy()];
    let ran = gwrepair(ns, &args).await;
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|why| panic!("{why}: {ran:?}"));
    assert_eq!((&report["outcome"], &report["plan"]["verdict"]), (&json!("repaired"), &json!(verdict)), "{ran:?}");
    report
}

async fn restore(ns: &Namespace, file: &Path) -> Value {
    let ran = gwrepair(ns, &["restore", path(file), "--yes", "-ojson"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let list: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|why| panic!("{why}: {ran:?}"));
    list["items"][0].clone()
}

async fn stock_helm_goes_on(ns: &Namespace, chart: &str) {
    for helm in HELMS {
        run(ns.helm(helm).args(["upgrade", "--install", "web", chart])).await.unwrap().ok().unwrap();
    }
}

async fn namespace() -> Namespace {
    Cluster::shared().unwrap().namespace("undo").await.unwrap()
}

async fn gwrepair(ns: &Namespace, args: &[&str]) -> Ran {
    run(&mut command(ns, args, &ns.kubeconfig())).await.unwrap()
}

fn command(ns: &Namespace, args: &[&str], kubeconfig: &Path) -> Command {
    let mut command = ns.command(env!("CARGO_BIN_EXE_gwrepair").as_ref());
    command.args(args).args(["-n", ns.name()]).arg("--kubeconfig").arg(kubeconfig).env_remove("XDG_DATA_HOME");
    command
}

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

fn chart(name: &str) -> String {
    format!("{}/../testdata/charts/{name}", env!("CARGO_MANIFEST_DIR"))
}
