//! A side with its visits and its threads, and what one round of them takes.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::side::Side;
use super::visits::Visits;
use crate::cpu::cpu_time;
use crate::rounds::waited_to_run;

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

    #[expect(clippy::disallowed_methods, reason = "a stopwatch decides nothing")]
    fn stretch(&self, visits: &[u32]) -> Stretch {
        let (waited_before, start, cpu_before) = (waited_to_run(), Instant::now(), cpu_time());
        let allowed = self.side.decide(black_box(visits));
        let (cpu, end) = (cpu_time() - cpu_before, Instant::now());
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
