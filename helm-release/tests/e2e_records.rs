//! Records changed in every place, and read by real Helm and by us: what one of the Helms hides is unsound here, what
//! both list says the same here. And a record that Helm filled to the limit stays writable.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use helm_release::action::{Outcome, RepairOptions, Stop};
use helm_release::codec;
use helm_release::plan::{Intent, Verdict};
use helm_release::release::{Content, Entry, Status, Stored};
use helm_release::storage::{DriverKind, Kubernetes, Record, Storage};
use serde_json::{Value, json};
use testcluster::{Cluster, Fault, Helm, Namespace, Proxy, run};

/// What a member is replaced by.
const OTHERS: [&str; 11] = ["null", "\"x\"", "\"\"", "1", "-1", "1.0", "true", "[]", "[null]", "[\"x\"]", "{}"];

/// What a hand can do to the members of an object, in Go's eyes.
const SPELLINGS: [(&str, &str); 10] = [
    (r#""status":"deployed""#, r#""Status":"failed""#),
    (r#""status":"deployed""#, r#""STATUS":"failed","status":null"#),
    (r#""status":"deployed""#, r#""status":"failed","status":"superseded""#),
    (r#""status":"deployed""#, "\"\u{17f}tatus\":\"failed\""),
    (r#""status":"deployed""#, r#""status":5,"status":"failed""#),
    (r#""version":7"#, r#""Version":9"#),
    (r#""version":7"#, r#""version":9,"Version":null"#),
    (r#""version":7"#, r#""version":"9","Version":9"#),
    (r#""appVersion":"2.0""#, r#""AppVersion":"3.0""#),
    (r#""last_run":{"#, r#""Last_Run":"x","last_run":{"#),
];

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_record_changed_in_any_place_is_sound_exactly_where_both_helms_list_it() {
    let ns = Cluster::shared().unwrap().namespace("changed").await.unwrap();
    let changed = changed();
    assert!(changed.len() > 1000, "{}", changed.len());
    for (name, (_, json)) in &changed {
        put(&ns, name, json).await;
    }
    let (three, four) = (listed(&ns, Helm::V3).await, listed(&ns, Helm::V4).await);
    let mut wrong = Vec::new();
    for (name, (how, json)) in &changed {
        let helms = three.get(name).zip(four.get(name));
        let ours = seen(name, json);
        let same = match (helms, &ours) {
            (None, None) => true,
            // Two spellings of one member: the Helms themselves need not agree.
            (Some((three, four)), Some(ours)) => three != four || ours == three,
            _ => false,
        };
        if !same {
            wrong.push(format!("{how}: Helm 3 {:?}, Helm 4 {:?}, ours {ours:?}", three.get(name), four.get(name)));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), changed.len(), wrong.join("\n"));
}

type Seen = [String; 4];

/// By name of the release: what was done to it, and its JSON.
fn changed() -> BTreeMap<String, (String, String)> {
    let base = whole().to_string();
    let mut changes = Vec::new();
    for pointer in pointers(&whole(), String::new()) {
        for other in OTHERS {
            let mut release = whole();
            *release.pointer_mut(&pointer).unwrap() = serde_json::from_str(other).unwrap();
            changes.push((format!("{pointer} is {other}"), release.to_string()));
        }
    }
    for (old, new) in SPELLINGS {
        assert!(base.contains(old), "{old}");
        changes.push((format!("{old} is {new}"), base.replacen(old, new, 1)));
    }
    // Helm panics on a record without `info` and lists nothing any more; `name` is what a list is keyed by; and a list
    // leaves out a status that Helm does not know.
    let left_out = ["/info is null", "/name is", "/info/status is null", "/info/status is \"", "/info is {}"];
    changes.retain(|(how, _)| !left_out.iter().any(|start| how.starts_with(start)));
    let named = changes.into_iter().enumerate().map(|(n, (how, json))| {
        let name = format!("r{n}");
        (name.clone(), (how, json.replacen(r#""name":"the release""#, &format!("\"name\":\"{name}\""), 1)))
    });
    named.collect()
}

/// A release with every member that either Helm knows.
fn whole() -> Value {
    let time = "2026-01-02T03:04:05.678901234+01:00";
    let dependency = json!({
        "name": "d", "version": "1", "repository": "r", "condition": "c", "tags": ["t"], "enabled": true,
        "import-values": ["v"], "alias": "a",
    });
    let metadata = json!({
        "name": "c", "home": "h", "sources": ["s"], "version": "1.0.0", "description": "d", "keywords": ["k"],
        "maintainers": [{"name": "n", "email": "e", "url": "u"}], "icon": "i", "apiVersion": "v2", "condition": "c",
        "tags": "t", "appVersion": "2.0", "deprecated": false, "annotations": {"a": "b"}, "kubeVersion": "k",
        "dependencies": [dependency], "type": "application",
    });
    let file = json!({"name": "f", "data": "eA==", "modtime": time});
    let chart = json!({
        "metadata": metadata, "lock": {"generated": time, "digest": "d", "dependencies": [dependency]},
        "templates": [file], "values": {"v": 1}, "schema": "e30=", "schemamodtime": time, "files": [file], "modtime": time,
    });
    let hook = json!({
        "name": "n", "kind": "k", "path": "p", "manifest": "m", "events": ["pre-install"],
        "last_run": {"started_at": time, "completed_at": time, "phase": "Succeeded"}, "weight": 1,
        "delete_policies": ["hook-failed"], "output_log_policies": ["hook-failed"],
    });
    let info = json!({
        "first_deployed": time, "last_deployed": time, "deleted": "", "description": "d", "status": "deployed",
        "rollback_revision": 1, "notes": "n", "resources": {"v1/Pod": []}, "unknown": 1,
    });
    json!({
        "name": "the release", "info": info, "chart": chart, "config": {"c": 1}, "manifest": "m", "hooks": [hook],
        "version": 7, "namespace": "n", "apply_method": "ssa", "unknown": 1,
    })
}

fn pointers(value: &Value, at: String) -> Vec<String> {
    let key = |key: &String| format!("{at}/{}", key.replace('/', "~1"));
    let map = value.as_object().into_iter().flatten().map(|(name, value)| (key(name), value));
    let list = value.as_array().into_iter().flatten().enumerate().map(|(n, value)| (format!("{at}/{n}"), value));
    map.chain(list).flat_map(|(at, value)| [vec![at.clone()], pointers(value, at)].concat()).collect()
}

/// The stored text of JSON that need not be a release.
fn text(json: &str) -> String {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(json.as_bytes()).unwrap();
    STANDARD.encode(gzip.finish().unwrap())
}

async fn put(ns: &Namespace, name: &str, json: &str) {
    let labels = json!({"owner": "helm", "name": name, "status": "deployed", "version": "7"});
    let secret = json!({
        "metadata": {"name": format!("sh.helm.release.v1.{name}.v7"), "labels": labels},
        "type": "helm.sh/release.v1", "data": {"release": STANDARD.encode(text(json))},
    });
    ns.cluster().create(&ns.path("/api/v1", "secrets"), &secret).await.unwrap();
}

async fn listed(ns: &Namespace, helm: Helm) -> BTreeMap<String, Seen> {
    let mut command = ns.helm(helm);
    command.args(["list", "--max=0", "-o=json"]);
    if helm == Helm::V3 {
        command.arg("--all");
    }
    let list: Vec<Value> = serde_json::from_str(&run(&mut command).await.unwrap().ok().unwrap()).unwrap();
    let seen = |release: &Value| {
        ["revision", "status", "chart", "app_version"].map(|key| match word(&release[key]) {
            none if key == "revision" && none.starts_with('-') => "0".into(),
            word => word,
        })
    };
    list.iter().map(|release| (word(&release["name"]), seen(release))).collect()
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What we see where the record is sound, in Helm's words.
fn seen(name: &str, json: &str) -> Option<Seen> {
    let release = codec::decode(text(json).as_bytes()).unwrap();
    let stored = Stored { key: format!("sh.helm.release.v1.{name}.v7"), ..Stored::default() };
    let entry = Entry::place(stored, Content::Readable(Box::new(release))).unwrap();
    let release = entry.sound()?;
    let revision = release.revision().map_or_else(|| "0".into(), |revision| revision.to_string());
    let (chart, app) = match release.chart() {
        Some(chart) => (format!("{}-{}", chart.name, chart.version), chart.app_version),
        None => ("MISSING".into(), "MISSING".into()),
    };
    Some([revision, release.status().to_string(), chart, app])
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn every_record_comes_through_its_driver_and_is_closed_there() {
    let ns = Cluster::shared().unwrap().namespace("fixtures").await.unwrap();
    let mut closed = 0;
    for folder in ["records", "damaged"] {
        for case in fixture(&format!("{folder}/index.json")).as_array().unwrap() {
            let file = case["file"].as_str().unwrap();
            closed += usize::from(through_its_driver(&ns, &fixture(&format!("{folder}/{file}")), case).await);
        }
    }
    assert!(closed > 80, "{closed}");
}

fn fixture(path: &str) -> Value {
    let path = format!("{}/../testdata/{path}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Whether the record is sound, and so could be closed.
async fn through_its_driver(ns: &Namespace, object: &Value, case: &Value) -> bool {
    let file = case["file"].as_str().unwrap();
    let (kind, plural) = match object["kind"].as_str() {
        Some("ConfigMap") => (DriverKind::ConfigMaps, "configmaps"),
        _ => (DriverKind::Secrets, "secrets"),
    };
    let key = object["metadata"]["name"].as_str().unwrap();
    let mut made = json!({"metadata": {"name": key, "labels": object["metadata"]["labels"]}, "data": object["data"]});
    if kind == DriverKind::Secrets {
        made["type"] = object["type"].clone();
    }
    let path = ns.path("/api/v1", plural);
    ns.cluster().create(&path, &made).await.unwrap();
    let storage = Storage::new(Arc::new(Kubernetes::new(common::wire(&ns.kubeconfig()).await, kind)));
    let (namespace, name, stop) = (ns.name().parse().unwrap(), "web".parse().unwrap(), Stop::never());
    let read = storage.history(&namespace, &name, &stop).await.unwrap();
    let [entry] = read.history.entries() else { panic!("{file}: {:?}", read.history) };
    let sound = entry.sound().is_some();
    let listed = |helm: &str| case["expect"][helm]["history"] == "lists";
    let hidden_by_labels = ["no-labels", "label-name", "label-owner"].iter().any(|how| file.contains(how));
    assert_eq!(sound, case["expect"].is_null() || listed("helm3") && listed("helm4") || hidden_by_labels, "{file}");
    if let Some(release) = entry.sound() {
        let changed = release.with_status(Status::Failed, "Interrupted").unwrap();
        let seen = Record { namespace: ns.name().into(), stored: entry.stored.clone(), body: None, object: None };
        storage.update(&seen, &read.history.key(entry.revision), &changed, &stop).await.unwrap();
        let stored = ns.object("/api/v1", plural, key).await.unwrap().unwrap();
        let labels = &stored["metadata"]["labels"];
        assert_eq!((&labels["status"], &labels["team"]), (&json!("failed"), &object["metadata"]["labels"]["team"]));
        assert_eq!((&stored["type"], stored["data"].as_object().unwrap().len()), (&object["type"], 1), "{file}");
        let again = storage.history(&namespace, &name, &stop).await.unwrap().history;
        assert_eq!(again.last().and_then(Entry::status), Some(&Status::Failed), "{file}");
    }
    ns.cluster().delete(&format!("{path}/{key}")).await.unwrap();
    sound
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_record_that_helm_filled_to_the_limit_is_closed_and_rolled_back_from() {
    for helm in [Helm::V3, Helm::V4] {
        for (write, verdict) in [(2, Verdict::Unlock), (3, Verdict::Rollback)] {
            let ns = Cluster::shared().unwrap().namespace("full").await.unwrap();
            fill(&ns, helm).await;
            let proxy = Proxy::start(&ns).await.unwrap();
            proxy.at_write(write, Fault::KillBefore);
            let killed = proxy.run(&mut on_chart(&ns, helm, "upgrade", "two")).await.unwrap();
            assert_eq!(killed.code, None, "{killed:?}");
            let client = common::client(&ns.kubeconfig(), &ns).await;
            let (name, options, stop) = ("web".parse().unwrap(), RepairOptions::default(), Stop::never());
            let planned = client.plan(&name, Intent::Usable, &common::lenient(), &options, &stop).await.unwrap();
            let report = client.repair(&planned, &options, &stop, &()).await;
            assert_eq!((report.outcome, report.plan.verdict), (Outcome::Repaired, verdict), "{report:#?}");
            run(&mut on_chart(&ns, helm, "upgrade", "three")).await.unwrap().ok().unwrap();
        }
    }
}

fn on_chart(ns: &Namespace, helm: Helm, verb: &str, message: &str) -> tokio::process::Command {
    let mut command = ns.helm(helm);
    command.args([verb, "web"]).arg(ns.dir().join("chart")).args(["--set", &format!("message={message}")]);
    command
}

/// Installs `web` with a file in its chart that leaves a few bytes for the words that Helm itself will change.
async fn fill(ns: &Namespace, helm: Helm) {
    let mut length = 700_000;
    for _ in 0..9 {
        chart(ns, length);
        run(&mut on_chart(ns, helm, "install", "one")).await.unwrap().ok().unwrap();
        let secret = ns.object("/api/v1", "secrets", "sh.helm.release.v1.web.v1").await.unwrap().unwrap();
        let stored = STANDARD.decode(secret["data"]["release"].as_str().unwrap()).unwrap().len();
        let free = codec::MAX_STORED - stored;
        if (32..=64).contains(&free) {
            return;
        }
        run(ns.helm(helm).args(["uninstall", "web"])).await.unwrap().ok().unwrap();
        // A byte of noise takes 1.34 as it is stored; from below, for what does not fit is refused.
        length += free.saturating_sub(40) * 74 / 100;
    }
    panic!("the record is not at the limit");
}

/// A chart with two ConfigMaps and a file of noise.
fn chart(ns: &Namespace, length: usize) {
    let dir = ns.dir().join("chart");
    std::fs::create_dir_all(dir.join("templates")).unwrap();
    let map = |name: &str| {
        let head = format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n");
        head + "  message: {{ .Values.message }}\n"
    };
    let mut seed = 1_u64;
    let mut noise = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 56) as u8
    };
    std::fs::write(dir.join("Chart.yaml"), "apiVersion: v2\nname: full\nversion: 1.0.0\n").unwrap();
    std::fs::write(dir.join("templates/a.yaml"), map("a")).unwrap();
    std::fs::write(dir.join("templates/b.yaml"), map("b")).unwrap();
    std::fs::write(dir.join("noise"), (0..length).map(|_| noise()).collect::<Vec<u8>>()).unwrap();
}
