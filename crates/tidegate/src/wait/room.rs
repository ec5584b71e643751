//! Where people wait: the lines of one limiter behind a lock, and the one alarm that they have.
//!
//! Nothing of others runs under the lock but the clock's reading: wakers are cloned before it is taken, and
//! woken and dropped after it is given back.

use std::mem;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Poll, Wake, Waker};

use super::lines::{Afterwards, Lines};
use super::taken::Taken;
use super::{Venue, Waited};
use crate::ask::Ask;
use crate::refusal::Refusal;
use crate::store::name::Name;
use crate::sync::{AtomicUsize, Mutex, Ordering, fence};
use crate::time::{Ticks, Timestamp, wake_all};

/// The lines of one limiter.
#[derive(Debug)]
pub(crate) struct Room {
    max_waiters: AtomicUsize,
    /// How many stand in the lines or are about to; zero spares everybody else the lock.
    waiting: AtomicUsize,
    lines: Mutex<Lines>,
    alarm: OnceLock<Waker>,
}

/// The place of one who waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(super) line: u64,
    pub(super) number: u64,
}

/// What became of one who came.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart at once, and the large one is the usual one"
)]
pub(super) enum Entered {
    Settled(Result<Passed, Refusal>),
    Waits(Ticket),
}

/// One who comes: whom it asks for, how much, and how long it would wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coming<'a> {
    pub(super) name: &'a Name,
    pub(super) ask: Ask,
    /// Whether it wants a receipt of its take.
    pub(super) is_tracked: bool,
    pub(super) patience: Option<Ticks>,
}

/// One who has passed, and its take.
#[derive(Debug)]
pub(super) struct Passed {
    pub(super) waited: Waited,
    pub(super) taken: Taken,
}

impl Passed {
    pub(super) fn at_once(taken: Taken) -> Passed {
        Passed { waited: Waited::at_once(taken.decision), taken }
    }
}

impl Room {
    pub(crate) fn new(max_waiters: usize) -> Room {
        Room {
            max_waiters: AtomicUsize::new(max_waiters),
            waiting: AtomicUsize::new(0),
            lines: Mutex::new(Lines::default()),
            alarm: OnceLock::new(),
        }
    }

    /// From now on at most so many wait; those who do already stay.
    pub(crate) fn set_max_waiters(&self, most: usize) {
        self.max_waiters.store(most, Ordering::Relaxed);
    }

    /// Whether nobody waits for anything.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// Whether nobody waits for what was just changed. Either those who come see the change, or they are seen
    /// here: they say that they come before they look.
    fn misses_nobody(&self) -> bool {
        fence(Ordering::SeqCst);
        self.is_empty()
    }

    /// How long an ask has to wait because others of its subject wait already; `None` if nobody does.
    pub(crate) fn wait_behind(&self, venue: &dyn Venue, name: &Name, ask: Ask) -> Option<Ticks> {
        let account = venue.account(name);
        let mut lines = self.lines.lock();
        let now = venue.clock().now();
        let wait = lines.line_of(name)?.outlook(venue, &account, now, ask);
        Some(wait.max(Ticks::new(1)))
    }

    /// Comes in: passes at once, is refused at once, or waits.
    pub(super) fn enter(&self, venue: &Arc<dyn Venue>, coming: Coming<'_>, waker: &Waker) -> Entered {
        if self.is_empty() {
            let (ask, account) = (coming.ask, venue.account(coming.name));
            if account.terms().in_line(ask) == ask {
                let taken = if coming.is_tracked {
                    Taken::take(&**venue, &account, (ask, true), None)
                } else {
                    Taken::take_now(&**venue, &account, ask)
                };
                if taken.decision.is_allowed() {
                    return Entered::Settled(Ok(Passed::at_once(taken)));
                }
            }
        }
        let waker = waker.clone();
        let announced = Announced::new(self);
        let max_waiters = self.max_waiters.load(Ordering::Relaxed);
        let entered =
            self.with(venue, |lines, now, _| lines.enter(&**venue, now, max_waiters, coming, waker));
        drop(announced);
        let Entered::Waits(ticket) = entered else { return entered };
        // If no alarm could be set, or its time had come meanwhile, the wait is over already.
        match self.lines.lock().take_settled(ticket) {
            Some(result) => Entered::Settled(result),
            None => Entered::Waits(ticket),
        }
    }

    /// Whether a wait is over.
    pub(super) fn poll(&self, ticket: Ticket, waker: &Waker) -> Poll<Result<Passed, Refusal>> {
        let waker = waker.clone();
        let mut lines = self.lines.lock();
        if let Some(result) = lines.take_settled(ticket) {
            return Poll::Ready(result);
        }
        let before = lines.waker_of(ticket).map(|kept| mem::replace(kept, waker));
        drop(lines);
        drop(before);
        Poll::Pending
    }

    /// Returns how many waiters of the same key are ahead; `None` once the wait is over.
    pub(super) fn position(&self, ticket: Ticket) -> Option<usize> {
        self.lines.lock().position(ticket)
    }

    /// Leaves, wherever in the line; what was already taken for this one goes back.
    pub(super) fn leave(&self, venue: &Arc<dyn Venue>, ticket: Ticket) {
        self.with(venue, |lines, now, after| lines.leave(&**venue, now, ticket, after));
    }

    /// Lets through whose time has come; called by the clock.
    fn serve(&self, venue: &Arc<dyn Venue>) {
        self.with(venue, |lines, now, after| {
            lines.forget_alarm();
            lines.serve(&**venue, now, after);
        });
    }

    /// Looks at a subject's line again, because something was given back or charged.
    pub(crate) fn look_again(&self, venue: &Arc<dyn Venue>, name: &Name) {
        if !self.misses_nobody() {
            self.with(venue, |lines, now, after| lines.look_again_at(&**venue, now, name, after));
        }
    }

    /// Lets a subject's line begin anew, because its state was forgotten.
    pub(crate) fn begin_anew(&self, venue: &Arc<dyn Venue>, name: &Name) {
        if !self.misses_nobody() {
            self.with(venue, |lines, now, after| lines.begin_anew_at(&**venue, now, name, after));
        }
    }

    /// Lets every line begin anew, because the limit was changed.
    pub(crate) fn begin_all_anew(&self, venue: &Arc<dyn Venue>) {
        if !self.misses_nobody() {
            self.with(venue, |lines, now, after| lines.begin_all_anew(&**venue, now, after));
        }
    }

    /// Replaces the limit. What was taken ahead for the head of a line goes back before its counts are carried over, or it
    /// would be charged under both limits.
    pub(crate) fn replace_limit<R>(&self, venue: &Arc<dyn Venue>, replace: impl FnOnce() -> R) -> R {
        if self.is_empty() {
            let replaced = replace();
            self.begin_all_anew(venue);
            return replaced;
        }
        self.with(venue, |lines, now, after| {
            lines.give_back_serving(&**venue);
            let replaced = replace();
            lines.begin_all_anew(&**venue, now, after);
            replaced
        })
    }

    /// Works on the lines; then, outside of the lock, sets the alarm and wakes.
    fn with<R>(
        &self,
        venue: &Arc<dyn Venue>,
        work: impl FnOnce(&mut Lines, Timestamp, &mut Afterwards) -> R,
    ) -> R {
        let mut after = Afterwards::default();
        let (result, mut alarm) = self.locked(&**venue, &mut after, work);
        while let Some(at) = alarm {
            match venue.clock().wake_at(at, self.alarm(venue)) {
                Ok(true) => break,
                Ok(false) => {
                    ((), alarm) = self.locked(&**venue, &mut after, |lines, now, after| {
                        lines.forget_alarm();
                        lines.serve(&**venue, now, after);
                    });
                }
                Err(_) => {
                    let refuse = |lines: &mut Lines, _, after: &mut _| lines.refuse_all(&**venue, after);
                    ((), alarm) = self.locked(&**venue, &mut after, refuse);
                }
            }
        }
        wake_all(after.wake);
        result
    }

    /// What the work gives, and when the clock has to call, if it does not know yet.
    fn locked<R>(
        &self,
        venue: &dyn Venue,
        after: &mut Afterwards,
        work: impl FnOnce(&mut Lines, Timestamp, &mut Afterwards) -> R,
    ) -> (R, Option<Timestamp>) {
        let mut lines = self.lines.lock();
        let counted = lines.waiting();
        let now = venue.clock().now();
        lines.see(venue, now, after);
        let result = work(&mut lines, now, after);
        let alarm = lines.next_alarm();
        // Those who have joined count before they stop to be about to.
        self.waiting.fetch_add(lines.waiting().wrapping_sub(counted), Ordering::SeqCst);
        (result, alarm)
    }

    fn alarm(&self, venue: &Arc<dyn Venue>) -> Waker {
        self.alarm.get_or_init(|| Waker::from(Arc::new(Alarm(Arc::downgrade(venue))))).clone()
    }
}

/// Somebody who says that they come.
struct Announced<'a>(&'a Room);

impl<'a> Announced<'a> {
    fn new(room: &'a Room) -> Announced<'a> {
        room.waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Announced(room)
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Calls a room when its time has come; keeps no room alive.
struct Alarm(Weak<dyn Venue>);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        if let Some(venue) = self.0.upgrade() {
            venue.room().serve(&venue);
        }
    }
}
