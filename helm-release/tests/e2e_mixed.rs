//! Helm 4 changed the way it applies between two revisions, and was killed in the second.

mod common;

use common::{Site, lenient};
use helm_release::action::Outcome;
use helm_release::plan::Verdict;
use testcluster::{Cluster, Helm, Proxy};

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_release_that_was_applied_in_two_ways_goes_back_whole() {
    for (first, second) in [("true", "false"), ("false", "true")] {
        let site = Site::new(&Cluster::shared().unwrap(), "mixed", "guarded").await;
        let (first, second) = (format!("--server-side={first}"), format!("--server-side={second}"));
        site.helm(Helm::V4, &["install", &first, "--wait", "--set", "message=one"]).await;
        let proxy = Proxy::start(&site.ns).await.unwrap();
        let values = "message=two,pod=never-ready,maps={a,d}";
        let mut child =
            proxy.spawn(&mut site.command(Helm::V4, &["upgrade", &second, "--wait", "--set", values])).unwrap();
        let of_workload = |r: &testcluster::Request| r.path.contains("/deployments") && r.method == "PATCH";
        proxy.reached(|r| of_workload(r) && r.query.contains("helm") && r.status.is_some()).await.unwrap();
        child.kill().await.unwrap();
        let report = site.repair(&lenient()).await;
        assert_eq!((report.outcome, report.plan.verdict), (Outcome::Repaired, Verdict::Rollback), "{report:#?}");
        site.judge().await.unwrap();
        site.stock_helm_goes_on().await.unwrap();
        site.helm(Helm::V4, &["upgrade", "--set", "maps={b}"]).await;
        assert_eq!(site.uid("configmaps", "a").await, None, "stock Helm still prunes");
    }
}
