//! The recorded traces over everything that decides.

use std::fs::{self, DirEntry};

use conformance::arm::{Arm, OnAdHoc, OnFallback, OnLimiter, OnMap, OnSingle, OnZone, Pure};
use conformance::trace::{Action, Batches, Trace};
use conformance::{generate, promise, trace};
use tidegate::{Map, Ticks, Zone};

/// How far the clock advances at every reading while a batch is decided: not at all, a tick, 100 microseconds.
const TICKS: [Ticks; 3] = [Ticks::ZERO, conformance::ticks(1), conformance::ticks(1_600_000)];

/// Every recorded trace, with the name of its file.
fn recorded() -> Vec<(String, Trace)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/traces");
    let files = fs::read_dir(folder).expect("the traces are there").flatten();
    let read = |file: DirEntry| {
        let name = file.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(file.path()).expect("a trace is text");
        let trace = trace::parse(&text).unwrap_or_else(|what| panic!("{name}, {what}"));
        (name, trace)
    };
    let mut traces: Vec<_> = files.map(read).collect();
    traces.sort_by(|one, other| one.0.cmp(&other.0));
    traces
}

/// How many steps come before the first need that cannot be met.
fn steps_before(trace: &Trace, cannot: &[&str]) -> usize {
    let ends = |action: &Action| matches!(action, Action::Needs(need) if cannot.contains(&need.as_str()));
    trace.steps.iter().position(|step| ends(&step.action)).unwrap_or(trace.steps.len())
}

/// Plays every recorded trace on an arm, as far as it can.
fn play_all(arm: &mut dyn Arm, cannot: &[&str]) {
    let (mut wrong, mut steps) = (Vec::new(), 0);
    for (name, trace) in recorded() {
        match trace::play(&trace, arm) {
            Ok(played) => {
                assert_eq!(played, steps_before(&trace, cannot), "{name} on {}", arm.name());
                steps += played;
            }
            Err(what) => wrong.push(format!("{name}, {what}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("traces: {steps} steps on {}", arm.name());
    assert!(steps > 300, "only {steps} steps were played on {}", arm.name());
}

/// Plays every recorded trace on an arm, with the takes of one instant in one call.
fn play_all_in_batches(arm: &mut dyn Arm, cannot: &[&str], tick: Ticks) {
    let (mut wrong, mut all) = (Vec::new(), Batches::default());
    for (name, trace) in recorded() {
        match trace::play_in_batches(&trace, arm, tick) {
            Ok(played) => {
                assert_eq!(played.steps, steps_before(&trace, cannot), "{name} on {}", arm.name());
                all.steps += played.steps;
                all.calls += played.calls;
                all.largest = all.largest.max(played.largest);
            }
            Err(what) => wrong.push(format!("{name}, {what}")),
        }
    }
    assert!(wrong.is_empty(), "in steps of {tick:?}:\n{}", wrong.join("\n"));
    println!("traces in batches: {all:?} on {}, {tick:?} at every reading", arm.name());
    assert!(all.steps > 300 && all.calls > 150 && all.largest >= 30, "only {all:?} on {}", arm.name());
}

#[test]
fn every_recorded_trace_is_played_as_written_by_the_pure_functions() {
    play_all(&mut Pure::new(), &[]);
}

#[test]
fn every_recorded_trace_is_played_as_written_by_a_map() {
    play_all(&mut OnMap::new(), &[]);
}

#[test]
fn every_recorded_trace_is_played_as_written_by_a_zone() {
    play_all(&mut OnZone::new(), &[]);
}

#[test]
fn every_recorded_trace_is_played_as_written_by_a_remote_store_with_a_fallback() {
    play_all(&mut OnFallback::up(), &["give-back"]);
}

#[test]
fn every_recorded_trace_is_played_as_written_by_the_fallback_of_a_store_that_is_down() {
    play_all(&mut OnFallback::down(), &["give-back"]);
}

#[test]
fn every_recorded_trace_is_played_as_written_by_limiters() {
    play_all(&mut OnLimiter::<Map>::new(), &["give-back"]);
    play_all(&mut OnLimiter::<Zone>::new(), &["give-back"]);
}

#[test]
fn every_recorded_trace_is_played_as_written_by_singles() {
    play_all(&mut OnSingle::new(), &["give-back", "permits", "rules"]);
}

#[test]
fn every_recorded_trace_is_played_as_written_by_handles_with_the_limit_in_the_ask() {
    play_all(&mut OnAdHoc::<Map>::new(), &["give-back"]);
    play_all(&mut OnAdHoc::<Zone>::new(), &["give-back"]);
}

#[test]
fn every_recorded_trace_is_played_as_written_in_batches_one_by_one() {
    play_all_in_batches(&mut Pure::new(), &[], Ticks::ZERO);
    play_all_in_batches(&mut OnMap::new(), &[], Ticks::ZERO);
    play_all_in_batches(&mut OnZone::new(), &[], Ticks::ZERO);
    play_all_in_batches(&mut OnSingle::new(), &["give-back", "permits", "rules"], Ticks::ZERO);
}

#[test]
fn every_recorded_trace_is_played_as_written_in_batches_by_limiters() {
    for tick in TICKS {
        play_all_in_batches(&mut OnLimiter::<Map>::new(), &["give-back"], tick);
        play_all_in_batches(&mut OnLimiter::<Zone>::new(), &["give-back"], tick);
    }
}

#[test]
fn every_recorded_trace_is_played_as_written_in_batches_with_the_limit_in_the_ask() {
    for tick in TICKS {
        play_all_in_batches(&mut OnAdHoc::<Map>::new(), &["give-back"], tick);
        play_all_in_batches(&mut OnAdHoc::<Zone>::new(), &["give-back"], tick);
    }
}

#[test]
fn a_generated_trace_is_text_that_plays_again() {
    for kind in promise::KINDS {
        let written = generate::trace(kind, 42, 50).to_string();
        let read = trace::parse(&written).unwrap();
        // A limiter is not among them: it is told its patience in nanoseconds, and these are to the tick.
        for arm in
            [&mut Pure::new() as &mut dyn Arm, &mut OnMap::new(), &mut OnZone::new(), &mut OnSingle::new()]
        {
            trace::play(&read, arm).unwrap_or_else(|what| panic!("{kind}, {what}"));
        }
    }
}
