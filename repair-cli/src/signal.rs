//! The first signal stops cleanly, the second at once.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::Exit;
use crate::output::say;

/// Cancels `token` on the first SIGINT or SIGTERM.
pub(crate) fn watch(token: &CancellationToken) {
    let signals = signal(SignalKind::interrupt()).and_then(|int| Ok((int, signal(SignalKind::terminate())?)));
    match signals {
        Ok((int, term)) => {
            tokio::spawn(obey(int, term, token.clone()));
        }
        Err(why) => tracing::warn!("signals cannot be caught: {why}"),
    }
}

async fn obey(mut int: Signal, mut term: Signal, token: CancellationToken) {
    next(&mut int, &mut term).await;
    // Said before it is done: the program may have ended by the next line.
    say("\nstopping: what is under way ends cleanly; once more to stop at once\n");
    token.cancel();
    next(&mut int, &mut term).await;
    leave();
}

async fn next(int: &mut Signal, term: &mut Signal) {
    tokio::select! {
        _ = int.recv() => {}
        _ = term.recv() => {}
    }
}

#[expect(clippy::exit, reason = "the second signal asks for exactly this")]
fn leave() -> ! {
    std::process::exit(Exit::Interrupted.code().into())
}
