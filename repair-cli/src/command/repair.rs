//! `repair`: plan, show, confirm, run, report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use futures::StreamExt;
use helm_release::action::{Depth, Outcome, Planned, ScanOptions};
use helm_release::plan::Verdict;

use super::plan::{assume_dead, exit, plan, waits_for_author};
use super::report::{Report, Reports, overview};
use crate::cli::{PolicyFlags, Target, Where};
use crate::error::{Exit, Failure};
use crate::explain::Explained;
use crate::output::{has_terminal, say, show};
use crate::progress::{Board, Mode};
use crate::saved::KeepFlags;
use crate::session::Session;

/// How often a plan that changes under our hands is made anew.
const ATTEMPTS: usize = 3;
const MUST_CONFIRM: &str = "a repair must be confirmed";
/// How often a hook that is still running is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// Repairs releases that are stuck: plans, shows the plan, asks, saves what it changes, runs it and verifies.
///
/// Without a terminal to ask on, `--yes` confirms beforehand. What must not happen unasked (deleting data, killing a running
/// hook, overruling an author who may be alive) is refused, and the text names the flag that allows it.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  gwrepair repair web -n shop
  gwrepair repair web -n shop --dry-run
  gwrepair repair web -n shop --assume-dead --yes
  gwrepair repair --all -A --parallel 4 --yes

What a repair is about to change or delete is saved first, to a file that its report names; `gwrepair restore FILE` undoes it.

Exits with 0 when repaired or nothing was to do, 3 when --all leaves some, 4 when it refuses or waits, 5 when it failed.")]
pub(crate) struct Repair {
    /// The releases, as NAME or NAMESPACE/NAME.
    #[arg(value_name = "RELEASE", required_unless_present = "all", conflicts_with = "all")]
    releases: Vec<Target>,
    /// All releases that are stuck.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    policy: PolicyFlags,
    /// How many repairs run at once.
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    parallel: u16,
    #[command(flatten)]
    keep: KeepFlags,
    /// Confirm beforehand.
    #[arg(short, long)]
    yes: bool,
    /// Show the plan only.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(args: Repair, session: &Session) -> Result<Exit, Failure> {
    if (args.place.all_namespaces || args.place.selector.is_some()) && !args.all {
        return Err(
            Failure::usage("-A and -l choose among all releases that are stuck").hint("add --all, or name no place")
        );
    }
    if args.keep.no_backup && args.policy.quarantine {
        return Err(Failure::usage("--quarantine deletes a record that only the backup keeps")
            .hint("leave --no-backup out; --backup-dir DIR says where the backup goes"));
    }
    if args.all {
        let stuck = find(&args, session).await?;
        return several(&args, session, &stuck).await;
    }
    match args.releases.as_slice() {
        [one] => single(&args, session, one).await,
        more => several(&args, session, more).await,
    }
}

async fn find(args: &Repair, session: &Session) -> Result<Vec<Target>, Failure> {
    let options = ScanOptions { depth: Depth::Labels, policy: args.policy.policy() };
    let scan = session.client.scan(&session.scope(&args.place), &options, &session.stop).await;
    let scan = scan.map_err(|error| session.failure(&error))?;
    let target =
        |plan: &helm_release::plan::Plan| Target { namespace: Some(plan.namespace.clone()), name: plan.name.clone() };
    let mut targets: Vec<Target> = scan.items.iter().map(|item| target(&item.plan)).collect();
    let failed =
        scan.failures.into_iter().map(|unseen| Target { namespace: Some(unseen.namespace), name: unseen.name });
    targets.extend(failed);
    Ok(targets)
}

/// One release: its plan in full, and again if it changes under our hands.
async fn single(args: &Repair, session: &Session, target: &Target) -> Result<Exit, Failure> {
    for attempt in 1.. {
        let planned = prepare(args, session, target).await?;
        if args.dry_run {
            show(&Explained::new(&planned, &session.again), session.format)?;
            return Ok(exit(planned.plan.verdict));
        }
        if !planned.plan.acts() {
            return idle(session, &planned).await;
        }
        let question = format!("Repair {} as shown?", planned.plan.name);
        if !confirm(args.yes, session, &question, MUST_CONFIRM).await? {
            session.remark("nothing was done");
            return Ok(Exit::Refused);
        }
        let board = Board::new(Mode::choose(session.is_quiet()), 1);
        let drawing = board.draw();
        let report = execute(args, session, target, planned, &board).await;
        drop(drawing);
        if report.outcome == Outcome::Changed && attempt < ATTEMPTS {
            session.remark("the release has changed since the plan was shown, so nothing was done; the new plan:\n");
            continue;
        }
        return answer(session, report);
    }
    Ok(Exit::Refused)
}

/// Plans and shows the plan on stderr. Waits for hooks to end; asks whether the author is dead where a person can answer.
async fn prepare(args: &Repair, session: &Session, target: &Target) -> Result<Planned, Failure> {
    let limit = Instant::now() + args.policy.timeout();
    let mut ready = plan(session, target, &args.policy).await?;
    explain(args, session, &ready);
    if waits_for_author(&ready) && may_ask(args) && ask(session, "Is its author dead?").await? {
        ready = assume_dead(session, target, &args.policy, &ready).await?;
        explain(args, session, &ready);
    }
    let mut waited = false;
    while !args.dry_run && waits_for_objects(&ready) && Instant::now() < limit {
        waited = true;
        let pause = session.stop.run(tokio::time::sleep(LOOK)).await;
        pause.map_err(|why| Failure::new("interrupted").because(&why).exit(Exit::Interrupted))?;
        ready = plan(session, target, &args.policy).await?;
    }
    if waited {
        explain(args, session, &ready);
    }
    Ok(ready)
}

/// With `--dry-run` the plan is the result, and goes to stdout.
fn explain(args: &Repair, session: &Session, planned: &Planned) {
    if !args.dry_run && !session.is_quiet() && planned.plan.is_due() {
        say(&(Explained::new(planned, &session.again).body().into_text() + "\n"));
    }
}

fn waits_for_objects(planned: &Planned) -> bool {
    planned.plan.verdict == Verdict::Wait && !waits_for_author(planned)
}

/// Nothing to run: nothing to do, or nothing that may be done.
async fn idle(session: &Session, planned: &Planned) -> Result<Exit, Failure> {
    let report = Report::idle(planned.clone());
    if planned.plan.verdict == Verdict::Nothing {
        session.remark(&Explained::new(planned, &session.again).headline());
        session.hint_at_names(&planned.plan).await;
    }
    show(&report.view(session), session.format)?;
    Ok(exit(planned.plan.verdict))
}

fn answer(session: &Session, report: Report) -> Result<Exit, Failure> {
    show(&report.view(session), session.format)?;
    if let Some(error) = report.error.as_ref().filter(|_| report.outcome == Outcome::Failed) {
        say(&session.failure(error).text());
    }
    Ok(report.exit())
}

/// Several releases: one table, one question, one report. One that fails stops no other.
async fn several(args: &Repair, session: &Session, targets: &[Target]) -> Result<Exit, Failure> {
    if targets.is_empty() {
        session.remark("no stuck releases");
        show(&Reports::default(), session.format)?;
        return Ok(Exit::Done);
    }
    let parallel = usize::from(args.parallel);
    let plans = futures::stream::iter(targets).map(|target| plan(session, target, &args.policy));
    let plans: Vec<Result<Planned, Failure>> = plans.buffered(parallel).collect().await;
    let table = overview(targets, &plans, session);
    if args.dry_run {
        let plans: Vec<Planned> = plans.into_iter().collect::<Result<_, _>>()?;
        return dry_run(session, &plans, &table);
    }
    say(&table);
    let due = plans.iter().flatten().filter(|planned| planned.plan.acts()).count();
    let question = format!("Repair {due} of {} releases as shown?", targets.len());
    if due > 0 && !confirm(args.yes, session, &question, MUST_CONFIRM).await? {
        session.remark("nothing was done");
        return Ok(Exit::Refused);
    }
    let board = Board::new(Mode::choose(session.is_quiet()), due);
    let drawing = board.draw();
    let runs = targets.iter().zip(plans).map(|(target, ready)| finish(args, session, target, ready, &board));
    let reports: Vec<Report> = futures::stream::iter(runs).buffered(parallel).collect().await;
    drop(drawing);
    let reports = Reports::new(&reports, session);
    show(&reports, session.format)?;
    Ok(reports.exit(args.all))
}

fn dry_run(session: &Session, plans: &[Planned], table: &str) -> Result<Exit, Failure> {
    let due = plans.iter().map(|planned| exit(planned.plan.verdict)).max().unwrap_or(Exit::Done);
    show(&super::report::Plans::new(plans, table, session), session.format)?;
    Ok(due)
}

async fn finish(
    args: &Repair,
    session: &Session,
    target: &Target,
    ready: Result<Planned, Failure>,
    board: &Arc<Board>,
) -> Report {
    match ready {
        Ok(ready) if ready.plan.acts() => execute(args, session, target, ready, board).await,
        Ok(planned) => Report::idle(planned),
        Err(failure) => Report::unplanned(session.namespace_of(target), target.name.clone(), &failure),
    }
}

async fn execute(args: &Repair, session: &Session, target: &Target, planned: Planned, board: &Arc<Board>) -> Report {
    let id = format!("{}/{}", planned.plan.namespace, planned.plan.name);
    let track = board.track(id, planned.plan.steps.len(), args.keep.keeper(&session.server));
    let client = args.policy.client(session.client_of(target));
    let report = client.repair(&planned, &args.policy.options(), &session.stop, &track).await;
    Report::ran(report, planned)
}

fn may_ask(args: &Repair) -> bool {
    !args.yes && !args.dry_run && has_terminal()
}

/// Asks unless `--yes` was given; where there is no terminal, `rule` says that it must be.
pub(crate) async fn confirm(yes: bool, session: &Session, question: &str, rule: &str) -> Result<bool, Failure> {
    match (yes, has_terminal()) {
        (true, _) => Ok(true),
        (false, true) => ask(session, question).await,
        (false, false) => Err(unconfirmed(rule)),
    }
}

fn unconfirmed(rule: &str) -> Failure {
    Failure::usage(format!("{rule}, and there is no terminal to ask on"))
        .hint("--yes confirms beforehand; --dry-run only shows the plan")
}

/// Asks on stderr. Anything but yes is no.
async fn ask(session: &Session, question: &str) -> Result<bool, Failure> {
    say(&format!("{question} [y/N] "));
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let interrupted = |why: &(dyn std::error::Error + 'static)| Failure::new("could not read the answer").because(why);
    match session.stop.run(line).await {
        Ok(Ok(Ok(line))) => Ok(is_yes(&line)),
        Ok(Ok(Err(why))) => Err(interrupted(&why)),
        Ok(Err(why)) => Err(interrupted(&why)),
        Err(why) => Err(interrupted(&why).exit(Exit::Interrupted)),
    }
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        assert!(is_yes("y\n") && is_yes(" YES \n"));
        assert!(!is_yes("\n") && !is_yes("yeah\n") && !is_yes(""));
    }

    #[test]
    fn a_missing_confirmation_is_wrong_usage_and_names_the_flag() {
        let failure = unconfirmed(MUST_CONFIRM);
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.text().contains("--yes confirms beforehand"));
    }
}
