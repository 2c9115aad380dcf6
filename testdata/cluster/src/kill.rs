//! A command that is killed at one of its writes.

use anyhow::{Context, Result, ensure};
use testcluster::{Cluster, Fault, Proxy};
use tokio::process::Command;

/// Runs a command against the control plane of this run, and kills it when it sends its `write`-th write.
pub(crate) async fn at_write(write: usize, command: &[String]) -> Result<()> {
    let (program, arguments) = command.split_first().context("no command")?;
    let proxy = Proxy::start_over(&Cluster::shared()?).await?;
    let killed = proxy.at_write(write, Fault::KillBefore);
    let status = proxy.spawn(Command::new(program).args(arguments))?.wait().await?;
    let writes = proxy.counts().writes();
    ensure!(killed.is_reached(), "not killed: {program} ended after {writes} writes, {status}");
    Ok(())
}
