//! `status`: one revision, as Helm shows it.

use chrono::{DateTime, Utc};
use clap::Args;
use helm_release::release::{Hook, LastRun, Release, Revision, Status as Word};
use serde::Serialize;

use crate::cli::Target;
use crate::error::{Exit, Failure};
use crate::output::{Emphasis, View, Width, go_ansic, show};
use crate::session::{Session, entry, readable};

/// Shows a release as its newest record has it.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  gwrepair status web -n shop
  gwrepair status web -n shop --revision 3")]
pub(crate) struct Status {
    /// The release, as NAME or NAMESPACE/NAME.
    #[arg(value_name = "RELEASE")]
    release: Target,
    /// Show this revision instead of the newest.
    #[arg(long, value_name = "REVISION")]
    revision: Option<Revision>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shown {
    name: String,
    namespace: String,
    last_deployed: Option<DateTime<Utc>>,
    status: String,
    revision: Revision,
    description: String,
    notes: String,
    #[serde(skip)]
    suites: Vec<(String, LastRun)>,
}

pub(crate) async fn run(args: Status, session: &Session) -> Result<Exit, Failure> {
    let history = session.history(&args.release).await?;
    let entry = entry(&history, args.revision)?;
    let release = readable(entry)?;
    show(&Shown::new(history.namespace.as_str(), entry.revision, release), session.format)?;
    let stuck = release.status().is_pending() || release.status() == &Word::Uninstalling;
    if stuck && history.last().is_some_and(|last| last.revision == entry.revision) {
        let next = session.again.command("plan", &history.namespace, &history.name, "");
        session.remark(&format!("hint: Helm refuses upgrades while it says {}; see: {next}", release.status()));
    }
    Ok(Exit::Done)
}

impl Shown {
    pub(crate) fn new(namespace: &str, revision: Revision, release: &Release) -> Self {
        let tests = |hook: &Hook| hook.runs_at("test") || hook.runs_at("test-success");
        Self {
            name: release.name().unwrap_or_default().into(),
            namespace: namespace.into(),
            last_deployed: release.info().last_deployed,
            status: release.status().to_string(),
            revision,
            description: release.info().description.clone(),
            notes: release.notes(),
            suites: release.hooks().into_iter().filter(tests).map(|hook| (hook.name, hook.last_run)).collect(),
        }
    }

    /// Everything above the notes.
    pub(crate) fn head(&self, chart: &str) -> String {
        let deployed = self.last_deployed.map(go_ansic).unwrap_or_default();
        let status = Emphasis::of_status(&self.status).paint(&self.status);
        format!(
            "NAME: {}\nLAST DEPLOYED: {deployed}\nNAMESPACE: {}\nSTATUS: {status}\nREVISION: {}\n{chart}DESCRIPTION: {}\n{}",
            self.name,
            self.namespace,
            self.revision,
            self.description,
            self.tests()
        )
    }

    pub(crate) fn notes(&self) -> String {
        let notes = self.notes.trim_end();
        if notes.is_empty() { String::new() } else { format!("NOTES:\n{notes}\n") }
    }

    fn tests(&self) -> String {
        if self.suites.is_empty() {
            return "TEST SUITE: None\n".into();
        }
        let time = |time: Option<DateTime<Utc>>| time.map(go_ansic).unwrap_or_default();
        let suite = |(name, run): &(String, LastRun)| {
            let (started, completed) = (time(run.started_at), time(run.completed_at));
            format!(
                "TEST SUITE:     {name}\nLast Started:   {started}\nLast Completed: {completed}\nPhase:          {}\n",
                run.phase
            )
        };
        self.suites.iter().map(suite).collect()
    }
}

impl View for Shown {
    const KIND: &'static str = "Status";

    fn text(&self, _: Width) -> String {
        self.head("") + &self.notes()
    }

    fn names(&self) -> Vec<String> {
        vec![format!("{}/{}", self.namespace, self.name)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_shown_as_helm_does() {
        let json = r#"{"name":"web","version":2,"hooks":[],
            "info":{"status":"deployed","description":"Upgrade complete","last_deployed":"2026-11-30T23:44:06Z","notes":"Hello web"}}"#;
        let shown = Shown::new("shop", Revision::new(2).unwrap(), &Release::parse(json).unwrap());
        let expected = "\
NAME: web
LAST DEPLOYED: Mon Nov 30 23:44:06 2026
NAMESPACE: shop
STATUS: deployed
REVISION: 2
DESCRIPTION: Upgrade complete
TEST SUITE: None
NOTES:
Hello web
";
        assert_eq!(anstream::adapter::strip_str(&shown.text(Width::Normal)).to_string(), expected);
    }
}
