//! Discovery of one group and version, and as much OpenAPI as clients need to know what a patch may say.

use serde_json::{Map, Value, json};

use crate::kinds::{Kinds, Resource};

/// The resources of a group and version, as they were listed before there was aggregated discovery.
pub(crate) fn resources(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let found = kinds.discovered(group, version)?;
    let mut list = Vec::new();
    for known in found["resources"].as_array().into_iter().flatten() {
        let is_namespaced = known["scope"] == "Namespaced";
        let entry = |name: &str, of: &Value, singular: &Value| {
            let kind = &of["responseKind"]["kind"];
            let mut entry = json!({
                "name": name, "singularName": singular, "namespaced": is_namespaced, "kind": kind, "verbs": of["verbs"],
            });
            for word in ["shortNames", "categories"] {
                if let Some(value) = of.get(word) {
                    entry[word] = value.clone();
                }
            }
            let api = &of["responseKind"];
            let has_other =
                |word: &str, own: &str| api[word].as_str().is_some_and(|text| !text.is_empty() && text != own);
            if has_other("group", group) || has_other("version", version) {
                entry["group"] = api["group"].clone();
                entry["version"] = api["version"].clone();
            }
            entry
        };
        let plural = known["resource"].as_str().unwrap_or_default();
        list.push(entry(plural, known, &known["singularResource"]));
        for below in known["subresources"].as_array().into_iter().flatten() {
            let name = format!("{plural}/{}", below["subresource"].as_str().unwrap_or_default());
            list.push(entry(&name, below, &json!("")));
        }
    }
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": list}))
}

/// The index of OpenAPI v3, or the document of one group and version.
pub(crate) fn document(kinds: &Kinds, rest: &[&str]) -> Option<Value> {
    match rest {
        [] => {
            let groups = kinds.groups();
            let versions = groups.iter().flat_map(|group| group["versions"].as_array().into_iter().flatten());
            let names =
                versions.filter_map(|version| version["groupVersion"].as_str()).map(|name| format!("apis/{name}"));
            let entry = |name: String| {
                let url = json!({"serverRelativeURL": format!("/openapi/v3/{name}")});
                (name, url)
            };
            let paths: Map<String, Value> = names.chain(["api/v1".to_owned()]).map(entry).collect();
            Some(json!({ "paths": paths }))
        }
        ["api", version] => group(kinds, "", version),
        ["apis", name, version] => group(kinds, name, version),
        _ => None,
    }
}

fn group(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let served = kinds.served(group, version);
    served.first()?;
    let paths: Map<String, Value> = served.iter().map(|known| path(known)).collect();
    Some(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "sandbox"}, "paths": paths,
        "components": {"schemas": {}},
    }))
}

/// That a patch may be tried, and be strict about fields: clients look for these two words.
fn path(known: &Resource) -> (String, Value) {
    let root = if known.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", known.group) };
    let place = if known.namespaced { "/namespaces/{namespace}" } else { "" };
    let parameters: Vec<_> = ["dryRun", "fieldManager", "fieldValidation", "force"]
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}))
        .to_vec();
    let kind = json!({"group": known.group, "version": known.version, "kind": known.kind});
    let operation = json!({"parameters": parameters, "x-kubernetes-group-version-kind": kind, "responses": {}});
    let url = format!("{root}/{}{place}/{}/{{name}}", known.version, known.plural);
    (url, json!({"patch": operation, "put": operation}))
}
