//! Following releases over what goes wrong with watches: they end, they grow too old, the server fails, connections break.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use helm_release::action::{Client, Depth, Namespaces, News, ScanOptions, Scope, Sight, Stop};
use helm_release::plan::{Policy, State};
use helm_release::storage::DriverKind;
use serde_json::{Value, json};
use testcluster::{Cluster, Fault, Helm, Proxy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// What the server of a test does with a watch.
#[derive(Debug, Clone)]
enum Act {
    /// Answers with these events, and closes.
    Events(Vec<Value>),
    /// Answers with these events, and breaks the connection in the middle of a line.
    Break(Vec<Value>),
    /// Refuses with this code.
    Fail(u16),
    /// Answers, and says nothing more.
    Hold,
}

/// An API server without records that does one thing after another with the watches that it is asked for.
struct Server {
    port: u16,
    /// Where each watch began.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (asked, acts) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(acts)));
        let known = asked.clone();
        tokio::spawn(async move {
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(connection, known.clone(), acts.clone()));
            }
        });
        Self { port, asked }
    }

    fn client(&self) -> Client {
        let mut config = kube::Config::new(format!("http://127.0.0.1:{}", self.port).parse().unwrap());
        config.default_retry = false;
        Client::new(kube::Client::try_from(config).unwrap(), "shop".parse().unwrap(), DriverKind::Secrets)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// One request a connection, so that each can break alone.
async fn serve(mut connection: TcpStream, asked: Arc<Mutex<Vec<String>>>, acts: Arc<Mutex<Vec<Act>>>) {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut part = [0; 4096];
        let read = connection.read(&mut part).await.unwrap_or(0);
        if read == 0 {
            return;
        }
        request.extend_from_slice(&part[..read]);
    }
    let request = String::from_utf8(request).unwrap();
    let path = request.split(' ').nth(1).unwrap();
    if !path.contains("watch=1") {
        // Every list is of another time.
        let version = 100 * (asked.lock().unwrap().len() + 1);
        let list = json!({"metadata": {"resourceVersion": version.to_string()}, "items": []});
        return answer(&mut connection, "200 OK", &list.to_string()).await;
    }
    let from = path.split("resourceVersion=").nth(1).unwrap().split('&').next().unwrap();
    asked.lock().unwrap().push(from.to_owned());
    let act = {
        let mut acts = acts.lock().unwrap();
        if acts.is_empty() { Act::Hold } else { acts.remove(0) }
    };
    let chunked = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    match act {
        Act::Fail(code) => {
            let status = json!({"kind": "Status", "status": "Failure", "code": code, "message": "planned"});
            answer(&mut connection, &format!("{code} Planned"), &status.to_string()).await;
        }
        Act::Events(events) => {
            let _ = connection.write_all((chunked.to_owned() + &chunks(&events) + "0\r\n\r\n").as_bytes()).await;
        }
        Act::Break(events) => {
            let half = chunks(&events) + "40\r\n{\"type\":\"ADD";
            let _ = connection.write_all((chunked.to_owned() + &half).as_bytes()).await;
        }
        Act::Hold => {
            let _ = connection.write_all(chunked.as_bytes()).await;
            let _ = connection.read(&mut [0]).await; // until the client goes
        }
    }
}

fn chunks(events: &[Value]) -> String {
    let lines = events.iter().map(|event| format!("{event}\n"));
    lines.map(|line| format!("{:x}\r\n{line}\r\n", line.len())).collect()
}

async fn answer(connection: &mut TcpStream, status: &str, body: &str) {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let _ = connection.write_all((head + body).as_bytes()).await;
}

fn touched(version: u32) -> Value {
    let metadata = json!({
        "name": "sh.helm.release.v1.web.v1", "namespace": "shop", "resourceVersion": version.to_string(),
        "labels": {"owner": "helm", "name": "web"},
    });
    json!({"type": "MODIFIED", "object": {"kind": "PartialObjectMetadata", "metadata": metadata}})
}

fn too_old() -> Value {
    json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}})
}

fn options(policy: Policy) -> ScanOptions {
    ScanOptions { depth: Depth::Labels, policy }
}

fn scope() -> Scope {
    Scope { namespaces: Namespaces::All, selector: None }
}

/// The first `count` news, in a word each, and where each watch began.
async fn news(acts: Vec<Act>, count: usize) -> (Vec<String>, Vec<String>) {
    let server = Server::start(acts).await;
    let client = server.client();
    let stop = Stop::new(CancellationToken::new(), Some(Duration::from_secs(30)));
    let mut follow = client.follow(scope(), options(Policy::default()));
    let mut told = Vec::new();
    while told.len() < count {
        told.push(match follow.next(&stop).await.unwrap() {
            News::Scan(_) => "scan".into(),
            News::Release { namespace, name, sight: Sight::Absent } => format!("{namespace}/{name}"),
            News::Release { sight, .. } => panic!("{sight:?}"),
            News::Lost(error) => format!("lost {:?}", error.request().and_then(|request| request.code())),
        });
    }
    (told, server.asked())
}

#[tokio::test]
async fn a_watch_that_ends_goes_on_where_it_ended_and_looks_at_what_was_touched() {
    let acts = vec![Act::Events(vec![touched(107)]), Act::Events(vec![]), Act::Events(vec![touched(109)])];
    let (told, asked) = news(acts, 3).await;
    assert_eq!(told, ["scan", "shop/web", "shop/web"]);
    assert_eq!(asked, ["100", "107", "107"]);
}

#[tokio::test]
async fn a_connection_that_breaks_loses_nothing() {
    let (told, asked) = news(vec![Act::Break(vec![touched(104)]), Act::Events(vec![touched(105)])], 3).await;
    assert_eq!(told, ["scan", "shop/web", "shop/web"]);
    assert_eq!(asked[..2], ["100", "104"]);
}

#[tokio::test]
async fn a_version_that_is_too_old_has_all_looked_at_anew() {
    let (told, asked) =
        news(vec![Act::Events(vec![too_old()]), Act::Events(vec![touched(203)]), Act::Fail(410)], 4).await;
    // The third time the server says so before it answers at all.
    assert_eq!(told, ["scan", "scan", "shop/web", "scan"]);
    assert_eq!(asked, ["100", "200", "203", "400"]);
}

#[tokio::test]
async fn what_was_touched_before_the_watch_grew_too_old_is_looked_at_first() {
    let (told, asked) = news(vec![Act::Events(vec![touched(103), too_old()])], 3).await;
    assert_eq!(told, ["scan", "shop/web", "scan"]);
    assert_eq!(asked, ["100", "200"]);
}

#[tokio::test]
async fn a_server_that_fails_is_told_of_and_asked_again() {
    let acts = vec![Act::Events(vec![touched(103)]), Act::Fail(500), Act::Fail(503), Act::Events(vec![touched(104)])];
    let (told, asked) = news(acts, 5).await;
    assert_eq!(told, ["scan", "shop/web", "lost Some(500)", "lost Some(503)", "shop/web"]);
    assert_eq!(asked[..4], ["100", "103", "103", "103"]);
}

#[tokio::test]
async fn what_cannot_begin_is_an_error_and_so_is_a_right_that_is_taken_away() {
    let server = Server::start(vec![Act::Fail(500)]).await;
    let client = server.client();
    let error = client.follow(scope(), options(Policy::default())).next(&Stop::never()).await.unwrap_err();
    assert_eq!(error.request().and_then(|request| request.code()), Some(500));

    let server = Server::start(vec![Act::Events(vec![]), Act::Fail(403)]).await;
    let client = server.client();
    let mut follow = client.follow(scope(), options(Policy::default()));
    assert!(matches!(follow.next(&Stop::never()).await, Ok(News::Scan(_))));
    let error = follow.next(&Stop::never()).await.unwrap_err();
    assert_eq!(error.request().and_then(|request| request.code()), Some(403));
}

#[tokio::test]
async fn waiting_ends_when_it_is_time_to_stop() {
    let server = Server::start(vec![Act::Hold]).await;
    let client = server.client();
    let mut follow = client.follow(scope(), options(Policy::default()));
    assert!(matches!(follow.next(&Stop::never()).await, Ok(News::Scan(_))));
    let soon = Stop::new(CancellationToken::new(), Some(Duration::from_millis(50)));
    assert!(follow.next(&soon).await.unwrap_err().is_stopped());
}

#[tokio::test]
#[ignore = "needs the real control plane: make test"]
async fn a_release_is_seen_to_get_stuck_and_its_author_to_have_died_without_another_write() {
    let site = common::Site::new(&Cluster::shared().unwrap(), "follow", "plain").await;
    site.helm(Helm::V4, &["install", "--set", "message=one"]).await;
    let client = common::client(&site.ns.kubeconfig(), &site.ns).await;
    let scope = Scope { namespaces: Namespaces::One(site.ns.name().parse().unwrap()), selector: None };
    let policy = Policy { min_age: Duration::from_secs(6), ..Policy::default() };
    let mut follow = client.follow(scope, options(policy));
    let stop = Stop::new(CancellationToken::new(), Some(Duration::from_secs(60)));
    let News::Scan(first) = follow.next(&stop).await.unwrap() else { panic!("the first news is no scan") };
    assert!(first.items.is_empty());
    let proxy = Proxy::start(&site.ns).await.unwrap();
    proxy.at_write(3, Fault::KillBefore);
    proxy.run(&mut site.command(Helm::V4, &["upgrade", "--set", "message=two"])).await.unwrap();
    let mut states = Vec::new();
    while states.last() != Some(&State::Interrupted) {
        let News::Release { sight: Sight::Stuck(item), .. } = follow.next(&stop).await.unwrap() else { continue };
        states.push(item.plan.state);
    }
    assert_eq!(states.first(), Some(&State::InProgress), "{states:?}");
}
