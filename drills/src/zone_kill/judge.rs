//! Whether the admissions of several rounds are within what the limits allow in that time.

use std::fmt;
use std::time::Duration;

use tidegate::Timestamp;

use super::load::{KEYS, limit_of};

/// The clock of a process may differ a little from that of the machine: a stretch is taken to be so much longer.
const DOUBT: Duration = Duration::from_millis(5);

/// The life of one process.
#[derive(Debug)]
pub(super) struct Round {
    /// How often each key was admitted.
    counts: Vec<u64>,
    /// Before it was started.
    start: Timestamp,
    /// After it was gone.
    end: Timestamp,
}

impl Round {
    /// Reads what it wrote: four bytes per admission.
    pub(super) fn read(bytes: &[u8], start: Timestamp, end: Timestamp) -> Result<Round, String> {
        let mut counts = vec![0; KEYS as usize];
        let (records, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(format!("{} bytes are no whole number of admissions", bytes.len()));
        }
        for record in records {
            let key = u32::from_le_bytes(*record);
            *counts.get_mut(key as usize).ok_or_else(|| format!("there is no key {key}"))? += 1;
        }
        Ok(Round { counts, start, end })
    }

    /// All admissions.
    pub(super) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Some rounds in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    first: usize,
    last: usize,
    /// From before the first to after the last.
    pub(super) span: Duration,
}

impl Stretch {
    /// From one round to another.
    pub(super) fn of(rounds: &[Round], (first, last): (usize, usize)) -> Stretch {
        let span = rounds[last].end.since(rounds[first].start).to_duration() + DOUBT;
        Stretch { first, last, span }
    }
}

/// All rounds.
pub(super) fn whole(rounds: &[Round]) -> Stretch {
    Stretch::of(rounds, (0, rounds.len() - 1))
}

/// Every stretch of so many rounds, as its first and last.
pub(super) fn stretches(rounds: usize) -> Vec<(usize, usize)> {
    (0..rounds).flat_map(|first| (first..rounds).map(move |last| (first, last))).collect()
}

/// How often a key was admitted in all rounds.
pub(super) fn admitted(rounds: &[Round], key: u64) -> u64 {
    rounds.iter().map(|round| round.counts[key as usize]).sum()
}

/// The key that is nearest to its bound, or most above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tightest {
    key: u64,
    admitted: u64,
    bound: u64,
    rounds: (usize, usize),
}

impl Tightest {
    pub(super) fn is_above(&self) -> bool {
        self.admitted > self.bound
    }
}

impl fmt::Display for Tightest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tightest { key, admitted, bound, rounds: (first, last) } = self;
        let limit = limit_of(*key).limit();
        write!(out, "key {key} at {limit} was admitted {admitted} of {bound} in rounds {first} to {last}")
    }
}

/// The tightest of all keys over a stretch.
pub(super) fn tightest(rounds: &[Round], stretch: Stretch) -> Tightest {
    let rounds = &rounds[stretch.first..=stretch.last];
    let of_key = |key: u64| Tightest {
        key,
        admitted: admitted(rounds, key),
        bound: limit_of(key).most_in(stretch.span),
        rounds: (stretch.first, stretch.last),
    };
    let share = |one: &Tightest| one.admitted as f64 / one.bound as f64;
    let all = (0..KEYS).map(of_key);
    all.max_by(|one, other| share(one).total_cmp(&share(other))).expect("there are keys")
}

#[cfg(test)]
mod tests {
    use tidegate::SECOND;

    use super::*;

    /// A round of a second in which key 0, of 5 per minute and burst 5, was admitted so often.
    fn round(second: u32, times: usize) -> Round {
        let at = |second: u32| Timestamp::after_epoch(second * SECOND);
        Round::read(&[0; 4].repeat(times), at(second), at(second + 1)).unwrap()
    }

    #[test]
    fn a_burst_in_each_round_is_above_the_bound_of_both() {
        let rounds = [round(0, 5), round(1, 5)];
        let judged: Vec<_> =
            stretches(2).into_iter().map(|pair| tightest(&rounds, Stretch::of(&rounds, pair))).collect();
        assert_eq!(judged.iter().map(Tightest::is_above).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(judged[1], Tightest { key: 0, admitted: 10, bound: 5, rounds: (0, 1) });
    }

    #[test]
    fn what_is_earned_between_rounds_is_within_the_bound() {
        let rounds = [round(0, 5), round(60, 5)];
        assert!(!tightest(&rounds, whole(&rounds)).is_above());
        assert_eq!((admitted(&rounds, 0), rounds[0].total()), (10, 5));
    }

    #[test]
    fn half_an_admission_and_an_unknown_key_are_refused() {
        let read = |bytes: &[u8]| Round::read(bytes, Timestamp::EPOCH, Timestamp::EPOCH);
        assert!(read(&[0, 0, 0]).is_err() && read(&[255; 4]).is_err() && read(&[]).is_ok());
    }
}
