//! Seats and line of one service behind one lock, and the one alarm that those who wait have.
//!
//! While the lock is held nothing of others runs but the clock's reading: wakers are cloned before it is taken,
//! and woken and dropped after it is given back. Whenever it is given back, nobody in the line could come in: so
//! whoever comes later and can does not push in.

use std::mem;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Poll, Wake, Waker};

use super::line::{Afterwards, Line, Order, Settled, Ticket, Waiter};
use super::seats::Seats;
use super::settings::{Most, Settings};
use crate::adaptive::{Estimator, Outcome, Sample};
use crate::decision::Decision;
use crate::refusal::Refusal;
use crate::sync::Mutex;
use crate::time::{SECOND, Ticks, Timestamp, wake_all};

/// When to try again: nobody knows when a place comes back.
const GUESS: Ticks = Ticks::saturating_from(SECOND);

/// Where the places of one service are.
#[derive(Debug)]
pub(super) struct Hall {
    pub(super) settings: Settings,
    state: Mutex<State>,
    alarm: OnceLock<Waker>,
}

#[derive(Debug)]
struct State {
    seats: Seats,
    line: Line,
    estimator: Option<Estimator>,
}

/// What became of one who came.
#[derive(Debug)]
pub(super) enum Arrived {
    In,
    Waits(Ticket),
    Refused(Refusal),
}

impl Hall {
    pub(super) fn new(settings: Settings) -> Hall {
        let (limit, estimator) = match &settings.most {
            Most::Fixed(limit) => (*limit, None),
            Most::Adaptive(adapt) => {
                let estimator = Estimator::new(adapt);
                (estimator.limit(), Some(estimator))
            }
        };
        let (seats, line) = (Seats::new(limit, &settings.classes), Line::new(settings.classes.len()));
        Hall { settings, state: Mutex::new(State { seats, line, estimator }), alarm: OnceLock::new() }
    }

    pub(super) fn limit(&self) -> u64 {
        self.state.lock().seats.limit()
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.state.lock().seats.in_flight()
    }

    pub(super) fn in_flight_of(&self, class: usize) -> u64 {
        self.state.lock().seats.used(class)
    }

    pub(super) fn waiting(&self) -> usize {
        self.state.lock().line.waiting()
    }

    pub(super) fn waiting_of(&self, class: usize) -> usize {
        self.state.lock().line.waiting_of(class)
    }

    /// When somebody has come in, as far as anybody wants to know.
    pub(super) fn entered_at(&self) -> Timestamp {
        match self.settings.most {
            Most::Fixed(_) => Timestamp::EPOCH,
            Most::Adaptive(_) => self.settings.clock.now(),
        }
    }

    /// How long ago one came in at this time, as [`Hall::entered_at`] gave it.
    pub(super) fn since(&self, entered: Timestamp) -> Ticks {
        match self.settings.most {
            Most::Fixed(_) => Ticks::ZERO,
            Most::Adaptive(_) => self.settings.clock.now().since(entered),
        }
    }

    /// Comes in now, or not at all.
    #[inline]
    pub(super) fn enter(&self, class: usize) -> Result<(), Refusal> {
        let mut state = self.state.lock();
        if state.seats.take(class) { Ok(()) } else { Err(state.overloaded()) }
    }

    /// Comes in, is refused, or waits.
    pub(super) fn arrive(self: &Arc<Hall>, class: usize, patience: Option<Ticks>, waker: &Waker) -> Arrived {
        if self.enter(class).is_ok() {
            return Arrived::In;
        }
        let waker = waker.clone();
        let arrived = self.with(|state, now, after| {
            let waiter = Waiter { since: now, patience, waker };
            state.arrive(&self.settings, (class, waiter), after)
        });
        let Arrived::Waits(ticket) = arrived else { return arrived };
        // If no alarm could be set, or its time had come meanwhile, the wait is over already.
        match self.state.lock().line.take_settled(ticket) {
            Some(Settled::In) => Arrived::In,
            Some(Settled::Refused(refusal)) => Arrived::Refused(refusal),
            None => Arrived::Waits(ticket),
        }
    }

    /// Whether a wait is over.
    pub(super) fn poll(&self, ticket: Ticket, waker: &Waker) -> Poll<Result<(), Refusal>> {
        let waker = waker.clone();
        let mut state = self.state.lock();
        match state.line.take_settled(ticket) {
            Some(Settled::In) => return Poll::Ready(Ok(())),
            Some(Settled::Refused(refusal)) => return Poll::Ready(Err(refusal)),
            None => {}
        }
        let before = state.line.waker_of(ticket).map(|kept| mem::replace(kept, waker));
        drop(state);
        drop(before);
        Poll::Pending
    }

    /// Somebody will not wait any longer; a place that was taken for it goes on to the next.
    pub(super) fn abandon(self: &Arc<Hall>, ticket: Ticket) {
        self.with(|state, _, after| match state.line.leave(ticket) {
            Ok(waiter) => after.gone = waiter.map(|waiter| waiter.waker),
            Err(Settled::In) => state.seats.give_back(ticket.class),
            Err(Settled::Refused(_)) => {}
        });
    }

    /// A call has ended: its place goes on to the next, and how it ended is learnt from.
    pub(super) fn leave(self: &Arc<Hall>, class: usize, entered: Timestamp, outcome: Outcome) {
        if matches!(self.settings.most, Most::Fixed(_)) {
            let mut state = self.state.lock();
            if state.line.waiting() == 0 {
                state.seats.give_back(class);
                return;
            }
        }
        self.with(|state, now, _| {
            let in_flight = state.seats.in_flight();
            state.seats.give_back(class);
            if let Some(estimator) = &mut state.estimator {
                let latency = now.since(entered);
                let limit = estimator.observe(Sample { now, latency, in_flight, outcome });
                if limit != state.seats.limit() {
                    state.seats.set_limit(limit);
                }
            }
        });
    }

    pub(super) fn set_limit(self: &Arc<Hall>, limit: u64) {
        self.with(|state, _, _| state.seats.set_limit(limit));
    }

    /// Works on the state; then, outside of the lock, sets the alarm and wakes.
    fn with<R>(self: &Arc<Hall>, work: impl FnOnce(&mut State, Timestamp, &mut Afterwards) -> R) -> R {
        let mut after = Afterwards::default();
        let (result, mut alarm) = self.locked(&mut after, work);
        while let Some(at) = alarm {
            ((), alarm) = match self.settings.clock.wake_at(at, self.alarm()) {
                Ok(true) => break,
                Ok(false) => self.locked(&mut after, |state, _, _| state.line.forget_alarm()),
                Err(_) => self.locked(&mut after, |state, _, after| {
                    let refusal = Refusal::no_timer(state.decision());
                    state.line.refuse_deadlines(refusal, after);
                }),
            };
        }
        wake_all(after.wake);
        result
    }

    /// What the work gives, and when the clock has to call, if it does not know yet.
    fn locked<R>(
        &self,
        after: &mut Afterwards,
        work: impl FnOnce(&mut State, Timestamp, &mut Afterwards) -> R,
    ) -> (R, Option<Timestamp>) {
        let mut state = self.state.lock();
        let now = self.settings.clock.now();
        state.line.see(now);
        state.time_out(now, after);
        let result = work(&mut state, now, after);
        state.serve(&self.settings, now, after);
        (result, state.line.next_alarm())
    }

    fn alarm(self: &Arc<Hall>) -> Waker {
        self.alarm.get_or_init(|| Waker::from(Arc::new(Alarm(Arc::downgrade(self))))).clone()
    }
}

impl State {
    fn decision(&self) -> Decision {
        self.overloaded().decision()
    }

    fn overloaded(&self) -> Refusal {
        Refusal::overloaded(self.seats.limit(), GUESS)
    }

    fn arrive(
        &mut self,
        settings: &Settings,
        (class, waiter): (usize, Waiter),
        after: &mut Afterwards,
    ) -> Arrived {
        let refusal = if self.seats.take(class) {
            after.gone = Some(waiter.waker);
            return Arrived::In;
        } else if waiter.patience == Some(Ticks::ZERO) || settings.line == 0 {
            self.overloaded()
        } else if self.line.waiting() < settings.line || self.makes_room(settings, (class, &waiter), after) {
            return Arrived::Waits(self.line.join(class, waiter));
        } else {
            Refusal::line_full(self.decision())
        };
        after.gone = Some(waiter.waker);
        Arrived::Refused(refusal)
    }

    /// Whether somebody else leaves the full line for one more.
    fn makes_room(
        &mut self,
        settings: &Settings,
        (class, waiter): (usize, &Waiter),
        after: &mut Afterwards,
    ) -> bool {
        let (refusal, order) = (Refusal::pushed_out(self.decision()), self.order(settings, waiter.since));
        self.line.push_out(&self.seats, (class, order), refusal, after)
    }

    /// Newest first only when somebody or other has waited all the time for longer than it may be.
    fn order(&self, settings: &Settings, now: Timestamp) -> Order {
        match (settings.newest_first_after, self.line.busy_for(now)) {
            (Some(longest), Some(busy)) if busy >= longest => Order::NewestFirst,
            _ => Order::OldestFirst,
        }
    }

    fn time_out(&mut self, now: Timestamp, after: &mut Afterwards) {
        if self.line.waiting() > 0 {
            let refusal = Refusal::timed_out(self.decision());
            self.line.time_out(now, refusal, after);
        }
    }

    fn serve(&mut self, settings: &Settings, now: Timestamp, after: &mut Afterwards) {
        if self.line.waiting() > 0 {
            let order = self.order(settings, now);
            self.line.serve(&mut self.seats, order, after);
        }
    }
}

/// Calls a hall when a deadline has come; keeps no hall alive.
struct Alarm(Weak<Hall>);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        if let Some(hall) = self.0.upgrade() {
            hall.with(|state, _, _| state.line.forget_alarm());
        }
    }
}
