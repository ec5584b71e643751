//! The recorded traces, replayed on every implementation that decides.

use conformance::arm::{Arm, OnAdHoc, OnFallback, OnLimiter, OnMap, OnSingle, OnZone, Pure};
use conformance::{generate, promise, trace};
use tidegate::{Map, Ticks, Zone};

/// The steps of the clock at every reading while a batch is decided: none, a tick, 100 microseconds.
const TICKS: [Ticks; 3] = [Ticks::ZERO, conformance::ticks(1), conformance::ticks(1_600_000)];

/// Replays every recorded trace on an arm, except the operations in `cannot`.
fn play_all(arm: &mut dyn Arm, cannot: &[&str]) {
    let steps = trace::play_recorded(arm, &[], cannot);
    assert!(steps > 300, "only {steps} steps were played on {}", arm.name());
}

/// Replays every recorded trace on an arm, with the takes of one instant in one call.
fn play_all_in_batches(arm: &mut dyn Arm, cannot: &[&str], tick: Ticks) {
    let all = trace::play_recorded_in_batches(arm, &[], cannot, tick);
    assert!(all.steps > 300 && all.calls > 150 && all.largest >= 30, "only {all:?} on {}", arm.name());
}

#[test]
fn every_recorded_trace_is_played_as_written_by_the_pure_functions() {
    play_all(&mut Pure::default(), &[]);
}

#[test]
fn every_recorded_trace_is_played_as_written_by_a_map() {
    play_all(&mut OnMap::default(), &[]);
}

#[test]
fn every_recorded_trace_is_played_as_written_by_a_zone() {
    play_all(&mut OnZone::default(), &[]);
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
    play_all(&mut OnLimiter::<Map>::default(), &["give-back"]);
    play_all(&mut OnLimiter::<Zone>::default(), &["give-back"]);
}

#[test]
fn every_recorded_trace_is_played_as_written_by_singles() {
    play_all(&mut OnSingle::default(), &["give-back", "permits", "rules"]);
}

#[test]
fn every_recorded_trace_is_played_as_written_by_handles_with_the_limit_in_the_ask() {
    play_all(&mut OnAdHoc::<Map>::default(), &["give-back"]);
    play_all(&mut OnAdHoc::<Zone>::default(), &["give-back"]);
}

#[test]
fn every_recorded_trace_is_played_as_written_in_batches_one_by_one() {
    play_all_in_batches(&mut Pure::default(), &[], Ticks::ZERO);
    play_all_in_batches(&mut OnMap::default(), &[], Ticks::ZERO);
    play_all_in_batches(&mut OnZone::default(), &[], Ticks::ZERO);
    play_all_in_batches(&mut OnSingle::default(), &["give-back", "permits", "rules"], Ticks::ZERO);
}

#[test]
fn every_recorded_trace_is_played_as_written_in_batches_by_limiters() {
    for tick in TICKS {
        play_all_in_batches(&mut OnLimiter::<Map>::default(), &["give-back"], tick);
        play_all_in_batches(&mut OnLimiter::<Zone>::default(), &["give-back"], tick);
    }
}

#[test]
fn every_recorded_trace_is_played_as_written_in_batches_with_the_limit_in_the_ask() {
    for tick in TICKS {
        play_all_in_batches(&mut OnAdHoc::<Map>::default(), &["give-back"], tick);
        play_all_in_batches(&mut OnAdHoc::<Zone>::default(), &["give-back"], tick);
    }
}

#[test]
fn a_generated_trace_is_text_that_plays_again() {
    for kind in promise::KINDS {
        let written = generate::trace(kind, 42, 50).to_string();
        let read = trace::parse(&written).unwrap();
        // A limiter is not among them: its max wait is in nanoseconds, and these traces are exact to the tick.
        for arm in [
            &mut Pure::default() as &mut dyn Arm,
            &mut OnMap::default(),
            &mut OnZone::default(),
            &mut OnSingle::default(),
        ] {
            trace::play(&read, arm).unwrap_or_else(|what| panic!("{kind}, {what}"));
        }
    }
}
