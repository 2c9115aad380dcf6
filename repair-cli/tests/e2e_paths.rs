//! The whole path by the program: install, upgrade and rollback killed mid-apply and in the wait, by Helm 3 and 4, are
//! found, explained, repaired, and taken on by both stock Helms; what others depend on keeps its identity.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::path::Path;

use http::Method;
use serde_json::{Value, json};
use testcluster::{Account, Cluster, Fault, Helm, Namespace, Proxy, Ran, Request, run};
use tokio::process::Command;

const HELMS: [Helm; 2] = [Helm::V3, Helm::V4];
const ONE: &str = "message=one";
const TWO: &str = "message=two,pod=never-ready,maps={a,d},guarded={one,two}";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    MidApply,
    Wait,
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_install_in_which_nothing_lives_is_removed_and_installs_anew() {
    for (helm, point) in everywhere() {
        let ns = namespace().await;
        let install = ["install", "web", &chart(), "--wait", "--set", "message=one,pod=never-ready,guarded=null"];
        kill(&ns, point, ns.helm(helm).args(install)).await;
        walk(&ns, "pending-install", "uninstall").await;
        assert_eq!(history(&ns).await, json!([]), "{helm:?} {point:?}");
        stock_helm_goes_on(&ns).await;
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_install_that_holds_data_keeps_every_object() {
    for (helm, point) in everywhere() {
        let ns = namespace().await;
        let install = ["install", "web", &chart(), "--wait", "--set", "message=one,pod=never-ready"];
        kill(&ns, point, ns.helm(helm).args(install)).await;
        let before = identities(&ns, "one").await;
        walk(&ns, "pending-install", "unlock").await;
        stock_helm_goes_on(&ns).await;
        assert_eq!(identities(&ns, "one").await, before, "{helm:?} {point:?}");
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_upgrade_ends_at_the_last_deployed_revision_and_prunes_with_care() {
    for (helm, point) in everywhere() {
        let ns = namespace().await;
        finished(ns.helm(helm).args(["install", "web", &chart(), "--wait", "--set", ONE])).await;
        kill(&ns, point, ns.helm(helm).args(["upgrade", "web", &chart(), "--wait", "--set", TWO])).await;
        let before = (identities(&ns, "one").await, identities(&ns, "two").await);
        walk(&ns, "pending-upgrade", "rollback").await;
        assert_eq!(uid(&ns, &object(&ns, "configmaps", "d")).await, Value::Null, "pruned: {helm:?} {point:?}");
        assert_eq!((identities(&ns, "one").await, identities(&ns, "two").await), before, "{helm:?} {point:?}");
        stock_helm_goes_on(&ns).await;
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_rollback_ends_at_the_last_deployed_revision() {
    for (helm, point) in everywhere() {
        let ns = namespace().await;
        finished(ns.helm(helm).args(["install", "web", &chart(), "--set", "message=one,pod=never-ready"])).await;
        finished(ns.helm(helm).args(["upgrade", "web", &chart(), "--wait", "--set", "message=two"])).await;
        kill(&ns, point, ns.helm(helm).args(["rollback", "web", "1", "--wait"])).await;
        let before = identities(&ns, "one").await;
        walk(&ns, "pending-rollback", "rollback").await;
        let last = history(&ns).await.as_array().and_then(|records| records.last().cloned()).unwrap();
        assert_eq!(last["description"], "Rollback to 2", "{helm:?} {point:?}");
        stock_helm_goes_on(&ns).await;
        assert_eq!(identities(&ns, "one").await, before, "{helm:?} {point:?}");
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_service_account_with_the_edit_role_walks_the_same_paths() {
    // The chart without its Namespace and its CustomResourceDefinition, which the role does not reach.
    let (bad, good) = ("message=one,pod=never-ready,guarded=null", "message=two,guarded=null");
    for (helm, point) in everywhere() {
        let ns = namespace().await;
        let account: Account = ns.account("editor", "edit").await.unwrap();
        kill(&ns, point, ns.helm(helm).args(["install", "web", &chart(), "--wait", "--set", bad])).await;
        walk_as(&ns, &account.kubeconfig, "pending-install", "uninstall").await;
        finished(ns.helm(helm).args(["install", "web", &chart(), "--wait", "--set", good])).await;
        kill(&ns, point, ns.helm(helm).args(["upgrade", "web", &chart(), "--wait", "--set", bad])).await;
        walk_as(&ns, &account.kubeconfig, "pending-upgrade", "rollback").await;
        finished(ns.helm(helm).args(["upgrade", "web", &chart(), "--set", bad])).await;
        finished(ns.helm(helm).args(["upgrade", "web", &chart(), "--wait", "--set", good])).await;
        kill(&ns, point, ns.helm(helm).args(["rollback", "web", "--wait"])).await;
        walk_as(&ns, &account.kubeconfig, "pending-rollback", "rollback").await;
        stock_helm_goes_on(&ns).await;
    }
}

fn everywhere() -> impl Iterator<Item = (Helm, Point)> {
    HELMS.into_iter().flat_map(|helm| [Point::MidApply, Point::Wait].map(|point| (helm, point)))
}

/// Kills Helm before it writes the workload, which comes last, or once it looks whether the workload is ready.
async fn kill(ns: &Namespace, point: Point, command: &mut Command) {
    let proxy = Proxy::start(ns).await.unwrap();
    if point == Point::MidApply {
        for method in [Method::POST, Method::PATCH] {
            proxy.at_match(method, "/deployments", 1, Fault::KillBefore);
        }
        assert_eq!(proxy.run(command).await.unwrap().code, None);
        return;
    }
    let mut child = proxy.spawn(command).unwrap();
    let of_workload = |request: &Request| request.path.contains("/deployments");
    proxy.reached(|request| of_workload(request) && request.write.is_some() && request.status.is_some()).await.unwrap();
    child.kill().await.unwrap();
}

/// Scan finds it, plan explains it, repair repairs it, and a second repair writes nothing.
async fn walk(ns: &Namespace, status: &str, verdict: &str) {
    walk_as(ns, &ns.kubeconfig(), status, verdict).await;
}

async fn walk_as(ns: &Namespace, kubeconfig: &Path, status: &str, verdict: &str) {
    let gwrepair = async |line: &str| gwrepair_as(ns, kubeconfig, line).await;
    let foreign = uid(ns, &object(ns, "configmaps", "foreign")).await;
    let scan = gwrepair("scan").await;
    assert_eq!(scan.code, Some(3), "{scan:?}");
    assert!(scan.stdout.contains(status), "{scan:?}");
    let plan: Value = serde_json::from_str(&gwrepair("plan web --assume-dead -ojson").await.stdout).unwrap();
    assert_eq!(plan["verdict"], verdict, "{plan:#}");
    let repaired = gwrepair("repair web --assume-dead --yes").await;
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    let again: Value = serde_json::from_str(&gwrepair("repair web --yes -ojson").await.stdout).unwrap();
    assert_eq!((&again["outcome"], &again["requests"]["write"]), (&"nothing-to-do".into(), &0.into()), "{again:#}");
    assert_eq!(gwrepair("scan").await.code, Some(0));
    assert_eq!(uid(ns, &object(ns, "configmaps", "foreign")).await, foreign);
}

async fn stock_helm_goes_on(ns: &Namespace) {
    for helm in HELMS {
        finished(ns.helm(helm).args(["upgrade", "--install", "web", &chart()])).await;
    }
}

async fn history(ns: &Namespace) -> Value {
    let ran = gwrepair_as(ns, &ns.kubeconfig(), "history web -ojson").await;
    let found: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    found.get("items").cloned().unwrap_or_else(|| json!([]))
}

/// A namespace with an object in it that is nobody's.
async fn namespace() -> Namespace {
    let ns = Cluster::shared().unwrap().namespace("path").await.unwrap();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "foreign"}});
    ns.cluster().create(&ns.path("/api/v1", "configmaps"), &object).await.unwrap();
    ns
}

/// The UIDs of the claim, the Namespace and the CustomResourceDefinition of that name.
async fn identities(ns: &Namespace, name: &str) -> Vec<Value> {
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let claim = object(ns, "persistentvolumeclaims", name);
    let found = ns.cluster().get(&claim).await.unwrap().unwrap_or_default();
    vec![
        found["metadata"]["uid"].clone(),
        uid(ns, &format!("/api/v1/namespaces/{}-{name}", ns.name())).await,
        uid(ns, &format!("{crds}/{name}s.{}.example.com", ns.name())).await,
    ]
}

fn object(ns: &Namespace, plural: &str, name: &str) -> String {
    format!("{}/{name}", ns.path("/api/v1", plural))
}

async fn uid(ns: &Namespace, path: &str) -> Value {
    let found = ns.cluster().get(path).await.unwrap();
    found.map(|object| object["metadata"]["uid"].clone()).unwrap_or_default()
}

async fn gwrepair_as(ns: &Namespace, kubeconfig: &Path, line: &str) -> Ran {
    let mut command = ns.command(env!("CARGO_BIN_EXE_gwrepair").as_ref());
    command.args(line.split(' ')).args(["-n", ns.name()]).arg("--kubeconfig").arg(kubeconfig);
    run(&mut command).await.unwrap()
}

async fn finished(command: &mut Command) {
    run(command).await.unwrap().ok().unwrap();
}

fn chart() -> String {
    format!("{}/../testdata/charts/guarded", env!("CARGO_MANIFEST_DIR"))
}
