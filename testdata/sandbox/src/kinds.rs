//! The kinds that are served: the built-in ones as the real server lists them, and those of CustomResourceDefinitions.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use crate::schema::Shape;

const BUILT_IN: &str = include_str!("../api/discovery.jsonl");

/// A kind in one of its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
    pub(crate) subresources: Vec<String>,
}

/// Every kind that is served.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    /// What CustomResourceDefinitions added, by their names; one each version.
    custom: BTreeMap<String, Vec<Arc<Resource>>>,
}

static TABLE: LazyLock<Vec<Arc<Resource>>> = LazyLock::new(|| groups().iter().flat_map(of_group).collect());

impl Resource {
    /// `deployments.apps`, or just `pods`.
    pub(crate) fn dotted(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// `Deployment.apps`, or just `Pod`.
    pub(crate) fn dotted_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape::of(&self.group, &self.version, &self.kind)
    }

    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.shape(), Shape::Free)
    }

    pub(crate) fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    pub(crate) fn has_status(&self) -> bool {
        self.subresources.iter().any(|name| name == "status")
    }

    /// The fields that a selector may ask about.
    pub(crate) fn selectable(&self) -> Vec<&'static str> {
        let more: &[&str] = match (self.group.as_str(), self.kind.as_str()) {
            ("", "Namespace") => &["status.phase"],
            ("", "Node") => &["spec.unschedulable"],
            ("", "Pod") => &["spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "status.phase"],
            ("", "Secret") => &["type"],
            ("batch", "Job") => &["status.successful"],
            _ => &[],
        };
        let own = if self.namespaced { &["metadata.name", "metadata.namespace"][..] } else { &["metadata.name"] };
        own.iter().chain(more).copied().collect()
    }

    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }
}

impl Kinds {
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let mut all = TABLE.iter().chain(self.custom.values().flatten());
        let found = all.find(|known| known.group == group && known.version == version && known.plural == plural);
        found.cloned()
    }

    /// The resource that serves a kind.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
        let mut all = TABLE.iter().chain(self.custom.values().flatten());
        all.find(|known| known.api_version() == api_version && known.kind == kind).cloned()
    }

    /// Any version of a resource, whatever it is asked by.
    pub(crate) fn any_version(&self, group: &str, plural: &str) -> Option<Arc<Resource>> {
        let mut all = TABLE.iter().chain(self.custom.values().flatten());
        all.find(|known| known.group == group && known.plural == plural).cloned()
    }

    /// The resources of one group and version.
    pub(crate) fn served(&self, group: &str, version: &str) -> Vec<Arc<Resource>> {
        let all = TABLE.iter().chain(self.custom.values().flatten());
        all.filter(|known| known.group == group && known.version == version).cloned().collect()
    }

    /// What discovery says of one group and version.
    pub(crate) fn discovered(&self, group: &str, version: &str) -> Option<Value> {
        let all = groups().into_iter().chain(self.custom_groups());
        let of = all.filter(|known| known["metadata"]["name"].as_str().unwrap_or_default() == group);
        let mut versions = of.flat_map(|known| known["versions"].as_array().cloned().unwrap_or_default());
        versions.find(|known| known["version"] == version)
    }

    /// Serves what a CustomResourceDefinition says.
    pub(crate) fn define(&mut self, definition: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (spec, names) = (&definition["spec"], &definition["spec"]["names"]);
        let versions = spec["versions"].as_array().into_iter().flatten().filter(|version| version["served"] == true);
        let served = versions.map(|version| {
            let status = version.pointer("/subresources/status").is_some();
            Arc::new(Resource {
                group: text(&spec["group"]),
                version: text(&version["name"]),
                plural: text(&names["plural"]),
                kind: text(&names["kind"]),
                namespaced: spec["scope"] == "Namespaced",
                verbs: VERBS.map(ToOwned::to_owned).to_vec(),
                subresources: if status { vec!["status".into()] } else { Vec::new() },
            })
        });
        self.custom.insert(text(&definition["metadata"]["name"]), served.collect());
    }

    /// Ends what [`Self::define`] began.
    pub(crate) fn forget(&mut self, name: &str) {
        self.custom.remove(name);
    }

    /// The aggregated discovery of the core group or of all others.
    pub(crate) fn aggregated(&self, core: bool) -> Value {
        let built_in = groups().into_iter().filter(|group| group["metadata"].get("name").is_none() == core);
        let mut items: Vec<Value> = built_in.collect();
        if !core {
            items.extend(self.custom_groups());
        }
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
    }

    /// The groups as they were listed before there was aggregated discovery.
    pub(crate) fn groups(&self) -> Vec<Value> {
        let all = groups().into_iter().chain(self.custom_groups());
        let named = all.filter(|group| group["metadata"].get("name").is_some());
        let one = |group: Value| {
            let name = group["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let versions = group["versions"].as_array().into_iter().flatten();
            let versions: Vec<_> = versions
                .map(|version| {
                    let word = version["version"].as_str().unwrap_or_default();
                    json!({"groupVersion": format!("{name}/{word}"), "version": word})
                })
                .collect();
            json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
        };
        named.map(one).collect()
    }

    fn custom_groups(&self) -> Vec<Value> {
        let mut groups: BTreeMap<&str, BTreeMap<&str, Vec<Value>>> = BTreeMap::new();
        for known in self.custom.values().flatten() {
            let versions = groups.entry(&known.group).or_default();
            versions.entry(&known.version).or_default().push(discovered(known));
        }
        let version = |(name, resources): (&str, Vec<Value>)| json!({"version": name, "freshness": "Current", "resources": resources});
        let one = |(name, versions): (&str, BTreeMap<&str, Vec<Value>>)| json!({"metadata": {"name": name}, "versions": versions.into_iter().map(version).collect::<Vec<_>>()});
        groups.into_iter().map(one).collect()
    }
}

/// What can be done to a custom resource.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

fn groups() -> Vec<Value> {
    BUILT_IN.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn of_group(group: &Value) -> Vec<Arc<Resource>> {
    let name = group["metadata"]["name"].as_str().unwrap_or_default();
    let versions = group["versions"].as_array().into_iter().flatten();
    let of_version = |version: &Value| -> Vec<Arc<Resource>> {
        let word = version["version"].as_str().unwrap_or_default();
        let resources = version["resources"].as_array().into_iter().flatten();
        resources.map(|resource| Arc::new(built_in(name, word, resource))).collect()
    };
    versions.flat_map(of_version).collect()
}

fn built_in(group: &str, version: &str, resource: &Value) -> Resource {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| -> Vec<String> { value.as_array().into_iter().flatten().map(text).collect() };
    let below = resource["subresources"].as_array().into_iter().flatten();
    Resource {
        group: group.into(),
        version: version.into(),
        plural: text(&resource["resource"]),
        kind: text(&resource["responseKind"]["kind"]),
        namespaced: resource["scope"] == "Namespaced",
        verbs: texts(&resource["verbs"]),
        subresources: below.map(|entry| text(&entry["subresource"])).collect(),
    }
}

fn discovered(known: &Resource) -> Value {
    let mut entry = json!({
        "resource": known.plural, "singularResource": known.kind.to_lowercase(), "verbs": known.verbs,
        "responseKind": {"group": known.group, "version": known.version, "kind": known.kind},
        "scope": if known.namespaced { "Namespaced" } else { "Cluster" },
    });
    if known.has_status() {
        let kind = entry["responseKind"].clone();
        entry["subresources"] =
            json!([{"subresource": "status", "responseKind": kind, "verbs": ["get", "patch", "update"]}]);
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_kinds_are_known() {
        let kinds = Kinds::default();
        let deployments = kinds.find("apps", "v1", "deployments").unwrap();
        assert!(deployments.namespaced && deployments.has_status() && deployments.allows("deletecollection"));
        assert_eq!(kinds.of_kind("v1", "Secret").unwrap().dotted(), "secrets");
        assert!(kinds.find("apps", "v1", "gateways").is_none());
    }

    #[test]
    fn a_definition_adds_a_kind_and_takes_it_away() {
        let mut kinds = Kinds::default();
        kinds.define(&json!({
            "metadata": {"name": "gateways.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "gateways", "kind": "Gateway"},
                     "versions": [{"name": "v1", "served": true}, {"name": "v0", "served": false}]},
        }));
        assert!(kinds.find("example.com", "v1", "gateways").is_some_and(|known| known.is_custom()));
        assert!(kinds.find("example.com", "v0", "gateways").is_none());
        kinds.forget("gateways.example.com");
        assert!(kinds.find("example.com", "v1", "gateways").is_none());
    }
}
