//! Candidates measured in interleaved rounds, and their figures.

use super::candidate::{Candidate, Sample};
use super::sides::GOVERNOR;
use crate::rounds::median;

/// How many rounds are measured; one before them warms up.
pub(super) const ROUNDS: usize = 31;
/// The fewest rounds that count without the others.
pub(super) const FEWEST_MET: usize = 5;

/// What was measured, a row per candidate.
pub(super) struct Table {
    rows: Vec<Row>,
}

struct Row {
    name: &'static str,
    allowed: f64,
    rounds: Vec<Sample>,
}

impl Table {
    /// Each candidate once per round.
    pub(super) fn measure(candidates: &[Candidate<'_>]) -> Table {
        let first = |candidate: &Candidate<'_>| Row {
            name: candidate.name,
            allowed: candidate.round(0).allowed,
            rounds: Vec::new(),
        };
        let mut rows: Vec<_> = candidates.iter().map(first).collect();
        for round in 1..=ROUNDS {
            for (row, candidate) in rows.iter_mut().zip(candidates) {
                row.rounds.push(candidate.round(round));
            }
        }
        Table { rows }
    }

    /// Prints all rows, with their ratio to governor's.
    pub(super) fn print(&self, title: &str) {
        println!("{title}");
        println!(
            "{:<40} {:>9} {:>9} {:>4} {:>11} {:>9}",
            "", "ns CPU", "ns wall", "met", "\u{f7} governor", "allowed"
        );
        for Row { name, allowed, .. } in &self.rows {
            let (cpu, wall, met) = (self.cpu(name), self.wall(name), self.met(name));
            let (ratio, percent) = (self.ratio(name, GOVERNOR), allowed * 100.0);
            println!("{name:<40} {cpu:>9.1} {wall:>9.1} {met:>4} {ratio:>11.3} {percent:>8.1}%");
        }
        println!();
    }

    /// Nanoseconds of processors per decision.
    pub(super) fn cpu(&self, name: &str) -> f64 {
        self.middle(name, |sample| sample.cpu)
    }

    /// Nanoseconds of time per decision.
    pub(super) fn wall(&self, name: &str) -> f64 {
        self.middle(name, |sample| sample.wall)
    }

    /// In how many rounds all threads had a processor most of the time.
    pub(super) fn met(&self, name: &str) -> usize {
        self.row(name).rounds.iter().filter(|sample| sample.met).count()
    }

    /// The CPU time of one divided by that of another.
    pub(super) fn ratio(&self, name: &str, other: &str) -> f64 {
        self.compare(name, other, |sample| sample.cpu)
    }

    /// One divided by another in the same round, in the middle of the rounds in which both met, or of all if these
    /// are few.
    pub(super) fn compare(&self, name: &str, other: &str, of: fn(&Sample) -> f64) -> f64 {
        let pairs: Vec<_> = self.row(name).rounds.iter().zip(&self.row(other).rounds).collect();
        let met = pairs.iter().filter(|(one, other)| one.met && other.met).count();
        let counted = pairs.iter().filter(|(one, other)| one.met && other.met || met < FEWEST_MET);
        median(counted.map(|(one, other)| of(one) / of(other)).collect())
    }

    /// In the middle of the rounds that count: those in which threads met, if there are enough.
    fn middle(&self, name: &str, of: fn(&Sample) -> f64) -> f64 {
        let (rounds, met) = (&self.row(name).rounds, self.met(name));
        let counted = rounds.iter().filter(|sample| sample.met || met < FEWEST_MET);
        median(counted.map(of).collect())
    }

    fn row(&self, name: &str) -> &Row {
        self.rows.iter().find(|row| row.name == name).expect("it was measured")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, times: &[f64]) -> Row {
        let sample = |cpu: &f64| Sample { cpu: *cpu, wall: 2.0 * cpu, allowed: 1.0, met: *cpu < 100.0 };
        Row { name, allowed: 1.0, rounds: times.iter().map(sample).collect() }
    }

    #[test]
    fn a_ratio_is_that_of_the_same_round() {
        let (a, b) = (row("a", &[1.0, 10.0, 3.0, 1.0, 2.0]), row("b", &[2.0, 20.0, 1.0, 2.0, 4.0]));
        let table = Table { rows: vec![a, b] };
        assert_eq!((table.cpu("a"), table.wall("b"), table.met("a")), (2.0, 4.0, 5));
        assert_eq!(table.ratio("a", "b"), 0.5);
    }

    #[test]
    fn rounds_in_which_threads_did_not_meet_count_only_where_others_are_few() {
        let often = row("often", &[1.0, 2.0, 3.0, 4.0, 5.0, 200.0, 300.0, 400.0]);
        let seldom = row("seldom", &[1.0, 2.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0]);
        let table = Table { rows: vec![often, seldom] };
        assert_eq!((table.cpu("often"), table.met("often")), (3.0, 5));
        assert_eq!((table.cpu("seldom"), table.met("seldom")), (400.0, 2));
        assert_eq!(table.ratio("often", "seldom"), 300.0 / 600.0);
    }
}
