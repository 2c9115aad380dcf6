//! The exact next command: the flags of this invocation, and what a person may want to add.

use std::path::Path;

use clap::{ArgMatches, parser::ValueSource};
use helm_release::release::{Namespace, ReleaseName};

/// Flags that are not carried over: they say how to show, or whom, or give a consent once.
const LEFT_OUT: [&str; 12] = [
    "namespace",
    "all_namespaces",
    "selector",
    "all",
    "output",
    "color",
    "verbose",
    "quiet",
    "yes",
    "dry_run",
    "force",
    "parallel",
];

/// The flags that this invocation was given, to be repeated.
#[derive(Debug, Clone)]
pub(crate) struct Again {
    command: clap::Command,
    given: Vec<Flag>,
}

#[derive(Debug, Clone)]
struct Flag {
    long: String,
    values: Vec<String>,
}

impl Again {
    /// Reads them off the parsed command line. `command` must be built, so that subcommands know the global flags.
    pub(crate) fn read(command: clap::Command, matches: &ArgMatches) -> Self {
        let (inner, matches) = innermost(&command, matches);
        let given = inner.get_arguments().filter_map(|arg| {
            let id = arg.get_id().as_str();
            let given = matches.try_contains_id(id).is_ok_and(|has| has)
                && matches.value_source(id) == Some(ValueSource::CommandLine);
            let long = arg.get_long().filter(|_| given && !LEFT_OUT.contains(&id))?;
            let takes_value = arg.get_action().takes_values();
            let values = matches.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy().into_owned());
            Some(Flag { long: long.into(), values: values.filter(|_| takes_value).collect() })
        });
        let given = given.collect();
        Self { command, given }
    }

    /// `gwrepair VERB NAME -n NAMESPACE`, those of the flags given that VERB takes, and `extra`, which replaces a flag of
    /// the same name.
    pub(crate) fn command(&self, verb: &str, namespace: &Namespace, name: &ReleaseName, extra: &str) -> String {
        self.line(verb, &format!("{name} -n {namespace}"), extra)
    }

    /// `gwrepair restore FILE`, and those of the flags given that it takes.
    pub(crate) fn restore(&self, file: &Path) -> String {
        self.line("restore", &quoted(&file.to_string_lossy()), "")
    }

    fn line(&self, verb: &str, object: &str, extra: &str) -> String {
        let replaced = extra.split(' ').next().unwrap_or_default().trim_start_matches("--");
        let kept = self.given.iter().filter(|flag| flag.long != replaced && self.takes(verb, &flag.long));
        let mut words = format!("gwrepair {verb} {object}");
        for word in kept.flat_map(Flag::words).chain(Some(extra.to_owned()).filter(|extra| !extra.is_empty())) {
            words.push(' ');
            words.push_str(&word);
        }
        words
    }

    /// A word on one record is not repeated when the release is only looked at again.
    fn takes(&self, verb: &str, long: &str) -> bool {
        let command = self.command.find_subcommand(verb);
        let known = command.is_some_and(|command| command.get_arguments().any(|arg| arg.get_long() == Some(long)));
        known && (verb == "repair" || long != "assume-dead")
    }
}

impl Flag {
    fn words(&self) -> Vec<String> {
        if self.values.is_empty() {
            return vec![format!("--{}", self.long)];
        }
        self.values.iter().map(|value| format!("--{} {}", self.long, quoted(value))).collect()
    }
}

fn innermost<'a>(command: &'a clap::Command, matches: &'a ArgMatches) -> (&'a clap::Command, &'a ArgMatches) {
    let next = matches.subcommand().and_then(|(name, inner)| Some((command.find_subcommand(name)?, inner)));
    next.map_or((command, matches), |(command, matches)| innermost(command, matches))
}

/// As a shell needs it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn again(line: &str) -> Again {
        let mut command = Cli::command();
        command.build();
        let matches = command.clone().try_get_matches_from(line.split(' ')).unwrap();
        Again::read(command, &matches)
    }

    fn next(line: &str, extra: &str) -> String {
        again(line).command("repair", &"shop".parse().unwrap(), &"web".parse().unwrap(), extra)
    }

    #[test]
    fn a_restore_goes_to_the_same_cluster() {
        let repair = again("gwrepair repair web --context prod --assume-dead --yes");
        assert_eq!(repair.restore(Path::new("a b.json")), "gwrepair restore 'a b.json' --context prod");
    }

    #[test]
    fn flags_that_matter_are_repeated_and_the_rest_is_not() {
        assert_eq!(
            next("gwrepair plan web --context prod -n shop -o json --stop-hooks", "--override-deployer"),
            "gwrepair repair web -n shop --stop-hooks --context prod --override-deployer"
        );
    }

    #[test]
    fn a_flag_is_replaced_by_the_one_that_is_proposed() {
        assert_eq!(
            next("gwrepair plan web --strategy finish", "--strategy rollback"),
            "gwrepair repair web -n shop --strategy rollback"
        );
    }

    #[test]
    fn words_that_a_shell_would_split_are_quoted() {
        assert_eq!(quoted("a b'c"), r"'a b'\''c'");
    }

    #[test]
    fn flags_that_the_next_command_does_not_know_are_left_out() {
        assert_eq!(next("gwrepair scan -A -v --deep", ""), "gwrepair repair web -n shop");
        assert_eq!(next("gwrepair status web --revision 3 --user me", ""), "gwrepair repair web -n shop --user me");
    }
}
