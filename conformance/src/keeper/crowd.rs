//! A store that is busy with other keys.
//!
//! A map sweeps, grows and shrinks a little at every call, for any key. In a zone, new keys take the cells of clear
//! keys. So whenever the time is set, new keys come. Some are stored for a microsecond, a second or a minute; the
//! others ask for too much and leave no state.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{
    Adjusted, Adjustment, Ask, Clock, Cost, Decision, Decisions, Key, Limit, MINUTE, Map, MemoryStore,
    PermitId, Receipt, SECOND, State, Subject, Ticks, Timestamp, Zone,
};

use super::Keeper;
use crate::clock::TickingClock;
use crate::random::Random;

/// The limits of the other keys.
const LIMITS: [Limit; 4] = [
    Limit::token_bucket(1, Duration::from_micros(1)),
    Limit::sliding_log(1, SECOND),
    Limit::concurrency(1, SECOND),
    Limit::fixed_window(1, MINUTE),
];

/// A store in memory with a clock that is set.
pub trait Sheltering: Sized {
    /// The name of the store in messages.
    const NAME: &'static str;

    /// The name of a limiter on it in messages.
    const LIMITER: &'static str;

    /// The name of a handle on it whose limit comes with each ask.
    const ADHOC: &'static str;

    /// True if it holds all states in one place, so that counts of every window are carried over to every other.
    const HOLDS_ALL: bool;

    /// Creates the store, with no key seen.
    fn empty(clock: Arc<dyn Clock>) -> Self;

    /// The store of a limiter.
    fn memory(&self) -> MemoryStore;

    /// Decides and spends.
    fn take(&self, subject: Subject<'_>, ask: Ask) -> (Decision, Option<Receipt>);

    /// Decides and spends on all or none.
    fn take_all(&self, asks: &[(Subject<'_>, Ask)]) -> Decisions;

    /// Looks.
    fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision;

    /// Charges late or gives back.
    fn adjust(&self, subject: Subject<'_>, adjustment: Adjustment) -> Adjusted;

    /// Gives one take back.
    fn give_back(&self, subject: Subject<'_>, receipt: Receipt) -> Adjusted;

    /// Gives a place in flight back.
    fn release(&self, subject: Subject<'_>, permit: PermitId) -> bool;

    /// Starts a lease anew.
    fn renew(&self, subject: Subject<'_>, permit: PermitId) -> bool;

    /// Forgets one subject.
    fn reset(&self, subject: Subject<'_>);

    /// Returns the stored state of a subject.
    fn state(&self, subject: Subject<'_>) -> State;
}

macro_rules! sheltering {
    ($($store:ident $name:literal, holds all: $all:literal, empty: $empty:expr;)+) => {$(
        impl Sheltering for $store {
            const NAME: &'static str = $name;
            const LIMITER: &'static str = concat!("limiter on a ", $name);
            const ADHOC: &'static str = concat!("ad-hoc limits on a ", $name);
            const HOLDS_ALL: bool = $all;

            fn empty(clock: Arc<dyn Clock>) -> $store {
                $empty(clock)
            }

            fn memory(&self) -> MemoryStore {
                self.into()
            }

            fn take(&self, subject: Subject<'_>, ask: Ask) -> (Decision, Option<Receipt>) {
                $store::take(self, subject, ask)
            }

            fn take_all(&self, asks: &[(Subject<'_>, Ask)]) -> Decisions {
                $store::take_all(self, asks)
            }

            fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision {
                $store::peek(self, subject, ask)
            }

            fn adjust(&self, subject: Subject<'_>, adjustment: Adjustment) -> Adjusted {
                $store::adjust(self, subject, adjustment)
            }

            fn give_back(&self, subject: Subject<'_>, receipt: Receipt) -> Adjusted {
                $store::give_back(self, subject, receipt)
            }

            fn release(&self, subject: Subject<'_>, permit: PermitId) -> bool {
                $store::release(self, subject, permit)
            }

            fn renew(&self, subject: Subject<'_>, permit: PermitId) -> bool {
                $store::renew(self, subject, permit)
            }

            fn reset(&self, subject: Subject<'_>) {
                $store::reset(self, subject).expect("few limits are in use");
            }

            fn state(&self, subject: Subject<'_>) -> State {
                $store::state(self, subject)
            }
        }
    )+};
}

/// The size of a zone that no crowd here fills, so no key has to share a cell.
const ZONE_BYTES: usize = 1 << 20;

sheltering! {
    Map "map", holds all: true, empty: |clock: Arc<dyn Clock>| Map::with_clock(clock);
    Zone "zone", holds all: false, empty: |clock: Arc<dyn Clock>| Zone::with_clock(ZONE_BYTES, clock);
}

/// A store in which other keys come and go while time passes.
#[derive(Debug)]
pub struct Crowd<S> {
    store: S,
    clock: Arc<TickingClock>,
    now: Timestamp,
    random: Random,
    rush: Rush,
    strangers: u64,
}

/// The number of other keys that come.
#[derive(Clone, Copy, Debug)]
enum Rush {
    /// Mostly a few; now and then enough to sweep half of a map, rarely enough for tables to grow and shrink.
    NowAndThen,
    /// Each time enough to sweep a map: a clear key is forgotten at once.
    Always,
    /// There are none.
    Never,
}

impl<S: Sheltering> Crowd<S> {
    /// An empty store at the epoch, with a rush now and then. The seed determines when how many come, not where in the
    /// store they go: each hashes in its own way.
    pub fn new(seed: u64) -> Crowd<S> {
        Crowd::with(seed, Rush::NowAndThen)
    }

    fn with(seed: u64, rush: Rush) -> Crowd<S> {
        let clock = Arc::new(TickingClock::new());
        let (store, random) = (S::empty(clock.clone()), Random::new(seed));
        Crowd { store, clock, now: Timestamp::EPOCH, random, rush, strangers: 0 }
    }

    /// A store of one's own by this clock, to which no strangers come.
    pub fn without_strangers(store: S, clock: Arc<TickingClock>) -> Crowd<S> {
        let (now, random) = (Timestamp::EPOCH, Random::new(0));
        Crowd { store, clock, now, random, rush: Rush::Never, strangers: 0 }
    }

    /// Makes the clock advance by this much after every reading from now on.
    pub(crate) fn tick(&self, step: Ticks) {
        self.clock.tick(step);
    }

    /// Sets the clock to the time that was set last, if it has advanced since; no strangers come.
    pub(crate) fn set_clock_again(&self) {
        self.clock.set(self.now);
    }

    /// Decides and spends on all or none.
    pub(crate) fn take_all(&self, asks: &[(Subject<'_>, Ask)]) -> Decisions {
        self.store.take_all(asks)
    }

    pub(crate) fn memory(&self) -> MemoryStore {
        self.store.memory()
    }

    /// Returns the name of a limiter on it in messages.
    pub(crate) fn name_of_limiter(&self) -> &'static str {
        S::LIMITER
    }

    fn let_strangers_come(&mut self) {
        let (strangers, percent_remembered) = match (self.rush, self.random.between(0, 999)) {
            (Rush::Never, _) => (0, 0),
            (Rush::Always, _) => (1500, 10),
            (Rush::NowAndThen, 0) => (3000, 100),
            (Rush::NowAndThen, 1..100) => (120, 10),
            (Rush::NowAndThen, _) => (self.random.between(0, 3), 50),
        };
        for _ in 0..strangers {
            self.strangers += 1;
            let (key, limit) = (Key::new(self.strangers), self.random.pick(&LIMITS));
            let stranger = Subject::new("strangers", &key, &limit);
            let cost = if self.random.percent(percent_remembered) { 1 } else { 2 };
            let _ = self.store.take(stranger, Ask::new(Cost::of(cost)));
        }
    }
}

/// With a rush each time.
impl<S: Sheltering> Default for Crowd<S> {
    fn default() -> Crowd<S> {
        Crowd::with(0, Rush::Always)
    }
}

impl<S: Sheltering> Keeper for Crowd<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn forgets(&self) -> bool {
        true
    }

    fn set_time(&mut self, now: Timestamp) {
        self.now = now;
        self.clock.set(now);
        self.let_strangers_come();
    }

    fn take(&mut self, subject: Subject<'_>, ask: Ask) -> (Decision, Option<Receipt>) {
        self.store.take(subject, ask)
    }

    fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision {
        self.store.peek(subject, ask)
    }

    fn adjust(&mut self, subject: Subject<'_>, adjustment: Adjustment) -> Adjusted {
        self.store.adjust(subject, adjustment)
    }

    fn give_back(&mut self, subject: Subject<'_>, receipt: Receipt) -> Adjusted {
        self.store.give_back(subject, receipt)
    }

    fn release(&mut self, subject: Subject<'_>, permit: PermitId) -> bool {
        self.store.release(subject, permit)
    }

    fn renew(&mut self, subject: Subject<'_>, permit: PermitId) -> bool {
        self.store.renew(subject, permit)
    }

    fn reset(&mut self, subject: Subject<'_>) {
        self.store.reset(subject);
    }

    fn state(&self, subject: Subject<'_>) -> State {
        self.store.state(subject)
    }
}
