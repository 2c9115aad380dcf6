//! `list`: the releases, as Helm lists them; those that Helm would hide are there too.

use chrono::{DateTime, Utc};
use clap::Args;
use helm_release::action::Head;
use helm_release::release::{Release, Status};
use regex::Regex;
use serde::Serialize;

use super::scan::chart;
use crate::cli::Where;
use crate::error::{Exit, Failure};
use crate::output::{Cell, Table, View, Width, go_string, print, show};
use crate::session::Session;

/// Lists releases by their newest record, whatever it says; one that cannot be read is shown in its place.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_long_help = "\
Examples:
  gwrepair list -A
  gwrepair list -n shop --pending --failed
  gwrepair list -A --filter '^web' --date --reverse --max 10"
)]
pub(crate) struct List {
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    only: Only,
    /// Only releases whose names match this regular expression.
    #[arg(short, long, value_name = "REGEX")]
    filter: Option<Regex>,
    /// Sort by date instead of by name.
    #[arg(short, long)]
    date: bool,
    /// Reverse the order.
    #[arg(short, long)]
    reverse: bool,
    /// Show at most this many; 0 shows all.
    #[arg(short, long, value_name = "COUNT", default_value_t = 256)]
    max: usize,
    /// Pass over this many first.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    offset: usize,
    /// Show names only, as Helm does.
    // The global -q gives way to Helm's here.
    #[arg(id = "quiet", short = 'q', long = "short")]
    short: bool,
    /// Show no column heads.
    #[arg(long)]
    no_headers: bool,
}

/// Which statuses; none of these means all.
#[derive(Debug, Args)]
struct Only {
    /// All releases (the default).
    #[arg(short, long)]
    all: bool,
    /// Those that are deployed.
    #[arg(long)]
    deployed: bool,
    /// Those that failed.
    #[arg(long)]
    failed: bool,
    /// Those that are pending.
    #[arg(long)]
    pending: bool,
    /// Those that are superseded.
    #[arg(long)]
    superseded: bool,
    /// Those that are uninstalled with their history kept.
    #[arg(long)]
    uninstalled: bool,
    /// Those that are being uninstalled, or were when it stopped.
    #[arg(long)]
    uninstalling: bool,
}

#[derive(Debug, Serialize)]
struct Releases {
    items: Vec<Row>,
    #[serde(skip)]
    headers: bool,
}

/// One release, with Helm's names.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    namespace: String,
    revision: u32,
    updated: Option<DateTime<Utc>>,
    status: String,
    chart: String,
    app_version: String,
}

pub(crate) async fn run(args: List, session: &Session) -> Result<Exit, Failure> {
    let heads = session.client.releases(&session.scope(&args.place), &session.stop).await;
    let heads = heads.map_err(|error| session.failure(&error))?;
    let releases = args.select(heads);
    if args.short {
        print(&releases.items.iter().map(|row| format!("{}\n", row.name)).collect::<String>())?;
    } else {
        show(&releases, session.format)?;
    }
    Ok(Exit::Done)
}

impl List {
    fn select(&self, heads: Vec<Head>) -> Releases {
        let named = |head: &&Head| self.filter.as_ref().is_none_or(|regex| regex.is_match(head.name.as_str()));
        let status = |head: &&Head| self.only.takes(head.entry.status());
        let mut rows: Vec<Row> = heads.iter().filter(named).filter(status).map(Row::new).collect();
        rows.sort_by(|a, b| (&a.name, &a.namespace).cmp(&(&b.name, &b.namespace)));
        if self.date {
            rows.sort_by_key(|row| row.updated);
        }
        if self.reverse {
            rows.reverse();
        }
        let max = if self.max == 0 { usize::MAX } else { self.max };
        Releases { items: rows.into_iter().skip(self.offset).take(max).collect(), headers: !self.no_headers }
    }
}

impl Only {
    /// A record that cannot be read has no status to be passed over by.
    fn takes(&self, status: Option<&Status>) -> bool {
        let any =
            self.deployed || self.failed || self.pending || self.superseded || self.uninstalled || self.uninstalling;
        if self.all || !any {
            return true;
        }
        match status {
            Some(Status::Deployed) => self.deployed,
            Some(Status::Failed) => self.failed,
            Some(Status::Superseded) => self.superseded,
            Some(Status::Uninstalled) => self.uninstalled,
            Some(Status::Uninstalling) => self.uninstalling,
            Some(Status::PendingInstall | Status::PendingUpgrade | Status::PendingRollback) => self.pending,
            Some(Status::Unknown | Status::Other(_)) => false,
            None => true,
        }
    }
}

impl Row {
    fn new(head: &Head) -> Self {
        let release = head.entry.release();
        let info = release.and_then(Release::chart);
        let missing = if release.is_some() { "MISSING" } else { "-" };
        Self {
            name: head.name.to_string(),
            namespace: head.namespace.to_string(),
            revision: head.entry.revision.get(),
            updated: release.map_or(head.entry.stored.created, |release| release.info().last_deployed),
            status: release.map_or("unreadable".into(), |release| release.status().to_string()),
            chart: info.as_ref().map_or(missing.into(), chart),
            app_version: info.map_or(missing.into(), |info| info.app_version),
        }
    }
}

impl View for Releases {
    const KIND: &'static str = "ReleaseList";

    fn text(&self, _: Width) -> String {
        let mut table = Table::new(["NAME", "NAMESPACE", "REVISION", "UPDATED", "STATUS", "CHART", "APP VERSION"]);
        for row in &self.items {
            table.row([
                Cell::new(&row.name),
                Cell::new(&row.namespace),
                row.revision.into(),
                Cell::maybe(row.updated.map(go_string)),
                Cell::status(&row.status),
                Cell::new(&row.chart),
                Cell::new(&row.app_version),
            ]);
        }
        if self.headers { table } else { table.without_head() }.text()
    }

    fn names(&self) -> Vec<String> {
        self.items.iter().map(|row| format!("{}/{}", row.namespace, row.name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use helm_release::release::{Content, Entry, Stored};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[arg(long, global = true)]
        namespace: Option<String>,
        #[command(flatten)]
        list: List,
    }

    fn list(flags: &str) -> List {
        Line::try_parse_from(format!("list {flags}").split_whitespace()).unwrap().list
    }

    fn head(name: &str, status: &str, day: u32) -> Head {
        let json = format!(
            r#"{{"name":"{name}","version":2,"info":{{"status":"{status}","last_deployed":"2026-11-{day}T00:00:00Z"}},
                "chart":{{"metadata":{{"name":"c","version":"1.0","appVersion":"2"}}}}}}"#
        );
        let content = Content::Readable(Box::new(Release::parse(&json).unwrap()));
        let stored = Stored { key: format!("sh.helm.release.v1.{name}.v2"), ..Stored::default() };
        let entry = Entry::place(stored, content).unwrap();
        Head { namespace: "shop".parse().unwrap(), name: name.parse().unwrap(), entry }
    }

    fn names(flags: &str) -> Vec<String> {
        let heads = vec![head("b", "deployed", 12), head("c", "pending-upgrade", 11), head("a", "failed", 13)];
        list(flags).select(heads).items.into_iter().map(|row| row.name).collect()
    }

    #[test]
    fn every_status_is_listed_unless_some_are_asked_for() {
        assert_eq!(names(""), ["a", "b", "c"]);
        assert_eq!(names("--pending"), ["c"]);
        assert_eq!(names("--failed --deployed"), ["a", "b"]);
    }

    #[test]
    fn helms_flags_sort_cut_and_filter() {
        assert_eq!(names("--date"), ["c", "b", "a"]);
        assert_eq!(names("-d -r -m 1"), ["a"]);
        assert_eq!(names("--offset 1 --max 0"), ["b", "c"]);
        assert_eq!(names("-f ^[ab]$"), ["a", "b"]);
    }

    #[test]
    fn the_columns_are_helms() {
        let text = list("").select(vec![head("web", "failed", 13)]).text(Width::Normal);
        let text = anstream::adapter::strip_str(&text).to_string();
        let expected = "\
NAME   NAMESPACE   REVISION   UPDATED                         STATUS   CHART   APP VERSION
web    shop        2          2026-11-13 00:00:00 +0000 UTC   failed   c-1.0   2
";
        assert_eq!(text, expected);
    }
}
