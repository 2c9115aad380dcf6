//! Every text of `testdata/yaml/parse.json` is read as real Go read it, error texts included; and any text gets an answer.

#![expect(clippy::unwrap_used, reason = "a test that cannot read its cases has to fail")]

use std::thread;

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Case {
    #[serde(default)]
    r#in: String,
    /// A text that is no UTF-8, in place of `in`.
    hex: Option<String>,
    out: String,
    err: String,
}

impl Case {
    fn all() -> Vec<Self> {
        serde_json::from_str(include_str!("../../../testdata/yaml/parse.json")).unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        let Some(hex) = &self.hex else { return self.r#in.clone().into() };
        hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    fn expected(&self) -> Result<Value, String> {
        if self.err.is_empty() { Ok(serde_json::from_str(&self.out).unwrap()) } else { Err(self.err.clone()) }
    }
}

#[test]
fn every_text_is_read_as_go_reads_it() {
    let cases = Case::all();
    let differs = |case: &&Case| goyaml::parse(case.bytes()).map_err(|why| why.to_string()) != case.expected();
    let wrong: Vec<_> = cases
        .iter()
        .filter(differs)
        .map(|case| {
            let bytes = case.bytes();
            let got = goyaml::parse(&bytes).map_err(|why| why.to_string());
            format!("{:?}\n  go:   {:?}\n  ours: {got:?}", String::from_utf8_lossy(&bytes), case.expected())
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn a_text_that_is_cut_off_or_has_a_byte_changed_still_gets_an_answer() {
    for case in Case::all() {
        let bytes = case.bytes();
        for at in 0..bytes.len().min(80) {
            _ = goyaml::parse(&bytes[..at]);
            for byte in [b'[', b'}', b'"', b'!', b'\n', b' ', 0xff] {
                let mut changed = bytes.clone();
                changed[at] = byte;
                _ = goyaml::parse(&changed);
            }
        }
    }
}

/// The stack of a thread is 2 MiB unless somebody asks for more; half of it has to do, unoptimized.
fn on_a_small_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    thread::Builder::new().stack_size(1024 * 1024).spawn(run).unwrap().join().unwrap()
}

#[test]
fn depth_is_bounded_before_the_stack_is() {
    let nest = |open: &str, levels: usize| open.repeat(levels);
    let deepest = nest("[", goyaml::MAX_DEPTH) + &nest("]", goyaml::MAX_DEPTH);
    assert!(on_a_small_stack(move || goyaml::parse(deepest)).is_ok());
    for (open, levels) in
        [("[", goyaml::MAX_DEPTH + 1), ("[", 100_000), ("{a: ", 100_000), ("- ", 100_000), ("? ", 100_000)]
    {
        let text = nest(open, levels);
        let answer = on_a_small_stack(move || goyaml::parse(text));
        assert_eq!(answer, Err(goyaml::Error::Depth), "{open:?} × {levels}");
    }
}

#[test]
fn aliases_count_as_depth() {
    let chain = |levels: usize| {
        let links = (1..levels).map(|at| format!("- &a{at} [*a{}]\n", at - 1));
        // Something else besides, or there would be too many aliases before they are too deep.
        format!("- [{}]\n- &a0 []\n{}", "x, ".repeat(10_000), links.collect::<String>())
    };
    assert!(on_a_small_stack(move || goyaml::parse(chain(goyaml::MAX_DEPTH - 1))).is_ok());
    assert_eq!(on_a_small_stack(move || goyaml::parse(chain(goyaml::MAX_DEPTH + 1))), Err(goyaml::Error::Depth));
}

#[test]
fn an_error_tells_the_line_that_its_text_names() {
    for case in Case::all() {
        let Err(error) = goyaml::parse(case.bytes()) else { continue };
        let named = case.err.strip_prefix("yaml: line ").and_then(|rest| rest.split_once(':')?.0.parse().ok());
        assert_eq!(error.line(), named, "{error}");
    }
}

#[test]
fn of_two_keys_that_differ_in_type_only_the_string_counts() {
    for text in ["1: a\n\"1\": b\n", "\"1\": b\n1: a\n"] {
        assert_eq!(goyaml::parse(text), Ok(serde_json::json!({"1": "b"})));
    }
}
