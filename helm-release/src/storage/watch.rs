//! Follows records as they change: names and labels, never payloads.

use futures::stream::{BoxStream, StreamExt};
use serde::Deserialize;
use serde_json::Value;

use super::kubernetes::{Item, Kubernetes, escape};
use super::{Detail, Error, Query, Record};
use crate::cluster::{self, Call, Cause, Stop};

/// How long the server keeps a quiet watch open, in seconds: less than the minute after which clients give up a read.
const QUIET: u32 = 45;
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// What a watch tells.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Where a later watch goes on.
    pub(crate) version: String,
    /// The record that was written or deleted; `None` for a mere sign of life.
    pub(crate) record: Option<Record>,
}

/// A watch that is open. It ends when the server closes it; go on from the last version then.
pub(crate) type Watch = BoxStream<'static, Result<Seen, cluster::Error>>;

#[derive(Deserialize)]
struct Event {
    r#type: String,
    object: Value,
}

impl Kubernetes {
    /// The version from which a watch misses nothing that happens from here on.
    pub(crate) async fn version(&self, query: &Query, stop: &Stop) -> Result<String, Error> {
        #[derive(Deserialize)]
        struct List {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            resource_version: String,
        }
        let list: List = self.send(self.first_page(&Query { detail: Detail::Metadata, ..query.clone() }), stop).await?;
        Ok(list.metadata.resource_version)
    }

    /// Opens a watch on the records of `query` from `version` on.
    ///
    /// # Errors
    /// 410 where the version is too old: list again.
    pub(crate) async fn watch(&self, query: &Query, version: &str, stop: &Stop) -> Result<Watch, Error> {
        let namespace = query.namespace.as_ref().map(crate::release::Namespace::as_str);
        let selector = escape(&query.selector);
        let path = format!(
            "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds={QUIET}&labelSelector={selector}&resourceVersion={}",
            self.path(namespace, None),
            escape(version)
        );
        let attempt = "watch the release records";
        let mut call = Call::get(attempt, path);
        call.accept = METADATA_ONLY;
        let driver = self.clone();
        let lines = self.open(&call, stop).await?;
        Ok(lines.map(move |line| driver.seen(&line?, attempt)).boxed())
    }

    fn seen(&self, line: &str, attempt: &str) -> Result<Seen, cluster::Error> {
        let fail = |cause| cluster::Error { attempt: attempt.into(), cause };
        let event: Event = serde_json::from_str(line).map_err(|why| fail(Cause::Malformed(why)))?;
        let text = |key: &str| event.object[key].as_str().unwrap_or_default().to_owned();
        let version = event.object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        match event.r#type.as_str() {
            "ADDED" | "MODIFIED" | "DELETED" => {
                let item: Item = serde_json::from_value(event.object).map_err(|why| fail(Cause::Malformed(why)))?;
                Ok(Seen { version, record: Some(self.named(item)) })
            }
            "ERROR" => {
                let code = event.object["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
                Err(fail(Cause::Refused { code, reason: text("reason"), message: text("message") }))
            }
            _ => Ok(Seen { version, record: None }),
        }
    }
}
