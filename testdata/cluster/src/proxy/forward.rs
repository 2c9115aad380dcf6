//! One request on its way.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{ConnectInfo, Request, State as Shared},
    response::Response,
};
use http::{
    HeaderMap, HeaderName, StatusCode,
    header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, RETRY_AFTER, TRANSFER_ENCODING, UPGRADE},
};
use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::{Connection, Fault, State};

/// Headers that belong to a connection, not to a request.
const OWN: [HeaderName; 4] = [CONNECTION, HOST, TRANSFER_ENCODING, UPGRADE];

const BODY_LIMIT: usize = 64 << 20;

pub(super) async fn handle(
    Shared(state): Shared<State>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    request: Request,
) -> Response {
    let mut entered = None;
    state.journal.send_modify(|journal| {
        entered = Some((journal.dead, journal.enter(request.method(), request.uri())));
    });
    let Some((false, (place, fault))) = entered else {
        return reset(&connection);
    };
    let outcome = match fault {
        None => state.forward(request).await.map(Some),
        Some((Fault::Hold, armed)) => {
            armed.reach();
            armed.released().await;
            state.forward_unless_dead(request).await
        }
        Some((fault, armed)) => {
            let outcome = state.suffer(fault, request).await;
            armed.reach();
            outcome
        }
    };
    match outcome {
        Ok(Some(response)) => state.answered(place, response),
        Ok(None) => reset(&connection),
        Err(error) => state.answered(place, status(StatusCode::BAD_GATEWAY, &format!("{error:#}"))),
    }
}

/// The response is never seen: the connection ends when it is written.
fn reset(connection: &Connection) -> Response {
    connection.reset();
    Response::new(Body::empty())
}

impl State {
    fn answered(&self, place: usize, response: Response) -> Response {
        self.journal.send_modify(|journal| {
            journal.requests[place].status = Some(response.status().as_u16());
        });
        response
    }

    /// Lets the fault happen; no response means a reset.
    async fn suffer(&self, fault: Fault, request: Request) -> Result<Option<Response>> {
        match fault {
            Fault::Hold | Fault::Reset => {}
            Fault::KillBefore => self.kill().await?,
            Fault::KillAfter => {
                self.carry_out(request).await?;
                self.kill().await?;
            }
            Fault::LoseAnswer => self.carry_out(request).await?,
            Fault::Status { code, retry_after } => return refuse(code, retry_after).map(Some),
        }
        Ok(None)
    }

    /// Kills the client, once it is known which process it is.
    async fn kill(&self) -> Result<()> {
        let mut victim = self.victim.subscribe();
        let pid = victim.wait_for(Option::is_some).await?.context("no process")?;
        self.journal.send_modify(|journal| journal.dead = true);
        kill_process(pid, Signal::KILL).context("could not kill the client")
    }

    /// Forwards a request and waits for the end of its answer.
    async fn carry_out(&self, request: Request) -> Result<()> {
        let response = self.forward(request).await?;
        to_bytes(response.into_body(), usize::MAX).await.map(drop).context("the answer broke off")
    }

    /// A client may have been killed while its request was held.
    async fn forward_unless_dead(&self, request: Request) -> Result<Option<Response>> {
        let dead = self.journal.borrow().dead;
        if dead { Ok(None) } else { self.forward(request).await.map(Some) }
    }

    async fn forward(&self, request: Request) -> Result<Response> {
        let (parts, body) = request.into_parts();
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        let body: Bytes = to_bytes(body, BODY_LIMIT).await.map_err(|error| anyhow!(error))?;
        let mut headers = without_own(parts.headers);
        if !headers.contains_key(AUTHORIZATION) {
            headers.insert(AUTHORIZATION, format!("Bearer {}", self.token).parse()?);
        }
        let url = format!("{}{target}", self.cluster.server());
        let answer = self.client.request(parts.method, url).headers(headers).body(body).send().await?;
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

fn refuse(code: u16, retry_after: Option<Duration>) -> Result<Response> {
    let mut response = status(StatusCode::from_u16(code)?, "the fault proxy says no");
    if let Some(wait) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, wait.as_secs().into());
    }
    Ok(response)
}

/// A failure in the words of the API server.
fn status(code: StatusCode, message: &str) -> Response {
    let reason = match code {
        StatusCode::CONFLICT => "Conflict",
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        _ => "InternalError",
    };
    let body = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code.as_u16(),
    });
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
