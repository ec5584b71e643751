//! Candidates measured in interleaved rounds, and their figures.

use super::candidate::{Candidate, Sample, Turn};
use crate::rounds::median;

/// How many rounds are measured; one before them warms up.
pub(crate) const ROUNDS: usize = 5;

/// What was measured, a row per candidate.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: &'static str,
    rounds: Vec<Sample>,
}

impl Table {
    /// Each candidate once per round.
    pub(crate) fn measure(candidates: &mut [Candidate<'_>], turn: Turn) -> Result<Table, String> {
        Table::measure_rounds(candidates, turn, ROUNDS)
    }

    /// The same with so many rounds.
    pub(crate) fn measure_rounds(
        candidates: &mut [Candidate<'_>],
        turn: Turn,
        rounds: usize,
    ) -> Result<Table, String> {
        let row = |candidate: &Candidate<'_>| Row { name: candidate.name, rounds: Vec::new() };
        let mut rows: Vec<_> = candidates.iter().map(row).collect();
        for round in 0..=rounds {
            for (row, candidate) in rows.iter_mut().zip(&mut *candidates) {
                let sample = candidate.turn(turn)?;
                if round > 0 {
                    row.rounds.push(sample);
                }
            }
        }
        Ok(Table { rows })
    }

    /// Prints all rows, with the ratio of their CPU time to that of the base.
    pub(crate) fn print(&self, title: &str, base: &str) {
        println!("{title}");
        println!(
            "{:<42} {:>8} {:>7} {:>10} {:>9} {:>9} {:>6} {:>8} {:>8}",
            "",
            "CPU s/M",
            "\u{f7} base",
            "replies/s",
            "p50 \u{b5}s",
            "p99 \u{b5}s",
            "busy",
            "allowed",
            "load s/M"
        );
        for Row { name, .. } in &self.rows {
            let of = |of| self.middle(name, of);
            let (cpu, load) = (of(|sample| sample.cpu), of(|sample| sample.load));
            let (p50, p99) = (of(|sample| sample.p50), of(|sample| sample.p99));
            let (busy, allowed) = (of(|sample| sample.busy * 100.0), of(|sample| sample.allowed * 100.0));
            let (rate, ratio) = (of(|sample| sample.rate), self.ratio(name, base, |sample| sample.cpu));
            let costs = format!("{cpu:>8.3} {ratio:>7.3} {rate:>10.0} {p50:>9.1} {p99:>9.1}");
            println!("{name:<42} {costs} {busy:>5.0}% {allowed:>7.1}% {load:>8.3}");
        }
        println!();
    }

    /// The one in the middle of the rounds; not a number if nobody has this name.
    pub(crate) fn middle(&self, name: &str, of: fn(&Sample) -> f64) -> f64 {
        let rounds = self.rounds(name).iter().map(of).collect::<Vec<_>>();
        if rounds.is_empty() { f64::NAN } else { median(rounds) }
    }

    /// One divided by another in the same round, in the middle of the rounds; not a number if one is missing.
    pub(crate) fn ratio(&self, name: &str, other: &str, of: fn(&Sample) -> f64) -> f64 {
        let pairs = self.rounds(name).iter().zip(self.rounds(other));
        let ratios: Vec<_> = pairs.map(|(one, other)| of(one) / of(other)).collect();
        if ratios.is_empty() { f64::NAN } else { median(ratios) }
    }

    /// The smallest and the largest of the same ratio.
    pub(crate) fn spread(&self, name: &str, other: &str, of: fn(&Sample) -> f64) -> (f64, f64) {
        let pairs = self.rounds(name).iter().zip(self.rounds(other));
        let ratios = pairs.map(|(one, other)| of(one) / of(other));
        ratios.fold((f64::NAN, f64::NAN), |(least, most), ratio| (ratio.min(least), ratio.max(most)))
    }

    fn rounds(&self, name: &str) -> &[Sample] {
        self.rows.iter().find(|row| row.name == name).map_or(&[], |row| &row.rounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, times: &[f64]) -> Row {
        let sample = |cpu: &f64| Sample {
            cpu: *cpu,
            load: 1.0,
            rate: 1.0,
            p50: 1.0,
            p99: 2.0 * cpu,
            busy: 1.0,
            allowed: 1.0,
        };
        Row { name, rounds: times.iter().map(sample).collect() }
    }

    #[test]
    fn a_ratio_is_that_of_the_same_round() {
        let table = Table { rows: vec![row("a", &[1.0, 10.0, 3.0]), row("b", &[2.0, 20.0, 1.0])] };
        assert_eq!(table.middle("a", |sample| sample.cpu), 3.0);
        assert_eq!(table.middle("b", |sample| sample.p99), 4.0);
        assert_eq!(table.ratio("a", "b", |sample| sample.cpu), 0.5);
        assert_eq!(table.spread("a", "b", |sample| sample.cpu), (0.5, 3.0));
    }

    #[test]
    fn whoever_was_left_out_has_no_figures() {
        let table = Table { rows: vec![row("a", &[1.0])] };
        assert!(table.middle("b", |sample| sample.cpu).is_nan());
        assert!(table.ratio("a", "b", |sample| sample.cpu).is_nan());
    }
}
