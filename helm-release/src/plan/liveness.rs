//! Is the author of an open operation alive? Nobody without our Lease is ever proven dead: he becomes improbable.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::Wait;
use super::evidence::{Evidence, Finding, Lease};
use super::policy::{AssumeDead, Policy};
use super::view::View;
use crate::release::{History, Status};

/// Whether the author may be at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Liveness {
    /// He may be.
    Alive(Wait),
    /// He is presumed not to be, for this reason.
    PresumedDead(Finding),
}

/// Climbs the ladder: a Lease of ours, a person's word, then silence against the age that fits what he would be doing.
pub(super) fn liveness(history: &History, evidence: &Evidence, policy: &Policy) -> Liveness {
    let author = &evidence.author;
    match &author.lease {
        Lease::Held { holder, until } => {
            return alive(format!("{holder} holds the Lease of this release"), Some(*until));
        }
        Lease::Expired { holder } => {
            return dead(format!("the Lease of {holder} ran out"), "Lease, server time");
        }
        Lease::Free | Lease::Unreadable(_) => {}
    }
    let last = history.last();
    if let AssumeDead::Shown(version) = &policy.assume_dead {
        if last.is_some_and(|last| &last.stored.resource_version == version) {
            return dead("a person says so, of this very record".into(), "--assume-dead");
        }
        return alive("the record has changed since it was shown: somebody is at work".into(), None);
    }
    let (patience, doing) = patience(history, evidence, policy);
    match author.last_sign {
        Some(sign) => silence(evidence.now, sign, patience, doing),
        None if patience.is_zero() => {
            dead("no sign of activity can be dated, and no age is asked for".into(), "policy")
        }
        None => alive("no sign of activity can be dated".into(), None),
    }
}

/// How long silence must last: longer where he may be waiting for a hook, or for objects to be ready or gone, and so
/// writes nothing.
fn patience(history: &History, evidence: &Evidence, policy: &Policy) -> (Duration, &'static str) {
    let writing = (policy.min_age, "would be writing");
    let Some((last, release)) = history.last().and_then(|last| Some((last.revision, last.sound()?))) else {
        return writing;
    };
    let view = View { evidence, last, release, target: None, last_deployed: None, baseline: vec![last] };
    let waiting_for_hook = view.active_hooks().next().is_some();
    let waiting_for_objects = if release.status() == &Status::Uninstalling {
        view.terminating(last).next().is_some()
    } else {
        view.is_applied() && !view.unready().is_empty()
    };
    if waiting_for_hook || waiting_for_objects {
        (policy.foreign_timeout.max(policy.min_age), "may be waiting")
    } else {
        writing
    }
}

fn silence(now: DateTime<Utc>, sign: DateTime<Utc>, patience: Duration, doing: &str) -> Liveness {
    let patience = TimeDelta::from_std(patience).unwrap_or(TimeDelta::MAX);
    let quiet = now - sign;
    if quiet >= patience {
        let quiet = words(quiet);
        return dead(
            format!("the author {doing}, and has been silent for {quiet}, since {}", sign.format("%FT%TZ")),
            "server time of the newest write",
        );
    }
    let reason =
        format!("the author {doing}, and his last sign is {} old, less than {}", words(quiet), words(patience));
    alive(reason, sign.checked_add_signed(patience))
}

/// A length of time in the two largest units that say something: `1h5m`, `5m12s`, `8s`.
#[must_use]
pub(super) fn words(length: TimeDelta) -> String {
    let seconds = length.num_seconds().max(0);
    let (days, hours, minutes, seconds) = (seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let parts = [(days, 'd'), (hours, 'h'), (minutes, 'm'), (seconds, 's')];
    let first = parts.iter().position(|(n, _)| *n > 0).unwrap_or(3);
    parts
        .iter()
        .skip(first)
        .take(2)
        .filter(|(n, _)| *n > 0 || first == 3)
        .map(|(n, unit)| format!("{n}{unit}"))
        .collect()
}

fn alive(reason: String, until: Option<DateTime<Utc>>) -> Liveness {
    Liveness::Alive(Wait { reason, until, author: true })
}

fn dead(fact: String, source: &str) -> Liveness {
    Liveness::PresumedDead(Finding { fact, source: source.into() })
}
