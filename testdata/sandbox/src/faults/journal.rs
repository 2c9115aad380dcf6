//! What the client asked for.

use std::fmt;

use http::{Method, Uri};

use super::fault::Rule;
use super::{Armed, Fault};

/// What a request does to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It changes nothing.
    Read,
    /// It changes an object, or would.
    Write,
    /// It only tries a change.
    DryRun,
    /// It asks who somebody is or what somebody may do, or for a token. It has the form of a write and stores nothing.
    Review,
    /// It reads or holds a lease.
    Lease,
}

impl Kind {
    fn of(method: &Method, uri: &Uri) -> Self {
        let path = uri.path();
        let asks = |group: &str| path.starts_with(&format!("/apis/{group}.k8s.io/"));
        let token = path.contains("/serviceaccounts/") && path.ends_with("/token");
        if asks("coordination") {
            Self::Lease
        } else if [Method::GET, Method::HEAD, Method::OPTIONS].contains(method) {
            Self::Read
        } else if asks("authorization") || asks("authentication") || token {
            Self::Review
        } else if uri.query().is_some_and(|query| query.split('&').any(|pair| pair.starts_with("dryRun="))) {
            Self::DryRun
        } else {
            Self::Write
        }
    }
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its number among all, from 1.
    pub number: usize,
    /// Its number among the writes, from 1.
    pub write: Option<usize>,
    /// What it does.
    pub kind: Kind,
    /// The method.
    pub method: Method,
    /// The path.
    pub path: String,
    /// The query, empty if there is none.
    pub query: String,
    /// The status that the client was answered; none before, or if it was not.
    pub status: Option<u16>,
}

impl Request {
    /// Path and query.
    #[must_use]
    pub fn target(&self) -> String {
        match self.query.as_str() {
            "" => self.path.clone(),
            query => format!("{}?{query}", self.path),
        }
    }

    /// The method and what it is for, without the namespace: `PUT secrets/sh.helm.release.v1.web.v2`.
    #[must_use]
    pub fn brief(&self) -> String {
        let mut parts: Vec<_> = self.path.trim_start_matches('/').split('/').collect();
        parts.drain(..if parts[0] == "api" { 2 } else { 3 }.min(parts.len()));
        if parts.first() == Some(&"namespaces") && parts.len() > 2 {
            parts.drain(..2);
        }
        format!("{} {}", self.method, parts.join("/"))
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        write!(f, "{} {:?} {} {} {status}", self.number, self.kind, self.method, self.target())
    }
}

/// How many requests of each kind came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads.
    pub get: usize,
    /// Writes by POST.
    pub post: usize,
    /// Writes by PUT.
    pub put: usize,
    /// Writes by PATCH.
    pub patch: usize,
    /// Writes by DELETE.
    pub delete: usize,
    /// See [`Kind::DryRun`].
    pub dry_run: usize,
    /// See [`Kind::Review`].
    pub review: usize,
    /// See [`Kind::Lease`].
    pub lease: usize,
}

impl Counts {
    pub(super) fn of(requests: &[Request]) -> Self {
        let mut counts = Self::default();
        for request in requests {
            *counts.of_kind(request) += 1;
        }
        counts
    }

    /// All writes.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.post + self.put + self.patch + self.delete
    }

    fn of_kind(&mut self, request: &Request) -> &mut usize {
        match request.kind {
            Kind::Read => &mut self.get,
            Kind::DryRun => &mut self.dry_run,
            Kind::Review => &mut self.review,
            Kind::Lease => &mut self.lease,
            Kind::Write => match request.method {
                Method::PUT => &mut self.put,
                Method::PATCH => &mut self.patch,
                Method::DELETE => &mut self.delete,
                _ => &mut self.post,
            },
        }
    }
}

/// The requests so far and the faults to come, under one lock: a number and its fault belong together.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pub(super) requests: Vec<Request>,
    pub(super) rules: Vec<Rule>,
    /// The client was killed: what still comes is not its wish any more.
    pub(super) dead: bool,
}

impl Journal {
    /// Numbers a request; returns its place, and the fault that is for it.
    pub(super) fn enter(&mut self, method: &Method, uri: &Uri) -> (usize, Option<(Fault, Armed)>) {
        let kind = Kind::of(method, uri);
        let writes = self.requests.iter().filter(|request| request.kind == Kind::Write).count();
        let request = Request {
            number: self.requests.len() + 1,
            write: (kind == Kind::Write).then_some(writes + 1),
            kind,
            method: method.clone(),
            path: uri.path().to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
            status: None,
        };
        let fault = if self.dead { None } else { self.fault(&request) };
        self.requests.push(request);
        (self.requests.len() - 1, fault)
    }

    /// Every rule sees every request, since some count; the first that fires has it.
    fn fault(&mut self, request: &Request) -> Option<(Fault, Armed)> {
        let fired: Vec<_> = self.rules.iter_mut().map(|rule| rule.trigger.fires(request)).collect();
        let index = fired.iter().position(|fired| *fired)?;
        let found = (self.rules[index].fault, self.rules[index].armed.clone());
        let mut fired = fired.into_iter();
        self.rules.retain(|rule| !fired.next().unwrap_or_default() || rule.trigger.stays());
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(method: Method, uri: &'static str) -> Kind {
        Kind::of(&method, &Uri::from_static(uri))
    }

    #[test]
    fn only_what_changes_the_cluster_is_a_write() {
        assert_eq!(kind(Method::GET, "/api/v1/namespaces/a/secrets?watch=true"), Kind::Read);
        assert_eq!(kind(Method::DELETE, "/api/v1/namespaces/a/secrets/b"), Kind::Write);
        assert_eq!(kind(Method::PATCH, "/api/v1/namespaces/a/secrets/b?force=true&dryRun=All"), Kind::DryRun);
        assert_eq!(kind(Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"), Kind::Review);
        assert_eq!(kind(Method::POST, "/api/v1/namespaces/a/serviceaccounts/b/token"), Kind::Review);
        assert_eq!(kind(Method::PUT, "/apis/coordination.k8s.io/v1/namespaces/a/leases/b"), Kind::Lease);
        assert_eq!(kind(Method::GET, "/apis/coordination.k8s.io/v1/namespaces/a/leases/b"), Kind::Lease);
    }

    #[test]
    fn a_brief_leaves_out_the_group_and_the_namespace() {
        let mut journal = Journal::default();
        for path in ["/api/v1/namespaces/a/secrets/b", "/apis/apps/v1/namespaces/a/deployments", "/api/v1/namespaces/a"]
        {
            journal.enter(&Method::PUT, &Uri::from_static(path));
        }
        let briefs: Vec<_> = journal.requests.iter().map(Request::brief).collect();
        assert_eq!(briefs, ["PUT secrets/b", "PUT deployments", "PUT namespaces/a"]);
    }

    #[test]
    fn a_write_is_numbered_among_the_writes() {
        let mut journal = Journal::default();
        let uri = Uri::from_static("/api/v1/namespaces/a/secrets");
        for method in [Method::GET, Method::POST, Method::GET, Method::POST] {
            journal.enter(&method, &uri);
        }
        let writes: Vec<_> = journal.requests.iter().map(|request| request.write).collect();
        assert_eq!(writes, [None, Some(1), None, Some(2)]);
        assert_eq!(Counts::of(&journal.requests), Counts { get: 2, post: 2, ..Counts::default() });
    }
}
