//! The laws under adjustments, changed limits and clocks that step by a century.

use conformance::law::obey;
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
