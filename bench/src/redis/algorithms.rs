//! A decision by each algorithm, for information.

use testbed::Flavour;

use super::one::{PEER, PLAIN};
use super::question::Who;
use super::side::{Side, Verdict};
use super::start;
use super::table::Sides;
use crate::goal::Goal;

const DEPTH: usize = 16;

/// Prints a table. There is no goal.
pub(super) fn run(flavour: Flavour) -> Result<Vec<Goal>, String> {
    let server = start(flavour)?;
    let allowed = [
        PEER,
        passing("token-bucket", &["100/h burst 1000"]),
        passing("token-bucket, ticks left over", &["7/h burst 1000"]),
        passing("leaky-bucket", &["100/h queue 1000 delay-after all leaky-bucket"]),
        passing("fixed-window", &["1000/h fixed-window"]),
        passing("sliding-log", &["100/60s sliding-log"]),
        passing("sliding-window, 16 slots", &["1000/h sliding-window"]),
        passing("sliding-window, estimate", &["1000/h sliding-window mode estimate"]),
        passing("pacer", &["1000/s pacer"]),
        passing("pacer, warm-up", &["1000/s warm-up 10s pacer"]),
        passing("concurrency, leases end between takes", &["5/100ms concurrency"]),
    ];
    Sides::meet(&allowed, &server)?.measure("each algorithm, 100,000 keys, allowed", DEPTH)?;
    drop(server);
    let server = start(flavour)?;
    let refused = [
        PEER,
        refusing("token-bucket", &["1/h"]),
        refusing("leaky-bucket", &["1/h queue 0 leaky-bucket"]),
        refusing("fixed-window", &["1/d fixed-window"]),
        refusing("sliding-log", &["1/h sliding-log"]),
        refusing("sliding-window, 16 slots", &["1/h sliding-window"]),
        refusing("sliding-window, estimate", &["1/d sliding-window mode estimate"]),
        refusing("pacer", &["1/h pacer"]),
        refusing("concurrency", &["1/h concurrency"]),
    ];
    Sides::meet(&refused, &server)?.measure("each algorithm, 100,000 keys, refused", DEPTH)?;
    Ok(Vec::new())
}

fn passing(name: &'static str, limits: &'static [&'static str]) -> Side {
    Side { name, base: PLAIN, who: Who::Ours, limits, ..PEER }
}

fn refusing(name: &'static str, limits: &'static [&'static str]) -> Side {
    Side { verdict: Verdict::Refused, ..passing(name, limits) }
}
