//! Hooks around an operation that was killed: one at work is waited for, one that has ended decides.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod common;

use common::{Site, lenient};
use helm_release::action::Outcome;
use helm_release::plan::Verdict;
use http::Method;
use serde_json::Value;
use testcluster::{Cluster, Fault, Helm, Proxy, run, until};

const HELMS: [Helm; 2] = [Helm::V3, Helm::V4];

/// Kills Helm once the hook Job of `event` exists and is looked at, so that it waits for it.
async fn kill_in_hook(site: &Site, event: &str, command: &mut tokio::process::Command) {
    let proxy = Proxy::start(&site.ns).await.unwrap();
    let mut child = proxy.spawn(command).unwrap();
    let job = format!("web-{event}");
    until("the hook's pod", async || {
        let pods = site.ns.objects("/api/v1", "pods").await?;
        let of_job = |pod: &&Value| pod["metadata"]["labels"]["job-name"] == job.as_str();
        Ok(pods.iter().find(of_job).and_then(|pod| pod["status"]["phase"].as_str()).map(str::to_owned))
    })
    .await
    .unwrap();
    child.kill().await.unwrap();
}

/// Lets the hook's pod end: well, or badly with `fail`.
async fn end_hook(site: &Site, event: &str, label: &str) {
    let pod = format!("job-name=web-{event}");
    run(site.ns.kubectl().args(["label", "pod", "-l", &pod, "--overwrite", label])).await.unwrap().ok().unwrap();
    until("the hook to end", async || {
        let job = site.ns.object("/apis/batch/v1", "jobs", &format!("web-{event}")).await?;
        let conditions = job.map(|job| job["status"]["conditions"].clone()).unwrap_or_default();
        let ended = |c: &Value| (c["type"] == "Complete" || c["type"] == "Failed") && c["status"] == "True";
        Ok(conditions.as_array().is_some_and(|all| all.iter().any(ended)).then_some(()))
    })
    .await
    .unwrap();
}

async fn repaired(site: &Site, verdict: Verdict) {
    let report = site.repair(&lenient()).await;
    assert_eq!((report.outcome, report.plan.verdict), (Outcome::Repaired, verdict), "{report:#?}");
    site.judge().await.unwrap();
    site.stock_helm_goes_on().await.unwrap();
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_upgrade_killed_in_its_pre_hook_is_unlocked_once_the_hook_has_ended() {
    for helm in HELMS {
        let site = Site::new(&Cluster::shared().unwrap(), "pre", "feature").await;
        site.helm(helm, &["install"]).await;
        let args = ["upgrade", "--set", "message=two,hooks.pre-upgrade=linger"];
        kill_in_hook(&site, "pre-upgrade", &mut site.command(helm, &args)).await;
        let planned = site.plan(&lenient()).await;
        let wait = planned.plan.wait.as_ref().map(|wait| wait.reason.clone()).unwrap_or_default();
        assert_eq!(planned.plan.verdict, Verdict::Wait, "{:#?}", planned.plan);
        assert!(wait.contains("web-pre-upgrade"), "{wait}");
        end_hook(&site, "pre-upgrade", "testcluster/pod-").await;
        repaired(&site, Verdict::Unlock).await;
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_install_killed_in_its_post_hook_is_finished_once_the_hook_has_succeeded() {
    for helm in HELMS {
        let site = Site::new(&Cluster::shared().unwrap(), "post", "feature").await;
        let args = ["install", "--wait", "--set", "hooks.post-install=linger"];
        kill_in_hook(&site, "post-install", &mut site.command(helm, &args)).await;
        assert_eq!(site.plan(&lenient()).await.plan.verdict, Verdict::Wait);
        end_hook(&site, "post-install", "testcluster/pod-").await;
        repaired(&site, Verdict::Finish).await;
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_upgrade_whose_post_hook_failed_or_never_ran_is_closed_as_failed_with_its_objects() {
    for helm in HELMS {
        let site = Site::new(&Cluster::shared().unwrap(), "failed", "feature").await;
        site.helm(helm, &["install", "--wait"]).await;
        let args = ["upgrade", "--wait", "--set", "message=two,hooks.post-upgrade=linger"];
        kill_in_hook(&site, "post-upgrade", &mut site.command(helm, &args)).await;
        end_hook(&site, "post-upgrade", "testcluster/pod=fail").await;
        repaired(&site, Verdict::Close).await;

        let proxy = Proxy::start(&site.ns).await.unwrap();
        proxy.at_match(Method::DELETE, "jobs/web-post-upgrade", 1, Fault::KillBefore);
        let args = ["upgrade", "--wait", "--set", "message=three,hooks.post-upgrade="];
        proxy.run(&mut site.command(helm, &args)).await.unwrap();
        repaired(&site, Verdict::Close).await;
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_rollback_whose_post_hook_failed_is_pending_with_nobody_killed_and_is_finished() {
    for helm in HELMS {
        let site = Site::new(&Cluster::shared().unwrap(), "nobody", "feature").await;
        site.helm(helm, &["install", "--wait", "--set", "hooks.post-rollback=fail"]).await;
        site.helm(helm, &["upgrade", "--wait", "--set", "message=two"]).await;
        let ran = run(site.ns.helm(helm).args(["rollback", "web", "1", "--wait"])).await.unwrap();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        repaired(&site, Verdict::Finish).await;
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_first_install_killed_in_its_pre_hook_is_removed_once_the_hook_has_ended() {
    for helm in HELMS {
        let site = Site::new(&Cluster::shared().unwrap(), "first", "feature").await;
        let args = ["install", "--set", "hooks.pre-install=linger"];
        kill_in_hook(&site, "pre-install", &mut site.command(helm, &args)).await;
        assert_eq!(site.plan(&lenient()).await.plan.verdict, Verdict::Wait);
        end_hook(&site, "pre-install", "testcluster/pod-").await;
        repaired(&site, Verdict::Uninstall).await;
    }
}
