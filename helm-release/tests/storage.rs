//! One suite over every driver: memory, and Secrets and ConfigMaps on the real API server; and lost answers on the way.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use helm_release::cluster::{Stop, Wire};
use helm_release::release::{Entry, Namespace, RecordKey, Release, Revision};
use helm_release::storage::{Detail, Driver, DriverKind, Error, Kubernetes, Memory, NewRecord, Query, Record, Storage};
use http::Method;
use serde_json::json;
use testcluster::{Cluster, Fault, Proxy};

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
        let record = NewRecord { key, labels, body: body.into() };
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
    }
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    Suite::new(Memory::new(), "ns").all().await;
}

async fn wire(kubeconfig: &std::path::Path) -> Wire {
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    config.default_retry = false;
    Wire::new(kube::Client::try_from(config).unwrap())
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

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_write_whose_answer_is_lost_is_settled_by_reading_back() {
    for fault in [Fault::LoseAnswer, Fault::Status { code: 429, retry_after: Some(Duration::ZERO) }] {
        let ns = Cluster::shared().unwrap().namespace("lost").await.unwrap();
        let proxy = Proxy::start(&ns).await.unwrap();
        let suite = Suite::new(Kubernetes::new(wire(&proxy.kubeconfig()).await, DriverKind::Secrets), ns.name());
        proxy.at_match(Method::POST, "secrets", 1, fault);
        let record = suite.create("web", 1, "pending-install").await.unwrap();
        proxy.at_match(Method::PUT, "secrets/", 1, fault);
        let closed = release("web", 1, "failed");
        suite.storage.update(&record, &key("web", 1), &closed, &suite.stop).await.unwrap();
        assert_eq!(suite.statuses("web").await, [(1, "failed".into())], "{fault:?}");
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_write_that_really_failed_is_an_error() {
    for fault in [Fault::Reset, Fault::INTERNAL_ERROR] {
        let ns = Cluster::shared().unwrap().namespace("failed").await.unwrap();
        let proxy = Proxy::start(&ns).await.unwrap();
        let suite = Suite::new(Kubernetes::new(wire(&proxy.kubeconfig()).await, DriverKind::Secrets), ns.name());
        proxy.at_match(Method::POST, "secrets", 1, fault);
        let error = suite.create("web", 1, "pending-install").await.unwrap_err();
        assert!(matches!(error, Error::Cluster(_)), "{fault:?}: {error:?}");
        assert!(suite.statuses("web").await.is_empty());
    }
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_read_is_sent_again_and_not_for_ever() {
    let ns = Cluster::shared().unwrap().namespace("reads").await.unwrap();
    let proxy = Proxy::start(&ns).await.unwrap();
    let suite = Suite::new(Kubernetes::new(wire(&proxy.kubeconfig()).await, DriverKind::Secrets), ns.name());
    suite.create("web", 1, "deployed").await.unwrap();
    for fault in [Fault::INTERNAL_ERROR, Fault::Reset, Fault::Status { code: 429, retry_after: Some(Duration::ZERO) }] {
        proxy.at_match(Method::GET, "secrets", 1, fault);
        assert_eq!(suite.statuses("web").await.len(), 1, "{fault:?}");
    }
    proxy.always(Method::GET, "secrets", Fault::Status { code: 429, retry_after: Some(Duration::ZERO) });
    let name = "web".parse().unwrap();
    let error = suite.storage.history(&suite.namespace, &name, &suite.stop).await.unwrap_err();
    assert!(matches!(&error, Error::Cluster(error) if error.code() == Some(429)), "{error:?}");
}
