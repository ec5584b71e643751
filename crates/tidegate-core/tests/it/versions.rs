//! Tests of the laws of a rule whose numbers change while servers with the old ones still run.

#[cfg(target_os = "linux")]
mod on_file;

use conformance::versions::{Histories, OnStore, Table, Versions};
use tidegate::{Map, Zone};

const OPERATIONS: u64 = 60;

/// Replays the histories of one kind, in which servers with old numbers decide, too.
fn hold<V: Versions + Default>(kind: &str, count: u64) {
    let met = Histories { kind, count, operations: OPERATIONS, at_once: 1 }.play(|_, _| V::default());
    assert!(met.carried > met.changes / 10 && met.lagging > met.asks / 10, "{met:?}");
    assert!(met.waits > met.denials / 10, "{met:?}");
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
                laws_of_versions_hold_for_calendar: "calendar"
            }
        }
    )+};
    (of $servers:ty, $histories:literal: $($name:ident: $kind:literal)+) => {$(
        #[test]
        fn $name() {
            hold::<$servers>($kind, $histories);
        }
    )+};
}

versions! {
    pure: Table, 3000 histories;
    in_a_map: OnStore<Map>, 500 histories;
    in_a_zone: OnStore<Zone>, 500 histories;
}

/// Covers a restart with other numbers, and an old and a new server, on the file of a zone.
#[cfg(target_os = "linux")]
#[test]
fn laws_of_versions_hold_across_restarts_on_a_file() {
    for kind in ["token-bucket", "leaky-bucket", "fixed-window", "calendar"] {
        hold::<on_file::OnFile<3>>(kind, 200);
    }
}

/// Covers one server on a file that is restarted with other numbers, with states of every size.
#[cfg(target_os = "linux")]
#[test]
fn laws_of_versions_hold_for_every_algorithm_across_restarts_on_a_file() {
    for kind in conformance::promise::KINDS {
        let histories = Histories { kind, count: 200, operations: OPERATIONS, at_once: 1 };
        let met = histories.play(|_, _| on_file::OnFile::<1>::default());
        assert!(met.carried > met.changes / 10 && met.waits > met.denials / 10, "{kind}: {met:?}");
    }
}
