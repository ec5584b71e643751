//! Candidates measured in interleaved rounds by the time they spend on a processor.

use harness::cpu_time;
use harness::median;

/// How many rounds are measured; one before them warms up.
pub(super) const ROUNDS: usize = 31;

/// What is measured under one name: a round of it, in nanoseconds for each time.
pub(super) struct Candidate<'a> {
    name: String,
    round: Box<dyn FnMut() -> f64 + 'a>,
}

impl<'a> Candidate<'a> {
    /// Something that is done so many times in a round; each time it tells a number, which is always this one.
    pub(super) fn new(
        name: impl Into<String>,
        times: u64,
        expected: u64,
        mut once: impl FnMut() -> u64 + 'a,
    ) -> Candidate<'a> {
        let name = name.into();
        let title = name.clone();
        let round = move || {
            let before = cpu_time();
            let sum: u64 = (0..times).map(|_| once()).sum();
            let spent = cpu_time() - before;
            assert_eq!(sum, expected * times, "{title}: not the answer that is measured");
            spent.as_nanos() as f64 / times as f64
        };
        Candidate { name, round: Box::new(round) }
    }

    /// Something that measures itself.
    pub(super) fn remote(name: impl Into<String>, round: impl FnMut() -> f64 + 'a) -> Candidate<'a> {
        Candidate { name: name.into(), round: Box::new(round) }
    }
}

/// What was measured, a row per candidate.
pub(super) struct Table {
    rows: Vec<(String, Vec<f64>)>,
}

impl Table {
    /// Each candidate once per round.
    pub(super) fn measure(mut candidates: Vec<Candidate<'_>>) -> Table {
        let mut rows: Vec<_> =
            candidates.iter().map(|candidate| (candidate.name.clone(), Vec::new())).collect();
        for round in 0..=ROUNDS {
            for ((_, times), candidate) in rows.iter_mut().zip(&mut candidates) {
                let time = (candidate.round)();
                // The first round warms up.
                if round > 0 {
                    times.push(time);
                }
            }
        }
        Table { rows }
    }

    /// Prints all rows, with their ratio to the first.
    pub(super) fn print(&self, title: &str, not_measured: &str) {
        println!("{title}\nnot measured: {not_measured}");
        println!("{:<46} {:>10} {:>8}", "", "ns CPU", "\u{f7} first");
        for (row, (name, _)) in self.rows.iter().enumerate() {
            println!("{name:<46} {:>10.1} {:>8.2}", self.time(row), self.ratio(row, 0));
        }
        println!();
    }

    /// Nanoseconds of a row, in the middle of the rounds.
    pub(super) fn time(&self, row: usize) -> f64 {
        median(self.rows[row].1.iter().copied())
    }

    /// One row divided by another in the same round, in the middle of the rounds.
    pub(super) fn ratio(&self, row: usize, other: usize) -> f64 {
        let pairs = self.rows[row].1.iter().zip(&self.rows[other].1);
        median(pairs.map(|(one, other)| one / other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_that_of_the_same_round() {
        let rows = vec![("a".to_owned(), vec![1.0, 10.0, 3.0]), ("b".to_owned(), vec![2.0, 20.0, 1.0])];
        let table = Table { rows };
        assert_eq!((table.time(0), table.ratio(0, 1)), (3.0, 0.5));
    }

    #[test]
    #[should_panic(expected = "not the answer that is measured")]
    fn another_answer_than_the_one_that_is_measured_is_no_measurement() {
        let mut calls = 0;
        let candidate = Candidate::new("a", 10, 2, || {
            calls += 1;
            if calls == 7 { 1 } else { 2 }
        });
        Table::measure(vec![candidate]);
    }
}
