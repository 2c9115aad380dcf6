//! What can be wrong with a document. Texts are those of the Go library, its line numbers included.

/// Why a text could not be read as YAML.
///
/// `Display` prints what `sigs.k8s.io/yaml` prints.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text breaks YAML's grammar.
    #[error("yaml: {}{problem}", position(.line))]
    Syntax {
        /// The line Go names: absent for the first line and for unreadable characters, and the line *before* the
        /// offending token where the grammar, not the tokens, is violated.
        line: Option<usize>,
        /// What was found or missed.
        problem: &'static str,
    },
    /// An alias names an anchor that was not seen before it.
    #[error("yaml: unknown anchor '{name}' referenced")]
    UnknownAnchor {
        /// The name behind `*`.
        name: String,
    },
    /// An anchored value contains an alias to itself.
    #[error("yaml: anchor '{name}' value contains itself")]
    Cycle {
        /// The name behind `*`.
        name: String,
    },
    /// Nearly all of the document comes from aliases: a small text that stands for an enormous value.
    #[error("yaml: document contains excessive aliasing")]
    Aliasing,
    /// Collections are nested deeper than [`MAX_DEPTH`](crate::MAX_DEPTH).
    #[error("yaml: exceeded max depth of {}", crate::MAX_DEPTH)]
    Depth,
    /// A mapping or a sequence is used as a mapping key.
    #[error("yaml: invalid map key: {key}")]
    CollectionKey {
        /// The key in Go's syntax.
        key: String,
    },
    /// A mapping key has no JSON text: null, or an integer above the signed range.
    #[error("unsupported map key of type: {kind}, key: {key}, value: {value}")]
    Key {
        /// The Go type of the key.
        kind: &'static str,
        /// The key in Go's syntax.
        key: String,
        /// The value under that key in Go's syntax.
        value: String,
    },
    /// The value of a merge key (`<<`) is neither a mapping nor a list of mappings.
    #[error("yaml: map merge requires map or sequence of maps as the value")]
    Merge,
    /// A scalar does not have the type its tag claims.
    #[error("yaml: cannot decode {found} `{text}` as a {wanted}")]
    Tag {
        /// The tag the text resolves to.
        found: &'static str,
        /// The scalar.
        text: String,
        /// The tag that was written.
        wanted: &'static str,
    },
    /// A `!!binary` scalar is not base64.
    #[error("yaml: !!binary value contains invalid base64 data")]
    Base64,
    /// An infinity or not-a-number, which JSON cannot express.
    #[error("json: unsupported value: {value}")]
    Number {
        /// `+Inf`, `-Inf` or `NaN`.
        value: &'static str,
    },
}

impl Error {
    /// The line Go's message names, if it names one.
    pub fn line(&self) -> Option<usize> {
        if let Self::Syntax { line, .. } = self { *line } else { None }
    }

    pub(crate) fn unreadable(problem: &'static str) -> Self {
        Self::Syntax { line: None, problem }
    }
}

fn position(line: &Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}
