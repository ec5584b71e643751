//! The recorded traces over the pure functions.

use std::path::PathBuf;

use conformance::arm::Pure;
use conformance::{generate, promise, trace};

fn files() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/traces");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the traces are there")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

#[test]
fn every_recorded_trace_is_played_as_written() {
    let mut wrong = Vec::new();
    let mut steps = 0;
    for file in files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        match trace::parse(&text).and_then(|trace| trace::play(&trace, &mut Pure::new())) {
            Ok(played) => steps += played,
            Err(what) => wrong.push(format!("{name}, {what}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(steps > 300, "only {steps} steps were played");
}

#[test]
fn a_generated_trace_is_text_that_plays_again() {
    for kind in promise::KINDS {
        let written = generate::trace(kind, 42, 50).to_string();
        let read = trace::parse(&written).unwrap();
        trace::play(&read, &mut Pure::new()).unwrap_or_else(|what| panic!("{kind}, {what}"));
    }
}
