//! What can go wrong, and when.

use std::time::Duration;

use anyhow::{Context, Result};
use http::Method;
use tokio::{sync::watch, time::timeout};

use super::{LIMIT, Request};

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The client is killed, and its request is not forwarded.
    KillBefore,
    /// The request is carried out; the client is killed before it has the answer.
    KillAfter,
    /// The request is not forwarded but answered with this status, as the API server words it.
    Status {
        /// 429, 500 or another.
        code: u16,
        /// The header `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// The connection is reset, and the request is not forwarded.
    Reset,
    /// The request is carried out; the connection is reset instead of an answer.
    LoseAnswer,
    /// The request waits for [`Armed::release`] and is then forwarded.
    Hold,
}

impl Fault {
    /// The server's own failure, 500, without advice to come again.
    pub const INTERNAL_ERROR: Self = Self::Status { code: 500, retry_after: None };
}

/// A fault that was set up. Dropping it changes nothing.
#[derive(Clone, Debug, Default)]
pub struct Armed {
    reached: watch::Sender<bool>,
    released: watch::Sender<bool>,
}

impl Armed {
    /// Waits until the fault has happened; for [`Fault::Hold`], until the request is held.
    ///
    /// # Errors
    /// A minute has passed.
    pub async fn reached(&self) -> Result<()> {
        let mut reached = self.reached.subscribe();
        timeout(LIMIT, reached.wait_for(|reached| *reached)).await.context("waited in vain for a fault")??;
        Ok(())
    }

    /// As [`Self::reached`], for as long as it takes.
    pub async fn wait(&self) {
        let _ = self.reached.subscribe().wait_for(|reached| *reached).await; // the sender is here
    }

    /// Whether the fault has happened.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        *self.reached.borrow()
    }

    /// Lets a held request go on.
    pub fn release(&self) {
        self.released.send_replace(true);
    }

    pub(super) fn reach(&self) {
        self.reached.send_replace(true);
    }

    pub(super) async fn released(&self) {
        let _ = self.released.subscribe().wait_for(|released| *released).await; // the sender is here
    }
}

/// A fault and the request that it is for.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) trigger: Trigger,
    pub(super) fault: Fault,
    pub(super) armed: Armed,
}

#[derive(Debug)]
pub(super) enum Trigger {
    Write(usize),
    Request(usize),
    /// `left` counts down to the one that is meant; none means every one.
    Match {
        method: Method,
        path: String,
        left: Option<usize>,
    },
}

impl Trigger {
    /// Whether the fault is for this request. Each request is shown once.
    pub(super) fn fires(&mut self, request: &Request) -> bool {
        match self {
            Self::Write(n) => request.write == Some(*n),
            Self::Request(n) => request.number == *n,
            Self::Match { method, path, left } => {
                let matches = request.method == *method && request.target().contains(path.as_str());
                match left {
                    Some(left) if matches => {
                        *left = left.saturating_sub(1);
                        *left == 0
                    }
                    _ => matches,
                }
            }
        }
    }

    /// Whether it can fire again.
    pub(super) fn stays(&self) -> bool {
        matches!(self, Self::Match { left: None, .. })
    }
}
