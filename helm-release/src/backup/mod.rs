//! What a run is about to change or remove, saved so that it can be undone: the records of a release, and live objects.
//! And the way back: which of it still may and can be restored. Pure: files and requests are the shell's.

mod content;
mod goal;
mod restore;
#[cfg(test)]
mod tests;

pub use content::Next;
#[cfg(feature = "kube")]
pub(crate) use content::{identity, is_strange, next};
pub use restore::{Action, Here, Home, Lost, RestorePlan, RestoreStep, Sameness, decide};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error as ThisError;

use crate::manifest::ObjectId;
use crate::release::{Namespace, ReleaseName};

const API_VERSION: &str = "gwrepair/v1";
const KIND: &str = "Backup";

/// A backup, as it is written to a file. It holds Secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    api_version: String,
    kind: String,
    /// When it was made, by the server's clock.
    pub taken: DateTime<Utc>,
    /// The address of the server, if it is known.
    #[serde(default)]
    pub server: Option<String>,
    /// What was saved, release by release.
    pub releases: Vec<SavedRelease>,
}

/// What was saved of one release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedRelease {
    /// Where its records are.
    pub namespace: Namespace,
    /// The UID of that namespace, if it could be read: the same name on another cluster has another.
    #[serde(default)]
    pub namespace_uid: Option<String>,
    /// Which release.
    pub name: ReleaseName,
    /// The storage driver, in the word that Helm has for it.
    pub driver: String,
    /// The field manager that its objects are written as.
    pub manager: String,
    /// What the run that it was made for set out to do; `None` if it was made by hand.
    #[serde(default)]
    pub run: Option<Run>,
    /// Its records, as they were stored.
    pub records: Vec<Value>,
    /// Live objects, as they were.
    pub objects: Vec<Value>,
    /// Objects that did not exist and that the run would create.
    #[serde(default)]
    pub absent: Vec<Absent>,
    /// Objects that could not be read because their kind is not served.
    #[serde(default)]
    pub left_out: Vec<String>,
}

/// What a run sets out to do to records: how its traces are told from anybody else's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// What it is called, such as `repair (rollback)`.
    pub what: String,
    /// Records whose status and description it changes.
    #[serde(default)]
    pub closes: Vec<Words>,
    /// Records that it creates.
    #[serde(default)]
    pub creates: Vec<Creation>,
    /// Records that it deletes, by key.
    #[serde(default)]
    pub deletes: Vec<String>,
}

/// What a record is going to say of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Words {
    /// Which record.
    pub key: String,
    /// Its status.
    pub status: String,
    /// Its description.
    pub description: String,
}

/// A record that is going to be created, and the time in it by which it is known again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Creation {
    /// Its key.
    pub key: String,
    /// Its `last_deployed`, to the nanosecond.
    pub last_deployed: Option<DateTime<Utc>>,
}

/// An object that did not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Absent {
    /// Its `apiVersion`.
    pub api_version: String,
    /// Which.
    pub object: ObjectId,
}

/// Why a text is no backup that can be used.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// It ends in the middle.
    #[error("it ends in the middle: it was not written to its end, or cut off")]
    Truncated,
    /// It is not JSON.
    #[error("it is not JSON")]
    Json(#[source] serde_json::Error),
    /// It is a document of another kind.
    #[error("it is no backup, but {0}")]
    Kind(String),
    /// It is of a version that is not known here.
    #[error("it is a backup of version {0:?}, and this program knows {API_VERSION:?}")]
    Version(String),
    /// It lacks what a backup has.
    #[error("it is a damaged backup")]
    Damaged(#[source] serde_json::Error),
}

impl Backup {
    /// A backup of `releases`.
    #[must_use]
    pub fn new(taken: DateTime<Utc>, releases: Vec<SavedRelease>) -> Self {
        Self { api_version: API_VERSION.into(), kind: KIND.into(), taken, server: None, releases }
    }

    /// Reads a backup.
    ///
    /// # Errors
    /// The text is no backup, or one of a later version: what that says may not be guessed at.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let document: Value = serde_json::from_str(text).map_err(|why| match why.classify() {
            serde_json::error::Category::Eof => Error::Truncated,
            serde_json::error::Category::Io
            | serde_json::error::Category::Syntax
            | serde_json::error::Category::Data => Error::Json(why),
        })?;
        let word = |member: &str| document[member].as_str().unwrap_or_default().to_owned();
        match (word("apiVersion"), word("kind")) {
            (_, kind) if kind.is_empty() => Err(Error::Kind("a document without a kind".into())),
            (_, kind) if kind != KIND => Err(Error::Kind(format!("a {kind}"))),
            (version, _) if version != API_VERSION => Err(Error::Version(version)),
            _ => serde_json::from_value(document).and_then(Self::sound).map_err(Error::Damaged),
        }
    }

    /// Whether what was saved has the shape of objects.
    fn sound(self) -> Result<Self, serde_json::Error> {
        for release in &self.releases {
            for object in release.records.iter().chain(&release.objects) {
                let texts = ["/apiVersion", "/kind", "/metadata/name"];
                if let Some(missing) = texts.into_iter().find(|at| !object.pointer(at).is_some_and(Value::is_string)) {
                    let what =
                        format!("an object of release {} has no {}", release.name, missing.trim_start_matches('/'));
                    return Err(serde::de::Error::custom(what));
                }
            }
        }
        Ok(self)
    }

    /// The text to be kept: one line of JSON.
    ///
    /// # Errors
    /// None in practice: all of it came from JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}
