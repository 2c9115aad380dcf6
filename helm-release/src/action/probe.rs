//! What a live object is to its release: whose, how old, how ready, and which revision's manifest it holds.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::error::Error;
use super::observe::{Observation, managed};
use super::scene::{self, Item};
use crate::cluster::{self, Cause, Place, Stop, Wire, WriteMode};
use crate::manifest::{Object, ObjectId, is_kept};
use crate::plan::{Live, Marks, Owner, Seen};
use crate::readiness;
use crate::release::{Entry, Release, Revision, Status};

/// How often an object is looked at that is written meanwhile.
const LOOKS: usize = 4;

/// How much is tried on live objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tries {
    /// Both ends on every object: what a person wants to see.
    All,
    /// No more than a decision needs: an object that is missing, or differs, rules out that a revision is applied.
    Decisive,
}

/// Looks at objects with dry runs, never with a write.
pub(super) struct Probe<'a> {
    pub(super) wire: &'a Wire,
    pub(super) observation: &'a Observation,
    pub(super) last: &'a Entry,
    pub(super) release: &'a Release,
    /// The revision to go back to.
    pub(super) target: Option<Revision>,
    /// All revisions in question, lowest first.
    pub(super) revisions: &'a [Revision],
    pub(super) tries: Tries,
    pub(super) stop: &'a Stop,
}

/// What was seen.
pub(super) struct Sightings {
    pub(super) objects: Vec<Seen>,
    /// Where weaker evidence had to be used.
    pub(super) weaker: Vec<String>,
    /// Which objects the server would let go to which revision.
    pub(super) admitted: BTreeSet<(ObjectId, Revision)>,
}

/// What a try of a revision's manifest on a live object showed.
#[derive(Debug, Clone)]
enum Tried {
    Holds,
    /// The server would change it.
    Differs,
    /// The server would refuse to.
    Refused,
    /// It may not be tried, so that the text was compared.
    Compared {
        holds: bool,
        why: String,
    },
}

/// What was tried so far.
type Trials = BTreeMap<(ObjectId, Revision), Tried>;

impl Probe<'_> {
    /// Every object of the scene.
    pub(super) async fn all(&self) -> Result<Sightings, Error> {
        let scene = &self.observation.scene;
        let live = scene.items.iter().map(|(id, item)| (id, item.live.as_ref().map(|value| self.live(value))));
        let mut live: BTreeMap<&ObjectId, Option<Live>> = live.collect();
        let trials = self.trials(&live).await?;
        for (id, revision) in trials.iter().filter(|(_, tried)| tried.holds()).map(|(place, _)| place) {
            if let Some(Some(live)) = live.get_mut(id) {
                live.holds.insert(*revision);
            }
        }
        let weaker: BTreeSet<_> = trials.values().filter_map(Tried::why).collect();
        let seen = |(id, item): (&ObjectId, &Item)| {
            let keep = item.bodies.values().any(Object::is_kept) || item.live.as_ref().is_some_and(is_kept);
            Seen { id: id.clone(), listed: item.listed(), keep, live: live.remove(id).flatten() }
        };
        Ok(Sightings {
            objects: scene.items.iter().map(seen).collect(),
            weaker: weaker.into_iter().collect(),
            admitted: trials.into_iter().filter(|(_, tried)| tried.is_admitted()).map(|(place, _)| place).collect(),
        })
    }

    /// The last revision first. Whether it is applied decides whether the target has to be tried at all.
    async fn trials(&self, live: &BTreeMap<&ObjectId, Option<Live>>) -> Result<Trials, Error> {
        // What is being deleted, or is another's, holds nothing, whatever it says.
        let is_ours = |id: &&ObjectId| live.get(*id).is_some_and(|live| live.as_ref().is_some_and(Live::is_ours));
        let listed = |revision| self.observation.scene.in_install_order(revision);
        let mut of_last: Vec<_> = listed(self.last.revision).into_iter().filter(is_ours).collect();
        let is_whole = of_last.len() == listed(self.last.revision).len() && !self.lacks_kinds();
        let mut trials = Trials::new();
        if self.tries == Tries::All || self.release.status() == &Status::Uninstalling {
            self.attempt_all(&mut trials, &of_last, self.last.revision).await?;
        } else if is_whole {
            // What is applied last tells most: where it differs, the rest need not be tried.
            of_last.reverse();
            of_last.sort_by_key(|id| self.is_same_at_both_ends(id));
            let (first, rest) = of_last.split_at(1.min(of_last.len()));
            self.attempt_all(&mut trials, first, self.last.revision).await?;
            if trials.values().all(Tried::holds) {
                self.attempt_all(&mut trials, rest, self.last.revision).await?;
            }
        }
        let Some(target) = self.target else { return Ok(trials) };
        let is_applied = is_whole && trials.len() == of_last.len() && trials.values().all(Tried::holds);
        let of_target: Vec<_> = listed(target).into_iter().filter(is_ours).collect();
        // With hooks it may be that nothing was begun although everything holds.
        let is_decided = is_applied && self.tries == Tries::Decisive && self.release.hooks().is_empty();
        let wanted = of_target.into_iter().filter(|id| !is_decided || self.is_same_at_both_ends(id));
        self.attempt_all(&mut trials, &wanted.collect::<Vec<_>>(), target).await?;
        Ok(trials)
    }

    fn lacks_kinds(&self) -> bool {
        self.observation.scene.unknown.iter().any(|listed| listed.revision == self.last.revision)
    }

    /// Whether the last revision and the target say the same of an object: then they share one try.
    fn is_same_at_both_ends(&self, id: &ObjectId) -> bool {
        let Some(item) = self.observation.scene.items.get(id) else { return false };
        let body = |revision: Revision| item.bodies.get(&revision).map(|object| &object.value);
        self.target.is_some_and(|target| body(target) == body(self.last.revision))
    }

    async fn attempt_all(&self, trials: &mut Trials, ids: &[&ObjectId], revision: Revision) -> Result<(), Error> {
        let known = |id: &ObjectId| trials.get(&(id.clone(), self.last.revision)).cloned();
        let shared: Vec<_> =
            ids.iter().filter(|id| self.is_same_at_both_ends(id)).filter_map(|id| Some((*id, known(id)?))).collect();
        trials.extend(shared.into_iter().map(|(id, tried)| ((id.clone(), revision), tried)));
        let left: Vec<_> = ids.iter().filter(|id| !trials.contains_key(&((**id).clone(), revision))).collect();
        let tried = cluster::all(left.iter().map(|id| self.attempt(id, revision)).collect()).await?;
        trials.extend(left.into_iter().zip(tried).map(|(id, tried)| (((*id).clone(), revision), tried)));
        Ok(())
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

    /// Tries the very operation that a repair would run, as a dry run, and compares.
    ///
    /// A controller may write an object between the read and the try: then it is read anew, and tried again.
    async fn attempt(&self, id: &ObjectId, revision: Revision) -> Result<Tried, Error> {
        let Some(mut item) = self.observation.scene.items.get(id).cloned() else { return Ok(Tried::Refused) };
        for _ in 1..LOOKS {
            match self.compare(id, &item, revision).await? {
                Compared::Tried(tried) => return Ok(tried),
                Compared::Moved => item.live = self.place(id, &item).get(self.wire, self.stop).await?,
            }
        }
        match self.compare(id, &item, revision).await? {
            Compared::Tried(tried) => Ok(tried),
            Compared::Moved => Ok(Tried::Differs),
        }
    }

    async fn compare(&self, id: &ObjectId, item: &Item, revision: Revision) -> Result<Compared, Error> {
        let Some(live) = item.live.as_ref() else { return Ok(Compared::Tried(Tried::Refused)) };
        let method = self.observation.history.apply_method(self.revisions);
        let patched = |source| Error::Patch { object: id.to_string(), source };
        let Some((body, merge)) = item.merge(revision, self.revisions, method, false).map_err(patched)? else {
            return Ok(Compared::Tried(Tried::Holds));
        };
        let manager = &self.observation.manager;
        let tried = self.place(id, item).write(self.wire, &body, &merge, manager, WriteMode::DryRun, self.stop).await;
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        match tried {
            Ok(after) if scene::is_unchanged(live, &after) => Ok(Compared::Tried(Tried::Holds)),
            Ok(after) if version(&after) != version(live) => Ok(Compared::Moved),
            Ok(_) => Ok(Compared::Tried(Tried::Differs)),
            Err(error) => untried(error, || scene::contains(live, &body)).map(Compared::Tried),
        }
    }

    fn place<'a>(&self, id: &'a ObjectId, item: &'a Item) -> Place<'a> {
        Place { id, resource: &item.resource }
    }
}

/// How a try compares with what was read.
enum Compared {
    Tried(Tried),
    /// The object was written in between.
    Moved,
}

impl Tried {
    fn holds(&self) -> bool {
        matches!(self, Self::Holds | Self::Compared { holds: true, .. })
    }

    fn is_admitted(&self) -> bool {
        matches!(self, Self::Holds | Self::Differs)
    }

    fn why(&self) -> Option<String> {
        match self {
            Self::Compared { why, .. } => Some(why.clone()),
            Self::Holds | Self::Differs | Self::Refused => None,
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
        // A field that another manager owns says something else: that differs, too.
        Cause::Refused { code: 400..=499, .. } => Ok(Tried::Refused),
        Cause::Refused { .. } | Cause::Unreachable(_) | Cause::Malformed(_) | Cause::Stopped(_) => Err(error.into()),
    }
}
