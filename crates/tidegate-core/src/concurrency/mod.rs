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

mod class;
mod class_queue;
mod permit;
mod slots;

pub use class::Class;
pub use permit::{AcquireConcurrencyPermit, ConcurrencyPermit, QueuedConcurrencyPermit};

use std::sync::Arc;
use std::time::Duration;

use self::class_queue::{ConcurrencyState, queue_of};
use self::permit::ConcurrencyRequest;
use crate::adaptive::AdaptiveLimit;
use crate::denied::Denied;
use crate::time::{Clock, Source, Ticks};
use crate::wait::Acquire;

/// A concurrency limit for one service as a whole; clones share it.
///
/// Call the settings first: each of them returns a new limiter with nothing in flight and no waiters.
///
/// ```
/// use tidegate::{Class, ConcurrencyLimiter, SECOND};
///
/// let classes = [Class::new("critical").share(50), Class::new("bulk").share(10)];
/// let limiter = ConcurrencyLimiter::at_most(10).classes(classes).max_waiters(100);
/// const CRITICAL: usize = 0; // the rank of a class is its index
/// const BULK: usize = 1;
///
/// let bulk: Vec<_> = std::iter::from_fn(|| limiter.admit(BULK).ok()).collect();
/// assert_eq!(bulk.len(), 5); // the other half is reserved for critical calls
/// let permit = limiter.admit(CRITICAL)?;
/// assert_eq!((limiter.in_flight(), limiter.limit()), (6, 10));
///
/// drop(bulk);
/// let waited = limiter.acquire(BULK).max_wait(SECOND).blocking()?; // or `.await`, on any runtime
/// # drop((permit, waited));
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
    /// Creates a limiter of at most `places` calls in flight; [`ConcurrencyLimiter::set_limit`] changes the number.
    ///
    /// # Panics
    /// If `places` is 0 or more than 2³².
    pub fn at_most(places: u64) -> ConcurrencyLimiter {
        ConcurrencyLimiter::new(ConcurrencySettings::new(InFlightLimit::fixed(places)))
    }

    /// Creates an adaptive limiter: it derives the number in flight from the latency and outcome of the calls.
    #[doc(alias("AIMD", "Vegas", "Gradient2", "concurrency-limits"))]
    pub fn adaptive(adapt: AdaptiveLimit) -> ConcurrencyLimiter {
        ConcurrencyLimiter::new(ConcurrencySettings::new(InFlightLimit::Adaptive(adapt)))
    }

    fn new(settings: ConcurrencySettings) -> ConcurrencyLimiter {
        ConcurrencyLimiter { shared: Arc::new(ConcurrencyState::new(settings)) }
    }

    /// Sets the largest number of waiters at a time. The default is 0: an `acquire` that finds no slot is denied at
    /// once.
    ///
    /// A short queue absorbs bursts; a long one only delays its callers beyond their timeouts.
    #[doc(alias("backpressure", "queue"))]
    #[must_use]
    pub fn max_waiters(self, waiters: usize) -> ConcurrencyLimiter {
        self.with(|settings| settings.line = waiters)
    }

    /// Serves the newest waiter first after the queue has been non-empty for `busy`, until it is empty.
    ///
    /// A queue that is never empty delays all waiters so long that few are served in time. Serving the newest first
    /// serves at least those in time. Meanwhile, an arrival at a full queue evicts the oldest waiter of the lowest
    /// class that waits for more than its reserve. An arrival of a still lower class is denied, unless it is within
    /// its own reserve.
    #[doc(alias("adaptive LIFO", "overload"))]
    #[must_use]
    pub fn newest_first_after(self, busy: Duration) -> ConcurrencyLimiter {
        self.with(|settings| settings.newest_first_after = Some(Ticks::saturating_from(busy)))
    }

    /// Sets the classes in the order of their rank, the most important first.
    ///
    /// Each class is admitted to the slots that are reserved for it. All other slots go to the first class with a
    /// waiter. Within a class, waiters are served in FIFO order. When the queue is full, an arrival of a higher
    /// class evicts the newest waiter of the lowest class. A waiter that is entitled to a reserved slot of its
    /// class is never evicted.
    ///
    /// # Panics
    /// If there are none or more than 64, or if their shares exceed 100 percent together.
    #[doc(alias("priority", "criticality"))]
    #[must_use]
    pub fn classes(self, classes: impl IntoIterator<Item = Class>) -> ConcurrencyLimiter {
        let classes = Class::valid(classes.into_iter().collect());
        self.with(|settings| settings.classes = classes)
    }

    /// Sets another clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> ConcurrencyLimiter {
        self.with(|settings| settings.clock = Source::Given(clock))
    }

    /// Creates a limiter with changed settings.
    fn with(self, change: impl FnOnce(&mut ConcurrencySettings)) -> ConcurrencyLimiter {
        let mut settings = self.shared.settings.clone();
        if let InFlightLimit::Fixed(limit) = &mut settings.most {
            *limit = self.shared.slots(|slots| slots.limit);
        }
        change(&mut settings);
        ConcurrencyLimiter::new(settings)
    }

    /// Returns a slot now, or denies. A rank above that of the last class means the last class.
    #[doc(alias("try_acquire", "load shedding"))]
    #[inline]
    pub fn admit(&self, class: usize) -> Result<ConcurrencyPermit, Denied> {
        let class = self.rank(class);
        self.shared.enter(class)?;
        Ok(ConcurrencyPermit::new(Arc::clone(&self.shared), class))
    }

    /// Waits for a slot. The future runs on any runtime; it can also block a thread.
    pub fn acquire(&self, class: usize) -> AcquireConcurrencyPermit {
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
    pub fn in_flight_of(&self, class: usize) -> u64 {
        self.shared.slots(|slots| slots.used(self.rank(class)))
    }

    /// Returns the number of waiters.
    pub fn waiting(&self) -> usize {
        self.shared.queue.lock(|state| state.waiting())
    }

    /// Returns the number of waiters of a class.
    pub fn waiting_of(&self, class: usize) -> usize {
        self.shared.queue.lock(|state| queue_of(state, self.rank(class)).len())
    }

    /// Returns the rank of the class with this name.
    pub fn class_named(&self, name: &str) -> Option<usize> {
        self.shared.settings.classes.iter().position(|class| class.name() == name)
    }

    /// Returns the rank of an existing class: larger ones mean the last class.
    fn rank(&self, class: usize) -> usize {
        class.min(self.shared.settings.classes.len() - 1)
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
        ConcurrencySettings { most, line: 0, newest_first_after: None, classes, clock: Source::default() }
    }
}
