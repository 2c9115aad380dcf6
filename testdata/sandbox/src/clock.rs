//! The server's clock: it follows tokio's, and so stands still and jumps with paused time.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use tokio::time::Instant;

#[derive(Debug, Clone)]
pub(crate) struct Clock {
    origin: DateTime<Utc>,
    begun: Instant,
}

impl Clock {
    pub(crate) fn starting_at(origin: DateTime<Utc>) -> Self {
        Self { origin, begun: Instant::now() }
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.origin + self.begun.elapsed()
    }

    /// The time as objects carry it: whole seconds.
    pub(crate) fn stamp(&self) -> String {
        self.now().to_rfc3339_opts(SecondsFormat::Secs, true)
    }

    /// The value of the header `Date`.
    pub(crate) fn date(&self) -> String {
        self.now().format("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    pub(crate) fn after(&self, pause: Duration) -> Instant {
        Instant::now() + pause
    }
}
