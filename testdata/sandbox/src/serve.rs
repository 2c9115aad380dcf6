//! From a request to an answer.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use http::{HeaderValue, Request, Response, StatusCode, header};
use serde_json::{Value, json};

use crate::Shared;
use crate::call::{Call, Place};
use crate::openapi;
use crate::protobuf;
use crate::read::shown;
use crate::refusal::Refusal;
use crate::review;
use crate::state::State;
use crate::watch;

const VERSION: &str = include_str!("../api/version.json");
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const BODY_LIMIT: usize = 64 << 20;

/// Carries a request out.
pub(crate) async fn answer(shared: &Arc<Shared>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_LIMIT).await else {
        return refused(shared, &Refusal::bad_request("the body broke off"));
    };
    let mut state = shared.lock();
    shared.tick(&mut state);
    let path = parts.uri.path();
    let accept = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if let Some(found) = about(&state, path, accept) {
        let mut response = respond(&state, StatusCode::OK, Body::from(found.to_string()));
        // A client takes the answer for the older form unless it is told.
        if found["kind"] == "APIGroupDiscoveryList" {
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(DISCOVERY));
        }
        return response;
    }
    if let Some(place) = path.strip_prefix("/apis/authorization.k8s.io/v1/")
        && place.starts_with("self")
    {
        let asked = protobuf::decode(&body).or_else(|| serde_json::from_slice(&body).ok()).unwrap_or_default();
        return match review::answer(&state.denials, &asked) {
            Some(answer) => respond(&state, StatusCode::CREATED, Body::from(answer.to_string())),
            None => refuse(&state, &Refusal::bad_request("no review of a kind that is known")),
        };
    }
    let Some(place) = Place::parse(path) else {
        // A version that a group does not have is another thing than a group that is not there.
        if let ["apis", group, _] = path.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>()[..]
            && state.kinds.groups().iter().any(|known| known["name"] == group)
        {
            return refuse(&state, &Refusal::no_such_resource());
        }
        return plain(&state, StatusCode::NOT_FOUND, "404 page not found\n");
    };
    let query = parts.uri.query().unwrap_or_default();
    let call = Call::new(&state.kinds, parts.method, place, query, &parts.headers, body);
    let answered = call.and_then(|call| objects(shared, &mut state, call));
    let response = match answered {
        Ok((code, body)) => respond(&state, code, body),
        Err(refusal) => refuse(&state, &refusal),
    };
    shared.tick(&mut state);
    response
}

/// What the server tells of itself.
fn about(state: &State, path: &str, accept: &str) -> Option<Value> {
    let aggregated = accept.contains("as=APIGroupDiscoveryList") && accept.contains("v=v2");
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        ["version"] => serde_json::from_str(VERSION).ok(),
        ["healthz" | "livez" | "readyz"] => Some(json!("ok")),
        ["api"] if aggregated => Some(state.kinds.aggregated(true)),
        ["apis"] if aggregated => Some(state.kinds.aggregated(false)),
        ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"]})),
        ["apis"] => Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": state.kinds.groups()})),
        ["api", "v1"] => openapi::resources(&state.kinds, "", "v1"),
        ["apis", name] => state.kinds.groups().into_iter().find(|known| known["name"] == *name).map(|mut group| {
            group["kind"] = json!("APIGroup");
            group["apiVersion"] = json!("v1");
            group
        }),
        ["apis", group, version] => openapi::resources(&state.kinds, group, version),
        ["openapi", "v3", rest @ ..] => openapi::document(&state.kinds, rest),
        _ => None,
    }
}

fn objects(shared: &Arc<Shared>, state: &mut State, call: Call) -> Result<(StatusCode, Body), Refusal> {
    let name = call.name.clone().unwrap_or_default();
    let (resource, namespace) = (&call.resource, call.namespace.as_deref());
    review::check(&state.denials, call.verb(), resource, namespace, call.name.as_deref())?;
    let whole = |value: Value| Body::from(format!("{value}\n"));
    let ok = |value: Value| Ok((StatusCode::OK, whole(value)));
    match call.verb() {
        "get" => ok(state.get(&call, &name)?),
        "list" => ok(state.list(&call)?),
        "watch" => Ok((StatusCode::OK, watch::open(shared, state, call)?)),
        "create" => state.create(&call).map(|(code, object)| (code, whole(shown(&call, object)))),
        "update" => state.update(&call).map(|(code, object)| (code, whole(shown(&call, object)))),
        "patch" => state.patch(&call).map(|(code, object)| (code, whole(shown(&call, object)))),
        "delete" => state.delete(&call).map(|(code, object)| (code, whole(object))),
        "deletecollection" => state.delete_collection(&call).map(|(code, object)| (code, whole(object))),
        _ => Err(Refusal::method_not_allowed()),
    }
}

fn respond(state: &State, code: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Ok(date) = HeaderValue::from_str(&state.clock.date()) {
        headers.insert(header::DATE, date);
    }
    response
}

fn refuse(state: &State, refusal: &Refusal) -> Response<Body> {
    respond(state, refusal.code, Body::from(format!("{}\n", refusal.body())))
}

fn refused(shared: &Shared, refusal: &Refusal) -> Response<Body> {
    refuse(&shared.lock(), refusal)
}

fn plain(state: &State, code: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = respond(state, code, Body::from(text));
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
