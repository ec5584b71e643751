//! Whether the admissions of several rounds are within what the limits allow in that time.

use std::time::Duration;

use tidegate::Timestamp;

use super::rules::{self, KEYS};

/// The clock of a server may differ a little from that of the drill: a stretch is taken to be so much longer.
pub(super) const DOUBT: Duration = Duration::from_millis(5);

/// The life of one server.
#[derive(Debug)]
pub(super) struct Round {
    /// How often each key was admitted.
    pub(super) counts: Vec<u64>,
    /// Before it was started.
    pub(super) start: Timestamp,
    /// After it was gone.
    pub(super) end: Timestamp,
}

/// What was found in all stretches of rounds.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) stretches: u64,
    pub(super) above: u64,
    pub(super) first: Option<String>,
}

/// Judges every key in every stretch of rounds.
pub(super) fn stretches(rounds: &[Round]) -> Judged {
    let (rules, mut judged) = (rules::all(), Judged::default());
    for first in 0..rounds.len() {
        let mut sums = vec![0; rounds[first].counts.len()];
        for last in first..rounds.len() {
            sums.iter_mut().zip(&rounds[last].counts).for_each(|(sum, count)| *sum += count);
            let span = rounds[last].end.since(rounds[first].start).to_duration() + DOUBT;
            judged.stretches += 1;
            for (rule, of_rule) in rules.iter().zip(sums.chunks(KEYS)) {
                let most = rule.most_in(span);
                for (key, sum) in of_rule.iter().enumerate().filter(|(_, sum)| **sum > most) {
                    judged.above += 1;
                    judged.first.get_or_insert_with(|| {
                        let zone = rule.zone.unwrap_or("the first zone");
                        format!(
                            "key {key} at {} in {zone}: {sum} of {most}, rounds {first} to {last}",
                            rule.limit
                        )
                    });
                }
            }
        }
    }
    judged
}

/// The least and the most that a key of each rule was admitted in all rounds.
pub(super) fn by_rule(rounds: &[Round]) -> Vec<(u64, u64)> {
    let sum = |key: usize| rounds.iter().map(|round| round.counts[key]).sum::<u64>();
    let of_rule = |rule: usize| {
        let sums: Vec<_> = (rule * KEYS..(rule + 1) * KEYS).map(sum).collect();
        (sums.iter().min().copied().unwrap_or(0), sums.iter().max().copied().unwrap_or(0))
    };
    (0..rules::keys() / KEYS).map(of_rule).collect()
}

#[cfg(test)]
mod tests {
    use tidegate::SECOND;

    use super::*;

    #[test]
    fn a_burst_in_each_round_is_above_the_bound_of_both() {
        let round = |second: u32| {
            let at = |second: u32| Timestamp::after_epoch(second * SECOND);
            let mut counts = vec![0; rules::keys()];
            counts[0] = 5;
            Round { counts, start: at(second), end: at(second) }
        };
        let judged = stretches(&[round(0), round(1)]);
        assert_eq!((judged.stretches, judged.above), (3, 1));
        assert_eq!(stretches(&[round(0), round(4)]).above, 0);
        assert_eq!(by_rule(&[round(0), round(1)])[0], (0, 10));
    }
}
