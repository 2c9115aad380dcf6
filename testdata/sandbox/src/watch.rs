//! Watches: what happens to a collection, as it happens, with bookmarks and an end.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until};

use crate::Shared;
use crate::call::{Call, Form};
use crate::query::Selector;
use crate::read::shown;
use crate::refusal::Refusal;
use crate::state::State;
use crate::store::Change;
use crate::write::converted;

/// How often a watch that asked for bookmarks gets one.
const BOOKMARKS: Duration = Duration::from_secs(60);
/// How long a watch lasts that does not say.
const LASTS: Duration = Duration::from_secs(1800);

struct Watch {
    shared: Arc<Shared>,
    changed: Receiver<u64>,
    call: Call,
    selectors: (Selector, Selector),
    seen: u64,
    /// What is to be sent before anything else.
    first: Vec<Value>,
    bookmark: Option<Instant>,
    end: Instant,
    is_over: bool,
}

/// What a watch sends.
pub(crate) fn open(shared: &Arc<Shared>, state: &State, call: Call) -> Result<Body, Refusal> {
    let selectors = call.selectors()?;
    let given = call.query.get("resourceVersion").and_then(|text| text.parse().ok()).filter(|version| *version > 0);
    let initial = call.query.is_true("sendInitialEvents");
    let mut first = Vec::new();
    let (mut seen, mut is_over) = (given.unwrap_or(state.store.version()), false);
    if initial || given.is_none() {
        seen = state.store.version();
        let there = state.selected(&call, seen)?;
        first.extend(there.values().map(|object| event(&call, "ADDED", object)));
        if initial {
            first.push(bookmark(&call, seen, true));
        }
    } else if seen < state.store.oldest() {
        let gone = Refusal::version_gone(seen, state.store.oldest()).body();
        first.push(json!({"type": "ERROR", "object": gone}));
        is_over = true;
    }
    let lasts = call.query.get("timeoutSeconds").and_then(|text| text.parse().ok()).map(Duration::from_secs);
    let watch = Watch {
        shared: shared.clone(),
        changed: shared.changed.subscribe(),
        bookmark: call.query.is_true("allowWatchBookmarks").then(|| Instant::now() + BOOKMARKS),
        end: Instant::now() + lasts.unwrap_or(LASTS),
        call,
        selectors,
        seen,
        first,
        is_over,
    };
    Ok(Body::from_stream(stream::unfold(watch, Watch::next)))
}

impl Watch {
    async fn next(mut self) -> Option<(Result<Bytes, std::convert::Infallible>, Self)> {
        loop {
            if !self.first.is_empty() {
                let lines: String = self.first.drain(..).map(|event| format!("{event}\n")).collect();
                return Some((Ok(lines.into()), self));
            }
            if self.is_over {
                return None;
            }
            self.changed.mark_unchanged();
            let due = self.look();
            if self.first.is_empty() {
                self.wait(due).await;
            }
        }
    }

    /// Collects what happened since the last look; returns when something is due next.
    fn look(&mut self) -> Option<Instant> {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        shared.tick(&mut state);
        if self.seen < state.store.oldest() {
            let gone = Refusal::version_gone(self.seen, state.store.oldest()).body();
            self.first.push(json!({"type": "ERROR", "object": gone}));
            self.is_over = true;
            return None;
        }
        let events: Vec<_> = state.store.since(self.seen).filter_map(|change| self.event(change)).collect();
        self.first.extend(events);
        self.seen = state.store.version();
        let now = Instant::now();
        if self.bookmark.is_some_and(|due| due <= now) {
            self.first.push(bookmark(&self.call, self.seen, false));
            self.bookmark = Some(now + BOOKMARKS);
        }
        self.is_over = self.end <= now;
        state.next_due()
    }

    async fn wait(&mut self, due: Option<Instant>) {
        let wake = [due, self.bookmark, Some(self.end)].into_iter().flatten().min().unwrap_or(self.end);
        tokio::select! {
            _ = self.changed.changed() => {}
            () = sleep_until(wake) => {}
        }
    }

    /// What a change is to those who see only what their selectors accept.
    fn event(&self, change: &Change) -> Option<Value> {
        let is_named = self.call.name.as_ref().is_none_or(|name| *name == change.key.name);
        if !is_named || !self.call.is_wanted(&change.key) {
            return None;
        }
        let (labels, fields) = &self.selectors;
        let accepts = |object: &&Arc<Value>| labels.accepts_labels(object) && fields.accepts_fields(object);
        let (before, after) = (change.before.as_ref().filter(accepts), change.after.as_ref().filter(accepts));
        match (before, after) {
            (None, Some(object)) => Some(event(&self.call, "ADDED", object)),
            (Some(_), Some(object)) => Some(event(&self.call, "MODIFIED", object)),
            (Some(last), None) => {
                let mut last = Value::clone(last);
                last["metadata"]["resourceVersion"] = json!(change.version.to_string());
                Some(event(&self.call, "DELETED", &last))
            }
            (None, None) => None,
        }
    }
}

fn event(call: &Call, word: &str, object: &Value) -> Value {
    json!({"type": word, "object": shown(call, converted(&call.resource, object))})
}

fn bookmark(call: &Call, version: u64, ends_initial: bool) -> Value {
    let mut metadata = json!({"resourceVersion": version.to_string()});
    if ends_initial {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    let (kind, api_version) = match call.form {
        Form::Whole => (call.resource.kind.clone(), call.resource.api_version()),
        Form::Metadata => ("PartialObjectMetadata".into(), "meta.k8s.io/v1".into()),
    };
    json!({"type": "BOOKMARK", "object": {"kind": kind, "apiVersion": api_version, "metadata": metadata}})
}
