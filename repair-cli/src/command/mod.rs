//! One file per subcommand: its flags, what it shows, what it does.

pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod plan;
pub(crate) mod repair;
mod report;
pub(crate) mod scan;
pub(crate) mod status;
mod watch;

use crate::cli::Command;
use crate::error::{Exit, Failure};
use crate::session::Session;

/// Runs a command that needs no cluster, and so no kubeconfig; `None` for the others.
pub(crate) fn offline(command: &Command) -> Option<Result<Exit, Failure>> {
    match command {
        Command::Completions(args) => Some(completions::run(args)),
        Command::Man(args) => Some(man::run(args)),
        Command::Scan(_)
        | Command::Inspect(_)
        | Command::Plan(_)
        | Command::Repair(_)
        | Command::History(_)
        | Command::List(_)
        | Command::Status(_)
        | Command::Get(_)
        | Command::Diff(_)
        | Command::Doctor(_) => None,
    }
}

/// Runs a command to its exit code.
pub(crate) async fn run(command: Command, session: &Session) -> Result<Exit, Failure> {
    match command {
        Command::Scan(args) => scan::run(args, session).await,
        Command::Inspect(args) => inspect::run(args, session).await,
        Command::Plan(args) => plan::run(args, session).await,
        Command::Repair(args) => repair::run(args, session).await,
        Command::History(args) => history::run(args, session).await,
        Command::List(args) => list::run(args, session).await,
        Command::Status(args) => status::run(args, session).await,
        Command::Get(args) => get::run(args, session).await,
        Command::Diff(args) => diff::run(args, session).await,
        Command::Doctor(args) => doctor::run(args, session).await,
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}
