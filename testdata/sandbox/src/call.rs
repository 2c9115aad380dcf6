//! A request for objects, as its URL and headers say.

use std::sync::Arc;

use axum::body::Bytes;
use http::{HeaderMap, Method, header};

use crate::kinds::{Kinds, Resource};
use crate::query::{Query, Selector};
use crate::refusal::Refusal;
use crate::store::Key;

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    pub(crate) query: Query,
    pub(crate) content_type: String,
    pub(crate) agent: String,
    pub(crate) form: Form,
    pub(crate) body: Bytes,
}

/// In what form objects are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Metadata,
}

/// What a path names.
#[derive(Debug)]
pub(crate) struct Place {
    group: String,
    version: String,
    rest: Vec<String>,
}

/// What is served at a place: the resource, the namespace, and what follows.
type Found = (Arc<Resource>, Option<String>, Vec<String>);

impl Place {
    /// `/api/v1/…` or `/apis/GROUP/VERSION/…`; none for any other path.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let group = match parts.next()? {
            "api" => String::new(),
            "apis" => parts.next()?.to_owned(),
            _ => return None,
        };
        let version = parts.next()?.to_owned();
        let rest: Vec<String> = parts.map(percent).collect();
        (!rest.is_empty()).then_some(Self { group, version, rest })
    }

    /// # Errors
    /// Nothing is served there.
    fn find(self, kinds: &Kinds) -> Result<Found, Refusal> {
        let Self { group, version, mut rest } = self;
        let mut namespace = None;
        if rest.len() > 2 && rest[0] == "namespaces" {
            let is_own = ["status", "finalize"].contains(&rest[2].as_str());
            if !is_own {
                namespace = Some(rest.remove(1));
                rest.remove(0);
            }
        }
        let found = kinds.find(&group, &version, &rest[0]).ok_or_else(Refusal::no_such_resource)?;
        if namespace.is_some() && !found.namespaced {
            return Err(Refusal::no_such_resource());
        }
        rest.remove(0);
        Ok((found, namespace, rest))
    }
}

fn unknown_field(name: &str, known: &[&str]) -> String {
    let known: Vec<_> = known.iter().map(|name| format!("{name:?}")).collect();
    format!("{name:?} is not a known field selector: only {}", known.join(", "))
}

fn percent(part: &str) -> String {
    // A plus in a path is a plus.
    let query = Query::parse(&format!("x={}", part.replace('+', "%2B")));
    query.get("x").unwrap_or_default().to_owned()
}

impl Call {
    /// # Errors
    /// Nothing is served there, or not with this method.
    pub(crate) fn new(
        kinds: &Kinds,
        method: Method,
        place: Place,
        query: &str,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Self, Refusal> {
        let (resource, namespace, rest) = place.find(kinds)?;
        let mut rest = rest.into_iter();
        let (name, subresource) = (rest.next(), rest.next());
        if subresource.as_ref().is_some_and(|name| !resource.subresources.contains(name)) || rest.next().is_some() {
            return Err(Refusal::no_such_resource());
        }
        let text =
            |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok()).unwrap_or_default();
        let accept = text(header::ACCEPT);
        let form = if accept.contains("as=PartialObjectMetadata") { Form::Metadata } else { Form::Whole };
        let content_type = text(header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim().to_owned();
        let agent = text(header::USER_AGENT).split('/').next().unwrap_or_default().to_owned();
        let query = Query::parse(query);
        let call = Self { method, resource, namespace, name, subresource, query, content_type, agent, form, body };
        if call.resource.allows(call.verb()) { Ok(call) } else { Err(Refusal::method_not_allowed()) }
    }

    /// The verb, as a Role names it.
    pub(crate) fn verb(&self) -> &'static str {
        match (self.method.as_str(), &self.name) {
            ("GET", _) if self.is_watch() => "watch",
            ("GET" | "HEAD", Some(_)) => "get",
            ("GET" | "HEAD", None) => "list",
            ("POST", None) => "create",
            ("PUT", Some(_)) => "update",
            ("PATCH", Some(_)) => "patch",
            ("DELETE", Some(_)) => "delete",
            ("DELETE", None) => "deletecollection",
            _ => "",
        }
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.query.is_true("watch") && self.name.is_none()
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.query.get("dryRun").is_some()
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        Key {
            group: self.resource.group.clone(),
            plural: self.resource.plural.clone(),
            namespace: self.namespace.clone().unwrap_or_default(),
            name: name.to_owned(),
        }
    }

    pub(crate) fn is_wanted(&self, key: &Key) -> bool {
        key.is_of(&self.resource.group, &self.resource.plural, self.namespace.as_deref())
    }

    /// Which of a collection are wanted: by labels, by fields, and the one that a path names.
    ///
    /// # Errors
    /// A selector cannot be read.
    pub(crate) fn selectors(&self) -> Result<(Selector, Selector), Refusal> {
        let parse = |name| Selector::parse(self.query.get(name).unwrap_or_default()).map_err(Refusal::bad_request);
        let (labels, fields) = (parse("labelSelector")?, parse("fieldSelector")?);
        let known = self.resource.selectable();
        if let Some(name) = fields.names().find(|name| !known.contains(name)) {
            return Err(Refusal::bad_request(unknown_field(name, &known)));
        }
        Ok((labels, fields))
    }

    /// Who writes: as the request says, else the program that sent it.
    pub(crate) fn manager(&self) -> String {
        let agent = if self.agent.is_empty() { "unknown" } else { &self.agent };
        self.query.get("fieldManager").unwrap_or(agent).to_owned()
    }
}
