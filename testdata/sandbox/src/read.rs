//! Gets and lists: pages that belong together, selected by labels and fields, whole or metadata only.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::{Call, Form};
use crate::refusal::Refusal;
use crate::state::State;
use crate::store::Key;
use crate::write::converted;

/// Where a list goes on, and as of when.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    rv: u64,
    namespace: String,
    name: String,
}

impl State {
    pub(crate) fn get(&self, call: &Call, name: &str) -> Result<Value, Refusal> {
        Ok(shown(call, self.live(call, name)?))
    }

    pub(crate) fn list(&self, call: &Call) -> Result<Value, Refusal> {
        let (version, mark) = self.as_of(call)?;
        let selected = self.selected(call, version)?;
        let left: Vec<_> = match &mark {
            Some(mark) => {
                let last = (&mark.namespace, &mark.name);
                selected.into_iter().filter(|(key, _)| (&key.namespace, &key.name) > last).collect()
            }
            None => selected.into_iter().collect(),
        };
        let limit = call.query.get("limit").and_then(|text| text.parse().ok()).filter(|limit| *limit > 0);
        let page: Vec<_> = left.iter().take(limit.unwrap_or(usize::MAX)).collect();
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if call.resource.is_custom() && call.form == Form::Whole {
            metadata["continue"] = json!("");
        }
        if let (Some((last, _)), true) = (page.last(), page.len() < left.len()) {
            metadata["continue"] = json!(Mark::after(last, version).token());
            let (labels, fields) = (call.query.get("labelSelector"), call.query.get("fieldSelector"));
            // The server does not count what a selector would have to be asked about.
            if labels.is_none() && fields.is_none() {
                metadata["remainingItemCount"] = json!(left.len() - page.len());
            }
        }
        let items: Vec<_> =
            page.into_iter().map(|(_, object)| listed(call, converted(&call.resource, object))).collect();
        Ok(match call.form {
            Form::Whole => json!({
                "kind": format!("{}List", call.resource.kind), "apiVersion": call.resource.api_version(),
                "metadata": metadata, "items": items,
            }),
            Form::Metadata => json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                // An empty list of these is written as null.
                "items": if items.is_empty() { Value::Null } else { json!(items) },
            }),
        })
    }

    /// The objects of a collection that the selectors accept, as they were at `version`.
    pub(crate) fn selected(&self, call: &Call, version: u64) -> Result<BTreeMap<Key, Arc<Value>>, Refusal> {
        let (labels, fields) = call.selectors()?;
        let mut found = self.store.at(version, |key| call.is_wanted(key));
        found.retain(|key, object| {
            let is_named = call.name.as_ref().is_none_or(|name| *name == key.name);
            is_named && labels.accepts_labels(object) && fields.accepts_fields(object)
        });
        Ok(found)
    }

    /// As of which version a list is to be, and where it goes on.
    fn as_of(&self, call: &Call) -> Result<(u64, Option<Mark>), Refusal> {
        if let Some(token) = call.query.get("continue") {
            let bad = || Refusal::bad_request("continue key is not valid: it was not made by this server");
            let mark = Mark::read(token).ok_or_else(bad)?;
            if mark.rv < self.store.oldest() {
                let now = Mark { rv: self.store.version(), ..mark };
                return Err(Refusal::continue_expired(&now.token()));
            }
            return Ok((mark.rv, Some(mark)));
        }
        let exact = call.query.get("resourceVersionMatch") == Some("Exact");
        match call.query.get("resourceVersion").and_then(|text| text.parse().ok()) {
            Some(version) if exact && version < self.store.oldest() => {
                Err(Refusal::version_gone(version, self.store.oldest()))
            }
            Some(version) if exact => Ok((version, None)),
            Some(_) | None => Ok((self.store.version(), None)),
        }
    }
}

impl Mark {
    fn after(key: &Key, rv: u64) -> Self {
        Self { rv, namespace: key.namespace.clone(), name: key.name.clone() }
    }

    fn token(&self) -> String {
        URL_SAFE_NO_PAD.encode(json!(self).to_string())
    }

    fn read(token: &str) -> Option<Self> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).ok()?).ok()
    }
}

/// An object in the form that is wanted.
pub(crate) fn shown(call: &Call, object: Value) -> Value {
    match call.form {
        Form::Whole => object,
        Form::Metadata => json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
        }),
    }
}

/// An element of a list: built-in kinds go without the words that the list says for all.
fn listed(call: &Call, object: Value) -> Value {
    let mut object = shown(call, object);
    if call.form == Form::Whole
        && !call.resource.is_custom()
        && let Some(members) = object.as_object_mut()
    {
        members.remove("apiVersion");
        members.remove("kind");
    }
    object
}
