//! Real Helm killed while it waits for a workload that never becomes ready, with and without data to lose.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod common;

use common::{Site, lenient};
use helm_release::action::{Outcome, RepairOptions, Stop};
use helm_release::cluster::Cause;
use helm_release::plan::{Intent, Policy, Verdict};
use serde_json::Value;
use testcluster::{Account, Cluster, Helm, Proxy};

const HELMS: [Helm; 2] = [Helm::V3, Helm::V4];
const NEVER_READY: &str = "pod=never-ready";

/// Runs an operation that waits, and kills it once the workload, which comes last, is written.
async fn kill_in_the_wait(site: &Site, command: &mut tokio::process::Command) {
    let proxy = Proxy::start(&site.ns).await.unwrap();
    let mut child = proxy.spawn(command).unwrap();
    let writes = |r: &testcluster::Request| r.write.is_some() && r.path.contains("/deployments") && r.status.is_some();
    proxy.reached(writes).await.unwrap();
    proxy.reached(|r| r.write.is_none() && r.path.contains("/deployments") && r.method == "GET").await.unwrap();
    child.kill().await.unwrap();
}

fn waiting(site: &Site, helm: Helm, args: &[&str]) -> tokio::process::Command {
    let mut command = site.command(helm, args);
    command.args(["--wait", "--timeout", "10m"]);
    command
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_first_install_in_which_nothing_lives_is_uninstalled_and_installs_anew() {
    for helm in HELMS {
        let site = Site::new(&Cluster::shared().unwrap(), "fresh", "guarded").await;
        let args = ["install", "--set", NEVER_READY, "--set", "guarded=null"];
        kill_in_the_wait(&site, &mut waiting(&site, helm, &args)).await;
        let report = site.repair(&lenient()).await;
        assert_eq!((report.outcome, report.plan.verdict), (Outcome::Repaired, Verdict::Uninstall), "{report:#?}");
        assert!(site.plan(&lenient()).await.observation.history.is_empty());
        assert_eq!(site.uid("configmaps", "a").await, None);
        site.judge().await.unwrap();
        site.stock_helm_goes_on().await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_first_install_that_holds_data_is_unlocked_and_keeps_it() {
    for helm in HELMS {
        let site = Site::new(&Cluster::shared().unwrap(), "data", "guarded").await;
        kill_in_the_wait(&site, &mut waiting(&site, helm, &["install", "--set", NEVER_READY])).await;
        let before = guarded(&site, "one").await;
        let report = site.repair(&lenient()).await;
        assert_eq!((report.outcome, report.plan.verdict), (Outcome::Repaired, Verdict::Unlock), "{report:#?}");
        site.judge().await.unwrap();
        site.stock_helm_goes_on().await.unwrap();
        assert_eq!(guarded(&site, "one").await, before);
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_upgrade_goes_back_and_prunes_but_never_what_others_depend_on() {
    for helm in HELMS {
        let site = Site::new(&Cluster::shared().unwrap(), "prune", "guarded").await;
        site.helm(helm, &["install", "--set", "message=one"]).await;
        let foreign = site.config_map("foreign").await;
        let args = ["upgrade", "--set", NEVER_READY, "--set", "message=two,maps={a,d},guarded={one,two}"];
        kill_in_the_wait(&site, &mut waiting(&site, helm, &args)).await;
        let before = (guarded(&site, "one").await, guarded(&site, "two").await);
        assert!(before.1.iter().all(Option::is_some), "{before:?}");
        let report = site.repair(&lenient()).await;
        assert_eq!((report.outcome, report.plan.verdict), (Outcome::Repaired, Verdict::Rollback), "{report:#?}");
        assert_eq!(report.plan.deletes.iter().map(|d| d.object.to_string()).collect::<Vec<_>>(), ["configmap/d"]);
        assert_eq!(report.plan.kept.len(), 3, "{:#?}", report.plan.kept);
        assert_eq!((guarded(&site, "one").await, guarded(&site, "two").await), before);
        assert_eq!(site.uid("configmaps", "foreign").await, Some(foreign));
        assert_eq!(site.uid("configmaps", "d").await, None);
        site.judge().await.unwrap();
        site.stock_helm_goes_on().await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_rollback_killed_in_its_wait_ends_at_the_last_deployed_revision() {
    for helm in HELMS {
        let site = Site::new(&Cluster::shared().unwrap(), "back", "guarded").await;
        site.helm(helm, &["install", "--set", NEVER_READY, "--set", "message=one"]).await;
        site.helm(helm, &["upgrade", "--set", "message=two"]).await;
        let before = guarded(&site, "one").await;
        let mut rollback = site.ns.helm(helm);
        rollback.args(["rollback", "web", "1", "--wait", "--timeout", "10m"]);
        kill_in_the_wait(&site, &mut rollback).await;
        let report = site.repair(&lenient()).await;
        assert_eq!((report.outcome, report.plan.verdict), (Outcome::Repaired, Verdict::Rollback), "{report:#?}");
        assert_eq!(report.plan.target.map(|target| target.get()), Some(2));
        assert_eq!(report.plan.alternative.map(|other| other.get()), Some(1));
        assert_eq!(guarded(&site, "one").await, before);
        site.judge().await.unwrap();
        site.stock_helm_goes_on().await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_author_who_may_be_waiting_is_waited_for() {
    let site = Site::new(&Cluster::shared().unwrap(), "alive", "guarded").await;
    let mut command = waiting(&site, Helm::V4, &["install", "--set", NEVER_READY, "--set", "guarded=null"]);
    let proxy = Proxy::start(&site.ns).await.unwrap();
    let mut child = proxy.spawn(&mut command).unwrap();
    proxy.reached(|r| r.write.is_some() && r.path.contains("/deployments") && r.status.is_some()).await.unwrap();
    let patient = Policy { min_age: std::time::Duration::ZERO, ..Policy::default() };
    let planned = site.plan(&patient).await;
    assert_eq!(planned.plan.verdict, Verdict::Wait, "{:#?}", planned.plan);
    assert!(planned.plan.wait.as_ref().is_some_and(|wait| wait.author && wait.until.is_some()));
    let report = site.run(&planned).await;
    assert_eq!((report.outcome, report.requests.write), (Outcome::Waiting, 0));
    child.kill().await.unwrap();
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn the_edit_role_of_a_namespace_is_enough_for_what_is_in_it() {
    for helm in HELMS {
        let site = Site::new(&Cluster::shared().unwrap(), "edit", "guarded").await;
        let account: Account = site.ns.account("editor", "edit").await.unwrap();
        // The chart without its Namespace and its CustomResourceDefinition.
        site.helm(helm, &["install", "--set", "message=one,guarded=null"]).await;
        let args = ["upgrade", "--set", NEVER_READY, "--set", "message=two,maps={a,d},guarded=null"];
        kill_in_the_wait(&site, &mut waiting(&site, helm, &args)).await;
        let planned = site.plan_as(&account.kubeconfig, &lenient()).await;
        let report = site.run_as(&account.kubeconfig, &planned).await;
        assert_eq!((report.outcome, report.plan.verdict), (Outcome::Repaired, Verdict::Rollback), "{report:#?}");
        site.judge().await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn what_the_edit_role_cannot_do_is_said_before_anything_is_written() {
    let site = Site::new(&Cluster::shared().unwrap(), "less", "guarded").await;
    let account: Account = site.ns.account("editor", "edit").await.unwrap();
    site.helm(Helm::V4, &["install", "--set", "message=one"]).await;
    let args = ["upgrade", "--set", NEVER_READY, "--set", "message=two"];
    kill_in_the_wait(&site, &mut waiting(&site, Helm::V4, &args)).await;
    let client = common::client(&account.kubeconfig, &site.ns).await;
    let (name, options) = ("web".parse().unwrap(), RepairOptions::default());
    let error = client.plan(&name, Intent::Usable, &lenient(), &options, &Stop::never()).await.unwrap_err();
    let cause = &error.request().expect("a request failed").cause;
    let Cause::Forbidden { verb, resource, .. } = cause else { panic!("{cause:?}") };
    assert_eq!(verb, "get");
    assert!(
        ["namespaces", "customresourcedefinitions.apiextensions.k8s.io"].contains(&resource.as_str()),
        "{resource}"
    );
    assert_eq!(client.requests().write, 0);
}

/// The UIDs of the claim, the Namespace and the CustomResourceDefinition of that name.
async fn guarded(site: &Site, name: &str) -> [Option<String>; 3] {
    let cluster = site.ns.cluster();
    let uid = |found: Option<Value>| found.and_then(|o| o["metadata"]["uid"].as_str().map(str::to_owned));
    let namespace = format!("/api/v1/namespaces/{}-{name}", site.ns.name());
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let crd = format!("{crds}/{name}s.{}.example.com", site.ns.name());
    [
        site.uid("persistentvolumeclaims", name).await,
        uid(cluster.get(&namespace).await.unwrap()),
        uid(cluster.get(&crd).await.unwrap()),
    ]
}
