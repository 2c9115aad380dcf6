//! `scan`: which releases are stuck, and what `repair` would do about each.

use chrono::{DateTime, Utc};
use clap::Args;
use helm_release::action::{self, Depth, Head, ScanOptions, Scope};
use helm_release::plan::Policy;
use helm_release::release::{ChartInfo, Entry, Namespace, Release, ReleaseName, Status};
use serde::Serialize;

use super::watch;
use crate::cli::Where;
use crate::error::{Exit, Failure};
use crate::explain::next;
use crate::output::{Cell, Format, Table, View, Width, ago, show};
use crate::session::{Session, line};

/// The state of a release that was stuck and has no record any more.
pub(super) const GONE: &str = "gone";

/// Finds the releases that are stuck.
///
/// Looks at the labels of all records and at the payloads of those that may be stuck; `--deep` decodes the newest record of every
/// release, since labels can lie and records can be damaged. What comes next is told by the evidence; whether it can be done (by the
/// permissions of this identity, by admission) is found out by plan and repair.
///
/// `--watch` shows the table, then a line for each release that gets stuck, changes, or is stuck no longer (freed, or gone with its
/// records). It watches the records, and looks again when a wait is over. JSON and YAML are one document for each release and
/// change, JSON on a line of its own, with its `event`: stuck, changed, freed, or usable (with `--all`). It ends with 130 at
/// Ctrl-C, and with 0 when nobody reads on.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  gwrepair scan -A
  gwrepair scan -n shop --deep
  gwrepair scan -A -o name | xargs -n1 gwrepair plan
  gwrepair scan -A --watch -o json | jq --unbuffered -r '[.event, .name] | @tsv'

Exits with 0 when nothing is stuck, 3 when something is.")]
pub(crate) struct Scan {
    #[command(flatten)]
    place: Where,
    /// Show all releases, not only those that are stuck.
    #[arg(long)]
    pub(super) all: bool,
    /// Decode the newest record of every release.
    #[arg(long)]
    deep: bool,
    /// Follow: show what is there, then a line for each change.
    #[arg(short, long)]
    watch: bool,
}

/// What a scan found.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    pub(super) items: Vec<Item>,
    unreadable: Vec<Unreadable>,
    failures: Vec<Unseen>,
    /// Records of Helm 2, which are left alone.
    helm2: usize,
    #[serde(skip)]
    now: DateTime<Utc>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Item {
    namespace: String,
    name: String,
    revision: Option<u32>,
    status: String,
    pub(super) state: &'static str,
    since: Option<DateTime<Utc>>,
    last_deployed: Option<u32>,
    chart: Option<String>,
    next: String,
    pub(super) stuck: bool,
    #[serde(skip)]
    why: Option<String>,
}

/// A record that cannot be read.
#[derive(Debug, Serialize)]
struct Unreadable {
    namespace: String,
    key: String,
    why: String,
}

/// A release that could not be looked at.
#[derive(Debug, Serialize)]
struct Unseen {
    namespace: String,
    name: String,
    error: String,
}

pub(crate) async fn run(args: Scan, session: &Session) -> Result<Exit, Failure> {
    let scope = session.scope(&args.place);
    if args.watch {
        return watch::run(&args, session, &scope).await;
    }
    let found = look(&args, session, &scope).await?;
    let stuck = found.items.iter().filter(|item| item.stuck).count();
    if !found.items.is_empty() || !matches!(session.format, Format::Table | Format::Wide) {
        show(&found, session.format)?;
    }
    found.remarks(session);
    Ok(found.exit(stuck))
}

async fn look(args: &Scan, session: &Session, scope: &Scope) -> Result<Found, Failure> {
    let scan = session.client.scan(scope, &options(args), &session.stop).await;
    complete(args, session, scope, scan.map_err(|error| session.failure(&error))?).await
}

pub(super) fn options(args: &Scan) -> ScanOptions {
    ScanOptions { depth: if args.deep { Depth::Payloads } else { Depth::Labels }, policy: Policy::default() }
}

/// Adds what `--all` wants to see, and sorts.
pub(super) async fn complete(
    args: &Scan,
    session: &Session,
    scope: &Scope,
    scan: action::Scan,
) -> Result<Found, Failure> {
    let mut found = Found::new(scan);
    if args.all {
        let heads = session.client.releases(scope, &session.stop).await.map_err(|error| session.failure(&error))?;
        found.add(heads);
    }
    found.items.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    Ok(found)
}

impl Found {
    fn new(scan: action::Scan) -> Self {
        let unreadable = scan.unreadable.into_iter().map(|record| Unreadable {
            namespace: record.namespace,
            key: record.key,
            why: record.why,
        });
        let failures = scan.failures.into_iter().map(|failure| Unseen {
            namespace: failure.namespace.to_string(),
            name: failure.name.to_string(),
            error: line(&failure.error),
        });
        Self {
            items: scan.items.into_iter().map(Item::stuck).collect(),
            unreadable: unreadable.collect(),
            failures: failures.collect(),
            helm2: scan.helm2,
            now: Utc::now(),
        }
    }

    /// Adds the releases that are not stuck.
    fn add(&mut self, heads: Vec<Head>) {
        let known: Vec<String> = self.items.iter().map(Item::id).collect();
        self.items.extend(
            heads
                .into_iter()
                .map(|head| Item::usable(&head.namespace, &head.name, &head.entry))
                .filter(|item| !known.contains(&item.id())),
        );
    }

    /// No items but these.
    pub(super) fn of(items: Vec<Item>, now: DateTime<Utc>) -> Self {
        Self { items, unreadable: Vec::new(), failures: Vec::new(), helm2: 0, now }
    }

    pub(super) fn remarks(&self, session: &Session) {
        let stuck = self.items.iter().filter(|item| item.stuck).count();
        if stuck == 0 && self.failures.is_empty() && self.unreadable.is_empty() {
            session.remark("no stuck releases");
        }
        for record in &self.unreadable {
            session.remark(&format!("unreadable: record {} in {}: {}", record.key, record.namespace, record.why));
        }
        if self.helm2 > 0 {
            session.remark(&format!("{} records of Helm 2 are left alone", self.helm2));
        }
        for unseen in &self.failures {
            session.remark(&format!("not looked at: {}/{}: {}", unseen.namespace, unseen.name, unseen.error));
        }
    }

    /// What could not be looked at may be stuck.
    fn exit(&self, stuck: usize) -> Exit {
        match (stuck, self.failures.len()) {
            (0, 0) => Exit::Done,
            (0, _) => Exit::Failed,
            _ => Exit::Due,
        }
    }

    pub(super) fn table(&self, wide: bool) -> Table {
        let columns =
            ["NAMESPACE", "NAME", "REVISION", "STATUS", "STATE", "SINCE", "LAST DEPLOYED", "CHART", "NEXT", "WHY"];
        let mut table = Table::new(columns.into_iter().take(if wide { 10 } else { 9 }));
        for item in &self.items {
            table.row(item.cells(self.now, wide));
        }
        table
    }
}

impl View for Found {
    const KIND: &'static str = "Scan";

    fn text(&self, width: Width) -> String {
        self.table(width == Width::Wide).text()
    }

    fn names(&self) -> Vec<String> {
        self.items.iter().map(Item::id).collect()
    }
}

impl Item {
    pub(super) fn stuck(item: action::ScanItem) -> Self {
        let plan = item.plan;
        let wait = plan.wait.as_ref().map(|wait| wait.reason.clone());
        Self {
            namespace: plan.namespace.to_string(),
            name: plan.name.to_string(),
            revision: plan.revision.map(|revision| revision.get()),
            status: item.status,
            state: plan.state.word(),
            since: item.since,
            last_deployed: item.last_deployed.map(|revision| revision.get()),
            chart: item.chart.as_ref().map(chart),
            next: next(&plan),
            stuck: true,
            why: wait.or(plan.refusals.first().map(|refusal| refusal.reason.clone())),
        }
    }

    pub(super) fn usable(namespace: &Namespace, name: &ReleaseName, entry: &Entry) -> Self {
        let release = entry.release();
        Self {
            namespace: namespace.to_string(),
            name: name.to_string(),
            revision: Some(entry.revision.get()),
            status: release.map_or("unreadable".into(), |release| release.status().to_string()),
            state: usable_state(entry),
            since: entry.stored.touched.or(entry.stored.created),
            last_deployed: release
                .filter(|release| release.status() == &Status::Deployed)
                .map(|_| entry.revision.get()),
            chart: release.and_then(Release::chart).as_ref().map(chart),
            next: "-".into(),
            stuck: false,
            why: None,
        }
    }

    /// It, once no more is known of it than that it is not stuck.
    pub(super) fn left(&self, state: &'static str) -> Self {
        Self { status: "-".into(), state, next: "-".into(), stuck: false, why: None, ..self.clone() }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.state == GONE
    }

    pub(super) fn id(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    fn cells(&self, now: DateTime<Utc>, wide: bool) -> Vec<Cell> {
        let mut cells = vec![
            Cell::new(&self.namespace),
            Cell::new(&self.name),
            Cell::maybe(self.revision),
            Cell::status(&self.status),
            Cell::status(self.state),
            Cell::maybe(self.since.map(|since| ago(since, now))),
            Cell::maybe(self.last_deployed),
            Cell::maybe(self.chart.as_deref()),
            Cell::new(&self.next),
        ];
        if wide {
            cells.push(Cell::maybe(self.why.as_deref()));
        }
        cells
    }
}

/// The state of a release that a scan did not list.
fn usable_state(entry: &Entry) -> &'static str {
    match entry.status() {
        Some(Status::Deployed) => "healthy",
        Some(Status::Uninstalled) => "uninstalled",
        Some(Status::Failed | Status::Superseded) => "not-stuck",
        Some(
            Status::Unknown
            | Status::Uninstalling
            | Status::PendingInstall
            | Status::PendingUpgrade
            | Status::PendingRollback
            | Status::Other(_),
        )
        | None => "undecided",
    }
}

/// A chart as Helm shows it.
pub(crate) fn chart(chart: &ChartInfo) -> String {
    format!("{}-{}", chart.name, chart.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Item {
        pub(in crate::command) fn sample(name: &str, state: &'static str, stuck: bool) -> Self {
            Self {
                namespace: "shop".into(),
                name: name.into(),
                revision: Some(4),
                status: "pending-upgrade".into(),
                state,
                since: DateTime::from_timestamp(1_796_082_246, 0),
                last_deployed: Some(3),
                chart: Some("web-1.2.3".into()),
                next: "rollback to 3".into(),
                stuck,
                why: Some("because".into()),
            }
        }
    }

    fn item(name: &str) -> Item {
        Item::sample(name, "interrupted", true)
    }

    fn found(items: Vec<Item>) -> Found {
        let now = DateTime::from_timestamp(1_796_082_246 + 720, 0).unwrap();
        Found::of(items, now)
    }

    #[test]
    fn the_table_says_what_is_stuck_since_when_and_what_comes_next() {
        let text = anstream::adapter::strip_str(&found(vec![item("web")]).text(Width::Normal)).to_string();
        let expected = "\
NAMESPACE   NAME   REVISION   STATUS            STATE         SINCE   LAST DEPLOYED   CHART       NEXT
shop        web    4          pending-upgrade   interrupted   12m     3               web-1.2.3   rollback to 3
";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_json_has_the_documented_members() {
        let value = serde_json::to_value(found(vec![item("web")])).unwrap();
        let members: Vec<_> = value["items"][0].as_object().unwrap().keys().map(String::as_str).collect();
        let documented =
            ["chart", "lastDeployed", "name", "namespace", "next", "revision", "since", "state", "status", "stuck"];
        assert_eq!(members, documented);
        assert!(value["unreadable"].is_array());
    }

    #[test]
    fn a_stuck_release_is_exit_3_and_one_that_could_not_be_looked_at_is_5() {
        let mut scan = found(vec![item("web")]);
        assert_eq!(scan.exit(1), Exit::Due);
        assert_eq!(found(Vec::new()).exit(0), Exit::Done);
        scan.failures.push(Unseen { namespace: "a".into(), name: "b".into(), error: "c".into() });
        assert_eq!(scan.exit(0), Exit::Failed);
    }
}
