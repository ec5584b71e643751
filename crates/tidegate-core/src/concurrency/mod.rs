//! A concurrency limit for one service as a whole: fixed or adaptive, with priority classes.
//!
//! ```text
//!   admit ----> in flight, if the class may have a slot      (slots: counting)
//!   acquire --> in flight; else queued, unless it is full    (class_queue: a queue per class, by rank)
//!                  ^   a released slot, or a higher limit, admits the next waiter at once
//!                  `-- one timer for all deadlines; under overload the newest waiter goes first
//! ```
//!
//! A woken waiter already owns its slot. A waiter that gives up leaves the queue, or passes on the slot that it was
//! given.

mod builder;
mod class;
mod class_queue;
mod permit;
mod slots;

pub use builder::ConcurrencyLimiterBuilder;
pub use class::{Class, ClassId};
pub use permit::{AcquireConcurrencyPermit, ConcurrencyPermit, QueuedConcurrencyPermit};

use std::sync::Arc;

use self::class::ClassList;
use self::class_queue::{ConcurrencyState, queue_of};
use self::permit::ConcurrencyRequest;
use crate::adaptive::AdaptiveLimit;
use crate::denied::Denied;
use crate::time::{Source, Ticks};
use crate::wait::Acquire;

/// A concurrency limit for one service as a whole; clones share it.
///
/// Settings are made by a builder: [`ConcurrencyLimiter::builder`] and [`ConcurrencyLimiter::adaptive_builder`].
///
/// ```
/// use tidegate::{Class, ConcurrencyLimiter, SECOND};
///
/// let classes = [Class::new("critical").share(50), Class::new("bulk").share(10)];
/// let limiter = ConcurrencyLimiter::builder(10).classes(classes).max_waiters(100).build();
/// let [critical, bulk] = limiter.class_ids();
///
/// let held: Vec<_> = std::iter::from_fn(|| limiter.admit(bulk).ok()).collect();
/// assert_eq!(held.len(), 5); // the other half is reserved for critical calls
/// let permit = limiter.admit(critical)?;
/// assert_eq!((limiter.in_flight(), limiter.limit()), (6, 10));
///
/// drop(held);
/// let waited = limiter.acquire(bulk).max_wait(SECOND).blocking()?; // or `.await`, on any runtime
/// # drop((permit, waited));
/// # Ok::<(), tidegate::Denied>(())
/// ```
///
/// A limiter without classes has one class, [`ClassId::FIRST`]. Without a queue, which only a builder sets
/// ([`max_waiters`](ConcurrencyLimiterBuilder::max_waiters), 0 by default), `acquire` never waits:
///
/// ```
/// use tidegate::{ClassId, ConcurrencyLimiter};
///
/// let limiter = ConcurrencyLimiter::at_most(1);
/// let permit = limiter.admit(ClassId::FIRST)?;
/// let denied = limiter.acquire(ClassId::FIRST).blocking().unwrap_err();
/// assert!(denied.is_overloaded());
/// # drop(permit);
/// # Ok::<(), tidegate::Denied>(())
/// ```
///
/// # Admission
///
/// The share of a class reserves that percentage of the limit, rounded down. A share of less than one slot reserves
/// one slot, for the first classes first, as long as one slot stays unreserved.
///
/// A class is admitted while it uses less than its reserve, or while a slot is neither used nor reserved by other
/// classes. So while the limit is constant, no call within the share of its class is denied because of other
/// classes. When the limit falls, calls in flight continue, and none is admitted until enough of them have ended.
#[doc(alias("semaphore", "bulkhead", "concurrency limit", "load shedding", "backpressure", "max in flight"))]
#[derive(Clone, Debug)]
pub struct ConcurrencyLimiter {
    shared: Arc<ConcurrencyState>,
}

impl ConcurrencyLimiter {
    /// Creates a limiter of at most `places` calls in flight, without a queue.
    /// [`ConcurrencyLimiter::set_limit`] changes the number.
    ///
    /// # Panics
    /// If `places` is 0 or more than 2³².
    pub fn at_most(places: u64) -> ConcurrencyLimiter {
        ConcurrencyLimiter::new(ConcurrencySettings::new(InFlightLimit::fixed(places)))
    }

    /// Creates an adaptive limiter without a queue: it derives the number in flight from the latency and outcome of the
    /// calls.
    #[doc(alias("AIMD", "Vegas", "Gradient2", "concurrency-limits"))]
    pub fn adaptive(adapt: AdaptiveLimit) -> ConcurrencyLimiter {
        ConcurrencyLimiter::new(ConcurrencySettings::new(InFlightLimit::Adaptive(adapt)))
    }

    fn new(settings: ConcurrencySettings) -> ConcurrencyLimiter {
        ConcurrencyLimiter { shared: Arc::new(ConcurrencyState::new(settings)) }
    }

    /// Returns a slot now, or denies. Without classes, use [`ClassId::FIRST`].
    ///
    /// # Panics
    /// If the class is of another limiter.
    #[doc(alias("try_acquire", "load shedding"))]
    #[inline]
    #[track_caller]
    pub fn admit(&self, class: ClassId) -> Result<ConcurrencyPermit, Denied> {
        let class = self.rank(class);
        self.shared.enter(class)?;
        Ok(ConcurrencyPermit::new(Arc::clone(&self.shared), class))
    }

    /// Waits for a slot. The future runs on any runtime; it can also block a thread.
    ///
    /// It waits only if [`max_waiters`](ConcurrencyLimiterBuilder::max_waiters) is set. By default that is 0, and an
    /// `acquire` that finds no slot is denied at once, like [`ConcurrencyLimiter::admit`]. Without classes, use
    /// [`ClassId::FIRST`].
    ///
    /// # Panics
    /// If the class is of another limiter.
    #[track_caller]
    pub fn acquire(&self, class: ClassId) -> AcquireConcurrencyPermit {
        Acquire::new(ConcurrencyRequest { shared: Arc::clone(&self.shared), class: self.rank(class) }, None)
    }

    /// Sets the limit. Calls in flight continue; waiters that the new limit admits are woken. Returns false,
    /// without effect, if the limit is adaptive.
    ///
    /// # Panics
    /// If `places` is 0 or more than 2³².
    pub fn set_limit(&self, places: u64) -> bool {
        let (InFlightLimit::Fixed(places), InFlightLimit::Fixed(_)) =
            (InFlightLimit::fixed(places), &self.shared.settings.most)
        else {
            return false;
        };
        self.shared.queue.with(&self.shared, |state, turn| {
            state.policy.slots.set_limit(places);
            state.serve_all(turn);
        });
        true
    }

    /// Returns the current limit of calls in flight.
    pub fn limit(&self) -> u64 {
        self.shared.slots(|slots| slots.limit)
    }

    /// Returns the number of calls in flight, including admitted waiters that have not been polled yet.
    pub fn in_flight(&self) -> u64 {
        self.shared.slots(|slots| slots.in_flight)
    }

    /// Returns the number of calls of a class in flight.
    ///
    /// # Panics
    /// If the class is of another limiter.
    #[track_caller]
    pub fn in_flight_of(&self, class: ClassId) -> u64 {
        let rank = self.rank(class);
        self.shared.slots(|slots| slots.used(rank))
    }

    /// Returns the number of waiters.
    pub fn waiting(&self) -> usize {
        self.shared.queue.lock(|state| state.waiting())
    }

    /// Returns the number of waiters of a class.
    ///
    /// # Panics
    /// If the class is of another limiter.
    #[track_caller]
    pub fn waiting_of(&self, class: ClassId) -> usize {
        let rank = self.rank(class);
        self.shared.queue.lock(|state| queue_of(state, rank).len())
    }

    /// Returns the id of the class with this name.
    pub fn class_named(&self, name: &str) -> Option<ClassId> {
        let settings = &self.shared.settings;
        let rank = settings.classes.iter().position(|class| class.name() == name)?;
        Some(settings.list.id(rank))
    }

    /// Returns the ids of all classes in the order of their rank: `let [critical, bulk] = limiter.class_ids();`
    ///
    /// # Panics
    /// If the limiter has another number of classes.
    #[track_caller]
    pub fn class_ids<const N: usize>(&self) -> [ClassId; N] {
        let settings = &self.shared.settings;
        let count = settings.classes.len();
        assert!(count == N, "{N} ids of {count} classes: name as many as there are");
        std::array::from_fn(|rank| settings.list.id(rank))
    }

    /// Returns the classes in the order of their rank, with their ids; for metrics, for example.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = (ClassId, &Class)> {
        let settings = &self.shared.settings;
        settings.classes.iter().enumerate().map(|(rank, class)| (settings.list.id(rank), class))
    }

    #[inline]
    #[track_caller]
    fn rank(&self, class: ClassId) -> usize {
        self.shared.settings.list.rank(class)
    }
}

/// The largest limit of calls in flight.
const MOST_PLACES: u64 = 1 << 32;

/// The settings of a limiter, fixed before the first call.
#[derive(Clone, Debug)]
struct ConcurrencySettings {
    most: InFlightLimit,
    /// The largest number of waiters.
    line: usize,
    /// The time after which a queue that was never empty counts as overload.
    newest_first_after: Option<Ticks>,
    /// The classes in the order of their rank, at least one.
    classes: Vec<Class>,
    list: ClassList,
    clock: Source,
}

/// The limit of calls in flight.
#[derive(Clone, Debug)]
enum InFlightLimit {
    Fixed(u64),
    Adaptive(AdaptiveLimit),
}

impl InFlightLimit {
    /// Returns a fixed limit, after a check of its range.
    fn fixed(places: u64) -> InFlightLimit {
        assert!(
            0 < places && places <= MOST_PLACES,
            "{places} places: there may be 1 to {MOST_PLACES} in flight"
        );
        InFlightLimit::Fixed(places)
    }
}

impl ConcurrencySettings {
    fn new(most: InFlightLimit) -> ConcurrencySettings {
        let classes = vec![Class::new("all")];
        let (list, clock) = (ClassList::new(), Source::default());
        ConcurrencySettings { most, line: 0, newest_first_after: None, classes, list, clock }
    }
}
