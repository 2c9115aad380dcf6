//! Clients that know nothing of the sandbox work with it: kubectl, and both Helms through a release's whole life.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use sandbox::{Listening, Sandbox};
use testcluster::{Cluster, Helm, Namespace, run};
use tokio::process::Command;

struct Desk {
    sandbox: Sandbox,
    _listening: Listening,
    namespace: Namespace,
    kubeconfig: PathBuf,
}

impl Desk {
    async fn new() -> Result<Self> {
        // The namespace lends its folder and its programs; nothing is written to its cluster.
        let namespace = Cluster::shared()?.namespace("clients").await?;
        let sandbox = Sandbox::new();
        let listening = sandbox.listen().await?;
        let kubeconfig = namespace.dir().join("sandbox");
        std::fs::write(&kubeconfig, listening.kubeconfig("default").to_string())?;
        Ok(Self { sandbox, _listening: listening, namespace, kubeconfig })
    }

    async fn run(&self, mut command: Command, arguments: &[&str]) -> Result<String> {
        let ran = run(command.args(arguments).env("KUBECONFIG", &self.kubeconfig)).await?;
        ensure!(ran.code == Some(0), "{arguments:?}: {:?}\n{}{}", ran.code, ran.stdout, ran.stderr);
        Ok(ran.stdout)
    }

    async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.run(self.namespace.kubectl(), arguments).await
    }

    fn value(&self, kind: &str, name: &str, pointer: &str) -> Option<String> {
        let all = self.sandbox.objects(Some("default"));
        let found = all.into_iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name)?;
        found.pointer(pointer).map(|value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned))
    }
}

#[tokio::test]
#[ignore = "needs the real control plane"]
async fn kubectl_creates_changes_watches_and_deletes() -> Result<()> {
    let desk = Desk::new().await?;
    let file = desk.namespace.dir().join("a.yaml");
    std::fs::write(&file, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: '1'}\n")?;
    desk.kubectl(&["create", "-f", file.to_str().context("a path")?]).await?;
    std::fs::write(&file, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {k: '1'}\n")?;
    let path = file.to_str().context("a path")?;
    desk.kubectl(&["apply", "-f", path]).await?;
    std::fs::write(&file, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {k: '2'}\n")?;
    desk.kubectl(&["apply", "-f", path]).await?;
    assert_eq!(desk.value("ConfigMap", "b", "/data/k").as_deref(), Some("2"));
    std::fs::write(&file, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {k: '3'}\n")?;
    desk.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", path]).await?;
    assert_eq!(desk.value("ConfigMap", "b", "/data/k").as_deref(), Some("3"));
    let names = desk.kubectl(&["get", "cm", "-o", "name"]).await?;
    assert!(names.contains("configmap/a") && names.contains("configmap/b"), "{names}");
    desk.kubectl(&["wait", "cm/b", "--for=jsonpath={.data.k}=3", "--timeout=20s"]).await?;
    desk.kubectl(&["delete", "cm", "a", "b"]).await?;
    assert_eq!(desk.value("ConfigMap", "a", "/data/k"), None);
    let can = desk.kubectl(&["auth", "can-i", "delete", "secrets"]).await?;
    assert_eq!(can.trim(), "yes");
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane"]
async fn helm_3_takes_a_release_through_its_life() -> Result<()> {
    helm(Helm::V3).await
}

#[tokio::test]
#[ignore = "needs the real control plane"]
async fn helm_4_takes_a_release_through_its_life() -> Result<()> {
    helm(Helm::V4).await
}

async fn helm(version: Helm) -> Result<()> {
    let desk = Desk::new().await?;
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/guarded");
    let helm = async |arguments: &[&str]| desk.run(desk.namespace.helm(version), arguments).await;
    let message = || desk.value("Deployment", "web", "/spec/template/metadata/annotations/message");

    helm(&["install", "web", chart, "--set", "message=one,maps={a},guarded={x}", "--wait", "--timeout=20s"]).await?;
    assert_eq!(message().as_deref(), Some("one"));
    helm(&["upgrade", "web", chart, "--set", "message=two,maps={b}", "--wait", "--timeout=20s"]).await?;
    assert_eq!(message().as_deref(), Some("two"));
    assert_eq!(
        (desk.value("ConfigMap", "a", "/data"), desk.value("PersistentVolumeClaim", "x", "/spec")),
        (None, None)
    );
    helm(&["rollback", "web", "1", "--wait", "--timeout=20s"]).await?;
    assert_eq!((message().as_deref(), desk.value("ConfigMap", "b", "/data")), (Some("one"), None));
    let history = helm(&["history", "web"]).await?;
    assert!(history.contains("Rollback to 1"), "{history}");
    helm(&["uninstall", "web", "--wait", "--timeout=20s"]).await?;
    assert_eq!(message(), None);
    let left: Vec<_> = desk.sandbox.objects(Some("default"));
    let kinds: Vec<_> =
        left.iter().map(|object| format!("{} {}", object["kind"], object["metadata"]["name"])).collect();
    assert_eq!(kinds, [r#""ConfigMap" "kube-root-ca.crt""#, r#""ServiceAccount" "default""#]);
    Ok(())
}
