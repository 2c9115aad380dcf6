//! Why an action failed, and what a caller should do next.

use std::error::Error as _;

use thiserror::Error as ThisError;

use crate::cluster::{self, Cause, Permission, Stopped};
use crate::release::{ReleaseName, Revision};
use crate::{manifest, patch, storage};

/// Why an action failed.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A request about objects failed.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// A request about records failed.
    #[error(transparent)]
    Storage(#[from] storage::Error),
    /// Objects may not be read.
    #[error("could not read the objects of the release")]
    Denied {
        /// Every permission to read them that this identity lacks.
        missing: Vec<Permission>,
        /// The first request that was refused.
        source: Box<cluster::Error>,
    },
    /// A stored manifest cannot be read.
    #[error("could not read the manifest of revision {revision}")]
    Manifest {
        /// Whose.
        revision: Revision,
        /// Why.
        source: manifest::Error,
    },
    /// No patch brings an object to its manifest.
    #[error("could not work out how {object} has to change")]
    Patch {
        /// The object.
        object: String,
        /// Why.
        source: patch::Error,
    },
    /// A record's payload cannot be changed in place.
    #[error("could not change record {revision}")]
    Payload {
        /// Which.
        revision: Revision,
        /// Why.
        source: serde_json::Error,
    },
    /// The kind of an object is not served.
    #[error("the server does not serve the kind of {0}")]
    UnknownKind(String),
    /// A step speaks of a record that is not there.
    #[error("there is no record {0}")]
    NoRecord(Revision),
    /// Objects did not become ready in time.
    #[error("not ready in time: {0}")]
    NotReady(String),
    /// Deleted objects did not go in time.
    #[error("still being deleted: {0}")]
    NotGone(String),
    /// A record that cannot be read is not deleted unless a backup keeps it.
    #[error("no backup keeps record {0}, so it was not deleted")]
    Unkept(String),
    /// What was to be changed could not be kept.
    #[error("could not keep a backup, so nothing was written")]
    Keep(#[source] std::io::Error),
    /// A backup says what makes no sense.
    #[error("could not use the backup of release {name}")]
    Backup {
        /// Whose.
        name: ReleaseName,
        /// Why.
        source: Unusable,
    },
    /// Somebody else wrote an object meanwhile.
    #[error("somebody else has written {0} meanwhile")]
    Written(String),
    /// It was time to stop.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// What makes no sense in a backup.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Unusable {
    /// Its driver is none.
    #[error(transparent)]
    Driver(#[from] storage::UnknownDriver),
    /// A record has not the shape of one.
    #[error("one of its records is none")]
    Record(#[source] serde_json::Error),
}

/// What a caller should do next. The operator turns it into a requeue, the command line into an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Look again and decide anew: somebody else was faster.
    Reobserve,
    /// Try the same again later.
    BackOff,
    /// Nothing helps but a change of the input, of a permission, or of the cluster.
    Stall,
}

impl Error {
    /// What to do next. Read off the variants, never off the text.
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Cluster(error) | Self::Storage(storage::Error::Cluster(error)) => of_cause(&error.cause),
            Self::Storage(storage::Error::Conflict { .. }) | Self::NoRecord(_) | Self::Written(_) => Remedy::Reobserve,
            Self::NotReady(_) | Self::NotGone(_) | Self::Stopped(_) => Remedy::BackOff,
            Self::Storage(_)
            | Self::Denied { .. }
            | Self::Manifest { .. }
            | Self::Patch { .. }
            | Self::Payload { .. }
            | Self::UnknownKind(_)
            | Self::Unkept(_)
            | Self::Keep(_)
            | Self::Backup { .. } => Remedy::Stall,
        }
    }

    /// The failed request, if it was one.
    #[must_use]
    pub fn request(&self) -> Option<&cluster::Error> {
        match self {
            Self::Cluster(error) | Self::Storage(storage::Error::Cluster(error)) => Some(error),
            Self::Denied { source, .. } => Some(source),
            Self::Storage(_)
            | Self::Manifest { .. }
            | Self::Patch { .. }
            | Self::Payload { .. }
            | Self::UnknownKind(_)
            | Self::NoRecord(_)
            | Self::NotReady(_)
            | Self::NotGone(_)
            | Self::Unkept(_)
            | Self::Keep(_)
            | Self::Backup { .. }
            | Self::Written(_)
            | Self::Stopped(_) => None,
        }
    }

    /// Permissions that are known to be missing, beyond the one that [`Error::request`] tells of.
    #[must_use]
    pub fn missing(&self) -> &[Permission] {
        if let Self::Denied { missing, .. } = self { missing } else { &[] }
    }

    /// Whether it was stopped rather than failed.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Stopped(_)) || self.request().is_some_and(cluster::Error::is_stopped)
    }

    /// Whether somebody else changed a record first.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Storage(storage::Error::Conflict { .. }))
    }

    /// The attempt and its causes in one line.
    #[must_use]
    pub fn one_line(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}

fn of_cause(cause: &Cause) -> Remedy {
    match cause {
        Cause::Refused { code: 409 | 410, .. } => Remedy::Reobserve,
        Cause::Refused { code: 408 | 429 | 500.., .. } | Cause::Unreachable(_) | Cause::Stopped(_) => Remedy::BackOff,
        Cause::Refused { .. } | Cause::Forbidden { .. } | Cause::Malformed(_) => Remedy::Stall,
    }
}
