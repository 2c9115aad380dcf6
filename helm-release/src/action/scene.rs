//! The objects of a release as its manifests list them and as they are: what evidence is made of and what steps act on.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::error::Error;
use crate::cluster::{self, Kinds, Merge, Permission, Place, Resource, Stop, Wire};
use crate::manifest::{Manifest, Object, ObjectId};
use crate::patch::{self, Unstructured};
use crate::plan::Listed;
use crate::release::{ApplyMethod, History, Namespace, Release, ReleaseName, Revision};

/// Objects by identity, across the revisions in question.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scene {
    pub(super) items: BTreeMap<ObjectId, Item>,
    pub(super) unknown: Vec<Listed>,
    /// The hook objects that were seen, and how they are served.
    pub(super) hooks: BTreeMap<ObjectId, (Resource, Value)>,
}

/// One object: what each manifest says, and what is live.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) resource: Resource,
    pub(super) bodies: BTreeMap<Revision, Object>,
    pub(super) live: Option<Value>,
}

/// Whose marks objects carry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks<'a> {
    pub(super) name: &'a ReleaseName,
    pub(super) namespace: &'a Namespace,
}

impl Scene {
    /// Reads the manifests of `revisions`, finds out how their kinds are served, and reads every object.
    pub(super) async fn gather(
        wire: &Wire,
        history: &History,
        revisions: &[Revision],
        stop: &Stop,
    ) -> Result<Self, Error> {
        let mut listed = Vec::new();
        for revision in revisions {
            let Some(release) = history.get(*revision).and_then(|entry| entry.sound()) else { continue };
            listed.extend(objects_of(release, *revision)?.into_iter().map(|object| (*revision, object)));
        }
        let marks = Marks { name: &history.name, namespace: &history.namespace };
        let versions = listed.iter().map(|(_, object)| object.api_version.clone()).collect();
        let kinds = Kinds::discover(wire, &versions, stop).await?;
        let mut scene = Self::place(listed, &kinds, marks);
        scene.read_live(wire, stop).await?;
        Ok(scene)
    }

    fn place(listed: Vec<(Revision, Object)>, kinds: &Kinds, marks: Marks<'_>) -> Self {
        let mut scene = Self::default();
        for (revision, mut object) in listed {
            let Some(resource) = kinds.get(&object.api_version, &object.id.kind) else {
                let api_version = object.api_version.clone();
                scene.unknown.push(Listed { revision, id: object.id, api_version });
                continue;
            };
            object.id = identity(&object.id, resource, marks.namespace);
            mark(&mut object.value, resource, &object.id, marks);
            // The newest revision that lists it says by which version it is read and written.
            let item = scene.items.entry(object.id.clone()).or_insert_with(|| Item::new(resource));
            item.resource = resource.clone();
            item.bodies.insert(revision, object);
        }
        scene
    }

    async fn read_live(&mut self, wire: &Wire, stop: &Stop) -> Result<(), Error> {
        let reads = self.items.iter().map(|(id, item)| read(wire, id, item, stop)).collect();
        let found = match cluster::all(reads).await {
            Ok(found) => found,
            Err(Error::Cluster(refused)) if refused.code() == Some(403) => {
                return Err(self.denied(wire, refused, stop).await?);
            }
            Err(error) => return Err(error),
        };
        for (item, live) in self.items.values_mut().zip(found) {
            item.live = live;
        }
        Ok(())
    }

    /// All that may not be read, so that one Role grants it.
    async fn denied(&self, wire: &Wire, source: cluster::Error, stop: &Stop) -> Result<Error, Error> {
        let needed = self.items.iter().map(|(id, item)| Permission {
            verb: "get".into(),
            group: item.resource.group().into(),
            resource: item.resource.plural.clone(),
            namespace: id.namespace.clone().unwrap_or_default(),
        });
        Ok(Error::Denied { missing: cluster::lacking(wire, needed.collect(), stop).await?, source: Box::new(source) })
    }

    /// How an object or hook is served.
    pub(super) fn resource(&self, id: &ObjectId) -> Option<&Resource> {
        self.items.get(id).map(|item| &item.resource).or_else(|| self.hooks.get(id).map(|(resource, _)| resource))
    }

    /// An object or hook as it is; `None` if it does not exist.
    pub(super) fn live(&self, id: &ObjectId) -> Option<&Value> {
        self.items.get(id).map_or_else(|| self.hooks.get(id).map(|(_, live)| live), |item| item.live.as_ref())
    }

    /// The objects of `revision`, in the order in which Helm installs them.
    pub(super) fn in_install_order(&self, revision: Revision) -> Vec<&ObjectId> {
        let mut objects: Vec<Object> =
            self.items.values().filter_map(|item| item.bodies.get(&revision)).cloned().collect();
        crate::manifest::sort_for_install(&mut objects);
        objects.iter().filter_map(|object| self.items.get_key_value(&object.id).map(|(id, _)| id)).collect()
    }

    /// `ids` in the order in which Helm uninstalls them; hooks, which no manifest lists, come last.
    pub(super) fn in_uninstall_order<'a>(&self, ids: impl Iterator<Item = &'a ObjectId>) -> Vec<ObjectId> {
        let (known, hooks): (Vec<_>, Vec<_>) = ids.partition(|id| self.items.contains_key(id));
        let body = |id: &ObjectId| self.items.get(id).and_then(|item| item.bodies.values().next_back()).cloned();
        let mut objects: Vec<Object> = known.into_iter().filter_map(body).collect();
        crate::manifest::sort_for_uninstall(&mut objects);
        objects.into_iter().map(|object| object.id).chain(hooks.into_iter().cloned()).collect()
    }
}

async fn read(wire: &Wire, id: &ObjectId, item: &Item, stop: &Stop) -> Result<Option<Value>, Error> {
    Ok(Place { id, resource: &item.resource }.get(wire, stop).await?)
}

impl Item {
    fn new(resource: &Resource) -> Self {
        Self { resource: resource.clone(), bodies: BTreeMap::new(), live: None }
    }

    /// The revisions whose manifests list it.
    pub(super) fn listed(&self) -> BTreeSet<Revision> {
        self.bodies.keys().copied().collect()
    }

    /// How to bring the live object to what `goal` says, dropping what any of `baseline` set; `None` if it is there.
    ///
    /// For a client-side merge each revision of the baseline is merged in turn, newest first, so that what only a dead
    /// revision set goes too.
    pub(super) fn merge(
        &self,
        goal: Revision,
        baseline: &[Revision],
        method: ApplyMethod,
        force: bool,
    ) -> Result<Option<(Value, Merge)>, patch::Error> {
        let Some(wanted) = self.bodies.get(&goal) else { return Ok(None) };
        let body = wanted.value.clone();
        let Some(live) = &self.live else {
            let merge = match method {
                ApplyMethod::ServerSide => Merge::Apply { force },
                ApplyMethod::ClientSide => Merge::Create,
            };
            return Ok(Some((body, merge)));
        };
        if method == ApplyMethod::ServerSide {
            return Ok(Some((body, Merge::Apply { force })));
        }
        let (version, kind) = (wanted.api_version.as_str(), wanted.id.kind.as_str());
        let three_way = |original: &Value, current: &Value| {
            patch::three_way(version, kind, original, &body, current, Unstructured::ThreeWay)
        };
        let mut merged = live.clone();
        let bases = baseline.iter().rev().filter_map(|revision| self.bodies.get(revision));
        for base in bases.chain([wanted]) {
            merged = three_way(&base.value, &merged)?.apply(&merged)?;
        }
        let whole = patch::three_way(version, kind, live, &merged, live, Unstructured::ThreeWay)?;
        Ok((!whole.is_empty()).then(|| (body, whole.into())))
    }
}

impl From<patch::Patch> for Merge {
    fn from(patch: patch::Patch) -> Self {
        match patch {
            patch::Patch::Strategic { body, .. } => Self::Strategic(body),
            patch::Patch::Merge { body } => Self::Json(body),
        }
    }
}

pub(super) fn objects_of(release: &Release, revision: Revision) -> Result<Vec<Object>, Error> {
    let manifest = Manifest::parse(release.manifest()).map_err(|source| Error::Manifest { revision, source })?;
    Ok(manifest.objects)
}

/// A manifest may leave the namespace out, or name one for a kind that has none.
pub(super) fn identity(id: &ObjectId, resource: &Resource, default: &Namespace) -> ObjectId {
    let named = id.namespace.clone().filter(|namespace| !namespace.is_empty());
    let namespace = resource.namespaced.then(|| named.unwrap_or_else(|| default.to_string()));
    ObjectId { namespace, ..id.clone() }
}

/// What Helm adds to every object when it builds it from the stored text, which lacks it.
fn mark(value: &mut Value, resource: &Resource, id: &ObjectId, marks: Marks<'_>) {
    if let Some(namespace) = &id.namespace
        && resource.namespaced
    {
        value["metadata"]["namespace"] = json!(namespace);
    }
    let metadata = &mut value["metadata"];
    for map in ["labels", "annotations"] {
        if !metadata[map].is_object() {
            metadata[map] = json!({});
        }
    }
    metadata["labels"]["app.kubernetes.io/managed-by"] = json!("Helm");
    metadata["annotations"]["meta.helm.sh/release-name"] = json!(marks.name.as_str());
    metadata["annotations"]["meta.helm.sh/release-namespace"] = json!(marks.namespace.as_str());
}

/// Whether an object did not change, leaving out what the server counts on every write.
pub(super) fn is_unchanged(before: &Value, after: &Value) -> bool {
    let strip = |value: &Value| {
        let mut value = value.clone();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            for counted in ["managedFields", "resourceVersion", "generation"] {
                metadata.remove(counted);
            }
        }
        value
    };
    strip(before) == strip(after)
}

/// Whether `live` says all that `wanted` says: weaker than a dry run, which knows defaults and number forms.
pub(super) fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(key, value)| match live.get(key) {
            Some(found) => contains(found, value),
            None => value.is_null(),
        }),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() >= wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| contains(live, wanted))
        }
        (live, wanted) => live == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDGET: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: ";

    fn revision(number: u32) -> Revision {
        Revision::new(number).unwrap()
    }

    /// A custom resource: what revisions 1 and 2 say of it, and what it is.
    fn widget(specs: [&str; 2], live: Value) -> Item {
        let parse = |spec: &str| Manifest::parse(&format!("{WIDGET}{spec}\n")).unwrap().objects.remove(0);
        let resource = Resource { api_version: "example.com/v1".into(), plural: "widgets".into(), namespaced: true };
        let mut item = Item::new(&resource);
        item.bodies = [(revision(1), parse(specs[0])), (revision(2), parse(specs[1]))].into();
        let mut object = parse("{}").value;
        object["spec"] = live;
        item.live = Some(object);
        item
    }

    fn patch(item: &Item) -> Option<Value> {
        let merge = item.merge(revision(1), &[revision(1), revision(2)], ApplyMethod::ClientSide, false).unwrap();
        merge.map(|(_, merge)| match merge {
            Merge::Json(body) => body["spec"].clone(),
            other @ (Merge::Apply { .. } | Merge::Strategic(_) | Merge::Operations(_) | Merge::Create) => {
                panic!("{other:?}")
            }
        })
    }

    #[test]
    fn a_custom_resource_goes_to_what_the_target_says_whatever_became_of_it() {
        let same = ["{size: 1}", "{size: 1}"];
        assert_eq!(patch(&widget(same, json!({"size": 3}))), Some(json!({"size": 1})));
        assert_eq!(patch(&widget(same, json!({"size": 1, "theirs": true}))), None);
    }

    #[test]
    fn what_only_the_dead_revision_set_goes_from_a_custom_resource() {
        let item = widget(["{size: 1}", "{size: 2, colour: red}"], json!({"size": 2, "colour": "red", "theirs": true}));
        assert_eq!(patch(&item), Some(json!({"size": 1, "colour": null})));
    }
}
