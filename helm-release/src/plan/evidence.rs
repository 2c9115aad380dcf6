//! What was seen: of the author of the last operation, and of the cluster. Gathered by the shell, read by `decide`.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::manifest::ObjectId;
use crate::readiness::Readiness;
use crate::release::{Namespace, ReleaseName, Revision};

/// Everything that was seen, at one moment of the server's clock.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// The server's time when it was seen.
    pub now: DateTime<Utc>,
    /// Whether somebody may still be at work.
    pub author: Author,
    /// The hook objects that exist.
    pub hooks: Vec<HookObject>,
    /// Every object that a manifest in question lists.
    pub objects: Vec<Seen>,
    /// Another program that keeps these objects as it wants them.
    pub deployer: Option<Deployer>,
    /// Whether the namespace accepts creates.
    pub namespace: NamespacePhase,
    /// Objects whose kind the server does not serve.
    pub unknown_kinds: Vec<Listed>,
    /// Records of this release in a driver that was not asked for, by its name.
    pub elsewhere: Option<&'static str>,
    /// Where weaker evidence had to be used, and why.
    pub weaker: Vec<String>,
}

/// What is known of whoever wrote the last record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Author {
    /// Our Lease for the release.
    pub lease: Lease,
    /// The newest sign of activity, in server time.
    pub last_sign: Option<DateTime<Utc>>,
    /// The field manager on the objects: all that is known of who it was.
    pub manager: Option<String>,
}

/// Our Lease for a release.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Lease {
    /// Nobody holds one. Says nothing of a foreign Helm.
    #[default]
    Free,
    /// Held and renewed.
    Held {
        /// By whom.
        holder: String,
        /// Until when, unless renewed.
        until: DateTime<Utc>,
    },
    /// Held once, and not renewed since, or the holder is gone.
    Expired {
        /// By whom.
        holder: String,
    },
    /// Could not be read; the rest of the ladder decides.
    Unreadable(String),
}

/// An object, and the revisions whose manifests list it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Which object.
    pub id: ObjectId,
    /// The revisions whose manifests list it.
    pub listed: BTreeSet<Revision>,
    /// Whether one of these manifests, or the live object, says `helm.sh/resource-policy: keep`.
    pub keep: bool,
    /// The object itself, if it exists.
    pub live: Option<Live>,
}

/// A live object.
#[derive(Debug, Clone)]
pub struct Live {
    /// Its UID, which every delete carries as a precondition.
    pub uid: String,
    /// Whose marks it carries.
    pub owner: Owner,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// Its readiness by the rules of kstatus.
    pub readiness: Readiness,
    /// Whether it is or has been in service, or holds data.
    pub lives: bool,
    /// Whether the last operation created it: made not before its record, and first by its writer.
    pub born: bool,
    /// The listed revisions whose manifest it holds.
    pub holds: BTreeSet<Revision>,
}

/// Whose marks an object carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// This release's.
    Ours,
    /// Nobody's.
    Nobody,
    /// Another release's.
    Other {
        /// Its namespace, verbatim.
        namespace: String,
        /// Its name, verbatim.
        name: String,
    },
}

/// A hook object that exists, ours by the hook manifest of the record.
#[derive(Debug, Clone)]
pub struct HookObject {
    /// Which object.
    pub id: ObjectId,
    /// Its UID, which every delete carries as a precondition.
    pub uid: String,
    /// The events it runs at, verbatim.
    pub events: Vec<String>,
    /// Its delete policies, verbatim.
    pub delete_policies: Vec<String>,
    /// Whether it was made by the last operation.
    pub born: bool,
    /// Where it stands.
    pub phase: HookPhase,
}

/// Where a hook stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookPhase {
    /// Not begun.
    Missing,
    /// At work.
    Active,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
}

/// Another deployer, and how it was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployer {
    /// Its name, such as `Argo CD`.
    pub name: &'static str,
    /// The mark that gave it away.
    pub mark: String,
}

/// Whether a namespace accepts creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespacePhase {
    /// It does.
    Active,
    /// It is being deleted: nothing can be created in it.
    Terminating,
    /// It could not be read; a create will tell.
    Unknown,
}

/// An object of a revision's manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The revision.
    pub revision: Revision,
    /// The object.
    pub id: ObjectId,
    /// Its `apiVersion`.
    pub api_version: String,
}

/// One fact that a plan stands on, and where it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The fact.
    pub fact: String,
    /// Where it was seen.
    pub source: String,
}

impl Finding {
    pub(super) fn new(fact: String, source: &str) -> Self {
        Self { fact, source: source.into() }
    }
}

impl Live {
    /// Whether the object is this release's and stays.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.owner == Owner::Ours && !self.terminating
    }
}

impl Owner {
    /// Reads the marks that Helm puts on every object of a release.
    #[must_use]
    pub fn read(marks: Marks<'_>, name: &ReleaseName, namespace: &Namespace) -> Self {
        match (marks.release_name, marks.release_namespace) {
            (Some(n), Some(ns)) if n == name.as_str() && ns == namespace.as_str() => Self::Ours,
            (None, None) => Self::Nobody,
            (n, ns) => Self::Other { namespace: ns.unwrap_or_default().into(), name: n.unwrap_or_default().into() },
        }
    }
}

/// The two annotations that name an object's release.
#[derive(Debug, Clone, Copy, Default)]
pub struct Marks<'a> {
    /// `meta.helm.sh/release-name`
    pub release_name: Option<&'a str>,
    /// `meta.helm.sh/release-namespace`
    pub release_namespace: Option<&'a str>,
}
