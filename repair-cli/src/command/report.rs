//! What a repair did: one release in full, several in a table.

use std::path::{Path, PathBuf};

use helm_release::action::{self, Outcome, Planned, Requests, StepReport};
use helm_release::plan::{Plan, Step};
use helm_release::release::{Entry, Namespace, ReleaseName, Status};
use serde::Serialize;

use crate::cli::Target;
use crate::error::{Exit, Failure};
use crate::explain::{Explained, next, short};
use crate::output::{Cell, Emphasis, Page, Table, View, Width};
use crate::session::{Session, line};

/// What was done to one release.
pub(crate) struct Report {
    pub(crate) namespace: Namespace,
    pub(crate) name: ReleaseName,
    pub(crate) outcome: Outcome,
    pub(crate) error: Option<action::Error>,
    before: Option<String>,
    after: Option<String>,
    planned: Option<Planned>,
    steps: Vec<StepReport>,
    requests: Requests,
    failure: Option<String>,
    /// Where what was changed or deleted is kept.
    backup: Option<PathBuf>,
    /// What became of the record that this run had opened.
    settled: Option<String>,
}

impl Report {
    pub(crate) fn ran(report: action::Report, planned: Planned) -> Self {
        Self {
            failure: report.error.as_ref().map(line),
            settled: settled(&report),
            backup: report.backup,
            namespace: report.namespace,
            name: report.name,
            outcome: report.outcome,
            error: report.error,
            before: report.before,
            after: report.after,
            planned: Some(planned),
            steps: report.steps,
            requests: report.requests,
        }
    }

    /// Nothing was run: the plan does not act.
    pub(crate) fn idle(planned: Planned) -> Self {
        let status = planned.observation.history.last().and_then(Entry::status).map(Status::to_string);
        let outcome = Outcome::of_idle(planned.plan.verdict);
        Self {
            namespace: planned.plan.namespace.clone(),
            name: planned.plan.name.clone(),
            outcome,
            error: None,
            before: status.clone(),
            after: status,
            planned: Some(planned),
            steps: Vec::new(),
            requests: Requests::default(),
            failure: None,
            backup: None,
            settled: None,
        }
    }

    /// Nothing was run: it could not even be planned.
    pub(crate) fn unplanned(namespace: Namespace, name: ReleaseName, failure: &Failure) -> Self {
        Self {
            namespace,
            name,
            outcome: Outcome::Failed,
            error: None,
            before: None,
            after: None,
            planned: None,
            steps: Vec::new(),
            requests: Requests::default(),
            failure: Some(failure.line()),
            backup: None,
            settled: None,
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self.outcome {
            Outcome::Repaired | Outcome::Restored | Outcome::NothingToDo => Exit::Done,
            Outcome::Waiting | Outcome::Refused | Outcome::Changed => Exit::Refused,
            Outcome::Failed => Exit::Failed,
            Outcome::Cancelled => Exit::Interrupted,
        }
    }

    pub(crate) fn view<'a>(&'a self, session: &'a Session) -> Shown<'a> {
        Shown {
            namespace: &self.namespace,
            name: &self.name,
            outcome: word(self.outcome),
            before: self.before.as_deref(),
            after: self.after.as_deref(),
            plan: self.planned.as_ref().map(|planned| Explained::new(planned, &session.again)),
            steps: self.steps.iter().map(Done::new).collect(),
            requests: self.requests,
            error: self.failure.as_deref(),
            backup: self.backup.as_deref(),
            session,
            report: self,
        }
    }

    /// The steps that were planned and not begun.
    fn left(&self) -> &[Step] {
        let planned = self.planned.as_ref().map(|planned| planned.plan.steps.as_slice()).unwrap_or_default();
        planned.get(self.steps.len()..).unwrap_or_default()
    }
}

/// A report, to be shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shown<'a> {
    namespace: &'a Namespace,
    name: &'a ReleaseName,
    outcome: &'static str,
    before: Option<&'a str>,
    after: Option<&'a str>,
    plan: Option<Explained<'a>>,
    steps: Vec<Done<'a>>,
    requests: Requests,
    error: Option<&'a str>,
    backup: Option<&'a Path>,
    #[serde(skip)]
    session: &'a Session,
    #[serde(skip)]
    report: &'a Report,
}

#[derive(Serialize)]
struct Done<'a> {
    step: &'a Step,
    result: &'a str,
    ms: u64,
}

impl<'a> Done<'a> {
    fn new(report: &'a StepReport) -> Self {
        let result = report.error.as_deref().unwrap_or("done");
        Self { step: &report.step, result, ms: report.ms }
    }
}

impl Shown<'_> {
    fn summary(&self) -> String {
        let unread = self.report.planned.as_ref().is_some_and(|planned| planned.plan.revision.is_some());
        let before = self.before.unwrap_or(if unread { "unreadable" } else { "absent" });
        let after = self.after.unwrap_or("gone");
        let subject = format!("Release {} in namespace {}", self.name, self.namespace);
        let why = why(self.report).unwrap_or("see the plan");
        match self.report.outcome {
            Outcome::Repaired | Outcome::Restored => format!("{subject} is repaired: it was {before}, and is {after}."),
            Outcome::NothingToDo => "Nothing to do.".into(),
            Outcome::Waiting => format!("Waiting, nothing was done: {why}."),
            Outcome::Refused => format!("Refused, nothing was done: {why}."),
            Outcome::Changed => format!("{subject} keeps changing: nothing was done."),
            Outcome::Failed => format!("{subject} could not be repaired: it was {before}, and is {after}."),
            Outcome::Cancelled => format!("Stopped. {subject} was {before}, and is {after}."),
        }
    }

    fn steps(&self, page: &mut Page) {
        let mut table = Table::new([]).indent(2);
        for done in &self.report.steps {
            let word = match &done.error {
                None => Cell::with("done", Emphasis::Good),
                Some(_) if self.report.outcome == Outcome::Cancelled => Cell::with("stopped", Emphasis::Warn),
                Some(_) => Cell::with("failed", Emphasis::Bad),
            };
            table.row([word, Cell::new(time(done.ms)), Cell::new(short(&done.step))]);
        }
        for step in self.report.left() {
            table.row([Cell::with("not done", Emphasis::Warn), Cell::new(""), Cell::new(short(step))]);
        }
        page.push(&table.text());
    }
}

impl View for Shown<'_> {
    const KIND: &'static str = "Report";

    fn text(&self, _: Width) -> String {
        let mut page = Page::default();
        page.item("", &self.summary());
        if !self.steps.is_empty() {
            self.steps(&mut page);
            page.item("  ", &format!("{} reads and {} writes.", self.requests.read, self.requests.write));
        }
        if let Some(settled) = &self.report.settled {
            page.item("", settled);
        }
        if let Some(path) = self.backup {
            page.item("", "What was there before is kept; undo with:");
            page.verbatim(&format!("  {}", self.session.again.restore(path)));
        }
        if matches!(self.report.outcome, Outcome::Failed | Outcome::Cancelled | Outcome::Changed) {
            page.item("", "What is left, and what to do about it:");
            page.verbatim(&format!("  {}", self.session.again.command("plan", self.namespace, self.name, "")));
        }
        page.into_text()
    }

    fn names(&self) -> Vec<String> {
        vec![format!("{}/{}", self.namespace, self.name)]
    }
}

/// What was done to several releases.
#[derive(Default, Serialize)]
pub(crate) struct Reports<'a> {
    items: Vec<Shown<'a>>,
}

impl<'a> Reports<'a> {
    pub(crate) fn new(reports: &'a [Report], session: &'a Session) -> Self {
        Self { items: reports.iter().map(|report| report.view(session)).collect() }
    }

    /// Of all outcomes the worst; with `--all`, releases that are left are what a scan would find again.
    pub(crate) fn exit(&self, all: bool) -> Exit {
        let worst = self.items.iter().map(|shown| shown.report.exit()).max().unwrap_or(Exit::Done);
        if all && worst == Exit::Refused { Exit::Due } else { worst }
    }
}

impl View for Reports<'_> {
    const KIND: &'static str = "ReportList";

    fn text(&self, _: Width) -> String {
        let mut table = Table::new(["NAMESPACE", "NAME", "OUTCOME", "BEFORE", "AFTER", "STEPS", "TIME", "WHY"]);
        for shown in &self.items {
            let ms = shown.report.steps.iter().map(|step| step.ms).sum();
            let done = shown.report.steps.iter().filter(|step| step.error.is_none()).count();
            table.row([
                shown.namespace.into(),
                shown.name.into(),
                Cell::status(shown.outcome),
                Cell::maybe(shown.before),
                Cell::maybe(shown.after),
                format!("{done}/{}", done.max(shown.report.steps.len() + shown.report.left().len())).into(),
                time(ms).into(),
                Cell::maybe(why(shown.report)),
            ]);
        }
        if self.items.is_empty() { String::new() } else { table.text() }
    }

    fn names(&self) -> Vec<String> {
        self.items.iter().map(|shown| format!("{}/{}", shown.namespace, shown.name)).collect()
    }
}

/// Several plans, for `--dry-run`.
#[derive(Serialize)]
pub(crate) struct Plans<'a> {
    items: Vec<Explained<'a>>,
    #[serde(skip)]
    table: &'a str,
}

impl<'a> Plans<'a> {
    pub(crate) fn new(plans: &'a [Planned], table: &'a str, session: &'a Session) -> Self {
        Self { items: plans.iter().map(|planned| Explained::new(planned, &session.again)).collect(), table }
    }
}

impl View for Plans<'_> {
    const KIND: &'static str = "PlanList";

    fn text(&self, _: Width) -> String {
        self.table.into()
    }

    fn names(&self) -> Vec<String> {
        self.items.iter().flat_map(View::names).collect()
    }
}

/// What would be done to several releases, as one table.
pub(crate) fn overview(targets: &[Target], plans: &[Result<Planned, Failure>], session: &Session) -> String {
    let mut table = Table::new(["NAMESPACE", "NAME", "REVISION", "STATE", "NEXT", "CHANGES", "DELETES", "WHY"]);
    for (target, plan) in targets.iter().zip(plans) {
        let mut cells = vec![session.namespace_of(target).into(), Cell::from(&target.name)];
        match plan {
            Ok(planned) => cells.extend(summary(&planned.plan)),
            Err(failure) => cells.extend(["-", "-", "cannot be planned", "-", "-", &failure.line()].map(Cell::new)),
        }
        table.row(cells);
    }
    table.text()
}

fn summary(plan: &Plan) -> [Cell; 6] {
    [
        Cell::maybe(plan.revision),
        Cell::status(plan.state.word()),
        next(plan).into(),
        plan.changes.len().into(),
        plan.deletes.len().into(),
        Cell::maybe(reason(plan)),
    ]
}

/// Why a plan does not act.
fn reason(plan: &Plan) -> Option<&str> {
    let refusal = || plan.refusals.first().map(|refusal| refusal.reason.as_str());
    plan.wait.as_ref().map(|wait| wait.reason.as_str()).or_else(refusal)
}

fn why(report: &Report) -> Option<&str> {
    let planned = || report.planned.as_ref().and_then(|planned| reason(&planned.plan));
    report.failure.as_deref().or_else(planned)
}

fn settled(report: &action::Report) -> Option<String> {
    let closed = |revision| format!("Record {revision}, which this repair had opened, is closed as failed.");
    match &report.unsettled {
        Some(why) => Some(format!("The record that this repair had opened could not be closed ({why}): repair again.")),
        None => report.settled.map(closed),
    }
}

pub(super) fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Repaired => "repaired",
        Outcome::Restored => "restored",
        Outcome::NothingToDo => "nothing-to-do",
        Outcome::Waiting => "waiting",
        Outcome::Refused => "refused",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
        Outcome::Changed => "changed",
    }
}

pub(super) fn time(ms: u64) -> String {
    if ms < 1000 { format!("{ms}ms") } else { format!("{}.{}s", ms / 1000, ms % 1000 / 100) }
}
