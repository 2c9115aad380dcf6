//! What the control plane gives to tests.
//!
//! `testcluster run -- cargo test -p testcluster -- --ignored`

use std::fs;

use anyhow::Result;
use serde_json::{Value, json};
use testcluster::{Cluster, Helm, Namespace, run, until};

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_claim_that_names_no_class_has_a_volume_as_long_as_it_lives() -> Result<()> {
    let namespace = Cluster::shared()?.namespace("claim").await?;
    let claim = json!({
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    namespace.cluster().create(&namespace.path("/api/v1", "persistentvolumeclaims"), &claim).await?;
    until("a bound claim", async || {
        let claim = namespace.object("/api/v1", "persistentvolumeclaims", "data").await?;
        Ok(claim.filter(|claim| claim["status"]["phase"] == "Bound"))
    })
    .await?;
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_namespace_is_gone_after_its_test() -> Result<()> {
    let cluster = Cluster::shared()?;
    let namespace = cluster.namespace("gone").await?;
    let path = format!("/api/v1/namespaces/{}", namespace.name());
    drop(namespace);
    until("an empty place", async || Ok(cluster.get(&path).await?.is_none().then_some(()))).await
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn both_helms_install_in_the_namespace_of_the_test() -> Result<()> {
    for (helm, version) in [(Helm::V3, "v3."), (Helm::V4, "v4.")] {
        let namespace = Cluster::shared()?.namespace("helm").await?;
        let chart = chart(&namespace, "")?;
        assert!(run(namespace.helm(helm).args(["version", "--short"])).await?.ok()?.starts_with(version));
        run(namespace.helm(helm).args(["install", "web", &chart, "--wait"])).await?.ok()?;
        let deployment = namespace.object("/apis/apps/v1", "deployments", "web").await?.unwrap();
        assert_eq!(deployment["status"]["readyReplicas"], 1);
        assert_eq!(namespace.objects("/api/v1", "secrets").await?.len(), 1);
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_service_account_may_do_what_its_role_allows_and_no_more() -> Result<()> {
    let namespace = Cluster::shared()?.namespace("account").await?;
    let account = namespace.account("tester", "view").await?;
    let may = async |verb: &str| {
        let mut kubectl = namespace.kubectl();
        kubectl.env("KUBECONFIG", &account.kubeconfig).args(["auth", "can-i", verb, "configmaps"]);
        run(&mut kubectl).await.map(|ran| ran.code)
    };
    assert_eq!(may("list").await?, Some(0));
    assert_eq!(may("delete").await?, Some(1));
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_pod_that_never_becomes_ready_does_so_when_its_label_is_taken_away() -> Result<()> {
    let namespace = Cluster::shared()?.namespace("never-ready").await?;
    let chart = chart(&namespace, "never-ready")?;
    run(namespace.helm(Helm::V4).args(["install", "web", &chart])).await?.ok()?;
    pod(&namespace, |pod| pod["status"]["phase"] == "Running" && !ready(pod)).await?;
    relabel(&namespace, "testcluster/pod-").await?;
    pod(&namespace, ready).await?;
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_pod_that_crashes_is_seen_to_crash() -> Result<()> {
    let namespace = Cluster::shared()?.namespace("crash").await?;
    let chart = chart(&namespace, "crash")?;
    run(namespace.helm(Helm::V3).args(["install", "web", &chart])).await?.ok()?;
    let reason = "/status/containerStatuses/0/state/waiting/reason";
    pod(&namespace, |pod| pod.pointer(reason).is_some_and(|reason| reason == "CrashLoopBackOff")).await?;
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_job_completes_unless_its_pod_is_told_to_fail_or_to_linger() -> Result<()> {
    let namespace = Cluster::shared()?.namespace("job").await?;
    for (name, label) in [("plain", "none"), ("failing", "fail"), ("lingering", "linger")] {
        namespace.cluster().create(&namespace.path("/apis/batch/v1", "jobs"), &job(name, label)).await?;
    }
    job_is(&namespace, "plain", |status| status["succeeded"] == 1).await?;
    job_is(&namespace, "failing", |status| status["failed"] == 1).await?;
    job_is(&namespace, "lingering", |status| status["active"] == 1 && status["ready"] == 1).await?;
    relabel(&namespace, "testcluster/pod-").await?;
    job_is(&namespace, "lingering", |status| status["succeeded"] == 1).await
}

fn job(name: &str, label: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": { "labels": { "testcluster/pod": label } },
                "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "none" }] },
            },
        },
    })
}

async fn job_is(namespace: &Namespace, name: &str, wanted: impl Fn(&Value) -> bool) -> Result<()> {
    until(name, async || {
        let job = namespace.object("/apis/batch/v1", "jobs", name).await?.unwrap_or_default();
        Ok(wanted(&job["status"]).then_some(()))
    })
    .await
}

async fn pod(namespace: &Namespace, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    until("the pod", async || {
        let pods = namespace.objects("/api/v1", "pods").await?;
        Ok(pods.into_iter().find(|pod| wanted(pod)))
    })
    .await
}

fn ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"))
}

async fn relabel(namespace: &Namespace, label: &str) -> Result<()> {
    run(namespace.kubectl().args(["label", "pods", "--all", label])).await?.ok().map(drop)
}

/// A chart of one Deployment whose pod carries `label`.
fn chart(namespace: &Namespace, label: &str) -> Result<String> {
    let dir = namespace.dir().join("chart");
    fs::create_dir_all(dir.join("templates"))?;
    fs::write(dir.join("Chart.yaml"), "apiVersion: v2\nname: web\nversion: 1.0.0\n")?;
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web", "testcluster/pod": label } },
                "spec": { "containers": [{ "name": "main", "image": "none" }] },
            },
        },
    });
    fs::write(dir.join("templates/deployment.yaml"), deployment.to_string())?;
    Ok(dir.to_string_lossy().into_owned())
}
