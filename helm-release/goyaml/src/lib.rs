//! YAML as Go programs of the Kubernetes world read and write it: `sigs.k8s.io/yaml`, which is go-yaml v2 with JSON's types.
//!
//! Those programs agree on one Go library, and its answers are neither those of YAML 1.1 nor of YAML 1.2: `y`, `on` and
//! `No` are booleans, `010` is eight, `1_000` a thousand, `2001-01-01` a string, a key that occurs twice counts the second
//! time, and `<<` overrides what was written before it. This crate gives the same answers, errors included.
//!
//! ```
//! let value = goyaml::parse("on: yes\nport: 0o17\nlist: [1.0, ~]\n")?;
//! assert_eq!(value, serde_json::json!({"true": true, "port": 15, "list": [1, null]}));
//! assert_eq!(goyaml::emit(&value), "list:\n- 1\n- null\nport: 15\n\"true\": true\n");
//! # Ok::<(), goyaml::Error>(())
//! ```
//!
//! # How it works
//!
//! Reading: bytes → characters (`reader`) → tokens (`scanner`, `scalar`, `property`) → events (`parser`) → nodes
//! (`compose`) → Go's data (`decode`, `resolve`) → JSON (`json`). The rules up to events are libyaml's, from which Go's
//! package descends, with Go's amendments. Writing is `emit`.
//!
//! # Guarantees
//!
//! Any bytes get an answer, in bounded stack and without a panic; aliases are counted as Go counts them.
//!
//! # Differences
//!
//! * Nesting ends at [`MAX_DEPTH`] levels, Go's at 10 000.
//! * Keys that differ in type only (`1` and `"1"`) meet in one JSON key. Go picks one of the values at random, we the string's.

mod compose;
mod decode;
mod emit;
mod error;
mod json;
mod number;
mod order;
mod parser;
mod property;
mod reader;
mod resolve;
mod scalar;
mod scanner;
mod style;
mod timestamp;
mod token;
mod value;

use serde_json::Value;

pub use error::Error;

/// How deep collections may nest, aliases expanded.
pub const MAX_DEPTH: usize = 256;

/// The first document of `text` as JSON, what `YAMLToJSON` makes of it. A text without a document is null.
///
/// # Errors
/// An [`Error`] that prints what Go prints.
pub fn parse(text: impl AsRef<[u8]>) -> Result<Value, Error> {
    match compose::compose(text.as_ref())? {
        Some(document) => json::to_json(decode::decode(&document)?),
        None => Ok(Value::Null),
    }
}

/// Writes a value as `sigs.k8s.io/yaml` does: block style, sorted keys, a final line break.
///
/// Mirrors go-yaml v2's encoder and emitter, which YAML that Kubernetes programs print comes from.
#[must_use]
pub fn emit(value: &Value) -> String {
    emit::document(value)
}
