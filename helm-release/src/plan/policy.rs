//! What the caller wants, and what he allows.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::release::Revision;

/// What the caller wants of the release in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// A later install or upgrade is accepted.
    Usable,
    /// A chart is at hand: installed or upgraded next.
    Present,
    /// Gone.
    Absent,
}

/// How to get there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// By the evidence.
    #[default]
    Auto,
    /// Back to the target, whatever is already done.
    Rollback,
    /// A scoped uninstall, whatever lives.
    Uninstall,
    /// Bring the record forward; refused unless the cluster holds its manifest.
    Finish,
    /// Only mark the interrupted record failed.
    Unlock,
}

/// Whether a person has said that the author is dead.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AssumeDead {
    /// Nobody said so.
    #[default]
    No,
    /// Said of the record with this resourceVersion, and of no later one.
    Shown(String),
}

/// What the caller allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// How to get there.
    pub strategy: Strategy,
    /// The revision to go back to, instead of the one that is found.
    pub to: Option<Revision>,
    /// Whether a person has said that the author is dead.
    pub assume_dead: AssumeDead,
    /// How long an author who would be writing must have been silent.
    pub min_age: Duration,
    /// How long an author who may be waiting must have been silent.
    pub foreign_timeout: Duration,
    /// Guarded kinds that may be deleted, in lower case, as `kind` or `kind.group`.
    pub allow_delete: BTreeSet<String>,
    /// Take a suspect revision where nothing better is found.
    pub allow_suspect_target: bool,
    /// Delete an active hook of the interrupted operation.
    pub stop_hooks: bool,
    /// Delete hook objects that its own policy leaves.
    pub delete_hooks: bool,
    /// Go on although the server does not serve the kind of an object that the target does not list.
    pub skip_unknown_kinds: bool,
    /// Go on although another deployer keeps the objects.
    pub override_deployer: bool,
    /// Export and delete the newest record if it cannot be read.
    pub quarantine: bool,
    /// Wait for readiness after an apply.
    pub wait: bool,
}

impl Default for Policy {
    /// The defaults of `gwrepair repair`: by the evidence, five minutes, sixty minutes, nothing else allowed.
    fn default() -> Self {
        Self {
            strategy: Strategy::Auto,
            to: None,
            assume_dead: AssumeDead::No,
            min_age: Duration::from_secs(5 * 60),
            foreign_timeout: Duration::from_secs(60 * 60),
            allow_delete: BTreeSet::new(),
            allow_suspect_target: false,
            stop_hooks: false,
            delete_hooks: false,
            skip_unknown_kinds: false,
            override_deployer: false,
            quarantine: false,
            wait: true,
        }
    }
}
