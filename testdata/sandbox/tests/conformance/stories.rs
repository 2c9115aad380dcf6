//! What is asked of both servers: every kind through its life, and the corners that programs run into.

use serde_json::{Value, json};

use super::exchange::{APPLY, Exchange, JSON_PATCH, MERGE, METADATA, METADATA_LIST, STRATEGIC, get, patch, send};

/// Requests that belong together, in a namespace of their own.
pub(crate) struct Story {
    pub(crate) name: String,
    pub(crate) exchanges: Vec<Exchange>,
    /// Whether controllers write to the same objects meanwhile.
    pub(crate) is_alive: bool,
}

const OBJECTS: &str = include_str!("../../conformance/objects.jsonl");
/// Kinds that controllers of the real cluster, and ours, write to.
const ALIVE: [&str; 10] = [
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "Job",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "HorizontalPodAutoscaler",
    "ResourceQuota",
    "CustomResourceDefinition",
];

pub(crate) fn all() -> Vec<Story> {
    let lines = OBJECTS.lines().map(|line| serde_json::from_str(line).expect("an object"));
    let mut stories: Vec<Story> = lines.map(|object| life(&object)).collect();
    stories.extend([
        custom_resource(),
        pages(),
        watches(),
        finalizers(),
        owners(),
        reviews(),
        nonsense(),
        bad_objects(),
        immutable(),
        lists_by_apply(),
        lists_by_strategic_merge(),
        limits(),
        names(),
        options(),
        terminating(),
    ]);
    stories
}

fn story(name: &str, exchanges: Vec<Exchange>) -> Story {
    Story { name: name.into(), exchanges, is_alive: false }
}

/// The collection of a kind.
fn collection(object: &Value) -> String {
    let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let lower = kind.to_lowercase();
    let plural = match lower.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if lower.ends_with('s') => format!("{lower}es"),
        None => format!("{lower}s"),
    };
    let is_global = object["metadata"]["name"].as_str().unwrap().contains("NAMESPACE");
    let place = if is_global { "" } else { "/namespaces/NAMESPACE" };
    format!("{root}/{version}{place}/{plural}")
}

fn with(object: &Value, change: &Value) -> Value {
    let mut changed = object.clone();
    json_patch::merge(&mut changed, change);
    changed
}

/// One object: where it is, and how it is named.
struct Subject<'a> {
    object: &'a Value,
    all: String,
    one: String,
    head: Value,
}

/// One kind, from its creation to its end.
fn life(object: &Value) -> Story {
    let kind = object["kind"].as_str().unwrap();
    let (all, name) = (collection(object), object["metadata"]["name"].as_str().unwrap());
    let head = json!({"apiVersion": object["apiVersion"], "kind": kind, "metadata": {"name": name}});
    let subject = Subject { object, one: format!("{all}/{name}"), all, head };
    let mut exchanges = subject.begins();
    exchanges.extend(subject.is_patched());
    exchanges.extend(subject.is_applied());
    exchanges.extend(subject.ends());
    // A definition goes once its objects are gone, and a claim once no Pod uses it: both take the real server a while.
    if kind != "CustomResourceDefinition" && kind != "PersistentVolumeClaim" {
        exchanges.extend(subject.comes_by_apply());
    }
    Story { name: kind.into(), exchanges, is_alive: ALIVE.contains(&kind) }
}

impl Subject<'_> {
    fn begins(&self) -> Vec<Exchange> {
        let Self { object, all, one, .. } = self;
        let name = object["metadata"]["name"].as_str().unwrap();
        let other = with(object, &json!({"metadata": {"name": format!("{name}2").replace("it2", "itt")}}));
        vec![
            get("get what is not there", one),
            send("create", "POST", format!("{all}?fieldManager=first"), Some((*object).clone())),
            send("create again", "POST", all, Some((*object).clone())),
            get("get", one),
            get("get the metadata", one).accepting(METADATA),
            get("list by label", format!("{all}?labelSelector=app%3Dit")),
            get("list by a label that none has", format!("{all}?labelSelector=app%3Dother")),
            get("list metadata by field", format!("{all}?fieldSelector=metadata.name%3D{name}"))
                .accepting(METADATA_LIST),
            send("try to create another", "POST", format!("{all}?dryRun=All&fieldManager=first"), Some(other)),
        ]
    }

    fn is_patched(&self) -> Vec<Exchange> {
        let by = |who: &str| format!("{}?fieldManager={who}", self.one);
        let tier = |value: Value| json!({"metadata": {"labels": {"tier": value}}});
        let note = json!({"metadata": {"annotations": {"n": "1"}}});
        let test = json!({"op": "test", "path": "/metadata/annotations/n", "value": "1"});
        let replace = json!({"op": "replace", "path": "/metadata/annotations/n", "value": "2"});
        vec![
            patch("merge a label in", by("second"), MERGE, tier(json!("x"))),
            patch("merge the same label in", by("third"), MERGE, tier(json!("x"))),
            patch("take the label away", by("second"), MERGE, tier(Value::Null)),
            patch("merge an annotation in strategically", by("second"), STRATEGIC, note),
            patch("replace by JSON patch", by("second"), JSON_PATCH, json!([test, replace])),
            patch("test by JSON patch in vain", by("second"), JSON_PATCH, json!([test])),
        ]
    }

    fn is_applied(&self) -> Vec<Exchange> {
        let Self { one, head, .. } = self;
        let mine = with(head, &json!({"metadata": {"labels": {"mine": "1"}, "annotations": {"note": "a"}}}));
        let theirs = with(head, &json!({"metadata": {"labels": {"app": "other"}}}));
        let (asked, forced) = (format!("{one}?fieldManager=applier"), format!("{one}?fieldManager=applier&force=true"));
        vec![
            patch("apply", &asked, APPLY, mine.clone()),
            patch("apply the same", &asked, APPLY, mine),
            patch("apply what another owns", &asked, APPLY, theirs.clone()),
            patch("try to apply by force", format!("{forced}&dryRun=All"), APPLY, theirs.clone()),
            patch("apply by force", &forced, APPLY, theirs),
            patch("apply without what was applied", &forced, APPLY, head.clone()),
            patch("apply without a manager", one, APPLY, head.clone()),
            get("get after all", one),
        ]
    }

    fn ends(&self) -> Vec<Exchange> {
        let one = &self.one;
        let only = |uid: &str| json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": {"uid": uid}});
        vec![
            send("delete with another's uid", "DELETE", one, Some(only("00000000-0000-0000-0000-000000000000"))),
            send("try to delete", "DELETE", format!("{one}?dryRun=All"), None),
            send("delete with its uid", "DELETE", one, Some(only("UID"))),
        ]
    }

    fn comes_by_apply(&self) -> Vec<Exchange> {
        let Self { object, one, .. } = self;
        let forced = format!("{one}?fieldManager=applier&force=true");
        let less = with(object, &json!({"metadata": {"labels": null}}));
        vec![
            get("get what is gone", one),
            send("delete what is gone", "DELETE", one, None),
            patch("apply what is not there", &forced, APPLY, (*object).clone()),
            get("get what was applied", one),
            patch("apply it again", &forced, APPLY, (*object).clone()),
            patch("apply less of it", &forced, APPLY, less),
        ]
    }
}

fn definition() -> Value {
    OBJECTS
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|object| object["kind"] == "CustomResourceDefinition")
        .unwrap()
}

fn custom_resource() -> Story {
    let all = "/apis/NAMESPACE.example.com/v1/namespaces/NAMESPACE/its";
    let one = format!("{all}/it");
    let object = json!({
        "apiVersion": "NAMESPACE.example.com/v1", "kind": "It", "metadata": {"name": "it"},
        "spec": {"size": 1, "list": [{"name": "a"}], "map": {"x": "1"}},
    });
    let definition = with(&definition(), &json!({"metadata": {"name": "its.NAMESPACE.example.com"}}));
    let mut exchanges = vec![
        send(
            "define",
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=first",
            Some(definition),
        ),
        Exchange { step: "until served".into(), ..get("until served", all) },
        send("create", "POST", format!("{all}?fieldManager=first"), Some(object.clone())),
        get("get", &one),
        patch("merge", format!("{one}?fieldManager=second"), MERGE, json!({"spec": {"size": 2, "map": {"y": "2"}}})),
        patch("merge a list", format!("{one}?fieldManager=second"), MERGE, json!({"spec": {"list": [{"name": "b"}]}})),
        patch("merge strategically", &one, STRATEGIC, json!({"spec": {"size": 3}})),
        patch("apply what others own", format!("{one}?fieldManager=applier"), APPLY, object.clone()),
        patch("apply by force", format!("{one}?fieldManager=applier&force=true"), APPLY, object.clone()),
        patch(
            "apply less",
            format!("{one}?fieldManager=applier&force=true"),
            APPLY,
            with(&object, &json!({"spec": {"map": null, "list": null}})),
        ),
        get("list", all),
        get("list metadata", all).accepting(METADATA_LIST),
        send("delete", "DELETE", &one, None),
        get("list none", all),
        get("list no metadata", all).accepting(METADATA_LIST),
    ];
    for exchange in &mut exchanges {
        exchange.path = exchange.path.replace("sandbox", "NAMESPACE");
    }
    Story { name: "a custom resource".into(), exchanges, is_alive: true }
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"n": name}}, "data": {"k": name}})
}

const MAPS: &str = "/api/v1/namespaces/NAMESPACE/configmaps";

fn pages() -> Story {
    let mut exchanges: Vec<_> = ["a", "b", "c", "d", "e"]
        .iter()
        .map(|name| send(&format!("create {name}"), "POST", format!("{MAPS}?fieldManager=x"), Some(map(name))))
        .collect();
    exchanges.extend([
        get("first page", format!("{MAPS}?limit=2&fieldSelector=metadata.name!%3Dkube-root-ca.crt")),
        send("create between", "POST", format!("{MAPS}?fieldManager=x"), Some(map("bb"))),
        get("second page", format!("{MAPS}?limit=2&fieldSelector=metadata.name!%3Dkube-root-ca.crt&continue=TOKEN")),
        get("third page", format!("{MAPS}?limit=2&fieldSelector=metadata.name!%3Dkube-root-ca.crt&continue=TOKEN")),
        get("a page that is large enough", format!("{MAPS}?limit=100&labelSelector=n%20in%20(a,b)"))
            .accepting(METADATA_LIST),
        get("a set that is not", format!("{MAPS}?labelSelector=n%20notin%20(a,b,c),n")).accepting(METADATA_LIST),
        get("a label that is not there", format!("{MAPS}?labelSelector=!n")).accepting(METADATA_LIST),
        get("a broken selector", format!("{MAPS}?labelSelector=n%20in%20a")),
        get("a field that is none", format!("{MAPS}?fieldSelector=data.k%3Da")),
        get("a broken token", format!("{MAPS}?limit=2&continue=x")),
        send("delete the collection by label", "DELETE", format!("{MAPS}?labelSelector=n%20in%20(a,b)"), None),
        get("what is left", format!("{MAPS}?labelSelector=n")).accepting(METADATA_LIST),
    ]);
    story("pages", exchanges)
}

fn watches() -> Story {
    let since = |step: &str, query: &str| get(step, format!("{MAPS}?watch=true&timeoutSeconds=1&{query}"));
    story(
        "watches",
        vec![
            send("create", "POST", format!("{MAPS}?fieldManager=x"), Some(map("a"))),
            patch("change", format!("{MAPS}/a?fieldManager=x"), MERGE, json!({"data": {"k": "2"}})),
            since("from its last version", "resourceVersion=VERSION"),
            since("what is there", "labelSelector=n%3Da"),
            since("what is there, in metadata", "labelSelector=n%3Da").accepting(METADATA),
            get("one object", format!("{MAPS}/a?watch=true&timeoutSeconds=1")),
            since(
                "with a list first",
                "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&labelSelector=n%3Da",
            ),
        ],
    )
}

fn finalizers() -> Story {
    let held = with(&map("held"), &json!({"metadata": {"finalizers": ["example.com/hold"]}}));
    story(
        "finalizers",
        vec![
            send("create", "POST", format!("{MAPS}?fieldManager=x"), Some(held)),
            send("delete", "DELETE", format!("{MAPS}/held"), None),
            get("it is going", format!("{MAPS}/held")),
            send("delete again", "DELETE", format!("{MAPS}/held"), None),
            patch("change while it goes", format!("{MAPS}/held?fieldManager=x"), MERGE, json!({"data": {"k": "2"}})),
            patch("let it go", format!("{MAPS}/held?fieldManager=x"), MERGE, json!({"metadata": {"finalizers": null}})),
            get("it is gone", format!("{MAPS}/held")),
        ],
    )
}

fn owners() -> Story {
    let delete = |step: &str, name: &str, policy: &str| {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
        send(step, "DELETE", format!("{MAPS}/{name}"), Some(options))
    };
    let owned = |name: &str, owner: &str| {
        with(
            &map(name),
            &json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": "UID", "blockOwnerDeletion": true}]}}),
        )
    };
    story(
        "owners",
        vec![
            send("create an owner", "POST", format!("{MAPS}?fieldManager=x"), Some(map("owner"))),
            send("create its dependent", "POST", format!("{MAPS}?fieldManager=x"), Some(owned("dependent", "owner"))),
            delete("delete the owner in the background", "owner", "Background"),
            get("the owner is gone", format!("{MAPS}/owner")),
            get("until gone: the dependent", format!("{MAPS}/dependent")),
            send("create a third", "POST", format!("{MAPS}?fieldManager=x"), Some(map("third"))),
            send("create its own", "POST", format!("{MAPS}?fieldManager=x"), Some(owned("fourth", "third"))),
            delete("delete the third in the foreground", "third", "Foreground"),
            get("until gone: the third", format!("{MAPS}/third")),
            get("until gone: the fourth", format!("{MAPS}/fourth")),
        ],
    )
}

fn reviews() -> Story {
    let review = |step: &str, kind: &str, spec: Value| {
        let path = format!("/apis/authorization.k8s.io/v1/{}s", kind.to_lowercase());
        send(step, "POST", path, Some(json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec})))
    };
    story(
        "reviews",
        vec![
            review(
                "one permission",
                "SelfSubjectAccessReview",
                json!({"resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "NAMESPACE"}}),
            ),
            review("all rules", "SelfSubjectRulesReview", json!({"namespace": "NAMESPACE"})),
            get("version", "/version"),
            get("the core group", "/api"),
            get("resources of a group", "/apis/apps/v1"),
            get("a group", "/apis/apps"),
            get("a group that is not there", "/apis/none.example.com"),
            get("a version that is not there", "/apis/apps/v0"),
        ],
    )
}

fn nonsense() -> Story {
    story(
        "nonsense",
        vec![
            get("no such path", "/nope"),
            get("no such resource", "/api/v1/namespaces/NAMESPACE/nopes"),
            get("no such resource in a group", "/apis/apps/v1/namespaces/NAMESPACE/nopes/a"),
            get("a cluster-scoped kind in a namespace", "/api/v1/namespaces/NAMESPACE/nodes"),
            get("no such subresource", format!("{MAPS}/a/nope")),
            send("a method that is not allowed", "PUT", MAPS, Some(map("a"))),
            send("a method that is not allowed on one", "POST", format!("{MAPS}/a"), Some(map("a"))),
            Exchange { body: Some("{".into()), ..send("half a body", "POST", MAPS, None) },
            Exchange { body: Some("[]".into()), ..send("a list as a body", "POST", MAPS, None) },
            Exchange { content_type: "text/plain", ..send("a body of another type", "POST", MAPS, Some(map("a"))) },
            patch("a patch of another type", format!("{MAPS}/a"), "application/json", json!({})),
            send("patch what is not there", "PATCH", format!("{MAPS}/a"), Some(json!({}))),
            patch("merge into what is not there", format!("{MAPS}/a"), MERGE, json!({"data": {}})),
            send("update what is not there", "PUT", format!("{MAPS}/a"), Some(map("a"))),
            send("delete what is not there", "DELETE", format!("{MAPS}/a"), None),
            get("a namespace that is not there", "/api/v1/namespaces/NAMESPACE-none"),
            get("list in a namespace that is not there", "/api/v1/namespaces/NAMESPACE-none/configmaps"),
            send(
                "create in a namespace that is not there",
                "POST",
                "/api/v1/namespaces/NAMESPACE-none/configmaps",
                Some(map("a")),
            ),
        ],
    )
}

fn bad_objects() -> Story {
    let create = |step: &str, object: Value| send(step, "POST", format!("{MAPS}?fieldManager=x"), Some(object));
    story(
        "bad objects",
        vec![
            create("another version", with(&map("a"), &json!({"apiVersion": "v2"}))),
            create("another kind", with(&map("a"), &json!({"kind": "Secret"}))),
            create("another namespace", with(&map("a"), &json!({"metadata": {"namespace": "default"}}))),
            create("no name", with(&map("a"), &json!({"metadata": {"name": null}}))),
            create("a bad name", with(&map("a"), &json!({"metadata": {"name": "A_b"}}))),
            create("a bad label", with(&map("a"), &json!({"metadata": {"labels": {"n": "-"}}}))),
            create(
                "a version that only the server gives",
                with(&map("a"), &json!({"metadata": {"resourceVersion": "5"}})),
            ),
            send(
                "an unknown field, strictly",
                "POST",
                format!("{MAPS}?fieldValidation=Strict"),
                Some(with(&map("a"), &json!({"dat": {}}))),
            ),
            send(
                "an unknown field, ignored",
                "POST",
                format!("{MAPS}?fieldValidation=Ignore&fieldManager=x"),
                Some(with(&map("a"), &json!({"dat": {}}))),
            ),
            send("another name than the URL's", "PUT", format!("{MAPS}/a"), Some(map("b"))),
            send(
                "another version than the stored one",
                "PUT",
                format!("{MAPS}/a"),
                Some(with(&map("a"), &json!({"metadata": {"resourceVersion": "1"}}))),
            ),
            send(
                "another's uid",
                "PUT",
                format!("{MAPS}/a"),
                Some(with(&map("a"), &json!({"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}}))),
            ),
            send(
                "update",
                "PUT",
                format!("{MAPS}/a?fieldManager=y"),
                Some(with(&map("a"), &json!({"data": {"k": "2"}}))),
            ),
            send(
                "update to the same",
                "PUT",
                format!("{MAPS}/a?fieldManager=z"),
                Some(with(&map("a"), &json!({"data": {"k": "2"}}))),
            ),
            patch("patch the name", format!("{MAPS}/a"), MERGE, json!({"metadata": {"name": "b"}})),
            patch(
                "patch an old version",
                format!("{MAPS}/a"),
                MERGE,
                json!({"metadata": {"resourceVersion": "1"}, "data": {"k": "3"}}),
            ),
            patch(
                "apply another version",
                format!("{MAPS}/a?fieldManager=x"),
                APPLY,
                with(&map("a"), &json!({"metadata": {"resourceVersion": "1"}})),
            ),
            patch(
                "apply managed fields",
                format!("{MAPS}/a?fieldManager=x"),
                APPLY,
                with(&map("a"), &json!({"metadata": {"managedFields": []}})),
            ),
            send(
                "delete another version",
                "DELETE",
                format!("{MAPS}/a"),
                Some(json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"resourceVersion": "1"}})),
            ),
            patch(
                "clear the managers",
                format!("{MAPS}/a?fieldManager=x"),
                MERGE,
                json!({"metadata": {"managedFields": [{}]}}),
            ),
        ],
    )
}

fn object_of(kind: &str) -> Value {
    OBJECTS
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|object| object["kind"] == kind)
        .unwrap()
}

fn immutable() -> Story {
    let changes = [
        ("Deployment", json!({"spec": {"selector": {"matchLabels": {"b": "c"}}}})),
        ("StatefulSet", json!({"spec": {"serviceName": "other"}})),
        ("StatefulSet", json!({"spec": {"selector": {"matchLabels": {"b": "c"}}}})),
        ("StatefulSet", json!({"spec": {"podManagementPolicy": "Parallel"}})),
        ("Job", json!({"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}})),
        ("Secret", json!({"type": "other"})),
        ("PersistentVolumeClaim", json!({"spec": {"accessModes": ["ReadWriteMany"]}})),
        ("RoleBinding", json!({"roleRef": {"name": "other"}})),
        ("Service", json!({"spec": {"clusterIP": "10.0.0.77"}})),
        ("StorageClass", json!({"provisioner": "other"})),
    ];
    let mut exchanges = Vec::new();
    for (kind, change) in changes {
        let object = object_of(kind);
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        exchanges.push(send(
            &format!("create a {kind}"),
            "POST",
            format!("{}?fieldManager=x", collection(&object)),
            Some(object.clone()),
        ));
        exchanges.push(patch(
            &format!("change a {kind}"),
            format!("{}/{name}?fieldManager=x", collection(&object)),
            MERGE,
            change,
        ));
    }
    exchanges.extend([
        send(
            "create an immutable map",
            "POST",
            format!("{MAPS}?fieldManager=x"),
            Some(with(&map("i"), &json!({"immutable": true}))),
        ),
        patch("change the immutable map", format!("{MAPS}/i?fieldManager=x"), MERGE, json!({"data": {"k": "2"}})),
    ]);
    Story { name: "immutable fields".into(), exchanges, is_alive: true }
}

fn deployment(containers: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}},
                 "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}},
    })
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/NAMESPACE/deployments";

fn lists_by_apply() -> Story {
    let apply = |step: &str, who: &str, containers: Value| {
        patch(step, format!("{DEPLOYMENTS}/web?fieldManager={who}&force=true"), APPLY, deployment(containers))
    };
    let a = json!({"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}], "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]});
    let b = json!({"name": "b", "image": "b:1", "args": ["1", "2"]});
    Story {
        name: "lists by server-side apply".into(),
        is_alive: true,
        exchanges: vec![
            apply("create", "one", json!([a, b])),
            apply("another order", "one", json!([b, a])),
            apply("one image by another", "two", json!([{"name": "b", "image": "b:2"}])),
            apply("one less by the first", "one", json!([a])),
            apply("one more in the middle", "one", json!([{"name": "c", "image": "c:1"}, a])),
            apply("other arguments", "one", json!([a, {"name": "b", "image": "b:2", "args": ["3"]}])),
            apply(
                "fewer ports",
                "one",
                json!([with(&a, &json!({"ports": [{"containerPort": 80, "protocol": "UDP"}]}))]),
            ),
            patch(
                "scaled by a person",
                format!("{DEPLOYMENTS}/web?fieldManager=person"),
                MERGE,
                json!({"spec": {"minReadySeconds": 3}}),
            ),
            patch(
                "refused to another",
                format!("{DEPLOYMENTS}/web?fieldManager=two"),
                APPLY,
                with(
                    &deployment(json!([{"name": "a", "image": "a:2"}])),
                    &json!({"spec": {"minReadySeconds": 4, "replicas": 1}}),
                ),
            ),
        ],
    }
}

fn lists_by_strategic_merge() -> Story {
    let merge = |step: &str, change: Value| {
        patch(
            step,
            format!("{DEPLOYMENTS}/web?fieldManager=x"),
            STRATEGIC,
            json!({"spec": {"template": {"spec": change}}}),
        )
    };
    let containers = json!([{"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}, {"name": "b", "image": "b:1", "args": ["1"]}]);
    let volumes = with(
        &deployment(containers),
        &json!({"spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}}}),
    );
    Story {
        name: "lists by strategic merge".into(),
        is_alive: true,
        exchanges: vec![
            send("create", "POST", format!("{DEPLOYMENTS}?fieldManager=x"), Some(volumes)),
            merge("an image", json!({"containers": [{"name": "b", "image": "b:2"}]})),
            merge(
                "one more, in order",
                json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}, {"name": "b"}], "containers": [{"name": "c", "image": "c:1"}]}),
            ),
            merge("one less", json!({"containers": [{"name": "c", "$patch": "delete"}]})),
            merge(
                "a variable",
                json!({"containers": [{"name": "a", "$setElementOrder/env": [{"name": "Y"}, {"name": "Z"}, {"name": "X"}], "env": [{"name": "Z", "value": "3"}]}]}),
            ),
            merge(
                "a volume of another kind",
                json!({"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}, "emptyDir": null}]}),
            ),
            merge("arguments", json!({"containers": [{"name": "b", "args": ["2", "3"]}]})),
            merge("only one", json!({"containers": [{"$patch": "replace"}, {"name": "z", "image": "z:1"}]})),
            patch(
                "a label away",
                format!("{DEPLOYMENTS}/web?fieldManager=x"),
                STRATEGIC,
                json!({"spec": {"template": {"metadata": {"labels": {"x": null}}}}}),
            ),
        ],
    }
}

fn limits() -> Story {
    let large = |size: usize| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "large"}, "stringData": {"k": "x".repeat(size)}});
    let all = "/api/v1/namespaces/NAMESPACE/secrets";
    story(
        "limits",
        vec![
            send("a byte too large", "POST", format!("{all}?fieldManager=x"), Some(large((1 << 20) + 1))),
            send("too large for a request", "POST", all, Some(large(4 << 20))).accepting(METADATA),
            send("just right", "POST", format!("{all}?fieldManager=x"), Some(large(1 << 20))).accepting(METADATA),
            patch(
                "a map that is too large",
                format!("{MAPS}/m?fieldManager=x"),
                APPLY,
                with(&map("m"), &json!({"data": {"k": "x".repeat(1 << 20)}})),
            ),
        ],
    )
}

fn names() -> Story {
    let names = ["a.b", "1", "a-", "a--b", "", "a/b", "A", "a_b"];
    let create = |name: &&str| {
        send(
            &format!("the name {name:?}"),
            "POST",
            format!("{MAPS}?dryRun=All&fieldManager=x"),
            Some(map("x")).map(|map| with(&map, &json!({"metadata": {"name": name, "labels": null}}))),
        )
    };
    story("names", names.iter().map(create).collect())
}

fn options() -> Story {
    story(
        "options",
        vec![
            send("create", "POST", format!("{MAPS}?fieldManager=x"), Some(map("a"))),
            send(
                "delete with options in the query",
                "DELETE",
                format!("{MAPS}/a?propagationPolicy=Foreground&dryRun=All"),
                None,
            ),
            send(
                "delete with a try in the options",
                "DELETE",
                format!("{MAPS}/a"),
                Some(json!({"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]})),
            ),
            get("it is still there", format!("{MAPS}/a")),
            get("as metadata only", format!("{MAPS}/a")).accepting(METADATA),
            patch("patched, as metadata only", format!("{MAPS}/a?fieldManager=x"), MERGE, json!({"data": {"k": "9"}}))
                .accepting(METADATA),
            patch("try to merge", format!("{MAPS}/a?fieldManager=x&dryRun=All"), MERGE, json!({"data": {"k": "10"}})),
            get("nothing was changed by it", format!("{MAPS}/a")),
            send("no field manager", "PUT", format!("{MAPS}/a"), Some(with(&map("a"), &json!({"data": {"k": "11"}})))),
        ],
    )
}

fn terminating() -> Story {
    let name = "NAMESPACE-two";
    let maps = format!("/api/v1/namespaces/{name}/configmaps");
    let held = with(&map("held"), &json!({"metadata": {"finalizers": ["example.com/hold"]}}));
    story(
        "a namespace that goes",
        vec![
            send(
                "create",
                "POST",
                "/api/v1/namespaces?fieldManager=x",
                Some(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})),
            ),
            send("create in it", "POST", format!("{maps}?fieldManager=x"), Some(held)),
            send("delete", "DELETE", format!("/api/v1/namespaces/{name}"), None),
            send("create in what goes", "POST", &maps, Some(map("late"))),
            get("until going: what is held", format!("{maps}/held")),
            patch("let it go", format!("{maps}/held?fieldManager=x"), MERGE, json!({"metadata": {"finalizers": null}})),
            get("until gone: the namespace", format!("/api/v1/namespaces/{name}")),
        ],
    )
}
