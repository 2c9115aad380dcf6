//! Records as Secrets or ConfigMaps.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::items::Items;
use super::{Detail, Driver, DriverKind, Error, Listing, NewRecord, Query, Record, Told};
use crate::cluster::{Call, Lines, Part, Purpose, Stop, Wire, encode};
use crate::release::{Namespace, Stored};

/// The type of every Secret that holds a record; ConfigMaps have none.
const SECRET_TYPE: &str = "helm.sh/release.v1";
/// What the labels of every record say.
const OWNED: &str = "owner=helm";
/// How often a list is begun before it is given up.
const LISTINGS: usize = 4;
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Helm's Secret and ConfigMap drivers.
#[derive(Clone)]
pub struct Kubernetes {
    wire: Wire,
    kind: DriverKind,
}

#[derive(Deserialize)]
struct List<T> {
    #[serde(default)]
    metadata: ListMetadata,
    /// Null, not empty, in a metadata list without items (observed).
    items: Option<Vec<T>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ListMetadata {
    r#continue: String,
}

#[derive(Deserialize)]
pub(super) struct Item {
    metadata: Metadata,
    #[serde(default)]
    data: Option<Data>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Data {
    release: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    uid: String,
    creation_timestamp: Option<DateTime<Utc>>,
    #[serde(default)]
    managed_fields: Vec<ManagedFields>,
}

#[derive(Deserialize)]
struct ManagedFields {
    time: Option<DateTime<Utc>>,
}

/// In how many parts a list is asked for.
#[derive(Clone, Copy)]
enum Pages<'a> {
    One,
    /// The next after the one that gave the token; the first if it is empty.
    Many {
        token: &'a str,
    },
}

impl Kubernetes {
    /// Records of `kind` behind `wire`.
    #[must_use]
    pub fn new(wire: Wire, kind: DriverKind) -> Self {
        Self { wire, kind }
    }

    pub(super) fn path(&self, namespace: Option<&str>, key: Option<&str>) -> String {
        let scope = namespace.map(|namespace| format!("/namespaces/{}", encode(namespace))).unwrap_or_default();
        let key = key.map(|key| format!("/{}", encode(key))).unwrap_or_default();
        format!("/api/v1{scope}/{}{key}", self.plural())
    }

    fn plural(&self) -> &'static str {
        match self.kind {
            DriverKind::Secrets => "secrets",
            DriverKind::ConfigMaps => "configmaps",
        }
    }

    /// Sends a read and understands its answer.
    pub(super) async fn send<T: DeserializeOwned>(&self, call: Call, stop: &Stop) -> Result<T, Error> {
        Ok(self.wire.send(call, stop).await?.json()?)
    }

    pub(super) async fn open(&self, call: &Call, stop: &Stop) -> Result<Lines, Error> {
        Ok(self.wire.open(call, stop).await?)
    }

    /// Asks for the first page of a list.
    pub(super) fn first_page(&self, query: &Query) -> Call {
        self.list_call(query, Pages::Many { token: "" })
    }

    /// A record of which only the metadata came.
    pub(super) fn named(&self, item: Item) -> Record {
        record(self.kind, item)
    }

    /// A member of a list lacks what the list itself says of it.
    fn whole(&self, mut object: Value) -> Result<Record, serde_json::Error> {
        object["apiVersion"] = json!("v1");
        object["kind"] = json!(match self.kind {
            DriverKind::Secrets => "Secret",
            DriverKind::ConfigMaps => "ConfigMap",
        });
        stored_record(self.kind, object)
    }

    fn data(&self, body: &str) -> Value {
        match self.kind {
            DriverKind::Secrets => json!({"release": STANDARD.encode(body)}),
            DriverKind::ConfigMaps => json!({"release": body}),
        }
    }

    fn object(&self, record: &NewRecord, namespace: &Namespace) -> Value {
        let name = record.key.to_string();
        let mut metadata = json!({"name": name, "namespace": namespace.as_str(), "labels": record.labels});
        if !record.annotations.is_empty() {
            metadata["annotations"] = json!(record.annotations);
        }
        let data = self.data(&record.body);
        match self.kind {
            DriverKind::Secrets => {
                json!({"apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE, "metadata": metadata, "data": data})
            }
            DriverKind::ConfigMaps => {
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
            }
        }
    }

    /// Begins again where the list grew too old between two pages, but not for ever.
    async fn pages(&self, query: &Query, stop: &Stop) -> Result<Listing, Error> {
        for _ in 1..LISTINGS {
            match self.all_pages(query, stop).await {
                Err(Error::Cluster(error)) if error.code() == Some(410) => {}
                ended => return ended,
            }
        }
        self.all_pages(query, stop).await
    }

    async fn all_pages(&self, query: &Query, stop: &Stop) -> Result<Listing, Error> {
        let mut listing = Listing::default();
        let mut token = String::new();
        loop {
            let answer = self.wire.send(self.list_call(query, Pages::Many { token: &token }), stop).await?;
            listing.date = answer.date;
            token = match query.detail {
                Detail::Whole => {
                    let page: List<Value> = answer.json()?;
                    for object in page.items.into_iter().flatten() {
                        listing.records.push(self.whole(object).map_err(malformed)?);
                    }
                    page.metadata.r#continue
                }
                Detail::Metadata | Detail::Payload => {
                    let page: List<Item> = answer.json()?;
                    listing.records.extend(page.items.into_iter().flatten().map(|item| record(self.kind, item)));
                    page.metadata.r#continue
                }
            };
            if token.is_empty() {
                return Ok(listing);
            }
        }
    }

    /// In one answer: pages after the first are no longer in the server's memory, and each takes it a walk through all
    /// that is stored.
    async fn one_by_one(&self, query: &Query, stop: &Stop, take: &mut (dyn FnMut(Told) + Send)) -> Result<(), Error> {
        let mut items = Items::default();
        let call = self.list_call(query, Pages::One);
        let streamed = self.wire.stream(call, stop, |part| {
            match part {
                Part::Begun => {
                    items = Items::default();
                    take(Told::Begun);
                }
                Part::Bytes(bytes) => items.feed(bytes, |item| {
                    let item = serde_json::from_slice(item)?;
                    take(Told::Record(Box::new(record(self.kind, item))));
                    Ok(())
                })?,
                Part::Ended => items.end()?,
            }
            Ok(())
        });
        Ok(streamed.await.map(drop)?)
    }

    fn list_call(&self, query: &Query, pages: Pages<'_>) -> Call {
        let namespace = query.namespace.as_ref().map(Namespace::as_str);
        let (limit, accept) = match query.detail {
            Detail::Metadata => (500, METADATA_ONLY),
            Detail::Payload | Detail::Whole => (100, "application/json"),
        };
        let mut query_words = Vec::new();
        if let Pages::Many { .. } = pages {
            query_words.push(format!("limit={limit}"));
        }
        if !query.selector.is_empty() {
            query_words.push(format!("labelSelector={}", escape(&query.selector)));
        }
        // Helm goes by the labels alone, whatever the type; a name tells too little without it.
        if self.kind == DriverKind::Secrets && !query.selector.split(',').any(|term| term == OWNED) {
            query_words.push("fieldSelector=type%3Dhelm.sh%2Frelease.v1".into());
        }
        if let Pages::Many { token } = pages
            && !token.is_empty()
        {
            query_words.push(format!("continue={}", escape(token)));
        }
        let path = format!("{}?{}", self.path(namespace, None), query_words.join("&"));
        let place = namespace.map_or("all namespaces".into(), |namespace| format!("namespace {namespace}"));
        let mut call = Call::get(format!("list the release records in {place}"), path);
        call.accept = accept;
        call
    }

    async fn read(&self, namespace: &str, key: &str, stop: &Stop) -> Result<Option<Value>, Error> {
        let call = Call::get(format!("read record {key}"), self.path(Some(namespace), Some(key)));
        let answer = self.wire.find(call, stop).await?;
        Ok(answer.map(|answer| answer.json()).transpose()?)
    }

    fn parse(&self, object: Value, key: &str) -> Result<Record, Error> {
        let attempt = format!("read record {key}");
        let malformed = |why| crate::cluster::Error { attempt, cause: crate::cluster::Cause::Malformed(why) };
        Ok(self.whole(object).map_err(malformed)?)
    }

    /// After an answer that tells nothing: is what was to be written there?
    async fn settle(
        &self,
        namespace: &str,
        key: &str,
        wanted: &Value,
        error: crate::cluster::Error,
        stop: &Stop,
    ) -> Result<Record, Error> {
        if !error.is_ambiguous() && !error.is_conflict() {
            return Err(error.into());
        }
        let Ok(Some(found)) = self.read(namespace, key, stop).await else { return Err(error.into()) };
        let (stored, sent) = (&found["metadata"], &wanted["metadata"]);
        if found.get("data") == wanted.get("data") && includes(&stored["labels"], &sent["labels"]) {
            return self.parse(found, key);
        }
        // What is there now is neither what was sent nor what it was to replace: somebody else's.
        let theirs = stored["resourceVersion"] != sent["resourceVersion"];
        if theirs { Err(Error::Conflict { key: key.into() }) } else { Err(error.into()) }
    }

    async fn write(
        &self,
        object: &Value,
        namespace: &str,
        key: &str,
        stop: &Stop,
        create: bool,
    ) -> Result<Record, Error> {
        let (method, path, attempt) = if create {
            (Method::POST, self.path(Some(namespace), None), format!("create record {key}"))
        } else {
            (Method::PUT, self.path(Some(namespace), Some(key)), format!("update record {key}"))
        };
        let call = Call::new(attempt, method, path, Some(object.clone()), Purpose::Once);
        match self.wire.send(call, stop).await {
            Ok(answer) => self.parse(answer.json()?, key),
            // What was read is gone: somebody else was faster.
            Err(error) if !create && error.code() == Some(404) => Err(Error::Conflict { key: key.into() }),
            Err(error) => self.settle(namespace, key, object, error, stop).await,
        }
    }
}

impl Driver for Kubernetes {
    fn list<'a>(&'a self, query: &'a Query, stop: &'a Stop) -> BoxFuture<'a, Result<Listing, Error>> {
        self.pages(query, stop).boxed()
    }

    fn each<'a>(
        &'a self,
        query: &'a Query,
        stop: &'a Stop,
        take: &'a mut (dyn FnMut(Told) + Send),
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.one_by_one(query, stop, take).boxed()
    }

    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Option<Record>, Error>> {
        async move {
            let found = self.read(namespace.as_str(), key, stop).await?;
            found.map(|object| self.parse(object, key)).transpose()
        }
        .boxed()
    }

    fn create<'a>(
        &'a self,
        namespace: &'a Namespace,
        record: &'a NewRecord,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Record, Error>> {
        async move {
            let object = self.object(record, namespace);
            self.write(&object, namespace.as_str(), &record.key.to_string(), stop, true).await
        }
        .boxed()
    }

    fn update<'a>(
        &'a self,
        seen: &'a Record,
        labels: &'a BTreeMap<String, String>,
        body: Option<&'a str>,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Record, Error>> {
        async move {
            let key = seen.stored.key.as_str();
            let conflict = || Error::Conflict { key: key.into() };
            // What is known whole is not read again: the write carries the resourceVersion either way.
            let mut object = match &seen.object {
                Some(object) => object.clone(),
                None => self.read(&seen.namespace, key, stop).await?.ok_or_else(conflict)?,
            };
            if object["metadata"]["resourceVersion"] != seen.stored.resource_version.as_str() {
                return Err(conflict());
            }
            for (label, value) in labels {
                object["metadata"]["labels"][label] = json!(value);
            }
            if let Some(body) = body {
                object["data"] = self.data(body);
            }
            self.write(&object, &seen.namespace, key, stop, false).await
        }
        .boxed()
    }

    fn delete<'a>(&'a self, seen: &'a Record, stop: &'a Stop) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            let key = seen.stored.key.as_str();
            let preconditions = json!({"uid": seen.stored.uid, "resourceVersion": seen.stored.resource_version});
            let body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
            let path = self.path(Some(&seen.namespace), Some(key));
            let call = Call::new(format!("delete record {key}"), Method::DELETE, path, Some(body), Purpose::Idempotent);
            match self.wire.find(call, stop).await {
                Ok(_) => Ok(()),
                Err(error) if error.is_conflict() => Err(Error::Conflict { key: key.into() }),
                Err(error) => Err(error.into()),
            }
        }
        .boxed()
    }
}

/// Reads a stored object, such as one that a backup kept.
///
/// # Errors
/// It has not the shape of one.
pub fn stored_record(kind: DriverKind, object: Value) -> Result<Record, serde_json::Error> {
    let item = Item::deserialize(&object)?;
    Ok(Record { object: Some(object), ..record(kind, item) })
}

/// A Secret's `data` is base64 once more than a ConfigMap's.
fn record(kind: DriverKind, item: Item) -> Record {
    let text = item.data.and_then(|data| data.release);
    let body = text.map(|text| match kind {
        DriverKind::Secrets => STANDARD.decode(&text).unwrap_or_else(|_| text.into_bytes()),
        DriverKind::ConfigMaps => text.into_bytes(),
    });
    let metadata = item.metadata;
    let stored = Stored {
        key: metadata.name,
        labels: metadata.labels.unwrap_or_default(),
        resource_version: metadata.resource_version,
        uid: metadata.uid,
        created: metadata.creation_timestamp,
        touched: metadata.managed_fields.iter().filter_map(|entry| entry.time).max(),
    };
    Record { namespace: metadata.namespace, stored, body, object: None }
}

fn malformed(why: serde_json::Error) -> crate::cluster::Error {
    let cause = crate::cluster::Cause::Malformed(why);
    crate::cluster::Error { attempt: "read a release record".into(), cause }
}

fn includes(all: &Value, some: &Value) -> bool {
    let wanted = some.as_object().into_iter().flatten();
    wanted.into_iter().all(|(key, value)| all.get(key) == Some(value))
}

/// Percent-encodes a query value.
pub(super) fn escape(value: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let one = |b: u8| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    value.bytes().map(one).collect()
}
