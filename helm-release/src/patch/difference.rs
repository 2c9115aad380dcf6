//! Field by field, what two objects differ in: for people, not for patching.

use serde_json::Value;

/// One field in which two objects differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDifference {
    /// Where: `spec.template.spec.containers[0].image`, `metadata.annotations["example.com/owner"]`.
    pub path: String,
    /// The value in the first object, if it has the field.
    pub from: Option<Value>,
    /// The value in the second object, if it has the field.
    pub to: Option<Value>,
}

/// All fields in which two values differ, in the order of their names; lists are compared index by index.
///
/// A field that only one side has is one difference, however much it holds. What a patch would change on a live object is
/// `differences(live, &patch.apply(live)?)`.
pub fn differences(a: &Value, b: &Value) -> Vec<FieldDifference> {
    let mut found = Vec::new();
    compare(String::new(), Some(a), Some(b), &mut found);
    found
}

fn compare(path: String, a: Option<&Value>, b: Option<&Value>, found: &mut Vec<FieldDifference>) {
    match (a, b) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let mut keys: Vec<_> = left.keys().chain(right.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                compare(field_path(&path, key), left.get(key), right.get(key), found);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                compare(format!("{path}[{index}]"), left.get(index), right.get(index), found);
            }
        }
        (from, to) if from != to => found.push(FieldDifference { path, from: from.cloned(), to: to.cloned() }),
        _ => {}
    }
}

fn field_path(path: &str, key: &str) -> String {
    let plain =
        !key.is_empty() && key.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '$'));
    match (path, plain) {
        ("", true) => key.to_owned(),
        (_, true) => format!("{path}.{key}"),
        (_, false) => format!("{path}[{key:?}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paths(a: &Value, b: &Value) -> Vec<String> {
        differences(a, b).into_iter().map(|difference| difference.path).collect()
    }

    #[test]
    fn equal_objects_do_not_differ() {
        let object = json!({"spec": {"replicas": 1, "list": [1, {"a": null}]}});
        assert_eq!(differences(&object, &object), []);
    }

    #[test]
    fn a_changed_image_is_named_by_its_path() {
        let with = |image| json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}});
        let found = differences(&with("a:1"), &with("a:2"));
        assert_eq!(
            found,
            [FieldDifference {
                path: "spec.template.spec.containers[0].image".to_owned(),
                from: Some(json!("a:1")),
                to: Some(json!("a:2")),
            }]
        );
    }

    #[test]
    fn keys_that_are_no_words_stand_in_quotes() {
        let found = paths(
            &json!({"metadata": {"annotations": {"example.com/owner": "a"}}}),
            &json!({"metadata": {"annotations": {}}}),
        );
        assert_eq!(found, [r#"metadata.annotations["example.com/owner"]"#]);
    }

    #[test]
    fn longer_lists_differ_in_the_elements_the_other_lacks() {
        assert_eq!(paths(&json!({"a": [1, 2]}), &json!({"a": [1, 2, {"b": 3}]})), ["a[2]"]);
    }
}
