//! Releases that real Helm left stuck on a real API server, repaired, and then upgraded by stock Helm.

use std::process::Stdio;
use std::time::Duration;

use helm_release::action::{Client, Outcome, RepairOptions, Report, Stop};
use helm_release::plan::{Intent, Policy, Verdict};
use helm_release::storage::DriverKind;
use testcluster::{Cluster, Fault, Helm, Namespace, Proxy, run};

const HELMS: [Helm; 2] = [Helm::V3, Helm::V4];

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_upgrade_killed_mid_apply_goes_back_and_stock_helm_goes_on() {
    for helm in HELMS {
        let ns = Cluster::shared().unwrap().namespace("mid").await.unwrap();
        install(&ns, helm, &["--set", "message=one"]).await;
        let proxy = Proxy::start(&ns).await.unwrap();
        proxy.at_write(3, Fault::KillBefore);
        let killed = proxy.run(helm_upgrade(&ns, helm, &["--set", "message=two"]).stdout(Stdio::null())).await.unwrap();
        assert_eq!(killed.code, None, "{helm:?} {killed:?}");
        let report = repair(&ns, &lenient()).await;
        assert_eq!((report.outcome, report.plan.verdict), (Outcome::Repaired, Verdict::Rollback), "{report:#?}");
        stock_helm_goes_on(&ns).await;
    }
}

fn lenient() -> Policy {
    Policy { min_age: Duration::ZERO, foreign_timeout: Duration::ZERO, ..Policy::default() }
}

fn chart() -> String {
    format!("{}/../testdata/charts/plain", env!("CARGO_MANIFEST_DIR"))
}

async fn install(ns: &Namespace, helm: Helm, args: &[&str]) {
    run(ns.helm(helm).args(["install", "web", &chart()]).args(args)).await.unwrap().ok().unwrap();
}

fn helm_upgrade(ns: &Namespace, helm: Helm, args: &[&str]) -> tokio::process::Command {
    let mut command = ns.helm(helm);
    command.args(["upgrade", "web", &chart()]).args(args);
    command
}

async fn stock_helm_goes_on(ns: &Namespace) {
    for helm in HELMS {
        run(ns.helm(helm).args(["upgrade", "--install", "web", &chart()])).await.unwrap().ok().unwrap();
    }
}

async fn client(ns: &Namespace) -> Client {
    let kubeconfig = kube::config::Kubeconfig::read_from(ns.kubeconfig()).unwrap();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    config.default_retry = false;
    let kube = kube::Client::try_from(config).unwrap();
    Client::new(kube, ns.name().parse().unwrap(), DriverKind::Secrets)
}

async fn repair(ns: &Namespace, policy: &Policy) -> Report {
    let client = client(ns).await;
    let name = "web".parse().unwrap();
    let options = RepairOptions::default();
    let planned = client.plan(&name, Intent::Usable, policy, &options, &Stop::never()).await.unwrap();
    client.repair(&planned, &options, &Stop::never(), &()).await
}
