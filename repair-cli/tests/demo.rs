//! The demo needs nothing but the program, and ends as it says.

use std::process::Stdio;

use tempfile::TempDir;
use testcluster::{Ran, run};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

/// Without kubeconfig, and with a home of its own.
fn gwrepair(home: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gwrepair"));
    command.env_remove("KUBECONFIG").env("HOME", home.path()).env("TMPDIR", home.path()).kill_on_drop(true);
    command
}

#[tokio::test]
async fn the_demo_finds_explains_and_repairs_four_releases() {
    let home = TempDir::new().unwrap();
    let Ran { code, stdout, stderr } = run(gwrepair(&home).arg("demo")).await.unwrap();
    assert_eq!(code, Some(0), "{stderr}");
    for line in [
        "$ gwrepair scan -A",
        "Repair would roll back to revision 1:",
        "  - configmap/d: our marks, and only listed by revisions that are gone back from",
        "cart        web    repaired   pending-install   -          2/2",
        "crm         db     repaired   pending-install   failed     1/1",
        "pay         api    repaired   pending-upgrade   deployed   2/2",
        "shop        web    repaired   pending-upgrade   deployed   7/7",
        "Rollback to 1",
        "Release web in namespace shop is restored.",
        "  - record 2: it said pending-upgrade, and no record is locked again: it stays failed",
    ] {
        assert!(stdout.contains(line), "no {line:?} in\n{stdout}");
    }
    assert!(stderr.contains("no stuck releases"), "{stderr}");
    let left: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[tokio::test]
async fn what_the_demo_keeps_can_be_played_with_until_it_is_stopped() {
    let home = TempDir::new().unwrap();
    let mut demo =
        gwrepair(&home).args(["demo", "--keep"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stderr.take().unwrap()).lines();
    let kubeconfig = loop {
        let line = lines.next_line().await.unwrap().expect("no kubeconfig was printed");
        if let Some((_, path)) = line.split_once("export KUBECONFIG=") {
            break path.to_owned();
        }
    };
    let scan = run(gwrepair(&home).args(["scan", "-A", "-o", "name"]).env("KUBECONFIG", &kubeconfig)).await.unwrap();
    assert_eq!(
        (scan.code, scan.stdout.as_str()),
        (Some(3), "cart/web\ncrm/db\npay/api\nshop/web\n"),
        "{}",
        scan.stderr
    );
    let pid = rustix::process::Pid::from_raw(demo.id().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(demo.wait().await.unwrap().code(), Some(0));
    assert!(!std::path::Path::new(&kubeconfig).exists());
}
