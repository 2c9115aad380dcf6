//! What an administrator applies so that this identity may do what it may not.

use std::collections::{BTreeMap, BTreeSet};

use helm_release::cluster::Permission;
use serde_json::{Value, json};

use crate::output::{Page, plain};

/// The name of what is proposed.
const NAME: &str = "gwrepair";
const GROUP: &str = "rbac.authorization.k8s.io";

/// Permissions that this identity lacks, as the objects that would grant them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    missing: BTreeSet<Permission>,
    identity: Option<String>,
}

impl Grant {
    /// For `missing`, which `identity` lacks, where the server has said who that is.
    pub(crate) fn new(missing: impl IntoIterator<Item = Permission>, identity: Option<&str>) -> Self {
        Self { missing: missing.into_iter().collect(), identity: identity.map(str::to_owned) }
    }

    /// The same, bound to the one who lacks it.
    pub(crate) fn to(self, identity: Option<String>) -> Self {
        Self { identity, ..self }
    }

    /// How to apply it. Nothing that was granted before is taken away.
    pub(crate) fn hint(&self) -> String {
        let bind = if self.identity.is_some() { "" } else { ", and bind it to this identity" };
        format!(
            "an administrator grants it by what is below, saved as role.yaml: kubectl auth reconcile -f role.yaml{bind}"
        )
    }

    /// Puts it on a page, if anything is missing.
    pub(crate) fn tell(&self, page: &mut Page) {
        if self.missing.is_empty() {
            return;
        }
        let who = self.identity.as_deref().unwrap_or("this identity");
        page.heading(&format!("Permissions that {} lacks ({})", plain(who), self.missing.len()));
        page.item("", &format!("To go on, {}.", self.hint()));
        page.gap();
        page.push(&self.yaml());
    }

    /// One Role a namespace, one ClusterRole for the rest, each with its binding.
    pub(crate) fn yaml(&self) -> String {
        let namespaces: BTreeSet<&str> = self.missing.iter().map(|lacking| lacking.namespace.as_str()).collect();
        let objects =
            namespaces.into_iter().flat_map(|namespace| [Some(self.role(namespace)), self.binding(namespace)]);
        objects.flatten().map(|object| goyaml::emit(&object)).collect::<Vec<_>>().join("---\n")
    }

    fn role(&self, namespace: &str) -> Value {
        let here = self.missing.iter().filter(|lacking| lacking.namespace == namespace);
        let mut verbs: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
        for Permission { verb, group, resource, .. } in here {
            verbs.entry((group, resource)).or_default().insert(verb);
        }
        // Resources of a group that take the same verbs share a rule.
        let mut rules: BTreeMap<(&str, BTreeSet<&str>), Vec<&str>> = BTreeMap::new();
        for ((group, resource), verbs) in verbs {
            rules.entry((group, verbs)).or_default().push(resource);
        }
        let rule = |((group, verbs), resources)| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
        let rules: Vec<Value> = rules.into_iter().map(rule).collect();
        let kind = role_kind(namespace);
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata(namespace), "rules": rules})
    }

    fn binding(&self, namespace: &str) -> Option<Value> {
        let identity = self.identity.as_deref()?;
        let account = identity.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
        let subject = match account {
            Some((namespace, name)) => json!({"kind": "ServiceAccount", "namespace": namespace, "name": name}),
            None => json!({"kind": "User", "apiGroup": GROUP, "name": identity}),
        };
        let kind = role_kind(namespace);
        Some(json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": format!("{kind}Binding"),
            "metadata": metadata(namespace),
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": NAME},
            "subjects": [subject],
        }))
    }
}

fn role_kind(namespace: &str) -> &'static str {
    if namespace.is_empty() { "ClusterRole" } else { "Role" }
}

fn metadata(namespace: &str) -> Value {
    if namespace.is_empty() { json!({"name": NAME}) } else { json!({"name": NAME, "namespace": namespace}) }
}

/// The permission that a refused request needed; `resource` has its group behind a dot.
pub(crate) fn permission(verb: &str, resource: &str, namespace: &str) -> Permission {
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let [verb, group, resource, namespace] = [verb, group, resource, namespace].map(str::to_owned);
    Permission { verb, group, resource, namespace }
}

/// What is lacking, in a sentence.
pub(crate) fn sentence(lacking: &Permission) -> String {
    let Permission { verb, group, resource, namespace } = lacking;
    let place = if namespace.is_empty() { "the whole cluster".into() } else { format!("namespace {namespace}") };
    let dot = if group.is_empty() { "" } else { "." };
    format!("this identity may not {verb} {resource}{dot}{group} in {place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_becomes_one_role_a_namespace_with_its_binding() {
        let missing = [
            permission("patch", "deployments.apps", "shop"),
            permission("get", "deployments.apps", "shop"),
            permission("get", "statefulsets.apps", "shop"),
            permission("patch", "statefulsets.apps", "shop"),
            permission("list", "secrets", "shop"),
        ];
        let expected = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: gwrepair
  namespace: shop
rules:
- apiGroups:
  - \"\"
  resources:
  - secrets
  verbs:
  - list
- apiGroups:
  - apps
  resources:
  - deployments
  - statefulsets
  verbs:
  - get
  - patch
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: gwrepair
  namespace: shop
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: gwrepair
subjects:
- kind: ServiceAccount
  name: deployer
  namespace: ci
";
        assert_eq!(Grant::new(missing, Some("system:serviceaccount:ci:deployer")).yaml(), expected);
    }

    #[test]
    fn what_is_missing_everywhere_becomes_a_cluster_role() {
        let grant = Grant::new([permission("list", "secrets", "")], None);
        assert!(grant.yaml().contains("kind: ClusterRole\nmetadata:\n  name: gwrepair\nrules:\n"), "{}", grant.yaml());
        assert!(!grant.yaml().contains("Binding") && grant.hint().ends_with("and bind it to this identity"));
        let bound = grant.to(Some("jane: a@b".into())).yaml();
        assert!(bound.contains("kind: ClusterRoleBinding\n"), "{bound}");
        assert!(
            bound.ends_with("- apiGroup: rbac.authorization.k8s.io\n  kind: User\n  name: 'jane: a@b'\n"),
            "{bound}"
        );
    }

    #[test]
    fn a_lacking_permission_reads_as_a_sentence() {
        let lacking = permission("patch", "deployments.apps", "shop");
        assert_eq!(sentence(&lacking), "this identity may not patch deployments.apps in namespace shop");
        assert_eq!(
            sentence(&permission("list", "secrets", "")),
            "this identity may not list secrets in the whole cluster"
        );
    }
}
