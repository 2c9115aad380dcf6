//! One object of a manifest on the server: read, written the way Helm writes it, deleted with proof.

use http::Method;
use serde_json::{Value, json};

use super::error::Error;
use super::mapping::{Resource, encode};
use super::stop::Stop;
use super::wire::{Call, Purpose, Wire};
use crate::manifest::ObjectId;

/// Whether a write is carried out or only tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Carried out.
    Real,
    /// Tried by the server, admission included; nothing is stored.
    DryRun,
}

/// How an object is brought to what a manifest says.
#[derive(Debug, Clone, PartialEq)]
pub enum Merge {
    /// Server-side apply of the whole manifest.
    Apply {
        /// Take fields that another manager owns.
        force: bool,
    },
    /// A strategic merge patch, for built-in kinds.
    Strategic(Value),
    /// A JSON merge patch, for the rest.
    Json(Value),
    /// A JSON patch: operations on single fields.
    Operations(Value),
    /// It does not exist: create it.
    Create,
}

/// Where an object is served.
#[derive(Debug, Clone)]
pub(crate) struct Place<'a> {
    pub(crate) id: &'a ObjectId,
    pub(crate) resource: &'a Resource,
}

impl Place<'_> {
    pub(crate) async fn get(&self, wire: &Wire, stop: &Stop) -> Result<Option<Value>, Error> {
        let call = Call::get(format!("read {}", self.id), self.path());
        wire.find(call, stop).await?.map(|answer| answer.json()).transpose()
    }

    /// Writes `body` as `merge` says, as field manager `manager`, and returns the object as it is then.
    pub(crate) async fn write(
        &self,
        wire: &Wire,
        body: &Value,
        merge: &Merge,
        manager: &str,
        mode: WriteMode,
        stop: &Stop,
    ) -> Result<Value, Error> {
        let manager = encode(manager).replace('&', "%26").replace('+', "%2B");
        let mut query = format!("?fieldManager={manager}");
        if mode == WriteMode::DryRun {
            query.push_str("&dryRun=All");
        }
        let (method, path, content_type, sent, again) = match merge {
            Merge::Create => {
                let path = self.resource.path(self.id.namespace.as_deref(), None);
                (Method::POST, path, "application/json", body, Purpose::Once)
            }
            Merge::Apply { force } => {
                query.push_str(if *force { "&force=true" } else { "&force=false" });
                (Method::PATCH, self.path(), "application/apply-patch+yaml", body, Purpose::Idempotent)
            }
            Merge::Strategic(patch) => {
                (Method::PATCH, self.path(), "application/strategic-merge-patch+json", patch, Purpose::Idempotent)
            }
            Merge::Json(patch) => {
                (Method::PATCH, self.path(), "application/merge-patch+json", patch, Purpose::Idempotent)
            }
            Merge::Operations(patch) => {
                (Method::PATCH, self.path(), "application/json-patch+json", patch, Purpose::Idempotent)
            }
        };
        let (verb, purpose) = match mode {
            WriteMode::Real => ("apply", again),
            WriteMode::DryRun => ("try to apply", Purpose::Read),
        };
        let mut call = Call::new(format!("{verb} {}", self.id), method, path + &query, Some(sent.clone()), purpose);
        call.content_type = content_type;
        wire.send(call, stop).await?.json()
    }

    /// Deletes exactly the object with this UID, its dependents in the background as Helm does.
    ///
    /// Returns whether it was there: one that is gone, or has made place for another, is no failure.
    pub(crate) async fn delete(&self, wire: &Wire, uid: &str, stop: &Stop) -> Result<bool, Error> {
        let body = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "propagationPolicy": "Background", "preconditions": {"uid": uid},
        });
        let call =
            Call::new(format!("delete {}", self.id), Method::DELETE, self.path(), Some(body), Purpose::Idempotent);
        match wire.find(call, stop).await {
            Ok(answer) => Ok(answer.is_some()),
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn path(&self) -> String {
        self.resource.path(self.id.namespace.as_deref(), Some(&self.id.name))
    }
}
