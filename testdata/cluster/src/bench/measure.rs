//! One run of a command: how long it took, and how much memory it used at most.

use std::{
    env, fs,
    path::Path,
    process::{ExitCode, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::process::Command;
use wait4::Wait4;

/// What one run took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// From start to end, in seconds.
    pub(super) seconds: f64,
    /// The largest resident set, in bytes.
    pub(super) peak: f64,
}

/// Runs a command and says in the file `report` what it took: the other end of [`taken`].
///
/// The kernel counts a child's memory from that of the process that starts it, which therefore has to be a small one.
pub(crate) fn measure(report: &Path, command: &[String]) -> Result<ExitCode> {
    let (program, arguments) = command.split_first().context("no command")?;
    let began = Instant::now();
    let mut child = std::process::Command::new(program).args(arguments).spawn()?;
    let used = child.wait4()?;
    let seconds = began.elapsed().as_secs_f64();
    let said = json!({ "seconds": seconds, "peak": used.rusage.maxrss, "code": used.status.code() });
    fs::write(report, said.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a command to its end and measures it; it has to end with the exit code `code`.
pub(super) async fn taken(command: &Command, code: i32) -> Result<Taken> {
    let (command, report) = (command.as_std(), NamedTempFile::new()?);
    let mut measured = Command::new(env::current_exe()?);
    measured.arg("measure").arg(report.path()).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => measured.env(name, value),
            None => measured.env_remove(name),
        };
    }
    let output = measured.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true).output().await?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "could not run {command:?}: {stderr}");
    let said: Value = serde_json::from_slice(&fs::read(report.path())?)?;
    ensure!(said["code"] == code, "{command:?} ended with {}, not {code}: {stderr}", said["code"]);
    let number = |name: &str| said[name].as_f64().context("not measured");
    Ok(Taken { seconds: number("seconds")?, peak: number("peak")? })
}
