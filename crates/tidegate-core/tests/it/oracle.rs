//! Random traces against oracles that use only the promise: over the pure functions, and over stores with traffic
//! of other keys.

use conformance::generate::{Shares, judge};
use conformance::keeper::Keeper;
use conformance::random::Random;

const OPERATIONS: u64 = 200;

/// Runs the traces of one kind on both cores and prints the shares of their operations.
fn agree<K: Keeper + Default>(kind: &str, traces: u64, keeper: impl Fn(u64) -> K + Sync) {
    let (seed, on) = (Random::seed_from_environment(), K::default().name());
    let run = |part: u64| -> Shares {
        let mut shares = Shares::default();
        for trace in (0..traces).filter(|trace| trace % 2 == part) {
            if traces >= 100_000 && trace > 0 && trace % (traces / 10) == 0 {
                eprintln!("oracle {kind} ({on}): {} %", trace * 100 / traces);
            }
            let trace_seed = Random::new(seed.wrapping_add(trace)).number();
            match judge(keeper(trace_seed), kind, trace_seed, OPERATIONS) {
                Ok(more) => shares.add(more),
                Err(mismatch) => panic!("{kind} ({on}), trace {trace} of seed {seed}: {mismatch}"),
            }
        }
        shares
    };
    let mut shares = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        let mut shares = run(0);
        shares.add(other.join().expect("the other half agrees too"));
        shares
    });
    shares.operations = shares.operations.max(1);
    let (near, refused) = (shares.percent_near_change(), shares.percent_refused());
    println!(
        "oracle {kind} ({on}): {traces} traces, {} operations, 0 mismatches, {near} % within 2 ticks of a change, {refused} % refused (seed {seed})",
        shares.operations
    );
    assert!(near >= 30, "only {near} % of the operations are near a change of verdict");
    assert!(refused >= 20, "only {refused} % of the operations are refusals");
}

on_every_keeper! {
    agree:
    oracle_agrees_with_token_bucket: "token-bucket"
    oracle_agrees_with_leaky_bucket: "leaky-bucket"
    oracle_agrees_with_fixed_window: "fixed-window"
    oracle_agrees_with_sliding_log: "sliding-log"
    oracle_agrees_with_sliding_window: "sliding-window"
    oracle_agrees_with_sliding_window_estimate: "sliding-window-estimate"
    oracle_agrees_with_pacer: "pacer"
    oracle_agrees_with_pacer_warm_up: "pacer-warm-up"
    oracle_agrees_with_concurrency: "concurrency"
    oracle_agrees_with_calendar: "calendar"
}
