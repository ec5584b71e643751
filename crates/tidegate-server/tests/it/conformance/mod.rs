//! The traces, the oracle and the laws over real sockets, with a clock that the test controls.

mod arm;
mod front;
mod lock_step;
mod rules;

use std::env;

use conformance::generate::judge;
use conformance::law::obey;
use conformance::promise::KINDS;
use conformance::trace;
use tidegate::{Limit, Ticks};

use arm::OverWire;
use front::{FrontClient, Http, Resp2, Resp3};
use lock_step::LockStep;
use rules::{RuleOverHttp, RuleOverResp, UnderRule};

/// The number of histories of each kind over each front, unless the environment sets another.
const HISTORIES: u64 = 20;
const OPERATIONS: u64 = 100;

/// The steps of the clock at every reading during a batch: none, one tick, 100 microseconds.
const TICKS: [Ticks; 3] = [Ticks::ZERO, conformance::ticks(1), conformance::ticks(1_600_000)];

/// The trace steps that start a new state where limits come with requests: a key is full under another limit.
const ANOTHER_STATE: [&str; 1] = ["limit"];

/// The operations that the protocols do not have.
const CANNOT: [&str; 2] = ["give-back", "ticks"];

fn traces_are_played_over<T: FrontClient>() {
    let steps = trace::play_recorded(&mut OverWire::<T>::new(), &ANOTHER_STATE, &CANNOT);
    assert!(steps > 300, "only {steps} steps were played on {}", T::NAME);
}

/// Plays traces with the takes of one instant in one message, while the clock advances at every reading.
fn traces_are_played_in_batches_over<T: FrontClient>(ticks: &[Ticks]) {
    for tick in ticks {
        let mut arm = OverWire::<T>::new();
        let all = trace::play_recorded_in_batches(&mut arm, &ANOTHER_STATE, &CANNOT, *tick);
        assert!(all.steps > 300 && all.calls > 150 && all.largest >= 30, "only {all:?} on {}", T::NAME);
    }
}

/// Runs a check with a new server for each kind and seed.
fn histories<T: FrontClient>(check: impl Fn(LockStep<T>, &str, u64) -> Result<(), String>) {
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

fn the_oracle_agrees_over<T: FrontClient>() {
    histories::<T>(|keeper, kind, seed| judge(keeper, kind, seed, OPERATIONS).map(drop));
}

fn the_laws_hold_over<T: FrontClient>() {
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
        let mut arm = UnderRule::<RuleOverHttp>::new(Limit::per_second(1));
        let all = trace::play_recorded_in_batches(&mut arm, &rules::UNKNOWN, &CANNOT, tick);
        assert!(all.steps > 200 && all.calls > 100 && all.largest >= 30, "only {all:?}");
    }
}

#[test]
fn every_recorded_trace_is_played_as_written_under_a_rule_over_http() {
    let mut arm = UnderRule::<RuleOverHttp>::new(Limit::per_second(1));
    let steps = trace::play_recorded(&mut arm, &rules::UNKNOWN, &CANNOT);
    assert!(steps > 300, "only {steps} steps were played");
}

#[test]
fn every_recorded_trace_is_played_as_written_under_a_rule_over_resp() {
    let mut arm = UnderRule::<RuleOverResp>::new(Limit::per_second(1));
    let steps = trace::play_recorded(&mut arm, &rules::UNKNOWN, &CANNOT);
    assert!(steps > 300, "only {steps} steps were played");
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
