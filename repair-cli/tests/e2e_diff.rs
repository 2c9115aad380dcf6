//! What differs between revisions that real Helm wrote, and between a record and a real cluster.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use http::Method;
use serde_json::{Value, json};
use testcluster::{Cluster, Fault, Helm, Namespace, Proxy, Ran, run};

const HELMS: [Helm; 2] = [Helm::V3, Helm::V4];

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn two_revisions_of_a_real_upgrade_are_compared() {
    for helm in HELMS {
        let ns = namespace().await;
        finished(&ns, helm, &["install", "web", &chart("feature"), "--set", "message=one,hooks.post-upgrade="]).await;
        let alone = gwrepair(&ns, "diff web").await;
        assert_eq!(alone.code, Some(5), "{alone:?}");
        assert!(alone.stderr.contains("no revision before 1") && alone.stderr.contains("hint: --live"), "{alone:?}");
        let values = "message=two,maps={a,new},side.enabled=false,hooks.post-upgrade=fail";
        finished(&ns, helm, &["upgrade", "web", &chart("feature"), "--no-hooks", "--set", values]).await;
        let diff = gwrepair(&ns, "diff web").await.ok().unwrap();
        for line in [
            "configmap/web-a is changed\n--- revision 1\n+++ revision 2\n",
            "-  message: one\n",
            "+  message: two\n",
            "configmap/web-new is added\n",
            "configmap/web-b is removed\n",
            "job.batch/web-post-upgrade (hook) is changed\n",
        ] {
            assert!(diff.contains(line), "{line}\n{diff}");
        }
        assert!(!diff.contains("secret/"), "an object that is the same is not shown: {diff}");
        let named = gwrepair(&ns, "diff web --no-hooks -o name --exit-code").await;
        assert_eq!(named.code, Some(3), "{named:?}");
        assert!(named.stdout.contains("deployment.apps/web\n") && !named.stdout.contains("job.batch"), "{named:?}");
        let same = gwrepair(&ns, "diff web --revision 2 --to 2 --exit-code").await;
        assert_eq!((same.code, same.stdout.as_str()), (Some(0), ""), "{same:?}");
        assert!(same.stderr.contains("no differences between revision 2 and revision 2"), "{same:?}");
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn drift_is_what_somebody_changed_and_nothing_else() {
    for helm in HELMS {
        let ns = namespace().await;
        finished(&ns, helm, &["install", "web", &chart("feature"), "--set", "message=one"]).await;
        let none = gwrepair(&ns, "diff web --live --exit-code").await;
        assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{helm:?} {none:?}");
        assert!(none.stderr.contains("no differences: the cluster holds revision 1"), "{none:?}");

        kubectl(&ns, &["scale", "deployment/web", "--replicas=3"]).await;
        kubectl(&ns, &["label", "deployment/web", "team=theirs"]).await;
        kubectl(&ns, &["patch", "secret/web-key", "-p", r#"{"stringData":{"password":"changed"}}"#]).await;
        kubectl(&ns, &["delete", "configmap/web-a"]).await;
        let drift = gwrepair(&ns, "diff web --live --exit-code").await;
        assert_eq!(drift.code, Some(3), "{drift:?}");
        let text = &drift.stdout;
        assert!(text.contains("-  replicas: 1\n+  replicas: 3\n"), "{helm:?}\n{text}");
        assert!(
            text.contains(&format!("configmap/web-a in namespace {} is missing in the cluster\n", ns.name())),
            "{text}"
        );
        assert!(text.contains("+  password: '*** (after)'\n"), "{helm:?}\n{text}");
        for noise in ["team", "strategy", "managedFields", "status:", "uid", "configmap/web-b", "bm90LWEtc2VjcmV0"] {
            assert!(!text.contains(noise), "{helm:?} {noise}\n{text}");
        }
        let value: Value = serde_json::from_str(&gwrepair(&ns, "diff web --live -ojson").await.ok().unwrap()).unwrap();
        assert_eq!((&value["kind"], &value["from"]), (&"Diff".into(), &json!({"revision": 1})));
        let changes: Vec<_> =
            value["items"].as_array().unwrap().iter().map(|item| item["change"].as_str().unwrap()).collect();
        assert_eq!(changes, ["drifted", "missing", "drifted"], "{value:#}");
        assert!(!value.to_string().contains("Y2hhbmdlZA=="), "a Secret's value is shown: {value:#}");
        assert!(gwrepair(&ns, "diff web --live --show-secrets").await.ok().unwrap().contains("Y2hhbmdlZA=="));
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn what_a_failed_prune_left_behind_is_shown() {
    for helm in HELMS {
        let ns = namespace().await;
        finished(&ns, helm, &["install", "web", &chart("plain"), "--set", "maps={a,b}"]).await;
        kubectl(&ns, &["create", "configmap", "foreign"]).await;
        let proxy = Proxy::start(&ns).await.unwrap();
        proxy.always(Method::DELETE, "configmaps", Fault::Status { code: 403, retry_after: None });
        let mut upgrade = ns.helm(helm);
        upgrade.args(["upgrade", "web", &chart("plain"), "--set", "maps={a}"]);
        proxy.run(&mut upgrade).await.unwrap();
        let leak = gwrepair(&ns, "diff web --live --revision 2 --exit-code").await;
        assert_eq!(leak.code, Some(3), "{helm:?} {leak:?}");
        let headline = format!(
            "configmap/b in namespace {} was left behind: revision 1 set it, and revision 2 does not list it\n",
            ns.name()
        );
        assert!(leak.stdout.starts_with(&headline), "{helm:?} {leak:?}");
        assert_eq!(gwrepair(&ns, "diff web --live --revision 2 -o name").await.ok().unwrap(), "configmap/b\n");
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_reader_who_may_not_dry_run_gets_the_text_compared_and_is_told() {
    let ns = namespace().await;
    finished(&ns, Helm::V4, &["install", "web", &chart("plain"), "--set", "message=one"]).await;
    kubectl(&ns, &["patch", "configmap/a", "-p", r#"{"data":{"message":"theirs"}}"#]).await;
    let rule = json!({"apiGroups": [""], "resources": ["secrets", "configmaps", "persistentvolumeclaims"], "verbs": ["get", "list"]});
    let role = json!({"metadata": {"name": format!("reader-{}", ns.name())}, "rules": [rule]});
    ns.cluster().create("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await.unwrap();
    let account = ns.account("reader", &format!("reader-{}", ns.name())).await.unwrap();
    let mut command = ns.command(env!("CARGO_BIN_EXE_gwrepair").as_ref());
    command.args(["diff", "web", "--live", "-n", ns.name(), "--kubeconfig"]).arg(&account.kubeconfig);
    let ran = run(&mut command).await.unwrap();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout.contains("-  message: one\n+  message: theirs\n") && !ran.stdout.contains("configmap/b"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("note: no right to patch configmaps: the text was compared"), "{ran:?}");
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_wrong_name_is_answered_with_a_near_one_and_colour_is_as_asked() {
    let ns = namespace().await;
    finished(&ns, Helm::V3, &["install", "payments", &chart("plain"), "--set", "message=one"]).await;
    let wrong = gwrepair(&ns, "diff paymnets --live").await;
    assert_eq!(wrong.code, Some(5), "{wrong:?}");
    assert!(wrong.stderr.contains("hint: did you mean payments?"), "{wrong:?}");
    kubectl(&ns, &["patch", "configmap/a", "-p", r#"{"data":{"message":"two"}}"#]).await;
    let red = "\u{1b}[1m\u{1b}[31m-  message: one";
    assert!(!gwrepair(&ns, "diff payments --live").await.stdout.contains('\u{1b}'));
    assert!(gwrepair(&ns, "diff payments --live --color always").await.stdout.contains(red));
    for (variable, value, colored) in [("CLICOLOR_FORCE", "1", true), ("NO_COLOR", "1", false)] {
        let mut command = ns.command(env!("CARGO_BIN_EXE_gwrepair").as_ref());
        command.args(["diff", "payments", "--live", "-n", ns.name()]).env(variable, value);
        assert_eq!(run(&mut command).await.unwrap().stdout.contains(red), colored, "{variable}");
    }
}

async fn namespace() -> Namespace {
    Cluster::shared().unwrap().namespace("diff").await.unwrap()
}

fn chart(name: &str) -> String {
    format!("{}/../testdata/charts/{name}", env!("CARGO_MANIFEST_DIR"))
}

async fn finished(ns: &Namespace, helm: Helm, args: &[&str]) {
    run(ns.helm(helm).args(args)).await.unwrap().ok().unwrap();
}

async fn kubectl(ns: &Namespace, args: &[&str]) {
    run(ns.kubectl().args(args)).await.unwrap().ok().unwrap();
}

async fn gwrepair(ns: &Namespace, line: &str) -> Ran {
    let mut command = ns.command(env!("CARGO_BIN_EXE_gwrepair").as_ref());
    command.args(line.split(' ')).args(["-n", ns.name()]);
    run(&mut command).await.unwrap()
}
