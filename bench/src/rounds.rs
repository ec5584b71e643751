//! Interleaved rounds: everything to be compared runs once per round, and the median of the rounds counts.

use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 9;

/// Something to be measured: a name, and so many operations of it.
pub(crate) struct Candidate<'a> {
    pub(crate) name: &'static str,
    pub(crate) operations: u64,
    pub(crate) run: Box<dyn FnMut() -> u64 + 'a>,
}

/// Nanoseconds per operation of each candidate, in their order.
#[expect(clippy::disallowed_methods, reason = "a stopwatch decides nothing")]
pub(crate) fn measure(candidates: &mut [Candidate<'_>]) -> Vec<f64> {
    let mut times = vec![Vec::new(); candidates.len()];
    for round in 0..=ROUNDS {
        for (candidate, times) in candidates.iter_mut().zip(&mut times) {
            let start = Instant::now();
            black_box((candidate.run)());
            let nanoseconds = start.elapsed().as_nanos() as f64 / candidate.operations as f64;
            // The first round warms up.
            if round > 0 {
                times.push(nanoseconds);
            }
        }
    }
    times.into_iter().map(median).collect()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Prints how a goal was met; whether it was.
pub(crate) fn goal(name: &str, measured: f64, target: f64, aim: f64) -> bool {
    let met = measured <= target;
    let word = if met { "met" } else { "missed" };
    println!("goal: {name} measured {measured:.2} target \u{2264} {target} aim {aim} {word}");
    met
}
