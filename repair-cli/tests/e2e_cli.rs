//! The program as an SRE runs it: releases that real Helm left stuck on the real control plane.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use testcluster::{Cluster, Fault, Helm, Namespace, Proxy, Ran, run, until};
use tokio::process::Command;

const HELMS: [Helm; 2] = [Helm::V3, Helm::V4];

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_killed_upgrade_is_found_explained_confirmed_and_repaired() {
    for helm in HELMS {
        let ns = namespace("cli").await;
        killed_upgrade(&ns, helm, "web").await;

        let scan = gwrepair(&ns, "scan").await;
        assert_eq!(scan.code, Some(3), "{scan:?}");
        assert!(scan.stdout.contains("in-progress"), "{scan:?}");

        let plan = gwrepair(&ns, "plan web").await;
        assert_eq!(plan.code, Some(4), "{plan:?}");
        let next = format!("gwrepair repair web -n {} --assume-dead", ns.name());
        assert!(plan.stdout.contains(&next), "{plan:?}");

        let unconfirmed = gwrepair(&ns, "repair web --assume-dead").await;
        assert_eq!(
            (unconfirmed.code, status(&ns, "web").await),
            (Some(2), "pending-upgrade".into()),
            "{unconfirmed:?}"
        );
        assert!(unconfirmed.stderr.contains("hint: --yes confirms beforehand"), "{unconfirmed:?}");

        let waiting = gwrepair(&ns, "repair web --yes").await;
        assert_eq!((waiting.code, status(&ns, "web").await), (Some(4), "pending-upgrade".into()), "{waiting:?}");

        let dry = gwrepair(&ns, "repair web --assume-dead --dry-run").await;
        assert_eq!((dry.code, status(&ns, "web").await), (Some(3), "pending-upgrade".into()), "{dry:?}");

        let repaired = json(&gwrepair(&ns, "repair web --assume-dead --yes -o json").await, 0);
        assert_eq!((&repaired["kind"], &repaired["outcome"]), (&"Report".into(), &"repaired".into()), "{repaired}");
        let again = json(&gwrepair(&ns, "repair web --yes -o json").await, 0);
        assert_eq!(again["outcome"], "nothing-to-do", "{again}");

        let quiet = gwrepair(&ns, "scan").await;
        assert_eq!((quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()), (Some(0), "", "no stuck releases\n"));
        run(ns.helm(helm).args(["upgrade", "web", &chart("plain")])).await.unwrap().ok().unwrap();
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn all_that_are_stuck_are_repaired_in_one_go() {
    let ns = namespace("all").await;
    killed_upgrade(&ns, Helm::V3, "one").await;
    let values = ["--set", "maps={c}"];
    run(ns.helm(Helm::V4).args(["install", "fine", &chart("feature")]).args(values)).await.unwrap();
    let dry = json(&gwrepair(&ns, "repair --all --assume-dead --dry-run -o json").await, 3);
    assert_eq!((&dry["kind"], dry["items"].as_array().map(Vec::len)), (&"PlanList".into(), Some(1)), "{dry}");
    let waiting = json(&gwrepair(&ns, "repair --all --yes -o json").await, 3);
    assert_eq!(waiting["items"][0]["outcome"], "waiting", "{waiting}");
    let report = json(&gwrepair(&ns, "repair --all --assume-dead --yes -o json").await, 0);
    assert_eq!(report["items"][0]["outcome"], "repaired", "{report}");
    assert_eq!(json(&gwrepair(&ns, "repair --all --yes -o json").await, 0)["items"].as_array().map(Vec::len), Some(0));
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_signal_stops_a_repair_and_leaves_its_record_closed() {
    let ns = namespace("int").await;
    let never = ["--set", "message=one,pod=never-ready,guarded=null"];
    run(ns.helm(Helm::V3).args(["install", "web", &chart("guarded")]).args(never)).await.unwrap().ok().unwrap();
    let mut upgrade = ns.helm(Helm::V3);
    upgrade.args(["upgrade", "web", &chart("guarded"), "--wait", "--set", "message=two,pod=never-ready,guarded=null"]);
    let mut helm = upgrade.stdout(Stdio::null()).spawn().unwrap();
    until("an upgrade that waits", async || {
        let found = ns.object("/apis/apps/v1", "deployments", "web").await?;
        let message = |value: &Value| value["spec"]["template"]["metadata"]["annotations"]["message"] == "two";
        Ok(found.filter(message))
    })
    .await
    .unwrap();
    helm.kill().await.unwrap();

    let mut repair = command(&ns, "repair web --assume-dead --yes --strategy rollback");
    let child = repair.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("a rollback that waits", async || Ok((status(&ns, "web").await == "pending-rollback").then_some(())))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let pid = child.id().unwrap().to_string();
    run(Command::new("kill").args(["-INT", &pid])).await.unwrap().ok().unwrap();
    let output = child.wait_with_output().await.unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{stdout}{stderr}");
    assert!(stderr.contains("stopping: what is under way ends cleanly"), "{stderr}");
    assert!(stdout.contains("is closed as failed"), "{stdout}");
    assert_eq!(status(&ns, "web").await, "failed");
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_missing_permission_is_named_with_the_role_that_grants_it() {
    let ns = namespace("role").await;
    run(ns.helm(Helm::V3).args(["install", "web", &chart("plain")])).await.unwrap().ok().unwrap();
    let identity = format!("--as system:serviceaccount:{}:nobody", ns.name());
    let ran = gwrepair(&ns, &format!("list {identity}")).await;
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let cause = format!("cause: this identity may not list secrets in namespace {}\n", ns.name());
    assert!(ran.stderr.contains(&cause), "{ran:?}");
    let rule = "rules:\n- apiGroups:\n  - \"\"\n  resources:\n  - secrets\n  verbs:\n  - list\n";
    assert!(ran.stderr.contains(rule) && ran.stderr.contains("  name: nobody\n"), "{ran:?}");
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_wrong_name_fails_where_it_is_read_and_is_nothing_to_do_where_it_is_repaired() {
    let ns = namespace("name").await;
    run(ns.helm(Helm::V4).args(["install", "payments", &chart("plain")])).await.unwrap().ok().unwrap();
    for line in ["status paymnets", "history paymnets", "inspect paymnets", "get values paymnets"] {
        let ran = gwrepair(&ns, line).await;
        assert_eq!(ran.code, Some(5), "{line}: {ran:?}");
        assert!(ran.stderr.contains("hint: did you mean payments?"), "{line}: {ran:?}");
    }
    for line in ["plan paymnets", "repair paymnets"] {
        assert_eq!(gwrepair(&ns, line).await.code, Some(0), "{line}");
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn what_helm_shows_is_shown_as_helm_shows_it() {
    let ns = namespace("same").await;
    run(ns.helm(Helm::V4).args(["install", "web", &chart("plain"), "--set", "message=one"]))
        .await
        .unwrap()
        .ok()
        .unwrap();
    for line in ["status web", "get manifest web", "get hooks web", "get notes web", "list", "history web"] {
        let ours = gwrepair(&ns, line).await.ok().unwrap();
        let theirs = run(ns.helm(Helm::V4).args(line.split(' '))).await.unwrap().ok().unwrap();
        // Helm adds the live objects to `status`, and pads its columns differently.
        let theirs = theirs.split("RESOURCES:").next().unwrap();
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (ours, theirs) = (words(&ours), words(theirs));
        assert_eq!(ours.get(..theirs.len()), Some(theirs.as_slice()), "{line}");
    }
}

async fn namespace(prefix: &str) -> Namespace {
    Cluster::shared().unwrap().namespace(prefix).await.unwrap()
}

fn chart(name: &str) -> String {
    format!("{}/../testdata/charts/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// An upgrade that died between two objects.
async fn killed_upgrade(ns: &Namespace, helm: Helm, name: &str) {
    run(ns.helm(helm).args(["install", name, &chart("plain"), "--set", "message=one"])).await.unwrap().ok().unwrap();
    let proxy = Proxy::start(ns).await.unwrap();
    proxy.at_write(3, Fault::KillBefore);
    let mut upgrade = ns.helm(helm);
    upgrade.args(["upgrade", name, &chart("plain"), "--set", "message=two"]).stdout(Stdio::null());
    let killed = proxy.run(&mut upgrade).await.unwrap();
    assert_eq!(killed.code, None, "{killed:?}");
}

fn command(ns: &Namespace, line: &str) -> Command {
    let mut command = ns.command(env!("CARGO_BIN_EXE_gwrepair").as_ref());
    command.args(line.split(' ')).args(["-n", ns.name()]);
    command
}

async fn gwrepair(ns: &Namespace, line: &str) -> Ran {
    run(&mut command(ns, line)).await.unwrap()
}

fn json(ran: &Ran, code: i32) -> Value {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

/// The newest record's status, by the program itself.
async fn status(ns: &Namespace, name: &str) -> String {
    let ran = gwrepair(ns, &format!("status {name} -o json")).await;
    json(&ran, 0)["status"].as_str().unwrap().to_owned()
}
