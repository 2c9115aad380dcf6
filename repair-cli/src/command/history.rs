//! `history`: all revisions of a release, unreadable ones in their place.

use chrono::{DateTime, Utc};
use clap::Args;
use helm_release::release::{self, Content, Entry, Release};
use serde::Serialize;

use super::scan::chart;
use crate::cli::Target;
use crate::error::{Exit, Failure};
use crate::output::{Cell, Table, View, Width, go_ansic, show};
use crate::session::Session;

/// Shows the revisions of a release. A record that cannot be read is shown in its place.
#[derive(Debug, Args)]
#[command(
    visible_alias = "hist",
    after_long_help = "\
Examples:
  gwrepair history web -n shop
  gwrepair history web -n shop --max 5 -o json"
)]
pub(crate) struct History {
    /// The release, as NAME or NAMESPACE/NAME.
    #[arg(value_name = "RELEASE")]
    release: Target,
    /// Show at most this many, the newest.
    #[arg(long, value_name = "COUNT", default_value_t = 256)]
    max: usize,
}

#[derive(Debug, Serialize)]
pub(crate) struct Revisions {
    #[serde(skip)]
    id: String,
    items: Vec<Row>,
}

/// One revision, with Helm's names.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    revision: u32,
    updated: Option<DateTime<Utc>>,
    status: String,
    chart: String,
    app_version: String,
    description: String,
}

pub(crate) async fn run(args: History, session: &Session) -> Result<Exit, Failure> {
    let history = session.history(&args.release).await?;
    show(&Revisions::new(&history, args.max), session.format)?;
    Ok(Exit::Done)
}

impl Revisions {
    pub(crate) fn new(history: &release::History, max: usize) -> Self {
        let entries = history.entries();
        let newest = entries.get(entries.len().saturating_sub(max)..).unwrap_or_default();
        Self { id: format!("{}/{}", history.namespace, history.name), items: newest.iter().map(Row::new).collect() }
    }

    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new(["REVISION", "UPDATED", "STATUS", "CHART", "APP VERSION", "DESCRIPTION"]);
        for row in &self.items {
            table.row([
                row.revision.into(),
                Cell::maybe(row.updated.map(go_ansic)),
                Cell::status(&row.status),
                Cell::new(&row.chart),
                Cell::new(&row.app_version),
                Cell::new(&row.description),
            ]);
        }
        table
    }
}

impl Row {
    fn new(entry: &Entry) -> Self {
        let revision = entry.revision.get();
        match &entry.content {
            Content::Readable(release) => Self::readable(revision, release),
            Content::Unreadable { why } => Self {
                revision,
                updated: entry.stored.created,
                status: "unreadable".into(),
                chart: "-".into(),
                app_version: "-".into(),
                description: why.clone(),
            },
        }
    }

    fn readable(revision: u32, release: &Release) -> Self {
        let info = release.info();
        let chart_info = release.chart();
        Self {
            revision,
            updated: info.last_deployed,
            status: release.status().to_string(),
            chart: chart_info.as_ref().map_or("MISSING".into(), chart),
            app_version: chart_info.map_or("MISSING".into(), |chart| chart.app_version),
            description: info.description.clone(),
        }
    }
}

impl View for Revisions {
    const KIND: &'static str = "History";

    fn text(&self, _: Width) -> String {
        self.table().text()
    }

    fn names(&self) -> Vec<String> {
        vec![self.id.clone()]
    }
}

#[cfg(test)]
mod tests {
    use helm_release::release::{History, Stored};

    use super::*;

    fn entry(revision: u32, content: Content) -> Entry {
        let stored = Stored { key: format!("sh.helm.release.v1.web.v{revision}"), ..Stored::default() };
        Entry::place(stored, content).unwrap()
    }

    fn readable(json: &str) -> Content {
        Content::Readable(Box::new(Release::parse(json).unwrap()))
    }

    #[test]
    fn an_unreadable_record_is_shown_in_its_place() {
        let one = r#"{"name":"web","version":1,"chart":{"metadata":{"name":"web","version":"1.2.3","appVersion":"2.0"}},
            "info":{"status":"superseded","description":"Install complete","last_deployed":"2026-11-30T23:44:06Z"}}"#;
        let three = r#"{"name":"web","version":3,"info":{"status":"deployed"}}"#;
        let bad = Content::Unreadable { why: "is damaged gzip".into() };
        let entries = vec![entry(3, readable(three)), entry(2, bad), entry(1, readable(one))];
        let history = History::new("web".parse().unwrap(), "shop".parse().unwrap(), entries);
        let text = anstream::adapter::strip_str(&Revisions::new(&history, 256).text(Width::Normal)).to_string();
        let expected = "\
REVISION   UPDATED                    STATUS       CHART       APP VERSION   DESCRIPTION
1          Mon Nov 30 23:44:06 2026   superseded   web-1.2.3   2.0           Install complete
2          -                          unreadable   -           -             is damaged gzip
3          -                          deployed     MISSING     MISSING
";
        assert_eq!(text, expected);
        assert_eq!(Revisions::new(&history, 2).items[0].revision, 2);
    }
}
