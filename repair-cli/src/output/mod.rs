//! What a command shows: a table and its JSON from the same value. Data goes to stdout, everything else to stderr.

mod table;
mod text;

pub(crate) use table::{Cell, Table};
pub(crate) use text::{Emphasis, Page, age, ago, go_ansic, go_string, plain, stamp};

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use crate::error::{Failure, written};

/// The version of every JSON and YAML document: additive changes only.
const API_VERSION: &str = "gwrepair/v1";

/// How a value is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// For people with wide screens.
    Wide,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// `NAMESPACE/NAME`, one a line: every command takes it as RELEASE.
    Name,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How much of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Normal,
    Wide,
}

/// A value that a command shows.
pub(crate) trait View: Serialize {
    /// The `kind` of its document.
    const KIND: &'static str;

    /// It as text, styled.
    fn text(&self, width: Width) -> String;

    /// The releases that it is about, as `NAMESPACE/NAME`.
    fn names(&self) -> Vec<String>;
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a, T> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

impl Color {
    /// Sets what stdout and stderr do with styles from here on.
    pub(crate) fn apply(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// Shows a value on stdout.
pub(crate) fn show<T: View>(view: &T, format: Format) -> Result<(), Failure> {
    print(&render(view, format)?)
}

fn render<T: View>(view: &T, format: Format) -> Result<String, Failure> {
    let document = Document { api_version: API_VERSION, kind: T::KIND, body: view };
    match format {
        Format::Table => Ok(view.text(Width::Normal)),
        Format::Wide => Ok(view.text(Width::Wide)),
        Format::Json => json(&document),
        Format::Yaml => yaml(&document),
        Format::Name => Ok(view.names().into_iter().map(|name| name + "\n").collect()),
    }
}

/// Shows one of many values on stdout, as they come: JSON on one line, YAML as one document of a stream. Answers whether
/// somebody reads on.
pub(crate) fn follow<T: View>(view: &T, format: Format) -> Result<bool, Failure> {
    let text = match format {
        Format::Json => json_line(&Document { api_version: API_VERSION, kind: T::KIND, body: view })?,
        Format::Yaml => format!("---\n{}", render(view, format)?),
        Format::Table | Format::Wide | Format::Name => render(view, format)?,
    };
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(why) if why.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        other => written(other).map(|()| true),
    }
}

/// Writes to stdout.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = anstream::stdout().lock();
    written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Writes to stderr. That it cannot be written is nothing that anybody could be told.
pub(crate) fn say(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Whether a person can be asked: something to read from, and something to ask on.
pub(crate) fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// A value as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|why| Failure::new("could not write JSON").because(&why))?;
    Ok(text + "\n")
}

fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value).map_err(|why| Failure::new("could not write JSON").because(&why))?;
    Ok(text + "\n")
}

/// A value as YAML, as Helm prints it.
pub(crate) fn yaml(value: &impl Serialize) -> Result<String, Failure> {
    let value: Value = serde_json::to_value(value).map_err(|why| Failure::new("could not write YAML").because(&why))?;
    Ok(goyaml::emit(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct One {
        name: &'static str,
    }

    impl View for One {
        const KIND: &'static str = "One";
        fn text(&self, width: Width) -> String {
            format!("{} {width:?}\n", self.name)
        }
        fn names(&self) -> Vec<String> {
            vec![format!("ns/{}", self.name)]
        }
    }

    #[test]
    fn every_document_carries_version_and_kind() {
        let document: Value = serde_json::from_str(&render(&One { name: "web" }, Format::Json).unwrap()).unwrap();
        assert_eq!(document, serde_json::json!({"apiVersion": "gwrepair/v1", "kind": "One", "name": "web"}));
    }

    #[test]
    fn names_are_ready_for_xargs() {
        assert_eq!(render(&One { name: "web" }, Format::Name).unwrap(), "ns/web\n");
        assert_eq!(render(&One { name: "web" }, Format::Wide).unwrap(), "web Wide\n");
    }
}
