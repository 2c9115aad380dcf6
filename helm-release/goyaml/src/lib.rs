//! YAML as Go programs of the Kubernetes world read and write it: `sigs.k8s.io/yaml`, which is go-yaml v2 with JSON's types.
//!
//! YAML 1.1 words (`yes`, `off`, `0o17`) mean what they mean there, keys become strings, and what JSON cannot say is
//! an error. Only the first document of a text is read.
//!
//! ```
//! let value = goyaml::parse(b"on: yes\nport: 0o17\nlist: [1.0, ~]\n")?;
//! assert_eq!(value, serde_json::json!({"true": true, "port": 15, "list": [1, null]}));
//! # Ok::<(), goyaml::Error>(())
//! ```

mod compose;
mod emit;
mod order;
mod resolve;
mod style;

use serde_json::Value;
use thiserror::Error as ThisError;

/// Why a text is not YAML, in Go's words where Go has some.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// Not YAML.
    #[error("yaml: {}{problem}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
    Syntax {
        /// Which line, from 1, where Go tells.
        line: Option<u64>,
        /// What is wrong.
        problem: String,
    },
    /// An alias to nothing.
    #[error("yaml: unknown anchor '{0}' referenced")]
    UnknownAnchor(String),
    /// An alias inside the very value that it names.
    #[error("yaml: anchor '{0}' value contains itself")]
    SelfReference(String),
    /// Aliases that multiply without measure.
    #[error("yaml: document contains excessive aliasing")]
    ExcessiveAliasing,
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("yaml: nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// `<<` with neither a map nor a list of maps.
    #[error("yaml: map merge requires map or sequence of maps as the value")]
    Merge,
    /// A map or a list as a key.
    #[error("yaml: invalid map key: {0}")]
    InvalidKey(String),
    /// A key that JSON has no form for.
    #[error("unsupported map key of type: {0}")]
    UnsupportedKey(String),
    /// A tag that the value does not fit.
    #[error("yaml: cannot decode !!{found} `{text}` as a !!{wanted}")]
    Tag {
        /// What the text is.
        found: &'static str,
        /// The text.
        text: String,
        /// What the tag says.
        wanted: String,
    },
    /// A `!!binary` value that is no base64.
    #[error("yaml: !!binary value contains invalid base64 data")]
    Binary,
    /// A number that JSON has no form for.
    #[error("json: unsupported value: {0}")]
    UnsupportedNumber(&'static str),
}

/// The deepest nesting that is read. Go allows more, and its stack grows; ours does not.
pub const MAX_DEPTH: usize = 256;

/// Writes a value as `sigs.k8s.io/yaml` does: block style, sorted keys, a final line break.
///
/// Mirrors go-yaml v2's encoder and emitter, which YAML that Kubernetes programs print comes from.
#[must_use]
pub fn emit(value: &Value) -> String {
    emit::document(value)
}

/// Reads the first document of `text`; an empty text is null.
///
/// # Errors
/// [`Error`], in the words of Go.
pub fn parse(text: &[u8]) -> Result<Value, Error> {
    compose::document(text)
}
