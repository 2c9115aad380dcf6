//! `man`: the manual, one page a command.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};

use crate::cli::Cli;
use crate::error::{Exit, Failure};
use crate::output::print;

/// Writes the manual, one page a command, and prints the path of each page. Needs no cluster.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  gwrepair man /usr/local/share/man/man1
  gwrepair man . && man ./gwrepair-repair.1")]
pub(crate) struct Man {
    /// The folder to write to; it is made if it is not there.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn run(args: &Man) -> Result<Exit, Failure> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let pages = write(&command, &args.folder).map_err(|why| {
        Failure::new(format!("could not write the manual to {}", args.folder.display()))
            .because(&why)
            .hint("gwrepair man DIR takes a folder that this user may write to")
    })?;
    let paths: String = pages.iter().map(|page| format!("{}\n", page.display())).collect();
    print(&paths)?;
    Ok(Exit::Done)
}

/// Writes the page of `command` and those of all below it.
fn write(command: &clap::Command, folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(folder)?;
    let page = clap_mangen::Man::new(command.clone());
    let path = folder.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text)?;
    fs::write(&path, text)?;
    let mut pages = vec![path];
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages.extend(write(below, folder)?);
    }
    Ok(pages)
}
