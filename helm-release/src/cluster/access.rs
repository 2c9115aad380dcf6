//! What this identity may do, asked before anything is written.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::Error;
use super::parallel::all;
use super::stop::Stop;
use super::wire::{Call, Purpose, Wire};

/// One permission, in the words of a Role.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Permission {
    /// The verb.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// The namespace; empty for cluster-scoped resources.
    pub namespace: String,
}

/// The rules that hold for this identity in one namespace.
#[derive(Debug, Clone, Default)]
pub struct Access {
    namespace: String,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Rule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

impl Access {
    /// Reads the rules: one SelfSubjectRulesReview.
    ///
    /// # Errors
    /// The review could not be made.
    pub async fn review(wire: &Wire, namespace: &str, stop: &Stop) -> Result<Self, Error> {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Status {
            resource_rules: Vec<Rule>,
        }
        let spec = json!({"namespace": namespace});
        let status: Status = create(wire, "selfsubjectrulesreviews", "SelfSubjectRulesReview", spec, stop).await?;
        Ok(Self { namespace: namespace.into(), rules: status.resource_rules })
    }

    /// Whether a rule grants it. A rule bound to object names does not count.
    #[must_use]
    pub fn grants(&self, wanted: &Permission) -> bool {
        let has = |list: &[String], word: &str| list.iter().any(|item| item == word || item == "*");
        wanted.namespace == self.namespace
            && self.rules.iter().any(|rule| {
                has(&rule.verbs, &wanted.verb)
                    && has(&rule.api_groups, &wanted.group)
                    && has(&rule.resources, &wanted.resource)
                    && rule.resource_names.is_empty()
            })
    }
}

impl Permission {
    /// Asks the server about this one permission: where the rules do not grant it, or are incomplete.
    ///
    /// # Errors
    /// The review could not be made.
    pub async fn is_granted(&self, wire: &Wire, stop: &Stop) -> Result<bool, Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Status {
            allowed: bool,
        }
        let attributes = json!({
            "verb": self.verb, "group": self.group, "resource": self.resource, "namespace": self.namespace,
        });
        let spec = json!({"resourceAttributes": attributes});
        let status: Status = create(wire, "selfsubjectaccessreviews", "SelfSubjectAccessReview", spec, stop).await?;
        Ok(status.allowed)
    }
}

/// The user name by which the server knows this identity; `None` where it does not tell, before Kubernetes 1.28.
pub(crate) async fn identity(wire: &Wire, stop: &Stop) -> Result<Option<String>, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Review {
        status: Option<Status>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Status {
        user_info: UserInfo,
    }
    #[derive(Deserialize)]
    struct UserInfo {
        username: Option<String>,
    }
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let call = Call::new("ask who this identity is", Method::POST, path, Some(body), Purpose::Read);
    match wire.find(call, stop).await {
        Ok(None) => Ok(None),
        Ok(Some(answer)) => Ok(answer.json::<Review>()?.status.and_then(|status| status.user_info.username)),
        Err(error) if error.code() == Some(403) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Those of `needed` that this identity lacks.
///
/// # Errors
/// A review could not be made.
pub(crate) async fn lacking(wire: &Wire, needed: BTreeSet<Permission>, stop: &Stop) -> Result<Vec<Permission>, Error> {
    let namespaces: BTreeSet<_> = needed.iter().map(|p| p.namespace.clone()).filter(|ns| !ns.is_empty()).collect();
    let mut granted = BTreeMap::new();
    for namespace in namespaces {
        let access = Access::review(wire, &namespace, stop).await?;
        granted.insert(namespace, access);
    }
    // The rules can be incomplete, and know nothing of cluster-scoped kinds: those are asked one by one.
    let open = needed.into_iter().filter(|p| !granted.get(&p.namespace).is_some_and(|access| access.grants(p)));
    let answers = all(open.map(|permission| ask(wire, permission, stop)).collect()).await?;
    Ok(answers.into_iter().flatten().collect())
}

async fn ask(wire: &Wire, permission: Permission, stop: &Stop) -> Result<Option<Permission>, Error> {
    let granted = permission.is_granted(wire, stop).await?;
    Ok((!granted).then_some(permission))
}

async fn create<T>(wire: &Wire, resource: &str, kind: &str, spec: Value, stop: &Stop) -> Result<T, Error>
where
    T: for<'de> Deserialize<'de> + Default,
{
    #[derive(Deserialize)]
    struct Review<T> {
        status: Option<T>,
    }
    let path = format!("/apis/authorization.k8s.io/v1/{resource}");
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
    let call = Call::new("review the permissions of this identity", Method::POST, path, Some(body), Purpose::Read);
    let review: Review<T> = wire.send(call, stop).await?.json()?;
    Ok(review.status.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_bound_to_names_grants_nothing_in_general() {
        let rule = |names: &[&str]| Rule {
            verbs: vec!["get".into()],
            api_groups: vec![String::new()],
            resources: vec!["*".into()],
            resource_names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let wanted =
            Permission { verb: "get".into(), group: String::new(), resource: "secrets".into(), namespace: "ns".into() };
        let access = |rules| Access { namespace: "ns".into(), rules };
        assert!(access(vec![rule(&[])]).grants(&wanted));
        assert!(!access(vec![rule(&["one"])]).grants(&wanted));
        assert!(!access(vec![rule(&[])]).grants(&Permission { namespace: "other".into(), ..wanted }));
    }
}
