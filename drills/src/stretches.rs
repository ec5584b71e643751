//! Whether the admissions of several rounds in a row are within what the limits allow in that time.
//!
//! All admissions of some rounds happened between the start of the first process and the end of the last: for every such
//! stretch no key may have more than its limit allows in that time.

use std::time::Duration;

use harness::{Report, thousands};
use tidegate::Timestamp;

/// The clock of another process may differ a little from ours: a stretch is taken to be this much longer.
pub(crate) const DOUBT: Duration = Duration::from_millis(5);

/// The life of one process.
#[derive(Debug)]
pub(crate) struct Round {
    /// How often each key was admitted.
    pub(crate) counts: Vec<u64>,
    /// Before it was started.
    pub(crate) start: Timestamp,
    /// After it was gone.
    pub(crate) end: Timestamp,
}

impl Round {
    /// All admissions.
    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// The time from before the first of these rounds to after the last.
pub(crate) fn span(rounds: &[Round]) -> Duration {
    let ends = rounds.first().zip(rounds.last());
    ends.map_or(DOUBT, |(first, last)| last.end.since(first.start).to_duration() + DOUBT)
}

/// The fewest and the most admissions of these keys in all rounds.
pub(crate) fn fewest_and_most(rounds: &[Round], keys: impl Iterator<Item = usize>) -> (u64, u64) {
    let sums = keys.map(|key| rounds.iter().map(|round| round.counts[key]).sum::<u64>());
    sums.fold((u64::MAX, 0), |(fewest, most), sum| (fewest.min(sum), most.max(sum)))
}

/// The stretches that were judged, and the keys that were above their bound in one.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    stretches: u64,
    above: Vec<String>,
    /// The key that was nearest to its bound in all rounds together, as a share of it.
    tightest: (f64, String),
}

impl Judged {
    /// Judges every key in every stretch of rounds, by the most that it may be admitted within a span.
    pub(crate) fn of(
        rounds: &[Round],
        name: impl Fn(usize) -> String,
        worst_case: impl Fn(usize, Duration) -> u64,
    ) -> Judged {
        let mut judged = Judged::default();
        for first in 0..rounds.len() {
            let mut sums = vec![0; rounds[first].counts.len()];
            for last in first..rounds.len() {
                sums.iter_mut().zip(&rounds[last].counts).for_each(|(sum, count)| *sum += count);
                let span = span(&rounds[first..=last]);
                judged.stretches += 1;
                for (key, sum) in sums.iter().enumerate() {
                    let most = worst_case(key, span);
                    let text =
                        || format!("{} was admitted {sum} of {most} in rounds {first} to {last}", name(key));
                    if *sum > most {
                        judged.above.push(text());
                    }
                    let share = *sum as f64 / most as f64;
                    if (first, last) == (0, rounds.len() - 1) && share > judged.tightest.0 {
                        judged.tightest = (share, text());
                    }
                }
            }
        }
        judged
    }

    pub(crate) fn claim(&self, report: &mut Report) {
        report.fact(format!("the tightest over the whole run: {}", self.tightest.1));
        report.claim(
            self.above.is_empty(),
            "no key above its bound in any stretch of rounds",
            match self.above.first() {
                None => format!("{} stretches", thousands(self.stretches)),
                Some(first) => format!("{} are, the first: {first}", self.above.len()),
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use tidegate::SECOND;

    use super::*;

    /// Rounds that begin at these seconds, in each of which the first key was admitted five times.
    fn judged(seconds: [u32; 2]) -> Judged {
        let at = |second: u32| Timestamp::after_epoch(second * SECOND);
        let rounds = seconds.map(|second| Round { counts: vec![5, 0], start: at(second), end: at(second) });
        assert_eq!(fewest_and_most(&rounds, 0..2), (0, 10));
        assert_eq!(rounds[0].total(), 5);
        // A burst of five, and five every four seconds.
        Judged::of(&rounds, |key| format!("key {key}"), |_, span| 5 + (span.as_secs_f64() * 1.25) as u64)
    }

    #[test]
    fn a_burst_in_each_round_is_above_the_bound_of_both() {
        let judged = judged([0, 1]);
        assert_eq!((judged.stretches, judged.above.len()), (3, 1));
        assert_eq!(judged.above[0], "key 0 was admitted 10 of 6 in rounds 0 to 1");
        assert_eq!(judged.tightest.1, judged.above[0]);
    }

    #[test]
    fn what_is_earned_between_rounds_is_within_the_bound() {
        assert_eq!(judged([0, 4]).above, [""; 0]);
    }
}
