//! Every text of `testdata/yaml/parse.json` is read as real Go read it, error texts included.

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Case {
    r#in: String,
    out: String,
    err: String,
}

#[test]
fn every_text_is_read_as_go_reads_it() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../../testdata/yaml/parse.json")).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let got = goyaml::parse(case.r#in.as_bytes());
        let right = match &got {
            Ok(value) => case.err.is_empty() && *value == serde_json::from_str::<Value>(&case.out).unwrap(),
            // Go says before it that the conversion failed, and behind an unsupported key what it held.
            Err(error) => !case.err.is_empty() && case.err.contains(&error.to_string()),
        };
        if !right {
            wrong.push(format!("{:?}\n  go:   {}{}\n  ours: {got:?}", case.r#in, case.out, case.err));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
