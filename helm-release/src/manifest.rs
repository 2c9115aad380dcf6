//! A release's stored manifest: text to objects, their identity, and the orders in which Helm installs and removes them.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde_json::Value;
use thiserror::Error as ThisError;

/// Which object: matched by group, kind, namespace and name, whatever the version it is written in.
///
/// A manifest may leave the namespace out, and whether a kind has one only the server knows: who asks the server fills it in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct ObjectId {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace, if it is known and there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

/// One object of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Which.
    pub id: ObjectId,
    /// Its `apiVersion`.
    pub api_version: String,
    /// What the manifest says.
    pub value: Value,
    /// The template that it came from, by the `# Source:` comment that Helm writes.
    pub source: Option<String>,
}

/// All objects of a stored manifest, in its order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifest {
    /// The objects; lists are taken apart.
    pub objects: Vec<Object>,
}

/// Why a manifest cannot be read.
#[derive(Debug, Clone, PartialEq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A document is not YAML.
    #[error("{place} is not YAML")]
    Yaml {
        /// Which document.
        place: Place,
        /// Why.
        source: goyaml::Error,
    },
    /// A document is a list or a plain value.
    #[error("{0} is no object")]
    NotAnObject(Place),
    /// An object lacks what every object has.
    #[error("an object in {place} has no {field}")]
    Missing {
        /// Which document.
        place: Place,
        /// What is missing.
        field: &'static str,
    },
}

/// Where in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The document's number, from 1.
    pub document: usize,
    /// The line on which it begins, from 1.
    pub line: usize,
    /// The template that it came from.
    pub source: Option<String>,
}

/// The annotation that keeps an object when its release drops it.
const RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// The order of Helm 4, which is that of Helm 3 with the webhook configurations added; removal goes backwards.
const INSTALL_ORDER: [&str; 38] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

impl Manifest {
    /// Reads a stored manifest as Helm's client reads it when it builds objects: documents end at a line of `---`,
    /// empty ones are skipped, lists are taken apart.
    ///
    /// # Errors
    /// [`Error`] names the document, its line and its template.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut objects = Vec::new();
        for (place, document) in documents(text) {
            let value =
                goyaml::parse(document.as_bytes()).map_err(|source| Error::Yaml { place: place.clone(), source })?;
            if !value.is_null() {
                collect(value, &place, &mut objects)?;
            }
        }
        Ok(Self { objects })
    }

    /// Objects that the manifest lists more than once: Helm 3 fails half-way on them, Helm 4 takes the last.
    #[must_use]
    pub fn duplicates(&self) -> BTreeSet<&ObjectId> {
        let mut seen = BTreeSet::new();
        self.objects.iter().map(|object| &object.id).filter(|id| !seen.insert(*id)).collect()
    }
}

impl Object {
    /// Whether its resource policy says that it stays when its release drops it.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        is_kept(&self.value)
    }
}

/// Whether the resource policy of an object, in a manifest or live, says that it stays.
///
/// One reading for all ways of dropping it, where Helm has three: white space and case do not count, any other word
/// keeps nothing.
#[must_use]
pub fn is_kept(object: &Value) -> bool {
    let policy = object["metadata"]["annotations"][RESOURCE_POLICY].as_str();
    policy.is_some_and(|word| word.trim().eq_ignore_ascii_case("keep"))
}

/// Sorts in the order in which Helm installs; kinds that it does not know come last, by name; equals keep their order.
pub fn sort_for_install(objects: &mut [Object]) {
    objects.sort_by(|a, b| rank(&a.id, false).cmp(&rank(&b.id, false)));
}

/// Sorts in the order in which Helm removes; kinds that it does not know come last here too.
pub fn sort_for_uninstall(objects: &mut [Object]) {
    objects.sort_by(|a, b| rank(&a.id, true).cmp(&rank(&b.id, true)));
}

fn rank(id: &ObjectId, backwards: bool) -> (usize, &str) {
    match INSTALL_ORDER.iter().position(|kind| *kind == id.kind) {
        Some(at) if backwards => (INSTALL_ORDER.len() - at, ""),
        Some(at) => (at, ""),
        None => (usize::MAX, &id.kind),
    }
}

/// Takes the documents apart, as the decoder of Kubernetes' client does: only a bare `---` on its line ends one.
fn documents(text: &str) -> Vec<(Place, String)> {
    let mut found = Vec::new();
    let (mut document, mut begins) = (String::new(), 1);
    for (at, line) in text.lines().enumerate() {
        if line.strip_prefix("---").is_some_and(|rest| rest.trim().is_empty()) {
            found.push((begins, std::mem::take(&mut document)));
            begins = at + 2;
        } else {
            document.push_str(line);
            document.push('\n');
        }
    }
    found.push((begins, document));
    let full = found.into_iter().filter(|(_, document)| !document.trim().is_empty());
    full.enumerate()
        .map(|(at, (line, document))| {
            let source = document.lines().find_map(|line| line.strip_prefix("# Source: ")).map(str::to_owned);
            (Place { document: at + 1, line, source }, document)
        })
        .collect()
}

fn collect(value: Value, place: &Place, objects: &mut Vec<Object>) -> Result<(), Error> {
    if !value.is_object() {
        return Err(Error::NotAnObject(place.clone()));
    }
    let text = |field: &'static str| value[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let missing = |field| Error::Missing { place: place.clone(), field };
    let api_version = text("apiVersion").ok_or_else(|| missing("apiVersion"))?;
    let kind = text("kind").ok_or_else(|| missing("kind"))?;
    if kind.ends_with("List") && value["items"].is_array() {
        let Value::Object(mut list) = value else { return Ok(()) };
        let Some(Value::Array(items)) = list.remove("items") else { return Ok(()) };
        return items.into_iter().try_for_each(|item| collect(item, place, objects));
    }
    let name = value["metadata"]["name"].as_str().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| missing("metadata.name"))?.to_owned();
    let namespace = value["metadata"]["namespace"].as_str().filter(|n| !n.is_empty()).map(str::to_owned);
    let group = api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
    let id = ObjectId { group, kind, namespace, name };
    objects.push(Object { id, api_version, value, source: place.source.clone() });
    Ok(())
}

impl fmt::Display for ObjectId {
    /// As kubectl names it: `deployment.apps/web`, `configmap/a`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.to_lowercase())?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        write!(f, "/{}", self.name)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "document {} (line {}", self.document, self.line)?;
        match &self.source {
            Some(source) => write!(f, ", {source})"),
            None => write!(f, ")"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<String> {
        Manifest::parse(text).unwrap().objects.iter().map(|object| object.id.to_string()).collect()
    }

    const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ";

    #[test]
    fn documents_end_at_a_bare_marker_and_empty_ones_are_skipped() {
        let text = format!(
            "---\n# Source: c/a.yaml\n{MAP}a\n---\n# only a comment\n---   \n{MAP}b\ndata:\n  t: |\n    x\n    ---\n    y\n"
        );
        assert_eq!(ids(&text), ["configmap/a", "configmap/b"]);
        let manifest = Manifest::parse(&text).unwrap();
        assert_eq!(manifest.objects[0].source.as_deref(), Some("c/a.yaml"));
        assert_eq!(manifest.objects[1].value["data"]["t"], "x\n---\ny\n");
    }

    #[test]
    fn lists_are_taken_apart() {
        let item = |name: &str| format!("- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}\n");
        let list = format!("apiVersion: v1\nkind: List\nitems:\n{}{}", item("a"), item("b"));
        assert_eq!(ids(&list), ["configmap/a", "configmap/b"]);
        let list = format!("apiVersion: v1\nkind: ConfigMapList\nitems:\n{}", item("c"));
        assert_eq!(ids(&list), ["configmap/c"]);
    }

    #[test]
    fn an_object_is_the_same_in_another_version() {
        let at = |version: &str| {
            format!("apiVersion: rbac.authorization.k8s.io/{version}\nkind: Role\nmetadata: {{name: x}}\n")
        };
        let (old, new) = (Manifest::parse(&at("v1beta1")).unwrap(), Manifest::parse(&at("v1")).unwrap());
        assert_eq!(old.objects[0].id, new.objects[0].id);
    }

    #[test]
    fn an_object_that_is_listed_twice_is_found() {
        let twice = format!("{MAP}d\n---\n{MAP}d\n");
        assert_eq!(Manifest::parse(&twice).unwrap().duplicates().len(), 1);
    }

    #[test]
    fn the_keep_policy_has_one_reading() {
        let with = |word: &str| serde_json::json!({"metadata": {"annotations": {RESOURCE_POLICY: word}}});
        assert!(is_kept(&with("keep")) && is_kept(&with(" Keep ")));
        assert!(!is_kept(&with("no-upgrade-existing")) && !is_kept(&serde_json::json!({})));
    }

    #[test]
    fn a_broken_document_is_named_by_number_line_and_template() {
        let error = |text: &str| Manifest::parse(text).unwrap_err().to_string();
        let text = format!("{MAP}a\n---\n# Source: c/b.yaml\nkind: ConfigMap\n");
        assert_eq!(error(&text), "an object in document 2 (line 6, c/b.yaml) has no apiVersion");
        assert_eq!(error("- 1\n"), "document 1 (line 1) is no object");
        assert_eq!(error("a: [1\n"), "document 1 (line 1) is not YAML");
        assert_eq!(error("apiVersion: v1\nkind: ConfigMap\n"), "an object in document 1 (line 1) has no metadata.name");
    }

    #[test]
    fn kinds_are_ordered_as_helm_orders_them() {
        let object = |kind: &str| format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: x}}\n---\n");
        let text: String = ["Widget", "Deployment", "Apple", "Namespace", "ConfigMap"].map(object).concat();
        let kinds = |objects: &[Object]| objects.iter().map(|o| o.id.kind.clone()).collect::<Vec<_>>();
        let mut objects = Manifest::parse(&text).unwrap().objects;
        sort_for_install(&mut objects);
        assert_eq!(kinds(&objects), ["Namespace", "ConfigMap", "Deployment", "Apple", "Widget"]);
        sort_for_uninstall(&mut objects);
        assert_eq!(kinds(&objects), ["Deployment", "ConfigMap", "Namespace", "Apple", "Widget"]);
    }
}
