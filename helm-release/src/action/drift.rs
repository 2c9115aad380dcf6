//! What runs against what a record says: what drifted, what is missing, and what other revisions left behind.

use super::Client;
use super::error::Error;
use super::observe;
use super::scene::{self, Item, Scene};
use crate::cluster::{self, Cause, Place, Stop, WriteMode};
use crate::diff::{self, Change, Difference, Part};
use crate::manifest::{ObjectId, is_kept};
use crate::plan::{Marks, Owner};
use crate::release::{ApplyMethod, Entry, History, Revision};

/// Where the cluster and a revision's manifest part.
#[derive(Debug, Clone, Default)]
pub struct Drift {
    /// The objects that differ. `before` is what a repair would make of them, `after` is what is live.
    pub differences: Vec<Difference>,
    /// Where weaker evidence had to be used, or something could not be looked at.
    pub weaker: Vec<String>,
}

/// How the manifest of one revision is tried.
struct Trial<'a> {
    client: &'a Client,
    goal: Revision,
    /// The revisions from the goal on, whose fields a repair would take back.
    baseline: Vec<Revision>,
    method: ApplyMethod,
    manager: String,
    stop: &'a Stop,
}

/// An object that differs, if it does, and why the answer is weak, if it is.
type Verdict = (Option<Difference>, Option<String>);

impl Client {
    /// Compares what is live with the manifest of `revision`, by dry-running what a repair to it would do.
    ///
    /// Objects that other revisions of the history set, that are there and ours, and that this one does not list, are
    /// leaked, unless their resource policy keeps them. Hooks come and go, and are not compared.
    ///
    /// # Errors
    /// The record or its manifest cannot be read, or a read failed.
    pub async fn drift(&self, history: &History, revision: Revision, stop: &Stop) -> Result<Drift, Error> {
        history.get(revision).and_then(Entry::sound).ok_or(Error::NoRecord(revision))?;
        let (revisions, mut weaker) = readable(history, revision);
        let scene = Scene::gather(&self.wire, history, &revisions, stop).await?;
        let baseline: Vec<_> = revisions.iter().copied().filter(|other| *other >= revision).collect();
        let method = history.apply_method(&baseline);
        let manager = self.manager.clone().unwrap_or_else(|| observe::manager(&scene, method));
        let trial = Trial { client: self, goal: revision, baseline, method, manager, stop };
        let listed = scene.in_install_order(revision);
        let looks = listed.iter().filter_map(|id| Some(trial.compare(id, scene.items.get(*id)?))).collect();
        let mut differences = unserved(&scene, revision);
        for (difference, weak) in cluster::all(looks).await? {
            differences.extend(difference);
            weaker.extend(weak);
        }
        differences.extend(scene.items.iter().filter_map(|(id, item)| leaked(history, revision, id, item)));
        weaker.dedup();
        Ok(Drift { differences, weaker })
    }
}

/// The revisions whose manifests can be read, and what is not seen for the others. That of `wanted` must be.
fn readable(history: &History, wanted: Revision) -> (Vec<Revision>, Vec<String>) {
    let (mut revisions, mut weaker) = (Vec::new(), Vec::new());
    for entry in history.entries() {
        let parses = entry.sound().is_some_and(|release| scene::objects_of(release, entry.revision).is_ok());
        if parses || entry.revision == wanted {
            revisions.push(entry.revision);
        } else {
            weaker
                .push(format!("the manifest of revision {} cannot be read: what it left is not seen", entry.revision));
        }
    }
    (revisions, weaker)
}

fn unserved(scene: &Scene, revision: Revision) -> Vec<Difference> {
    let here = scene.unknown.iter().filter(|listed| listed.revision == revision);
    here.map(|listed| {
        let note = format!("the server does not serve {} {}", listed.api_version, listed.id.kind);
        Difference::new(&listed.id, Part::Manifest, Change::Unserved, None, None).noted(Some(note))
    })
    .collect()
}

fn leaked(history: &History, revision: Revision, id: &ObjectId, item: &Item) -> Option<Difference> {
    let (newest, body) = item.bodies.iter().next_back().filter(|_| !item.bodies.contains_key(&revision))?;
    let live = item.live.as_ref().filter(|live| !is_kept(live) && !body.is_kept())?;
    let note = |key: &str| live["metadata"]["annotations"][key].as_str();
    let marks = Marks {
        release_name: note("meta.helm.sh/release-name"),
        release_namespace: note("meta.helm.sh/release-namespace"),
    };
    if Owner::read(marks, &history.name, &history.namespace) != Owner::Ours {
        return None;
    }
    let (_, shown) = diff::drift(&body.value, live, live);
    let note = format!("revision {newest} set it, and revision {revision} does not list it");
    Some(Difference::new(id, Part::Manifest, Change::Leaked, None, Some(shown)).noted(Some(note)))
}

impl Trial<'_> {
    async fn compare(&self, id: &ObjectId, item: &Item) -> Result<Verdict, Error> {
        let Some(body) = item.bodies.get(&self.goal).map(|object| &object.value) else { return Ok((None, None)) };
        let Some(live) = &item.live else {
            let missing = Difference::new(id, Part::Manifest, Change::Missing, Some(body.clone()), None);
            return Ok((Some(missing), None));
        };
        let patched = |source| Error::Patch { object: id.to_string(), source };
        let merge = item.merge(self.goal, &self.baseline, self.method, true).map_err(patched)?;
        let Some((sent, merge)) = merge else { return Ok((None, None)) };
        let place = Place { id, resource: &item.resource };
        let drifted = |wanted: &serde_json::Value, note: Option<String>| {
            let (before, after) = diff::drift(body, wanted, live);
            Difference::new(id, Part::Manifest, Change::Drifted, Some(before), Some(after)).noted(note)
        };
        match place.write(&self.client.wire, &sent, &merge, &self.manager, WriteMode::DryRun, self.stop).await {
            Ok(after) if scene::is_unchanged(live, &after) => Ok((None, None)),
            Ok(after) => Ok((Some(drifted(&after, None)), None)),
            Err(error) => {
                let (weak, note) = untried(error)?;
                let holds = weak.is_some() && scene::contains(live, body);
                Ok(((!holds).then(|| drifted(&diff::overlay(live, body), note)), weak))
            }
        }
    }
}

/// Why the text has to be compared, or what the server says against the manifest.
fn untried(error: cluster::Error) -> Result<(Option<String>, Option<String>), Error> {
    match &error.cause {
        Cause::Forbidden { verb, resource, .. } => {
            Ok((Some(format!("no right to {verb} {resource}: the text was compared instead of a dry run")), None))
        }
        cause if cause.is_without_dry_run() => {
            Ok((Some("a webhook does not support dry run: the text was compared".into()), None))
        }
        Cause::Refused { code: 400..=499, message, .. } => {
            Ok((None, Some(format!("the server would refuse it: {message}"))))
        }
        Cause::Refused { .. } | Cause::Unreachable(_) | Cause::Malformed(_) | Cause::Stopped(_) => Err(error.into()),
    }
}
