//! Who may import whom: nouns nothing, decisions nouns, the shell both, and nothing imports `action`.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const NOUNS: [&str; 3] = ["release", "chart", "manifest"];
const DECISIONS: [&str; 5] = ["codec", "render", "plan", "patch", "readiness"];
const SHELL: [&str; 4] = ["storage", "cluster", "registry", "action"];

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

/// The modules that a source names by `crate::`, comments aside.
fn imports(source: &str) -> BTreeSet<String> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let group = rest.strip_prefix('{').and_then(|rest| rest.split('}').next());
        let names =
            group.unwrap_or_else(|| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(""));
        let first = |part: &str| part.trim().split(':').next().unwrap_or("").to_owned();
        found.extend(names.split(',').map(first).filter(|name| layer(name).is_some()));
    }
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
        .collect()
}

fn module(path: &Path, root: &Path) -> String {
    let first = path.strip_prefix(root).unwrap().components().next().unwrap();
    first.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned()
}

fn violations(module: &str, source: &str) -> Vec<String> {
    imports(source).iter().filter_map(|to| forbidden(module, to)).collect()
}

#[test]
fn every_import_follows_the_layers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut edges = 0;
    let mut wrong = Vec::new();
    for path in sources(&root) {
        let module = module(&path, &root);
        if module == "lib" {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        edges += imports(&source).len();
        wrong.extend(violations(&module, &source).into_iter().map(|why| format!("{}: {why}", path.display())));
    }
    assert!(edges > 20, "only {edges} imports seen: the reader is blind");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_planted_import_is_caught() {
    assert_eq!(violations("plan", "use crate::storage::Driver;").len(), 1);
    assert_eq!(violations("release", "use crate::{codec, manifest::Object};").len(), 2);
    assert_eq!(violations("cluster", "let x = crate::action::Client::new();").len(), 1);
    assert_eq!(violations("action", "use crate::{plan::Plan, cluster};\nuse crate::release::Status;").len(), 0);
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
