//! Every case of `testdata/patches`: expected results were printed by the Kubernetes packages themselves.

use super::*;
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    case: String,
    api_version: String,
    kind: String,
    original: Value,
    modified: Value,
    current: Value,
    strategic: bool,
    /// The patch was written by hand and only applying it counts.
    #[serde(default)]
    given: bool,
    patch: Option<Value>,
    error: Option<String>,
    two_way: Option<Value>,
    applied: Option<Value>,
    apply_error: Option<String>,
}

impl Case {
    fn patch(&self, unstructured: Unstructured) -> Result<Patch, Error> {
        three_way(&self.api_version, &self.kind, &self.original, &self.modified, &self.current, unstructured)
    }

    fn wanted(&self) -> Result<&Value, &str> {
        self.patch.as_ref().ok_or_else(|| self.error.as_deref().unwrap_or_default())
    }

    fn wanted_object(&self) -> Result<&Value, &str> {
        self.applied.as_ref().ok_or_else(|| self.apply_error.as_deref().unwrap_or_default())
    }

    fn given_patch(&self) -> Option<Patch> {
        let body = self.patch.clone()?;
        match strategic_schema(&self.api_version, &self.kind) {
            Some(schema) => Some(Patch::Strategic { body, schema }),
            None => Some(Patch::Merge { body }),
        }
    }
}

fn cases() -> Vec<Case> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/patches");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let goldens = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let texts: Vec<_> = goldens.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let lines = texts.iter().flat_map(|text| text.lines());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn check(name: &str, got: Result<&Value, &Error>, wanted: Result<&Value, &str>) -> Option<String> {
    let same = match (&got, &wanted) {
        (Err(_), Err(text)) if text.starts_with("panic") => true,
        (Err(error), Err(text)) => error.to_string() == *text,
        (got, wanted) => got.ok() == wanted.ok(),
    };
    (!same).then(|| format!("{name}\n   got {got:?}\n  want {wanted:?}"))
}

fn assert_none(failures: Vec<String>) {
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn patches_are_those_of_the_kubernetes_packages() {
    let all = cases();
    assert!(all.len() >= 60, "only {} cases were found", all.len());
    let created = all.iter().filter(|case| !case.given);
    let failures = created.filter_map(|case| {
        let patch = case.patch(Unstructured::ThreeWay);
        check(&case.case, patch.as_ref().map(Patch::body), case.wanted())
    });
    assert_none(failures.collect());
}

#[test]
fn upgrades_of_custom_resources_compare_only_the_manifests() {
    let failures = cases().into_iter().filter_map(|case| {
        let patch = case.patch(Unstructured::TwoWay);
        check(&case.case, patch.as_ref().map(Patch::body), Ok(case.two_way.as_ref()?))
    });
    assert_none(failures.collect());
}

#[test]
fn a_kind_is_merged_strategically_exactly_if_helm_knows_it() {
    for case in cases() {
        let strategic = strategic_schema(&case.api_version, &case.kind).is_some();
        assert_eq!(strategic, case.strategic, "{}", case.case);
    }
}

#[test]
fn applied_patches_give_what_the_api_server_stores() {
    let failures = cases().into_iter().filter_map(|case| {
        let applied = case.given_patch()?.apply(&case.current);
        check(&case.case, applied.as_ref(), case.wanted_object())
    });
    assert_none(failures.collect());
}

#[test]
fn a_patched_object_holds_everything_the_manifest_says() {
    let all = cases();
    let plain = |case: &&Case| [&case.original, &case.modified, &case.current].into_iter().all(is_plain);
    for case in all.iter().filter(|case| !case.given).filter(plain) {
        let Ok(patch) = case.patch(Unstructured::ThreeWay) else {
            continue;
        };
        let applied = patch.apply(&case.current).unwrap();
        assert!(holds(&applied, &case.modified), "{}: {applied} lacks something of {}", case.case, case.modified);
    }
}

/// Whether `object` has all that `wanted` has; lists may have more elements, and in another order.
fn holds(object: &Value, wanted: &Value) -> bool {
    match (object, wanted) {
        (Value::Object(object), Value::Object(wanted)) => {
            let held = |(key, wanted)| object.get(key).is_some_and(|value| holds(value, wanted));
            wanted.iter().all(held)
        }
        (Value::Array(object), Value::Array(wanted)) => {
            wanted.iter().all(|wanted| object.iter().any(|element| holds(element, wanted)))
        }
        _ => object == wanted,
    }
}

/// Without nulls, directives, and without elements that share a merge key: either makes Kubernetes forget or repeat things.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(fields) => !fields.contains_key("$patch") && fields.values().all(is_plain),
        Value::Array(list) => {
            let key =
                |element: &Value| ["port", "containerPort", "name"].iter().find_map(|key| element.get(key).cloned());
            let keys: Vec<_> = list.iter().filter_map(key).collect();
            let unique = (1..keys.len()).all(|end| !keys[..end].contains(&keys[end]));
            unique && list.iter().all(is_plain)
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
