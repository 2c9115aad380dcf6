//! What can go wrong between us and an API server.

use std::fmt;

use serde::Deserialize;
use thiserror::Error as ThisError;

use super::stop::Stopped;

/// A failed request: what was attempted, and its cause.
#[derive(Debug)]
pub struct Error {
    /// What was attempted, to be read after "could not".
    pub attempt: String,
    /// Why it failed.
    pub cause: Cause,
}

/// Why a request failed.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Cause {
    /// This identity may not do it.
    #[error("{message}")]
    Forbidden {
        /// The verb, as in a Role.
        verb: String,
        /// The resource, as in a Role, with its group behind a dot where it has one.
        resource: String,
        /// The namespace; empty for cluster-scoped resources.
        namespace: String,
        /// The server's words.
        message: String,
    },
    /// The server answered with an error.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        code: u16,
        /// The reason in one word, such as `Conflict`.
        reason: String,
        /// The server's words.
        message: String,
    },
    /// No answer came.
    #[error("the server did not answer")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The answer was not what the API promises.
    #[error("the answer cannot be understood")]
    Malformed(#[source] serde_json::Error),
    /// It was time to stop.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl Cause {
    /// Whether a webhook was asked for a dry run that it does not support. The API has no reason for it but its text.
    #[must_use]
    pub fn is_without_dry_run(&self) -> bool {
        matches!(self, Self::Refused { code: 400, message, .. } if message.contains("does not support dry run"))
    }
}

/// The parts of a `metav1.Status` that are used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    pub(super) message: String,
    pub(super) reason: String,
    details: Details,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    causes: Vec<StatusCause>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusCause {
    reason: String,
}

impl Status {
    /// Whether a create was forbidden because its namespace is going: no permission would help.
    pub(super) fn is_terminating(&self) -> bool {
        self.details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
    }
}

impl Error {
    /// The HTTP status, if the server answered.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match &self.cause {
            Cause::Forbidden { .. } => Some(403),
            Cause::Refused { code, .. } => Some(*code),
            Cause::Unreachable(_) | Cause::Malformed(_) | Cause::Stopped(_) => None,
        }
    }

    /// Whether it was stopped rather than failed.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self.cause, Cause::Stopped(_))
    }

    /// Whether the request may have been carried out although no good answer came.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        match &self.cause {
            Cause::Unreachable(_) | Cause::Malformed(_) | Cause::Stopped(_) => true,
            Cause::Refused { code, .. } => *code >= 500,
            Cause::Forbidden { .. } => false,
        }
    }

    /// Whether the object changed, or exists, in a way that the request did not expect.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not {}", self.attempt)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}
