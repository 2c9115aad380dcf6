//! A record that unpacks to far more than it should is left before it takes the machine with it.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use helm_release::codec::{self, DEFAULT_CAP, Error, MAX_STORED};

const MIB: usize = 1 << 20;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// A stored text whose JSON has so many MiB of text in it: one gzip member after the other.
fn bomb(mebibytes: usize) -> String {
    let filling = gzip(&vec![b'x'; MIB]).repeat(mebibytes);
    let stream = [gzip(br#"{"name":"r","version":1,"info":{"status":"failed"},"manifest":""#), filling, gzip(b"\"}")];
    STANDARD.encode(stream.concat())
}

/// The most memory that this process has had, in MiB.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() / 1024
}

/// One test, for the peak is that of the process.
#[test]
fn a_bomb_takes_no_more_memory_than_the_cap_allows() {
    let large = bomb(700);
    assert!(large.len() <= MAX_STORED, "it could not be stored: {}", large.len());
    assert!(matches!(codec::decode(large.as_bytes()), Err(Error::TooLarge { cap: DEFAULT_CAP })));
    let cap = DEFAULT_CAP / MIB;
    assert!(peak() < cap * 3 / 2, "{} MiB", peak());
    let release = codec::decode(bomb(cap - 1).as_bytes()).unwrap();
    assert!(release.faults().is_empty());
    assert!(peak() < cap * 3, "{} MiB", peak());
}
