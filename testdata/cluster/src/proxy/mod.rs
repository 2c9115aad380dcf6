//! The fault proxy: plain HTTP in, TLS out, and in between everything that can go wrong.

mod forward;

use std::{fs, ops::Deref, path::PathBuf, process::Stdio};

use anyhow::{Context, Result};
use axum::Router;
use rustix::process::Pid;
use sandbox::faults::{Connection, Door, Faults};
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    sync::watch,
    task::AbortHandle,
};

use crate::{Cluster, Namespace, Ran, cluster, command};

/// A proxy in front of the API server, for one client: it numbers the client's requests, and lets faults happen at them
/// (all that [`Faults`] can do).
///
/// A request without credentials is forwarded as the administrator's, or as those of [`Self::start_as`].
///
/// # Assumptions
/// A client that is killed through it is alone: nothing is forwarded any more until [`Self::spawn`] starts another.
#[derive(Debug)]
pub struct Proxy {
    state: State,
    address: String,
    dir: TempDir,
    server: AbortHandle,
}

/// What every connection shares.
#[derive(Clone, Debug)]
struct State {
    faults: Faults,
    /// The process that a kill is for.
    victim: watch::Sender<Option<Pid>>,
    cluster: Cluster,
    token: String,
    client: reqwest::Client,
}

impl Proxy {
    /// Starts a proxy whose kubeconfig has `namespace` as the default.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn start(namespace: &Namespace) -> Result<Self> {
        Self::start_as(namespace, namespace.cluster().token()).await
    }

    /// As [`Self::start`], but what comes without credentials is forwarded with `token`.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn start_as(namespace: &Namespace, token: &str) -> Result<Self> {
        Self::over(namespace.cluster(), namespace.name(), token).await
    }

    /// Starts a proxy for the administrator, whose kubeconfig has the namespace `default` as the default.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn start_over(cluster: &Cluster) -> Result<Self> {
        Self::over(cluster, "default", cluster.token()).await
    }

    async fn over(cluster: &Cluster, namespace: &str, token: &str) -> Result<Self> {
        let state = State {
            faults: Faults::default(),
            victim: watch::Sender::default(),
            cluster: cluster.clone(),
            token: token.to_owned(),
            client: cluster::client()?,
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = format!("http://{}", listener.local_addr()?);
        let dir = TempDir::new()?;
        let config = cluster::kubeconfig(&address, token, namespace);
        fs::write(dir.path().join("kubeconfig"), config.to_string())?;
        let router = Router::new().fallback(forward::handle).with_state(state.clone());
        let service = router.into_make_service_with_connect_info::<Connection>();
        let server = tokio::spawn(async move { axum::serve(Door(listener), service).await });
        Ok(Self { state, address, dir, server: server.abort_handle() })
    }

    /// Its address, `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A kubeconfig that leads through it.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("kubeconfig")
    }

    /// Starts a command that goes through the proxy, and is the one that a kill is for.
    ///
    /// # Errors
    /// The command could not be started.
    pub fn spawn(&self, command: &mut Command) -> Result<Child> {
        self.state.faults.revive();
        let child = command.env("KUBECONFIG", self.kubeconfig()).kill_on_drop(true).spawn()?;
        self.set_victim(child.id().context("a child without a process")?)?;
        Ok(child)
    }

    /// Runs a command as [`Self::spawn`] does, to its end.
    ///
    /// # Errors
    /// The command could not be started.
    pub async fn run(&self, command: &mut Command) -> Result<Ran> {
        let child = self.spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
        Ok(command::ran(child.wait_with_output().await?))
    }

    /// Names the process that a kill is for, where [`Self::spawn`] did not start it.
    ///
    /// # Errors
    /// The number is none of a process.
    pub fn set_victim(&self, id: u32) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(id)?).context("no process has this number")?;
        self.state.victim.send_replace(Some(pid));
        Ok(())
    }
}

impl Deref for Proxy {
    type Target = Faults;

    fn deref(&self) -> &Faults {
        &self.state.faults
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
        self.state.faults.shut();
    }
}
