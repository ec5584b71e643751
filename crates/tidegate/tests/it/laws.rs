//! The laws under adjustments, changed limits and clocks that step by a century.

use conformance::law::{giving_back_is_safe, obey};
use conformance::promise::KINDS;
use conformance::random::Random;

fn hold(kind: &str) {
    let seed = Random::seed_from_environment();
    let histories = crate::traces(20_000);
    for history in 0..histories {
        let history_seed = Random::new(seed.wrapping_add(history)).number();
        if let Err(broken) = obey(kind, history_seed, 200) {
            panic!("{kind}, history {history} of seed {seed}: {broken}");
        }
    }
}

macro_rules! laws {
    ($($name:ident: $kind:literal)+) => {$(
        #[test]
        fn $name() {
            hold($kind);
        }
    )+};
}

laws! {
    laws_hold_for_token_bucket: "token-bucket"
    laws_hold_for_leaky_bucket: "leaky-bucket"
    laws_hold_for_fixed_window: "fixed-window"
    laws_hold_for_sliding_log: "sliding-log"
    laws_hold_for_sliding_window: "sliding-window"
    laws_hold_for_sliding_window_estimate: "sliding-window-estimate"
    laws_hold_for_pacer: "pacer"
    laws_hold_for_pacer_warm_up: "pacer-warm-up"
    laws_hold_for_concurrency: "concurrency"
}

#[test]
fn laws_of_giving_back_hold_for_all() {
    let seed = Random::seed_from_environment();
    // A take warms a warming pacer up: without it, the ones after it would have waited longer.
    for kind in KINDS.into_iter().filter(|kind| *kind != "pacer-warm-up") {
        for trial in 0..crate::traces(20_000) {
            let trial_seed = Random::new(seed.wrapping_add(trial)).number();
            if let Err(broken) = giving_back_is_safe(kind, trial_seed) {
                panic!("{kind}, trial {trial} of seed {seed}: {broken}");
            }
        }
    }
}
