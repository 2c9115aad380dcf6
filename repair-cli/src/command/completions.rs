//! `completions`: what a shell needs to complete our commands and flags.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::error::{Exit, Failure};
use crate::output::print;

/// Prints a script with which a shell completes commands and flags. Needs no cluster.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  source <(gwrepair completions bash)
  gwrepair completions zsh > \"${fpath[1]}/_gwrepair\"
  gwrepair completions fish > ~/.config/fish/completions/gwrepair.fish")]
pub(crate) struct Completions {
    /// The shell: bash, elvish, fish, powershell or zsh.
    #[arg(value_enum, value_name = "SHELL", hide_possible_values = true)]
    shell: Shell,
}

pub(crate) fn run(args: &Completions) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "gwrepair", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
