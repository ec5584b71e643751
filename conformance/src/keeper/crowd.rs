//! A map that is busy with others.
//!
//! A map sweeps, grows and shrinks a little at every call, whoever calls. So whenever the time is set,
//! strangers come who have not been seen before. Some are remembered, for a microsecond, a second or a minute;
//! the others ask for too much and leave nothing behind.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{
    Adjusted, Adjustment, Ask, Cost, Decision, Key, Limit, MINUTE, ManualClock, Map, PermitId, Receipt,
    SECOND, State, Subject, Timestamp,
};

use super::Keeper;
use crate::random::Random;

/// What strangers are held to.
const LIMITS: [Limit; 4] = [
    Limit::token_bucket(1, Duration::from_micros(1)),
    Limit::sliding_log(1, SECOND),
    Limit::concurrency(1, SECOND),
    Limit::fixed_window(1, MINUTE),
];

/// A [`Map`] in which strangers come and go while time passes.
#[derive(Debug)]
pub struct Crowd {
    map: Map,
    clock: Arc<ManualClock>,
    random: Random,
    rush: Rush,
    strangers: u64,
}

/// How many strangers come.
#[derive(Clone, Copy, Debug)]
enum Rush {
    /// Mostly a few; now and then enough to sweep half of the map, rarely enough for tables to grow and shrink.
    NowAndThen,
    /// Each time enough to sweep the map: whoever is clear is forgotten at once.
    Always,
}

impl Crowd {
    /// An empty map at the epoch, with a rush now and then. The seed says when how many come, not where in the
    /// map they go: every map hashes in its own way.
    pub fn new(seed: u64) -> Crowd {
        Crowd::with(seed, Rush::NowAndThen)
    }

    fn with(seed: u64, rush: Rush) -> Crowd {
        let clock = Arc::new(ManualClock::new());
        let map = Map::with_clock(clock.clone());
        Crowd { map, clock, random: Random::new(seed), rush, strangers: 0 }
    }

    pub(crate) fn map(&self) -> &Map {
        &self.map
    }

    fn let_strangers_come(&mut self) {
        let (strangers, percent_remembered) = match (self.rush, self.random.between(0, 999)) {
            (Rush::Always, _) => (1500, 10),
            (Rush::NowAndThen, 0) => (3000, 100),
            (Rush::NowAndThen, 1..100) => (120, 10),
            (Rush::NowAndThen, _) => (self.random.between(0, 3), 50),
        };
        for _ in 0..strangers {
            self.strangers += 1;
            let (key, limit) = (Key::new(self.strangers), self.random.pick(&LIMITS));
            let stranger = Subject { namespace: "strangers", key: &key, limit: &limit };
            let cost = if self.random.percent(percent_remembered) { 1 } else { 2 };
            let _ = self.map.take(stranger, Ask::new(Cost::of(cost)));
        }
    }
}

/// With a rush each time.
impl Default for Crowd {
    fn default() -> Crowd {
        Crowd::with(0, Rush::Always)
    }
}

impl Keeper for Crowd {
    fn name(&self) -> &'static str {
        "map"
    }

    fn forgets(&self) -> bool {
        true
    }

    fn set_time(&mut self, now: Timestamp) {
        self.clock.set(now);
        self.let_strangers_come();
    }

    fn take(&mut self, subject: Subject<'_>, ask: Ask) -> (Decision, Option<Receipt>) {
        self.map.take(subject, ask)
    }

    fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision {
        self.map.peek(subject, ask)
    }

    fn adjust(&mut self, subject: Subject<'_>, adjustment: Adjustment) -> Adjusted {
        self.map.adjust(subject, adjustment)
    }

    fn give_back(&mut self, subject: Subject<'_>, receipt: Receipt) -> Adjusted {
        self.map.give_back(subject, receipt)
    }

    fn release(&mut self, subject: Subject<'_>, permit: PermitId) -> bool {
        self.map.release(subject, permit)
    }

    fn renew(&mut self, subject: Subject<'_>, permit: PermitId) -> bool {
        self.map.renew(subject, permit)
    }

    fn reset(&mut self, subject: Subject<'_>) {
        self.map.reset(subject);
    }

    fn state(&self, subject: Subject<'_>) -> State {
        self.map.state(subject)
    }
}
