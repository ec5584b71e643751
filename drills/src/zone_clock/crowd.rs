//! The same faults while four threads ask at once.
//!
//! The threads run round by round, and between two rounds no thread asks. What was admitted from one such moment to any
//! other one is judged by how much time the clock was given in between, and how often it jumped.

mod bounds;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use conformance::random::Random;
use harness::{Options, Progress, Report, pause, thousands};
use tidegate::{Clock, HOUR, Limiter, MILLISECOND, ManualClock, Ticks, Timestamp, Zone, ask};

use super::limits::{ALL, Terms};
use super::skew::{APART, Disagreeing, READERS, ahead, read_ahead};
use crate::waiting::wait_until;
use bounds::{Fault, Mark, Tightest};

const ASKS: u64 = 200_000;
const SIZES: [(&str, usize, u64); 2] = [("large", 1 << 20, 12), ("small", 1024, 200)];

/// Every fault in every size, so many rounds of each.
pub(super) fn run(options: &Options, report: &mut Report, rounds: u64) {
    for fault in [Fault::Jumps, Fault::Apart(APART)] {
        for (size, bytes, subjects) in SIZES {
            let name = format!("{READERS} threads, {fault}, {size} zone");
            let mut crowd = Crowd::new(fault, bytes, subjects, options.seed);
            let progress = Progress::new(format!("{} {name}", report.name()), rounds);
            for round in 0..rounds {
                crowd.round(options.seed.wrapping_add(round));
                progress.at(round + 1, "");
            }
            crowd.judge(&name, report);
        }
    }
}

/// Threads, and what was admitted to whom.
struct Crowd {
    fault: Fault,
    clock: Arc<ManualClock>,
    zone: Zone,
    subjects: Vec<(Terms, Limiter)>,
    admitted: Vec<AtomicU64>,
    marks: Vec<Mark>,
}

impl Crowd {
    fn new(fault: Fault, bytes: usize, subjects: u64, seed: u64) -> Crowd {
        let (clock, mut random) = (Arc::new(ManualClock::new()), Random::new(seed));
        clock.advance(10_000 * HOUR);
        let zone = Zone::with_clock(bytes, Arc::new(Disagreeing(clock.clone())));
        let bounded = ALL.into_iter().filter(|terms| fault.is_bounded(terms));
        let limiters: Vec<_> = bounded
            .map(|terms| (terms, Limiter::on(&zone, &terms.limit().to_string(), terms.limit())))
            .collect();
        let pick = |_| limiters[random.between(0, limiters.len() as u64 - 1) as usize].clone();
        let subjects: Vec<_> = (0..subjects).map(pick).collect();
        let admitted: Vec<_> = subjects.iter().map(|_| AtomicU64::new(0)).collect();
        let first = Mark::first(subjects.len(), clock.now());
        Crowd { fault, clock, zone, subjects, admitted, marks: vec![first] }
    }

    /// All threads ask while the clock is moved; then none does.
    fn round(&mut self, seed: u64) {
        let (running, mut mark) = (AtomicU64::new(READERS), self.marks[self.marks.len() - 1].clone());
        let begin = AtomicBool::new(false);
        thread::scope(|scope| {
            for thread in 0..READERS {
                let (crowd, running, begin) = (&*self, &running, &begin);
                scope.spawn(move || {
                    if crowd.fault != Fault::Jumps {
                        read_ahead(ahead(thread, APART));
                    }
                    wait_until(|| begin.load(Ordering::SeqCst));
                    crowd.ask(Random::new(seed.wrapping_mul(READERS).wrapping_add(thread)));
                    running.fetch_sub(1, Ordering::SeqCst);
                });
            }
            begin.store(true, Ordering::SeqCst);
            let mut random = Random::new(!seed);
            while running.load(Ordering::SeqCst) > 0 {
                self.move_clock(&mut random, &mut mark);
                pause(MILLISECOND / 10);
            }
        });
        mark.reading = self.clock.now();
        mark.admitted = self.admitted.iter().map(|count| count.load(Ordering::SeqCst)).collect();
        self.marks.push(mark);
    }

    fn ask(&self, mut random: Random) {
        for _ in 0..ASKS {
            let key = random.between(0, self.subjects.len() as u64 - 1);
            let (terms, limiter) = &self.subjects[key as usize];
            // A request that would have to queue accepts that: it is the admission that counts.
            let max_wait = if terms.has_queue() { HOUR } else { Duration::ZERO };
            if limiter.admit(ask(&key.to_le_bytes()[..]).max_wait(max_wait)).is_allowed() {
                self.admitted[key as usize].fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn move_clock(&self, random: &mut Random, mark: &mut Mark) {
        if self.fault == Fault::Jumps && random.percent(2) {
            mark.jumps += 1;
            if random.percent(50) {
                self.clock.advance(HOUR);
                mark.forwards += 1;
            } else {
                self.clock.step_back(HOUR);
            }
            return;
        }
        // Now and then it stands still.
        if random.percent(80) {
            let by = Duration::from_micros(random.between(0, 40_000));
            self.clock.advance(by);
            mark.passed = mark.passed.saturating_add(Ticks::saturating_from(by));
        }
    }

    fn judge(&self, name: &str, report: &mut Report) {
        let counts = self.zone.counts();
        let last = &self.marks[self.marks.len() - 1];
        report.fact(format!(
            "{name}: {} subjects, {} asks, {} admitted in {:.0} s of true time, {} jumps; got a cell {}, decided sharing {}, retries {}",
            self.subjects.len(),
            thousands(ASKS * READERS * (self.marks.len() as u64 - 1)),
            thousands(last.admitted.iter().sum()),
            last.passed.since(Timestamp::EPOCH).to_duration().as_secs_f64(),
            last.jumps,
            counts.inserts,
            thousands(counts.shared_decisions),
            thousands(counts.retries),
        ));
        let early =
            if counts.inserts == self.ever_admitted() { 0 } else { counts.inserts + counts.conversions };
        let terms: Vec<_> = self.subjects.iter().map(|(terms, _)| *terms).collect();
        let tightest = Tightest::of_all(self.fault, &terms, &self.marks, early);
        let claim = format!("{name}: no key above its bound between any two rounds");
        report.claim(!tightest.is_above(), &claim, format!("the tightest: {tightest}"));
    }

    fn ever_admitted(&self) -> u64 {
        self.admitted.iter().filter(|count| count.load(Ordering::SeqCst) > 0).count() as u64
    }
}
