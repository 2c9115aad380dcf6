//! A handle on a running control plane.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use http::Method;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::{Namespace, Programs};

/// The environment variable that names the kubeconfig of the control plane of this test run.
pub const KUBECONFIG_VARIABLE: &str = "TESTCLUSTER_KUBECONFIG";

/// A running control plane, seen as its administrator.
#[derive(Clone, Debug)]
pub struct Cluster {
    server: String,
    token: String,
    kubeconfig: PathBuf,
    programs: Programs,
    client: Client,
}

impl Cluster {
    /// The control plane of this test run.
    ///
    /// # Errors
    /// There is none: the message says how to get one.
    pub fn shared() -> Result<Self> {
        let Some(kubeconfig) = env::var_os(KUBECONFIG_VARIABLE) else {
            bail!(
                "this test needs the real control plane: run it through `make test`, or under `testcluster run -- COMMAND`"
            );
        };
        Self::open(Path::new(&kubeconfig))
    }

    /// The control plane whose kubeconfig `testcluster` wrote to this file.
    ///
    /// # Errors
    /// The file is missing, or no kubeconfig of `testcluster`.
    pub fn open(kubeconfig: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(kubeconfig).with_context(|| format!("could not read {}", kubeconfig.display()))?;
        let config: Value = serde_json::from_str(&text)?;
        let at = |pointer| config.pointer(pointer).and_then(Value::as_str).context("not a kubeconfig of testcluster");
        Ok(Self {
            server: at("/clusters/0/cluster/server")?.to_owned(),
            token: at("/users/0/user/token")?.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            programs: Programs::locate(),
            client: client()?,
        })
    }

    /// A new namespace, its name beginning with `prefix`.
    ///
    /// # Errors
    /// The API server refuses it, or its service account does not come.
    pub async fn namespace(&self, prefix: &str) -> Result<Namespace> {
        Namespace::create(self, json!({ "generateName": format!("{prefix}-") })).await
    }

    /// A new namespace of exactly this name.
    ///
    /// # Errors
    /// As [`Self::namespace`]; it may exist already, too.
    pub async fn namespace_named(&self, name: &str) -> Result<Namespace> {
        Namespace::create(self, json!({ "name": name })).await
    }

    /// The address of the API server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The bearer token of the administrator.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The administrator's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The programs that run it, and run against it.
    #[must_use]
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Reads `path`; none if there is nothing.
    ///
    /// # Errors
    /// Any answer but success and 404.
    pub async fn get(&self, path: &str) -> Result<Option<Value>> {
        let (status, text) = self.send(Method::GET, path, None).await?;
        match status {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => Ok(Some(serde_json::from_str(&text)?)),
            status => bail!("GET {path}: {status}: {text}"),
        }
    }

    /// Reads `path` in the form that `accept` asks for.
    ///
    /// # Errors
    /// Any answer but success.
    pub async fn get_as(&self, path: &str, accept: &str) -> Result<Value> {
        let answer = self.request(Method::GET, path).header("Accept", accept).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        if !status.is_success() {
            bail!("GET {path}: {status}: {text}");
        }
        Ok(serde_json::from_str(&text)?)
    }

    /// Creates an object in the collection `path` and returns what was stored.
    ///
    /// # Errors
    /// Any answer but success.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value> {
        self.write(Method::POST, path, Some(object)).await
    }

    /// Replaces the object at `path` and returns what was stored.
    ///
    /// # Errors
    /// Any answer but success.
    pub async fn replace(&self, path: &str, object: &Value) -> Result<Value> {
        self.write(Method::PUT, path, Some(object)).await
    }

    /// Deletes the object at `path`.
    ///
    /// # Errors
    /// Any answer but success.
    pub async fn delete(&self, path: &str) -> Result<()> {
        self.write(Method::DELETE, path, None).await.map(drop)
    }

    async fn write(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
        let (status, text) = self.send(method.clone(), path, body).await?;
        if !status.is_success() {
            bail!("{method} {path}: {status}: {text}");
        }
        Ok(serde_json::from_str(&text)?)
    }

    /// The answer of the API server as it came, whatever its status.
    ///
    /// # Errors
    /// No answer came.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<(StatusCode, String)> {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.header("Content-Type", "application/json").body(body.to_string());
        }
        let answer = request.send().await?;
        Ok((answer.status(), answer.text().await?))
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.server)).bearer_auth(&self.token)
    }
}

/// A client that trusts the server's own certificate, and follows nothing.
pub(crate) fn client() -> Result<Client> {
    Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .context("could not make an HTTP client")
}

/// A kubeconfig as JSON, which is YAML too.
pub(crate) fn kubeconfig(server: &str, token: &str, namespace: &str) -> Value {
    let mut cluster = json!({ "server": server });
    if server.starts_with("https:") {
        cluster["insecure-skip-tls-verify"] = Value::Bool(true);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "test", "cluster": cluster }],
        "users": [{ "name": "test", "user": { "token": token } }],
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test", "namespace": namespace } }],
        "current-context": "test",
    })
}
