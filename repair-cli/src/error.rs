//! A failure as a person reads it: what was attempted, the cause once, the way out. And the exit codes.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use helm_release::action;
use helm_release::cluster::{Cause, Permission};

use crate::grant::{self, Grant};
use crate::output::Emphasis;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Done, or nothing to do.
    Done,
    /// Wrong usage, or a confirmation was needed and there is no terminal.
    Usage,
    /// Stuck releases exist, a repair is due, or some remain.
    Due,
    /// Refused or waiting: a decision or a consent is missing.
    Refused,
    /// Failed.
    Failed,
    /// Interrupted by a signal.
    Interrupted,
}

/// Why a command could not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    attempt: String,
    cause: Option<String>,
    hints: Vec<String>,
    /// What would grant it, where a permission is missing.
    grant: Option<Box<Grant>>,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Usage => 2,
            Self::Due => 3,
            Self::Refused => 4,
            Self::Failed => 5,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl Failure {
    pub(crate) fn new(attempt: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, attempt: attempt.into(), cause: None, hints: Vec::new(), grant: None }
    }

    pub(crate) fn usage(attempt: impl Into<String>) -> Self {
        Self::new(attempt).exit(Exit::Usage)
    }

    pub(crate) fn exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    pub(crate) fn because(self, cause: &(dyn StdError + 'static)) -> Self {
        self.cause(causes(cause))
    }

    pub(crate) fn cause(self, cause: impl Into<String>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Permissions that are missing.
    fn lacking(self, missing: Vec<Permission>) -> Self {
        Self { grant: Some(Box::new(Grant::new(missing, None))), ..self }
    }

    /// Whether it helps to know who this identity is.
    pub(crate) fn is_of_identity(&self) -> bool {
        self.grant.is_some()
    }

    /// What is missing is to be granted to `identity`.
    pub(crate) fn of_identity(self, identity: Option<String>) -> Self {
        Self { grant: self.grant.map(|grant| Box::new(grant.to(identity))), ..self }
    }

    /// A failure of the library, with the way out that its kind calls for.
    pub(crate) fn action(error: &action::Error, server: &str) -> Self {
        let mut failure = Self::new(error.to_string());
        if let Some(source) = error.source() {
            failure = failure.because(source);
        }
        if let action::Error::NotReady(_) | action::Error::NotGone(_) = error {
            failure =
                failure.hint("--timeout waits longer; --no-wait does not wait, and what is applied stays applied");
        }
        if let action::Error::Keep(_) = error {
            failure = failure.hint("--backup-dir DIR keeps it elsewhere; --no-backup goes on without");
        }
        if let action::Error::Unkept(_) = error {
            failure = failure.hint("repair without --no-backup: the backup keeps it");
        }
        match error.request().map(|request| &request.cause) {
            Some(Cause::Forbidden { verb, resource, namespace, .. }) => {
                let refused = grant::permission(verb, resource, namespace);
                let all = error.missing().iter().cloned().chain([refused.clone()]).collect();
                failure.cause(grant::sentence(&refused)).lacking(all)
            }
            Some(Cause::Refused { code: 401, .. }) => {
                failure.hint("the server does not know this identity: log in anew, or name another --context or --user")
            }
            Some(Cause::Unreachable(_)) => {
                failure.hint(format!("is the API server at {server} up, and reachable from here?"))
            }
            Some(_) | None => failure,
        }
    }

    /// Attempt and cause, for a column.
    pub(crate) fn line(&self) -> String {
        match &self.cause {
            Some(cause) => format!("{}: {cause}", self.attempt),
            None => self.attempt.clone(),
        }
    }

    /// The text for stderr, styled.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{} {}\n", Emphasis::Bad.paint("error:"), self.attempt);
        let cause = self.cause.iter().map(|cause| ("cause:", cause.clone()));
        let hints = self.hints.iter().cloned().chain(self.grant.as_ref().map(|grant| grant.hint()));
        for (label, line) in cause.chain(hints.map(|hint| ("hint:", hint))) {
            let _ = writeln!(text, "{} {line}", Emphasis::Strong.paint(label));
        }
        if let Some(grant) = &self.grant {
            let _ = write!(text, "\n{}", grant.yaml());
        }
        text
    }
}

/// The chain of causes as one line. A text that only repeats its own source is left out.
pub(crate) fn causes(error: &(dyn StdError + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |&error| error.source());
    let mut texts: Vec<String> = Vec::new();
    for text in chain.map(ToString::to_string) {
        if texts.last().is_some_and(|before| before.ends_with(&text)) {
            texts.pop();
        }
        texts.push(text);
    }
    texts.join(": ")
}

/// Failures of writing to stdout. A reader that went away has seen enough: no failure.
pub(crate) fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new("could not write the output").because(&error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Self>>);

    impl std::fmt::Display for Layer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
    }

    impl StdError for Layer {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            self.1.as_deref().map(|layer| layer as _)
        }
    }

    #[test]
    fn a_cause_is_printed_once_even_where_every_layer_repeats_it() {
        let chain = Layer("a: b: c", Some(Box::new(Layer("b: c", Some(Box::new(Layer("c", None)))))));
        assert_eq!(causes(&chain), "c");
        let chain = Layer("outer", Some(Box::new(Layer("inner", None))));
        assert_eq!(causes(&chain), "outer: inner");
    }

    #[test]
    fn every_exit_code_is_the_documented_one() {
        let all = [Exit::Done, Exit::Usage, Exit::Due, Exit::Refused, Exit::Failed, Exit::Interrupted];
        assert_eq!(all.map(Exit::code), [0, 2, 3, 4, 5, 130]);
    }

    #[test]
    fn a_failure_reads_attempt_cause_hints() {
        let failure = Failure::new("could not do it").cause("it is broken").hint("gwrepair mend").hint("or wait");
        let plain = anstream::adapter::strip_str(&failure.text()).to_string();
        assert_eq!(plain, "error: could not do it\ncause: it is broken\nhint: gwrepair mend\nhint: or wait\n");
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        assert!(written(Err(io::ErrorKind::BrokenPipe.into())).is_ok());
        assert!(written(Err(io::ErrorKind::StorageFull.into())).is_err());
    }
}
