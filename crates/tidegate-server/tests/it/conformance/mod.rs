//! The traces, the oracle and the laws over real sockets, with a clock that tests set.

mod arm;
mod lock_step;
mod rules;
mod told;

use std::env;
use std::fs::{self, DirEntry};

use conformance::generate::judge;
use conformance::law::obey;
use conformance::promise::KINDS;
use conformance::trace::{self, Action, Batches, Trace};
use tidegate::{Limit, Ticks};

use arm::OverWire;
use lock_step::LockStep;
use rules::UnderRule;
use told::{Http, Resp2, Resp3, Told};

/// Histories of each kind over each front, unless the environment says how many.
const HISTORIES: u64 = 20;
const OPERATIONS: u64 = 100;

/// How far the clock advances at every reading while a batch is decided: not at all, a tick, 100 microseconds.
const TICKS: [Ticks; 3] = [Ticks::ZERO, conformance::ticks(1), conformance::ticks(1_600_000)];

/// Every recorded trace, with the name of its file.
/// What is another state where limits come with their requests: a key starts full under other numbers.
const ANOTHER_STATE: [&str; 1] = ["limit"];

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
        let trace = trace.without(&ANOTHER_STATE);
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

/// The same with the takes of one instant in one message, while the clock advances at every reading.
fn traces_are_played_in_batches_over<T: Told>(ticks: &[Ticks]) {
    for tick in ticks {
        let (mut wrong, mut all) = (Vec::new(), Batches::default());
        for (name, trace) in recorded() {
            let trace = trace.without(&ANOTHER_STATE);
            match trace::play_in_batches(&trace, &mut OverWire::<T>::new(), *tick) {
                Ok(played) => {
                    let steps = steps_before(&trace, &["give-back", "ticks"]);
                    assert_eq!(played.steps, steps, "{name} on {}", T::NAME);
                    all.steps += played.steps;
                    all.calls += played.calls;
                    all.largest = all.largest.max(played.largest);
                }
                Err(what) => wrong.push(format!("{name}, {what}")),
            }
        }
        assert!(wrong.is_empty(), "{tick:?} at every reading: {}", wrong.join("\n"));
        println!("traces in batches: {all:?} on {}, {tick:?} at every reading", T::NAME);
        assert!(all.steps > 300 && all.calls > 150 && all.largest >= 30, "only {all:?} on {}", T::NAME);
    }
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
fn every_recorded_trace_is_played_as_written_in_pipelines() {
    traces_are_played_in_batches_over::<Resp2>(&TICKS);
}

#[test]
fn every_recorded_trace_is_played_as_written_in_transactions() {
    traces_are_played_in_batches_over::<Resp3>(&TICKS);
}

#[test]
fn every_recorded_trace_is_played_as_written_in_batches_under_a_rule() {
    for tick in [Ticks::ZERO, conformance::ticks(1)] {
        let mut all = Batches::default();
        for (name, trace) in recorded() {
            let mut arm = UnderRule::new(Limit::per_second(1));
            let played = trace::play_in_batches(&trace.without(&rules::UNKNOWN), &mut arm, tick);
            let played = played.unwrap_or_else(|what| panic!("{name}, {tick:?} at every reading, {what}"));
            all.steps += played.steps;
            all.calls += played.calls;
            all.largest = all.largest.max(played.largest);
        }
        println!("traces in batches: {all:?} under a rule over HTTP, {tick:?} at every reading");
        assert!(all.steps > 200 && all.calls > 100 && all.largest >= 30, "only {all:?}");
    }
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
