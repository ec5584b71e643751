//! Tests of the laws under adjustments, changed limits and clock steps of a century: over the pure functions, and
//! over stores with traffic of other keys.

use conformance::keeper::{Crowd, Keeper, States};
use conformance::law::{giving_back_is_safe, obey};
use conformance::promise::KINDS;
use conformance::random::Random;
use tidegate::{Map, Zone};

fn hold<K: Keeper>(kind: &str, histories: u64, keeper: impl Fn(u64) -> K) {
    let seed = Random::seed_from_environment();
    for history in 0..histories {
        let history_seed = Random::new(seed.wrapping_add(history)).number();
        if let Err(broken) = obey(keeper(history_seed), kind, history_seed, 200) {
            panic!("{kind}, history {history} of seed {seed}: {broken}");
        }
    }
}

on_every_keeper! {
    hold:
    laws_hold_for_token_bucket: "token-bucket"
    laws_hold_for_leaky_bucket: "leaky-bucket"
    laws_hold_for_fixed_window: "fixed-window"
    laws_hold_for_sliding_log: "sliding-log"
    laws_hold_for_sliding_window: "sliding-window"
    laws_hold_for_sliding_window_estimate: "sliding-window-estimate"
    laws_hold_for_pacer: "pacer"
    laws_hold_for_pacer_warm_up: "pacer-warm-up"
    laws_hold_for_concurrency: "concurrency"
    laws_hold_for_calendar: "calendar"
}

fn giving_back_holds<K: Keeper>(trials: u64, keeper: impl Fn(u64) -> K) {
    let seed = Random::seed_from_environment();
    // A take warms up a warming pacer: without it, later takes would have waited longer.
    for kind in KINDS.into_iter().filter(|kind| *kind != "pacer-warm-up") {
        for trial in 0..trials {
            let trial_seed = Random::new(seed.wrapping_add(trial)).number();
            if let Err(broken) = giving_back_is_safe(keeper(trial_seed), kind, trial_seed) {
                panic!("{kind}, trial {trial} of seed {seed}: {broken}");
            }
        }
    }
}

#[test]
fn laws_of_giving_back_hold_for_all() {
    giving_back_holds(crate::traces(5_000), |_| States::default());
}

#[test]
fn laws_of_giving_back_hold_for_all_on_a_map() {
    giving_back_holds(crate::map::traces(20_000), Crowd::<Map>::new);
}

#[test]
fn laws_of_giving_back_hold_for_all_on_a_zone() {
    giving_back_holds(crate::map::traces(20_000), Crowd::<Zone>::new);
}

#[cfg(target_os = "linux")]
#[test]
fn laws_of_giving_back_hold_for_all_in_files_that_are_opened_again() {
    giving_back_holds(crate::map::traces(20_000).div_ceil(100), Crowd::<conformance::keeper::Reopened>::new);
}
