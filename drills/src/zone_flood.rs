//! More keys than a zone has cells, by far: what a flood of names can do to anybody.
//!
//! Phases of a hundred million distinct keys each, on a zone of 64 MiB. In the first three it is full of live keys all
//! the time; in the third a thousand victims under another limit are asked for without a pause, too. In the fourth
//! time goes faster, and cells come and go. Time is set by hand: a phase takes as long in the zone whatever the
//! machine is busy with.
//!
//! Beside each flooded zone there is a calm one whose keys all have their cells: the same asks of those, in between,
//! say what a decision would cost without the flood.

mod turn;
mod worker;

use std::time::Duration;

use harness::{Options, Report, mebibytes, thousands};
use tidegate::{HOUR, MINUTE, SECOND};

use crate::Outcome;
use crate::account::Bucket;
use turn::Tally;
use worker::{Found, Plan};

const ZONE_BYTES: u64 = 64 << 20;
const KEYS: u64 = 100_000_000;
const SAMPLED: u64 = 1_000_000;
const VICTIMS: u64 = 1000;

/// What may be resident beyond the zones.
const SPARE_BYTES: u64 = 4 << 20;
/// What a decision of the flood may cost, in decisions of keys that have their cells.
const MOST_RATIO: f64 = 2.0;
/// How full of live keys a full zone is, looked at in a sample.
const LEAST_LIVE: f64 = 0.99;

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let plan = |name, flood, seconds: u32, stays_full| Plan {
        name,
        flood,
        span: seconds * SECOND,
        stays_full,
        victims: 0,
        keys: options.scaled(KEYS),
        sampled: options.scaled(SAMPLED),
        bytes: options.scaled(ZONE_BYTES).max(1 << 20) as usize,
        seed: options.seed,
    };
    let minutely = |burst| Bucket::new(5, MINUTE, burst);
    // A key that owes its whole burst is live for 60, 12, 3600 and 24 seconds.
    let plans = [
        plan("a", minutely(5), 30, true),
        plan("b", minutely(1), 10, true),
        Plan { victims: VICTIMS, ..plan("c", Bucket::new(1, HOUR, 1), 30, true) },
        plan("d", minutely(2), 90, false),
    ];
    for plan in &plans {
        judge(plan, &plan.run(report.name())?, report);
    }
    Ok(())
}

fn judge(plan: &Plan, found: &Found, report: &mut Report) {
    let (name, flood) = (plan.name, &found.flood);
    report.fact(format!(
        "{name}: {} keys at {}, {} s of the zone's time, {} s of ours; zone {}",
        thousands(found.keys),
        plan.flood.limit(),
        plan.span.as_secs(),
        found.took.as_secs(),
        mebibytes(found.zone_bytes),
    ));
    report.fact(format!(
        "{name}: flood asked {}, admitted {}; a sample of {} keys asked again {} times",
        thousands(flood.asked),
        thousands(flood.admitted),
        thousands(found.sampled),
        thousands(found.sample_asks),
    ));
    let counts = &found.counts;
    report.fact(format!(
        "{name}: live {} of {} cells at the end, {:.2} % at least; shared {}, got a cell {}, decided sharing {}, retries {}",
        counts.live,
        counts.cells,
        found.least_live * 100.0,
        counts.shared,
        thousands(counts.inserts),
        thousands(counts.shared_decisions),
        counts.retries,
    ));
    if plan.stays_full {
        let claim = claim(name, "the zone is full of live keys all the time");
        report.claim(found.least_live >= LEAST_LIVE, &claim, live(found));
    }
    report.claim(flood.above == 0, &claim(name, "no key above its bound"), flood.first_above());
    report.claim(flood.let_back == 0, &claim(name, "who is denied stays so"), flood.first_let_back());
    report.claim(flood.never == 0, &claim(name, "no request is denied for good"), flood.never);
    if plan.victims > 0 {
        judge_victims(plan, &found.victims, report);
    }
    judge_memory(name, found, report);
    judge_time(name, found, report);
}

/// A flood is keys that come once. Asks of one key in a row are reported as well: a calm key is then in the nearest
/// cache, where a decision costs next to nothing.
fn judge_time(name: &str, found: &Found, report: &mut Report) {
    let Found { times, blocks, .. } = found;
    let shown = |(flooded, calm): (f64, f64)| {
        format!("{flooded:.1} ns and {calm:.1} ns, ratio {:.2}", flooded / calm)
    };
    let (flooded, calm) = times.once;
    report.claim(
        flooded / calm <= MOST_RATIO,
        &claim(name, "the flood's decisions cost at most twice those of calm keys"),
        format!("{}; medians of {blocks} blocks", shown(times.once)),
    );
    report.fact(format!("{name}: all asks of a key in a row: {}", shown(times.rows)));
}

fn judge_victims(plan: &Plan, victims: &Tally, report: &mut Report) {
    let most = worker::VICTIM.worst_case(plan.span) * plan.victims;
    report.fact(format!(
        "{}: victims asked {}, admitted {} of {} that their limit allows",
        plan.name,
        thousands(victims.asked),
        thousands(victims.admitted),
        thousands(most),
    ));
    report.claim(victims.above == 0, &claim(plan.name, "no victim above its bound"), victims.first_above());
}

fn judge_memory(name: &str, found: &Found, report: &mut Report) {
    let memory = &found.memory;
    let grown = memory.end.saturating_sub(memory.filled);
    let beyond = memory.end.saturating_sub(memory.before).saturating_sub(2 * found.zone_bytes);
    report.claim(
        grown <= SPARE_BYTES && beyond <= SPARE_BYTES,
        &claim(name, "memory is fixed"),
        format!(
            "resident {} before, {} with a full and a calm zone, {} at the end",
            mebibytes(memory.before),
            mebibytes(memory.filled),
            mebibytes(memory.end),
        ),
    );
}

fn claim(phase: &str, claim: &str) -> String {
    format!("{phase}: {claim}")
}

fn live(found: &Found) -> String {
    let looks: Vec<_> = found.live.iter().map(|live| format!("{:.2}", live * 100.0)).collect();
    format!("{} %", looks.join(" "))
}

/// By how much the zone's time moves on after so many of the keys.
fn step(span: Duration, part: u64, keys: u64) -> Duration {
    Duration::from_nanos((span.as_nanos() * u128::from(part) / u128::from(keys)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_a_phase_add_up_to_its_span() {
        assert_eq!(step(30 * SECOND, 4096, 4096 * 1000), Duration::from_millis(30));
        assert_eq!(step(30 * SECOND, 1, 100_000_000), Duration::from_nanos(300));
    }
}
