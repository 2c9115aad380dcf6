//! What the server refuses: the rules that programs which write releases run into.

use serde_json::Value;

use crate::kinds::Resource;
use crate::refusal::{Fault, Refusal};

/// What all data of a Secret or a ConfigMap may weigh.
const DATA_LIMIT: usize = 1 << 20;
const LABEL_HINT: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME_HINT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Fields that cannot be changed, by group and kind.
const IMMUTABLE: [(&str, &str, &str); 12] = [
    ("apps", "Deployment", "spec.selector"),
    ("apps", "ReplicaSet", "spec.selector"),
    ("apps", "DaemonSet", "spec.selector"),
    ("apps", "StatefulSet", "spec.serviceName"),
    ("apps", "StatefulSet", "spec.selector"),
    ("apps", "StatefulSet", "spec.podManagementPolicy"),
    ("storage.k8s.io", "StorageClass", "provisioner"),
    ("storage.k8s.io", "StorageClass", "parameters"),
    ("batch", "Job", "spec.template"),
    ("batch", "Job", "spec.selector"),
    ("batch", "Job", "spec.completionMode"),
    ("", "Secret", "type"),
];
/// What of a StatefulSet can be changed.
const STATEFUL: [&str; 10] = [
    // These have an error of their own.
    "selector",
    "serviceName",
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
    "podManagementPolicy",
];

/// # Errors
/// The object is not one that the server would store.
pub(crate) fn check(resource: &Resource, before: Option<&Value>, object: &Value) -> Result<(), Refusal> {
    let mut faults = Vec::new();
    metadata(object, &mut faults);
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "ConfigMap" | "Secret") => data(before, object, &mut faults),
        ("", "PersistentVolumeClaim") => claim(before, object, &mut faults),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object, &mut faults),
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet") => workload(object, &mut faults),
        _ => {}
    }
    if let Some(before) = before {
        unchanged(resource, before, object, &mut faults);
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if faults.is_empty() { Ok(()) } else { Err(Refusal::invalid(resource, name, &faults)) }
}

fn metadata(object: &Value, faults: &mut Vec<Fault>) {
    let name = &object["metadata"]["name"];
    if !name.as_str().is_some_and(is_subdomain) {
        faults.push(Fault::invalid("metadata.name", name, NAME_HINT));
    }
    for (_, value) in object["metadata"]["labels"].as_object().into_iter().flatten() {
        if !value.as_str().is_some_and(is_label) {
            faults.push(Fault::invalid("metadata.labels", value, LABEL_HINT));
        }
    }
}

fn is_subdomain(name: &str) -> bool {
    let is_part = |part: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !part.is_empty() && part.chars().all(plain) && !part.starts_with('-') && !part.ends_with('-')
    };
    // Names of roles and the like may hold a colon.
    name.len() <= 253 && name.split(['.', ':']).all(is_part)
}

fn is_label(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let ends = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    value.len() <= 63 && value.chars().all(plain) && ends(value.chars().next()) && ends(value.chars().last())
}

fn data(before: Option<&Value>, object: &Value, faults: &mut Vec<Fault>) {
    let size = |member: &str| -> usize {
        let entries = object[member].as_object().into_iter().flatten();
        // Base64 stands for three quarters of its length.
        let weight = |text: &str| {
            let is_raw = object["kind"] == "ConfigMap" && member == "data";
            if is_raw { text.len() } else { text.trim_end_matches('=').len() * 3 / 4 }
        };
        entries.map(|(_, value)| weight(value.as_str().unwrap_or_default())).sum()
    };
    if size("data") + size("binaryData") > DATA_LIMIT {
        let field = if object["kind"] == "Secret" { "data" } else { "" };
        faults.push(Fault::too_long(field, DATA_LIMIT));
    }
    if let Some(before) = before.filter(|before| before["immutable"] == true) {
        let word = "field is immutable when `immutable` is set";
        if before["data"] != object["data"] {
            faults.push(Fault::forbidden("data", word));
        }
        if object["immutable"] != true {
            faults.push(Fault::forbidden("immutable", word));
        }
    }
}

fn claim(before: Option<&Value>, object: &Value, faults: &mut Vec<Fault>) {
    if object["spec"]["accessModes"].as_array().is_none_or(Vec::is_empty) {
        faults.push(Fault::required("spec.accessModes", "at least 1 access mode is required"));
    }
    let fixed = |object: &Value| {
        let mut spec = object["spec"].clone();
        if let Some(members) = spec.as_object_mut() {
            for name in ["resources", "volumeName", "volumeAttributesClassName"] {
                members.remove(name);
            }
        }
        spec
    };
    if before.is_some_and(|before| fixed(before) != fixed(object)) {
        let why =
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        faults.push(Fault::forbidden("spec", why));
    }
}

fn definition(object: &Value, faults: &mut Vec<Fault>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let expected = format!("{}.{}", text(&object["spec"]["names"]["plural"]), text(&object["spec"]["group"]));
    let name = &object["metadata"]["name"];
    if *name != expected.as_str() {
        faults.push(Fault::invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
    }
}

fn workload(object: &Value, faults: &mut Vec<Fault>) {
    let selector = object["spec"]["selector"]["matchLabels"].as_object();
    let labels = &object["spec"]["template"]["metadata"]["labels"];
    if selector.into_iter().flatten().any(|(key, value)| labels.get(key) != Some(value)) {
        let why = "`selector` does not match template `labels`";
        faults.push(Fault::invalid("spec.template.metadata.labels", labels, why));
    }
    if object["spec"]["template"]["spec"]["containers"].as_array().is_none_or(Vec::is_empty) {
        faults.push(Fault::required("spec.template.spec.containers", ""));
    }
}

fn unchanged(resource: &Resource, before: &Value, object: &Value, faults: &mut Vec<Fault>) {
    for (_, _, path) in IMMUTABLE.iter().filter(|(group, kind, _)| resource.is(group, kind)) {
        let pointer = format!("/{}", path.replace('.', "/"));
        let (old, new) = (before.pointer(&pointer), object.pointer(&pointer));
        if old != new {
            faults.push(Fault::invalid(path, new.unwrap_or(&Value::Null), "field is immutable"));
        }
    }
    if resource.is("apps", "StatefulSet") {
        let fixed = |object: &Value| {
            let mut spec = object["spec"].clone();
            if let Some(members) = spec.as_object_mut() {
                members.retain(|name, _| !STATEFUL.contains(&name.as_str()));
            }
            spec
        };
        if fixed(before) != fixed(object) {
            let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                       'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                       'minReadySeconds' are forbidden";
            faults.push(Fault::forbidden("spec", why));
        }
    }
    let address = |object: &Value| object["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
    if resource.is("", "Service") && !address(before).is_empty() && address(before) != address(object) {
        let given = serde_json::json!([address(object)]);
        faults.push(Fault::invalid("spec.clusterIPs[0]", &given, "may not change once set"));
    }
    let is_role_binding = resource.group == "rbac.authorization.k8s.io" && resource.kind.ends_with("Binding");
    if is_role_binding && before["roleRef"] != object["roleRef"] {
        faults.push(Fault::invalid("roleRef", &object["roleRef"], "field is immutable"));
    }
}
