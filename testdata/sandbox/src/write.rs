//! Creates, updates and patches: what each does to an object before it is stored.

use http::StatusCode;
use serde_json::{Value, json};

use crate::call::Call;
use crate::controllers;
use crate::defaults;
use crate::kinds::Resource;
use crate::life;
use crate::managed::Writer;
use crate::merge;
use crate::protobuf;
use crate::refusal::{Fault, Refusal};
use crate::state::State;
use crate::validate;

/// The largest body that is read.
const BODY_LIMIT: usize = 3 << 20;
/// Metadata that only the server writes.
const OWN: [&str; 6] =
    ["creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "selfLink", "uid"];

const JSON: &str = "application/json";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

type Answer = Result<(StatusCode, Value), Refusal>;

impl State {
    pub(crate) fn create(&mut self, call: &Call) -> Answer {
        let mut object = body(call)?;
        fits(call, &object)?;
        if let (None, Some(prefix)) = (object["metadata"]["name"].as_str(), object["metadata"]["generateName"].as_str())
        {
            object["metadata"]["name"] = json!(format!("{prefix}{:05x}", self.count()));
        }
        let name = object["metadata"]["name"].as_str().filter(|name| !name.is_empty());
        let Some(name) = name.map(ToOwned::to_owned) else {
            let fault = Fault::required("metadata.name", "name or generateName is required");
            return Err(Refusal::invalid(&call.resource, "", &[fault]));
        };
        if !object["metadata"]["resourceVersion"].as_str().unwrap_or_default().is_empty() {
            return Err(Refusal::failure_of("resourceVersion should not be set on objects to be created"));
        }
        self.may_come(call, &name)?;
        if self.store.get(&call.key(&name)).is_some() {
            return Err(Refusal::already_exists(&call.resource, &name));
        }
        let object = self.fresh(call, object)?;
        let shape = call.resource.shape();
        let mut object = object;
        self.writer(call).update(shape, None, &mut object);
        validate::check(&call.resource, None, &object)?;
        life::allot(&call.resource, &mut object);
        Ok((StatusCode::CREATED, self.keep(call, &name, None, object)))
    }

    pub(crate) fn update(&mut self, call: &Call) -> Answer {
        let name = call.name.clone().unwrap_or_default();
        let object = body(call)?;
        fits(call, &object)?;
        if object["metadata"]["name"] != name.as_str() {
            let given = object["metadata"]["name"].as_str().unwrap_or_default();
            let why = format!("the name of the object ({given}) does not match the name on the URL ({name})");
            return Err(Refusal::bad_request(why));
        }
        let live = self.live(call, &name)?;
        self.change(call, &name, &live, object)
    }

    pub(crate) fn patch(&mut self, call: &Call) -> Answer {
        let name = call.name.clone().unwrap_or_default();
        let shape = call.resource.shape();
        if call.content_type == APPLY {
            return self.apply(call, &name);
        }
        match call.content_type.as_str() {
            MERGE | JSON_PATCH => {}
            STRATEGIC if call.resource.is_custom() => {
                return Err(Refusal::unknown_format(&[JSON_PATCH, MERGE, APPLY]));
            }
            STRATEGIC => {}
            _ => return Err(Refusal::unknown_patch()),
        }
        let patch = document(call)?;
        let live = self.live(call, &name)?;
        let patched = match call.content_type.as_str() {
            MERGE => {
                let mut patched = live.clone();
                json_patch::merge(&mut patched, &patch);
                patched
            }
            JSON_PATCH => json_patched(&live, patch)?,
            _ => match (&live, &patch) {
                (Value::Object(live), Value::Object(patch)) => Value::Object(merge::strategic(shape, live, patch)),
                _ => return Err(Refusal::bad_request("a patch is an object")),
            },
        };
        if patched["metadata"]["name"] != live["metadata"]["name"] {
            let why = format!(
                "the name of the object ({}) does not match the name on the URL ({name})",
                text(&patched["metadata"]["name"])
            );
            return Err(Refusal::bad_request(why));
        }
        self.change(call, &name, &live, patched)
    }

    fn apply(&mut self, call: &Call, name: &str) -> Answer {
        let Some(manager) = call.query.get("fieldManager") else {
            let fault = Fault::required("fieldManager", "is required for apply patch");
            return Err(Refusal::invalid_options("PatchOptions.meta.k8s.io", &[fault]));
        };
        let wanted = document(call)?;
        fits(call, &wanted)?;
        if wanted["metadata"].get("managedFields").is_some_and(|entries| !entries.is_null()) {
            return Err(Refusal::bad_request("metadata.managedFields must be nil"));
        }
        let mut writer = self.writer(call);
        writer.manager = manager.into();
        let force = call.query.is_true("force");
        let key = call.key(name);
        let Some(live) = self.store.get(&key).map(|live| Value::clone(live)) else {
            self.may_come(call, name)?;
            let mut named = wanted;
            named["metadata"]["name"] = json!(name);
            let owned = writer.apply(call.resource.shape(), None, &named, force)?;
            let owners = owned["metadata"]["managedFields"].clone();
            let mut object = self.fresh(call, owned)?;
            object["metadata"]["managedFields"] = owners;
            validate::check(&call.resource, None, &object)?;
            life::allot(&call.resource, &mut object);
            return Ok((StatusCode::CREATED, self.keep(call, name, None, object)));
        };
        let live_form = converted(&call.resource, &live);
        let mut merged = writer.apply(call.resource.shape(), Some(&live_form), &wanted, force)?;
        let given = wanted["metadata"]["resourceVersion"].as_str();
        if given.is_some_and(|given| live["metadata"]["resourceVersion"] != given) {
            return Err(Refusal::modified(&call.resource, name));
        }
        let unknown = defaults::complete(&call.resource, &mut merged);
        strict(call, &unknown)?;
        self.settle(call, name, &live_form, merged)
    }

    /// Brings an object that a client sent, or patched, to what is stored, and stores it if that is another.
    fn change(&mut self, call: &Call, name: &str, live: &Value, mut object: Value) -> Answer {
        let given = object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        if !given.is_empty() && live["metadata"]["resourceVersion"] != given.as_str() {
            return Err(Refusal::modified(&call.resource, name));
        }
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        if !uid.is_empty() && live["metadata"]["uid"] != uid {
            let seen = text(&live["metadata"]["uid"]);
            let place = call.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{}/{place}{name}, ResourceVersion: 0, \
                 AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {seen}",
                call.resource.plural
            );
            return Err(Refusal::conflict(&call.resource, name, &why));
        }
        let unknown = defaults::complete(&call.resource, &mut object);
        strict(call, &unknown)?;
        doors(call, live, &mut object);
        let mut writer = self.writer(call);
        writer.manager = call.manager();
        writer.update(call.resource.shape(), Some(live), &mut object);
        self.settle(call, name, live, object)
    }

    fn settle(&mut self, call: &Call, name: &str, live: &Value, mut object: Value) -> Answer {
        for member in OWN.into_iter().chain(["namespace"]) {
            keep_member(&mut object["metadata"], &live["metadata"], member);
        }
        if call.subresource.is_none() {
            doors(call, live, &mut object);
        }
        if is_generational(&call.resource) && substance(&call.resource, live) != substance(&call.resource, &object) {
            let generation = live["metadata"]["generation"].as_u64().unwrap_or_default();
            object["metadata"]["generation"] = json!(generation + 1);
        }
        validate::check(&call.resource, Some(live), &object)?;
        object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        if without_times(live) == without_times(&object) {
            return Ok((StatusCode::OK, live.clone()));
        }
        Ok((StatusCode::OK, self.keep(call, name, Some(live), object)))
    }

    /// A new object as the server completes it.
    fn fresh(&mut self, call: &Call, mut object: Value) -> Result<Value, Refusal> {
        object["apiVersion"] = json!(call.resource.api_version());
        object["kind"] = json!(call.resource.kind);
        if let (Some(namespace), true) = (&call.namespace, call.resource.namespaced) {
            object["metadata"]["namespace"] = json!(namespace);
        }
        let unknown = defaults::complete(&call.resource, &mut object);
        strict(call, &unknown)?;
        if call.resource.has_status()
            && let Some(members) = object.as_object_mut()
        {
            members.remove("status");
            defaults::complete(&call.resource, &mut object);
        }
        let (uid, created) = (self.uid(), self.clock.stamp());
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|name, _| !OWN.contains(&name.as_str()) && name != "managedFields");
        }
        object["metadata"]["uid"] = json!(uid);
        object["metadata"]["creationTimestamp"] = json!(created);
        if is_generational(&call.resource) {
            object["metadata"]["generation"] = json!(1);
        }
        life::begin(&call.resource, &mut object);
        Ok(object)
    }

    /// Stores, unless it is only a try.
    fn keep(&mut self, call: &Call, name: &str, live: Option<&Value>, mut object: Value) -> Value {
        if call.is_dry_run() {
            if let Some(live) = live {
                object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
            } else if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("resourceVersion");
            }
            return object;
        }
        let key = call.key(name);
        // The last finalizer was what held it: it goes without being stored once more.
        if object["metadata"].get("deletionTimestamp").is_some() && controllers::is_free(&object) {
            self.end(&key);
            return object;
        }
        let stored = self.store.put(&key, object);
        self.observe(&key, live, Some(&stored));
        Value::clone(&stored)
    }

    /// # Errors
    /// The namespace does not exist, or is going.
    fn may_come(&self, call: &Call, name: &str) -> Result<(), Refusal> {
        let Some(namespace) = call.namespace.as_deref().filter(|_| call.resource.namespaced) else { return Ok(()) };
        match self.namespace(namespace) {
            None => {
                let namespaces = self.kinds.find("", "v1", "namespaces");
                Err(namespaces.map_or_else(Refusal::no_such_resource, |known| Refusal::not_found(&known, namespace)))
            }
            Some(found) if found["metadata"].get("deletionTimestamp").is_some() => {
                Err(Refusal::namespace_going(&call.resource, name, namespace))
            }
            Some(_) => Ok(()),
        }
    }

    /// The object as the version of the call shows it.
    pub(crate) fn live(&self, call: &Call, name: &str) -> Result<Value, Refusal> {
        let found = self.store.get(&call.key(name)).ok_or_else(|| Refusal::not_found(&call.resource, name))?;
        Ok(converted(&call.resource, found))
    }

    fn writer(&self, call: &Call) -> Writer {
        Writer {
            manager: call.manager(),
            api_version: call.resource.api_version(),
            subresource: call.subresource.clone().unwrap_or_default(),
            has_status: call.resource.has_status(),
            time: self.clock.stamp(),
        }
    }
}

/// One object, in another version of its kind.
pub(crate) fn converted(resource: &Resource, object: &Value) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(resource.api_version());
    object
}

fn body(call: &Call) -> Result<Value, Refusal> {
    match call.content_type.as_str() {
        "" | JSON | "application/yaml" | protobuf::CONTENT_TYPE => document(call),
        _ => Err(Refusal::unknown_format(&[JSON, "application/yaml", protobuf::CONTENT_TYPE])),
    }
}

/// The document that a request carries.
pub(crate) fn document(call: &Call) -> Result<Value, Refusal> {
    if call.body.len() > BODY_LIMIT {
        return Err(Refusal::too_large());
    }
    if call.content_type == protobuf::CONTENT_TYPE {
        let unknown = || Refusal::bad_request("a kind that is not read as Protobuf here: send it as JSON");
        return protobuf::decode(&call.body).ok_or_else(unknown);
    }
    let parsed: Result<Value, _> = serde_json::from_slice(&call.body);
    match parsed {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(value @ Value::Array(_)) if call.content_type == JSON_PATCH => Ok(value),
        Ok(_) => Err(Refusal::bad_request("the body is no object")),
        Err(why) => Err(Refusal::bad_request(format!("could not read the body as JSON: {why}"))),
    }
}

/// # Errors
/// The object is of another kind, version or namespace than the URL.
fn fits(call: &Call, object: &Value) -> Result<(), Refusal> {
    let Call { resource, namespace, .. } = call;
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let expected = resource.api_version();
    if !version.is_empty() && version != expected {
        let why =
            format!("the API version in the data ({version}) does not match the expected API version ({expected})");
        return Err(Refusal::bad_request(why));
    }
    if !kind.is_empty() && kind != resource.kind {
        let why = format!(
            "{kind} in version {:?} cannot be handled as a {}: converting (v1.{kind}) to (v1.{1}): unknown conversion",
            resource.version, resource.kind
        );
        return Err(Refusal::bad_request(why));
    }
    let given = text(&object["metadata"]["namespace"]);
    if !given.is_empty() && namespace.as_deref() != Some(given) {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Refusal::bad_request(why));
    }
    Ok(())
}

/// What one door does not open stays as it was.
fn doors(call: &Call, live: &Value, object: &mut Value) {
    match call.subresource.as_deref() {
        None if call.resource.has_status() => keep_member(object, live, "status"),
        None => {}
        Some(_) => {
            let status = object.get("status").cloned();
            let owners = object["metadata"]["managedFields"].clone();
            object.clone_from(live);
            match status {
                Some(status) => object["status"] = status,
                None => keep_member(object, &Value::Null, "status"),
            }
            if !owners.is_null() {
                object["metadata"]["managedFields"] = owners;
            }
        }
    }
}

fn keep_member(object: &mut Value, live: &Value, member: &str) {
    match (live.get(member), object.as_object_mut()) {
        (Some(value), Some(members)) => {
            members.insert(member.into(), value.clone());
        }
        (None, Some(members)) => {
            members.remove(member);
        }
        (_, None) => {}
    }
}

fn strict(call: &Call, unknown: &[String]) -> Result<(), Refusal> {
    if call.query.get("fieldValidation") != Some("Strict") || unknown.is_empty() {
        return Ok(());
    }
    let words: Vec<_> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
    let Resource { kind, version, .. } = &*call.resource;
    Err(Refusal::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}",
        words.join(", ")
    )))
}

fn json_patched(live: &Value, patch: Value) -> Result<Value, Refusal> {
    let patch: json_patch::Patch = serde_json::from_value(patch)
        .map_err(|why| Refusal::bad_request(format!("could not read the patch: {why}")))?;
    let mut patched = live.clone();
    json_patch::patch(&mut patched, &patch).map_err(|_| Refusal::rejected())?;
    Ok(patched)
}

/// Kinds whose changes are numbered.
fn is_generational(resource: &Resource) -> bool {
    const BUILT_IN: [(&str, &[&str]); 10] = [
        ("", &["Pod", "PodTemplate", "ReplicationController"]),
        ("apps", &["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"]),
        ("autoscaling", &["HorizontalPodAutoscaler"]),
        ("batch", &["Job", "CronJob"]),
        ("discovery.k8s.io", &["EndpointSlice"]),
        ("scheduling.k8s.io", &["PriorityClass"]),
        ("networking.k8s.io", &["Ingress", "IngressClass", "NetworkPolicy"]),
        ("policy", &["PodDisruptionBudget"]),
        ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
        ("admissionregistration.k8s.io", &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]),
    ];
    let Resource { group, kind, .. } = resource;
    resource.is_custom() || BUILT_IN.iter().any(|(known, kinds)| known == group && kinds.contains(&kind.as_str()))
}

/// What a change of is a new generation.
fn substance(resource: &Resource, object: &Value) -> Value {
    let mut object = object.clone();
    // A Deployment's annotations are copied to its ReplicaSets.
    if resource.is("apps", "Deployment") {
        object["annotations"] = object["metadata"]["annotations"].clone();
    }
    if resource.is("discovery.k8s.io", "EndpointSlice") {
        object["labels"] = object["metadata"]["labels"].clone();
    }
    if let Some(members) = object.as_object_mut() {
        members.remove("metadata");
        members.remove("status");
    }
    object
}

fn without_times(object: &Value) -> Value {
    let mut object = object.clone();
    for entry in object["metadata"]["managedFields"].as_array_mut().into_iter().flatten() {
        entry["time"] = Value::Null;
    }
    object
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
