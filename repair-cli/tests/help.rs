//! The help texts are part of the interface: what `--help` prints stands in `tests/help`, one file a subcommand.
//!
//! `GWREPAIR_REWRITE_HELP=1 cargo test -p gwrepair --test help` writes them anew.

#![expect(clippy::unwrap_used, reason = "a test ends where its preparation fails")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

const COMMANDS: [&str; 23] = [
    "",
    "scan",
    "inspect",
    "plan",
    "repair",
    "backup",
    "restore",
    "history",
    "list",
    "status",
    "get",
    "get all",
    "get manifest",
    "get hooks",
    "get notes",
    "get values",
    "get metadata",
    "get record",
    "diff",
    "doctor",
    "demo",
    "completions",
    "man",
];

#[test]
fn every_help_text_is_the_one_checked_in() {
    for command in COMMANDS {
        let (path, help) = (file(command), help(command));
        if std::env::var_os("GWREPAIR_REWRITE_HELP").is_some() {
            std::fs::write(&path, &help).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(help, expected, "gwrepair {command} --help differs from {}", path.display());
    }
}

#[test]
fn no_help_text_is_left_over_and_none_is_missing() {
    let names = COMMANDS.map(|command| file(command).file_name().unwrap().to_owned());
    let expected: BTreeSet<_> = names.into_iter().collect();
    let found = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(expected, found);
}

#[test]
fn every_command_of_the_overview_has_its_help() {
    let overview = help("");
    let section = overview.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    // A line that is indented further goes on with the text of the one before.
    let entries = section.lines().filter(|line| !line.starts_with("   "));
    for command in entries.filter_map(|line| line.split_whitespace().next()).filter(|command| *command != "help") {
        assert!(COMMANDS.contains(&command), "{command} has no help text");
    }
}

#[test]
fn help_fits_in_a_hundred_columns() {
    for command in COMMANDS {
        let help = help(command);
        let wide = help.lines().find(|line| line.chars().count() > 100);
        assert_eq!(wide, None, "gwrepair {command} --help");
    }
}

fn help(command: &str) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_gwrepair"));
    let words: Vec<&str> = command.split_whitespace().collect();
    program.args(words).arg("--help").env_remove("HELM_DRIVER").env("COLUMNS", "100");
    let output = program.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "gwrepair {command} --help");
    String::from_utf8(output.stdout).unwrap()
}

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "help"].iter().collect()
}

fn file(command: &str) -> PathBuf {
    let name = if command.is_empty() { "gwrepair".into() } else { command.replace(' ', "-") };
    folder().join(name + ".txt")
}
