//! One phase: a zone that is filled before anything is measured, a calm one beside it, and the threads.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use tidegate::{HOUR, Limiter, ManualClock, Zone, ZoneCounts};

use super::turn::{Asker, Standing, Tally};
use super::worker::{Scene, THREADS, Times, VICTIM, Worker};
use crate::account::Bucket;
use crate::progress::Progress;
use crate::resident::resident;
use crate::stopwatch::{Stopwatch, median};

/// The keys that fill the zone have numbers that no others have.
const FILLING: u64 = 1 << 63;

/// The share of live cells at which a zone is full. Debts that are shared keep newcomers from the last ones.
const FULL: f64 = 0.995;

/// What is done in one phase.
pub(super) struct Plan {
    pub(super) name: &'static str,
    pub(super) flood: Bucket,
    pub(super) span: Duration,
    /// Whether no debt is repaid within the span, so that no cell becomes free.
    pub(super) stays_full: bool,
    pub(super) victims: u64,
    pub(super) keys: u64,
    pub(super) sampled: u64,
    pub(super) bytes: usize,
    pub(super) seed: u64,
}

/// What came of it.
pub(super) struct Found {
    pub(super) keys: u64,
    pub(super) flood: Tally,
    pub(super) victims: Tally,
    pub(super) sampled: u64,
    pub(super) sample_asks: u64,
    pub(super) counts: ZoneCounts,
    pub(super) live: Vec<f64>,
    pub(super) least_live: f64,
    pub(super) zone_bytes: u64,
    pub(super) memory: Memory,
    pub(super) times: Times,
    pub(super) blocks: usize,
    pub(super) took: Duration,
}

/// What was resident when, in bytes.
pub(super) struct Memory {
    pub(super) before: u64,
    pub(super) filled: u64,
    pub(super) end: u64,
}

impl Plan {
    /// The asks of each key in a row: all that it may have, and two more.
    pub(super) fn asks(&self) -> u64 {
        self.flood.burst() + 2
    }

    pub(super) fn run(&self, drill: &str) -> Result<Found, String> {
        let mut workers: Vec<_> = (0..THREADS).map(|number| Worker::new(number, self)).collect();
        let before = resident()?;
        let clock = Arc::new(ManualClock::new());
        clock.advance(HOUR);
        let zone = Zone::with_clock(self.bytes, clock.clone());
        let calm_zone = Zone::with_clock(self.bytes, clock.clone());
        let scene = Scene {
            plan: self,
            clock: &clock,
            zone: &zone,
            flood: &Limiter::on(&zone, "flood", self.flood.limit()),
            victim: &Limiter::on(&zone, "victim", VICTIM.limit()),
            calm: &Limiter::on(&calm_zone, "calm", self.flood.limit()),
            calm_keys: calm_zone.counts().cells as u64 / 2,
            done: &AtomicU64::new(0),
            progress: &Progress::new(format!("{drill} {}", self.name), self.keys),
        };
        workers.iter_mut().for_each(|worker| worker.meet_victims(&scene));
        let mut found = fill(&scene);
        (0..scene.calm_keys).for_each(|key| touch(scene.calm, &scene, key));
        let filled = resident()?;
        let watch = Stopwatch::start();
        thread::scope(|scope| {
            for worker in &mut workers {
                let scene = &scene;
                scope.spawn(move || worker.run(scene));
            }
        });
        let took = watch.elapsed();
        let counts = zone.counts();
        found.live.push(counts.live as f64 / counts.cells as f64);
        let memory = Memory { before, filled, end: resident()? };
        let mut found = Found { counts, memory, took, zone_bytes: zone.bytes() as u64, ..found };
        workers.into_iter().for_each(|worker| found.add(worker));
        found.least_live = found.live.iter().copied().fold(1.0, f64::min);
        Ok(found)
    }
}

/// Fills the zone with keys that owe all they can.
fn fill(scene: &Scene<'_>) -> Found {
    let (mut tally, mut filled) = (Tally::default(), 0);
    let mut counts = scene.zone.counts();
    while (counts.live as f64) < FULL * counts.cells as f64 && filled < 8 * counts.cells as u64 {
        for _ in 0..counts.cells / 4 {
            let key = FILLING + filled;
            scene.flooding().turn(key, scene.plan.asks(), &mut Standing::default(), &mut tally);
            filled += 1;
        }
        counts = scene.zone.counts();
    }
    Found::begin(scene.plan.keys + filled, tally, counts)
}

fn touch(limiter: &Limiter, scene: &Scene<'_>, key: u64) {
    let asker = Asker { limiter, ..scene.flooding() };
    asker.turn(key, scene.plan.flood.burst(), &mut Standing::default(), &mut Tally::default());
}

impl Found {
    fn begin(keys: u64, flood: Tally, counts: ZoneCounts) -> Found {
        Found {
            keys,
            flood,
            counts,
            victims: Tally::default(),
            sampled: 0,
            sample_asks: 0,
            live: vec![counts.live as f64 / counts.cells as f64],
            least_live: 0.0,
            zone_bytes: 0,
            memory: Memory { before: 0, filled: 0, end: 0 },
            times: Times::default(),
            blocks: 0,
            took: Duration::ZERO,
        }
    }

    fn add(&mut self, worker: Worker) {
        self.sampled += worker.sampled();
        self.sample_asks += worker.sample_asks;
        self.live.extend(worker.live);
        self.blocks += worker.times.len();
        let middle = |of: fn(&Times) -> f64| median(worker.times.iter().map(of).collect()) / THREADS as f64;
        // Each thread has its own medians; their means are those of both.
        self.times.once.0 += middle(|times| times.once.0);
        self.times.once.1 += middle(|times| times.once.1);
        self.times.rows.0 += middle(|times| times.rows.0);
        self.times.rows.1 += middle(|times| times.rows.1);
        self.flood.add(worker.flood);
        self.victims.add(worker.victim);
    }
}
