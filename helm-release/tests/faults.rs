//! Every request of a repair goes wrong once, in every way, on an API server in memory and under paused time: whatever
//! happens, the next repair ends where an undisturbed one does.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends where its preparation fails")]

use std::collections::BTreeMap;
use std::time::Duration;

use helm_release::action::{Client, Outcome, RepairOptions, Report, Stop};
use helm_release::plan::{Intent, Policy};
use helm_release::release::{Entry, Status};
use helm_release::storage::DriverKind;
use sandbox::Sandbox;
use sandbox::faults::Fault;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// What real Helm left when it was killed.
const OBJECTS: &str = include_str!("../../testdata/demo/objects.jsonl");
const RELEASES: [(&str, &str); 4] = [("cart", "web"), ("crm", "db"), ("pay", "api"), ("shop", "web")];
/// Longer than anybody is waited for.
const LONG: Duration = Duration::from_secs(4 * 3600);
/// How often a run that met a fault may have to be begun anew.
const RUNS: usize = 3;

struct Case {
    sandbox: Sandbox,
    client: Client,
    namespace: &'static str,
    name: &'static str,
}

impl Case {
    async fn new(namespace: &'static str, name: &'static str) -> Self {
        let sandbox = Sandbox::new();
        for line in OBJECTS.lines() {
            sandbox.plant(serde_json::from_str(line).unwrap()).unwrap();
        }
        let client = Client::new(sandbox.client(namespace), namespace.parse().unwrap(), DriverKind::Secrets);
        tokio::time::advance(LONG).await;
        Self { sandbox, client, namespace, name }
    }

    async fn repair(&self, stop: &Stop) -> Result<Report, helm_release::action::Error> {
        let (policy, options) = (Policy::default(), RepairOptions::default());
        let name = self.name.parse().unwrap();
        let planned = self.client.plan(&name, Intent::Usable, &policy, &options, stop).await?;
        Ok(self.client.repair(&planned, &options, stop, &()).await)
    }

    /// Repairs until there is nothing to do, as a person or a controller would.
    async fn repair_to_the_end(&self) -> End {
        for _ in 0..RUNS {
            tokio::time::advance(LONG).await;
            let report = self.repair(&Stop::never()).await.unwrap();
            match report.outcome {
                Outcome::NothingToDo => return self.end().await,
                Outcome::Repaired | Outcome::Changed => {}
                Outcome::Waiting | Outcome::Refused | Outcome::Failed | Outcome::Cancelled | Outcome::Restored => {
                    panic!("{}/{}: {:?}: {:?}", self.namespace, self.name, report.outcome, report.error)
                }
            }
        }
        panic!("{}/{}: not at its end after {RUNS} repairs", self.namespace, self.name)
    }

    /// A run that failed, and could settle what it had opened, leaves a release that is not stuck: Helm goes on from there.
    async fn wanted(&self, undisturbed: &End, report: Option<Report>) -> End {
        match report.filter(|report| report.settled.is_some()) {
            Some(report) => {
                assert!(matches!(report.outcome, Outcome::Failed | Outcome::Cancelled) && report.error.is_some());
                End { newest: Some("failed".into()), ..self.end().await }
            }
            None => End { newest: undisturbed.newest.clone(), objects: undisturbed.objects.clone() },
        }
    }

    async fn end(&self) -> End {
        let history = self.client.history(&self.name.parse().unwrap(), &Stop::never()).await.unwrap();
        let deployed = history.entries().iter().filter(|entry| entry.status() == Some(&Status::Deployed)).count();
        let newest = history.last().and_then(Entry::status).map(ToString::to_string);
        assert!(deployed <= 1 && !newest.as_ref().is_some_and(|status| status.starts_with("pending")), "{newest:?}");
        let objects = self.sandbox.objects(Some(self.namespace));
        let substance = |object: &Value| {
            let place = format!("{} {}", object["kind"], object["metadata"]["name"]);
            let metadata = json!([object["metadata"]["labels"], object["metadata"]["annotations"]]);
            (place, json!([object["spec"], object["data"], metadata]))
        };
        let is_record = |object: &&Value| object["type"] == "helm.sh/release.v1";
        End { newest, objects: objects.iter().filter(|object| !is_record(object)).map(substance).collect() }
    }
}

/// How a release ends: the newest status, and every object of its namespace.
#[derive(Debug, PartialEq)]
struct End {
    newest: Option<String>,
    objects: BTreeMap<String, Value>,
}

/// The end of an undisturbed repair, and how many requests it took.
async fn undisturbed(namespace: &'static str, name: &'static str) -> (End, usize) {
    let case = Case::new(namespace, name).await;
    assert_eq!(case.repair(&Stop::never()).await.unwrap().outcome, Outcome::Repaired);
    let requests = case.sandbox.faults().requests().len();
    let writes = case.sandbox.faults().counts().writes();
    let end = case.repair_to_the_end().await;
    assert_eq!(case.sandbox.faults().counts().writes(), writes, "{namespace}/{name}: a second repair wrote");
    (end, requests)
}

async fn every_request(faults: &[Fault]) {
    for (namespace, name) in RELEASES {
        let (end, requests) = undisturbed(namespace, name).await;
        for (fault, n) in faults.iter().flat_map(|fault| (1..=requests).map(move |n| (*fault, n))) {
            let case = Case::new(namespace, name).await;
            let armed = case.sandbox.faults().at_request(n, fault);
            let stop = Stop::never();
            let report = tokio::select! {
                report = case.repair(&stop) => report.ok(),
                // A client that is killed never hears of it.
                () = dead(&case.sandbox, &armed) => None,
            };
            assert!(armed.is_reached(), "{namespace}/{name}: request {n} of {requests} never came");
            case.sandbox.faults().revive();
            let brief = case.sandbox.faults().requests()[n - 1].to_string();
            let (ended, wanted) = (case.repair_to_the_end().await, case.wanted(&end, report).await);
            assert_eq!(ended, wanted, "{namespace}/{name}: {fault:?} at {brief}");
        }
    }
}

/// Ends once the client was killed.
async fn dead(sandbox: &Sandbox, armed: &sandbox::faults::Armed) {
    armed.wait().await;
    if !sandbox.faults().is_dead() {
        std::future::pending::<()>().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_repair_killed_before_any_request_is_completed_by_the_next() {
    every_request(&[Fault::KillBefore]).await;
}

#[tokio::test(start_paused = true)]
async fn a_repair_killed_after_any_request_is_completed_by_the_next() {
    every_request(&[Fault::KillAfter]).await;
}

#[tokio::test(start_paused = true)]
async fn a_repair_survives_any_request_refused_once() {
    let busy = Fault::Status { code: 429, retry_after: Some(Duration::from_secs(1)) };
    every_request(&[busy, Fault::INTERNAL_ERROR, Fault::Status { code: 503, retry_after: None }]).await;
}

#[tokio::test(start_paused = true)]
async fn a_repair_survives_any_request_lost_once() {
    every_request(&[Fault::Reset, Fault::LoseAnswer]).await;
}

#[tokio::test(start_paused = true)]
async fn a_repair_stopped_at_any_request_settles_and_sends_nothing_afterwards() {
    for (namespace, name) in RELEASES {
        let (end, requests) = undisturbed(namespace, name).await;
        for n in 1..=requests {
            let case = Case::new(namespace, name).await;
            let held = case.sandbox.faults().at_request(n, Fault::Hold);
            let token = CancellationToken::new();
            let stop = Stop::new(token.clone(), None);
            let cancel = async {
                held.reached().await.unwrap();
                token.cancel();
                held.release();
            };
            let (report, ()) = tokio::join!(case.repair(&stop), cancel);
            let sent = case.sandbox.faults().requests().len();
            let report = report.ok();
            let unsettled = report.as_ref().and_then(|report| report.unsettled.as_ref());
            assert_eq!(unsettled, None, "{namespace}/{name}: stopped at request {n}");
            tokio::time::advance(LONG).await;
            assert_eq!(case.sandbox.faults().requests().len(), sent, "{namespace}/{name}: sent after the return");
            let (ended, wanted) = (case.repair_to_the_end().await, case.wanted(&end, report).await);
            assert_eq!(ended, wanted, "{namespace}/{name}: stopped at request {n}");
        }
    }
}
