//! A simulated service: workers, a queue before them, and callers who give up.
//!
//! Events in the order of their times; nothing waits and no clock is read. A call that is let in takes a
//! worker or stands in the service's own queue, first come, first served. Its caller gives up at the deadline, which
//! gives its place back as overloaded; the work is done nevertheless and costs capacity.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use conformance::random::Random;
use tidegate::{
    ClassId, ConcurrencyLimiter, ConcurrencyLimiterBuilder, ConcurrencyPermit, ManualClock, Outcome,
    Timestamp,
};

use super::counted::Counted;

/// Nanoseconds since the beginning.
pub(super) type Time = u64;

pub(super) const SECOND: Time = 1_000_000_000;
pub(super) const MILLISECOND: Time = 1_000_000;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub(super) struct World {
    /// Calls per second.
    pub(super) offered: u64,
    pub(super) phases: [Phase; 3],
    pub(super) phase_length: Time,
    /// The longest that a caller waits.
    pub(super) deadline: Time,
}

/// What the service is able to do for a while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    pub(super) workers: u64,
    /// How many times as long each call takes.
    pub(super) slowness: u64,
}

/// What was so at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    pub(super) limit: u64,
    pub(super) in_flight: u64,
    /// Answers in time since the moment before.
    pub(super) good: u64,
}

/// What became of one run.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) phases: [Counted; 3],
    pub(super) moments: Vec<Moment>,
}

/// Moments are this far apart.
pub(super) const MOMENT: Time = SECOND / 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    PhaseBegins,
    Finished(usize),
    GivesUp(usize),
    Arrives,
    Looks,
}

struct Call {
    entered: Time,
    phase: usize,
    work: Time,
    /// Until the caller gives up or has the answer.
    place: Option<ConcurrencyPermit>,
}

/// One run of the simulation.
pub(super) struct Simulation {
    world: World,
    /// The clock of the places.
    clock: Arc<ManualClock>,
    places: ConcurrencyLimiter,
    now: Time,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    scheduled: u64,
    calls: Vec<Call>,
    queue: VecDeque<usize>,
    busy: u64,
    arrivals: Random,
    works: Random,
    counted: Run,
    good_since: u64,
}

impl Simulation {
    /// A service behind these places, on a clock that the simulation sets.
    pub(super) fn new(world: World, places: ConcurrencyLimiterBuilder, seed: u64) -> Simulation {
        let mut seeds = Random::new(seed);
        let clock = Arc::new(ManualClock::new());
        Simulation {
            world,
            places: places.clock(Arc::clone(&clock) as _).build(),
            clock,
            now: 0,
            events: BinaryHeap::new(),
            scheduled: 0,
            calls: Vec::new(),
            queue: VecDeque::new(),
            busy: 0,
            arrivals: Random::new(seeds.number()),
            works: Random::new(seeds.number()),
            counted: Run::default(),
            good_since: 0,
        }
    }

    /// Runs to the end of the last phase.
    pub(super) fn run(mut self) -> Run {
        let end = 3 * self.world.phase_length;
        for phase in 1..3 {
            self.schedule(phase * self.world.phase_length, Event::PhaseBegins);
        }
        self.schedule(0, Event::Arrives);
        self.schedule(MOMENT, Event::Looks);
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at >= end {
                break;
            }
            self.now = at;
            self.clock.set(Timestamp::after_epoch(Duration::from_nanos(at)));
            match event {
                Event::PhaseBegins => self.start_work(),
                Event::Arrives => self.arrives(),
                Event::Finished(call) => self.finished(call),
                Event::GivesUp(call) => self.gives_up(call),
                Event::Looks => self.looks(),
            }
        }
        self.counted
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((at, self.scheduled, event)));
    }

    fn phase(&self) -> usize {
        usize::try_from(self.now / self.world.phase_length).unwrap_or(2).min(2)
    }

    fn arrives(&mut self) {
        let gap = exponential(&mut self.arrivals, SECOND / self.world.offered);
        self.schedule(self.now + gap, Event::Arrives);
        let work = work(&mut self.works);
        let phase = self.phase();
        self.counted.phases[phase].offered += 1;
        let Ok(place) = self.places.admit(ClassId::FIRST) else { return };
        self.counted.phases[phase].admitted += 1;
        let call = self.calls.len();
        self.calls.push(Call { entered: self.now, phase, work, place: Some(place) });
        self.schedule(self.now + self.world.deadline, Event::GivesUp(call));
        self.queue.push_back(call);
        self.start_work();
    }

    fn start_work(&mut self) {
        let phase = self.world.phases[self.phase()];
        while self.busy < phase.workers {
            let Some(call) = self.queue.pop_front() else { return };
            self.busy += 1;
            self.schedule(self.now + self.calls[call].work * phase.slowness, Event::Finished(call));
        }
    }

    fn finished(&mut self, call: usize) {
        self.busy -= 1;
        let phase = self.phase();
        let (entered, of_phase) = (self.calls[call].entered, self.calls[call].phase);
        self.counted.phases[of_phase].latencies.push(Duration::from_nanos(self.now - entered));
        if let Some(place) = self.calls[call].place.take() {
            self.counted.phases[phase].good += 1;
            self.good_since += 1;
            place.done(Outcome::Done);
        }
        self.start_work();
    }

    fn gives_up(&mut self, call: usize) {
        if let Some(place) = self.calls[call].place.take() {
            let phase = self.calls[call].phase;
            self.counted.phases[phase].late += 1;
            place.done(Outcome::Overloaded);
        }
    }

    fn looks(&mut self) {
        let (limit, in_flight) = (self.places.limit(), self.places.in_flight());
        self.counted.moments.push(Moment { limit, in_flight, good: std::mem::take(&mut self.good_since) });
        self.schedule(self.now + MOMENT, Event::Looks);
    }
}

/// A span between two arrivals that do not know of each other.
fn exponential(random: &mut Random, mean: Time) -> Time {
    (-unit(random).ln() * mean as f64) as Time
}

/// How long a call takes a worker: most around 15 ms, two in a hundred at least 60 ms, with a tail that reaches two
/// seconds.
fn work(random: &mut Random) -> Time {
    if random.percent(2) {
        // Pareto with exponent 1.5.
        let stretch = unit(random).powf(-1.0 / 1.5);
        ((60 * MILLISECOND) as f64 * stretch).min((2 * SECOND) as f64) as Time
    } else {
        // Three steps one after the other, each exponential.
        3 * MILLISECOND + (0..3).map(|_| exponential(random, 4 * MILLISECOND)).sum::<Time>()
    }
}

/// A fraction above nothing and up to one.
fn unit(random: &mut Random) -> f64 {
    ((random.number() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}
