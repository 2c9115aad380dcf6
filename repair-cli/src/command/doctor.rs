//! `doctor`: what this identity sees and may do in a namespace.

use chrono::TimeDelta;
use clap::Args;
use helm_release::action::Diagnosis;
use helm_release::cluster::Permission;
use serde::Serialize;

use crate::error::{Exit, Failure};
use crate::grant::Grant;
use crate::output::{Cell, Emphasis, Page, Table, View, Width, show};
use crate::session::Session;

/// From here on a clock is wrong.
const SKEW: TimeDelta = TimeDelta::seconds(5);
/// From here on a history is longer than Helm keeps by default, by far.
const LONG: usize = 100;

/// Checks the connection, permissions, storage and clock, and says what would stand in the way of a repair.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  gwrepair doctor -n shop
  gwrepair doctor -n shop --as system:serviceaccount:shop:deployer

Exits with 0 when all is well, 5 when a permission is missing.")]
pub(crate) struct Doctor {}

#[derive(Debug, Serialize)]
struct Checkup {
    server: String,
    namespace: String,
    checks: Vec<Check>,
    /// Permissions that a repair needs and this identity lacks.
    missing: Vec<Permission>,
    identity: Option<String>,
}

/// One thing that was looked at.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Check {
    check: String,
    verdict: Verdict,
    detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Note,
    Bad,
}

pub(crate) async fn run(_: Doctor, session: &Session) -> Result<Exit, Failure> {
    let diagnosis = session.client.doctor(&session.stop).await.map_err(|error| session.failure(&error))?;
    let checkup = Checkup::new(&session.server, session.namespace.as_str(), &diagnosis);
    show(&checkup, session.format)?;
    let sick = checkup.checks.iter().any(|check| check.verdict == Verdict::Bad);
    Ok(if sick { Exit::Failed } else { Exit::Done })
}

impl Checkup {
    fn new(server: &str, namespace: &str, diagnosis: &Diagnosis) -> Self {
        let mut checks = vec![
            Check::new("server", Verdict::Ok, format!("{server} {}", diagnosis.server_version)),
            Check::new("identity", Verdict::Ok, diagnosis.identity.as_deref().unwrap_or("the server does not say")),
            clock(diagnosis.clock_skew),
            storage(diagnosis),
        ];
        checks.extend(history(diagnosis));
        checks.extend(elsewhere(diagnosis));
        checks.extend(permissions(diagnosis));
        Self {
            server: server.into(),
            namespace: namespace.into(),
            checks,
            missing: missing(diagnosis),
            identity: diagnosis.identity.clone(),
        }
    }
}

impl Check {
    fn new(check: impl Into<String>, verdict: Verdict, detail: impl Into<String>) -> Self {
        Self { check: check.into(), verdict, detail: detail.into() }
    }
}

fn clock(skew: TimeDelta) -> Check {
    let seconds = skew.abs().num_milliseconds() as f64 / 1000.0;
    if skew.abs() < SKEW {
        return Check::new("clock", Verdict::Ok, format!("within {seconds:.1}s of the server's"));
    }
    let detail = format!("{seconds:.0}s from the server's; repairs go by the server's, times shown may be off");
    Check::new("clock", Verdict::Note, detail)
}

fn storage(diagnosis: &Diagnosis) -> Check {
    let (records, releases) = (diagnosis.records, diagnosis.releases);
    Check::new("storage", Verdict::Ok, format!("{}: {records} records of {releases} releases", diagnosis.driver))
}

fn history(diagnosis: &Diagnosis) -> Option<Check> {
    let (name, count) = diagnosis.largest_history.as_ref()?;
    let verdict = if *count > LONG { Verdict::Note } else { Verdict::Ok };
    Some(Check::new("history", verdict, format!("the longest has {count} records: {name}")))
}

fn elsewhere(diagnosis: &Diagnosis) -> Option<Check> {
    let other = diagnosis.driver.other();
    match diagnosis.other_driver_records {
        Some(0) => None,
        Some(count) => {
            let detail = format!("{count} more records with the {other} driver: --storage {other}");
            Some(Check::new("storage", Verdict::Note, detail))
        }
        None => Some(Check::new("storage", Verdict::Note, format!("the {other} driver's records may not be read"))),
    }
}

fn permissions(diagnosis: &Diagnosis) -> impl Iterator<Item = Check> {
    diagnosis.permissions.iter().map(|check| {
        let (verdict, word) = if check.granted { (Verdict::Ok, "granted") } else { (Verdict::Bad, "not granted") };
        let Permission { verb, resource, .. } = &check.permission;
        Check::new("permission", verdict, format!("{verb} {resource}: {word}"))
    })
}

fn missing(diagnosis: &Diagnosis) -> Vec<Permission> {
    let lacking = diagnosis.permissions.iter().filter(|check| !check.granted);
    lacking.map(|check| check.permission.clone()).collect()
}

impl View for Checkup {
    const KIND: &'static str = "Diagnosis";

    fn text(&self, _: Width) -> String {
        let mut table = Table::new(["CHECK", "RESULT", "DETAIL"]);
        for check in &self.checks {
            let (word, emphasis) = match check.verdict {
                Verdict::Ok => ("ok", Emphasis::Good),
                Verdict::Note => ("note", Emphasis::Warn),
                Verdict::Bad => ("bad", Emphasis::Bad),
            };
            table.row([Cell::new(&check.check), Cell::with(word, emphasis), Cell::new(&check.detail)]);
        }
        let mut page = Page::default();
        page.push(&table.text());
        Grant::new(self.missing.iter().cloned(), self.identity.as_deref()).tell(&mut page);
        page.into_text()
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}
