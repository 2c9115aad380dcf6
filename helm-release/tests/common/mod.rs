//! One release in a namespace of its own on the real control plane.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "support of tests, of which each uses a part")]

use std::time::Duration;

use helm_release::action::{Client, Outcome, Planned, RepairOptions, Report, Stop};
use helm_release::cluster::Wire;
use helm_release::plan::{Intent, Policy, Verdict};
use helm_release::release::{Entry, Status};
use helm_release::storage::DriverKind;
use serde_json::json;
use testcluster::{Cluster, Helm, Namespace, run};

/// A release named `web` of one of our charts.
pub struct Site {
    pub ns: Namespace,
    chart: String,
}

/// No patience: the test itself killed the author.
pub fn lenient() -> Policy {
    Policy { min_age: Duration::ZERO, foreign_timeout: Duration::ZERO, ..Policy::default() }
}

pub async fn client(kubeconfig: &std::path::Path, ns: &Namespace) -> Client {
    Client::new(connect(kubeconfig).await, ns.name().parse().unwrap(), DriverKind::Secrets)
}

pub async fn wire(kubeconfig: &std::path::Path) -> Wire {
    Wire::new(connect(kubeconfig).await)
}

async fn connect(kubeconfig: &std::path::Path) -> kube::Client {
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    config.default_retry = false;
    kube::Client::try_from(config).unwrap()
}

impl Site {
    pub async fn new(cluster: &Cluster, prefix: &str, chart: &str) -> Self {
        let chart = format!("{}/../testdata/charts/{chart}", env!("CARGO_MANIFEST_DIR"));
        Self { ns: cluster.namespace(prefix).await.unwrap(), chart }
    }

    /// `helm ARGS[0] web CHART ARGS[1..]`.
    pub fn command(&self, helm: Helm, args: &[&str]) -> tokio::process::Command {
        let mut command = self.ns.helm(helm);
        command.args([args[0], "web", &self.chart]).args(&args[1..]);
        command
    }

    pub async fn helm(&self, helm: Helm, args: &[&str]) {
        run(&mut self.command(helm, args)).await.unwrap().ok().unwrap();
    }

    pub async fn config_map(&self, name: &str) -> String {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let made = self.ns.cluster().create(&self.ns.path("/api/v1", "configmaps"), &object).await.unwrap();
        made["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    pub async fn uid(&self, plural: &str, name: &str) -> Option<String> {
        let found = self.ns.object("/api/v1", plural, name).await.unwrap()?;
        found["metadata"]["uid"].as_str().map(str::to_owned)
    }

    pub async fn plan(&self, policy: &Policy) -> Planned {
        self.plan_as(&self.ns.kubeconfig(), policy).await
    }

    pub async fn plan_as(&self, kubeconfig: &std::path::Path, policy: &Policy) -> Planned {
        let client = client(kubeconfig, &self.ns).await;
        let name = "web".parse().unwrap();
        client.plan(&name, Intent::Usable, policy, &RepairOptions::default(), &Stop::never()).await.unwrap()
    }

    pub async fn run(&self, planned: &Planned) -> Report {
        self.run_as(&self.ns.kubeconfig(), planned).await
    }

    pub async fn run_as(&self, kubeconfig: &std::path::Path, planned: &Planned) -> Report {
        let client = client(kubeconfig, &self.ns).await;
        client.repair(planned, &RepairOptions::default(), &Stop::never(), &()).await
    }

    pub async fn repair(&self, policy: &Policy) -> Report {
        self.run(&self.plan(policy).await).await
    }

    /// What every repaired release is: not pending, at most one deployed, and nothing left to do.
    pub async fn judge(&self) -> Result<(), String> {
        let again = self.plan(&lenient()).await;
        let history = &again.observation.history;
        let statuses: Vec<_> = history.entries().iter().filter_map(Entry::status).map(ToString::to_string).collect();
        let open = history.last().and_then(Entry::status).is_some_and(Status::is_pending);
        let deployed = history.entries().iter().filter(|entry| entry.status() == Some(&Status::Deployed)).count();
        if open || deployed > 1 || again.plan.verdict != Verdict::Nothing {
            return Err(format!("left as {statuses:?}, and {:?} is due", again.plan.verdict));
        }
        let report = self.run(&again).await;
        if report.outcome != Outcome::NothingToDo || report.requests.write > 0 {
            return Err(format!("a second repair ended {:?} with {:?}", report.outcome, report.requests));
        }
        Ok(())
    }

    pub async fn stock_helm_goes_on(&self) -> Result<(), String> {
        for helm in [Helm::V3, Helm::V4] {
            let ran = run(&mut self.command(helm, &["upgrade", "--install"])).await.unwrap();
            ran.ok().map_err(|why| format!("{helm:?} refuses: {why:#}"))?;
        }
        Ok(())
    }
}
