//! Real Helm through the fault proxy leaves what real Helm leaves.
//!
//! `testcluster run -- cargo test -p testcluster -- --ignored`

use std::{process::Stdio, time::Duration};

use anyhow::{Context, Result};
use http::Method;
use serde_json::Value;
use testcluster::{Armed, Cluster, Counts, Fault, Helm, Kind, Namespace, Proxy, Ran, Request, run};
use tokio::process::Command;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/plain");
const BOTH: [Helm; 2] = [Helm::V3, Helm::V4];

/// What each Helm writes in an upgrade that changes two ConfigMaps and a claim and adds a ConfigMap.
const WRITES: [(Helm, [&str; 7]); 2] = [
    (
        Helm::V3,
        [
            "POST secrets",
            "PATCH configmaps/a",
            "PATCH configmaps/b",
            "POST configmaps",
            "PATCH persistentvolumeclaims/data",
            "PUT secrets/sh.helm.release.v1.web.v1",
            "PUT secrets/sh.helm.release.v1.web.v2",
        ],
    ),
    (
        Helm::V4,
        [
            "POST secrets",
            "PATCH configmaps/a",
            "PATCH configmaps/b",
            "PATCH configmaps/d",
            "PATCH persistentvolumeclaims/data",
            "PUT secrets/sh.helm.release.v1.web.v1",
            "PUT secrets/sh.helm.release.v1.web.v2",
        ],
    ),
];

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_undisturbed_upgrade_writes_what_it_is_known_to_write() -> Result<()> {
    for (helm, expected) in WRITES {
        let stage = Stage::set(helm).await?;
        stage.upgrade().await?.ok()?;
        assert_eq!(stage.records().await?, "1 superseded, 2 deployed");
        let mut writes: Vec<_> = stage.proxy.writes().iter().map(Request::brief).collect();
        writes[1..5].sort(); // Helm 4 applies the objects of one kind at once
        let mut expected = expected.map(str::to_owned);
        expected[1..5].sort();
        assert_eq!(writes, expected);
        let counts = stage.proxy.counts();
        assert_eq!(counts.writes(), 7);
        assert_eq!(Counts { get: 0, ..counts }, Counts { get: 0, ..by_method(&expected) });
        assert!(stage.proxy.requests().iter().all(|request| request.status.is_some()));
    }
    Ok(())
}

fn by_method(writes: &[String]) -> Counts {
    let of = |method: &str| writes.iter().filter(|write| write.starts_with(method)).count();
    Counts { post: of("POST"), put: of("PUT"), patch: of("PATCH"), ..Counts::default() }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_upgrade_that_is_killed_at_a_write_leaves_its_records_there() -> Result<()> {
    let points = [
        (1, Fault::KillBefore, "1 deployed", "hello hello -"),
        (1, Fault::KillAfter, "1 deployed, 2 pending-upgrade", "hello hello -"),
        (6, Fault::KillBefore, "1 deployed, 2 pending-upgrade", "bye bye bye"),
        (7, Fault::KillBefore, "1 superseded, 2 pending-upgrade", "bye bye bye"),
        (7, Fault::KillAfter, "1 superseded, 2 deployed", "bye bye bye"),
    ];
    for helm in BOTH {
        for (n, fault, records, messages) in points {
            let stage = Stage::set(helm).await?;
            let armed = stage.proxy.at_write(n, fault);
            let ran = stage.upgrade().await?;
            assert!(armed.is_reached());
            assert_eq!(ran.code, None, "{helm:?} {n} {fault:?}: {}", ran.stderr);
            assert_eq!(stage.records().await?, records, "{helm:?} {n} {fault:?}");
            assert_eq!(stage.messages().await?, messages, "{helm:?} {n} {fault:?}");
            assert_eq!(stage.proxy.counts().writes(), n);
        }
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_upgrade_that_meets_a_failing_server_leaves_what_it_is_known_to_leave() -> Result<()> {
    let points = [
        (1, Fault::INTERNAL_ERROR, "1 deployed", 1),
        (1, Fault::LoseAnswer, "1 deployed, 2 pending-upgrade", 1),
        (1, Fault::Reset, "1 deployed", 1),
        (6, Fault::INTERNAL_ERROR, "1 deployed, 2 deployed", 0),
        (6, Fault::LoseAnswer, "1 superseded, 2 deployed", 0),
        (7, Fault::INTERNAL_ERROR, "1 superseded, 2 pending-upgrade", 1),
        (7, Fault::LoseAnswer, "1 superseded, 2 deployed", 1),
    ];
    for helm in BOTH {
        for (n, fault, records, code) in points {
            let stage = Stage::set(helm).await?;
            stage.proxy.at_write(n, fault);
            let ran = stage.upgrade().await?;
            assert_eq!(ran.code, Some(code), "{helm:?} {n} {fault:?}: {}", ran.stderr);
            assert_eq!(stage.records().await?, records, "{helm:?} {n} {fault:?}");
        }
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_client_that_is_told_to_come_again_does() -> Result<()> {
    let stage = Stage::set(Helm::V4).await?;
    let busy = Fault::Status { code: 429, retry_after: Some(Duration::from_secs(1)) };
    let armed = stage.proxy.at_match(Method::POST, "/secrets", 1, busy);
    stage.upgrade().await?.ok()?;
    assert!(armed.is_reached());
    let statuses: Vec<_> = stage.proxy.writes().iter().take(2).map(|write| write.status).collect();
    assert_eq!(statuses, [Some(429), Some(201)]);
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_request_can_be_named_by_its_path_and_held() -> Result<()> {
    for helm in BOTH {
        let stage = Stage::set(helm).await?;
        let held: Armed = stage.proxy.at_match(Method::PUT, "secrets/sh.helm.release.v1.web.v2", 1, Fault::Hold);
        let child = stage.proxy.spawn(stage.command().stdout(Stdio::piped()).stderr(Stdio::piped()))?;
        held.reached().await?;
        assert_eq!(stage.records().await?, "1 superseded, 2 pending-upgrade");
        held.release();
        assert!(child.wait_with_output().await?.status.success());
        assert_eq!(stage.records().await?, "1 superseded, 2 deployed");
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_fault_can_last_until_it_is_disarmed() -> Result<()> {
    let stage = Stage::set(Helm::V4).await?;
    stage.proxy.always(Method::POST, "/secrets", Fault::INTERNAL_ERROR);
    for _ in 0..2 {
        assert_eq!(stage.upgrade().await?.code, Some(1));
    }
    stage.proxy.disarm();
    stage.upgrade().await?.ok().map(drop)
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn after_a_kill_another_client_may_come() -> Result<()> {
    let stage = Stage::set(Helm::V3).await?;
    stage.proxy.at_write(1, Fault::KillBefore);
    assert_eq!(stage.upgrade().await?.code, None);
    stage.upgrade().await?.ok().map(drop)
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_watch_goes_through_while_it_lasts() -> Result<()> {
    let stage = Stage::set(Helm::V4).await?;
    let mut watch = stage.namespace.kubectl();
    let _watch = stage.proxy.spawn(watch.args(["get", "configmaps", "-w"]).stdout(Stdio::null()))?;
    let seen = stage.proxy.reached(|request| request.query.contains("watch=true") && request.status.is_some()).await?;
    assert_eq!((seen.kind, seen.status), (Kind::Read, Some(200)));
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_proxy_may_stand_for_a_service_account() -> Result<()> {
    let namespace = Cluster::shared()?.namespace("proxy").await?;
    let account = namespace.account("tester", "view").await?;
    let proxy = Proxy::start_as(&namespace, &account.token).await?;
    let ran = proxy.run(namespace.helm(Helm::V4).args(["install", "web", CHART])).await?;
    assert!(ran.stderr.contains("forbidden"), "{}", ran.stderr);
    Ok(())
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn dry_runs_and_reviews_are_no_writes() -> Result<()> {
    let stage = Stage::set(Helm::V4).await?;
    stage.proxy.run(stage.command().arg("--dry-run=server")).await?.ok()?;
    stage.proxy.run(stage.namespace.kubectl().args(["auth", "can-i", "create", "pods"])).await?.ok()?;
    stage.proxy.run(stage.namespace.kubectl().args(["create", "configmap", "c", "--dry-run=server"])).await?.ok()?;
    let counts = stage.proxy.counts();
    assert_eq!((counts.writes(), counts.review), (0, 1));
    assert!(counts.dry_run > 0);
    Ok(())
}

/// A release of one revision, and a proxy in front of what comes next.
struct Stage {
    namespace: Namespace,
    helm: Helm,
    proxy: Proxy,
}

impl Stage {
    async fn set(helm: Helm) -> Result<Self> {
        let namespace = Cluster::shared()?.namespace("proxy").await?;
        run(namespace.helm(helm).args(["install", "web", CHART])).await?.ok()?;
        let proxy = Proxy::start(&namespace).await?;
        Ok(Self { namespace, helm, proxy })
    }

    fn command(&self) -> Command {
        let mut command = self.namespace.helm(self.helm);
        command.args(["upgrade", "web", CHART, "--set=message=bye", "--set=maps={a,b,d}"]);
        command
    }

    async fn upgrade(&self) -> Result<Ran> {
        self.proxy.run(&mut self.command()).await
    }

    async fn records(&self) -> Result<String> {
        let secrets = self.namespace.objects("/api/v1", "secrets").await?;
        let label = |secret: &Value, name: &str| Some(secret["metadata"]["labels"][name].as_str()?.to_owned());
        let records = secrets.iter().map(|secret| Some(label(secret, "version")? + " " + &label(secret, "status")?));
        Ok(records.collect::<Option<Vec<_>>>().context("a Secret that is no record")?.join(", "))
    }

    /// What the ConfigMaps a, b and d say.
    async fn messages(&self) -> Result<String> {
        let mut messages = Vec::new();
        for name in ["a", "b", "d"] {
            let map = self.namespace.object("/api/v1", "configmaps", name).await?.unwrap_or_default();
            messages.push(map["data"]["message"].as_str().unwrap_or("-").to_owned());
        }
        Ok(messages.join(" "))
    }
}
