//! Where outgoing calls wait: the lines behind a lock, and the one alarm that they have.
//!
//! No task, thread or timer belongs to a call. Nothing of others runs under the lock but the clock's reading:
//! wakers are cloned before it is taken, and woken and dropped after it is given back.

use std::hash::{BuildHasher as _, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, SystemTime};

use tidegate::{Clock, Key, Ticks, Timestamp};

use super::course::Terms;
use super::held::{Held, Reason};
use super::line::{Afterwards, Exit};
use super::lines::{Entered, Lines, Place};
use super::told::Told;

/// What a layer was told to do.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) terms: Terms,
    pub(super) patience: Option<Duration>,
    pub(super) most_waiting: usize,
    pub(super) clock: Arc<dyn Clock>,
    /// For dates of servers that do not say what time they think it is.
    pub(super) wall: fn() -> SystemTime,
}

/// The lines of a layer and of all its clones.
pub(super) struct Desk {
    pub(super) settings: Settings,
    lines: Mutex<Lines>,
    alarm: OnceLock<Waker>,
    random: RandomState,
    drawn: AtomicU64,
}

/// A call that came.
pub(super) enum Came {
    Leaves(Departure),
    Waits(Waiting),
    Fails(Held),
}

impl Desk {
    pub(super) fn new(settings: Settings) -> Desk {
        Desk {
            settings,
            lines: Mutex::new(Lines::new()),
            alarm: OnceLock::new(),
            random: RandomState::new(),
            drawn: AtomicU64::new(0),
        }
    }

    /// A call comes: it leaves at once, stands in line, or fails.
    pub(super) fn enter(self: &Arc<Desk>, key: &Key) -> Came {
        let settings = &self.settings;
        let entered = self.with(|lines, now, after| {
            let deadline =
                settings.patience.map(|patience| now.saturating_add(Ticks::saturating_from(patience)));
            let entered = lines.enter(&settings.terms, now, key, (settings.most_waiting, deadline));
            if let Entered::Waits(place) = &entered {
                lines.serve((&settings.terms, now), place.line, after);
            }
            entered
        });
        match entered {
            Entered::Leaves(place, exit) => Came::Leaves(Departure::new(self, place, exit)),
            Entered::Waits(place) => Came::Waits(Waiting { desk: Arc::clone(self), place: Some(place) }),
            Entered::Fails(held) => Came::Fails(held),
        }
    }

    /// How many wait, and how many places are remembered.
    pub(super) fn counts(&self) -> (usize, usize) {
        let lines = self.lock();
        (lines.waiting(), lines.keys())
    }

    /// Works on the lines; then, outside of the lock, sets the alarm and wakes.
    fn with<R>(self: &Arc<Desk>, work: impl FnOnce(&mut Lines, Timestamp, &mut Afterwards) -> R) -> R {
        let mut after = Afterwards::default();
        let (result, mut alarm) = self.locked(&mut after, work);
        let terms = &self.settings.terms;
        while let Some(at) = alarm {
            match self.settings.clock.wake_at(at, self.alarm()) {
                Ok(true) => break,
                Ok(false) => {
                    ((), alarm) = self.locked(&mut after, |lines, now, after| {
                        lines.forget_alarm();
                        lines.serve_due((terms, now), after);
                    });
                }
                Err(_) => {
                    ((), alarm) = self.locked(&mut after, |lines, _, after| {
                        lines.forget_alarm();
                        lines.fail_all(after);
                    });
                }
            }
        }
        for waker in after.wake {
            // One that panics must not keep the others from being woken.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
            }
        }
        result
    }

    /// What the work gives, and when the clock has to call, if it does not know yet.
    fn locked<R>(
        &self,
        after: &mut Afterwards,
        work: impl FnOnce(&mut Lines, Timestamp, &mut Afterwards) -> R,
    ) -> (R, Option<Timestamp>) {
        let mut lines = self.lock();
        let now = self.settings.clock.now();
        lines.see((&self.settings.terms, now), after);
        let result = work(&mut lines, now, after);
        let alarm = lines.next_alarm();
        (result, alarm)
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn alarm(self: &Arc<Desk>) -> Waker {
        self.alarm.get_or_init(|| Waker::from(Arc::new(Alarm(Arc::downgrade(self))))).clone()
    }

    /// A number that nobody can foresee.
    fn chance(&self) -> u64 {
        self.random.hash_one(self.drawn.fetch_add(1, Ordering::Relaxed))
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (waiting, keys) = self.counts();
        out.debug_struct("Desk").field("waiting", &waiting).field("keys", &keys).finish_non_exhaustive()
    }
}

/// Calls a desk when its time has come; keeps none alive.
struct Alarm(Weak<Desk>);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        let Some(desk) = self.0.upgrade() else { return };
        desk.with(|lines, now, after| {
            lines.forget_alarm();
            lines.serve_due((&desk.settings.terms, now), after);
        });
    }
}

/// A place in line; dropped, it is given back.
pub(super) struct Waiting {
    desk: Arc<Desk>,
    place: Option<Place>,
}

impl Waiting {
    /// Whether the wait is over.
    pub(super) fn poll(&mut self, waker: &Waker) -> Poll<Result<Departure, Held>> {
        let Some(place) = self.place else { return Poll::Ready(Err(Held::new(Reason::NoTimer, None))) };
        let waker = waker.clone();
        match self.desk.with(|lines, _, after| lines.poll(place, waker, after)) {
            None => Poll::Pending,
            Some(result) => {
                self.place = None;
                Poll::Ready(result.map(|exit| Departure::new(&self.desk, place, exit)))
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let terms = &self.desk.settings.terms;
            self.desk.with(|lines, now, after| lines.abandon((terms, now), place, after));
        }
    }
}

/// A call that may leave, and then one that is on its way; dropped, it has ended without an answer.
pub(super) struct Departure {
    desk: Arc<Desk>,
    place: Place,
    exit: Option<Exit>,
    has_left: bool,
}

impl Departure {
    fn new(desk: &Arc<Desk>, place: Place, exit: Exit) -> Departure {
        Departure { desk: Arc::clone(desk), place, exit: Some(exit), has_left: false }
    }

    /// Leaves now; or stands in line again where it stood, if something was learned since it was let go.
    pub(super) fn leave(mut self) -> Result<Departure, Waiting> {
        let (place, desk) = (self.place, Arc::clone(&self.desk));
        let terms = &desk.settings.terms;
        if let Some(exit) = self.exit.take() {
            self.exit = desk.with(|lines, now, after| lines.confirm((terms, now), place, exit, after));
        }
        if self.exit.is_none() {
            return Err(Waiting { desk, place: Some(place) });
        }
        self.has_left = true;
        Ok(self)
    }

    /// The call was answered.
    pub(super) fn answered(mut self, told: &Told) {
        self.end(told);
    }

    fn end(&mut self, told: &Told) {
        let Some(exit) = self.exit.take() else { return };
        let (desk, place) = (&self.desk, self.place);
        let terms = &desk.settings.terms;
        let chance = desk.chance();
        desk.with(|lines, now, after| {
            if self.has_left {
                lines.ended((terms, now), (place, &exit), (told, chance), after);
            } else {
                lines.take_back((terms, now), place, exit, after);
            }
        });
    }
}

impl Drop for Departure {
    fn drop(&mut self) {
        self.end(&Told::default());
    }
}
