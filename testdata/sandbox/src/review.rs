//! What an identity may do: everything, but for what a test denies it.

use serde_json::{Value, json};

use crate::kinds::Resource;
use crate::refusal::Refusal;

/// Who every request comes from.
const USER: &str = "sandbox-admin";

/// A permission that nobody has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// The API group, empty for the core group.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// Only in this namespace; everywhere if none.
    pub namespace: Option<String>,
}

impl Denial {
    fn covers(&self, verb: &str, group: &str, resource: &str, namespace: Option<&str>) -> bool {
        let place = self.namespace.is_none() || self.namespace.as_deref() == namespace;
        self.verb == verb && self.group == group && self.resource == resource && place
    }
}

/// # Errors
/// A denial covers the request.
pub(crate) fn check(
    denials: &[Denial],
    verb: &str,
    resource: &Resource,
    namespace: Option<&str>,
    name: Option<&str>,
) -> Result<(), Refusal> {
    if !denials.iter().any(|denial| denial.covers(verb, &resource.group, &resource.plural, namespace)) {
        return Ok(());
    }
    let place = match namespace {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".into(),
    };
    let why =
        format!("User {USER:?} cannot {verb} resource {:?} in API group {:?} {place}", resource.plural, resource.group);
    Err(Refusal::forbidden(resource, name, &why))
}

/// Answers a review of the caller's own permissions.
pub(crate) fn answer(denials: &[Denial], review: &Value) -> Option<Value> {
    let mut answered = review.clone();
    answered["metadata"] = json!({});
    if review["kind"] == "SelfSubjectRulesReview" {
        answered["spec"] = json!({});
    }
    answered["status"] = match review["kind"].as_str()? {
        "SelfSubjectAccessReview" => access(denials, &review["spec"]["resourceAttributes"]),
        "SelfSubjectRulesReview" => rules(denials),
        "SelfSubjectReview" => json!({"userInfo": {"username": USER, "groups": ["system:authenticated"]}}),
        _ => return None,
    };
    Some(answered)
}

fn access(denials: &[Denial], wanted: &Value) -> Value {
    let text = |key: &str| wanted[key].as_str().unwrap_or_default();
    let namespace = Some(text("namespace")).filter(|namespace| !namespace.is_empty());
    let covers = |denial: &Denial| denial.covers(text("verb"), text("group"), text("resource"), namespace);
    json!({"allowed": !denials.iter().any(covers)})
}

/// The rules cannot say "all but": with a denial they are incomplete, so that each permission has to be asked for.
fn rules(denials: &[Denial]) -> Value {
    let all = json!([
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
        {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
         "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]},
        {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
    ]);
    let urls = json!([
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
        {"verbs": ["get"], "nonResourceURLs": [
            "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version",
            "/version/",
        ]},
        {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"]},
    ]);
    if denials.is_empty() {
        json!({"resourceRules": all, "nonResourceRules": urls, "incomplete": false})
    } else {
        json!({"resourceRules": [], "nonResourceRules": urls, "incomplete": true})
    }
}
