//! Measures how long it takes to decode a release record: reads the Secret of the given file, as the API server returns
//! it, RUNS times, and prints the seconds that each run took as JSON. `make bench` runs it beside Helm's own decoder.
#![expect(clippy::print_stdout, reason = "its result")]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use helm_release::codec;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(runs)) = (arguments.next(), arguments.next()) else {
        return Err("usage: decode FILE RUNS".into());
    };
    let secret: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    let text = STANDARD.decode(secret["data"]["release"].as_str().ok_or("the Secret holds no release")?)?;
    let (mut parts, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..runs.parse()? {
        let began = Instant::now();
        let release = codec::decode(&text)?;
        black_box((release.status(), release.manifest(), release.hooks(), release.config(), release.info()));
        parts.push(began.elapsed().as_secs_f64());
        let began = Instant::now();
        black_box(serde_json::from_str::<Value>(&codec::decode(&text)?.to_json()?)?);
        whole.push(began.elapsed().as_secs_f64());
    }
    println!("{}", json!({ "parts": parts, "whole": whole }));
    Ok(())
}
