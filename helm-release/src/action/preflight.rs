//! What would fail is found before the first write: permissions, the size of a record, and what admission says.

use std::collections::BTreeSet;

use super::Planned;
use super::error::Error;
use super::observe::Observation;
use crate::cluster::{self, Cause, Permission, Place, Stop, Wire, WriteMode};
use crate::plan::{Change, Plan, Refusal, Step, Verdict};
use crate::release::{ApplyMethod, Entry, Release, Revision, RollbackHeader};
use crate::storage::{self, DriverKind};

/// Turns a plan that would fail into a refusal that says why.
pub(super) async fn check(
    wire: &Wire,
    driver: DriverKind,
    planned: &mut Planned,
    force_conflicts: bool,
    stop: &Stop,
) -> Result<(), Error> {
    if !planned.plan.acts() {
        return Ok(());
    }
    let mut refusals = Vec::new();
    refusals.extend(size(&planned.plan, &planned.observation, stop).await?);
    planned.missing = missing(wire, needed(driver, &planned.plan, &planned.observation), stop).await?;
    refusals.extend(planned.missing.iter().map(|permission| Refusal { reason: lacks(permission), flag: None }));
    if planned.missing.is_empty() {
        refusals.extend(admission(wire, planned, force_conflicts, stop).await?);
    } else {
        planned.identity = cluster::identity(wire, stop).await?;
    }
    if !refusals.is_empty() {
        planned.plan.verdict = Verdict::Refuse;
        planned.plan.steps.clear();
        planned.plan.refusals.extend(refusals);
    }
    Ok(())
}

pub(super) fn lacks(permission: &Permission) -> String {
    let Permission { verb, group, resource, namespace } = permission;
    let dotted = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
    let place = if namespace.is_empty() { "in the cluster".into() } else { format!("in namespace {namespace}") };
    format!("this identity may not {verb} {dotted} {place}")
}

/// A rollback writes a new record, which may not fit where the stuck one did.
async fn size(plan: &Plan, observation: &Observation, stop: &Stop) -> Result<Option<Refusal>, Error> {
    let Some((revision, record)) = new_record(plan, observation) else { return Ok(None) };
    match storage::encode(&observation.history.key(revision).to_string(), &record, stop).await {
        Ok(_) => Ok(None),
        Err(storage::Error::Cluster(error)) => Err(error.into()),
        Err(error) => Ok(Some(Refusal { reason: error.to_string(), flag: Some("--strategy unlock".into()) })),
    }
}

/// The record that a rollback would create.
fn new_record(plan: &Plan, observation: &Observation) -> Option<(Revision, Release)> {
    let (revision, target) = plan.steps.iter().find_map(|step| match step {
        Step::CreateRollback { revision, target } => Some((*revision, *target)),
        Step::Close { .. }
        | Step::Relabel { .. }
        | Step::Apply { .. }
        | Step::DeleteObjects { .. }
        | Step::AwaitReady { .. }
        | Step::DeleteRecord { .. }
        | Step::Quarantine { .. } => None,
    })?;
    let release = observation.history.get(target).and_then(Entry::sound)?;
    let header = RollbackHeader {
        revision,
        first_deployed: release.info().first_deployed,
        now: observation.evidence.now,
        description: format!("Rollback to {target}"),
        apply_method: ApplyMethod::ClientSide,
    };
    Some((revision, release.to_rollback(&header).ok()?))
}

/// Those of the permissions that this identity lacks.
pub(super) async fn missing(wire: &Wire, needed: BTreeSet<Permission>, stop: &Stop) -> Result<Vec<Permission>, Error> {
    Ok(cluster::lacking(wire, needed, stop).await?)
}

/// The resource in which a driver keeps its records.
pub(super) fn records_of(driver: DriverKind) -> &'static str {
    match driver {
        DriverKind::Secrets => "secrets",
        DriverKind::ConfigMaps => "configmaps",
    }
}

pub(super) fn permission(verb: &str, group: &str, resource: &str, namespace: &str) -> Permission {
    let [verb, group, resource, namespace] = [verb, group, resource, namespace].map(str::to_owned);
    Permission { verb, group, resource, namespace }
}

/// Every permission that the steps need, once.
fn needed(driver: DriverKind, plan: &Plan, observation: &Observation) -> BTreeSet<Permission> {
    let records = records_of(driver);
    let mut needed = BTreeSet::new();
    let mut need = |verb: &str, group: &str, resource: &str, namespace: &str| {
        needed.insert(permission(verb, group, resource, namespace));
    };
    for step in &plan.steps {
        let verbs: &[&str] = match step {
            Step::CreateRollback { .. } => &["create"],
            // What is replaced is read whole first, so that nothing else of it changes.
            Step::Close { .. } | Step::Relabel { .. } => &["get", "update"],
            Step::DeleteRecord { .. } | Step::Quarantine { .. } => &["delete"],
            Step::Apply { .. } | Step::DeleteObjects { .. } | Step::AwaitReady { .. } => &[],
        };
        for verb in verbs {
            need(verb, "", records, plan.namespace.as_str());
        }
    }
    for change in &plan.changes {
        if let Some(item) = observation.scene.items.get(&change.object) {
            let verb = match change.action {
                crate::plan::ChangeAction::Create => "create",
                crate::plan::ChangeAction::Update => "patch",
            };
            let namespace = change.object.namespace.as_deref().unwrap_or_default();
            need(verb, item.resource.group(), &item.resource.plural, namespace);
        }
    }
    for deletion in &plan.deletes {
        if let Some(resource) = observation.scene.resource(&deletion.object) {
            let namespace = deletion.object.namespace.as_deref().unwrap_or_default();
            need("delete", resource.group(), &resource.plural, namespace);
        }
    }
    needed
}

/// Dry-runs every change: immutable fields, quota, webhooks and field conflicts show before anything is written.
async fn admission(wire: &Wire, planned: &Planned, force: bool, stop: &Stop) -> Result<Vec<Refusal>, Error> {
    let Some((goal, baseline)) = planned.plan.applies() else { return Ok(Vec::new()) };
    let Planned { plan, observation, .. } = planned;
    let method = observation.history.apply_method(baseline);
    // What was tried on the way to the plan need not be tried again.
    let is_open = |change: &&Change| {
        baseline != observation.baseline.as_slice() || !observation.admitted.contains(&(change.object.clone(), goal))
    };
    let tries = plan
        .changes
        .iter()
        .filter(is_open)
        .map(|change| try_change(wire, observation, change, (goal, baseline), method, force, stop));
    let answers = cluster::all(tries.collect()).await?;
    Ok(answers.into_iter().flatten().collect())
}

async fn try_change(
    wire: &Wire,
    observation: &Observation,
    change: &Change,
    (goal, baseline): (Revision, &[Revision]),
    method: ApplyMethod,
    force: bool,
    stop: &Stop,
) -> Result<Option<Refusal>, Error> {
    let Some(item) = observation.scene.items.get(&change.object) else { return Ok(None) };
    let patched = |source| Error::Patch { object: change.object.to_string(), source };
    let Some((body, merge)) = item.merge(goal, baseline, method, force).map_err(patched)? else { return Ok(None) };
    let place = Place { id: &change.object, resource: &item.resource };
    match place.write(wire, &body, &merge, &observation.manager, WriteMode::DryRun, stop).await {
        Ok(_) => Ok(None),
        Err(error) => match refusal(&change.object.to_string(), &error.cause) {
            Some(refusal) => Ok(Some(refusal)),
            None if admits_anything(&error.cause) => Ok(None),
            None => Err(error.into()),
        },
    }
}

/// Where a dry run tells nothing: a webhook without support for it, or a namespace or kind that this very plan creates.
pub(super) fn admits_anything(cause: &Cause) -> bool {
    match cause {
        Cause::Refused { code, .. } => *code == 404 || cause.is_without_dry_run(),
        Cause::Forbidden { .. } | Cause::Unreachable(_) | Cause::Malformed(_) | Cause::Stopped(_) => false,
    }
}

fn refusal(object: &str, cause: &Cause) -> Option<Refusal> {
    match cause {
        _ if admits_anything(cause) => None,
        Cause::Refused { code: 409, message, .. } => Some(Refusal {
            reason: format!("{object} would conflict: {message}"),
            flag: Some("--force-conflicts".into()),
        }),
        Cause::Refused { code: 400..=499, message, .. } | Cause::Forbidden { message, .. } => Some(Refusal {
            reason: format!("the server would refuse {object}: {message}"),
            flag: Some("--strategy unlock".into()),
        }),
        Cause::Refused { .. } | Cause::Unreachable(_) | Cause::Malformed(_) | Cause::Stopped(_) => None,
    }
}
