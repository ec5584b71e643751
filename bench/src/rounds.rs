//! Interleaved rounds: everything to be compared runs once per round, and the median of the rounds counts.
//!
//! On a busy machine a thread also waits for a processor: the kernel says for how long, and that is left out.

use std::hint::black_box;

use harness::{median, running};

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
pub(crate) fn measure(candidates: &mut [Candidate<'_>]) -> Vec<f64> {
    let mut times = vec![Vec::new(); candidates.len()];
    for round in 0..=ROUNDS {
        for (candidate, times) in candidates.iter_mut().zip(&mut times) {
            let running = running(|| _ = black_box((candidate.run)()));
            // The first round warms up.
            if round > 0 {
                times.push(running.as_nanos() as f64 / candidate.operations as f64);
            }
        }
    }
    times.into_iter().map(median).collect()
}
