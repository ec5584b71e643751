//! One thread of a flood: block after block of new keys, a few of the old ones, and its victims.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use conformance::random::Random;
use harness::{Progress, Stopwatch, median, resident, running};
use tidegate::{HOUR, Limiter, ManualClock, SECOND, Zone, ZoneCounts};

use super::step;
use super::turn::{Asker, Standing, Tally};
use crate::account::Bucket;

/// What victims are promised.
pub(super) const VICTIM: Bucket = Bucket::new(10, SECOND, 20);
/// How many threads there are.
pub(super) const THREADS: u64 = 2;
/// Every so many blocks one is timed, and a calm one after it.
const TIMED_EACH: u64 = 8;
/// For so many new keys one of the sample is asked again, twice.
const KEYS_PER_SAMPLE: u64 = 16;

/// Nanoseconds per ask, of the flood and of keys that have their cells.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// One ask per key.
    pub(super) once: (f64, f64),
    /// All asks of a key in a row.
    pub(super) rows: (f64, f64),
}

/// What all threads share.
pub(super) struct Scene<'a> {
    pub(super) plan: &'a Plan,
    pub(super) clock: &'a ManualClock,
    pub(super) zone: &'a Zone,
    pub(super) flood: &'a Limiter,
    pub(super) victim: &'a Limiter,
    pub(super) calm: &'a Limiter,
    pub(super) calm_keys: u64,
    /// Keys that a thread has done by its turns.
    pub(super) done: &'a AtomicU64,
    pub(super) progress: &'a Progress,
}

/// One thread and all that it remembers. Its memory is taken before the flood begins.
pub(super) struct Worker {
    number: u64,
    random: Random,
    block: u64,
    sample: Vec<(u64, Standing)>,
    sampled: usize,
    victims: Vec<Standing>,
    pub(super) flood: Tally,
    pub(super) victim: Tally,
    pub(super) sample_asks: u64,
    pub(super) times: Vec<Times>,
    /// How full the zone was each time that was looked at.
    pub(super) live: Vec<f64>,
}

impl Worker {
    pub(super) fn new(number: u64, plan: &Plan) -> Worker {
        let blank = (u64::MAX, Standing::default());
        let block = (plan.keys / THREADS / 1000).clamp(256, 4096);
        Worker {
            number,
            random: Random::new(plan.seed.wrapping_add(number)),
            block,
            sample: vec![blank; plan.sampled.div_ceil(THREADS) as usize],
            sampled: 0,
            victims: vec![Standing::default(); (plan.victims / THREADS) as usize],
            flood: Tally::default(),
            victim: Tally::default(),
            sample_asks: 0,
            times: Vec::with_capacity((plan.keys / block / TIMED_EACH + 1) as usize),
            live: Vec::with_capacity(10_000),
        }
    }

    /// How many of its keys are asked again later.
    pub(super) fn sampled(&self) -> u64 {
        self.sampled as u64
    }

    /// Its whole share of the flood.
    pub(super) fn run(&mut self, scene: &Scene<'_>) {
        let keys = scene.plan.keys / THREADS;
        let (mut first, mut blocks) = (0, 0);
        while first < keys {
            let size = self.block.min(keys - first);
            if blocks % TIMED_EACH == 0 {
                self.timed_block(scene, first, size);
            } else {
                self.flood_block(scene, first..first + size, scene.plan.asks());
            }
            self.ask_sample_again(scene, size / KEYS_PER_SAMPLE);
            self.ask_victims(scene);
            scene.clock.advance(step(scene.plan.span, size, scene.plan.keys));
            (first, blocks) = (first + size, blocks + 1);
            self.look(scene, size);
        }
        let all = self.sampled;
        (0..all).for_each(|index| self.ask_sampled(scene, index));
    }

    fn flood_block(&mut self, scene: &Scene<'_>, keys: Range<u64>, asks: u64) {
        let asker = scene.flooding();
        let each = (scene.plan.keys / THREADS / self.sample.len() as u64).max(1);
        for index in keys {
            let (key, mut standing) = (index * THREADS + self.number, Standing::default());
            asker.turn(key, asks, &mut standing, &mut self.flood);
            if index.is_multiple_of(each) && self.sampled < self.sample.len() {
                self.sample[self.sampled] = (key, standing);
                self.sampled += 1;
            }
        }
    }

    /// A block of the flood and the same for keys that have their cells: one ask each, then all asks in a row.
    fn timed_block(&mut self, scene: &Scene<'_>, first: u64, size: u64) {
        let (asks, half) = (scene.plan.asks(), size / 2);
        let start = self.random.between(0, scene.calm_keys - 1);
        let flood_once = running(|| self.flood_block(scene, first..first + half, 1));
        let calm_once = running(|| calm_block(scene, start..start + half, 1));
        let flood_rows = running(|| self.flood_block(scene, first + half..first + size, asks));
        let calm_rows = running(|| calm_block(scene, start + half..start + size, asks));
        let per_ask = |took: Duration, keys, asks| took.as_nanos() as f64 / (keys * asks) as f64;
        self.times.push(Times {
            once: (per_ask(flood_once, half, 1), per_ask(calm_once, half, 1)),
            rows: (per_ask(flood_rows, size - half, asks), per_ask(calm_rows, size - half, asks)),
        });
    }

    fn ask_sample_again(&mut self, scene: &Scene<'_>, count: u64) {
        for _ in 0..count {
            let index = self.random.between(0, self.sampled as u64 - 1) as usize;
            self.ask_sampled(scene, index);
        }
    }

    fn ask_sampled(&mut self, scene: &Scene<'_>, index: usize) {
        let (key, standing) = &mut self.sample[index];
        scene.flooding().turn(*key, 2, standing, &mut self.flood);
        self.sample_asks += 2;
    }

    fn ask_victims(&mut self, scene: &Scene<'_>) {
        let asker = Asker { limiter: scene.victim, prices: VICTIM.prices(), ..scene.flooding() };
        for (key, standing) in (0..).zip(&mut self.victims) {
            asker.turn(key * THREADS + self.number, 2, standing, &mut self.victim);
        }
    }

    /// Asks for all that the victims may have, before the flood.
    pub(super) fn meet_victims(&mut self, scene: &Scene<'_>) {
        (0..VICTIM.burst()).for_each(|_| self.ask_victims(scene));
    }

    fn look(&mut self, scene: &Scene<'_>, size: u64) {
        let done = scene.done.fetch_add(size, Ordering::Relaxed) + size;
        if scene.progress.is_due() {
            let counts = scene.zone.counts();
            self.live.push(counts.live as f64 / counts.cells as f64);
            let detail = format!("live {} of {}, shared {}", counts.live, counts.cells, counts.shared);
            scene.progress.say(done, detail);
        }
    }
}

impl<'a> Scene<'a> {
    pub(super) fn flooding(&self) -> Asker<'a> {
        Asker { limiter: self.flood, clock: self.clock, prices: self.plan.flood.prices() }
    }
}

fn calm_block(scene: &Scene<'_>, keys: Range<u64>, asks: u64) {
    let (asker, mut tally) = (Asker { limiter: scene.calm, ..scene.flooding() }, Tally::default());
    for index in keys {
        asker.turn(index % scene.calm_keys, asks, &mut Standing::default(), &mut tally);
    }
}

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
#[derive(Default)]
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
#[derive(Default)]
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
    let live = vec![counts.live as f64 / counts.cells as f64];
    Found { keys: scene.plan.keys + filled, flood: tally, counts, live, ..Found::default() }
}

fn touch(limiter: &Limiter, scene: &Scene<'_>, key: u64) {
    let asker = Asker { limiter, ..scene.flooding() };
    asker.turn(key, scene.plan.flood.burst(), &mut Standing::default(), &mut Tally::default());
}

impl Found {
    fn add(&mut self, worker: Worker) {
        self.sampled += worker.sampled();
        self.sample_asks += worker.sample_asks;
        self.live.extend(worker.live);
        self.blocks += worker.times.len();
        let middle = |of: fn(&Times) -> f64| median(worker.times.iter().map(of)) / THREADS as f64;
        // Each thread has its own medians; their means are those of both.
        self.times.once.0 += middle(|times| times.once.0);
        self.times.once.1 += middle(|times| times.once.1);
        self.times.rows.0 += middle(|times| times.rows.0);
        self.times.rows.1 += middle(|times| times.rows.1);
        self.flood.add(worker.flood);
        self.victims.add(worker.victim);
    }
}
