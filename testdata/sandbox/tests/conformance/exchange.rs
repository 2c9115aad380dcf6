//! One request and its answers, made comparable.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Map, Value, json};

/// A request. `NAMESPACE` in its path or its body stands for the namespace of the story.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) step: String,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) body: Option<String>,
}

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
pub(crate) const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

pub(crate) fn send(step: &str, method: &'static str, path: impl Into<String>, body: Option<Value>) -> Exchange {
    let body = body.map(|body| body.to_string());
    Exchange { step: step.into(), method, path: path.into(), content_type: JSON, accept: JSON, body }
}

pub(crate) fn get(step: &str, path: impl Into<String>) -> Exchange {
    send(step, "GET", path, None)
}

pub(crate) fn patch(step: &str, path: impl Into<String>, content_type: &'static str, body: Value) -> Exchange {
    Exchange { content_type, ..send(step, "PATCH", path, Some(body)) }
}

impl Exchange {
    pub(crate) fn accepting(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }

    /// What a server answers: the status, and the body as JSON, as lines of JSON, or as text.
    pub(crate) async fn ask(&self, client: &reqwest::Client, server: &Server, words: &Words) -> Result<Value> {
        let fill = |text: &str| words.fill(text, &server.namespace);
        let method = reqwest::Method::from_bytes(self.method.as_bytes())?;
        let url = format!("{}{}", server.url, fill(&self.path));
        let mut request = client.request(method, url).bearer_auth(&server.token);
        request = request.header("Accept", self.accept).header("User-Agent", "conformance/1");
        if let Some(body) = &self.body {
            request = request.header("Content-Type", self.content_type).body(fill(body));
        }
        let answer = request.send().await?;
        let code = answer.status().as_u16();
        let text = answer.text().await?;
        let body = serde_json::from_str(&text).unwrap_or_else(|_| {
            let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
            lines.map_or_else(|_| json!(text), |lines| json!(lines))
        });
        Ok(json!({"code": code, "body": body}))
    }
}

/// Where to send requests to.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) token: String,
    pub(crate) namespace: String,
}

/// What a server made up: each uid and resourceVersion by the order of their coming.
#[derive(Debug, Default)]
pub(crate) struct Words {
    made_up: BTreeMap<String, String>,
    /// The last object's, for requests that name them.
    uid: String,
    version: String,
    token: String,
}

impl Words {
    fn fill(&self, text: &str, namespace: &str) -> String {
        let filled = text.replace("NAMESPACE", namespace).replace("UID", &self.uid);
        filled.replace("VERSION", &self.version).replace("TOKEN", &self.token)
    }

    /// An answer without what differs from run to run.
    pub(crate) fn plain(&mut self, mut answer: Value, is_alive: bool) -> Value {
        self.learn(&answer["body"]);
        self.walk(&mut answer, "", is_alive);
        answer
    }

    fn learn(&mut self, body: &Value) {
        if let Some(uid) = body["metadata"]["uid"].as_str() {
            uid.clone_into(&mut self.uid);
        }
        if let Some(version) = body["metadata"]["resourceVersion"].as_str() {
            version.clone_into(&mut self.version);
        }
        if let Some(token) = body["metadata"]["continue"].as_str() {
            token.clone_into(&mut self.token);
        }
    }

    fn walk(&mut self, value: &mut Value, name: &str, is_alive: bool) {
        match value {
            Value::Object(members) => {
                if is_alive {
                    without_controllers(members);
                }
                if members.contains_key("items")
                    || members.get("kind").is_some_and(|kind| kind.as_str().is_some_and(|kind| kind.ends_with("List")))
                {
                    for word in ["resourceVersion", "continue"] {
                        if let Some(found) = members.get_mut("metadata").and_then(|metadata| metadata.get_mut(word)) {
                            *found = json!(word);
                        }
                    }
                }
                if members.get("type").is_some_and(|word| word == "BOOKMARK") {
                    members["object"]["metadata"]["resourceVersion"] = json!("RV");
                }
                // A Go map has no order.
                if let Some(Value::Array(causes)) = members.get_mut("causes") {
                    causes.sort_by_key(|cause| cause["field"].to_string());
                }
                for rules in ["resourceRules", "nonResourceRules"] {
                    if let Some(Value::Array(rules)) = members.get_mut(rules) {
                        rules.sort_by_key(ToString::to_string);
                    }
                }
                let words = std::mem::take(members).into_iter();
                *members = words.map(|(name, value)| (self.known(&name), value)).collect();
                for (name, value) in members.iter_mut() {
                    self.walk(value, name, is_alive);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, name, is_alive)),
            Value::String(text) => *text = self.text(text, name, is_alive),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A text that tells of what a server made up.
    fn known(&self, text: &str) -> String {
        self.made_up.iter().fold(text.to_owned(), |text, (made_up, word)| {
            // A number can be anything; in parentheses it is the one.
            let is_number = made_up.len() < 8;
            let (from, to) =
                if is_number { (format!("({made_up})"), format!("({word})")) } else { (made_up.clone(), word.clone()) };
            text.replace(&from, &to)
        })
    }

    fn text(&mut self, text: &str, name: &str, is_alive: bool) -> String {
        let is_time =
            text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[4] == b'-' && text.as_bytes()[10] == b'T';
        match name {
            _ if is_time => "TIME".into(),
            "resourceVersion" if is_alive => "RV".into(),
            "uid"
            | "resourceVersion"
            | "clusterIP"
            | "clusterIPs"
            | "controller-uid"
            | "batch.kubernetes.io/controller-uid"
                if !text.is_empty() && text != "continue" && text != name =>
            {
                let next = format!("{}-{}", name.rsplit('/').next().unwrap_or(name), self.made_up.len());
                self.made_up.entry(text.to_owned()).or_insert(next).clone()
            }
            "message" => self.known(text),
            _ => text.to_owned(),
        }
    }
}

/// What controllers write, whenever they come to it.
fn without_controllers(object: &mut Map<String, Value>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
        entries.retain(|entry| entry["manager"] != "kube-controller-manager" && entry["subresource"] != "status");
    }
    if let Some(Value::Object(notes)) = metadata.get_mut("annotations") {
        notes.remove("deployment.kubernetes.io/revision");
        notes.remove("deprecated.daemonset.template.generation");
        if notes.is_empty() {
            metadata.remove("annotations");
        }
    }
    if object.contains_key("spec") {
        object.remove("status");
    }
}

/// The places where two answers differ, as JSON pointers, with both values.
pub(crate) fn differences(real: &Value, ours: &Value, path: &str, found: &mut Vec<(String, Value, Value)>) {
    match (real, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let at = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => differences(a, b, &at, found),
                    (a, b) => found.push((
                        at,
                        a.cloned().unwrap_or(json!("(absent)")),
                        b.cloned().unwrap_or(json!("(absent)")),
                    )),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (place, (a, b)) in a.iter().zip(b).enumerate() {
                differences(a, b, &format!("{path}/{place}"), found);
            }
        }
        _ if real == ours => {}
        _ => found.push((path.to_owned(), real.clone(), ours.clone())),
    }
}
