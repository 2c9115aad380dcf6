//! A namespace of a test, and the commands that work in it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::{Account, Cluster, Helm, cluster, until};

/// A namespace that goes away with its test.
///
/// Commands made here use it as their default, have folders of their own for Helm and inherit no setting of the developer.
/// The environment variable `TESTCLUSTER_KEEP` leaves it in place, to be looked at.
#[derive(Debug)]
pub struct Namespace {
    cluster: Cluster,
    name: String,
    home: TempDir,
}

impl Namespace {
    pub(crate) async fn create(cluster: &Cluster, metadata: Value) -> Result<Self> {
        let created = cluster.create("/api/v1/namespaces", &json!({ "metadata": metadata })).await?;
        let name = created["metadata"]["name"].as_str().context("a namespace without a name")?.to_owned();
        let account = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
        until("the default service account", async || cluster.get(&account).await).await?;
        let home = TempDir::new()?;
        let config = cluster::kubeconfig(cluster.server(), cluster.token(), &name);
        fs::write(home.path().join("kubeconfig"), config.to_string())?;
        Ok(Self { cluster: cluster.clone(), name, home })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The control plane that it is in.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The administrator's kubeconfig with this namespace as the default.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.home.path().join("kubeconfig")
    }

    /// A folder for the files of this test.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.home.path()
    }

    /// Real Helm, ready for its arguments.
    #[must_use]
    pub fn helm(&self, version: Helm) -> Command {
        self.command(&self.cluster.programs().path(version.program()))
    }

    /// The `kubectl` of the same version as the control plane, ready for its arguments.
    #[must_use]
    pub fn kubectl(&self) -> Command {
        self.command(&self.cluster.programs().path("kubectl"))
    }

    /// Any program, set up to work in this namespace through `KUBECONFIG`; it dies with the test.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HELM_")) {
            command.env_remove(name);
        }
        command
            .env("KUBECONFIG", self.kubeconfig())
            .env("HOME", self.home.path())
            .env("HELM_CACHE_HOME", self.home.path().join("cache"))
            .env("HELM_CONFIG_HOME", self.home.path().join("config"))
            .env("HELM_DATA_HOME", self.home.path().join("data"))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// The objects of one kind, as the API server lists them: `objects("/apis/apps/v1", "deployments")`.
    ///
    /// # Errors
    /// The API server does not know the kind, or does not answer.
    pub async fn objects(&self, version: &str, plural: &str) -> Result<Vec<Value>> {
        let mut list = self.cluster.get(&self.path(version, plural)).await?.context("an unknown kind")?;
        Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    /// One object; none if there is none: `object("/api/v1", "secrets", "web")`.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn object(&self, version: &str, plural: &str, name: &str) -> Result<Option<Value>> {
        self.cluster.get(&format!("{}/{name}", self.path(version, plural))).await
    }

    /// The path of a collection in this namespace: `path("/api/v1", "secrets")`.
    #[must_use]
    pub fn path(&self, version: &str, plural: &str) -> String {
        format!("{version}/namespaces/{}/{plural}", self.name)
    }

    /// A service account that may do here what the cluster role `role` allows, `edit` for one.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn account(&self, name: &str, role: &str) -> Result<Account> {
        Account::create(self, name, role).await
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if env::var_os("TESTCLUSTER_KEEP").is_some() {
            return;
        }
        // Best effort: the control plane itself goes away soon.
        let _ = std::process::Command::new(self.cluster.programs().path("kubectl"))
            .args(["delete", "namespace", &self.name, "--wait=false"])
            .env("KUBECONFIG", self.kubeconfig())
            .output();
    }
}
