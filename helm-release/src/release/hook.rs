//! Hooks: objects that Helm runs around an operation and does not count to the manifest.

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::time;

/// One hook of a release, as its record holds it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[derive(Default)]
pub struct Hook {
    /// The object's name.
    pub name: String,
    /// The object's kind.
    pub kind: String,
    /// The template that it came from.
    pub path: String,
    /// The object as YAML.
    pub manifest: String,
    /// When it runs: `pre-install`, `post-upgrade` and so on, verbatim.
    #[serde(deserialize_with = "nullable")]
    pub events: Vec<String>,
    /// Lower runs first.
    pub weight: i64,
    /// When it is deleted: `before-hook-creation`, `hook-succeeded`, `hook-failed`, verbatim.
    #[serde(deserialize_with = "nullable")]
    pub delete_policies: Vec<String>,
    /// Its last run.
    #[serde(deserialize_with = "nullable")]
    pub last_run: LastRun,
}

/// The last run of a hook. A rollback by Helm 3 copies the one of its target, so compare `started_at` with the record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LastRun {
    /// When it began.
    #[serde(deserialize_with = "time::optional")]
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    #[serde(deserialize_with = "time::optional")]
    pub completed_at: Option<DateTime<Utc>>,
    /// `Running`, `Succeeded`, `Failed`, `Unknown` or empty, verbatim.
    pub phase: String,
}

impl Hook {
    /// Whether it runs at `event`.
    #[must_use]
    pub fn runs_at(&self, event: &str) -> bool {
        self.events.iter().any(|e| e == event)
    }

    /// Whether Helm would delete it when its run ends with `policy` (`hook-succeeded` or `hook-failed`).
    #[must_use]
    pub fn deleted_on(&self, policy: &str) -> bool {
        self.delete_policies.iter().any(|p| p == policy)
    }
}

fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
