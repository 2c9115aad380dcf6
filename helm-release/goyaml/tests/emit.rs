//! Every value of `testdata/yaml/emit.json` is written to the byte as real Go wrote it.

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Case {
    r#in: Value,
    out: String,
    /// Go cannot read its own JSON with these control characters; we write them escaped.
    err: String,
}

#[test]
fn every_value_is_written_as_go_writes_it() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../../testdata/yaml/emit.json")).unwrap();
    let differ = |case: &&Case| case.err.is_empty() && goyaml::emit(&case.r#in) != case.out;
    let wrong: Vec<_> = cases.iter().filter(differ).collect();
    let shown = wrong
        .iter()
        .map(|case| format!("{}\n  go:   {:?}\n  ours: {:?}", case.r#in, case.out, goyaml::emit(&case.r#in)));
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), shown.collect::<Vec<_>>().join("\n"));
}

#[test]
fn what_is_written_is_read_back() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../../testdata/yaml/emit.json")).unwrap();
    // A key of `<<` is written plain, and then read as a merge: so does Go.
    for case in cases.iter().filter(|case| !case.out.contains("<<:")) {
        let text = goyaml::emit(&case.r#in);
        let read = goyaml::parse(text.as_bytes()).unwrap_or_else(|why| panic!("{text:?}: {why}"));
        assert_eq!(goyaml::emit(&read), text);
    }
}
