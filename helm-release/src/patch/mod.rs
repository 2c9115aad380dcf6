//! Patches as Helm's client-side path makes them: three-way strategic merge for built-in kinds, JSON merge for all others.
//!
//! Helm compares the manifest of the baseline release (`original`), the manifest to bring about (`modified`) and the live
//! object (`current`). Fields that only the live object has are left alone; fields that left the manifest are removed.
//!
//! ```
//! use helm_release::patch::{Patch, Unstructured, three_way};
//! use serde_json::json;
//!
//! let original = json!({"data": {"a": "1", "b": "2"}});
//! let modified = json!({"data": {"a": "1"}});
//! let current = json!({"data": {"a": "changed by hand", "b": "2", "c": "added by hand"}});
//!
//! let patch = three_way("v1", "ConfigMap", &original, &modified, &current, Unstructured::TwoWay)?;
//! assert_eq!(patch.body(), &json!({"data": {"a": "1", "b": null}}));
//! assert_eq!(patch.apply(&current)?, json!({"data": {"a": "1", "c": "added by hand"}}));
//! # Ok::<(), helm_release::patch::Error>(())
//! ```

mod diff;
mod difference;
mod error;
mod json;
mod list;
mod merge;
mod schema;
#[cfg(test)]
mod tests;
mod text;

pub use difference::{FieldDifference, differences};
pub use error::Error;
pub use json::{apply_json, three_way_json, two_way_json};
pub use schema::Schema;

use diff::{Half, difference};
use list::Fields;
use merge::{Onto, merge};
use serde_json::Value;
use std::borrow::Cow;

/// A patch, and how the API server is to read it.
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// A strategic merge patch (`application/strategic-merge-patch+json`) of a built-in kind.
    Strategic {
        /// The document to send.
        body: Value,
        /// The kind it is for.
        schema: Schema,
    },
    /// A JSON merge patch (`application/merge-patch+json`).
    Merge {
        /// The document to send.
        body: Value,
    },
}

impl Patch {
    /// The document to send.
    pub fn body(&self) -> &Value {
        match self {
            Self::Strategic { body, .. } | Self::Merge { body } => body,
        }
    }

    /// Whether there is nothing to send: Helm then only reads the object again.
    pub fn is_empty(&self) -> bool {
        self.body().as_object().is_some_and(Fields::is_empty)
    }

    /// The content type of the request that carries it.
    pub fn content_type(&self) -> &'static str {
        match self {
            Self::Strategic { .. } => "application/strategic-merge-patch+json",
            Self::Merge { .. } => "application/merge-patch+json",
        }
    }

    /// The object after the patch, before defaulting and admission.
    ///
    /// # Errors
    /// See [`apply_strategic`]; a JSON merge patch always applies.
    pub fn apply(&self, current: &Value) -> Result<Value, Error> {
        match self {
            Self::Strategic { body, schema } => apply_strategic(body, current, *schema),
            Self::Merge { body } => Ok(apply_json(body, current)),
        }
    }
}

/// What the patch of a custom resource takes into account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unstructured {
    /// Both manifests, but not the live object: what Helm does on upgrade and rollback.
    TwoWay,
    /// The live object too, so that drift is undone: what Helm does on install with `--take-ownership`.
    ThreeWay,
}

/// The patch Helm would send for an object of this kind.
///
/// Mirrors `createPatch` in Helm's `pkg/kube/client.go`: strategic merge for every kind of the client-side scheme except
/// `apiextensions.k8s.io/v1beta1` CustomResourceDefinition, JSON merge for that one and for all others.
///
/// # Caveats
/// Helm also falls back to JSON merge for a built-in kind whose manifest does not fit its type (a number where a text
/// belongs); the API server refuses either patch.
///
/// # Errors
/// Those of [`three_way_strategic`], and for [`Unstructured::ThreeWay`] [`Error::IdentityChange`] if the patch would change
/// `apiVersion`, `kind` or `metadata.name`.
pub fn three_way(
    api_version: &str,
    kind: &str,
    original: &Value,
    modified: &Value,
    current: &Value,
    unstructured: Unstructured,
) -> Result<Patch, Error> {
    if let Some(schema) = strategic_schema(api_version, kind) {
        let body = three_way_strategic(original, modified, current, schema)?;
        return Ok(Patch::Strategic { body, schema });
    }
    let body = match unstructured {
        Unstructured::TwoWay => two_way_json(original, modified),
        Unstructured::ThreeWay => same_identity(three_way_json(original, modified, current))?,
    };
    Ok(Patch::Merge { body })
}

/// The strategic merge patch that brings `current` to `modified` and removes what only `original` had.
///
/// Mirrors `strategicpatch.CreateThreeWayMergePatch` with `overwrite`; null stands for an object that does not exist.
///
/// # Errors
/// If a merging list cannot be merged (an element without merge key, mixed types), or maps or lists differ in a field
/// that the kind does not have.
pub fn three_way_strategic(
    original: &Value,
    modified: &Value,
    current: &Value,
    schema: Schema,
) -> Result<Value, Error> {
    let (original, modified, current) = (fields(original)?, fields(modified)?, fields(current)?);
    let changes = difference(&current, &modified, schema, Half::Changes)?;
    let deletions = difference(&original, &modified, schema, Half::Deletions)?;
    Ok(Value::Object(merge(deletions, changes, schema, Onto::Patch)?))
}

/// The object after a strategic merge patch.
///
/// Mirrors `strategicpatch.StrategicMergePatch`, which the API server uses.
///
/// # Errors
/// If the patch is malformed or does not fit the object.
pub fn apply_strategic(patch: &Value, current: &Value, schema: Schema) -> Result<Value, Error> {
    let (patch, current) = (fields(patch)?, fields(current)?);
    let merged = merge(current.into_owned(), patch.into_owned(), schema, Onto::Object)?;
    Ok(Value::Object(merged))
}

fn strategic_schema(api_version: &str, kind: &str) -> Option<Schema> {
    match (api_version, kind) {
        ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition") => None,
        _ => Schema::of(api_version, kind),
    }
}

fn same_identity(patch: Value) -> Result<Value, Error> {
    let places = ["/apiVersion", "/kind", "/metadata/name"];
    if places.iter().any(|place| patch.pointer(place).is_some()) {
        return Err(Error::IdentityChange { patch: text::go_text(&patch) });
    }
    Ok(patch)
}

fn fields(value: &Value) -> Result<Cow<'_, Fields>, Error> {
    match value {
        Value::Object(fields) => Ok(Cow::Borrowed(fields)),
        Value::Null => Ok(Cow::Owned(Fields::new())),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(Error::NotAnObject),
    }
}
