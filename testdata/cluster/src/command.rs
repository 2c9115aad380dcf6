//! Commands and what became of them.

use std::process::{Output, Stdio};

use anyhow::{Result, bail};
use tokio::process::Command;

/// Which Helm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helm {
    /// The pinned Helm 3.
    V3,
    /// The pinned Helm 4.
    V4,
}

impl Helm {
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::V3 => "helm3",
            Self::V4 => "helm4",
        }
    }
}

/// What a command left: its exit code, or none if a signal ended it, and its output.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The exit code; none if a signal ended the command.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Ran {
    /// The standard output of a command that succeeded.
    ///
    /// # Errors
    /// The command failed; the message holds its exit code and its output.
    pub fn ok(self) -> Result<String> {
        match self.code {
            Some(0) => Ok(self.stdout),
            code => bail!("exit code {code:?}\n{}{}", self.stdout, self.stderr),
        }
    }
}

/// Runs a command to its end. Its standard input is empty.
///
/// # Errors
/// The command could not be started. A command that fails is no error here: see [`Ran::ok`].
pub async fn run(command: &mut Command) -> Result<Ran> {
    Ok(ran(command.stdin(Stdio::null()).output().await?))
}

pub(crate) fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
