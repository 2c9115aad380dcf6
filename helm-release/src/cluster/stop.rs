//! When to stop: on a caller's word, or at a deadline.

use std::future::Future;
use std::time::Duration;

use thiserror::Error;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A cancellation token and a deadline. Every await of the shell looks at both.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    token: CancellationToken,
    deadline: Option<Instant>,
}

/// Why something was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Stopped {
    /// The caller said so.
    #[error("cancelled")]
    Cancelled,
    /// The time was up.
    #[error("the time was up")]
    Deadline,
}

impl Stop {
    /// Stops when `token` is cancelled, or after `limit`.
    #[must_use]
    pub fn new(token: CancellationToken, limit: Option<Duration>) -> Self {
        Self { token, deadline: limit.and_then(|limit| Instant::now().checked_add(limit)) }
    }

    /// Never stops.
    #[must_use]
    pub fn never() -> Self {
        Self::default()
    }

    /// The same token with a deadline no later than `limit` from now.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Self {
        let soon = Instant::now().checked_add(limit);
        let deadline = match (self.deadline, soon) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self { token: self.token.clone(), deadline }
    }

    /// # Errors
    /// [`Stopped`] if it is time to stop.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.token.is_cancelled() {
            return Err(Stopped::Cancelled);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Stopped::Deadline),
            Some(_) | None => Ok(()),
        }
    }

    /// Waits until it is time to stop.
    pub async fn stopped(&self) -> Stopped {
        let deadline = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.token.cancelled() => Stopped::Cancelled,
            () = deadline => Stopped::Deadline,
        }
    }

    /// Runs `work` unless it is time to stop; then `work` is dropped where it stands.
    ///
    /// # Errors
    /// [`Stopped`] if it was time to stop first.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Stopped> {
        tokio::select! {
            biased;
            why = self.stopped() => Err(why),
            output = work => Ok(output),
        }
    }

    /// Runs `work`, giving what is already under way `grace` to end once it is time to stop.
    ///
    /// # Errors
    /// [`Stopped`] if it did not end in that time.
    pub async fn run_to_end<F: Future>(&self, work: F, grace: Duration) -> Result<F::Output, Stopped> {
        self.check()?;
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            output = &mut work => Ok(output),
            why = self.stopped() => tokio::time::timeout(grace, work).await.map_err(|_| why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_stops_an_hour_of_waiting() {
        let stop = Stop::new(CancellationToken::new(), Some(Duration::from_secs(2)));
        assert_eq!(stop.run(tokio::time::sleep(Duration::from_secs(3600))).await, Err(Stopped::Deadline));
        assert_eq!(stop.check(), Err(Stopped::Deadline));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_under_way_ends_within_its_grace() {
        let token = CancellationToken::new();
        let stop = Stop::new(token.clone(), None);
        let work = async {
            token.cancel();
            tokio::time::sleep(Duration::from_secs(1)).await;
            7
        };
        assert_eq!(stop.run_to_end(work, Duration::from_secs(3)).await, Ok(7));
        assert_eq!(stop.run_to_end(std::future::ready(1), Duration::ZERO).await, Err(Stopped::Cancelled));
    }
}
