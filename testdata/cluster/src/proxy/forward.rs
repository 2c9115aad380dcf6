//! One request on its way.

use anyhow::{Context, Result, anyhow};
use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{ConnectInfo, Request, State as Shared},
    response::Response,
};
use futures::future::BoxFuture;
use http::{
    HeaderMap, HeaderName, StatusCode,
    header::{AUTHORIZATION, CONNECTION, HOST, TRANSFER_ENCODING, UPGRADE},
};
use rustix::process::{Signal, kill_process};
use sandbox::faults::{Connection, Passed, Upstream, status};

use super::State;

/// Headers that belong to a connection, not to a request.
const OWN: [HeaderName; 4] = [CONNECTION, HOST, TRANSFER_ENCODING, UPGRADE];

const BODY_LIMIT: usize = 64 << 20;

pub(super) async fn handle(
    Shared(state): Shared<State>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    request: Request,
) -> Response {
    match state.faults.pass(request, &state).await {
        Passed::Answer(response) => response,
        Passed::Reset | Passed::Dead => {
            // The response is never seen: the connection ends when it is written.
            connection.reset();
            Response::new(Body::empty())
        }
    }
}

impl Upstream for State {
    fn forward(&self, request: Request) -> BoxFuture<'_, Response> {
        Box::pin(async move {
            let failed = |error: anyhow::Error| status(StatusCode::BAD_GATEWAY, &format!("{error:#}"));
            self.send(request).await.unwrap_or_else(failed)
        })
    }

    /// Kills the client, once it is known which process it is.
    fn kill(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut victim = self.victim.subscribe();
            let known = victim.wait_for(Option::is_some).await.ok().and_then(|pid| *pid);
            if let Some(pid) = known {
                // It may have ended by itself: it is dead all the same.
                let _ = kill_process(pid, Signal::KILL);
            }
        })
    }
}

impl State {
    async fn send(&self, request: Request) -> Result<Response> {
        let (parts, body) = request.into_parts();
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        let body: Bytes = to_bytes(body, BODY_LIMIT).await.map_err(|error| anyhow!(error))?;
        let mut headers = without_own(parts.headers);
        if !headers.contains_key(AUTHORIZATION) {
            headers.insert(AUTHORIZATION, format!("Bearer {}", self.token).parse()?);
        }
        let url = format!("{}{target}", self.cluster.server());
        let answer = self.client.request(parts.method, url).headers(headers).body(body).send().await;
        let answer = answer.context("no answer from the API server")?;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = answer.status();
        *response.headers_mut() = without_own(answer.headers().clone());
        *response.body_mut() = Body::from_stream(answer.bytes_stream());
        Ok(response)
    }
}

fn without_own(mut headers: HeaderMap) -> HeaderMap {
    for name in OWN {
        headers.remove(name);
    }
    headers
}
