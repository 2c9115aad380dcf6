//! `gwrepair`: finds, explains and repairs Helm releases that are stuck. Reads top down: parse, connect, run, answer.

mod again;
mod cli;
mod command;
mod connect;
mod error;
mod explain;
mod grant;
mod nearest;
mod output;
mod progress;
mod saved;
mod session;
mod signal;
mod transport;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use helm_release::action::Stop;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::again::Again;
use crate::cli::{Cli, Global, Verb};
use crate::error::{Exit, Failure};
use crate::session::Session;

fn main() -> ExitCode {
    let mut command = Cli::command();
    command.build();
    let parsed = command.clone().try_get_matches_from(std::env::args_os());
    let (cli, again) = match parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches))) {
        Ok((cli, matches)) => (cli, Again::read(command, &matches)),
        Err(error) => {
            // Help and version come this way too; that they cannot be written is nothing to tell anybody.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done }.into();
        }
    };
    cli.global.color.apply();
    log(&cli.global);
    run(cli, again)
        .unwrap_or_else(|failure| {
            output::say(&failure.text());
            failure.exit
        })
        .into()
}

fn run(cli: Cli, again: Again) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::new("could not start").because(&why))?;
    // Already installed is as good.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let token = CancellationToken::new();
    let exit = runtime.block_on(async {
        signal::watch(&token);
        match cli.verb {
            Verb::Cluster(command) => {
                let session = Session::open(&cli.global, again, token.clone()).await?;
                match command::run(*command, &session).await {
                    Err(failure) if failure.is_of_identity() => Err(failure.of_identity(session.identity().await)),
                    ended => ended,
                }
            }
            Verb::Demo(args) => command::demo::run(&args, cli.global.color, &Stop::new(token.clone(), None)).await,
            Verb::Completions(args) => command::completions::run(&args),
            Verb::Man(args) => command::man::run(&args),
        }
    });
    // A prompt that nobody has answered still waits for its line.
    runtime.shutdown_background();
    match exit {
        Err(_) if token.is_cancelled() => Ok(Exit::Interrupted),
        other => other,
    }
}

/// Logs go to stderr, by `-v` and `-q` unless RUST_LOG says otherwise.
fn log(global: &Global) {
    let level = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (false, 0) => "gwrepair=warn,helm_release=warn,error",
        (false, 1) => "gwrepair=info,helm_release=info,warn",
        (false, 2) => "gwrepair=debug,helm_release=debug,info",
        (false, _) => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let colored = anstream::stderr().current_choice() != anstream::ColorChoice::Never;
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colored).init();
}
