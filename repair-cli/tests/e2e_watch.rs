//! `scan --watch` while real Helm is killed, and repaired.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use testcluster::{Cluster, Fault, Helm, Namespace, Proxy, Ran, run};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// A watch at work.
struct Watch {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watch {
    fn start(ns: &Namespace, line: &str) -> Self {
        let mut child = command(ns, line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next line that holds all of `words`.
    async fn line(&mut self, words: &[&str]) -> String {
        let mut seen = Vec::new();
        let find = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if words.iter().all(|word| line.contains(word)) {
                    return line;
                }
                seen.push(line);
            }
            panic!("the watch ended after {seen:#?}");
        };
        let found = tokio::time::timeout(Duration::from_secs(60), find).await;
        found.unwrap_or_else(|_| panic!("no line with {words:?}"))
    }

    /// The exit code once it is told to stop.
    async fn stop(mut self) -> Option<i32> {
        run(Command::new("kill").args(["-INT", &self.child.id().unwrap().to_string()])).await.unwrap().ok().unwrap();
        self.child.wait().await.unwrap().code()
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_release_that_gets_stuck_and_is_repaired_is_a_line_each() {
    for (helm, line) in [(Helm::V3, "scan --watch"), (Helm::V4, "scan --watch --deep")] {
        let ns = namespace().await;
        install(&ns, helm, "web").await;
        let mut watch = Watch::start(&ns, line);
        watch.line(&["NAMESPACE", "NAME", "STATUS"]).await;
        wedge(&ns, helm, "web").await;
        watch.line(&[ns.name(), "web", "2", "pending-upgrade", "in-progress", "wait until"]).await;
        let repaired = gwrepair(&ns, "repair web --assume-dead --yes").await;
        assert_eq!(repaired.code, Some(0), "{repaired:?}");
        let freed = watch.line(&[ns.name(), "web", "freed"]).await;
        assert!(!freed.contains("pending"), "{freed}");
        assert_eq!(watch.stop().await, Some(130));
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn json_is_one_document_a_line_for_what_was_stuck_before_too() {
    let ns = namespace().await;
    install(&ns, Helm::V4, "web").await;
    wedge(&ns, Helm::V4, "web").await;
    let mut watch = Watch::start(&ns, "scan --watch -o json");
    let stuck: Value = serde_json::from_str(&watch.line(&[]).await).unwrap();
    assert_eq!(
        (&stuck["kind"], &stuck["event"], &stuck["name"]),
        (&"ScanEvent".into(), &"stuck".into(), &"web".into())
    );
    assert_eq!(stuck["apiVersion"], "gwrepair/v1");
    // Another release that is only installed is no news; that this one goes is.
    install(&ns, Helm::V3, "other").await;
    run(ns.helm(Helm::V3).args(["uninstall", "web"])).await.unwrap().ok().unwrap();
    let next: Value = serde_json::from_str(&watch.line(&["\"freed\""]).await).unwrap();
    assert_eq!((&next["name"], &next["state"]), (&"web".into(), &"gone".into()), "{next}");
    assert_eq!(watch.stop().await, Some(130));
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn with_all_every_release_is_followed() {
    let ns = namespace().await;
    install(&ns, Helm::V3, "old").await;
    let mut watch = Watch::start(&ns, "scan --watch --all");
    watch.line(&["old", "deployed", "healthy"]).await;
    install(&ns, Helm::V4, "new").await;
    watch.line(&["new", "deployed"]).await;
    assert_eq!(watch.stop().await, Some(130));
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_watch_that_nobody_reads_ends() {
    let ns = namespace().await;
    install(&ns, Helm::V3, "web").await;
    let mut watch = Watch::start(&ns, "scan --watch -o name");
    drop(watch.lines);
    wedge(&ns, Helm::V3, "web").await;
    let ended = tokio::time::timeout(Duration::from_secs(60), watch.child.wait()).await.unwrap().unwrap();
    assert_eq!(ended.code(), Some(0));
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn who_may_list_and_not_watch_is_told_which_role_lets_him() {
    let ns = namespace().await;
    let rule = serde_json::json!({"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get", "list"]});
    let role = serde_json::json!({"metadata": {"name": format!("lister-{}", ns.name())}, "rules": [rule]});
    ns.cluster().create("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await.unwrap();
    let account = ns.account("lister", &format!("lister-{}", ns.name())).await.unwrap();
    let ran = run(command(&ns, "scan --watch --kubeconfig").arg(&account.kubeconfig)).await.unwrap();
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let cause = format!("cause: this identity may not watch secrets in namespace {}\n", ns.name());
    assert!(ran.stderr.contains(&cause) && ran.stderr.contains("  verbs:\n  - watch\n"), "{ran:?}");
}

async fn namespace() -> Namespace {
    Cluster::shared().unwrap().namespace("watch").await.unwrap()
}

fn chart() -> String {
    format!("{}/../testdata/charts/feature", env!("CARGO_MANIFEST_DIR"))
}

/// Its objects carry the name of the release.
async fn install(ns: &Namespace, helm: Helm, name: &str) {
    run(ns.helm(helm).args(["install", name, &chart(), "--set", "message=one,side.enabled=false"]))
        .await
        .unwrap()
        .ok()
        .unwrap();
}

/// An upgrade that died between two objects.
async fn wedge(ns: &Namespace, helm: Helm, name: &str) {
    let proxy = Proxy::start(ns).await.unwrap();
    proxy.at_write(3, Fault::KillBefore);
    let mut upgrade = ns.helm(helm);
    upgrade.args(["upgrade", name, &chart(), "--set", "message=two,side.enabled=false"]).stdout(Stdio::null());
    assert_eq!(proxy.run(&mut upgrade).await.unwrap().code, None);
}

/// The line's own arguments come last, so that a flag may wait for its value.
fn command(ns: &Namespace, line: &str) -> Command {
    let mut command = ns.command(env!("CARGO_BIN_EXE_gwrepair").as_ref());
    let (verb, rest) = line.split_once(' ').unwrap();
    command.args([verb, "-n", ns.name()]).args(rest.split(' '));
    command
}

async fn gwrepair(ns: &Namespace, line: &str) -> Ran {
    run(&mut command(ns, line)).await.unwrap()
}
