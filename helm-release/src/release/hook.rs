//! Hooks: objects that Helm runs around an operation and does not count to the manifest.

use chrono::{DateTime, Utc};

use super::members::Members;

/// One hook of a release, as its record holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    pub events: Vec<String>,
    /// Lower runs first.
    pub weight: i64,
    /// When it is deleted: `before-hook-creation`, `hook-succeeded`, `hook-failed`, verbatim.
    pub delete_policies: Vec<String>,
    /// Its last run.
    pub last_run: LastRun,
}

/// The last run of a hook. A rollback by Helm 3 copies the one of its target, so compare `started_at` with the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastRun {
    /// When it began.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub completed_at: Option<DateTime<Utc>>,
    /// `Running`, `Succeeded`, `Failed`, `Unknown` or empty, verbatim.
    pub phase: String,
}

impl Hook {
    /// What can be read of a hook.
    pub(super) fn read(hook: &Members) -> Self {
        let run = hook.object("last_run").unwrap_or_default();
        Self {
            name: hook.text("name"),
            kind: hook.text("kind"),
            path: hook.text("path"),
            manifest: hook.text("manifest"),
            events: hook.texts("events"),
            weight: hook.read("weight").unwrap_or_default(),
            delete_policies: hook.texts("delete_policies"),
            last_run: LastRun {
                started_at: run.time("started_at"),
                completed_at: run.time("completed_at"),
                phase: run.text("phase"),
            },
        }
    }

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
