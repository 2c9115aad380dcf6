//! Who may import whom: nouns nothing, decisions nouns, the shell both, and nothing imports `action`.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const NOUNS: [&str; 3] = ["release", "chart", "manifest"];
const DECISIONS: [&str; 7] = ["backup", "codec", "render", "plan", "patch", "diff", "readiness"];
const SHELL: [&str; 4] = ["storage", "cluster", "registry", "action"];

/// What only the shell, and tests, may name. That nouns and decisions build without kube, tokio and tracing, the compiler proves.
const OUTSIDE: [&str; 7] = ["Utc::now", "SystemTime", "Instant", "std::fs", "std::env", "std::net", "std::process"];

fn layer(module: &str) -> Option<u8> {
    let layers = [&NOUNS[..], &DECISIONS[..], &SHELL[..]];
    layers.iter().zip(1..).find(|(names, _)| names.contains(&module)).map(|(_, rank)| rank)
}

/// Why `from` may not import `to`, if it may not.
fn forbidden(from: &str, to: &str) -> Option<String> {
    let (Some(low), Some(high)) = (layer(from), layer(to)) else {
        return Some(format!("{from} imports {to}: one of them has no layer; design it first"));
    };
    if from == to {
        return None;
    }
    if to == "action" {
        return Some(format!("{from} imports action, which nothing imports"));
    }
    if low < high || low == 1 && high == 1 {
        return Some(format!("{from} imports {to}, against the direction of the layers"));
    }
    None
}

/// The top-level modules that a source names: by `crate::`, or by as many `super::` as it is deep.
fn imports(code: &str, depth: usize) -> BTreeSet<&str> {
    let (body, tests) = code.split_once("\nmod tests {").unwrap_or((code, ""));
    let paths = [(code, "crate::".to_owned()), (body, "super::".repeat(depth)), (tests, "super::".repeat(depth + 1))];
    let trees = paths.iter().flat_map(|(text, start)| text.split(start.as_str()).skip(1));
    trees.flat_map(first_names).collect()
}

/// Where a use tree begins: `a::b` with a, `{a::{b, c}, d}` with a and d.
fn first_names(tree: &str) -> Vec<&str> {
    let name = |text: &'_ str| text.len() - text.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').len();
    let Some(group) = tree.strip_prefix('{') else { return vec![&tree[..name(tree)]] };
    let (mut depth, mut starts) = (0, vec![0]);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => starts.push(at + 1),
            _ => {}
        }
    }
    let names = starts.into_iter().map(|at| group[at..].trim_start()).map(|text| &text[..name(text)]);
    names.filter(|name| !name.is_empty()).collect()
}

fn without_comments(source: &str) -> String {
    source.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn violations(module: &str, depth: usize, source: &str) -> Vec<String> {
    let code = without_comments(source);
    let mut wrong: Vec<String> = imports(&code, depth).iter().filter_map(|to| forbidden(module, to)).collect();
    if layer(module) != Some(3) {
        let (body, _) = code.split_once("\nmod tests {").unwrap_or((&code, ""));
        let outside = OUTSIDE.iter().filter(|word| body.contains(**word));
        wrong.extend(outside.map(|word| format!("{module} names {word}, which only the shell may")));
    }
    wrong
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
        .collect()
}

/// The top-level module that a file belongs to, and how deep it is: 1 for `plan/mod.rs`, 2 for `plan/decide.rs`.
fn place(path: &Path, root: &Path) -> (String, usize) {
    let inside = path.strip_prefix(root).unwrap().with_extension("");
    let names: Vec<_> = inside.iter().map(|name| name.to_str().unwrap()).collect();
    (names[0].to_owned(), names.len() - usize::from(names.ends_with(&["mod"])))
}

#[test]
fn every_import_follows_the_layers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut edges = 0;
    let mut wrong = Vec::new();
    for path in sources(&root) {
        let (module, depth) = place(&path, &root);
        if module == "lib" {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        edges += imports(&without_comments(&source), depth).len();
        // A module of tests in a file of its own is read as what it is.
        let source = if path.ends_with("tests.rs") { format!("\nmod tests {{\n{source}") } else { source };
        let depth = depth - usize::from(path.ends_with("tests.rs"));
        wrong.extend(violations(&module, depth, &source).into_iter().map(|why| format!("{}: {why}", path.display())));
        if layer(&module).is_none() {
            wrong.push(format!("{}: {module} has no layer; design it first", path.display()));
        }
    }
    assert!(edges > 20, "only {edges} imports seen: the reader is blind");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_planted_import_is_caught() {
    let caught = |module: &str, depth: usize, source: &str| violations(module, depth, source).len();
    assert_eq!(caught("plan", 2, "use crate::storage::Driver;"), 1);
    assert_eq!(caught("release", 1, "use crate::{codec, manifest::Object};"), 2);
    assert_eq!(caught("plan", 1, "use crate::{\n    release::{Release, Status},\n    action::Client,\n};"), 1);
    assert_eq!(caught("cluster", 1, "let x = crate::action::Client::new();"), 1);
    assert_eq!(caught("plan", 1, "use super::storage::Driver;"), 1);
    assert_eq!(caught("plan", 2, "use super::super::{storage, release};"), 1);
    assert_eq!(caught("plan", 2, "\nmod tests {\n    use super::super::super::storage::Memory;\n}"), 1);
    assert_eq!(caught("plan", 1, "use crate::common::retry;"), 1);
    assert_eq!(caught("plan", 1, "let now = Utc::now();"), 1);
}

#[test]
fn what_the_layers_allow_is_let_through() {
    let allowed = [
        ("action", 1, "use crate::{plan::{Plan, Step}, cluster};\nuse crate::release::Status;\nlet now = Utc::now();"),
        ("plan", 2, "use super::evidence::Evidence;\nuse crate::readiness::Readiness;\nuse crate::plan::Step;"),
        ("codec", 1, "// not crate::action\nuse crate::release::Release;\nmod tests {\n    use super::*;\n}"),
    ];
    for (module, depth, source) in allowed {
        assert_eq!(violations(module, depth, source), [""; 0]);
    }
}

#[test]
fn the_two_programs_know_nothing_of_each_other() {
    let manifest = |folder: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder).join("Cargo.toml");
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().skip_while(|line| !line.starts_with("[dependencies]"));
        lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    assert!(!manifest("operator").contains("gwrepair"));
    assert!(!manifest("repair-cli").contains("operator"));
}
