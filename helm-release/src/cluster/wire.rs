//! Requests: counted, stoppable, and sent again only where that is safe.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::io::AsyncBufReadExt;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use kube::client::Body;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{Cause, Error, Status};
use super::mapping::Known;
use super::stop::Stop;

/// How long a write that is under way may take to end once it is time to stop.
const GRACE: Duration = Duration::from_secs(2);
const ATTEMPTS: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A connection to one API server that counts what it sends.
#[derive(Clone)]
pub struct Wire {
    client: kube::Client,
    counts: Arc<Counts>,
    known: Option<Known>,
}

#[derive(Default)]
struct Counts {
    read: AtomicU64,
    write: AtomicU64,
    answered: AtomicBool,
}

/// How many requests were sent. Dry runs and reviews change nothing and count as reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Requests {
    /// Requests that change nothing.
    pub read: u64,
    /// Requests that may change stored state.
    pub write: u64,
}

/// What a request is for, and so whether it may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Changes nothing: a read, a dry run, a review.
    Read,
    /// Changes something, to the same end however often it is sent.
    Idempotent,
    /// Changes something once: on an ambiguous answer the caller reads back.
    Once,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) attempt: String,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
    pub(crate) content_type: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) purpose: Purpose,
}

/// An answer that goes on and on, line by line.
pub(crate) type Lines = BoxStream<'static, Result<String, Error>>;

/// A good answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) date: Option<DateTime<Utc>>,
    body: Vec<u8>,
    attempt: String,
}

/// What comes of a good answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part<'a> {
    /// An answer begins. It may be the second one, after the first broke off.
    Begun,
    /// More of its body.
    Bytes(&'a [u8]),
    /// Its body is complete.
    Ended,
}

impl Call {
    pub(crate) fn get(attempt: impl Into<String>, path: impl Into<String>) -> Self {
        Self::new(attempt, Method::GET, path, None, Purpose::Read)
    }

    pub(crate) fn new(
        attempt: impl Into<String>,
        method: Method,
        path: impl Into<String>,
        body: Option<Value>,
        purpose: Purpose,
    ) -> Self {
        let (content_type, accept) = ("application/json", "application/json");
        Self { attempt: attempt.into(), method, path: path.into(), body, content_type, accept, purpose }
    }
}

impl Answer {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let malformed = |why| Error { attempt: self.attempt.clone(), cause: Cause::Malformed(why) };
        serde_json::from_slice(&self.body).map_err(malformed)
    }
}

impl Wire {
    /// Sends through `client`.
    #[must_use]
    pub fn new(client: kube::Client) -> Self {
        Self { client, counts: Arc::default(), known: None }
    }

    /// How many requests were sent so far.
    #[must_use]
    pub fn requests(&self) -> Requests {
        let count = |n: &AtomicU64| n.load(Ordering::Relaxed);
        Requests { read: count(&self.counts.read), write: count(&self.counts.write) }
    }

    /// Counts anew, over the same connections.
    #[must_use]
    pub fn recount(&self) -> Self {
        let counts = Counts { answered: self.counts.answered.load(Ordering::Relaxed).into(), ..Counts::default() };
        Self { counts: Arc::new(counts), ..self.clone() }
    }

    /// Asks only once how kinds are served: for looking at many releases in one go, never for longer.
    #[must_use]
    pub(crate) fn remembering(&self) -> Self {
        Self { known: Some(Known::default()), ..self.clone() }
    }

    pub(super) fn known(&self) -> Option<&Known> {
        self.known.as_ref()
    }

    /// `None` where the answer is 404.
    pub(crate) async fn find(&self, call: Call, stop: &Stop) -> Result<Option<Answer>, Error> {
        match self.send(call, stop).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn send(&self, call: Call, stop: &Stop) -> Result<Answer, Error> {
        let mut body = Vec::new();
        let date = self.stream(call.clone(), stop, |part| {
            match part {
                Part::Begun => body.clear(),
                Part::Bytes(bytes) => body.extend_from_slice(bytes),
                Part::Ended => {}
            }
            Ok(())
        });
        Ok(Answer { date: date.await?, body, attempt: call.attempt })
    }

    /// Hands a good answer on part by part, and returns the server's clock.
    ///
    /// # Errors
    /// As [`Wire::send`]; or `take` failed, for which the request is not sent again.
    pub(crate) async fn stream(
        &self,
        call: Call,
        stop: &Stop,
        mut take: impl FnMut(Part<'_>) -> Result<(), serde_json::Error> + Send,
    ) -> Result<Option<DateTime<Utc>>, Error> {
        let (mut attempt, mut pause) = (1, FIRST_PAUSE);
        loop {
            let (error, after) = match self.once(&call, stop, &mut take).await {
                Ok(date) => return Ok(date),
                Err(failed) => failed,
            };
            if attempt >= ATTEMPTS || !self.may_repeat(call.purpose, &error) {
                return Err(error);
            }
            tracing::debug!(attempt, error = %error.cause, "sending again: {}", call.attempt);
            let wait = after.unwrap_or(pause).min(LONGEST_PAUSE);
            if stop.run(tokio::time::sleep(wait)).await.is_err() {
                return Err(error);
            }
            (attempt, pause) = (attempt + 1, (pause * 2).min(LONGEST_PAUSE));
        }
    }

    /// Opens an answer that is read line by line: once, for who reads it knows where to go on.
    pub(crate) async fn open(&self, call: &Call, stop: &Stop) -> Result<Lines, Error> {
        let attempt = call.attempt.clone();
        let fail = move |cause: Cause| Error { attempt: attempt.clone(), cause };
        let request = build(call).map_err(|why| fail(Cause::Unreachable(why.into())))?;
        tracing::debug!("{} {}", call.method, call.path);
        let mut request = request.map(|_| Vec::new());
        // Each line would be compressed by itself, and only the first be understood.
        request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        self.counts.read.fetch_add(1, Ordering::Relaxed);
        match stop.run(self.client.request_stream(request)).await.map_err(|why| fail(why.into()))? {
            Ok(body) => {
                self.counts.answered.store(true, Ordering::Relaxed);
                Ok(body.lines().map_err(move |why| fail(Cause::Unreachable(why.into()))).boxed())
            }
            Err(kube::Error::Api(status)) => {
                let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                Err(refused(call, code, &serde_json::to_vec(&status).unwrap_or_default()))
            }
            Err(other) => Err(fail(cause_of(other))),
        }
    }

    /// A 429 was not carried out, whatever it was. The rest is sent again only if that does no harm; and a server that
    /// never answered is not waited for.
    fn may_repeat(&self, purpose: Purpose, error: &Error) -> bool {
        let harmless = purpose != Purpose::Once;
        match &error.cause {
            Cause::Refused { code: 429, .. } => true,
            Cause::Refused { code: 500 | 503 | 504, .. } => harmless,
            Cause::Unreachable(_) => harmless && self.counts.answered.load(Ordering::Relaxed),
            Cause::Refused { .. } | Cause::Forbidden { .. } | Cause::Malformed(_) | Cause::Stopped(_) => false,
        }
    }

    async fn once(
        &self,
        call: &Call,
        stop: &Stop,
        take: &mut (impl FnMut(Part<'_>) -> Result<(), serde_json::Error> + Send),
    ) -> Result<Option<DateTime<Utc>>, (Error, Option<Duration>)> {
        let fail = |cause: Cause| (Error { attempt: call.attempt.clone(), cause }, None);
        let request = build(call).map_err(|why| fail(Cause::Unreachable(why.into())))?;
        tracing::debug!("{} {}", call.method, call.path);
        let count = if call.purpose == Purpose::Read { &self.counts.read } else { &self.counts.write };
        count.fetch_add(1, Ordering::Relaxed);
        let exchange = self.exchange(request, take);
        // A read is dropped where it stands; a write that is under way is let end, so that none is left behind.
        let ended = match call.purpose {
            Purpose::Read => stop.run(exchange).await,
            Purpose::Idempotent | Purpose::Once => stop.run_to_end(exchange, GRACE).await,
        };
        let (parts, refusal) = ended.map_err(|why| fail(why.into()))?.map_err(fail)?;
        self.counts.answered.store(true, Ordering::Relaxed);
        if parts.status.is_success() {
            return Ok(date(&parts.headers));
        }
        Err((refused(call, parts.status, &refusal), retry_after(&parts.headers)))
    }

    /// Sends a request and hands on the body of a good answer; returns that of another one.
    async fn exchange(
        &self,
        request: Request<Body>,
        take: &mut (impl FnMut(Part<'_>) -> Result<(), serde_json::Error> + Send),
    ) -> Result<(Parts, Vec<u8>), Cause> {
        let response = self.client.send(request).await.map_err(cause_of)?;
        let (parts, mut body) = response.into_parts();
        if !parts.status.is_success() {
            let refusal = body.collect_bytes().await.map_err(cause_of)?;
            return Ok((parts, refusal.to_vec()));
        }
        take(Part::Begun).map_err(Cause::Malformed)?;
        while let Some(frame) = body.frame().await {
            if let Ok(bytes) = frame.map_err(cause_of)?.into_data() {
                take(Part::Bytes(&bytes)).map_err(Cause::Malformed)?;
            }
        }
        take(Part::Ended).map_err(Cause::Malformed)?;
        Ok((parts, Vec::new()))
    }
}

fn build(call: &Call) -> Result<Request<Body>, http::Error> {
    let body = call.body.as_ref().map(|value| value.to_string().into_bytes()).unwrap_or_default();
    Request::builder()
        .method(call.method.clone())
        .uri(&call.path)
        .header(header::ACCEPT, call.accept)
        .header(header::CONTENT_TYPE, call.content_type)
        .body(Body::from(body))
}

/// kube repeats its sources in its own text; only the innermost says what happened.
fn cause_of(error: kube::Error) -> Cause {
    Cause::Unreachable(Box::new(error))
}

fn refused(call: &Call, status: StatusCode, body: &[u8]) -> Error {
    let status_body: Status = serde_json::from_slice(body).unwrap_or_default();
    let going = status_body.is_terminating();
    let Status { message, reason, .. } = status_body;
    let plain = || String::from_utf8_lossy(body.get(..300).unwrap_or(body)).trim().to_owned();
    let message = if message.is_empty() { plain() } else { message };
    let message = if message.is_empty() { status.to_string() } else { message };
    let cause = if status == StatusCode::FORBIDDEN && !going {
        let (verb, resource, namespace) = permission(call);
        Cause::Forbidden { verb, resource, namespace, message }
    } else {
        Cause::Refused { code: status.as_u16(), reason, message }
    };
    Error { attempt: call.attempt.clone(), cause }
}

/// Reads the permission that a request needs off its path.
fn permission(call: &Call) -> (String, String, String) {
    let (path, query) = call.path.split_once('?').unwrap_or((&call.path, ""));
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let group = match parts.next() {
        Some("apis") => parts.next().unwrap_or_default(),
        _ => "",
    };
    let mut rest: Vec<_> = parts.skip(1).collect();
    let mut namespace = "";
    if rest.len() >= 2 && rest.first() == Some(&"namespaces") {
        namespace = rest.get(1).copied().unwrap_or_default();
        if rest.len() > 2 {
            rest.drain(..2);
        }
    }
    let named = rest.len() >= 2;
    let resource = rest.first().copied().unwrap_or_default();
    let verb = match call.method.as_str() {
        "GET" if named => "get",
        "GET" if query.split('&').any(|term| term == "watch=1") => "watch",
        "GET" => "list",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        _ => "delete",
    };
    let dotted = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    (verb.into(), dotted, namespace.into())
}

fn date(headers: &HeaderMap) -> Option<DateTime<Utc>> {
    let text = headers.get(header::DATE)?.to_str().ok()?;
    DateTime::parse_from_rfc2822(text).ok().map(|date| date.to_utc())
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(method: Method, path: &str) -> (String, String, String) {
        permission(&Call::new("x", method, path, None, Purpose::Read))
    }

    #[test]
    fn the_permission_that_was_missing_is_read_off_the_request() {
        let words = |v: &str, r: &str, n: &str| (v.to_owned(), r.to_owned(), n.to_owned());
        assert_eq!(needs(Method::GET, "/api/v1/namespaces/ns/secrets?limit=5"), words("list", "secrets", "ns"));
        assert_eq!(
            needs(Method::PATCH, "/apis/apps/v1/namespaces/ns/deployments/web"),
            words("patch", "deployments.apps", "ns")
        );
        assert_eq!(needs(Method::GET, "/api/v1/namespaces/ns"), words("get", "namespaces", "ns"));
        assert_eq!(needs(Method::GET, "/api/v1/secrets"), words("list", "secrets", ""));
        assert_eq!(needs(Method::GET, "/api/v1/secrets?watch=1&timeoutSeconds=45"), words("watch", "secrets", ""));
    }
}
