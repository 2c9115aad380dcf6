//! Everything that can go wrong between a client and a server: requests are numbered, and faults happen at them.
//!
//! The sandbox has it built in, and the proxy in front of the real API server is made of it.

mod connection;
mod fault;
mod journal;

use std::time::Duration;

use anyhow::Result;
use axum::body::{Body, to_bytes};
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Request as HttpRequest, Response, StatusCode};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::timeout;

pub use connection::{Connection, Door};
pub use fault::{Armed, Fault};
pub use journal::{Counts, Kind, Request};

use fault::{Rule, Trigger};
use journal::Journal;

/// How long a test waits for what must happen.
const LIMIT: Duration = Duration::from_secs(60);

/// The requests of one client, and what is to go wrong with them.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    journal: watch::Sender<Journal>,
}

/// What answers, if nothing goes wrong.
pub trait Upstream: Sync {
    /// Carries a request out.
    fn forward(&self, request: HttpRequest<Body>) -> BoxFuture<'_, Response<Body>>;

    /// Ends the client. No request of its is carried out any more.
    fn kill(&self) -> BoxFuture<'_, ()>;
}

/// How a request ended.
#[derive(Debug)]
pub enum Passed {
    /// With an answer.
    Answer(Response<Body>),
    /// The connection broke.
    Reset,
    /// The client is dead: nobody waits for it.
    Dead,
}

impl Faults {
    /// Lets a fault happen at the `n`-th write, counted from 1 and from the start.
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
        self.journal.send_modify(|journal| {
            journal.rules.push(Rule { trigger, fault, armed: armed.clone() });
        });
        armed
    }

    /// Forgets every fault that has not happened yet.
    pub fn disarm(&self) {
        self.journal.send_modify(|journal| journal.rules.clear());
    }

    /// Lets another client come after one that was killed.
    pub fn revive(&self) {
        self.journal.send_modify(|journal| journal.dead = false);
    }

    /// Whether the client was killed.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.journal.borrow().dead
    }

    /// Carries nothing out any more, and lets go of what is held.
    pub fn shut(&self) {
        self.journal.send_modify(|journal| {
            journal.dead = true;
            journal.rules.drain(..).for_each(|rule| rule.armed.release());
        });
    }

    /// Every request so far, in the order of their coming.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.journal.borrow().requests.clone()
    }

    /// The writes so far.
    #[must_use]
    pub fn writes(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.kind == Kind::Write).collect()
    }

    /// How many requests of each kind came so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::of(&self.journal.borrow().requests)
    }

    /// Waits until there was a request that `wanted` accepts. It is asked when a request comes and when it is answered.
    ///
    /// # Errors
    /// A minute has passed; the message holds the requests that came.
    pub async fn reached(&self, wanted: impl Fn(&Request) -> bool) -> Result<Request> {
        let mut journal = self.journal.subscribe();
        let found = timeout(LIMIT, journal.wait_for(|journal| journal.requests.iter().any(&wanted))).await;
        let found = found.map(|result| result.map(|journal| journal.requests.iter().find(|r| wanted(r)).cloned()));
        if let Ok(Ok(Some(request))) = found {
            return Ok(request);
        }
        let came: Vec<_> = self.requests().iter().map(ToString::to_string).collect();
        anyhow::bail!("waited {} s in vain for a request; these came:\n{}", LIMIT.as_secs(), came.join("\n"))
    }

    /// Lets a request through to `upstream`, or lets happen what is to go wrong with it.
    pub async fn pass(&self, request: HttpRequest<Body>, upstream: &impl Upstream) -> Passed {
        let mut entered = None;
        self.journal.send_modify(|journal| {
            entered = Some((journal.dead, journal.enter(request.method(), request.uri())));
        });
        let Some((false, (place, fault))) = entered else { return Passed::Dead };
        let passed = match fault {
            None => Passed::Answer(upstream.forward(request).await),
            Some((Fault::Hold, armed)) => {
                armed.reach();
                armed.released().await;
                // The client may have been killed while its request was held.
                let is_dead = self.journal.borrow().dead;
                if is_dead { Passed::Dead } else { Passed::Answer(upstream.forward(request).await) }
            }
            Some((fault, armed)) => {
                let passed = self.suffer(fault, request, upstream).await;
                armed.reach();
                passed
            }
        };
        if let Passed::Answer(response) = &passed {
            let status = response.status().as_u16();
            self.journal.send_modify(|journal| journal.requests[place].status = Some(status));
        }
        passed
    }

    async fn suffer(&self, fault: Fault, request: HttpRequest<Body>, upstream: &impl Upstream) -> Passed {
        match fault {
            Fault::Hold | Fault::Reset => Passed::Reset,
            Fault::KillBefore => self.kill(upstream).await,
            Fault::KillAfter => {
                carry_out(request, upstream).await;
                self.kill(upstream).await
            }
            Fault::LoseAnswer => {
                carry_out(request, upstream).await;
                Passed::Reset
            }
            Fault::Status { code, retry_after } => Passed::Answer(refuse(code, retry_after)),
        }
    }

    async fn kill(&self, upstream: &impl Upstream) -> Passed {
        self.journal.send_modify(|journal| journal.dead = true);
        upstream.kill().await;
        Passed::Dead
    }
}

/// Waits for the end of the answer: by then the request is carried out. That it breaks off changes nothing about that.
async fn carry_out(request: HttpRequest<Body>, upstream: &impl Upstream) {
    let response = upstream.forward(request).await;
    let _ = to_bytes(response.into_body(), usize::MAX).await;
}

fn refuse(code: u16, retry_after: Option<Duration>) -> Response<Body> {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = status(code, "a fault that was asked for");
    if let Some(wait) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, wait.as_secs().into());
    }
    response
}

/// A failure in the words of the API server.
#[must_use]
pub fn status(code: StatusCode, message: &str) -> Response<Body> {
    let reason = match code {
        StatusCode::CONFLICT => "Conflict",
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        _ => "InternalError",
    };
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
