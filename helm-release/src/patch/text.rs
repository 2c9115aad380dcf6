//! Values as Go's `%v` prints them: the order of merging lists and the error texts depend on it.

use serde_json::{Number, Value};

/// The types strategic merge tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Bool,
    Integer,
    Float,
    String,
    List,
    Map,
}

impl Type {
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(number) if number.is_f64() => Self::Float,
            Value::Number(_) => Self::Integer,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Map,
        }
    }

    /// The Go type behind it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Null => "%!s(<nil>)",
            Self::Bool => "bool",
            Self::Integer => "int64",
            Self::Float => "float64",
            Self::String => "string",
            Self::List => "[]interface {}",
            Self::Map => "map[string]interface {}",
        }
    }
}

/// One value, as `%v` prints it.
pub(super) fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => list_text(items),
        Value::Object(fields) => map_text(fields),
    }
}

/// A map, as `%v` prints it: keys in order.
pub(super) fn map_text(fields: &serde_json::Map<String, Value>) -> String {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by_key(|(key, _)| *key);
    let pairs = sorted.into_iter().map(|(key, value)| format!("{key}:{}", go_text(value)));
    format!("map[{}]", pairs.collect::<Vec<_>>().join(" "))
}

/// A list, as `%v` prints it.
pub(super) fn list_text(items: &[Value]) -> String {
    let items = items.iter().map(go_text);
    format!("[{}]", items.collect::<Vec<_>>().join(" "))
}

fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float_text(float),
        _ => number.to_string(),
    }
}

/// The shortest form; with an exponent of at least two digits outside 1e-4 ≤ |x| < 1e21.
fn float_text(float: f64) -> String {
    if float == 0.0 || (1e-4..1e21).contains(&float.abs()) {
        return float.to_string();
    }
    let short = format!("{float:e}");
    let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{digits}e-{exponent:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_read_as_go_prints_them() {
        let value = json!({"b": [1, "x", null, true], "a": {"f": 1.5}});
        assert_eq!(go_text(&value), "map[a:map[f:1.5] b:[1 x <nil> true]]");
    }

    #[test]
    fn large_and_small_floats_have_exponents() {
        assert_eq!(go_text(&json!(1e21)), "1e+21");
        assert_eq!(go_text(&json!(1.5e-7)), "1.5e-07");
        assert_eq!(go_text(&json!(100_000.5)), "100000.5");
    }
}
