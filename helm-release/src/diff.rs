//! What differs between two manifests, or between a manifest and what is live. Pure: who asks the server hands in what
//! it said.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::manifest::{self, Manifest, Object, ObjectId};
use crate::release::{Namespace, Release};

/// Fields by which the objects of a list are told apart, the most telling first.
const KEYS: [&str; 9] =
    ["name", "key", "containerPort", "port", "mountPath", "devicePath", "topologyKey", "ip", "type"];
/// What the server counts or keeps for itself: no manifest sets it.
const SERVERS_OWN: [&str; 3] = ["managedFields", "resourceVersion", "generation"];
/// What `kubectl apply` leaves on an object: the whole of it once more.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// One object that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// Which.
    pub object: ObjectId,
    /// Where it stands in its release.
    pub part: Part,
    /// In what way it differs.
    pub change: Change,
    /// What the one side says of it.
    pub before: Option<Value>,
    /// What the other side says of it.
    pub after: Option<Value>,
    /// What else is to be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Where an object stands in its release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// In the manifest.
    Manifest,
    /// Among the hooks.
    Hook,
}

/// In what way an object differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Only the later revision lists it.
    Added,
    /// Only the earlier revision lists it.
    Removed,
    /// Both list it, and say different things.
    Changed,
    /// The manifest lists it, and it is not in the cluster.
    Missing,
    /// It is in the cluster, and not as the manifest says.
    Drifted,
    /// It is in the cluster and ours, another revision set it, and this one does not list it.
    Leaked,
    /// The manifest lists it, and the server does not serve its kind.
    Unserved,
}

/// What differs between the revisions `before` and `after`, in the order of the manifests; hooks come last.
///
/// # Errors
/// One of the manifests cannot be read.
pub fn between(before: &Release, after: &Release, namespace: &Namespace) -> Result<Vec<Difference>, manifest::Error> {
    let mut found = compare(objects(before, namespace)?, objects(after, namespace)?, Part::Manifest);
    found.extend(compare(hooks(before, namespace)?, hooks(after, namespace)?, Part::Hook));
    Ok(found)
}

fn compare(before: Vec<Object>, after: Vec<Object>, part: Part) -> Vec<Difference> {
    let mut old: BTreeMap<ObjectId, Value> = before.iter().map(|o| (o.id.clone(), o.value.clone())).collect();
    // What is listed twice counts as the last says, as for Helm 4.
    let new: BTreeMap<ObjectId, Value> = after.iter().map(|o| (o.id.clone(), o.value.clone())).collect();
    let mut found = Vec::new();
    for id in order(&after) {
        let wanted = new.get(id).cloned();
        let change = match old.remove(id) {
            known if known == wanted => continue,
            None => (Change::Added, None),
            known => (Change::Changed, known),
        };
        found.push(Difference::new(id, part, change.0, change.1, wanted));
    }
    let gone = order(&before).into_iter().filter_map(|id| Some((id, old.remove(id)?)));
    found.extend(gone.map(|(id, value)| Difference::new(id, part, Change::Removed, Some(value), None)));
    found
}

/// Each object once, where it is listed first.
fn order(objects: &[Object]) -> Vec<&ObjectId> {
    let mut seen = BTreeSet::new();
    objects.iter().map(|object| &object.id).filter(|id| seen.insert(*id)).collect()
}

fn objects(release: &Release, namespace: &Namespace) -> Result<Vec<Object>, manifest::Error> {
    Ok(placed(Manifest::parse(release.manifest())?.objects, namespace))
}

fn hooks(release: &Release, namespace: &Namespace) -> Result<Vec<Object>, manifest::Error> {
    let manifests = release.hooks().into_iter().map(|hook| Manifest::parse(&hook.manifest));
    let objects: Vec<_> = manifests.collect::<Result<_, _>>()?;
    Ok(placed(objects.into_iter().flat_map(|manifest| manifest.objects).collect(), namespace))
}

/// To name the release's own namespace, or to leave it out, is the same.
fn placed(mut objects: Vec<Object>, namespace: &Namespace) -> Vec<Object> {
    for object in &mut objects {
        object.id.namespace.take_if(|named| named == namespace.as_str());
    }
    objects
}

/// What `manifest` sets of an object as a write of it would leave it (`wanted`) and as it is (`live`), and whatever else
/// of the two differs. What the server adds, and nobody set, stays out.
#[must_use]
pub fn drift(manifest: &Value, wanted: &Value, live: &Value) -> (Value, Value) {
    let strip = |value: &Value| {
        let mut value = value.clone();
        if let Some(fields) = value.as_object_mut() {
            fields.remove("status");
        }
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| !SERVERS_OWN.contains(&key.as_str()));
        }
        value
    };
    let pair = visible(Some(manifest), &strip(wanted), &strip(live));
    pair.unwrap_or((Value::Null, Value::Null))
}

/// The parts of both that the manifest sets, or in which they differ; `None` if there are none.
fn visible(manifest: Option<&Value>, wanted: &Value, live: &Value) -> Option<(Value, Value)> {
    if manifest.is_none() && wanted == live {
        return None;
    }
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => Some(visible_fields(manifest, wanted, live)),
        (Value::Array(wanted), Value::Array(live)) => {
            Some(visible_items(manifest, wanted, live).unwrap_or_else(|| (wanted.clone().into(), live.clone().into())))
        }
        _ => Some((wanted.clone(), live.clone())),
    }
}

fn visible_fields(manifest: Option<&Value>, wanted: &Map<String, Value>, live: &Map<String, Value>) -> (Value, Value) {
    let set = manifest.and_then(Value::as_object);
    let (mut left, mut right) = (Map::new(), Map::new());
    let only_live = live.keys().filter(|key| !wanted.contains_key(*key));
    for key in wanted.keys().chain(only_live) {
        let set = set.and_then(|set| set.get(key)).filter(|value| !value.is_null());
        match (wanted.get(key), live.get(key)) {
            (Some(a), Some(b)) => {
                if let Some((a, b)) = visible(set, a, b) {
                    left.insert(key.clone(), a);
                    right.insert(key.clone(), b);
                }
            }
            (Some(a), None) => drop(left.insert(key.clone(), a.clone())),
            (None, Some(b)) => drop(right.insert(key.clone(), b.clone())),
            (None, None) => {}
        }
    }
    (Value::Object(left), Value::Object(right))
}

/// Lists whose items can be told apart; `None` for the others, which are shown whole.
fn visible_items(manifest: Option<&Value>, wanted: &[Value], live: &[Value]) -> Option<(Value, Value)> {
    let set = manifest.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let key = KEYS.into_iter().find(|key| [set, wanted, live].iter().all(|items| tells_apart(key, items)))?;
    let of = |items: &'_ [Value], item: &Value| items.iter().position(|other| other[key] == item[key]);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for item in wanted {
        let set = of(set, item).map(|at| &set[at]);
        match of(live, item).map(|at| &live[at]) {
            Some(other) => {
                if let Some((a, b)) = visible(set, item, other) {
                    left.push(a);
                    right.push(b);
                }
            }
            None => left.push(item.clone()),
        }
    }
    right.extend(live.iter().filter(|item| of(wanted, item).is_none()).cloned());
    Some((left.into(), right.into()))
}

fn tells_apart(key: &str, items: &[Value]) -> bool {
    let mut seen = Vec::new();
    items.iter().all(|item| {
        let value = &item[key];
        let new = !value.is_null() && !seen.contains(&value);
        seen.push(value);
        new
    })
}

/// What a write of `manifest` would leave of `live`, where it may not be tried: weaker than a dry run, which knows
/// defaults, number forms and which lists are merged.
#[must_use]
pub fn overlay(live: &Value, manifest: &Value) -> Value {
    let (Value::Object(below), Value::Object(above)) = (live, manifest) else { return manifest.clone() };
    let mut merged = below.clone();
    for (key, value) in above {
        match merged.get(key) {
            _ if value.is_null() => drop(merged.remove(key)),
            Some(known) => drop(merged.insert(key.clone(), overlay(known, value))),
            None => drop(merged.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(merged)
}

impl Difference {
    /// An object that differs.
    #[must_use]
    pub fn new(object: &ObjectId, part: Part, change: Change, before: Option<Value>, after: Option<Value>) -> Self {
        Self { object: object.clone(), part, change, before, after, note: None }
    }

    /// The same, with what else is to be known.
    #[must_use]
    pub fn noted(self, note: Option<String>) -> Self {
        Self { note, ..self }
    }

    /// Hides the values of a Secret, as kubectl does: that they differ still shows.
    pub fn conceal(&mut self) {
        if self.object.kind != "Secret" || !self.object.group.is_empty() {
            return;
        }
        for place in [&["data"][..], &["stringData"], &["metadata", "annotations", LAST_APPLIED]] {
            hide(at(self.before.as_mut(), place), at(self.after.as_mut(), place));
        }
    }
}

fn at<'a>(side: Option<&'a mut Value>, place: &[&str]) -> Option<&'a mut Value> {
    place.iter().try_fold(side?, |value, step| value.get_mut(*step))
}

fn hide(before: Option<&mut Value>, after: Option<&mut Value>) {
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let keys: BTreeSet<String> = before.keys().chain(after.keys()).cloned().collect();
            keys.iter().for_each(|key| hide(before.get_mut(key), after.get_mut(key)));
        }
        (Some(Value::Object(one)), None) | (None, Some(Value::Object(one))) => {
            one.values_mut().for_each(|value| hide(Some(value), None));
        }
        (Some(before), Some(after)) if before == after => (*before, *after) = ("***".into(), "***".into()),
        (Some(before), Some(after)) => (*before, *after) = ("*** (before)".into(), "*** (after)".into()),
        (Some(one), None) | (None, Some(one)) => *one = "***".into(),
        (None, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn release(manifest: &str, hook: &str) -> Release {
        let hooks =
            json!([{"name": "h", "kind": "Job", "path": "h.yaml", "manifest": hook, "events": ["post-install"]}]);
        let hooks = if hook.is_empty() { json!([]) } else { hooks };
        Release::parse(&json!({"info": {"status": "deployed"}, "manifest": manifest, "hooks": hooks}).to_string())
            .unwrap()
    }

    fn map(name: &str, more: &str) -> String {
        format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{more}}}\ndata: {{a: '1'}}\n")
    }

    fn found(before: &Release, after: &Release) -> Vec<(String, Part, Change)> {
        let found = between(before, after, &"shop".parse().unwrap()).unwrap();
        found.into_iter().map(|one| (one.object.to_string(), one.part, one.change)).collect()
    }

    #[test]
    fn objects_are_added_removed_and_changed_and_hooks_are_told_apart() {
        let job =
            |image: &str| format!("apiVersion: batch/v1\nkind: Job\nmetadata: {{name: h}}\nspec: {{image: {image}}}\n");
        let before = release(&(map("same", "") + &map("gone", "") + &map("other", "")), &job("a"));
        let after = release(&(map("new", "") + &map("other", ", labels: {x: y}") + &map("same", "")), &job("b"));
        let expected = [
            ("configmap/new".into(), Part::Manifest, Change::Added),
            ("configmap/other".into(), Part::Manifest, Change::Changed),
            ("configmap/gone".into(), Part::Manifest, Change::Removed),
            ("job.batch/h".into(), Part::Hook, Change::Changed),
        ];
        assert_eq!(found(&before, &after), expected);
        assert_eq!(found(&before, &before), []);
    }

    #[test]
    fn another_order_or_a_namespace_spelt_out_is_no_difference() {
        let one = release(&(map("a", "") + &map("b", ", namespace: shop")), "");
        let other = release(&(map("b", ", namespace: shop") + &map("a", "")), "");
        assert_eq!(found(&one, &other), []);
        let spelt = found(&one, &release(&(map("a", ", namespace: shop") + &map("b", ", namespace: shop")), ""));
        // The text differs; the object is the same.
        assert_eq!(spelt, [("configmap/a".into(), Part::Manifest, Change::Changed)]);
        let elsewhere = found(&one, &release(&(map("a", ", namespace: x") + &map("b", ", namespace: shop")), ""));
        assert_eq!(elsewhere.iter().map(|one| one.2).collect::<Vec<_>>(), [Change::Added, Change::Removed]);
    }

    #[test]
    fn drift_shows_what_the_manifest_sets_and_nothing_of_the_servers() {
        let manifest = json!({"kind": "D", "metadata": {"name": "d"}, "spec": {"replicas": 2, "containers": [{"name": "main", "image": "a"}]}});
        let live = |replicas: u8, image: &str| {
            json!({"kind": "D", "metadata": {"name": "d", "uid": "u", "generation": replicas, "managedFields": [replicas]},
                "spec": {"replicas": replicas, "strategy": "Rolling",
                    "containers": [{"name": "main", "image": image, "pull": "Always"}, {"name": "injected"}]},
                "status": {"ready": replicas}})
        };
        let (wanted, found) = drift(&manifest, &live(2, "a"), &live(5, "b"));
        let expected = |replicas: u8, image: &str| json!({"kind": "D", "metadata": {"name": "d"}, "spec": {"replicas": replicas, "containers": [{"name": "main", "image": image}]}});
        assert_eq!((wanted, found), (expected(2, "a"), expected(5, "b")));
        let (wanted, found) = drift(&manifest, &live(2, "a"), &live(2, "a"));
        assert_eq!(wanted, found);
    }

    #[test]
    fn whatever_a_write_would_change_is_shown_although_the_manifest_does_not_set_it() {
        let manifest = json!({"data": {"a": "1"}, "args": ["x"]});
        let (wanted, live) =
            (json!({"data": {"a": "1"}, "args": ["x"]}), json!({"data": {"a": "1", "stale": "2"}, "args": ["y", "z"]}));
        assert_eq!(drift(&manifest, &wanted, &live), (wanted.clone(), live.clone()));
    }

    #[test]
    fn an_overlay_is_what_a_merge_would_leave() {
        let live = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1, 2]});
        let manifest = json!({"b": {"c": 9, "d": null}, "e": [7]});
        assert_eq!(overlay(&live, &manifest), json!({"a": 1, "b": {"c": 9}, "e": [7]}));
    }

    #[test]
    fn a_secret_shows_that_it_differs_and_not_what_it_holds() {
        let id = |kind: &str| ObjectId { group: String::new(), kind: kind.into(), namespace: None, name: "s".into() };
        let side = |data: Value| {
            Some(json!({"kind": "Secret", "metadata": {"annotations": {"x": "y", LAST_APPLIED: "all"}}, "data": data}))
        };
        let (before, after) =
            (side(json!({"a": "1", "b": "2", "old": "3"})), side(json!({"a": "1", "b": "9", "new": "4"})));
        let mut secret = Difference::new(&id("Secret"), Part::Manifest, Change::Changed, before.clone(), after.clone());
        secret.conceal();
        let hidden = |data: Value| {
            Some(json!({"kind": "Secret", "metadata": {"annotations": {"x": "y", LAST_APPLIED: "***"}}, "data": data}))
        };
        assert_eq!(secret.before, hidden(json!({"a": "***", "b": "*** (before)", "old": "***"})));
        assert_eq!(secret.after, hidden(json!({"a": "***", "b": "*** (after)", "new": "***"})));
        let mut other = Difference::new(&id("Other"), Part::Manifest, Change::Changed, before.clone(), after);
        other.conceal();
        assert_eq!(other.before, before);
        let mut odd =
            Difference::new(&id("Secret"), Part::Manifest, Change::Added, None, Some(json!({"data": "text"})));
        odd.conceal();
        assert_eq!(odd.after, Some(json!({"data": "***"})));
    }
}
