//! `testcluster`: starts the real control plane for a command, or until it is told to stop.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod bench;
mod fixtures;
mod kill;
mod serve;

use std::{
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use testcluster::Programs;

#[derive(Parser)]
#[command(about = "The real control plane and real Helm, for tests")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Build the control plane, kubectl and Helm 3 and 4 if they are missing or stale
    Build,
    /// Run a command against a control plane that lives as long as the command
    Run {
        /// The command and its arguments
        #[arg(trailing_var_arg = true, required = true)]
        command: Vec<String>,
    },
    /// Start a control plane that keeps its state in a folder, and leave it running
    Up {
        /// The folder
        dir: PathBuf,
    },
    /// Stop the control plane of a folder
    Down {
        /// The folder
        dir: PathBuf,
    },
    /// Run a control plane in the foreground until interrupted or told to stop by `down`
    Serve {
        /// The folder
        dir: PathBuf,
    },
    /// Run a command and kill it when it sends its WRITE-th write, which is not carried out; under `run`
    Kill {
        /// Which, counted from 1
        write: usize,
        /// The command and its arguments
        #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Write the fixtures under `testdata` anew, under `run`
    Fixtures {
        /// The folder `testdata`
        testdata: PathBuf,
        /// Only these
        #[arg(value_enum, default_values = ["records", "api", "demo"])]
        sets: Vec<fixtures::Set>,
    },
    /// Measure this library against real Helm, and print a table
    Bench(bench::Options),
    /// Run a command and say in a file, as JSON, how long it took and how much memory it used at most
    #[command(hide = true)]
    Measure {
        /// The file
        report: PathBuf,
        /// The command and its arguments
        #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Become a program that dies with the process that started it
    #[command(hide = true)]
    Guard {
        /// The process to die with
        parent: i32,
        /// The program and its arguments
        #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

// One thread: the kernel ends the components with the thread that started them.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    match Arguments::parse().verb {
        Verb::Build => println!("{}", Programs::build()?.dir().display()),
        Verb::Run { command } => return serve::run(&command).await,
        Verb::Up { dir } => println!("{}", serve::up(&dir).await?.display()),
        Verb::Down { dir } => serve::down(&dir).await?,
        Verb::Serve { dir } => serve::serve(&dir).await?,
        Verb::Kill { write, command } => kill::at_write(write, &command).await?,
        Verb::Fixtures { testdata, sets } => fixtures::write(&testdata, &sets).await?,
        Verb::Bench(options) => bench::run(&options).await?,
        Verb::Measure { report, command } => return bench::measure(&report, &command),
        Verb::Guard { parent, command } => guard(parent, &command)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn guard(parent: i32, command: &[String]) -> Result<()> {
    let (program, arguments) = command.split_first().context("no program")?;
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let now = rustix::process::getppid().map(rustix::process::Pid::as_raw_nonzero);
    ensure!(now.is_some_and(|pid| pid.get() == parent), "the parent has ended already");
    Err(Command::new(program).args(arguments).exec()).context("could not become the program")
}
