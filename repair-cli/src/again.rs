//! The exact next command: the flags of this invocation, and what a person may want to add.

use clap::{ArgMatches, parser::ValueSource};
use helm_release::release::{Namespace, ReleaseName};

/// Flags that are not carried over: they say how to show, or whom.
const LEFT_OUT: [&str; 13] = [
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
    "parallel",
    "deep",
    "watch",
];

/// The flags that this invocation was given, to be repeated.
#[derive(Debug, Clone, Default)]
pub(crate) struct Again(Vec<Flag>);

#[derive(Debug, Clone)]
struct Flag {
    long: String,
    values: Vec<String>,
}

impl Again {
    /// Reads them off the parsed command line.
    pub(crate) fn read(command: &clap::Command, matches: &ArgMatches) -> Self {
        let (command, matches) = innermost(command, matches);
        let flags = command.get_arguments().filter_map(|arg| {
            let id = arg.get_id().as_str();
            let given = matches.try_contains_id(id).is_ok_and(|has| has)
                && matches.value_source(id) == Some(ValueSource::CommandLine);
            let long = arg.get_long().filter(|_| given && !LEFT_OUT.contains(&id))?;
            let takes_value = arg.get_action().takes_values();
            let values = matches.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy().into_owned());
            Some(Flag { long: long.into(), values: values.filter(|_| takes_value).collect() })
        });
        Self(flags.collect())
    }

    /// `gwrepair VERB NAME -n NAMESPACE`, the flags given, and `extra`, which replaces a flag of the same name.
    pub(crate) fn command(&self, verb: &str, namespace: &Namespace, name: &ReleaseName, extra: &str) -> String {
        let replaced = extra.split(' ').next().unwrap_or_default().trim_start_matches("--");
        let kept = self.0.iter().filter(|flag| flag.long != replaced);
        let mut words = format!("gwrepair {verb} {name} -n {namespace}");
        for word in kept.flat_map(Flag::words).chain(Some(extra.to_owned()).filter(|extra| !extra.is_empty())) {
            words.push(' ');
            words.push_str(&word);
        }
        words
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

    fn next(line: &str, extra: &str) -> String {
        // Built, so that subcommands know the global flags.
        let mut command = Cli::command();
        command.build();
        let matches = command.clone().try_get_matches_from(line.split(' ')).unwrap();
        Again::read(&command, &matches).command("repair", &"shop".parse().unwrap(), &"web".parse().unwrap(), extra)
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
        assert_eq!(next("gwrepair scan -A -v", ""), "gwrepair repair web -n shop");
    }
}
