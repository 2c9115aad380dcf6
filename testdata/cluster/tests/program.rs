//! The life and the end of `testcluster` itself.
//!
//! These start control planes of their own.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Stdio,
};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use testcluster::{Cluster, Helm, KUBECONFIG_VARIABLE, Ran, run, until};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

#[tokio::test]
async fn without_a_control_plane_a_test_is_told_how_to_get_one() {
    if std::env::var_os(KUBECONFIG_VARIABLE).is_none() {
        assert!(Cluster::shared().unwrap_err().to_string().contains("make test"));
    }
}

#[tokio::test]
async fn without_go_or_with_an_old_one_the_build_names_the_command_that_helps() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let found = run(Command::new("which").args(["bash", "dirname", "realpath", "sed", "sort", "head"])).await?.ok()?;
    for tool in found.lines().map(Path::new) {
        symlink(tool, dir.path().join(tool.file_name().context("no name")?))?;
    }
    let complaint = async || {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/build.sh");
        let ran = run(Command::new("bash").args([script, "nowhere"]).env("PATH", dir.path())).await?;
        assert_eq!(ran.code, Some(1));
        anyhow::Ok(ran.stderr)
    };
    assert!(complaint().await?.contains("apt-get install -y golang-go"));
    for old in ["#!/bin/sh\necho go1.19", "#!/bin/sh\nexit 1"] {
        let go = dir.path().join("go");
        fs::write(&go, old)?;
        fs::set_permissions(&go, fs::Permissions::from_mode(0o755))?;
        assert!(complaint().await?.contains("go env -w GOTOOLCHAIN=auto"));
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn the_exit_code_of_the_command_is_passed_on() -> Result<()> {
    assert_eq!(shell("exit 7").await?.code, Some(7));
    assert_eq!(shell("kill -9 $$").await?.code, Some(137));
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_command_is_killed_at_the_write_that_is_named() -> Result<()> {
    let namespace = Cluster::shared()?.namespace("kill").await?;
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/plain");
    let killed = async |write: &str, name: &str| {
        let mut command = namespace.command(Path::new(env!("CARGO_BIN_EXE_testcluster")));
        command.args(["kill", write]).arg(namespace.helm(Helm::V3).as_std().get_program());
        run(command.args(["install", name, chart, "-n", namespace.name()])).await
    };
    killed("2", "web").await?.ok()?;
    let records = namespace.objects("/api/v1", "secrets").await?;
    let labels: Vec<_> = records.iter().map(|record| record["metadata"]["labels"]["status"].as_str()).collect();
    assert_eq!(labels, [Some("pending-install")]);
    assert!(namespace.object("/api/v1", "configmaps", "a").await?.is_none());
    assert!(killed("99", "other").await?.stderr.contains("not killed"));
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn nothing_is_left_when_the_command_ends() -> Result<()> {
    let ran = shell(PRINT_PROCESSES).await?;
    let processes = ran.ok()?.lines().map(pid).collect::<Result<Vec<_>>>()?;
    assert_eq!(processes.len(), 5);
    assert!(processes.iter().all(|pid| !alive(*pid)));
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn nothing_is_left_whatever_signal_ends_it() -> Result<()> {
    for (signal, code) in [(Signal::KILL, None), (Signal::TERM, Some(143)), (Signal::INT, Some(130))] {
        let (mut program, processes) = started().await?;
        let own = Pid::from_raw(i32::try_from(program.id().context("ended")?)?).context("no process")?;
        kill_process(own, signal)?;
        assert_eq!(program.wait().await?.code(), code);
        until("the end of every process", async || Ok(processes.iter().all(|pid| !alive(*pid)).then_some(()))).await?;
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn up_leaves_it_running_and_down_ends_it() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let verb = async |verb: &str| run(program().arg(verb).arg(dir.path())).await;
    let kubeconfig = verb("up").await?.ok()?;
    let cluster = Cluster::open(Path::new(kubeconfig.trim()))?;
    assert!(cluster.get("/api/v1/nodes/node").await?.is_some());
    assert_eq!(verb("up").await?.code, Some(1));
    verb("down").await?.ok()?;
    assert!(cluster.get("/api/v1/nodes/node").await.is_err());
    assert!(verb("down").await?.stderr.contains("no control plane is running"));
    Ok(())
}

/// The processes of the control plane: their program's arguments name its folder.
const PRINT_PROCESSES: &str = r#"
    dir=$(dirname "$TESTCLUSTER_KUBECONFIG")
    for process in /proc/[0-9]*; do
        case $(readlink "$process/exe") in
            "$TESTCLUSTER_DIR"/*) tr '\0' ' ' < "$process/cmdline" | grep -q "$dir" && basename "$process" ;;
        esac
    done
    true
"#;

/// A running `testcluster`, and the processes of its control plane and its command.
async fn started() -> Result<(Child, Vec<Pid>)> {
    let script = format!("{PRINT_PROCESSES}\necho $$; echo; exec tail -f /dev/null > /dev/null");
    let mut program = program().args(["run", "--", "bash", "-c", &script]).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(program.stdout.take().context("no output")?).lines();
    let mut processes = Vec::new();
    while let Some(line) = lines.next_line().await?.filter(|line| !line.is_empty()) {
        processes.push(pid(&line)?);
    }
    assert_eq!(processes.len(), 6);
    Ok((program, processes))
}

fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_testcluster"));
    program.stdin(Stdio::null());
    program
}

async fn shell(script: &str) -> Result<Ran> {
    run(program().args(["run", "--", "bash", "-c", script])).await
}

fn pid(line: &str) -> Result<Pid> {
    Pid::from_raw(line.trim().parse()?).context("no process")
}

/// Whether the process runs. One that ended and that nobody has asked about yet does not.
fn alive(pid: Pid) -> bool {
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    test_kill_process(pid).is_ok() && state.is_ok_and(|state| !state.contains(") Z "))
}
