//! What the server fills in where an object says nothing: the shape that Go gives it, and each kind's own defaults.

use serde_json::{Map, Value, json};

use crate::kinds::Resource;
use crate::schema::Shape;

/// Without nulls and what the kind does not know, and with what Go writes although it is empty.
///
/// Returns the paths of the fields that the kind does not know.
fn normalize(shape: Shape, value: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    walk(shape, value, "", &mut unknown);
    unknown
}

fn walk(shape: Shape, value: &mut Value, path: &str, unknown: &mut Vec<String>) {
    match (shape, value) {
        (Shape::Struct(_), Value::Object(members)) => {
            members.retain(|name, value| {
                let is_known = shape.field(name).is_some();
                if !is_known {
                    unknown.push(join(path, name));
                }
                is_known && !value.is_null()
            });
            for (name, value) in members.iter_mut() {
                walk(shape.member(name), value, &join(path, name), unknown);
            }
            members.retain(|name, value| {
                let is_bare =
                    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
                let holds = matches!(shape.member(name), Shape::Map(_) | Shape::List(_));
                !(is_bare && holds && shape.field(name).is_some_and(|field| !field.present))
            });
            for (name, field) in shape.present() {
                let inner = shape.member(name);
                if !members.contains_key(name) && matches!(inner, Shape::Struct(_)) && !field.is_list() {
                    let mut empty = json!({});
                    walk(inner, &mut empty, "", &mut Vec::new());
                    members.insert(name.into(), empty);
                } else if !members.contains_key(name) && field.scalar().is_none() {
                    let bare = if matches!(inner, Shape::Whole) { json!({}) } else { Value::Null };
                    members.insert(name.into(), bare);
                }
            }
        }
        (Shape::Map(_), Value::Object(members)) => {
            for (name, value) in members.iter_mut() {
                walk(shape.member(name), value, &join(path, name), unknown);
            }
        }
        (Shape::List(field), Value::Array(items)) => {
            for (place, item) in items.iter_mut().enumerate() {
                walk(field.element(), item, &format!("{path}[{place}]"), unknown);
            }
        }
        _ => {}
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Brings an object to the form in which it is stored; returns the fields that its kind does not know.
pub(crate) fn complete(resource: &Resource, object: &mut Value) -> Vec<String> {
    let unknown = normalize(resource.shape(), object);
    fill(resource, object);
    // Looking for a field leaves a null behind.
    normalize(resource.shape(), object);
    unknown
}

fn fill(resource: &Resource, object: &mut Value) {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Namespace") => namespace(object),
        ("", "Pod") => pod(&mut object["spec"], &json!("Always")),
        ("", "LimitRange") => items(&mut object["spec"]["limits"]).for_each(limit),
        ("", "PodTemplate") => pod(&mut object["template"]["spec"], &json!("Always")),
        ("", "PersistentVolumeClaim") => set(object, "spec.volumeMode", json!("Filesystem")),
        ("", "Secret") => secret(object),
        ("", "Service") => service(object),
        ("apps", "Deployment") => {
            set(object, "spec.replicas", json!(1));
            set(object, "spec.revisionHistoryLimit", json!(10));
            set(object, "spec.progressDeadlineSeconds", json!(600));
            set(object, "spec.strategy.type", json!("RollingUpdate"));
            if object["spec"]["strategy"]["type"] == "RollingUpdate" {
                set(object, "spec.strategy.rollingUpdate.maxSurge", json!("25%"));
                set(object, "spec.strategy.rollingUpdate.maxUnavailable", json!("25%"));
            }
            pod(&mut object["spec"]["template"]["spec"], &json!("Always"));
        }
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => {
            set(object, "spec.revisionHistoryLimit", json!(10));
            set(object, "spec.updateStrategy.type", json!("RollingUpdate"));
            set(object, "spec.updateStrategy.rollingUpdate.maxSurge", json!(0));
            set(object, "spec.updateStrategy.rollingUpdate.maxUnavailable", json!(1));
            pod(&mut object["spec"]["template"]["spec"], &json!("Always"));
        }
        ("apps", "ReplicaSet") => {
            set(object, "spec.replicas", json!(1));
            pod(&mut object["spec"]["template"]["spec"], &json!("Always"));
        }
        ("batch", "Job") => job(object),
        ("batch", "CronJob") => {
            set(object, "spec.concurrencyPolicy", json!("Allow"));
            set(object, "spec.suspend", json!(false));
            set(object, "spec.successfulJobsHistoryLimit", json!(3));
            set(object, "spec.failedJobsHistoryLimit", json!(1));
            pod(&mut object["spec"]["jobTemplate"]["spec"]["template"]["spec"], &json!("OnFailure"));
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => binding(object),
        ("scheduling.k8s.io", "PriorityClass") => set(object, "preemptionPolicy", json!("PreemptLowerPriority")),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => set(object, "spec.conversion.strategy", json!("None")),
        ("storage.k8s.io", "StorageClass") => {
            set(object, "reclaimPolicy", json!("Delete"));
            set(object, "volumeBindingMode", json!("Immediate"));
        }
        _ => {}
    }
}

/// Sets a field that is not there yet, and what leads to it.
fn set(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for step in path.split('.') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[step];
    }
    if place.is_null() {
        *place = value;
    }
}

fn limit(limit: &mut Value) {
    if limit["type"] == "Container" {
        let most = limit["max"].clone();
        set(limit, "default", most);
        let standard = limit["default"].clone();
        set(limit, "defaultRequest", standard);
    }
}

fn namespace(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    set(object, "status.phase", json!("Active"));
}

fn secret(object: &mut Value) {
    set(object, "type", json!("Opaque"));
    let texts = object.as_object_mut().and_then(|members| members.remove("stringData"));
    for (key, text) in texts.iter().filter_map(Value::as_object).flatten() {
        use base64::Engine;
        let text = text.as_str().unwrap_or_default();
        object["data"][key] = json!(base64::engine::general_purpose::STANDARD.encode(text));
    }
}

fn service(object: &mut Value) {
    set(object, "spec.type", json!("ClusterIP"));
    set(object, "spec.sessionAffinity", json!("None"));
    set(object, "spec.internalTrafficPolicy", json!("Cluster"));
    for port in items(&mut object["spec"]["ports"]) {
        set(port, "protocol", json!("TCP"));
        let same = port["port"].clone();
        set(port, "targetPort", same);
    }
    if let Some(members) = object["status"].as_object_mut() {
        members.entry("loadBalancer").or_insert(json!({}));
    }
}

fn stateful_set(object: &mut Value) {
    set(object, "spec.replicas", json!(1));
    set(object, "spec.revisionHistoryLimit", json!(10));
    set(object, "spec.podManagementPolicy", json!("OrderedReady"));
    set(object, "spec.updateStrategy.type", json!("RollingUpdate"));
    set(object, "spec.updateStrategy.rollingUpdate.maxUnavailable", json!(1));
    set(object, "spec.updateStrategy.rollingUpdate.partition", json!(0));
    set(object, "spec.persistentVolumeClaimRetentionPolicy.whenDeleted", json!("Retain"));
    set(object, "spec.persistentVolumeClaimRetentionPolicy.whenScaled", json!("Retain"));
    pod(&mut object["spec"]["template"]["spec"], &json!("Always"));
}

fn job(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if labels.is_object() {
        set(object, "metadata.labels", labels);
    }
    set(object, "spec.completions", json!(1));
    set(object, "spec.parallelism", json!(1));
    set(object, "spec.backoffLimit", json!(6));
    set(object, "spec.completionMode", json!("NonIndexed"));
    set(object, "spec.suspend", json!(false));
    set(object, "spec.manualSelector", json!(false));
    set(object, "spec.podReplacementPolicy", json!("TerminatingOrFailed"));
    pod(&mut object["spec"]["template"]["spec"], &json!("Always"));
}

fn binding(object: &mut Value) {
    for subject in items(&mut object["subjects"]) {
        if subject["kind"] != "ServiceAccount" {
            set(subject, "apiGroup", json!("rbac.authorization.k8s.io"));
        }
    }
    set(object, "roleRef.apiGroup", json!("rbac.authorization.k8s.io"));
}

fn pod(spec: &mut Value, restart: &Value) {
    if spec.is_null() {
        return;
    }
    set(spec, "restartPolicy", restart.clone());
    set(spec, "dnsPolicy", json!("ClusterFirst"));
    set(spec, "schedulerName", json!("default-scheduler"));
    set(spec, "terminationGracePeriodSeconds", json!(30));
    set(spec, "securityContext", json!({}));
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        set(spec, "serviceAccount", account);
    }
    for list in ["containers", "initContainers"] {
        items(&mut spec[list]).for_each(container);
    }
    items(&mut spec["volumes"]).for_each(volume);
}

fn container(container: &mut Value) {
    set(container, "terminationMessagePath", json!("/dev/termination-log"));
    set(container, "terminationMessagePolicy", json!("File"));
    let image = container["image"].as_str().unwrap_or_default();
    let tag = image.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
    let is_pinned = image.contains('@') || tag.is_some_and(|tag| tag != "latest");
    set(container, "imagePullPolicy", json!(if is_pinned { "IfNotPresent" } else { "Always" }));
    for port in items(&mut container["ports"]) {
        set(port, "protocol", json!("TCP"));
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[probe].is_object() {
            let probe = &mut container[probe];
            set(probe, "failureThreshold", json!(3));
            set(probe, "periodSeconds", json!(10));
            set(probe, "successThreshold", json!(1));
            set(probe, "timeoutSeconds", json!(1));
            if probe["httpGet"].is_object() {
                set(probe, "httpGet.scheme", json!("HTTP"));
                set(probe, "httpGet.path", json!("/"));
            }
        }
    }
    for variable in items(&mut container["env"]) {
        if variable["valueFrom"]["fieldRef"].is_object() {
            set(variable, "valueFrom.fieldRef.apiVersion", json!("v1"));
        }
    }
}

fn volume(volume: &mut Value) {
    for source in ["secret", "configMap", "projected", "downwardAPI"] {
        if volume[source].is_object() {
            set(&mut volume[source], "defaultMode", json!(0o644));
        }
    }
}

fn items(list: &mut Value) -> impl Iterator<Item = &mut Value> {
    list.as_array_mut().into_iter().flatten()
}
