//! What people and clusters get wrong: a clear error or a planned answer, nothing written, nothing lost.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use common::{Site, lenient};
use helm_release::action::{
    Client, Depth, Event, Events, Namespaces, Outcome, RepairOptions, ScanOptions, Scope, Stop,
};
use helm_release::backup::Backup;
use helm_release::cluster::Cause;
use helm_release::plan::{Intent, Policy, State, Verdict};
use helm_release::storage::DriverKind;
use http::Method;
use serde_json::{Value, json};
use testcluster::{Cluster, Fault, Helm, Namespace, Proxy, run};
use tokio_util::sync::CancellationToken;

async fn killed_upgrade(site: &Site, helm: Helm) {
    killed_upgrade_at(site, helm, 3).await;
}

async fn killed_upgrade_at(site: &Site, helm: Helm, write: usize) {
    site.helm(helm, &["install", "--set", "message=one"]).await;
    let proxy = Proxy::start(&site.ns).await.unwrap();
    proxy.at_write(write, Fault::KillBefore);
    proxy.run(&mut site.command(helm, &["upgrade", "--set", "message=two"])).await.unwrap();
}

/// A kubeconfig that may do in this namespace what these rules say.
async fn limited(ns: &Namespace, name: &str, rules: Value) -> PathBuf {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": format!("{}-{name}", ns.name())}, "rules": rules,
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    ns.cluster().create(path, &role).await.unwrap();
    ns.account(name, &format!("{}-{name}", ns.name())).await.unwrap().kubeconfig
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn each_missing_verb_is_named_before_anything_is_written() {
    let site = Site::new(&Cluster::shared().unwrap(), "verbs", "plain").await;
    killed_upgrade(&site, Helm::V3).await;
    let all = ["get", "list", "create", "update", "patch", "delete"];
    for missing in all.into_iter().filter(|verb| *verb != "patch") {
        let verbs: Vec<_> = all.into_iter().filter(|verb| *verb != missing).collect();
        let rules = json!([
            {"apiGroups": [""], "resources": ["secrets"], "verbs": verbs},
            {"apiGroups": [""], "resources": ["configmaps", "persistentvolumeclaims", "namespaces"], "verbs": ["*"]},
        ]);
        let kubeconfig = limited(&site.ns, &format!("no-{missing}"), rules).await;
        let client = common::client(&kubeconfig, &site.ns).await;
        let (name, options) = ("web".parse().unwrap(), RepairOptions::default());
        match client.plan(&name, Intent::Usable, &lenient(), &options, &Stop::never()).await {
            Err(error) => {
                let Some(Cause::Forbidden { verb, resource, namespace, .. }) = error.request().map(|r| &r.cause) else {
                    panic!("{missing}: {error:?}");
                };
                assert_eq!(
                    (verb.as_str(), resource.as_str(), namespace.as_str()),
                    (missing, "secrets", site.ns.name())
                );
                assert_eq!(missing, "list", "only what is read fails at once");
            }
            Ok(planned) if missing == "delete" => assert!(planned.missing.is_empty(), "a rollback deletes no record"),
            Ok(planned) => {
                assert_eq!(planned.plan.verdict, Verdict::Refuse, "{missing}");
                assert!(planned.missing.iter().any(|p| p.verb == missing && p.resource == "secrets"), "{planned:?}");
            }
        }
        assert_eq!(client.requests().write, 0);
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_at_once() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut config = kube::Config::new(format!("http://{address}").parse().unwrap());
    config.default_retry = false;
    let client = Client::new(kube::Client::try_from(config).unwrap(), "ns".parse().unwrap(), DriverKind::Secrets);
    let error = client.history(&"web".parse().unwrap(), &Stop::never()).await.unwrap_err();
    assert!(matches!(error.request().map(|r| &r.cause), Some(Cause::Unreachable(_))), "{error:?}");
    assert!(client.requests().read <= 3, "{:?}", client.requests());
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_server_that_does_not_answer_is_left_at_the_deadline_or_on_a_word() {
    let site = Site::new(&Cluster::shared().unwrap(), "slow", "plain").await;
    let proxy = Proxy::start(&site.ns).await.unwrap();
    proxy.always(Method::GET, "secrets", Fault::Hold);
    let client = common::client(&proxy.kubeconfig(), &site.ns).await;
    let name = "web".parse().unwrap();
    let stop = Stop::new(CancellationToken::new(), Some(Duration::from_millis(300)));
    let begun = Instant::now();
    let error = client.history(&name, &stop).await.unwrap_err();
    assert!(error.is_stopped() && begun.elapsed() < Duration::from_secs(5), "{error:?}");
    let token = CancellationToken::new();
    let stop = Stop::new(token.clone(), None);
    let cancel = async {
        proxy.reached(|request| request.path.contains("secrets")).await.unwrap();
        token.cancel();
    };
    let (read, ()) = tokio::join!(client.history(&name, &stop), cancel);
    assert!(read.unwrap_err().is_stopped());
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_kind_that_is_gone_is_refused_with_nothing_written() {
    let site = Site::new(&Cluster::shared().unwrap(), "gone", "plain").await;
    killed_upgrade(&site, Helm::V4).await;
    // The manifest of the target lists a kind that nobody serves.
    edit(&site, 1, with_widget).await;
    let planned = site.plan(&lenient()).await;
    assert_eq!(planned.plan.verdict, Verdict::Refuse, "{:#?}", planned.plan);
    assert!(planned.plan.refusals[0].reason.contains("widget.gone.example.com/w"), "{:?}", planned.plan.refusals);
    let report = site.run(&planned).await;
    assert_eq!((report.outcome, report.requests.write), (Outcome::Refused, 0));
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_terminating_namespace_gets_nothing_created() {
    let site = Site::new(&Cluster::shared().unwrap(), "going", "plain").await;
    killed_upgrade(&site, Helm::V3).await;
    // A finalizer of a record keeps the namespace going for as long as the test looks.
    let key = "sh.helm.release.v1.web.v1";
    let hold = r#"{"metadata":{"finalizers":["example.com/hold"]}}"#;
    for key in [key, "sh.helm.release.v1.web.v2"] {
        run(site.ns.kubectl().args(["patch", "secret", key, "--type=merge", "-p", hold])).await.unwrap().ok().unwrap();
    }
    run(site.ns.kubectl().args(["delete", "namespace", site.ns.name(), "--wait=false"])).await.unwrap().ok().unwrap();
    let planned = site.plan(&lenient()).await;
    assert!([Verdict::Refuse, Verdict::Wait].contains(&planned.plan.verdict), "{:#?}", planned.plan);
    assert_eq!(site.run(&planned).await.requests.write, 0);
    let free = r#"{"metadata":{"finalizers":null}}"#;
    for key in [key, "sh.helm.release.v1.web.v2"] {
        run(site.ns.kubectl().args(["patch", "secret", key, "--type=merge", "-p", free])).await.unwrap().ok().unwrap();
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_object_that_became_somebody_elses_is_not_touched() {
    let site = Site::new(&Cluster::shared().unwrap(), "theirs", "plain").await;
    killed_upgrade(&site, Helm::V3).await;
    let mark = ["annotate", "configmap", "b", "--overwrite", "meta.helm.sh/release-name=other"];
    run(site.ns.kubectl().args(mark)).await.unwrap().ok().unwrap();
    let planned = site.plan(&lenient()).await;
    assert_eq!(planned.plan.verdict, Verdict::Refuse, "{:#?}", planned.plan);
    assert!(planned.plan.refusals[0].reason.contains("configmap/b belongs to release"), "{:?}", planned.plan.refusals);
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn what_another_release_owns_stays_when_a_killed_install_is_removed() {
    let site = Site::new(&Cluster::shared().unwrap(), "removed", "plain").await;
    let proxy = Proxy::start(&site.ns).await.unwrap();
    proxy.at_write(4, Fault::KillBefore);
    proxy.run(&mut site.command(Helm::V3, &["install"])).await.unwrap();
    let theirs = site.uid("configmaps", "a").await.unwrap();
    let mark = ["annotate", "configmap", "a", "--overwrite", "meta.helm.sh/release-name=other"];
    run(site.ns.kubectl().args(mark)).await.unwrap().ok().unwrap();
    let report = site.repair(&lenient()).await;
    assert_eq!(report.outcome, Outcome::Repaired, "{report:#?}");
    assert_eq!(site.uid("configmaps", "a").await, Some(theirs));
    assert_eq!(site.uid("configmaps", "b").await, None);
    assert_eq!(site.uid("secrets", "sh.helm.release.v1.web.v1").await, None);
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_missing_right_on_an_object_is_named_before_anything_is_written() {
    let site = Site::new(&Cluster::shared().unwrap(), "objects", "plain").await;
    killed_upgrade(&site, Helm::V3).await;
    let rules = json!([
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps", "persistentvolumeclaims"], "verbs": ["get", "list", "delete"]},
    ]);
    let kubeconfig = limited(&site.ns, "reader", rules).await;
    let planned = site.plan_as(&kubeconfig, &lenient()).await;
    assert_eq!(planned.plan.verdict, Verdict::Refuse, "{:#?}", planned.plan);
    let missing = planned.missing.iter().map(|p| (p.verb.as_str(), p.resource.as_str(), p.namespace.as_str()));
    assert_eq!(missing.collect::<Vec<_>>(), [("patch", "configmaps", site.ns.name())]);
    assert_eq!(site.run_as(&kubeconfig, &planned).await.requests.write, 0);
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_kind_that_only_the_dead_revision_needs_waits_for_a_word() {
    let site = Site::new(&Cluster::shared().unwrap(), "oldside", "plain").await;
    killed_upgrade(&site, Helm::V3).await;
    edit(&site, 2, with_widget).await;
    let planned = site.plan(&lenient()).await;
    assert_eq!(planned.plan.verdict, Verdict::Refuse, "{:#?}", planned.plan);
    let refusal = &planned.plan.refusals[0];
    assert!(refusal.reason.contains("widget.gone.example.com/w"), "{refusal:?}");
    assert_eq!(refusal.flag.as_deref(), Some("--skip-unknown-kinds"));
    let report = site.repair(&Policy { skip_unknown_kinds: true, ..lenient() }).await;
    assert_eq!((report.outcome, report.plan.verdict), (Outcome::Repaired, Verdict::Rollback), "{report:#?}");
    site.judge().await.unwrap();
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_write_that_hangs_is_left_on_a_word_and_the_record_is_closed() {
    let site = Site::new(&Cluster::shared().unwrap(), "hangs", "plain").await;
    killed_upgrade(&site, Helm::V4).await;
    let planned = site.plan(&lenient()).await;
    let proxy = Proxy::start(&site.ns).await.unwrap();
    let held = proxy.at_write(3, Fault::Hold);
    let client = common::client(&proxy.kubeconfig(), &site.ns).await;
    let (token, options) = (CancellationToken::new(), RepairOptions::default());
    let stop = Stop::new(token.clone(), None);
    let cancel = async {
        held.reached().await.unwrap();
        token.cancel();
        Instant::now()
    };
    let (report, cancelled) = tokio::join!(client.repair(&planned, &options, &stop, &()), cancel);
    assert!(cancelled.elapsed() < Duration::from_secs(5), "{:?}", cancelled.elapsed());
    assert_eq!((report.outcome, report.after.as_deref()), (Outcome::Cancelled, Some("failed")), "{report:#?}");
    assert!(report.settled.is_some() && report.unsettled.is_none(), "{report:#?}");
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_record_without_its_labels_is_found_in_its_place_and_closed_so_that_helm_sees_it() {
    for (write, verdict) in [(2, Verdict::Unlock), (3, Verdict::Rollback)] {
        let site = Site::new(&Cluster::shared().unwrap(), "unlabelled", "plain").await;
        killed_upgrade_at(&site, Helm::V3, write).await;
        for labels in [["owner-", "name-"], ["status-", "version-"]] {
            let key = "sh.helm.release.v1.web.v2";
            run(site.ns.kubectl().args(["label", "secret", key]).args(labels)).await.unwrap().ok().unwrap();
        }
        let report = site.repair(&lenient()).await;
        assert_eq!((report.outcome, report.plan.verdict), (Outcome::Repaired, verdict), "{report:#?}");
        site.judge().await.unwrap();
        site.stock_helm_goes_on().await.unwrap();
    }
}

#[derive(Default)]
struct Saved(Mutex<Vec<Backup>>);

impl Events for Saved {
    fn event(&self, _event: &Event<'_>) {}

    fn keep(&self, backup: Backup) -> std::io::Result<Option<PathBuf>> {
        self.0.lock().unwrap().push(backup);
        Ok(Some("kept".into()))
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_damaged_newest_record_is_saved_and_then_deleted_and_nothing_else() {
    let site = Site::new(&Cluster::shared().unwrap(), "damaged", "plain").await;
    site.helm(Helm::V3, &["install"]).await;
    site.helm(Helm::V3, &["upgrade", "--set", "message=two"]).await;
    let key = "sh.helm.release.v1.web.v2";
    let garbage = r#"{"data":{"release":"JSUl"}}"#;
    run(site.ns.kubectl().args(["patch", "secret", key, "-p", garbage])).await.unwrap().ok().unwrap();
    let planned = site.plan(&lenient()).await;
    assert!(matches!(planned.plan.state, State::Unreadable(_)), "{:#?}", planned.plan);
    assert_eq!(planned.plan.verdict, Verdict::Refuse);

    let planned = site.plan(&Policy { quarantine: true, ..lenient() }).await;
    let report = site.run(&planned).await;
    assert_eq!(report.outcome, Outcome::Failed, "nobody saves it, so it is not deleted");
    assert!(site.uid("secrets", key).await.is_some());

    let (client, saved) = (common::client(&site.ns.kubeconfig(), &site.ns).await, Saved::default());
    let report = client.repair(&planned, &RepairOptions::default(), &Stop::never(), &saved).await;
    assert_eq!(report.outcome, Outcome::Repaired, "{report:#?}");
    assert_eq!(saved.0.lock().unwrap()[0].releases[0].records[1]["data"]["release"], "JSUl");
    assert_eq!(site.uid("secrets", key).await, None);
    assert!(site.uid("secrets", "sh.helm.release.v1.web.v1").await.is_some());
    site.judge().await.unwrap();
}

fn with_widget(release: &mut Value) {
    let widget = "\n---\napiVersion: gone.example.com/v1\nkind: Widget\nmetadata:\n  name: w\n";
    release["manifest"] = (release["manifest"].as_str().unwrap().to_owned() + widget).into();
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn records_of_helm_2_are_counted_and_left_alone() {
    let ns = Cluster::shared().unwrap().namespace("tiller").await.unwrap();
    let labels = json!({"OWNER": "TILLER", "NAME": "old", "STATUS": "PENDING_INSTALL", "VERSION": "3"});
    let record = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "old.v3", "labels": labels}});
    ns.cluster().create(&ns.path("/api/v1", "configmaps"), &record).await.unwrap();
    let client = common::client(&ns.kubeconfig(), &ns).await;
    let scope = Scope { namespaces: Namespaces::One(ns.name().parse().unwrap()), selector: None };
    for depth in [Depth::Labels, Depth::Payloads] {
        let scan = client.scan(&scope, &ScanOptions { depth, policy: lenient() }, &Stop::never()).await.unwrap();
        assert_eq!((scan.helm2, scan.items.len(), scan.unreadable.len()), (1, 0, 0), "{depth:?}");
    }
    assert!(client.history(&"old".parse().unwrap(), &Stop::never()).await.unwrap().is_empty());
    assert_eq!(client.requests().write, 0);
}

/// Changes the payload of a record as somebody with an editor would.
async fn edit(site: &Site, revision: u32, change: impl Fn(&mut Value)) {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use helm_release::{codec, release::Release};
    let path = format!("{}/sh.helm.release.v1.web.v{revision}", site.ns.path("/api/v1", "secrets"));
    let mut secret = site.ns.cluster().get(&path).await.unwrap().unwrap();
    let text = STANDARD.decode(secret["data"]["release"].as_str().unwrap()).unwrap();
    let mut release: Value = serde_json::from_str(&codec::decode(&text).unwrap().to_json().unwrap()).unwrap();
    change(&mut release);
    let release = Release::parse(&release.to_string()).unwrap();
    secret["data"]["release"] = STANDARD.encode(codec::encode(&release).unwrap()).into();
    site.ns.cluster().replace(&path, &secret).await.unwrap();
}
