//! The Role that is printed for a missing permission is proven by applying it: then the command works.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::process::Stdio;

use testcluster::{Account, Cluster, Fault, Helm, Namespace, Proxy, Ran, run, until};

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_account_without_any_right_gets_from_plan_to_repair_by_the_roles_that_are_printed() {
    for helm in [Helm::V3, Helm::V4] {
        let ns = Cluster::shared().unwrap().namespace("role").await.unwrap();
        wedge(&ns, helm).await;
        let account = stranger(&ns).await;
        let mut roles = Vec::new();
        let planned = loop {
            let ran = changed(&ns, &account, "plan web --assume-dead", roles.last()).await;
            let Some(role) = printed(&ran) else { break ran };
            reconcile(&ns, &role).await;
            roles.push(role);
        };
        assert_eq!(planned.code, Some(3), "{planned:?}");
        // The records, every kind of object at once, and every write at once.
        assert_eq!(roles.len(), 3, "{roles:#?}");
        assert!(roles[1].contains("- configmaps\n  - persistentvolumeclaims\n  verbs:\n  - get\n"), "{}", roles[1]);
        for verb in ["create", "update", "patch", "delete"] {
            assert!(roles[2].contains(&format!("  - {verb}\n")), "{verb}: {}", roles[2]);
        }
        for kind in ["kind: Role\n", "kind: RoleBinding\n"] {
            assert!(
                roles.iter().all(|role| role.lines().filter(|line| *line == kind.trim()).count() == 1),
                "{roles:#?}"
            );
        }
        let repaired = gwrepair(&ns, &account, "repair web --assume-dead --yes").await;
        assert_eq!(repaired.code, Some(0), "{repaired:?}");
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn doctor_shows_who_lacks_what_and_is_content_once_it_is_granted() {
    let ns = Cluster::shared().unwrap().namespace("doctor").await.unwrap();
    let account = stranger(&ns).await;
    let read = gwrepair(&ns, &account, "doctor").await;
    reconcile(&ns, &printed(&read).unwrap()).await;
    let sick = changed(&ns, &account, "doctor", printed(&read).as_ref()).await;
    assert_eq!(sick.code, Some(5), "{sick:?}");
    assert!(sick.stdout.contains(&format!("system:serviceaccount:{}:stranger", ns.name())), "{sick:?}");
    reconcile(&ns, &printed(&sick).unwrap()).await;
    let well = changed(&ns, &account, "doctor", printed(&sick).as_ref()).await;
    assert_eq!((well.code, printed(&well)), (Some(0), None), "{well:?}");
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn what_is_missing_in_all_namespaces_is_granted_by_a_cluster_role() {
    let ns = Cluster::shared().unwrap().namespace("everywhere").await.unwrap();
    let account = stranger(&ns).await;
    let refused = gwrepair(&ns, &account, "list -A").await;
    assert_eq!(refused.code, Some(5), "{refused:?}");
    let role = printed(&refused).unwrap();
    assert!(role.contains("kind: ClusterRole\n") && role.contains("kind: ClusterRoleBinding\n"), "{role}");
    reconcile(&ns, &role).await;
    let allowed = changed(&ns, &account, "list -A", Some(&role)).await;
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
}

/// An upgrade that changes an object, adds one and would drop one, killed before its prune.
async fn wedge(ns: &Namespace, helm: Helm) {
    let chart = format!("{}/../testdata/charts/plain", env!("CARGO_MANIFEST_DIR"));
    run(ns.helm(helm).args(["install", "web", &chart, "--set", "message=one"])).await.unwrap().ok().unwrap();
    let proxy = Proxy::start(ns).await.unwrap();
    proxy.at_match(http::Method::PATCH, "persistentvolumeclaims", 1, Fault::KillBefore);
    let mut upgrade = ns.helm(helm);
    upgrade.args(["upgrade", "web", &chart, "--set", "message=two,maps={a,d}"]).stdout(Stdio::null());
    assert_eq!(proxy.run(&mut upgrade).await.unwrap().code, None);
}

/// An account that may do no more than everybody.
async fn stranger(ns: &Namespace) -> Account {
    ns.account("stranger", "system:discovery").await.unwrap()
}

/// Runs a command until it no longer asks for what `granted` grants: the server takes a moment to see a new Role.
async fn changed(ns: &Namespace, account: &Account, line: &str, granted: Option<&String>) -> Ran {
    until("a Role that counts", async || {
        let ran = gwrepair(ns, account, line).await;
        Ok((granted.is_none() || printed(&ran).as_ref() != granted).then_some(ran))
    })
    .await
    .unwrap()
}

/// What is to be applied, as it stands between empty lines.
fn printed(ran: &Ran) -> Option<String> {
    let text = format!("{}{}", ran.stdout, ran.stderr);
    let from = text.find("apiVersion: rbac.authorization.k8s.io/v1\n")?;
    let role = text[from..].split("\n\n").next()?;
    Some(format!("{}\n", role.trim_end()))
}

async fn reconcile(ns: &Namespace, role: &str) {
    let file = ns.dir().join("role.yaml");
    std::fs::write(&file, role).unwrap();
    run(ns.kubectl().args(["auth", "reconcile", "-f"]).arg(&file)).await.unwrap().ok().unwrap();
}

async fn gwrepair(ns: &Namespace, account: &Account, line: &str) -> Ran {
    let mut command = ns.command(Path::new(env!("CARGO_BIN_EXE_gwrepair")));
    command.args(line.split(' ')).args(["-n", ns.name(), "--kubeconfig"]).arg(&account.kubeconfig);
    run(&mut command).await.unwrap()
}
