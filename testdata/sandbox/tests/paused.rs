//! What only the sandbox can do: hours pass in no time, what is remembered is forgotten, permissions are denied.
#![expect(clippy::unwrap_used, reason = "a test ends where its preparation fails")]

use std::time::Duration;

use http::Request;
use kube::Client;
use sandbox::faults::Fault;
use sandbox::{Denial, Rules, Sandbox};
use serde_json::{Value, json};
use tokio::time::Instant;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";

async fn send(client: &Client, method: &str, path: &str, body: Option<Value>) -> Result<Value, kube::Error> {
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder().method(method).uri(path).header("Content-Type", "application/json");
    client.request(request.body(body).unwrap()).await
}

fn code(answer: Result<Value, kube::Error>) -> Option<u16> {
    match answer {
        Err(kube::Error::Api(status)) => Some(status.code),
        Err(_) | Ok(_) => None,
    }
}

fn map(name: &str) -> Option<Value> {
    Some(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))
}

fn deployment(replicas: u32) -> Option<Value> {
    let template =
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    Some(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }))
}

async fn ready(client: &Client) -> u64 {
    send(client, "GET", WEB, None).await.unwrap()["status"]["readyReplicas"].as_u64().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_workload_takes_its_time_to_become_ready() {
    let sandbox = Sandbox::new();
    sandbox.set_rules(Rules { ready_after: Duration::from_secs(30), ..Rules::default() });
    let client = sandbox.client("default");
    send(&client, "POST", WEB.trim_end_matches("/web"), deployment(2)).await.unwrap();
    tokio::time::advance(Duration::from_secs(29)).await;
    assert_eq!(ready(&client).await, 0);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(ready(&client).await, 2);
    assert!((sandbox.now() - chrono::Utc::now()).num_seconds() >= 29, "the server's clock follows");
}

#[tokio::test(start_paused = true)]
async fn a_watch_wakes_for_what_becomes_due_and_marks_the_hour() {
    let sandbox = Sandbox::new();
    sandbox.set_rules(Rules { ready_after: Duration::from_secs(90), ..Rules::default() });
    let client = sandbox.client("default");
    send(&client, "POST", WEB.trim_end_matches("/web"), deployment(1)).await.unwrap();
    let path = "/apis/apps/v1/namespaces/default/deployments?watch=true&allowWatchBookmarks=true&timeoutSeconds=100";
    let begun = Instant::now();
    let text = client.request_text(Request::get(path).body(vec![]).unwrap()).await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 100);
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let words: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(words, ["ADDED", "BOOKMARK", "MODIFIED"]);
    assert_eq!(events[2]["object"]["status"]["readyReplicas"], 1);
    assert_eq!(events[1]["object"]["spec"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_is_forgotten_is_gone_for_pages_and_watches() {
    let sandbox = Sandbox::new();
    let client = sandbox.client("default");
    for name in ["a", "b", "c"] {
        send(&client, "POST", MAPS, map(name)).await.unwrap();
    }
    let page = send(&client, "GET", &format!("{MAPS}?limit=1"), None).await.unwrap();
    let (token, version) = (&page["metadata"]["continue"], &page["metadata"]["resourceVersion"]);
    let next = format!("{MAPS}?limit=1&continue={}", token.as_str().unwrap());
    let watch = format!("{MAPS}?watch=true&timeoutSeconds=1&resourceVersion={}", version.as_str().unwrap());
    assert!(send(&client, "GET", &next, None).await.is_ok());
    send(&client, "POST", MAPS, map("d")).await.unwrap();
    sandbox.forget();
    assert_eq!(code(send(&client, "GET", &next, None).await), Some(410));
    let text = client.request_text(Request::get(watch).body(vec![]).unwrap()).await.unwrap();
    let event: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[tokio::test(start_paused = true)]
async fn a_permission_can_be_denied_and_is_told_of_by_reviews() {
    let sandbox = Sandbox::new();
    let client = sandbox.client("default");
    let (verb, resource) = ("delete".to_owned(), "configmaps".to_owned());
    sandbox.deny(Denial { verb, group: String::new(), resource, namespace: Some("default".into()) });
    send(&client, "POST", MAPS, map("a")).await.unwrap();
    assert_eq!(code(send(&client, "DELETE", &format!("{MAPS}/a"), None).await), Some(403));
    let wanted = json!({"verb": "delete", "resource": "configmaps", "namespace": "default"});
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": wanted},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(send(&client, "POST", path, Some(review)).await.unwrap()["status"]["allowed"], false);
}

#[tokio::test(start_paused = true)]
async fn faults_are_those_of_the_proxy() {
    let sandbox = Sandbox::new();
    let client = sandbox.client("default");
    sandbox.faults().at_write(1, Fault::LoseAnswer);
    sandbox.faults().at_write(2, Fault::Status { code: 429, retry_after: None });
    assert!(send(&client, "POST", MAPS, map("a")).await.is_err(), "the answer is lost");
    assert!(send(&client, "GET", &format!("{MAPS}/a"), None).await.is_ok(), "but the write was done");
    assert_eq!(code(send(&client, "POST", MAPS, map("b")).await), Some(429));
    assert_eq!(code(send(&client, "GET", &format!("{MAPS}/b"), None).await), Some(404));
    let killed = sandbox.faults().at_request(5, Fault::KillBefore);
    tokio::select! {
        _ = send(&client, "GET", MAPS, None) => unreachable!("a dead client has no answer"),
        () = killed.wait() => {}
    }
    assert!(sandbox.faults().is_dead());
    assert_eq!(sandbox.faults().counts().writes(), 2);
}
