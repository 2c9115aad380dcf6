//! One suite over every driver: memory, and Secrets and ConfigMaps on the real API server; and lost answers on the way.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use common::wire;
use helm_release::cluster::Stop;
use helm_release::release::{Entry, Namespace, RecordKey, Release, Revision};
use helm_release::storage::{Detail, Driver, DriverKind, Error, Kubernetes, Memory, NewRecord, Query, Record, Storage};
use http::Method;
use serde_json::{Value, json};
use testcluster::{Cluster, Fault, Namespace as Site, Proxy};

fn release(name: &str, revision: u32, status: &str) -> Release {
    let info = json!({"status": status, "description": "x"});
    Release::parse(&json!({"name": name, "version": revision, "info": info}).to_string()).unwrap()
}

fn key(name: &str, revision: u32) -> RecordKey {
    RecordKey::new(name.parse().unwrap(), Revision::new(revision).unwrap())
}

struct Suite {
    storage: Storage,
    namespace: Namespace,
    stop: Stop,
}

impl Suite {
    fn new(driver: impl Driver + 'static, namespace: &str) -> Self {
        Self { storage: Storage::new(Arc::new(driver)), namespace: namespace.parse().unwrap(), stop: Stop::never() }
    }

    async fn create(&self, name: &str, revision: u32, status: &str) -> Result<Record, Error> {
        let labels = [("team".to_owned(), "x".to_owned()), ("status".to_owned(), "a lie".to_owned())].into();
        let (key, release) = (key(name, revision), release(name, revision, status));
        self.storage.create(&key, &self.namespace, &release, &labels, Utc::now(), &self.stop).await
    }

    async fn statuses(&self, name: &str) -> Vec<(u32, String)> {
        let name = name.parse().unwrap();
        let read = self.storage.history(&self.namespace, &name, &self.stop).await.unwrap();
        let status = |entry: &Entry| entry.status().map_or("unreadable".into(), ToString::to_string);
        read.history.entries().iter().map(|entry| (entry.revision.get(), status(entry))).collect()
    }

    async fn put(&self, key: RecordKey, labels: &[(&str, &str)], body: &str) {
        let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let record = NewRecord { key, labels, annotations: Default::default(), body: body.into() };
        self.storage.driver().create(&self.namespace, &record, &self.stop).await.unwrap();
    }

    async fn all(self) {
        self.creating_is_the_lock().await;
        self.a_write_needs_what_was_read().await;
        self.releases_do_not_mix().await;
        self.odd_records_are_found_in_their_place().await;
    }

    async fn creating_is_the_lock(&self) {
        let record = self.create("lock", 1, "pending-install").await.unwrap();
        assert_eq!(record.stored.labels["status"], "pending-install");
        assert_eq!(record.stored.labels["team"], "x");
        let again = self.create("lock", 1, "failed").await;
        assert!(matches!(again, Err(Error::Conflict { .. })), "{again:?}");
        assert_eq!(self.statuses("lock").await, [(1, "pending-install".into())]);
    }

    async fn a_write_needs_what_was_read(&self) {
        let (first, key) = (self.create("write", 1, "pending-install").await.unwrap(), key("write", 1));
        let close = |seen: Record, to: &'static str| {
            let release = release("write", 1, to);
            let key = key.clone();
            async move { self.storage.update(&seen, &key, &release, &self.stop).await }
        };
        let second = close(first.clone(), "failed").await.unwrap();
        assert_eq!(second.stored.labels["team"], "x", "labels of the user stay");
        assert_eq!(second.stored.labels["status"], "failed");
        assert!(matches!(close(first.clone(), "deployed").await, Err(Error::Conflict { .. })));
        let driver = self.storage.driver();
        assert!(matches!(driver.delete(&first, &self.stop).await, Err(Error::Conflict { .. })));
        assert_eq!(self.statuses("write").await, [(1, "failed".into())]);
        driver.delete(&second, &self.stop).await.unwrap();
        driver.delete(&second, &self.stop).await.unwrap();
        assert!(self.statuses("write").await.is_empty());
        assert!(matches!(close(second, "deployed").await, Err(Error::Conflict { .. })));
    }

    async fn releases_do_not_mix(&self) {
        for name in ["web", "web.v1", "web-2"] {
            self.create(name, 1, "deployed").await.unwrap();
        }
        self.create("web.v1", 2, "failed").await.unwrap();
        assert_eq!(self.statuses("web").await, [(1, "deployed".into())]);
        assert_eq!(self.statuses("web.v1").await.len(), 2);
        let query = Query {
            namespace: Some(self.namespace.clone()),
            selector: "owner=helm,name=web".into(),
            detail: Detail::Metadata,
        };
        let listing = self.storage.driver().list(&query, &self.stop).await.unwrap();
        assert_eq!(listing.records.len(), 1);
        assert!(listing.records[0].body.is_none());
    }

    async fn odd_records_are_found_in_their_place(&self) {
        self.create("odd", 2, "deployed").await.unwrap();
        let body = helm_release::codec::encode(&release("odd", 3, "pending-upgrade")).unwrap();
        self.put(key("odd", 3), &[], &body).await;
        self.put(key("odd", 4), &[("name", "odd"), ("owner", "somebody")], "%%%").await;
        let expected = [(2, "deployed".into()), (3, "pending-upgrade".into()), (4, "unreadable".into())];
        assert_eq!(self.statuses("odd").await, expected);
        let third = self.storage.driver().get(&self.namespace, &key("odd", 3).to_string(), &self.stop).await.unwrap();
        let closed = release("odd", 3, "failed");
        let closed = self.storage.update(&third.unwrap(), &key("odd", 3), &closed, &self.stop).await.unwrap();
        let labels = ["name", "owner", "status", "version"].map(|label| closed.stored.labels[label].as_str());
        assert_eq!(labels, ["odd", "helm", "failed", "3"], "Helm sees it from now on");
    }
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    Suite::new(Memory::new(), "ns").all().await;
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn secrets_and_config_maps_keep_the_contract() {
    for kind in [DriverKind::Secrets, DriverKind::ConfigMaps] {
        let ns = Cluster::shared().unwrap().namespace("storage").await.unwrap();
        let driver = Kubernetes::new(wire(&ns.kubeconfig()).await, kind);
        Suite::new(driver, ns.name()).all().await;
    }
}

/// A suite behind a proxy, for one kind of record.
async fn behind_a_proxy(kind: DriverKind) -> (Site, Proxy, Suite) {
    let ns = Cluster::shared().unwrap().namespace("storage").await.unwrap();
    let proxy = Proxy::start(&ns).await.unwrap();
    let suite = Suite::new(Kubernetes::new(wire(&proxy.kubeconfig()).await, kind), ns.name());
    (ns, proxy, suite)
}

const BUSY: Fault = Fault::Status { code: 429, retry_after: Some(Duration::ZERO) };
const UNAVAILABLE: Fault = Fault::Status { code: 503, retry_after: None };
const KINDS: [(DriverKind, &str); 2] = [(DriverKind::Secrets, "/secrets"), (DriverKind::ConfigMaps, "/configmaps")];

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_write_whose_answer_is_lost_is_settled_by_reading_back() {
    for ((kind, plural), fault) in KINDS.into_iter().flat_map(|kind| [(kind, Fault::LoseAnswer), (kind, BUSY)]) {
        let (_ns, proxy, suite) = behind_a_proxy(kind).await;
        let posted = proxy.at_match(Method::POST, plural, 1, fault);
        let record = suite.create("web", 1, "pending-install").await.unwrap();
        let put = proxy.at_match(Method::PUT, plural, 1, fault);
        let closed = release("web", 1, "failed");
        let closed = suite.storage.update(&record, &key("web", 1), &closed, &suite.stop).await.unwrap();
        assert_eq!(suite.statuses("web").await, [(1, "failed".into())], "{fault:?}");
        let deleted = proxy.at_match(Method::DELETE, plural, 1, fault);
        suite.storage.driver().delete(&closed, &suite.stop).await.unwrap();
        assert!(suite.statuses("web").await.is_empty());
        assert!([posted, put, deleted].iter().all(testcluster::Armed::is_reached));
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_write_that_really_failed_is_an_error_and_is_sent_once() {
    for fault in [Fault::Reset, Fault::INTERNAL_ERROR, UNAVAILABLE] {
        let (_ns, proxy, suite) = behind_a_proxy(DriverKind::Secrets).await;
        proxy.always(Method::POST, "/secrets", fault);
        let error = suite.create("web", 1, "pending-install").await.unwrap_err();
        assert!(matches!(error, Error::Cluster(_)), "{fault:?}: {error:?}");
        assert_eq!(proxy.counts().post, 1, "{fault:?}");
        assert!(suite.statuses("web").await.is_empty());
        proxy.disarm();
        let record = suite.create("web", 1, "pending-install").await.unwrap();
        proxy.always(Method::PUT, "/secrets", fault);
        let (key, closed) = (key("web", 1), release("web", 1, "failed"));
        let error = suite.storage.update(&record, &key, &closed, &suite.stop).await.unwrap_err();
        assert!(matches!(error, Error::Cluster(_)), "{fault:?}: {error:?}");
        assert_eq!((proxy.counts().put, suite.statuses("web").await), (1, vec![(1, "pending-install".into())]));
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn an_unclear_answer_over_somebody_elses_record_is_a_conflict() {
    let (ns, proxy, suite) = behind_a_proxy(DriverKind::Secrets).await;
    let theirs = suite.create("web", 1, "deployed").await.unwrap();
    proxy.at_match(Method::POST, "/secrets", 1, Fault::Reset);
    let error = suite.create("web", 1, "pending-install").await.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error:?}");
    // Between our read and our write somebody else writes.
    let held = proxy.at_match(Method::PUT, "/secrets", 1, Fault::Hold);
    let (key, ours) = (key("web", 1), release("web", 1, "failed"));
    let direct = Suite::new(Kubernetes::new(wire(&ns.kubeconfig()).await, DriverKind::Secrets), ns.name());
    let meddle = async {
        held.reached().await.unwrap();
        let other = release("web", 1, "superseded");
        direct.storage.update(&theirs, &key, &other, &direct.stop).await.unwrap();
        held.release();
    };
    let (ended, ()) = tokio::join!(suite.storage.update(&theirs, &key, &ours, &suite.stop), meddle);
    assert!(matches!(ended, Err(Error::Conflict { .. })), "{ended:?}");
    assert_eq!(suite.statuses("web").await, [(1, "superseded".into())]);
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_server_that_says_when_to_come_again_is_heard() {
    let (_ns, proxy, suite) = behind_a_proxy(DriverKind::Secrets).await;
    let second = Fault::Status { code: 429, retry_after: Some(Duration::from_secs(1)) };
    proxy.at_match(Method::POST, "/secrets", 1, second);
    let begun = Instant::now();
    suite.create("web", 1, "deployed").await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(proxy.counts().post, 2);
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn nothing_is_sent_again_for_ever() {
    let (_ns, proxy, suite) = behind_a_proxy(DriverKind::Secrets).await;
    let record = suite.create("web", 1, "deployed").await.unwrap();
    for fault in [BUSY, UNAVAILABLE, Fault::Reset] {
        proxy.always(Method::GET, "/secrets", fault);
        let name = "web".parse().unwrap();
        let before = proxy.counts().get;
        let error = suite.storage.history(&suite.namespace, &name, &suite.stop).await.unwrap_err();
        assert!(matches!(&error, Error::Cluster(_)), "{error:?}");
        assert!((8..=24).contains(&(proxy.counts().get - before)), "{fault:?}: {:?}", proxy.counts());
        proxy.disarm();
    }
    proxy.always(Method::DELETE, "/secrets", BUSY);
    let error = suite.storage.driver().delete(&record, &suite.stop).await.unwrap_err();
    assert!(matches!(&error, Error::Cluster(error) if error.code() == Some(429)), "{error:?}");
    assert_eq!(proxy.counts().delete, 8);
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_long_list_is_read_page_by_page_and_begun_again_where_it_grew_old() {
    let (_ns, proxy, suite) = behind_a_proxy(DriverKind::Secrets).await;
    let create = async |revision| suite.create("web", revision, "superseded").await.map(drop);
    futures::future::try_join_all((1..=120).map(create)).await.unwrap();
    let gone = Fault::Status { code: 410, retry_after: None };
    let old = proxy.at_match(Method::GET, "continue=", 1, gone);
    assert_eq!(suite.statuses("web").await.len(), 120);
    assert!(old.is_reached());
    proxy.always(Method::GET, "?limit=100", gone);
    let name = "web".parse().unwrap();
    let error = suite.storage.history(&suite.namespace, &name, &suite.stop).await.unwrap_err();
    assert!(matches!(&error, Error::Cluster(error) if error.code() == Some(410)), "{error:?}");
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_copy_is_set_aside_and_a_record_of_another_type_is_one_as_for_helm() {
    let (ns, _proxy, suite) = behind_a_proxy(DriverKind::Secrets).await;
    let record = suite.create("web", 1, "deployed").await.unwrap();
    let path = ns.path("/api/v1", "secrets");
    let stored = ns.object("/api/v1", "secrets", &record.stored.key).await.unwrap().unwrap();
    let put = async |name: &str, kind: &str, data: &Value| {
        let metadata = json!({"name": name, "labels": stored["metadata"]["labels"]});
        let object = json!({"metadata": metadata, "type": kind, "data": data});
        ns.cluster().create(&path, &object).await.unwrap();
    };
    put("sh.helm.release.v1.web.v1-copy", "helm.sh/release.v1", &stored["data"]).await;
    let name = "web".parse().unwrap();
    let read = suite.storage.history(&suite.namespace, &name, &suite.stop).await.unwrap();
    let keys = |entries: &[Entry]| entries.iter().map(|entry| entry.stored.key.clone()).collect::<Vec<_>>();
    assert_eq!(keys(read.history.entries()), ["sh.helm.release.v1.web.v1"]);
    assert_eq!(keys(read.history.copies()), ["sh.helm.release.v1.web.v1-copy"]);
    let body = helm_release::codec::encode(&release("web", 2, "pending-upgrade")).unwrap();
    use base64::Engine;
    let encoded = base64::engine::general_purpose::STANDARD.encode(body);
    put("sh.helm.release.v1.web.v2", "Opaque", &json!({"release": encoded})).await;
    assert_eq!(suite.statuses("web").await, [(1, "deployed".into()), (2, "pending-upgrade".into())]);
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_read_is_sent_again() {
    let (_ns, proxy, suite) = behind_a_proxy(DriverKind::Secrets).await;
    suite.create("web", 1, "deployed").await.unwrap();
    for fault in [Fault::INTERNAL_ERROR, Fault::Reset, BUSY, UNAVAILABLE, Fault::LoseAnswer] {
        let armed = proxy.at_match(Method::GET, "/secrets", 1, fault);
        assert_eq!(suite.statuses("web").await.len(), 1, "{fault:?}");
        assert!(armed.is_reached());
    }
}
