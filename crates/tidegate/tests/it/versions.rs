//! The laws of a rule whose numbers change while servers with the old ones still run.

#[cfg(target_os = "linux")]
mod on_file;

use conformance::random::Random;
use conformance::versions::{Met, OnStore, Table, Versions, keep_their_promises};
use tidegate::{Map, Zone};

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
    ($($place:ident: $servers:ty, $histories:literal histories;)+) => {$(
        mod $place {
            use super::*;

            versions! { of $servers, $histories:
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
        }
    )+};
    (of $servers:ty, $histories:literal: $($name:ident: $kind:literal)+) => {$(
        #[test]
        fn $name() {
            hold::<$servers>($kind, crate::traces($histories));
        }
    )+};
}

versions! {
    pure: Table, 3000 histories;
    in_a_map: OnStore<Map>, 500 histories;
    in_a_zone: OnStore<Zone>, 500 histories;
}

/// A restart with other numbers, and an old and a new server, on the file of a zone.
#[cfg(target_os = "linux")]
#[test]
fn laws_of_versions_hold_across_restarts_on_a_file() {
    for kind in ["token-bucket", "leaky-bucket", "fixed-window"] {
        hold::<on_file::OnFile>(kind, crate::traces(200));
    }
}
