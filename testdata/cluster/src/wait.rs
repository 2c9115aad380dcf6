//! Waiting for a condition, never for a time.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};

const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(25);

/// Asks again and again until the answer is `Some`.
///
/// # Errors
/// The error of `ask`, or one that names `what` when a minute has passed.
pub async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(answer) = ask().await? {
            return Ok(answer);
        }
        if Instant::now() > end {
            bail!("waited {} s in vain for {what}", LIMIT.as_secs());
        }
        sleep(PAUSE).await;
    }
}
