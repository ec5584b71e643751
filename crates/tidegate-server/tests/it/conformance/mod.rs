//! The traces, the oracle and the laws over real sockets, with a clock that tests set.

mod arm;
mod lock_step;
mod told;

use std::env;
use std::fs::{self, DirEntry};

use conformance::generate::judge;
use conformance::law::obey;
use conformance::promise::KINDS;
use conformance::trace::{self, Action, Trace};

use arm::OverWire;
use lock_step::LockStep;
use told::{Http, Resp2, Resp3, Told};

/// Histories of each kind over each front, unless the environment says how many.
const HISTORIES: u64 = 20;
const OPERATIONS: u64 = 100;

/// Every recorded trace, with the name of its file.
fn recorded() -> Vec<(String, Trace)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/traces");
    let read = |file: DirEntry| {
        let name = file.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(file.path()).expect("a trace is text");
        let trace = trace::parse(&text).unwrap_or_else(|what| panic!("{name}, {what}"));
        (name, trace)
    };
    fs::read_dir(folder).expect("the traces are there").flatten().map(read).collect()
}

fn steps_before(trace: &Trace, cannot: &[&str]) -> usize {
    let ends = |action: &Action| matches!(action, Action::Needs(need) if cannot.contains(&need.as_str()));
    trace.steps.iter().position(|step| ends(&step.action)).unwrap_or(trace.steps.len())
}

fn traces_are_played_over<T: Told>() {
    let (mut wrong, mut steps) = (Vec::new(), 0);
    for (name, trace) in recorded() {
        match trace::play(&trace, &mut OverWire::<T>::new()) {
            Ok(played) => {
                assert_eq!(played, steps_before(&trace, &["give-back", "ticks"]), "{name} on {}", T::NAME);
                steps += played;
            }
            Err(what) => wrong.push(format!("{name}, {what}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("traces: {steps} steps on {}", T::NAME);
    assert!(steps > 300, "only {steps} steps were played on {}", T::NAME);
}

/// Runs a check with a server of its own for each kind and seed.
fn histories<T: Told>(check: impl Fn(LockStep<T>, &str, u64) -> Result<(), String>) {
    let first: u64 = env::var("TIDEGATE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let count = env::var("TIDEGATE_TRACES").ok().and_then(|count| count.parse().ok()).unwrap_or(HISTORIES);
    for kind in KINDS {
        for seed in (first..).take(count as usize) {
            if let Err(what) = check(LockStep::new(), kind, seed) {
                panic!("{kind}, TIDEGATE_SEED={seed}: {what}");
            }
        }
    }
}

fn the_oracle_agrees_over<T: Told>() {
    histories::<T>(|keeper, kind, seed| judge(keeper, kind, seed, OPERATIONS).map(drop));
}

fn the_laws_hold_over<T: Told>() {
    histories::<T>(|keeper, kind, seed| obey(keeper, kind, seed, OPERATIONS));
}

#[test]
fn every_recorded_trace_is_played_as_written_over_resp2() {
    traces_are_played_over::<Resp2>();
}

#[test]
fn every_recorded_trace_is_played_as_written_over_resp3() {
    traces_are_played_over::<Resp3>();
}

#[test]
fn every_recorded_trace_is_played_as_written_over_http() {
    traces_are_played_over::<Http>();
}

#[test]
fn the_oracle_agrees_over_resp() {
    the_oracle_agrees_over::<Resp2>();
}

#[test]
fn the_oracle_agrees_over_http() {
    the_oracle_agrees_over::<Http>();
}

#[test]
fn the_laws_hold_over_resp() {
    the_laws_hold_over::<Resp3>();
}

#[test]
fn the_laws_hold_over_http() {
    the_laws_hold_over::<Http>();
}
