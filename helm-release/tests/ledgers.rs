//! What the ledgers under `docs` name as proof is there: plans, tests, goldens.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every file of the workspace's own folders, as a path from the root.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let entries = entries.filter(|path| !path.ends_with("target"));
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path.to_str().unwrap().replace('\\', "/")] })
        .collect()
}

/// The names in backticks in the last cell of each row of the tables.
fn proofs(ledger: &str) -> Vec<&str> {
    let rows = ledger.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'));
    let cells = rows.filter_map(|row| row.rsplit('|').next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

/// Whether `files` hold what is named: a path's end, a test without its ending, or a plan, perhaps with a `*`.
fn is_there(name: &str, files: &[String]) -> bool {
    let ends = |end: String| files.iter().any(|file| file.ends_with(&end));
    if name.contains('/') || name.ends_with(".rs") {
        return ends(format!("/{name}")) || files.iter().any(|file| file.contains(&format!("/{name}/")));
    }
    if name.starts_with("e2e_") {
        return ends(format!("/tests/{name}.rs"));
    }
    let plans = files.iter().filter_map(|file| file.split_once("/testdata/plans/")?.1.strip_suffix(".yaml"));
    plans.into_iter().any(|plan| matches(name, plan))
}

/// Whether `text` is `pattern`, in which a `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(left) = text.strip_prefix(start) else { return false };
    left.char_indices().map(|(at, _)| at).chain([left.len()]).any(|at| matches(rest, &left[at..]))
}

#[test]
fn every_proof_that_a_ledger_names_is_there() {
    let folders = ["helm-release", "repair-cli", "testdata"].map(|folder| files(&root().join(folder)));
    let files = folders.concat();
    for ledger in ["compatibility.md", "failure-modes.md"] {
        let text = std::fs::read_to_string(root().join("docs").join(ledger)).unwrap();
        let proofs = proofs(&text);
        assert!(proofs.len() > 20, "only {} names seen in {ledger}: the reader is blind", proofs.len());
        let missing: Vec<_> = proofs.into_iter().filter(|name| !is_there(name, &files)).collect();
        assert!(missing.is_empty(), "{ledger} names what is not there: {missing:#?}");
    }
}

#[test]
fn a_name_without_a_file_is_found() {
    let files = ["x/testdata/plans/target-across-a-gap.yaml", "x/helm-release/tests/e2e_kills.rs"].map(str::to_owned);
    for there in
        ["target-across-a-gap", "target-*", "*-across-*-gap", "e2e_kills", "e2e_kills.rs", "helm-release/tests"]
    {
        assert!(is_there(there, &files), "{there}");
    }
    for missing in ["target-across", "goal-*", "e2e_other", "kills.rs", "repair-cli/tests"] {
        assert!(!is_there(missing, &files), "{missing}");
    }
}
