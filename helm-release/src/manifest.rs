//! A release's stored manifest: text to objects, their identity, and the orders in which Helm installs and removes them.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error as ThisError;

/// Which object: matched by group, kind, namespace and name, whatever the version it is written in.
///
/// A manifest may leave the namespace out, and whether a kind has one only the server knows: who asks the server fills it in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectId {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace, if it is known and there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    /// A line begins with the marker between documents and goes on with something else than a comment.
    #[error("line {line} is no separator of documents: {text:?}")]
    Separator {
        /// Which line, from 1.
        line: usize,
        /// What stands behind the dashes.
        text: String,
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

/// The order of Helm 4, which is that of Helm 3 with the webhook configurations added.
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

/// Backwards, but Services go before what they lead to.
const UNINSTALL_ORDER: [&str; 38] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "APIService",
    "Ingress",
    "IngressClass",
    "Service",
    "CronJob",
    "Job",
    "StatefulSet",
    "HorizontalPodAutoscaler",
    "Deployment",
    "ReplicaSet",
    "ReplicationController",
    "Pod",
    "DaemonSet",
    "RoleBindingList",
    "RoleBinding",
    "RoleList",
    "Role",
    "ClusterRoleBindingList",
    "ClusterRoleBinding",
    "ClusterRoleList",
    "ClusterRole",
    "CustomResourceDefinition",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "ConfigMap",
    "SecretList",
    "Secret",
    "ServiceAccount",
    "PodDisruptionBudget",
    "PodSecurityPolicy",
    "LimitRange",
    "ResourceQuota",
    "NetworkPolicy",
    "Namespace",
    "PriorityClass",
];

impl Manifest {
    /// Reads a stored manifest as Helm's client reads it when it builds objects: documents end at a line of `---`,
    /// empty ones are skipped, lists are taken apart; lists in lists too, at which Helm fails.
    ///
    /// # Errors
    /// [`Error`] names the document, its line and its template.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut objects = Vec::new();
        for (place, value) in json_stream(text).map_or_else(|| values(text), Ok)? {
            collect(value, &place, &mut objects)?;
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

/// The resource policy of an object that keeps nothing because it is no known word. Whoever drops the object should
/// say so: Helm's uninstall would have left it without a word.
#[must_use]
pub fn unknown_policy(object: &Value) -> Option<&str> {
    let policy = object["metadata"]["annotations"][RESOURCE_POLICY].as_str()?;
    (!is_kept(object)).then_some(policy)
}

/// Sorts in the order in which Helm installs; kinds that it does not know come last, by name; equals keep their order.
///
/// Helm 3 knows no webhook configurations: they come among those last.
pub fn sort_for_install(objects: &mut [Object]) {
    sort(objects, &INSTALL_ORDER);
}

/// Sorts in the order in which Helm removes; kinds that it does not know come last here too.
pub fn sort_for_uninstall(objects: &mut [Object]) {
    sort(objects, &UNINSTALL_ORDER);
}

fn sort(objects: &mut [Object], order: &[&str]) {
    let rank = |kind: &str| order.iter().position(|known| *known == kind).unwrap_or(order.len());
    objects.sort_by(|a, b| {
        let (left, right) = (rank(&a.id.kind), rank(&b.id.kind));
        left.cmp(&right).then_with(|| a.id.kind.cmp(&b.id.kind))
    });
}

/// A text of nothing but JSON objects, which need no marker between them.
fn json_stream(text: &str) -> Option<Vec<(Place, Value)>> {
    let objects = text.trim_start().starts_with('{').then(|| serde_json::Deserializer::from_str(text).into_iter())?;
    let placed = |(at, value)| Ok((Place { document: at + 1, line: 1, source: None }, value?));
    objects.enumerate().map(placed).collect::<Result<_, serde_json::Error>>().ok()
}

fn values(text: &str) -> Result<Vec<(Place, Value)>, Error> {
    let mut values = Vec::new();
    for (place, document) in documents(text)? {
        match goyaml::parse(&document) {
            Ok(Value::Null) => {}
            Ok(value) => values.push((place, value)),
            Err(source) => return Err(Error::Yaml { place, source }),
        }
    }
    Ok(values)
}

/// Takes the documents apart, as the decoder of Kubernetes' client does: a line that begins with `---` ends one, and
/// behind the dashes only white space and a comment may stand.
fn documents(text: &str) -> Result<Vec<(Place, String)>, Error> {
    let mut found = Vec::new();
    let (mut document, mut begins) = (String::new(), 1);
    for (at, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix("---") {
            let rest = rest.trim();
            if !rest.is_empty() && !rest.starts_with('#') {
                return Err(Error::Separator { line: at + 1, text: rest.into() });
            }
            found.push((begins, std::mem::take(&mut document)));
            begins = at + 2;
        } else {
            document.push_str(line);
            document.push('\n');
        }
    }
    found.push((begins, document));
    let full = found.into_iter().filter(|(_, document)| !document.trim().is_empty());
    Ok(full.enumerate().map(|(at, (line, document))| (place(at + 1, line, &document), document)).collect())
}

fn place(number: usize, line: usize, document: &str) -> Place {
    let source = document.lines().find_map(|line| line.strip_prefix("# Source: ")).map(str::to_owned);
    Place { document: number, line, source }
}

/// Adds the object, or those in it: to Kubernetes, whatever has `items` is a list.
fn collect(mut value: Value, place: &Place, objects: &mut Vec<Object>) -> Result<(), Error> {
    let Some(fields) = value.as_object_mut() else { return Err(Error::NotAnObject(place.clone())) };
    let items = fields.remove("items");
    let missing = |field| Error::Missing { place: place.clone(), field };
    let kind = text(&value, "kind").ok_or_else(|| missing("kind"))?;
    let api_version = text(&value, "apiVersion").ok_or_else(|| missing("apiVersion"))?;
    match items {
        None => {}
        Some(Value::Null) => return Ok(()),
        Some(Value::Array(items)) => {
            let items = items.into_iter().map(|item| inherit(item, &api_version, &kind));
            return items.into_iter().try_for_each(|item| collect(item, place, objects));
        }
        Some(_) => return Err(missing("list of items")),
    }
    let name = text(&value["metadata"], "name").ok_or_else(|| missing("metadata.name"))?;
    let namespace = text(&value["metadata"], "namespace");
    let group = api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
    let id = ObjectId { group, kind, namespace, name };
    objects.push(Object { id, api_version, value, source: place.source.clone() });
    Ok(())
}

/// An item of a list of one kind need not say its own.
fn inherit(mut item: Value, api_version: &str, list: &str) -> Value {
    let kind = list.strip_suffix("List").filter(|kind| !kind.is_empty());
    if let (Some(kind), Some(fields)) = (kind, item.as_object_mut())
        && !fields.contains_key("kind")
        && !fields.contains_key("apiVersion")
    {
        fields.insert("apiVersion".into(), api_version.into());
        fields.insert("kind".into(), kind.into());
    }
    item
}

fn text(value: &Value, field: &str) -> Option<String> {
    value[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
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

    const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ";

    /// What real Helm built from a manifest.
    #[derive(serde::Deserialize)]
    struct Built {
        case: String,
        objects: Vec<Value>,
        err: String,
    }

    impl Built {
        /// Without a server Helm does not notice what it will miss.
        fn is_complete(&self) -> bool {
            let complete = |object: &Value| text(object, "apiVersion").and(text(&object["metadata"], "name")).is_some();
            self.err.is_empty() && self.objects.iter().all(complete)
        }
    }

    fn manifest(case: &str) -> String {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/manifests/");
        std::fs::read_to_string(format!("{folder}{case}")).unwrap()
    }

    #[test]
    fn every_manifest_is_read_as_helm_reads_it() {
        for line in include_str!("../../testdata/manifests/objects.jsonl").lines() {
            let built: Built = serde_json::from_str(line).unwrap();
            let ours = Manifest::parse(&manifest(&built.case));
            if built.case == "list-in-a-list.yaml" {
                assert_eq!(ours.unwrap().objects.len(), 2, "taken apart, where Helm fails");
                continue;
            }
            assert_eq!(ours.is_ok(), built.is_complete(), "{}: {ours:?}\n{}", built.case, built.err);
            let values = ours.map_or_else(|_| Vec::new(), |ours| ours.objects.into_iter().map(|o| o.value).collect());
            assert!(!built.is_complete() || values == built.objects, "{}: {values:?}", built.case);
        }
    }

    #[test]
    fn an_object_names_its_template() {
        let sources = |case| Manifest::parse(&manifest(case)).unwrap().objects.into_iter().map(|o| o.source);
        assert!(sources("plain.yaml").eq([Some("c/templates/a.yaml".into()), Some("c/templates/b.yaml".into())]));
        assert!(sources("crlf.yaml").eq([Some("c/a.yaml".into()), None]));
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
        assert_eq!(unknown_policy(&with("no-upgrade-existing")), Some("no-upgrade-existing"));
        assert_eq!(unknown_policy(&with("Keep")), None);
        assert!(Manifest::parse(&manifest("kept.yaml")).unwrap().objects[0].is_kept());
    }

    #[test]
    fn a_broken_document_is_named_by_number_line_and_template() {
        let error = |text: &str| Manifest::parse(text).unwrap_err().to_string();
        let text = format!("{MAP}a\n---\n# Source: c/b.yaml\nkind: ConfigMap\n");
        assert_eq!(error(&text), "an object in document 2 (line 6, c/b.yaml) has no apiVersion");
        assert_eq!(error(&format!("{MAP}a\n---{MAP}b\n")), r#"line 5 is no separator of documents: "apiVersion: v1""#);
        assert_eq!(error("- 1\n"), "document 1 (line 1) is no object");
        assert_eq!(error("a: [1\n"), "document 1 (line 1) is not YAML");
        assert_eq!(error("apiVersion: v1\nkind: ConfigMap\n"), "an object in document 1 (line 1) has no metadata.name");
    }

    #[test]
    fn kinds_are_ordered_as_both_helms_order_them_but_for_the_webhooks_that_only_helm_4_knows() {
        let orders = include_str!("../../testdata/manifests/orders.json");
        let orders: std::collections::HashMap<String, Vec<String>> = serde_json::from_str(orders).unwrap();
        let sorted = |sort: fn(&mut [Object])| {
            let mut objects: Vec<Object> = orders["given"].iter().map(|given| object(given)).collect();
            sort(&mut objects);
            objects.into_iter().map(|object| format!("{}/{}", object.id.kind, object.id.name)).collect::<Vec<_>>()
        };
        let (install, uninstall) = (sorted(sort_for_install), sorted(sort_for_uninstall));
        assert_eq!(install, orders["helm4 install"]);
        assert_eq!(uninstall, orders["helm4 uninstall"]);
        let others = |order: &[String]| order.iter().filter(|o| !o.contains("Webhook")).cloned().collect::<Vec<_>>();
        assert_eq!(others(&install), others(&orders["helm3 install"]));
        assert_eq!(others(&uninstall), others(&orders["helm3 uninstall"]));
    }

    fn object(kind_and_name: &str) -> Object {
        let (kind, name) = kind_and_name.split_once('/').unwrap();
        let id = ObjectId { group: String::new(), kind: kind.into(), namespace: None, name: name.into() };
        Object { id, api_version: "v1".into(), value: Value::Null, source: None }
    }
}
