//! Service accounts, for tests of what a program may do.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use crate::{Namespace, cluster};

/// A service account of a namespace.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its bearer token, good for an hour.
    pub token: String,
    /// A kubeconfig that uses the token, with the account's namespace as the default.
    pub kubeconfig: PathBuf,
}

impl Account {
    pub(crate) async fn create(namespace: &Namespace, name: &str, role: &str) -> Result<Self> {
        let cluster = namespace.cluster();
        let accounts = namespace.path("/api/v1", "serviceaccounts");
        let bindings = namespace.path("/apis/rbac.authorization.k8s.io/v1", "rolebindings");
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": namespace.name() }],
        });
        cluster.create(&accounts, &json!({ "metadata": { "name": name } })).await?;
        cluster.create(&bindings, &binding).await?;
        let request = json!({ "spec": { "expirationSeconds": 3600 } });
        let answer = cluster.create(&format!("{accounts}/{name}/token"), &request).await?;
        let token = answer["status"]["token"].as_str().context("a token request without a token")?.to_owned();
        let kubeconfig = namespace.dir().join(format!("{name}.kubeconfig"));
        fs::write(&kubeconfig, cluster::kubeconfig(cluster.server(), &token, namespace.name()).to_string())?;
        Ok(Self { token, kubeconfig })
    }
}
