//! The laws of a rule whose numbers change while servers with the old ones still run.

use conformance::random::Random;
use conformance::versions::{Met, Table, Versions, keep_their_promises};

const OPERATIONS: u64 = 60;

/// Runs the histories of one kind and prints what they met.
fn hold<V: Versions + Default>(kind: &str, histories: u64) {
    let (seed, on) = (Random::seed_from_environment(), V::default().name());
    let mut met = Met::default();
    for history in 0..histories {
        let history_seed = Random::new(seed.wrapping_add(history)).number();
        match keep_their_promises(V::default(), kind, history_seed, OPERATIONS) {
            Ok(more) => met.add(more),
            Err(broken) => panic!("{kind} ({on}), history {history} of seed {seed}: {broken}"),
        }
    }
    let Met { asks, denials, changes, carried, lagging, waits } = met;
    println!(
        "versions {kind} ({on}): {histories} histories, {changes} changes, {carried} with counts to carry, {asks} asks, {denials} denied, {lagging} by old numbers, {waits} waits, 0 broken laws (seed {seed})"
    );
    assert!(carried > changes / 10, "only {carried} of {changes} changes had counts to carry");
    assert!(denials > asks / 10 && lagging > asks / 10 && waits > denials / 10, "{met:?}");
}

macro_rules! versions {
    ($($name:ident: $kind:literal)+) => {$(
        #[test]
        fn $name() {
            hold::<Table>($kind, crate::traces(3000));
        }
    )+};
}

versions! {
    laws_of_versions_hold_for_token_bucket: "token-bucket"
    laws_of_versions_hold_for_leaky_bucket: "leaky-bucket"
    laws_of_versions_hold_for_fixed_window: "fixed-window"
    laws_of_versions_hold_for_sliding_log: "sliding-log"
    laws_of_versions_hold_for_sliding_window: "sliding-window"
    laws_of_versions_hold_for_sliding_window_estimate: "sliding-window-estimate"
    laws_of_versions_hold_for_pacer: "pacer"
    laws_of_versions_hold_for_pacer_warm_up: "pacer-warm-up"
    laws_of_versions_hold_for_concurrency: "concurrency"
}
