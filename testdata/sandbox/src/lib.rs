//! An in-memory Kubernetes API: for tests under paused time, for faults at every await, and for the demo.
//!
//! A [`Sandbox`] is a service for `kube::Client`, and can listen on loopback. It knows the kinds of the real server and
//! how their fields merge, for both are taken from it (`api/`). What it answers is compared with the real server by
//! `tests/conformance.rs`; where the two differ, `conformance/known.txt` says so and why.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> anyhow::Result<()> {
//! use sandbox::Sandbox;
//!
//! let sandbox = Sandbox::new();
//! let client = sandbox.client("default");
//! let request = http::Request::get("/api/v1/namespaces/default").body(vec![])?;
//! let namespace: serde_json::Value = client.request(request).await?;
//! assert_eq!(namespace["status"]["phase"], "Active");
//! # Ok(())
//! # }
//! ```

mod call;
mod clock;
mod controllers;
mod defaults;
mod delete;
pub mod faults;
mod fields;
mod kinds;
mod life;
mod listen;
mod managed;
mod merge;
mod openapi;
mod protobuf;
mod query;
mod read;
mod refusal;
mod review;
mod rules;
mod schema;
mod serve;
mod state;
mod store;
mod validate;
mod watch;
mod write;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use axum::body::Body;
use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use http::{Request, Response};
use serde_json::Value;
use tower::service_fn;

pub use listen::Listening;
pub use review::Denial;
pub use rules::{POD_LABEL, Rules};

use faults::{Faults, Passed, Upstream};
use state::State;
use store::Key;

/// An in-memory Kubernetes API. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

/// What every request shares.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// The version of the store, for those who wait for it to change.
    changed: tokio::sync::watch::Sender<u64>,
    faults: Faults,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            state: Mutex::new(State::new()),
            changed: tokio::sync::watch::Sender::default(),
            faults: Faults::default(),
        }
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what is due, and wakes the watches.
    pub(crate) fn tick(&self, state: &mut State) {
        state.tick();
        let version = state.store.version();
        self.changed.send_if_modified(|seen| {
            let is_new = *seen != version;
            *seen = version;
            is_new
        });
    }
}

impl Sandbox {
    /// An empty cluster: four namespaces, and every kind that the real server serves.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A client that talks to it without a network, and answers no retry of its own.
    ///
    /// Who was killed through [`Self::faults`] is answered no more: its requests stay pending, and are to be dropped.
    #[must_use]
    pub fn client(&self, namespace: &str) -> kube::Client {
        let shared = self.shared.clone();
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let shared = shared.clone();
            async move {
                match shared.faults.pass(request.map(Body::new), &shared).await {
                    Passed::Answer(response) => Ok(response),
                    Passed::Reset => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
                    Passed::Dead => std::future::pending().await,
                }
            }
        });
        kube::Client::new(service, namespace)
    }

    /// Listens on a loopback port that is free, until the answer is dropped.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn listen(&self) -> io::Result<Listening> {
        Listening::start(self.shared.clone()).await
    }

    /// The requests that came, and what is to go wrong with those to come.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// How workloads come to life from now on.
    pub fn set_rules(&self, rules: Rules) {
        self.shared.lock().rules = rules;
    }

    /// Denies everybody a permission from now on.
    pub fn deny(&self, denial: Denial) {
        self.shared.lock().denials.push(denial);
    }

    /// Forgets what happened so far: watches and pages that began before are answered 410.
    pub fn forget(&self) {
        self.shared.lock().store.forget();
    }

    /// The server's time.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.shared.lock().clock.now()
    }

    /// Stores an object as it is, managed fields, times, UID and status included.
    ///
    /// # Errors
    /// Its kind is not served, or it has no name.
    pub fn plant(&self, object: Value) -> Result<()> {
        let mut state = self.shared.lock();
        let key = place(&state, &object)?;
        if key.group == "apiextensions.k8s.io" {
            state.kinds.define(&object);
        }
        state.store.put(&key, object);
        self.shared.tick(&mut state);
        Ok(())
    }

    /// Every object of a namespace, as it is now; of cluster-scoped ones all.
    #[must_use]
    pub fn objects(&self, namespace: Option<&str>) -> Vec<Value> {
        let mut state = self.shared.lock();
        self.shared.tick(&mut state);
        let of = |key: &Key| key.namespace == namespace.unwrap_or_default();
        state.store.all().filter(|(key, _)| of(key)).map(|(_, object)| Value::clone(object)).collect()
    }
}

impl Upstream for Arc<Shared> {
    fn forward(&self, request: Request<Body>) -> BoxFuture<'_, Response<Body>> {
        Box::pin(serve::answer(self, request))
    }

    /// The caller drops what it runs.
    fn kill(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn place(state: &State, object: &Value) -> Result<Key> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let found = state.kinds.of_kind(&version, &kind).with_context(|| format!("{version} {kind} is not served"))?;
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().with_context(|| format!("a {kind} without a name"))?;
    Ok(Key {
        group: found.group.clone(),
        plural: found.plural.clone(),
        namespace: text(&metadata["namespace"]),
        name: name.into(),
    })
}
