//! Interleaved rounds: everything to be compared runs once per round, and the median of the rounds counts.
//!
//! On a busy machine a thread also waits for a processor: the kernel says for how long, and that is left out.

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How many rounds are measured; one before them warms up.
pub(crate) const ROUNDS: usize = 101;

/// Something to be measured: a name, and so many operations of it.
pub(crate) struct Candidate<'a> {
    pub(crate) name: &'static str,
    pub(crate) operations: u64,
    pub(crate) run: Box<dyn FnMut() -> u64 + 'a>,
}

impl<'a> Candidate<'a> {
    /// A decision to be taken so many times in a row; it says whether it was allowed.
    pub(crate) fn repeated(
        name: &'static str,
        operations: u64,
        mut decide: impl FnMut() -> bool + 'a,
    ) -> Candidate<'a> {
        let run = move || (0..operations).map(|_| u64::from(decide())).sum();
        Candidate { name, operations, run: Box::new(run) }
    }

    /// Runs once, not measured: the share of what was allowed.
    pub(crate) fn share_allowed(&mut self) -> f64 {
        (self.run)() as f64 / self.operations as f64
    }
}

/// Nanoseconds per operation of each candidate, in their order.
#[expect(clippy::disallowed_methods, reason = "a stopwatch decides nothing")]
pub(crate) fn measure(candidates: &mut [Candidate<'_>]) -> Vec<f64> {
    let mut times = vec![Vec::new(); candidates.len()];
    for round in 0..=ROUNDS {
        for (candidate, times) in candidates.iter_mut().zip(&mut times) {
            let waited = waited_to_run();
            let start = Instant::now();
            black_box((candidate.run)());
            let took = start.elapsed();
            let running = took.saturating_sub(waited_to_run().saturating_sub(waited));
            // The first round warms up.
            if round > 0 {
                times.push(running.as_nanos() as f64 / candidate.operations as f64);
            }
        }
    }
    times.into_iter().map(median).collect()
}

/// For how long this thread has waited for a processor so far; nothing, if the kernel does not say.
pub(crate) fn waited_to_run() -> Duration {
    let status = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = status.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// The one in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints how a goal was met; whether it was.
pub(crate) fn goal(name: &str, measured: f64, target: f64, aim: f64) -> bool {
    judge(name, (measured, measured <= target), "\u{2264}", (target, aim))
}

/// The same for a goal that is met by no less than the target.
pub(crate) fn goal_at_least(name: &str, measured: f64, target: f64, aim: f64) -> bool {
    judge(name, (measured, measured >= target), "\u{2265}", (target, aim))
}

fn judge(name: &str, (measured, met): (f64, bool), sign: &str, (target, aim): (f64, f64)) -> bool {
    let word = if met { "met" } else { "missed" };
    println!("goal: {name} measured {measured:.3} target {sign} {target} aim {aim} {word}");
    met
}
