//! Real Helm killed before and after each of its writes, repaired, judged, and repaired again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod common;

use common::{Site, lenient};
use futures::stream::{self, StreamExt};
use helm_release::action::Outcome;
use helm_release::plan::Verdict;
use testcluster::{Cluster, Fault, Helm, Proxy};

/// Writes of the longest operation below, and one more, so that "killed after the end" is there too.
const WRITES: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Install,
    Upgrade,
    Rollback,
}

#[derive(Debug, Clone, Copy)]
enum Moment {
    Before,
    After,
}

#[derive(Debug, Clone, Copy)]
struct Kill {
    helm: Helm,
    operation: Operation,
    write: usize,
    moment: Moment,
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn whatever_write_helm_is_killed_at_the_release_is_usable_afterwards() {
    let mut kills = Vec::new();
    for helm in [Helm::V3, Helm::V4] {
        for operation in [Operation::Install, Operation::Upgrade, Operation::Rollback] {
            for write in 1..=WRITES {
                for moment in [Moment::Before, Moment::After] {
                    kills.push(Kill { helm, operation, write, moment });
                }
            }
        }
    }
    let ended: Vec<_> = stream::iter(kills).map(survive).buffered(4).collect().await;
    let wrong: Vec<_> = ended.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

async fn survive(kill: Kill) -> Result<(), String> {
    let said = |what: String| format!("{kill:?}: {what}");
    let site = Site::new(&Cluster::shared().unwrap(), "kill", "plain").await;
    prepare(&site, kill).await;
    let foreign = site.config_map("foreign").await;
    let proxy = Proxy::start(&site.ns).await.unwrap();
    let fault = match kill.moment {
        Moment::Before => Fault::KillBefore,
        Moment::After => Fault::KillAfter,
    };
    proxy.at_write(kill.write, fault);
    let ran = proxy.run(&mut operation(&site, kill)).await.unwrap();
    let claim = site.uid("persistentvolumeclaims", "data").await;
    let planned = site.plan(&lenient()).await;
    let locked = planned.observation.history.last().and_then(|last| last.status()).is_some_and(|s| s.is_pending());
    let report = site.run(&planned).await;
    let verdict = report.plan.verdict;
    let right = match report.outcome {
        Outcome::Repaired => locked || verdict == Verdict::Tidy,
        Outcome::NothingToDo => !locked,
        Outcome::Restored
        | Outcome::Waiting
        | Outcome::Refused
        | Outcome::Failed
        | Outcome::Cancelled
        | Outcome::Changed => false,
    };
    if !right {
        return Err(said(format!("helm ended {:?}; {report:#?}", ran.code)));
    }
    site.judge().await.map_err(said)?;
    if site.uid("configmaps", "foreign").await != Some(foreign) {
        return Err(said("the foreign object changed".into()));
    }
    // A claim lives, so no repair may replace it.
    if claim.is_some() && site.uid("persistentvolumeclaims", "data").await != claim {
        return Err(said("the claim was replaced".into()));
    }
    site.stock_helm_goes_on().await.map_err(said)
}

async fn prepare(site: &Site, kill: Kill) {
    match kill.operation {
        Operation::Install => {}
        Operation::Upgrade => site.helm(kill.helm, &["install", "--set", "message=one"]).await,
        Operation::Rollback => {
            site.helm(kill.helm, &["install", "--set", "message=one"]).await;
            site.helm(kill.helm, &["upgrade", "--set", "message=two,maps={a,d}"]).await;
        }
    }
}

fn operation(site: &Site, kill: Kill) -> tokio::process::Command {
    match kill.operation {
        Operation::Install => site.command(kill.helm, &["install", "--set", "message=one"]),
        Operation::Upgrade => site.command(kill.helm, &["upgrade", "--set", "message=two,maps={a,d}"]),
        Operation::Rollback => {
            let mut command = site.ns.helm(kill.helm);
            command.args(["rollback", "web", "1"]);
            command
        }
    }
}
