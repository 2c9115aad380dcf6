//! `restore`: brings releases back to what a backup says of them.

use std::path::{Path, PathBuf};

use clap::Args;
use helm_release::action::{Outcome, PlannedRestore, Requests, RestoreOptions, RestoreReport};
use helm_release::backup::{self, Action, Backup, Lost, RestorePlan, RestoreStep};
use helm_release::plan::Refusal;
use serde::Serialize;

use super::repair::confirm;
use super::report::{time, word};
use crate::again::Again;
use crate::error::{Exit, Failure};
use crate::grant::Grant;
use crate::output::{Cell, Emphasis, Page, Table, View, Width, say, show, stamp};
use crate::progress::{Board, Mode};
use crate::saved::KeepFlags;
use crate::session::{Session, line};

/// Undoes a repair, or brings back what `backup` saved: records, and objects as they were.
///
/// Plans like a repair, and shows the plan. What is already as it was is not written. A record or an object that somebody
/// else has changed since is left alone, and what cannot come back is named: no record is locked again, no Job that has
/// ended runs again, no claim that was bound is made anew. It goes to the namespace that was saved. What is there now is
/// saved first, so that a restore can be undone in its turn.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  gwrepair restore ~/.local/share/gwrepair/backups/shop/web-20261201T024253Z.json
  gwrepair restore web.json --dry-run
  gwrepair restore web.json --yes

Exits with 0 when restored or nothing was to do, 3 when something would be done (--dry-run), 4 when it refuses, 5 when it
failed.")]
pub(crate) struct Restore {
    /// The file, as `repair` named it or `backup` wrote it.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Restore into a namespace that has the name of the one that was saved, but is another.
    #[arg(long)]
    elsewhere: bool,
    #[command(flatten)]
    keep: KeepFlags,
    /// Confirm beforehand.
    #[arg(short, long)]
    yes: bool,
    /// Show the plan only.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(args: Restore, session: &Session) -> Result<Exit, Failure> {
    let backup = read(&args.file)?;
    let options = RestoreOptions { elsewhere: args.elsewhere };
    let mut planned = Vec::new();
    for release in &backup.releases {
        let plan = session.client.plan_restore(backup.taken, release, &options, &session.stop).await;
        planned.push(plan.map_err(|error| session.failure(&error))?);
    }
    let plans =
        Plans { items: planned.iter().map(|planned| &planned.plan).collect(), file: &args.file, planned: &planned };
    if args.dry_run {
        show(&plans, session.format)?;
        return Ok(plans.exit());
    }
    let acts = planned.iter().any(|planned| planned.plan.acts());
    if !session.is_quiet() && plans.exit() != Exit::Done {
        say(&(plans.text(Width::Normal) + "\n"));
    }
    if acts && !confirm(args.yes, session, "Restore as shown?", "a restore must be confirmed").await? {
        session.remark("nothing was done");
        return Ok(Exit::Refused);
    }
    let reports = execute(&args, session, &planned).await;
    let shown = Reports::new(&reports, &session.again);
    show(&shown, session.format)?;
    for error in reports.iter().filter(|report| report.outcome == Outcome::Failed).filter_map(|r| r.error.as_ref()) {
        say(&session.failure(error).text());
    }
    Ok(shown.exit())
}

async fn execute(args: &Restore, session: &Session, planned: &[PlannedRestore]) -> Vec<RestoreReport> {
    let board = Board::new(Mode::choose(session.is_quiet()), planned.len());
    let drawing = board.draw();
    let mut reports = Vec::new();
    for planned in planned {
        let id = format!("{}/{}", planned.plan.namespace, planned.plan.name);
        let track = board.track(id, planned.plan.steps.len(), args.keep.keeper(&session.server));
        reports.push(session.client.restore(planned, &session.stop, &track).await);
    }
    drop(drawing);
    reports
}

/// Reads a backup; what is wrong with it names the file and the way out.
fn read(path: &Path) -> Result<Backup, Failure> {
    let attempt = format!("could not read the backup {}", path.display());
    let text = std::fs::read_to_string(path).map_err(|why| {
        Failure::new(&attempt).because(&why).hint("`gwrepair repair` names the file in its report, as `backup`")
    })?;
    Backup::parse(&text).map_err(|why| {
        let failure = Failure::new(&attempt).because(&why);
        #[expect(clippy::wildcard_enum_match_arm, reason = "the other ways of being wrong have one way out")]
        match why {
            backup::Error::Version(_) => failure.hint("a later gwrepair wrote it: restore with that one"),
            backup::Error::Truncated => failure.hint("take another copy of it; nothing was written to the cluster"),
            _ => failure
                .hint("`gwrepair backup` and `gwrepair repair` write backups; nothing was written to the cluster"),
        }
    })
}

/// How releases would be restored.
#[derive(Serialize)]
struct Plans<'a> {
    file: &'a Path,
    items: Vec<&'a RestorePlan>,
    #[serde(skip)]
    planned: &'a [PlannedRestore],
}

impl Plans<'_> {
    fn exit(&self) -> Exit {
        match (self.items.iter().any(|plan| !plan.refusals.is_empty()), self.items.iter().any(|plan| plan.acts())) {
            (true, _) => Exit::Refused,
            (false, true) => Exit::Due,
            (false, false) => Exit::Done,
        }
    }
}

impl View for Plans<'_> {
    const KIND: &'static str = "RestorePlanList";

    fn text(&self, _: Width) -> String {
        let mut page = Page::default();
        for plan in &self.items {
            page.gap();
            explain(&mut page, plan, self.file);
        }
        let missing: Vec<_> = self.planned.iter().flat_map(|planned| &planned.missing).cloned().collect();
        let identity = self.planned.iter().find_map(|planned| planned.identity.as_deref());
        Grant::new(missing, identity).tell(&mut page);
        page.into_text()
    }

    fn names(&self) -> Vec<String> {
        self.items.iter().map(|plan| format!("{}/{}", plan.namespace, plan.name)).collect()
    }
}

fn explain(page: &mut Page, plan: &RestorePlan, file: &Path) {
    let subject = format!("Release {} in namespace {}", plan.name, plan.namespace);
    let origin = match &plan.undoes {
        Some(run) => format!("what was there before a {run}"),
        None => "what a backup saved".into(),
    };
    page.item("", &format!("{subject}: {origin}, at {} ({}).", stamp(plan.taken), file.display()));
    page.gap();
    match (plan.acts(), plan.refusals.is_empty()) {
        (true, _) => page.item("", "Restore would:"),
        (false, true) => page.item("", "There is nothing to restore."),
        (false, false) => page.item("", "Restore refuses:"),
    }
    for (at, step) in plan.steps.iter().enumerate() {
        let text = short(step);
        let (first, rest) = text.split_at(1);
        page.item(&format!("{:>3}. ", at + 1), &format!("{}{rest}.", first.to_uppercase()));
    }
    for Refusal { reason, flag } in &plan.refusals {
        let flag = flag.as_ref().map(|flag| format!(" ({flag} goes on all the same)")).unwrap_or_default();
        page.item("  - ", &format!("{reason}{flag}"));
    }
    losses(page, &plan.lost);
}

fn losses(page: &mut Page, lost: &[Lost]) {
    if lost.is_empty() {
        return;
    }
    page.heading(&format!("Not as it was ({})", lost.len()));
    for Lost { what, reason } in lost {
        page.item("  - ", &format!("{what}: {reason}"));
    }
}

/// A step in a few words.
pub(crate) fn short(step: &RestoreStep) -> String {
    match step {
        RestoreStep::CreateRecord { revision, status, .. } => format!("create record {revision} again, {}", status.0),
        RestoreStep::WriteObject { object, action: Action::Create } => format!("create {object} again"),
        RestoreStep::WriteObject { object, action: Action::Update } => format!("change {object} back"),
        RestoreStep::DeleteObject { object, proof, .. } => format!("delete {object}: {proof}"),
        RestoreStep::CloseRecord { revision, status, .. } => format!("mark record {revision} {}", status.0),
        RestoreStep::DeleteRecord { revision } => format!("delete record {revision}, which the run had made"),
    }
}

/// What was done to releases.
#[derive(Serialize)]
struct Reports<'a> {
    items: Vec<Shown<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    namespace: &'a str,
    name: &'a str,
    outcome: &'static str,
    steps: Vec<Done<'a>>,
    equal: &'a [String],
    lost: &'a [Lost],
    refusals: &'a [Refusal],
    backup: Option<&'a Path>,
    requests: Requests,
    error: Option<String>,
    #[serde(skip)]
    report: &'a RestoreReport,
    #[serde(skip)]
    again: &'a Again,
}

#[derive(Serialize)]
struct Done<'a> {
    step: &'a RestoreStep,
    result: &'a str,
    ms: u64,
}

impl<'a> Reports<'a> {
    fn new(reports: &'a [RestoreReport], again: &'a Again) -> Self {
        Self { items: reports.iter().map(|report| Shown::new(report, again)).collect() }
    }

    fn exit(&self) -> Exit {
        let exit = |shown: &Shown<'_>| match shown.report.outcome {
            Outcome::Restored | Outcome::Repaired | Outcome::NothingToDo => Exit::Done,
            Outcome::Refused | Outcome::Waiting | Outcome::Changed => Exit::Refused,
            Outcome::Failed => Exit::Failed,
            Outcome::Cancelled => Exit::Interrupted,
        };
        self.items.iter().map(exit).max().unwrap_or(Exit::Done)
    }
}

impl<'a> Shown<'a> {
    fn new(report: &'a RestoreReport, again: &'a Again) -> Self {
        let done = report.steps.iter().map(|step| Done {
            step: &step.step,
            result: step.error.as_deref().unwrap_or("done"),
            ms: step.ms,
        });
        Self {
            namespace: report.namespace.as_str(),
            name: report.name.as_str(),
            outcome: word(report.outcome),
            steps: done.collect(),
            equal: &report.plan.equal,
            lost: &report.plan.lost,
            refusals: &report.plan.refusals,
            backup: report.backup.as_deref(),
            requests: report.requests,
            error: report.error.as_ref().map(line),
            report,
            again,
        }
    }

    fn summary(&self) -> String {
        let subject = format!("Release {} in namespace {}", self.name, self.namespace);
        let why = || self.refusals.first().map_or("see the plan", |refusal| refusal.reason.as_str());
        match self.report.outcome {
            Outcome::Restored | Outcome::Repaired => format!("{subject} is restored."),
            Outcome::NothingToDo => format!("{subject} is as it was: nothing to do."),
            Outcome::Refused | Outcome::Waiting => format!("Refused, nothing was done to {}: {}.", self.name, why()),
            Outcome::Changed => format!("{subject} has changed since the plan was made: nothing was done."),
            Outcome::Failed => format!("{subject} could not be restored."),
            Outcome::Cancelled => format!("Stopped. {subject} is restored in part: restore again to go on."),
        }
    }

    fn show(&self, page: &mut Page) {
        page.item("", &self.summary());
        let mut table = Table::new([]).indent(2);
        for done in &self.report.steps {
            let word = match &done.error {
                None => Cell::with("done", Emphasis::Good),
                Some(_) => Cell::with("failed", Emphasis::Bad),
            };
            table.row([word, Cell::new(time(done.ms)), Cell::new(short(&done.step))]);
        }
        for step in self.report.plan.steps.get(self.report.steps.len()..).unwrap_or_default() {
            table.row([Cell::with("not done", Emphasis::Warn), Cell::new(""), Cell::new(short(step))]);
        }
        if !self.report.plan.steps.is_empty() {
            page.push(&table.text());
            page.item("  ", &format!("{} reads and {} writes.", self.requests.read, self.requests.write));
        }
        losses(page, self.lost);
        if let Some(path) = self.backup {
            page.gap();
            page.item("", "What was there before is kept; undo with:");
            page.verbatim(&format!("  {}", self.again.restore(path)));
        }
    }
}

impl View for Reports<'_> {
    const KIND: &'static str = "RestoreReportList";

    fn text(&self, _: Width) -> String {
        let mut page = Page::default();
        for (at, shown) in self.items.iter().enumerate() {
            if at > 0 {
                page.gap();
            }
            shown.show(&mut page);
        }
        page.into_text()
    }

    fn names(&self) -> Vec<String> {
        self.items.iter().map(|shown| format!("{}/{}", shown.namespace, shown.name)).collect()
    }
}
