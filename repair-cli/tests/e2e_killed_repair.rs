//! The repair itself is killed before and after each of its writes, or a request of it fails; the next one goes on.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use futures::stream::{self, StreamExt};
use http::Method;
use serde_json::Value;
use testcluster::{Cluster, Fault, Helm, Namespace, Proxy, run};
use tokio::process::Command;

/// Writes of the longest repair below.
const WRITES: usize = 8;
const REPAIR: [&str; 5] = ["repair", "web", "--assume-dead", "--yes", "-ojson"];

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_repair_that_is_killed_at_any_write_is_completed_by_the_next() {
    let faults = [Fault::KillBefore, Fault::KillAfter];
    survive_all(faults.into_iter().flat_map(|fault| (1..=WRITES).map(move |write| (fault, write)))).await;
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_repair_one_of_whose_writes_fails_once_ends_right_or_is_completed_by_the_next() {
    let faults = [Fault::INTERNAL_ERROR, Fault::Reset, Fault::LoseAnswer];
    survive_all(faults.into_iter().flat_map(|fault| (1..=WRITES).map(move |write| (fault, write)))).await;
}

async fn survive_all(cases: impl Iterator<Item = (Fault, usize)>) {
    let helms = |(fault, write)| [Helm::V3, Helm::V4].map(|helm| (helm, fault, write));
    let runs = cases.flat_map(helms).map(|(helm, fault, write)| async move {
        survive(helm, fault, write).await.map_err(|why| format!("{helm:?} {fault:?} at write {write}: {why}"))
    });
    let ended: Vec<_> = stream::iter(runs).buffer_unordered(4).collect().await;
    let wrong: Vec<_> = ended.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

async fn survive(helm: Helm, fault: Fault, write: usize) -> Result<(), String> {
    let ns = Cluster::shared().unwrap().namespace("again").await.unwrap();
    wedge(&ns, helm).await;
    let claim = uid(&ns).await;
    let proxy = Proxy::start(&ns).await.unwrap();
    proxy.at_write(write, fault);
    let first = proxy.run(&mut gwrepair(&ns, &REPAIR, &proxy.kubeconfig())).await.unwrap();
    let second = run(&mut gwrepair(&ns, &REPAIR, &ns.kubeconfig())).await.unwrap();
    if second.code != Some(0) {
        return Err(format!("first {first:?}\nthen {second:?}"));
    }
    let third = run(&mut gwrepair(&ns, &REPAIR, &ns.kubeconfig())).await.unwrap();
    let report: Value = serde_json::from_str(&third.stdout).map_err(|why| format!("{why}: {third:?}"))?;
    if report["outcome"] != "nothing-to-do" || report["requests"]["write"] != 0 {
        return Err(format!("first {first:?}\nthen {second:?}\nand still {report}"));
    }
    judge(&ns).await?;
    if uid(&ns).await != claim {
        return Err("the claim was replaced".into());
    }
    for helm in [Helm::V3, Helm::V4] {
        let mut upgrade = ns.helm(helm);
        let ran = run(upgrade.args(["upgrade", "--install", "web", &chart()])).await.unwrap();
        ran.ok().map_err(|why| format!("{helm:?} refuses: {why:#}"))?;
    }
    Ok(())
}

/// An upgrade that drops an object, adds one and changes one, killed between its prune and its records.
async fn wedge(ns: &Namespace, helm: Helm) {
    let install = ["install", "web", &chart(), "--set", "message=one"];
    run(ns.helm(helm).args(install)).await.unwrap().ok().unwrap();
    let proxy = Proxy::start(ns).await.unwrap();
    proxy.at_match(Method::PATCH, "persistentvolumeclaims", 1, Fault::KillBefore);
    let mut upgrade = ns.helm(helm);
    upgrade.args(["upgrade", "web", &chart(), "--set", "message=two,maps={a,d}"]);
    proxy.run(&mut upgrade).await.unwrap();
}

/// At most one record is deployed, and the newest is not pending.
async fn judge(ns: &Namespace) -> Result<(), String> {
    let ran = run(&mut gwrepair(ns, &["history", "web", "-ojson"], &ns.kubeconfig())).await.unwrap();
    let text = ran.ok().map_err(|why| why.to_string())?;
    let statuses: Vec<_> = text.split("\"status\": \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let deployed = statuses.iter().filter(|status| **status == "deployed").count();
    let pending = statuses.last().is_none_or(|status| status.starts_with("pending"));
    if deployed > 1 || pending { Err(format!("left as {statuses:?}")) } else { Ok(()) }
}

fn gwrepair(ns: &Namespace, args: &[&str], kubeconfig: &Path) -> Command {
    let mut command = ns.command(env!("CARGO_BIN_EXE_gwrepair").as_ref());
    command.args(args).args(["-n", ns.name()]).arg("--kubeconfig").arg(kubeconfig);
    command
}

fn chart() -> String {
    format!("{}/../testdata/charts/plain", env!("CARGO_MANIFEST_DIR"))
}

async fn uid(ns: &Namespace) -> Option<String> {
    let claim = ns.object("/api/v1", "persistentvolumeclaims", "data").await.unwrap()?;
    claim["metadata"]["uid"].as_str().map(str::to_owned)
}
