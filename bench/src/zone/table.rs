//! Sides with their visits and their threads, measured in interleaved rounds, and their figures.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use harness::{cpu_time, median, now, waited_to_run};

use super::sides::{GOVERNOR, Side};
use super::visits::Visits;

/// How often threads are started for one round, on a machine that is busy with something else.
const ATTEMPTS: usize = 3;
/// The share of the time in which a thread had a processor, if threads met.
const ENOUGH: f64 = 0.8;

/// What is measured under one name.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) name: &'static str,
    pub(super) threads: usize,
    pub(super) side: &'a Side<'a>,
    pub(super) visits: &'a Visits,
}

impl<'a> Candidate<'a> {
    pub(super) fn new(side: &'a Side<'a>, threads: usize, visits: &'a Visits) -> Candidate<'a> {
        Candidate { name: side.name, threads, side, visits }
    }

    /// The visits of one round. Threads that hardly ever met say nothing about meeting: they try again.
    pub(super) fn round(&self, round: usize) -> Sample {
        if self.threads == 1 {
            return Sample::of(&[self.stretch(self.visits.turn(round))]);
        }
        let mut sample = self.together(round);
        for _ in 1..ATTEMPTS {
            if sample.met {
                break;
            }
            sample = self.together(round);
        }
        sample
    }

    /// All threads at the same time, each with visits of its own.
    fn together(&self, round: usize) -> Sample {
        let turns = (0..self.threads).map(|thread| self.visits.turn(round * self.threads + thread));
        let ready = &Barrier::new(self.threads);
        let stretches: Vec<_> = thread::scope(|scope| {
            let start = |visits| {
                scope.spawn(move || {
                    ready.wait();
                    self.stretch(visits)
                })
            };
            let threads: Vec<_> = turns.map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        Sample::of(&stretches)
    }

    fn stretch(&self, visits: &[u32]) -> Stretch {
        let (waited_before, start, cpu_before) = (waited_to_run(), now(), cpu_time());
        let allowed = self.side.decide(black_box(visits));
        let (cpu, end) = (cpu_time() - cpu_before, now());
        let waited = waited_to_run().saturating_sub(waited_before);
        Stretch { start, end, cpu, waited, decisions: visits.len(), allowed }
    }
}

/// What one thread did in one round.
struct Stretch {
    start: Instant,
    end: Instant,
    cpu: Duration,
    waited: Duration,
    decisions: usize,
    allowed: u64,
}

/// Nanoseconds per decision in one round, and the share of what was allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// On processors, of all threads.
    pub(super) cpu: f64,
    /// From the first start to the last end; of one thread less its waiting for a processor.
    pub(super) wall: f64,
    pub(super) allowed: f64,
    /// Whether all threads had a processor most of the time: else they hardly ever met.
    pub(super) met: bool,
}

impl Sample {
    fn of(stretches: &[Stretch]) -> Sample {
        let decisions = stretches.iter().map(|stretch| stretch.decisions).sum::<usize>() as f64;
        let each = |time: Duration| time.as_nanos() as f64 / decisions;
        let start = stretches.iter().map(|stretch| stretch.start).min().expect("there is a thread");
        let end = stretches.iter().map(|stretch| stretch.end).max().expect("there is a thread");
        let waited = if let [one] = stretches { one.waited } else { Duration::ZERO };
        let cpu = each(stretches.iter().map(|stretch| stretch.cpu).sum());
        let wall = each((end - start).saturating_sub(waited));
        let allowed = stretches.iter().map(|stretch| stretch.allowed).sum::<u64>() as f64 / decisions;
        Sample { cpu, wall, allowed, met: cpu >= ENOUGH * wall * stretches.len() as f64 }
    }
}

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
        median(counted.map(|(one, other)| of(one) / of(other)))
    }

    /// In the middle of the rounds that count: those in which threads met, if there are enough.
    fn middle(&self, name: &str, of: fn(&Sample) -> f64) -> f64 {
        let (rounds, met) = (&self.row(name).rounds, self.met(name));
        let counted = rounds.iter().filter(|sample| sample.met || met < FEWEST_MET);
        median(counted.map(of))
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
