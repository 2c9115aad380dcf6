//! Gives every claim of the default class a volume of its own, so that no test waits for another's.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::Cluster;

const CLASS: &str = "testcluster";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const CLAIMS: &str = "/api/v1/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";

/// Creates the default storage class.
pub(crate) async fn create_class(cluster: &Cluster) -> Result<()> {
    let class = json!({
        "metadata": { "name": CLASS, "annotations": { "storageclass.kubernetes.io/is-default-class": "true" } },
        "provisioner": "testcluster/volumes",
    });
    if cluster.get(&format!("{CLASSES}/{CLASS}")).await?.is_none() {
        cluster.create(CLASSES, &class).await?;
    }
    Ok(())
}

/// Serves claims until it is dropped.
pub(crate) async fn provide(cluster: Cluster) {
    loop {
        // The stream ends when the server closes it, or when the server itself is ending.
        if follow(&cluster).await.is_err() {
            sleep(Duration::from_millis(200)).await;
        }
    }
}

async fn follow(cluster: &Cluster) -> Result<()> {
    let answer = cluster.request(Method::GET, &format!("{CLAIMS}?watch=true")).send().await?.error_for_status()?;
    let mut chunks = answer.bytes_stream();
    let mut buffer = Vec::new();
    while let Some(chunk) = chunks.next().await {
        buffer.extend_from_slice(&chunk?);
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            serve(cluster, &serde_json::from_slice(&line)?).await?;
        }
    }
    Ok(())
}

async fn serve(cluster: &Cluster, event: &Value) -> Result<()> {
    let claim = &event["object"];
    let uid = claim["metadata"]["uid"].as_str().context("a claim without a uid")?;
    if claim["spec"]["storageClassName"] != CLASS {
        return Ok(());
    }
    // Twice created and twice deleted are no errors: the events of one claim are many.
    let name = format!("pvc-{uid}");
    if event["type"] == "DELETED" {
        cluster.send(Method::DELETE, &format!("{VOLUMES}/{name}"), None).await?;
    } else if claim["spec"]["volumeName"].is_null() {
        cluster.send(Method::POST, VOLUMES, Some(&volume(&name, claim))).await?;
    }
    Ok(())
}

fn volume(name: &str, claim: &Value) -> Value {
    let owner = &claim["metadata"];
    json!({
        "metadata": { "name": name, "annotations": { "pv.kubernetes.io/provisioned-by": "testcluster/volumes" } },
        "spec": {
            "accessModes": claim["spec"]["accessModes"],
            "capacity": claim["spec"]["resources"]["requests"],
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": owner["name"],
                "namespace": owner["namespace"],
                "uid": owner["uid"],
            },
            "hostPath": { "path": "/nowhere" }, // kwok mounts nothing
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": CLASS,
            "volumeMode": claim["spec"]["volumeMode"],
        },
    })
}
