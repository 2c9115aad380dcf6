//! The fault proxy: plain HTTP in, TLS out, and in between everything that can go wrong.

mod connection;
mod fault;
mod forward;
mod journal;

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use anyhow::{Context, Result};
use axum::Router;
use http::Method;
use rustix::process::Pid;
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    sync::watch,
    task::AbortHandle,
    time::timeout,
};

pub use fault::{Armed, Fault};
pub use journal::{Counts, Kind, Request};

use crate::{Cluster, Namespace, Ran, cluster, command};
use connection::{Connection, Door};
use fault::{Rule, Trigger};
use journal::Journal;

const LIMIT: Duration = Duration::from_secs(60);

/// A proxy in front of the API server, for one client: it numbers the client's requests, and lets faults happen at them.
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
    journal: watch::Sender<Journal>,
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
            journal: watch::Sender::default(),
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
        self.state.journal.send_modify(|journal| journal.dead = false);
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

    /// Lets a fault happen at the `n`-th write, counted from 1 and from the start of the proxy.
    pub fn at_write(&self, n: usize, fault: Fault) -> Armed {
        self.arm(Trigger::Write(n), fault)
    }

    /// Lets a fault happen at the `n`-th request of any kind, counted from 1.
    pub fn at_request(&self, n: usize, fault: Fault) -> Armed {
        self.arm(Trigger::Request(n), fault)
    }

    /// Lets a fault happen at the `n`-th request from now on whose method is `method` and whose path contains `path`.
    ///
    /// Dry runs match too: a path with a `?` in it is compared with path and query.
    pub fn at_match(&self, method: Method, path: &str, n: usize, fault: Fault) -> Armed {
        self.arm(Trigger::Match { method, path: path.to_owned(), left: Some(n) }, fault)
    }

    /// Lets a fault happen at every such request from now on.
    pub fn always(&self, method: Method, path: &str, fault: Fault) -> Armed {
        self.arm(Trigger::Match { method, path: path.to_owned(), left: None }, fault)
    }

    fn arm(&self, trigger: Trigger, fault: Fault) -> Armed {
        let armed = Armed::default();
        self.state.journal.send_modify(|journal| {
            journal.rules.push(Rule { trigger, fault, armed: armed.clone() });
        });
        armed
    }

    /// Forgets every fault that has not happened yet.
    pub fn disarm(&self) {
        self.state.journal.send_modify(|journal| journal.rules.clear());
    }

    /// Every request so far, in the order of their coming.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.state.journal.borrow().requests.clone()
    }

    /// The writes so far.
    #[must_use]
    pub fn writes(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.kind == Kind::Write).collect()
    }

    /// How many requests of each kind came so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::of(&self.state.journal.borrow().requests)
    }

    /// Waits until there was a request that `wanted` accepts. It is asked when a request comes and when it is answered.
    ///
    /// # Errors
    /// A minute has passed; the message holds the requests that came.
    pub async fn reached(&self, wanted: impl Fn(&Request) -> bool) -> Result<Request> {
        let mut journal = self.state.journal.subscribe();
        let found = timeout(LIMIT, journal.wait_for(|journal| journal.requests.iter().any(&wanted))).await;
        let found = found.map(|result| result.map(|journal| journal.requests.iter().find(|r| wanted(r)).cloned()));
        if let Ok(Ok(Some(request))) = found {
            return Ok(request);
        }
        let came: Vec<_> = self.requests().iter().map(ToString::to_string).collect();
        anyhow::bail!("waited {} s in vain for a request; these came:\n{}", LIMIT.as_secs(), came.join("\n"))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
        self.state.journal.send_modify(|journal| {
            journal.dead = true;
            journal.rules.drain(..).for_each(|rule| rule.armed.release());
        });
    }
}
