//! The API server's refusals, in its words.

use http::StatusCode;
use serde_json::{Value, json};

use crate::kinds::Resource;

/// A `Status` that says no.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) code: StatusCode,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Value>,
}

/// One thing that is wrong with an object.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) field: String,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Refusal {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>, details: Option<Value>) -> Self {
        Self { code, reason, message: message.into(), details }
    }

    pub(crate) fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            body["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            body["details"] = details.clone();
        }
        body
    }

    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.dotted());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message, Some(named(resource, name)))
    }

    /// A path that serves nothing.
    pub(crate) fn no_such_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message, Some(json!({})))
    }

    pub(crate) fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource.dotted());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message, Some(named(resource, name)))
    }

    pub(crate) fn modified(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.dotted());
        Self::new(StatusCode::CONFLICT, "Conflict", message, Some(named(resource, name)))
    }

    /// A precondition of a delete that is not met.
    pub(crate) fn unmet(resource: &Resource, name: &str, why: &str) -> Self {
        let mut refusal = Self::conflict(resource, name, why);
        refusal.message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.dotted_kind());
        if let Some(details) = &mut refusal.details {
            details["kind"] = json!(resource.kind);
        }
        refusal
    }

    /// Fields that other managers own: pairs of the words for the manager and the path.
    pub(crate) fn owned(conflicts: &[(String, String)]) -> Self {
        let mut managers: Vec<&str> = conflicts.iter().map(|(manager, _)| manager.as_str()).collect();
        managers.dedup();
        let fields = |wanted: &str| -> Vec<&str> {
            conflicts.iter().filter(|(manager, _)| manager == wanted).map(|(_, path)| path.as_str()).collect()
        };
        let text = match conflicts {
            [(manager, path)] => format!("conflict with {manager}: {path}"),
            _ => {
                let one = |manager: &&str| format!("conflicts with {manager}:\n- {}", fields(manager).join("\n- "));
                managers.iter().map(one).collect::<Vec<_>>().join("\n")
            }
        };
        let noun = if conflicts.len() == 1 { "conflict" } else { "conflicts" };
        let message = format!("Apply failed with {} {noun}: {text}", conflicts.len());
        let causes: Vec<_> = conflicts
            .iter()
            .map(|(manager, field)| {
                json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": field})
            })
            .collect();
        Self::new(StatusCode::CONFLICT, "Conflict", message, Some(json!({ "causes": causes })))
    }

    pub(crate) fn invalid(resource: &Resource, name: &str, faults: &[Fault]) -> Self {
        let kind = resource.dotted_kind();
        let one = |fault: &Fault| match fault.field.as_str() {
            "" => fault.message.clone(),
            field => format!("{field}: {}", fault.message),
        };
        let list = match faults {
            [fault] => one(fault),
            _ => format!("[{}]", faults.iter().map(one).collect::<Vec<_>>().join(", ")),
        };
        let message = format!("{kind} {name:?} is invalid: {list}");
        let causes: Vec<_> = faults
            .iter()
            .map(|fault| json!({"reason": fault.reason, "message": fault.message, "field": fault.field}))
            .collect();
        let mut details = named(resource, name);
        details["kind"] = json!(resource.kind);
        details["causes"] = json!(causes);
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message, Some(details))
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message, None)
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message, Some(json!({})))
    }

    pub(crate) fn unknown_format(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message, None)
    }

    /// A patch in a form that no patch has.
    pub(crate) fn unknown_patch() -> Self {
        let message = "415: Unsupported Media Type";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message, Some(json!({})))
    }

    pub(crate) fn too_large() -> Self {
        let message = "Request entity too large: limit is 3145728";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message, None)
    }

    /// A list that was begun too long ago.
    pub(crate) fn continue_expired(token: &str) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a \
                       new list without the continue parameter, or use the continue token in this response to retrieve \
                       the remainder of the results. Continuing with the provided token results in an inconsistent \
                       list - objects that were created, modified, or deleted between the time the first chunk was \
                       returned and now may show up in the list.";
        let mut refusal = Self::new(StatusCode::GONE, "Expired", message, None);
        refusal.details = Some(json!({ "continue": token }));
        refusal
    }

    pub(crate) fn version_gone(wanted: u64, oldest: u64) -> Self {
        let message = format!("too old resource version: {wanted} ({oldest})");
        Self::new(StatusCode::GONE, "Expired", message, None)
    }

    pub(crate) fn forbidden(resource: &Resource, name: Option<&str>, why: &str) -> Self {
        let subject = match name {
            Some(name) => format!("{} {name:?}", resource.dotted()),
            None => resource.dotted(),
        };
        let details = named(resource, name.unwrap_or_default());
        Self::new(StatusCode::FORBIDDEN, "Forbidden", format!("{subject} is forbidden: {why}"), Some(details))
    }

    pub(crate) fn namespace_going(resource: &Resource, name: &str, namespace: &str) -> Self {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut refusal = Self::forbidden(resource, Some(name), &why);
        let cause = json!({
            "reason": "NamespaceTerminating", "field": "metadata.namespace",
            "message": format!("namespace {namespace} is being terminated"),
        });
        if let Some(details) = &mut refusal.details {
            details["causes"] = json!([cause]);
        }
        refusal
    }

    /// A patch that does not fit the object.
    pub(crate) fn rejected() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message, Some(json!({})))
    }

    /// Options of a request that are wrong.
    pub(crate) fn invalid_options(kind: &str, faults: &[Fault]) -> Self {
        let list: Vec<_> = faults.iter().map(|fault| format!("{}: {}", fault.field, fault.message)).collect();
        let message = format!("{kind} {:?} is invalid: {}", "", list.join(", "));
        let causes: Vec<_> = faults
            .iter()
            .map(|fault| json!({"reason": fault.reason, "message": fault.message, "field": fault.field}))
            .collect();
        let (name, group) = kind.split_once('.').unwrap_or((kind, ""));
        let details = json!({"kind": name, "group": group, "causes": causes});
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message, Some(details))
    }

    /// A failure of the server that it blames on the request.
    pub(crate) fn failure_of(message: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message, None)
    }
}

impl Fault {
    pub(crate) fn required(field: &str, why: &str) -> Self {
        let message = if why.is_empty() { "Required value".into() } else { format!("Required value: {why}") };
        Self { field: field.into(), reason: "FieldValueRequired", message }
    }

    pub(crate) fn invalid(field: &str, value: &Value, why: &str) -> Self {
        Self { field: field.into(), reason: "FieldValueInvalid", message: format!("Invalid value: {value}: {why}") }
    }

    pub(crate) fn forbidden(field: &str, why: &str) -> Self {
        Self { field: field.into(), reason: "FieldValueForbidden", message: format!("Forbidden: {why}") }
    }

    pub(crate) fn too_long(field: &str, limit: usize) -> Self {
        let message = format!("Too long: may not be more than {limit} bytes");
        Self { field: field.into(), reason: "FieldValueTooLong", message }
    }
}

/// What a refusal is about.
fn named(resource: &Resource, name: &str) -> Value {
    let mut details = json!({ "kind": resource.plural });
    if !name.is_empty() {
        details["name"] = json!(name);
    }
    if !resource.group.is_empty() {
        details["group"] = json!(resource.group);
    }
    details
}
