//! A live object as its controller left it: the few fields that readiness reads.

use serde_json::Value;

/// A live object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observed<'a>(&'a Value);

/// One entry of `status.conditions`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Condition<'a> {
    pub(super) kind: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

impl<'a> Observed<'a> {
    pub(super) fn of(object: &'a Value) -> Self {
        Self(object)
    }

    pub(super) fn group(self) -> &'a str {
        group_of(self.text("/apiVersion").unwrap_or_default())
    }

    pub(super) fn kind(self) -> &'a str {
        self.text("/kind").unwrap_or_default()
    }

    pub(super) fn text(self, path: &str) -> Option<&'a str> {
        self.0.pointer(path)?.as_str()
    }

    /// A whole number; anything else counts as absent.
    pub(super) fn number(self, path: &str) -> Option<i64> {
        self.0.pointer(path)?.as_i64()
    }

    /// A number under `status`, zero if absent.
    pub(super) fn count(self, name: &str) -> i64 {
        self.number(&format!("/status/{name}")).unwrap_or(0)
    }

    /// Whether any of these numbers under `status` is positive.
    pub(super) fn counts(self, names: &[&str]) -> bool {
        names.iter().any(|name| self.count(name) > 0)
    }

    pub(super) fn is_being_deleted(self) -> bool {
        self.text("/metadata/deletionTimestamp").is_some_and(|time| !time.is_empty())
    }

    pub(super) fn generation(self) -> Option<i64> {
        self.0.pointer("/metadata/generation").and_then(lenient_number)
    }

    pub(super) fn observed_generation(self) -> Option<i64> {
        self.0.pointer("/status/observedGeneration").and_then(lenient_number)
    }

    /// Says so if the controller has not seen the latest generation, as far as both are known.
    pub(super) fn unseen_generation(self) -> Option<String> {
        let (wanted, seen) = (self.generation()?, self.observed_generation()?);
        (wanted != seen).then(|| format!("generation {wanted} has not been observed, the latest is {seen}"))
    }

    /// The conditions; `None` if what stands there has another shape.
    pub(super) fn conditions(self) -> Option<Vec<Condition<'a>>> {
        let status = match self.0.get("status") {
            None | Some(Value::Null) => return Some(Vec::new()),
            Some(status) => status.as_object()?,
        };
        match status.get("conditions") {
            None | Some(Value::Null) => Some(Vec::new()),
            Some(conditions) => conditions.as_array()?.iter().map(Condition::of).collect(),
        }
    }

    /// The statuses of all containers, those for initialisation first.
    pub(super) fn containers(self) -> impl Iterator<Item = &'a Value> {
        let lists = ["/status/initContainerStatuses", "/status/containerStatuses"];
        lists.into_iter().filter_map(move |path| self.0.pointer(path)?.as_array()).flatten()
    }

    /// The statuses of the main containers.
    pub(super) fn main_containers(self) -> impl Iterator<Item = &'a Value> {
        let list = self.0.pointer("/status/containerStatuses").and_then(Value::as_array);
        list.into_iter().flatten()
    }
}

impl<'a> Condition<'a> {
    /// Absent and null fields are empty; `None` if a field is no text.
    fn of(value: &'a Value) -> Option<Self> {
        if value.is_null() {
            return Some(Self::default());
        }
        let fields = value.as_object()?;
        let text = |name| match fields.get(name) {
            None | Some(Value::Null) => Some(""),
            Some(value) => value.as_str(),
        };
        Some(Self { kind: text("type")?, status: text("status")?, reason: text("reason")?, message: text("message")? })
    }

    pub(super) fn is_true(self, kind: &str) -> bool {
        self.kind == kind && self.status == "True"
    }

    pub(super) fn is_false(self, kind: &str) -> bool {
        self.kind == kind && self.status == "False"
    }

    /// What the condition says, for people.
    pub(super) fn says(self) -> String {
        match (self.reason, self.message) {
            ("", "") => format!("condition {} is {}", self.kind, self.status),
            (text, "") | ("", text) => text.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        }
    }
}

/// The API group of an `apiVersion`; empty for the core group.
pub(super) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// A whole number, however it is written.
fn lenient_number(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| number.to_string().strip_suffix(".0")?.parse().ok()),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
