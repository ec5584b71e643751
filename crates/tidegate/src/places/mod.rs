//! So many in flight for one service as a whole: the number may adapt, and important calls go first.
//!
//! ```text
//!   enter ----> in, if the class may have a place            (slots: counting)
//!   acquire --> in; else the queue, if it is not full        (class_queue: a queue per class, by rank)
//!                  ^   a place that is given back, or a limit that rises, lets the next one in at once
//!                  `-- deadlines come by one alarm; under overload the newest goes first
//! ```
//!
//! A waiter that is woken finds the place already taken for it. One that gives up leaves the queue, or hands on what
//! it was given.

mod class;
mod class_queue;
mod place;
mod slots;

pub use class::Class;
pub use place::{AcquirePlace, Place, QueuedPlace};

use std::sync::Arc;
use std::time::Duration;

use self::class_queue::{Shared, queue_of};
use self::place::PlaceRequest;
use crate::adaptive::Adapt;
use crate::refusal::Refusal;
use crate::time::{Clock, Source, Ticks};
use crate::wait::Acquire;

/// At most so many in flight for one service as a whole; clones share them.
///
/// Settings come first: each of them makes new places in which nobody is yet.
///
/// ```
/// use tidegate::{Class, Places, SECOND};
///
/// let classes = [Class::new("critical").share(50), Class::new("bulk").share(10)];
/// let places = Places::at_most(10).classes(classes).line(100);
/// const CRITICAL: usize = 0; // the rank of a class is its index
/// const BULK: usize = 1;
///
/// let bulk: Vec<_> = std::iter::from_fn(|| places.enter(BULK).ok()).collect();
/// assert_eq!(bulk.len(), 5); // the other half is kept for critical calls
/// let place = places.enter(CRITICAL)?;
/// assert_eq!((places.in_flight(), places.limit()), (6, 10));
///
/// drop(bulk);
/// let waited = places.acquire(BULK).within(SECOND).blocking()?; // or `.await`, on any runtime
/// # drop((place, waited));
/// # Ok::<(), tidegate::Refusal>(())
/// ```
///
/// # Who comes in
///
/// A class with a share of so many percent has that part of the limit kept for it, rounded down; a share that is
/// less than one place is one nevertheless, the first classes first, as long as one place remains that is kept
/// for nobody. A class comes in while it uses less than what is kept for it, or while a place is left that is
/// neither used nor kept for others. So while the limit stands, nobody within its share is refused because of
/// other classes. When the limit falls, whoever is in stays in, and nobody enters before enough have left.
#[derive(Clone, Debug)]
pub struct Places {
    shared: Arc<Shared>,
}

impl Places {
    /// At most so many in flight, until [`Places::set_limit`] says otherwise.
    ///
    /// # Panics
    /// If that is none, or more than 2³².
    pub fn at_most(places: u64) -> Places {
        Places::new(Settings::new(Most::fixed(places)))
    }

    /// As many in flight as the service bears, found out by how its calls end.
    pub fn adaptive(adapt: Adapt) -> Places {
        Places::new(Settings::new(Most::Adaptive(adapt)))
    }

    fn new(settings: Settings) -> Places {
        Places { shared: Arc::new(Shared::new(settings)) }
    }

    /// Lets at most so many wait at a time; none unless set, so that whoever finds no place is refused at once.
    #[must_use]
    pub fn line(self, waiters: usize) -> Places {
        self.with(|settings| settings.line = waiters)
    }

    /// Serves the newest first when the line has not been empty for so long, until it is.
    ///
    /// A line that is never empty makes everybody wait so long that few are served in time; then it is better to
    /// serve those in time who have just come. While that lasts and the line is full, the oldest of the least
    /// class makes room for one who comes, unless that one is of a lesser class still.
    #[must_use]
    pub fn newest_first_after(self, busy: Duration) -> Places {
        self.with(|settings| settings.newest_first_after = Some(Ticks::saturating_from(busy)))
    }

    /// Classes in the order of their rank, the most important first.
    ///
    /// Within what is kept for it, each class finds its places; all others go to the first class that wants one.
    /// Within a class, who came first is served first. When the line is full, the newest of the least class makes
    /// room for one of a better class; nobody does who waits for what is kept for its own.
    ///
    /// # Panics
    /// If there are none or more than 64, or their shares are more than 100 percent.
    #[must_use]
    pub fn classes(self, classes: impl IntoIterator<Item = Class>) -> Places {
        let classes = Class::valid(classes.into_iter().collect());
        self.with(|settings| settings.classes = classes)
    }

    /// Goes by another clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Places {
        self.with(|settings| settings.clock = Source::Given(clock))
    }

    /// New places with other settings.
    fn with(self, change: impl FnOnce(&mut Settings)) -> Places {
        let mut settings = self.shared.settings.clone();
        if let Most::Fixed(limit) = &mut settings.most {
            *limit = self.shared.slots(|slots| slots.limit);
        }
        change(&mut settings);
        Places::new(settings)
    }

    /// A place now, or not at all. A rank behind that of the last class means the last class.
    #[inline]
    pub fn enter(&self, class: usize) -> Result<Place, Refusal> {
        let class = self.rank(class);
        self.shared.enter(class)?;
        Ok(Place::new(Arc::clone(&self.shared), class))
    }

    /// Waits for a place; to be awaited on any runtime, or to block a thread with.
    pub fn acquire(&self, class: usize) -> AcquirePlace {
        Acquire::new(PlaceRequest { shared: Arc::clone(&self.shared), class: self.rank(class) }, None)
    }

    /// Allows another number in flight. Whoever is in stays in; whoever waits and may come in now does.
    /// Whether it is so: a number that adapts is not set.
    ///
    /// # Panics
    /// If that is none, or more than 2³².
    pub fn set_limit(&self, places: u64) -> bool {
        let (Most::Fixed(places), Most::Fixed(_)) = (Most::fixed(places), &self.shared.settings.most) else {
            return false;
        };
        self.shared.queue.with(&self.shared, |state, turn| {
            state.policy.slots.set_limit(places);
            state.serve_all(turn);
        });
        true
    }

    /// How many may be in flight now.
    pub fn limit(&self) -> u64 {
        self.shared.slots(|slots| slots.limit)
    }

    /// How many are in flight, those included who were let in and have not looked yet.
    pub fn in_flight(&self) -> u64 {
        self.shared.slots(|slots| slots.in_flight)
    }

    /// How many of a class are in flight.
    pub fn in_flight_of(&self, class: usize) -> u64 {
        self.shared.slots(|slots| slots.used(self.rank(class)))
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.shared.queue.lock(|state| state.waiting())
    }

    /// How many of a class wait.
    pub fn waiting_of(&self, class: usize) -> usize {
        self.shared.queue.lock(|state| queue_of(state, self.rank(class)).len())
    }

    /// The rank of the class with this name.
    pub fn class_named(&self, name: &str) -> Option<usize> {
        self.shared.settings.classes.iter().position(|class| class.name() == name)
    }

    fn rank(&self, class: usize) -> usize {
        class.min(self.shared.settings.classes.len() - 1)
    }
}

/// The most places there may be.
const MOST_PLACES: u64 = 1 << 32;

/// All that is said about places before anybody enters.
#[derive(Clone, Debug)]
struct Settings {
    most: Most,
    /// How many may wait.
    line: usize,
    /// After how long a line that is never empty means overload.
    newest_first_after: Option<Ticks>,
    /// In the order of their rank, at least one.
    classes: Vec<Class>,
    clock: Source,
}

/// How many may be in flight.
#[derive(Clone, Debug)]
enum Most {
    Fixed(u64),
    Adaptive(Adapt),
}

impl Most {
    /// A fixed number, if there can be so many.
    fn fixed(places: u64) -> Most {
        assert!(
            0 < places && places <= MOST_PLACES,
            "{places} places: there may be 1 to {MOST_PLACES} in flight"
        );
        Most::Fixed(places)
    }
}

impl Settings {
    fn new(most: Most) -> Settings {
        let classes = vec![Class::new("all")];
        Settings { most, line: 0, newest_first_after: None, classes, clock: Source::default() }
    }
}
