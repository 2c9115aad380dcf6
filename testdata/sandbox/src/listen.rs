//! A sandbox on a loopback port.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::Shared;
use crate::faults::{Connection, Door, Passed};

/// A port that is served until this is dropped.
#[derive(Debug)]
pub struct Listening {
    address: SocketAddr,
    server: AbortHandle,
}

impl Listening {
    pub(crate) async fn start(shared: Arc<Shared>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let router = Router::new().fallback(handle).with_state(shared);
        let service = router.into_make_service_with_connect_info::<Connection>();
        let server = tokio::spawn(async move { axum::serve(Door(listener), service).await });
        Ok(Self { address, server: server.abort_handle() })
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A kubeconfig for it, as JSON, which is YAML too.
    #[must_use]
    pub fn kubeconfig(&self, namespace: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "sandbox",
            "clusters": [{"name": "sandbox", "cluster": {"server": self.url()}}],
            "users": [{"name": "sandbox", "user": {"token": "sandbox"}}],
            "contexts": [{
                "name": "sandbox", "context": {"cluster": "sandbox", "user": "sandbox", "namespace": namespace},
            }],
        })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    request: Request,
) -> Response {
    match shared.faults.pass(request, &shared).await {
        Passed::Answer(response) => response,
        Passed::Reset | Passed::Dead => {
            // The response is never seen: the connection ends when it is written.
            connection.reset();
            Response::new(Body::empty())
        }
    }
}
