//! What a live object is to its release: whose, how old, how ready, and which revision's manifest it holds.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::error::Error;
use super::observe::{Observation, managed};
use super::scene::{self, Item};
use crate::cluster::{self, Cause, Place, Stop, Wire, WriteMode};
use crate::manifest::{Object, ObjectId, is_kept};
use crate::plan::{Live, Marks, Owner, Seen};
use crate::readiness;
use crate::release::{Entry, Revision};

/// Looks at objects with dry runs, never with a write.
pub(super) struct Probe<'a> {
    pub(super) wire: &'a Wire,
    pub(super) observation: &'a Observation,
    pub(super) last: &'a Entry,
    /// The revision to go back to.
    pub(super) target: Option<Revision>,
    /// All revisions in question, lowest first.
    pub(super) revisions: &'a [Revision],
    pub(super) stop: &'a Stop,
}

/// What a try of a revision's manifest on a live object showed.
enum Tried {
    Holds,
    Differs,
    /// It may not be tried, so that the text was compared.
    Compared {
        holds: bool,
        why: String,
    },
}

/// The revisions that an object holds, and where weaker evidence had to be used.
type Holds = (BTreeSet<Revision>, Vec<String>);

impl Probe<'_> {
    /// Every object of the scene, and where weaker evidence had to be used.
    pub(super) async fn all(&self) -> Result<(Vec<Seen>, Vec<String>), Error> {
        let looks = self.observation.scene.items.iter().map(|(id, item)| self.seen(id, item));
        let (objects, weaker): (Vec<_>, Vec<_>) = cluster::all(looks.collect()).await?.into_iter().unzip();
        let weaker: BTreeSet<String> = weaker.into_iter().flatten().collect();
        Ok((objects, weaker.into_iter().collect()))
    }

    async fn seen(&self, id: &ObjectId, item: &Item) -> Result<(Seen, Vec<String>), Error> {
        let keep = item.bodies.values().any(Object::is_kept) || item.live.as_ref().is_some_and(is_kept);
        let (mut live, mut weaker) = (item.live.as_ref().map(|value| self.live(value)), Vec::new());
        // What is being deleted, or is another's, holds nothing, whatever it says.
        if let Some(live) = live.as_mut().filter(|live| live.is_ours()) {
            (live.holds, weaker) = self.holds(id, item).await?;
        }
        Ok((Seen { id: id.clone(), listed: item.listed(), keep, live }, weaker))
    }

    fn live(&self, value: &Value) -> Live {
        let Observation { history, evidence, manager, .. } = self.observation;
        let meta = |key: &str| value["metadata"][key].as_str();
        let note = |key: &str| value["metadata"]["annotations"][key].as_str();
        let marks = Marks {
            release_name: note("meta.helm.sh/release-name"),
            release_namespace: note("meta.helm.sh/release-namespace"),
        };
        let created = meta("creationTimestamp").and_then(|text| text.parse::<DateTime<Utc>>().ok());
        let first = managed(value).min_by_key(|entry| entry.time).map(|entry| entry.manager);
        Live {
            uid: meta("uid").unwrap_or_default().into(),
            owner: Owner::read(marks, &history.name, &history.namespace),
            terminating: meta("deletionTimestamp").is_some(),
            readiness: readiness::readiness(value, evidence.now),
            lives: readiness::has_lived(value),
            born: created.is_some() && created >= self.last.stored.created && first.as_ref() == Some(manager),
            holds: BTreeSet::new(),
        }
    }

    /// Whether the object holds the last revision, and the target: no plan asks for those in between.
    async fn holds(&self, id: &ObjectId, item: &Item) -> Result<Holds, Error> {
        let (mut holds, mut weaker) = (BTreeSet::new(), Vec::new());
        let mut tried: Vec<(&Value, bool)> = Vec::new();
        let ends = BTreeSet::from_iter([self.last.revision].into_iter().chain(self.target));
        for revision in ends.into_iter().rev() {
            let Some(body) = item.bodies.get(&revision).map(|object| &object.value) else { continue };
            // Revisions that say the same share one try.
            let known = tried.iter().find(|(value, _)| *value == body).map(|(_, held)| *held);
            let held = match known {
                Some(held) => held,
                None => match self.attempt(id, item, revision).await? {
                    Tried::Holds => true,
                    Tried::Differs => false,
                    Tried::Compared { holds, why } => {
                        weaker.push(why);
                        holds
                    }
                },
            };
            tried.push((body, held));
            if held {
                holds.insert(revision);
            }
        }
        Ok((holds, weaker))
    }

    /// Tries the very operation that a repair would run, as a dry run, and compares.
    async fn attempt(&self, id: &ObjectId, item: &Item, revision: Revision) -> Result<Tried, Error> {
        let Some(live) = item.live.as_ref() else { return Ok(Tried::Differs) };
        let method = self.observation.history.apply_method(self.revisions);
        let patched = |source| Error::Patch { object: id.to_string(), source };
        let Some((body, merge)) = item.merge(revision, self.revisions, method, true).map_err(patched)? else {
            return Ok(Tried::Holds);
        };
        let place = Place { id, resource: &item.resource };
        let manager = &self.observation.manager;
        match place.write(self.wire, &body, &merge, manager, WriteMode::DryRun, self.stop).await {
            Ok(after) if scene::is_unchanged(live, &after) => Ok(Tried::Holds),
            Ok(_) => Ok(Tried::Differs),
            Err(error) => untried(error, || scene::contains(live, &body)),
        }
    }
}

/// A refusal of the content is an answer; a missing right or a webhook without dry run leaves the text to compare.
fn untried(error: cluster::Error, text_holds: impl Fn() -> bool) -> Result<Tried, Error> {
    match &error.cause {
        Cause::Forbidden { verb, resource, .. } => {
            let why = format!("no right to {verb} {resource}: the text was compared instead of a dry run");
            Ok(Tried::Compared { holds: text_holds(), why })
        }
        cause if cause.is_without_dry_run() => {
            let why = "a webhook does not support dry run: the text was compared".into();
            Ok(Tried::Compared { holds: text_holds(), why })
        }
        Cause::Refused { code: 400..=499, .. } => Ok(Tried::Differs),
        Cause::Refused { .. } | Cause::Unreachable(_) | Cause::Malformed(_) | Cause::Stopped(_) => Err(error.into()),
    }
}
