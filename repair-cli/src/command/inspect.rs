//! `inspect`: everything that is known of a release.

use chrono::{DateTime, Utc};
use clap::Args;
use helm_release::action::{Observation, Planned, RepairOptions};
use helm_release::plan::{Evidence, HookObject, HookPhase, Intent, Lease, Live, NamespacePhase, Owner, Policy, Seen};
use serde::Serialize;

use super::history::Revisions;
use crate::cli::Target;
use crate::error::{Exit, Failure};
use crate::explain::{Explained, next};
use crate::output::{Cell, Page, Table, View, Width, ago, show, stamp};
use crate::session::Session;

/// Shows all that is known of a release: its history, its state with the evidence, its objects and who manages them.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  gwrepair inspect web -n shop
  gwrepair inspect web -n shop -o json")]
pub(crate) struct Inspect {
    /// The release, as NAME or NAMESPACE/NAME.
    #[arg(value_name = "RELEASE")]
    release: Target,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inspection<'a> {
    plan: Explained<'a>,
    history: Revisions,
    author: Author,
    namespace_phase: &'static str,
    deployer: Option<String>,
    objects: Vec<Object>,
    hooks: Vec<HookRow>,
    weaker: &'a [String],
    #[serde(skip)]
    planned: &'a Planned,
    #[serde(skip)]
    session: &'a Session,
}

/// Who wrote the last record, as far as it is known.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Author {
    manager: Option<String>,
    last_sign: Option<DateTime<Utc>>,
    lease: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    object: String,
    listed: Vec<u32>,
    readiness: String,
    owner: String,
    holds: Vec<u32>,
    born: bool,
    keep: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HookRow {
    object: String,
    events: Vec<String>,
    phase: &'static str,
    born: bool,
}

pub(crate) async fn run(args: Inspect, session: &Session) -> Result<Exit, Failure> {
    let history = session.history(&args.release).await?;
    let client = session.client_of(&args.release);
    let (policy, options) = (Policy::default(), RepairOptions::default());
    let failed = |error| session.failure(&error);
    let seen = client.observe(&args.release.name, &policy, &session.stop).await.map_err(failed)?;
    let planned = client.plan_from(seen, Intent::Usable, &policy, &options, &session.stop).await.map_err(failed)?;
    show(&Inspection::new(&history, &planned, session), session.format)?;
    Ok(Exit::Done)
}

impl<'a> Inspection<'a> {
    fn new(history: &helm_release::release::History, planned: &'a Planned, session: &'a Session) -> Self {
        let Observation { evidence, .. } = &planned.observation;
        Self {
            plan: Explained::new(planned, &session.again),
            history: Revisions::new(history, usize::MAX),
            author: Author::new(evidence),
            namespace_phase: match evidence.namespace {
                NamespacePhase::Active => "active",
                NamespacePhase::Terminating => "terminating",
                NamespacePhase::Unknown => "unknown",
            },
            deployer: evidence.deployer.as_ref().map(|deployer| format!("{} ({})", deployer.name, deployer.mark)),
            objects: evidence.objects.iter().map(Object::new).collect(),
            hooks: evidence.hooks.iter().map(HookRow::new).collect(),
            weaker: &evidence.weaker,
            planned,
            session,
        }
    }

    /// Looked for only where an operation is open.
    fn author(&self, page: &mut Page) {
        if self.author.last_sign.is_none() && self.author.manager.is_none() {
            return;
        }
        let now = self.planned.observation.evidence.now;
        page.heading("Author of the last record");
        let mut table = Table::new([]).indent(2);
        table.row([Cell::new("field manager"), Cell::maybe(self.author.manager.as_deref())]);
        let sign = self.author.last_sign.map(|sign| format!("{}, {} ago", stamp(sign), ago(sign, now)));
        table.row([Cell::new("last sign of life"), Cell::maybe(sign)]);
        table.row([Cell::new("lease"), Cell::new(&self.author.lease)]);
        table.row([Cell::new("other deployer"), Cell::maybe(self.deployer.as_deref())]);
        table.row([Cell::new("namespace"), Cell::new(self.namespace_phase)]);
        page.push(&table.text());
    }

    fn objects(&self, page: &mut Page) {
        if self.objects.is_empty() {
            return;
        }
        page.heading("Objects");
        let mut table = Table::new(["OBJECT", "LISTED BY", "HOLDS", "READINESS", "OWNER"]).indent(2);
        for object in &self.objects {
            table.row([
                Cell::new(&object.object),
                Cell::new(numbers(&object.listed)),
                Cell::new(numbers(&object.holds)),
                Cell::status(&object.readiness),
                Cell::new(&object.owner),
            ]);
        }
        page.push(&table.text());
    }

    fn hooks(&self, page: &mut Page) {
        if self.hooks.is_empty() {
            return;
        }
        page.heading("Hooks that exist");
        let mut table = Table::new(["OBJECT", "EVENTS", "PHASE", "OF THE LAST OPERATION"]).indent(2);
        for hook in &self.hooks {
            let born = if hook.born { "yes" } else { "no" };
            table.row([
                hook.object.clone().into(),
                hook.events.join(",").into(),
                Cell::status(hook.phase),
                born.into(),
            ]);
        }
        page.push(&table.text());
    }

    fn next(&self, page: &mut Page) {
        let plan = &self.planned.plan;
        if plan.is_due() {
            page.gap();
            page.item("", &format!("Next: {}. The plan in full:", next(plan)));
            page.verbatim(&format!("  {}", self.session.again.command("plan", &plan.namespace, &plan.name, "")));
        }
    }
}

impl View for Inspection<'_> {
    const KIND: &'static str = "Inspection";

    fn text(&self, _: Width) -> String {
        let mut page = Page::default();
        page.item("", &self.plan.headline());
        page.heading("History");
        page.push(&self.history.table().indent(2).text());
        self.author(&mut page);
        self.objects(&mut page);
        self.hooks(&mut page);
        self.plan.grounds(&mut page);
        self.next(&mut page);
        page.into_text()
    }

    fn names(&self) -> Vec<String> {
        self.plan.names()
    }
}

impl Author {
    fn new(evidence: &Evidence) -> Self {
        let lease = match &evidence.author.lease {
            Lease::Free => "nobody holds one".into(),
            Lease::Held { holder, until } => format!("held by {holder} until {}", stamp(*until)),
            Lease::Expired { holder } => format!("expired; was held by {holder}"),
            Lease::Unreadable(why) => format!("could not be read: {why}"),
        };
        Self { manager: evidence.author.manager.clone(), last_sign: evidence.author.last_sign, lease }
    }
}

impl Object {
    fn new(seen: &Seen) -> Self {
        let live = seen.live.as_ref();
        let holds = live.into_iter().flat_map(|live| &live.holds).map(|revision| revision.get());
        Self {
            object: seen.id.to_string(),
            listed: seen.listed.iter().map(|revision| revision.get()).collect(),
            readiness: live.map_or("missing".into(), readiness),
            owner: live.map_or("-".into(), |live| owner(&live.owner)),
            holds: holds.collect(),
            born: live.is_some_and(|live| live.born),
            keep: seen.keep,
        }
    }
}

impl HookRow {
    fn new(hook: &HookObject) -> Self {
        let phase = match hook.phase {
            HookPhase::Missing => "missing",
            HookPhase::Active => "active",
            HookPhase::Succeeded => "succeeded",
            HookPhase::Failed => "failed",
        };
        Self { object: hook.id.to_string(), events: hook.events.clone(), phase, born: hook.born }
    }
}

fn readiness(live: &Live) -> String {
    if live.terminating {
        return "Terminating".into();
    }
    live.readiness.to_string()
}

fn owner(owner: &Owner) -> String {
    match owner {
        Owner::Ours => "this release".into(),
        Owner::Nobody => "nobody".into(),
        Owner::Other { namespace, name } => format!("release {namespace}/{name}"),
    }
}

fn numbers(numbers: &[u32]) -> String {
    let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
    if texts.is_empty() { "-".into() } else { texts.join(",") }
}
