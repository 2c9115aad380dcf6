//! Many requests at once, but not too many.

use std::future::Future;

use futures::stream::{self, StreamExt, TryStreamExt};

/// How many objects are read or written at once: kubectl's and Helm's own burst is of that size.
const AT_ONCE: usize = 8;

/// Runs `work` side by side and gives the results in its order; the first error drops what is still under way.
///
/// For reads only: a write that is dropped may or may not have been carried out.
pub(crate) async fn all<T, E>(work: Vec<impl Future<Output = Result<T, E>>>) -> Result<Vec<T>, E> {
    stream::iter(work).buffered(AT_ONCE).try_collect().await
}

/// Runs `work` side by side to its end, whatever fails, and tells `done` of each success; then the first error.
pub(crate) async fn all_to_end<E>(
    work: Vec<impl Future<Output = Result<(), E>>>,
    mut done: impl FnMut(),
) -> Result<(), E> {
    let mut results = stream::iter(work).buffer_unordered(AT_ONCE);
    let mut ended = Ok(());
    while let Some(result) = results.next().await {
        match result {
            Ok(()) => done(),
            Err(error) => ended = ended.and(Err(error)),
        }
    }
    ended
}
