//! `plan`: what `repair` would do, and why. Never writes.

use clap::Args;
use helm_release::action::Planned;
use helm_release::plan::{AssumeDead, Intent, Policy, Verdict};

use crate::cli::{PolicyFlags, Target};
use crate::error::{Exit, Failure};
use crate::explain::Explained;
use crate::output::show;
use crate::session::Session;

/// Explains what `repair` would do to a release, and on what evidence. Never writes.
///
/// Shows what the release is and since when; the steps in plain words; the objects that would be changed, deleted (each with
/// its proof) and kept; the revisions that were passed over; and, where a person must decide, the flag that does.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  gwrepair plan web -n shop
  gwrepair plan web -n shop --strategy rollback --to 3
  gwrepair plan shop/web -o json | jq .steps

Exits with 0 when there is nothing to do, 3 when a repair is due, 4 when repair would refuse or wait.")]
pub(crate) struct PlanArgs {
    /// The release, as NAME or NAMESPACE/NAME.
    #[arg(value_name = "RELEASE")]
    pub(crate) release: Target,
    #[command(flatten)]
    pub(crate) policy: PolicyFlags,
}

pub(crate) async fn run(args: PlanArgs, session: &Session) -> Result<Exit, Failure> {
    let planned = plan(session, &args.release, &args.policy).await?;
    show(&Explained::new(&planned, &session.again), session.format)?;
    session.hint_at_names(&planned.plan).await;
    Ok(exit(planned.plan.verdict))
}

/// Plans by the flags. `--assume-dead` is the person's word on the record that is there now, and on no later one.
pub(crate) async fn plan(session: &Session, target: &Target, flags: &PolicyFlags) -> Result<Planned, Failure> {
    let policy = flags.policy();
    let planned = with_policy(session, target, flags, &policy).await?;
    if !flags.assume_dead || !waits_for_author(&planned) {
        return Ok(planned);
    }
    // Nobody had to be asked, so what was seen a moment ago still counts.
    let client = flags.client(session.client_of(target));
    let policy = takes_word(flags, &planned);
    let options = flags.options();
    let again = client.plan_from(planned.observation, Intent::Usable, &policy, &options, &session.stop).await;
    again.map_err(|error| session.failure(&error))
}

/// Plans again, with a person's word on the record of `shown`: meanwhile much may have changed.
pub(crate) async fn assume_dead(
    session: &Session,
    target: &Target,
    flags: &PolicyFlags,
    shown: &Planned,
) -> Result<Planned, Failure> {
    with_policy(session, target, flags, &takes_word(flags, shown)).await
}

/// The policy that takes a person's word on the record of `shown`.
fn takes_word(flags: &PolicyFlags, shown: &Planned) -> Policy {
    let version = shown.observation.history.last().map(|last| last.stored.resource_version.clone());
    Policy { assume_dead: version.map_or(AssumeDead::No, AssumeDead::Shown), ..flags.policy() }
}

async fn with_policy(
    session: &Session,
    target: &Target,
    flags: &PolicyFlags,
    policy: &Policy,
) -> Result<Planned, Failure> {
    let client = flags.client(session.client_of(target));
    let planned = client.plan(&target.name, Intent::Usable, policy, &flags.options(), &session.stop).await;
    planned.map_err(|error| session.failure(&error))
}

pub(crate) fn waits_for_author(planned: &Planned) -> bool {
    planned.plan.wait.as_ref().is_some_and(|wait| wait.author)
}

/// What a verdict means to a script.
pub(crate) fn exit(verdict: Verdict) -> Exit {
    match verdict {
        Verdict::Nothing => Exit::Done,
        Verdict::Wait | Verdict::Refuse => Exit::Refused,
        Verdict::Tidy
        | Verdict::Finish
        | Verdict::Close
        | Verdict::Resume
        | Verdict::Unlock
        | Verdict::Rollback
        | Verdict::Uninstall
        | Verdict::CompleteUninstall
        | Verdict::Restore
        | Verdict::Quarantine => Exit::Due,
    }
}
