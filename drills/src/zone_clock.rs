//! Clocks that jump, stand still and disagree.
//!
//! A round is chosen by its seed, but where its subjects lie in the zone is not: that is keyed by the system.
//!
//! What is judged, and why that is the bound:
//!
//! - **The same readings.** Each subject has a state of its own beside the zone, decided by the same readings. A zone
//!   may forget a state a tenth of a second after it is repaid, and may cut a debt that no limit can have made as soon
//!   as the clock is set back: so does the state, at the first reading that allows it. Whatever the zone admits, that
//!   state has to admit. Where every subject has a cell and none was forgotten, both decide the same to the tick.
//! - **True time.** A clock that was advanced by t and jumped forwards f times admits at most burst·(1 + f) + rate·t,
//!   in every interval: a jump forwards repays everything once, a jump back nothing. Accounts say so without the
//!   library's arithmetic.
//! - **Waiting.** After any jump no key with a cell waits longer than (cost + `max_debt`)·T and the tenth of a second
//!   by which readings may be out of order; under a fixed window, for longer than two periods.
//! - **Disagreement.** Readers that are up to s apart admit at most burst + rate·(t + s) as long as no key is forgotten:
//!   every admission moves the time at which all is repaid by one interval, from the first reading or later, and never
//!   further than a burst beyond the last reading. That needs a burst which takes longer to repay than s, or the
//!   slowest reader takes the fastest for a clock that was set back. When a cell is reused the fastest reader says
//!   so, up to s less the tenth of a second too early for the slowest: so much more for each cell that was ever given.

mod crowd;
mod judge;
mod jumps;
mod limits;
mod member;
mod skew;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Outcome;
use harness::{Options, Progress, Report, thousands};
use judge::Judged;

const ROUNDS: u64 = 40_000;
const STEPS: u64 = 1000;
const CROWDS: u64 = 20;

/// Zones of 16, 32 and 64 cells, and of more than enough.
const SIZES: [usize; 4] = [256, 512, 1024, 1 << 20];

/// How many subjects are in a zone: twice as many as a small one has cells, few in a large one.
fn most_subjects(zone_bytes: usize) -> u64 {
    if zone_bytes > 1 << 16 { 12 } else { zone_bytes as u64 / 8 }
}

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let rounds = options.scaled(ROUNDS);
    alone(options, report, ("jumps", rounds), jumps::round);
    alone(options, report, ("readers 0.1 s apart", rounds / 4 + 1), skew::slightly);
    alone(options, report, ("readers 1 s apart", rounds / 4 + 1), skew::widely);
    let crowds = options.scaled(CROWDS).max(2);
    crowd::run(options, report, crowds);
    Ok(())
}

/// Many rounds by one thread, each with a zone of its own.
fn alone(
    options: &Options,
    report: &mut Report,
    (name, rounds): (&str, u64),
    round: fn(u64, usize, u64, &mut Judged),
) {
    let progress = Progress::new(format!("{} {name}", report.name()), rounds);
    let (mut judged, mut panics) = (Judged::default(), Vec::new());
    for number in 0..rounds {
        let (seed, size) = (options.seed.wrapping_add(number), SIZES[number as usize % SIZES.len()]);
        judged.begin_round(seed);
        if catch_unwind(AssertUnwindSafe(|| round(seed, size, STEPS, &mut judged))).is_err() {
            panics.push(seed);
        }
        progress.at(number + 1, "");
    }
    report.fact(format!("{name}: {} rounds of {STEPS} steps, {}", thousands(rounds), judged.facts()));
    judged.claim(name, report);
    let first = panics.first().map_or_else(String::new, |seed| format!(", the first with seed {seed}"));
    report.claim(
        panics.is_empty(),
        &format!("{name}: nothing panics"),
        format!("{} panics{first}", panics.len()),
    );
}
