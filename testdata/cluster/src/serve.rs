//! The life of a control plane: for as long as a command, or until told to stop.

use std::{
    env,
    fs::{self, File},
    future,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{ExitCode, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use testcluster::{ControlPlane, DIR_VARIABLE, KUBECONFIG_VARIABLE, Programs, until};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    process::{Child, Command},
    select,
    signal::unix::{SignalKind, signal},
    time::timeout,
};

/// How long a command may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a command against a control plane of its own and returns the command's exit code.
pub(crate) async fn run(command: &[String]) -> Result<ExitCode> {
    let programs = Programs::build()?;
    let (dir, _lock) = workplace(&programs)?;
    let guard = env::current_exe()?;
    let plane = select! {
        plane = ControlPlane::start(dir.path(), &guard) => plane?,
        signal = ended() => return Ok(ExitCode::from(128 + signal)),
    };
    run_in(dir.path(), plane, &programs, command).await.map(ExitCode::from)
}

/// A folder for this run, locked for as long as it lives. Those of runs that were killed are removed.
fn workplace(programs: &Programs) -> Result<(TempDir, File)> {
    let runs = programs.dir().with_file_name("runs");
    fs::create_dir_all(&runs)?;
    for run in runs.read_dir()? {
        let run = run?.path();
        if File::open(run.join("lock")).is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(&run); // another run may be at it, too
        }
    }
    let dir = TempDir::new_in(runs)?;
    // The lock comes into its place locked: a run that starts now must not take this one for dead.
    let new = dir.path().join("lock.new");
    let lock = File::create(&new)?;
    lock.lock()?;
    fs::rename(new, dir.path().join("lock"))?;
    Ok((dir, lock))
}

async fn run_in(dir: &Path, mut plane: ControlPlane, programs: &Programs, command: &[String]) -> Result<u8> {
    let (program, arguments) = command.split_first().context("no command")?;
    let mut child = Command::new(env::current_exe()?)
        .args(["guard", &std::process::id().to_string(), program])
        .args(arguments)
        .env(KUBECONFIG_VARIABLE, plane.cluster().kubeconfig())
        .env(DIR_VARIABLE, programs.dir())
        .spawn()?;
    let code = select! {
        status = child.wait() => Ok(exit_code(status?)),
        signal = ended() => end(&mut child).await.map(|()| 128 + signal),
        name = plane.failure() => {
            end(&mut child).await?;
            Err(anyhow::anyhow!("{name} ended; {}", tail(dir, name)))
        }
    };
    plane.stop().await?;
    code
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn tail(dir: &Path, name: &str) -> String {
    let log = fs::read_to_string(dir.join(format!("{name}.log"))).unwrap_or_default();
    let lines: Vec<_> = log.lines().rev().take(5).collect();
    format!("its last lines:\n{}", lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
}

/// Asks the command to end, and insists when it takes too long.
async fn end(child: &mut Child) -> Result<()> {
    if let Some(pid) = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
        let _ = kill_process(pid, Signal::TERM); // it may be ending by itself
    }
    if timeout(PATIENCE, child.wait()).await.is_err() {
        child.kill().await?;
    }
    Ok(())
}

/// Ends when this process is asked to end, with the number of the signal.
async fn ended() -> u8 {
    let one = |kind: SignalKind, number| async move {
        match signal(kind) {
            Ok(mut signals) => signals.recv().await,
            Err(_) => future::pending().await,
        };
        number
    };
    select! {
        number = one(SignalKind::interrupt(), 2) => number,
        number = one(SignalKind::terminate(), 15) => number,
        number = one(SignalKind::hangup(), 1) => number,
    }
}

/// Runs a control plane in `dir` until this process is asked to end, by a signal or by [`down`].
pub(crate) async fn serve(dir: &Path) -> Result<()> {
    Programs::build()?;
    let door = clear(dir).await?;
    let mut plane = ControlPlane::start(dir, &env::current_exe()?).await?;
    let listener = UnixListener::bind(&door)?;
    let caller = select! {
        caller = asked(&listener) => Some(caller?),
        _ = ended() => None,
        name = plane.failure() => bail!("{name} ended; {}", tail(dir, name)),
    };
    plane.stop().await?;
    fs::remove_file(&door)?;
    drop(caller); // tells `down` that all is over
    Ok(())
}

/// Makes the folder ready for a start; returns the path of its socket.
async fn clear(dir: &Path) -> Result<PathBuf> {
    fs::create_dir_all(dir)?;
    let door = door(dir);
    if UnixStream::connect(&door).await.is_ok() {
        bail!("a control plane is running in {}", dir.display());
    }
    let _ = fs::remove_file(&door); // one that was killed left it
    Ok(door)
}

/// Waits for a caller that says a word; one that only knocks wants to know whether somebody is there.
async fn asked(listener: &UnixListener) -> Result<UnixStream> {
    loop {
        let (mut caller, _) = listener.accept().await?;
        if caller.read_u8().await.is_ok() {
            return Ok(caller);
        }
    }
}

/// The socket that `down` knocks at. It is there when the control plane is ready.
fn door(dir: &Path) -> PathBuf {
    dir.join("down.sock")
}

/// Starts [`serve`] in the background and returns the kubeconfig when the control plane is ready.
pub(crate) async fn up(dir: &Path) -> Result<PathBuf> {
    Programs::build()?;
    clear(dir).await?;
    let log = File::create(dir.join("serve.log"))?;
    let mut child = Command::new(env::current_exe()?)
        .arg("serve")
        .arg(dir)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn()?;
    until("the control plane", async || {
        if child.try_wait()?.is_some() {
            bail!("the control plane ended; {}", tail(dir, "serve"));
        }
        Ok(door(dir).exists().then_some(()))
    })
    .await?;
    Ok(dir.join("kubeconfig").canonicalize()?)
}

/// Stops the control plane of `dir`; returns when it has ended.
pub(crate) async fn down(dir: &Path) -> Result<()> {
    let stream = UnixStream::connect(door(dir)).await;
    let mut stream = stream.with_context(|| format!("no control plane is running in {}", dir.display()))?;
    stream.write_u8(0).await?;
    stream.read_to_end(&mut Vec::new()).await?;
    Ok(())
}
