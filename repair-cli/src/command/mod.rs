//! One file per subcommand: its flags, what it shows, what it does.

pub(crate) mod backup;
pub(crate) mod completions;
pub(crate) mod demo;
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
pub(crate) mod restore;
pub(crate) mod scan;
pub(crate) mod status;
mod watch;

use crate::cli::Command;
use crate::error::{Exit, Failure};
use crate::session::Session;

/// Runs a command to its exit code.
pub(crate) async fn run(command: Command, session: &Session) -> Result<Exit, Failure> {
    match command {
        Command::Scan(args) => scan::run(args, session).await,
        Command::Inspect(args) => inspect::run(args, session).await,
        Command::Plan(args) => plan::run(args, session).await,
        Command::Repair(args) => repair::run(args, session).await,
        Command::Backup(args) => backup::run(args, session).await,
        Command::Restore(args) => restore::run(args, session).await,
        Command::History(args) => history::run(args, session).await,
        Command::List(args) => list::run(args, session).await,
        Command::Status(args) => status::run(args, session).await,
        Command::Get(args) => get::run(args, session).await,
        Command::Diff(args) => diff::run(args, session).await,
        Command::Doctor(args) => doctor::run(args, session).await,
    }
}
