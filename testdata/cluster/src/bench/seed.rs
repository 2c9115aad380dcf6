//! 50,000 records on the real server, derived from those of real Helm: seeded once and kept.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use testcluster::Cluster;

use crate::fixtures::payload;

/// In how many namespaces.
const NAMESPACES: usize = 50;
/// How many releases in all.
pub(super) const RELEASES: usize = 5000;
/// How many revisions each has.
pub(super) const REVISIONS: usize = 10;
/// How many releases are stuck.
pub(super) const STUCK: usize = 20;
/// How many bytes of text each record holds.
pub(super) const BYTES: usize = 12 << 10;
/// How many requests are under way at once.
const AT_ONCE: usize = 16;
/// Raise it when other records are to be seeded.
pub(super) const VERSION: &str = "1";

const RECORDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../records/helm4-ssa");

/// Records of real Helm, by status.
struct Originals {
    superseded: Value,
    deployed: Value,
    upgrade: Value,
    rollback: Value,
}

/// Creates every record.
pub(super) async fn seed(cluster: &Cluster) -> Result<()> {
    let originals = Originals::read(Path::new(RECORDS))?;
    for namespace in 0..NAMESPACES {
        let object = json!({ "metadata": { "name": self::namespace(namespace) } });
        cluster.create("/api/v1/namespaces", &object).await?;
    }
    stream::iter((0..RELEASES * REVISIONS).map(|number| {
        let record = originals.record(number / REVISIONS, number % REVISIONS + 1);
        async move {
            let record = record?;
            let namespace = record["metadata"]["namespace"].as_str().context("no namespace")?;
            cluster.create(&format!("/api/v1/namespaces/{namespace}/secrets"), &record).await
        }
    }))
    .buffer_unordered(AT_ONCE)
    .try_for_each(|_| async { Ok(()) })
    .await
}

fn namespace(number: usize) -> String {
    format!("bench-{number:02}")
}

impl Originals {
    fn read(dir: &Path) -> Result<Self> {
        let read = |status: &str| Ok::<Value, anyhow::Error>(serde_json::from_slice(&fs::read(dir.join(status))?)?);
        Ok(Self {
            superseded: read("superseded.json")?,
            deployed: read("deployed.json")?,
            upgrade: read("pending-upgrade.json")?,
            rollback: read("pending-rollback.json")?,
        })
    }

    /// The record of a revision of the release of that number. Those that are stuck are spread over the namespaces.
    fn record(&self, release: usize, revision: usize) -> Result<Value> {
        let nth = release / (RELEASES / STUCK);
        let stuck = release.is_multiple_of(RELEASES / STUCK);
        let original = match (stuck, REVISIONS - revision) {
            (true, 0) if nth.is_multiple_of(2) => &self.upgrade,
            (true, 0) => &self.rollback,
            (true, 1) | (false, 0) => &self.deployed,
            _ => &self.superseded,
        };
        let name = format!("release-{release:04}");
        let mut secret = renamed(original, &name, &namespace(release * NAMESPACES / RELEASES), revision);
        let mut payload = payload::release(original)?;
        payload["name"] = json!(name);
        payload["namespace"] = secret["metadata"]["namespace"].clone();
        payload["version"] = json!(revision);
        // The filler is noise, which gzip cannot shrink, as an archive in a chart is; base64 makes it a third larger.
        let text = original["data"]["release"].as_str().context("no release")?.len() / 4 * 3;
        let filler = noise((release * REVISIONS + revision) as u64, BYTES.saturating_sub(text) / 4 * 3);
        let files = payload["chart"]["files"].as_array_mut().context("no files")?;
        files.push(json!({ "name": "files/filler", "data": STANDARD.encode(filler) }));
        secret = payload::with_release(&secret, &payload)?;
        Ok(secret)
    }
}

/// The Secret under another name, without what the server itself sets.
fn renamed(original: &Value, name: &str, namespace: &str, revision: usize) -> Value {
    let mut labels = original["metadata"]["labels"].clone();
    labels["name"] = json!(name);
    labels["version"] = json!(revision.to_string());
    let key = format!("sh.helm.release.v1.{name}.v{revision}");
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": original["type"],
        "metadata": { "name": key, "namespace": namespace, "labels": labels },
        "data": {},
    })
}

/// Bytes that look like chance and are the same each time.
pub(super) fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(|_| byte()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_about_as_large_as_it_says_and_knows_its_own_name() -> Result<()> {
        let originals = Originals::read(Path::new(RECORDS))?;
        for (release, revision, status) in
            [(0, 10, "pending-upgrade"), (250, 10, "pending-rollback"), (250, 9, "deployed"), (4999, 10, "deployed")]
        {
            let record = originals.record(release, revision)?;
            assert_eq!(record["metadata"]["labels"]["status"], status);
            assert_eq!(payload::release(&record)?["name"], record["metadata"]["labels"]["name"]);
            let bytes = STANDARD.decode(record["data"]["release"].as_str().context("no text")?)?.len();
            assert!(bytes.abs_diff(BYTES) < BYTES / 20, "{bytes}");
        }
        Ok(())
    }
}
