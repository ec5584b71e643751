//! The most that may be admitted between two moments at which no thread asks.

use std::fmt;
use std::time::Duration;

use tidegate::Timestamp;

use super::super::limits::{OUT_OF_ORDER, Terms};
use crate::account::ticks;

/// What is wrong with the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It jumps by an hour.
    Jumps,
    /// Its readers are so far apart.
    Apart(Duration),
}

impl Fault {
    /// Whether there is a bound for this limit that is worth checking.
    pub(super) fn is_bounded(self, terms: &Terms) -> bool {
        match self {
            Fault::Jumps => true,
            Fault::Apart(apart) => terms.outlasts(apart),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Jumps => out.write_str("jumps of an hour"),
            Fault::Apart(apart) => write!(out, "readers {} s apart", apart.as_secs()),
        }
    }
}

/// A moment at which no thread asks.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    /// How much each subject was admitted so far.
    pub(super) admitted: Vec<u64>,
    /// What the clock shows to its slowest reader.
    pub(super) reading: Timestamp,
    /// How much it was advanced so far, without jumps.
    pub(super) passed: Timestamp,
    pub(super) jumps: u64,
    pub(super) forwards: u64,
}

impl Mark {
    pub(super) fn first(subjects: usize, reading: Timestamp) -> Mark {
        Mark { admitted: vec![0; subjects], reading, passed: Timestamp::EPOCH, jumps: 0, forwards: 0 }
    }
}

/// The most that a subject may be admitted from one mark to another. A cell may have been given away too early so
/// many times.
pub(super) fn bound(fault: Fault, terms: &Terms, (from, to): (&Mark, &Mark), early: u64) -> u64 {
    let passed = to.passed.since(from.passed).get();
    match (fault, terms) {
        (Fault::Jumps, Terms::Tokens(bucket) | Terms::Queue(bucket, _)) => {
            bucket.burst() * (1 + to.forwards - from.forwards) + passed / bucket.interval()
        }
        // Each stretch between two jumps sees one boundary of windows more than it is long, and each jump forwards
        // begins a window.
        (Fault::Jumps, Terms::Window { amount, period }) => {
            let stretches = to.jumps - from.jumps + 1;
            amount * (1 + to.forwards - from.forwards + stretches + passed / ticks(*period))
        }
        (Fault::Apart(apart), Terms::Tokens(bucket) | Terms::Queue(bucket, _)) => {
            let too_early = early * ticks(apart - OUT_OF_ORDER);
            bucket.burst() + (passed + ticks(apart) + too_early) / bucket.interval()
        }
        (Fault::Apart(apart), Terms::Window { amount, period }) => {
            let window = |ticks_: u64| ticks_ / ticks(*period);
            let last = window(to.reading.ticks() + ticks(apart));
            amount * (last - window(from.reading.ticks()) + 1 + early)
        }
    }
}

/// The subject that is nearest to its bound, and between which marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tightest {
    terms: Terms,
    admitted: u64,
    bound: u64,
    marks: (usize, usize),
}

impl Tightest {
    /// Of all subjects, between any two marks. Those far apart come last and win among equals.
    pub(super) fn of_all(fault: Fault, terms: &[Terms], marks: &[Mark], early: u64) -> Tightest {
        let pairs = (0..marks.len()).flat_map(|from| (from + 1..marks.len()).map(move |to| (from, to)));
        let all = pairs.flat_map(|(from, to)| {
            let of_subject = move |(subject, terms): (usize, &Terms)| Tightest {
                terms: *terms,
                admitted: marks[to].admitted[subject] - marks[from].admitted[subject],
                bound: bound(fault, terms, (&marks[from], &marks[to]), early),
                marks: (from, to),
            };
            terms.iter().enumerate().map(of_subject)
        });
        all.max_by(|one, other| one.share().total_cmp(&other.share())).expect("there are subjects and marks")
    }

    pub(super) fn is_above(&self) -> bool {
        self.admitted > self.bound
    }

    fn share(&self) -> f64 {
        self.admitted as f64 / self.bound as f64
    }
}

impl fmt::Display for Tightest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tightest { terms, admitted, bound, marks: (from, to) } = self;
        write!(out, "{} was admitted {admitted} of {bound} in rounds {from} to {to}", terms.limit())
    }
}

#[cfg(test)]
mod tests {
    use tidegate::{SECOND, Ticks};

    use super::*;
    use crate::account::Bucket;

    const TOKENS: Terms = Terms::Tokens(Bucket::new(10, SECOND, 20));
    const WINDOW: Terms = Terms::Window { amount: 5, period: Duration::from_secs(10) };

    fn marks(seconds: u32, forwards: u64, admitted: u64) -> [Mark; 2] {
        let first = Mark::first(1, Timestamp::EPOCH);
        let passed = first.passed.saturating_add(Ticks::saturating_from(seconds * SECOND));
        let last = Mark { admitted: vec![admitted], reading: passed, passed, jumps: forwards, forwards };
        [first, last]
    }

    fn most(fault: Fault, terms: &Terms, seconds: u32, forwards: u64, early: u64) -> u64 {
        let [from, to] = marks(seconds, forwards, 0);
        bound(fault, terms, (&from, &to), early)
    }

    #[test]
    fn each_jump_forwards_is_worth_one_burst() {
        assert_eq!(most(Fault::Jumps, &TOKENS, 3, 0, 0), 20 + 30);
        assert_eq!(most(Fault::Jumps, &TOKENS, 3, 2, 0), 3 * 20 + 30);
        assert_eq!(most(Fault::Jumps, &WINDOW, 30, 0, 0), 5 * (2 + 3));
    }

    #[test]
    fn readers_apart_have_that_much_time_more() {
        let apart = Fault::Apart(SECOND);
        assert_eq!(most(apart, &TOKENS, 3, 0, 0), 20 + 40);
        assert_eq!(most(apart, &TOKENS, 3, 0, 10), 20 + 40 + 90);
        assert_eq!(most(apart, &WINDOW, 8, 0, 0), 5);
        assert_eq!(most(apart, &WINDOW, 9, 0, 0), 10, "the fastest sees the next window");
    }

    #[test]
    fn one_above_its_bound_is_the_tightest() {
        for (admitted, is_above) in [(50, false), (51, true)] {
            let tightest = Tightest::of_all(Fault::Jumps, &[TOKENS], &marks(3, 0, admitted), 0);
            assert_eq!(tightest.is_above(), is_above);
            assert_eq!(
                tightest.to_string(),
                format!("10/s burst 20 was admitted {admitted} of 50 in rounds 0 to 1")
            );
        }
    }
}
