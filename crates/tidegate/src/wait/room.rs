//! Where people wait: a line for each subject that has waiters, and one alarm for all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Poll, Wake, Waker};

use super::line::{Line, Serving, Waiter};
use super::{Venue, Waited};
use crate::ask::Ask;
use crate::decision::{Decision, Verdict};
use crate::limit::Terms;
use crate::receipt::Receipt;
use crate::refusal::Refusal;
use crate::store::name::Name;
use crate::sync::{AtomicUsize, Mutex, Ordering, fence};
use crate::time::{Ticks, Timestamp};

/// A head that is woken up to this late passes as of the time at which it was due, so that the lateness of
/// timers does not add up: 1 ms.
const LATENESS: Ticks = Ticks::new(16_000_000);

/// The lines of one limiter.
#[derive(Debug)]
pub(crate) struct Room {
    max_waiters: usize,
    /// How many stand in the lines or are about to; zero spares everybody else the lock.
    waiting: AtomicUsize,
    lines: Mutex<Lines>,
    alarm: OnceLock<Waker>,
}

/// The place of one who waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    line: u64,
    number: u64,
}

/// What became of one who came.
pub(super) enum Entered {
    Settled(Result<Waited, Refusal>),
    Waits(Ticket),
}

#[derive(Debug, Default)]
struct Lines {
    by_number: BTreeMap<u64, Line>,
    numbers: HashMap<Box<[u8]>, u64>,
    /// When each line's head may pass, soonest first.
    due: BTreeSet<(Timestamp, u64)>,
    /// By when a waiter wants to have passed, with its place.
    deadlines: BTreeSet<(Timestamp, u64, u64)>,
    /// Whose wait is over and who has not yet looked.
    settled: HashMap<u64, Settled>,
    next: u64,
    /// When the clock was asked to call.
    armed: Option<Timestamp>,
    /// The time that was seen last.
    seen: Timestamp,
    waiting: usize,
}

#[derive(Debug)]
enum Settled {
    Passed { waited: Waited, receipt: Option<Receipt>, name: Box<Name> },
    Refused(Refusal),
}

/// What is to be done once nobody is locked out any more.
#[derive(Default)]
struct Afterwards {
    wake: Vec<Waker>,
    arm: Option<Timestamp>,
}

impl Room {
    pub(crate) fn new(max_waiters: usize) -> Room {
        Room {
            max_waiters,
            waiting: AtomicUsize::new(0),
            lines: Mutex::new(Lines::default()),
            alarm: OnceLock::new(),
        }
    }

    pub(crate) fn max_waiters(&self) -> usize {
        self.max_waiters
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
        let terms = venue.terms();
        let mut lines = self.lines.lock();
        let now = venue.clock().now();
        let line = lines.line_of(name)?;
        Some(line.outlook(venue, &terms, now, ask))
    }

    /// Comes in: passes at once, is refused at once, or waits.
    pub(super) fn enter(
        &self,
        venue: &Arc<dyn Venue>,
        name: &Name,
        ask: Ask,
        patience: Option<Ticks>,
        waker: &Waker,
    ) -> Entered {
        if self.is_empty() && venue.terms().in_line(ask) == ask {
            let (decision, _) = venue.take_if_free(name, ask, None);
            if decision.is_allowed() {
                return Entered::Settled(Ok(Waited::at_once(decision)));
            }
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let entered = self.with(venue, |lines, now, _| {
            lines.enter(&**venue, now, self.max_waiters, (name, ask, patience), waker)
        });
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        match entered {
            Ok(entered) => entered,
            Err((entered, decision)) => {
                if let Entered::Waits(ticket) = entered {
                    self.leave(venue, ticket);
                }
                Entered::Settled(Err(Refusal::no_timer(decision)))
            }
        }
    }

    /// Whether a wait is over.
    pub(super) fn poll(&self, ticket: Ticket, waker: &Waker) -> Poll<Result<Waited, Refusal>> {
        let mut lines = self.lines.lock();
        match lines.settled.remove(&ticket.number) {
            Some(Settled::Passed { waited, .. }) => Poll::Ready(Ok(waited)),
            Some(Settled::Refused(refusal)) => Poll::Ready(Err(refusal)),
            None => {
                let line = lines.by_number.get_mut(&ticket.line);
                if let Some(waiter) = line.and_then(|line| line.waiter(ticket.number)) {
                    waiter.waker.clone_from(waker);
                }
                Poll::Pending
            }
        }
    }

    /// Leaves, wherever in the line; what was already taken for this one goes back.
    pub(super) fn leave(&self, venue: &Arc<dyn Venue>, ticket: Ticket) {
        self.with_quietly(venue, |lines, now, after| lines.leave(&**venue, now, ticket, after));
    }

    /// Lets through whose time has come; called by the clock.
    pub(crate) fn serve(&self, venue: &Arc<dyn Venue>) {
        self.with_quietly(venue, |lines, now, after| lines.serve(&**venue, now, after));
    }

    /// Looks at a subject's line again, because its state was changed otherwise than by the line.
    pub(crate) fn look_again(&self, venue: &Arc<dyn Venue>, name: &Name) {
        if !self.misses_nobody() {
            self.with_quietly(venue, |lines, now, after| {
                if let Some(line) = lines.numbers.get(name.key()).copied() {
                    lines.look_again(&**venue, now, line, after);
                }
            });
        }
    }

    /// Looks at every line again, because the limit was changed.
    pub(crate) fn look_everywhere(&self, venue: &Arc<dyn Venue>) {
        if !self.misses_nobody() {
            self.with_quietly(venue, |lines, now, after| lines.look_everywhere(&**venue, now, after));
        }
    }

    /// Works on the lines, then wakes and arms outside of the lock.
    fn with<R>(
        &self,
        venue: &Arc<dyn Venue>,
        work: impl FnOnce(&mut Lines, Timestamp, &mut Afterwards) -> (R, Option<Decision>),
    ) -> Result<R, (R, Decision)> {
        let mut after = Afterwards::default();
        let (result, decision) = {
            let mut lines = self.lines.lock();
            let counted = lines.waiting;
            let now = venue.clock().now();
            if lines.stepped_back(now) {
                lines.look_everywhere(&**venue, now, &mut after);
            }
            let result = work(&mut lines, now, &mut after);
            after.arm = lines.next_alarm();
            // Those who have joined count before they stop to be about to.
            self.waiting.fetch_add(lines.waiting.wrapping_sub(counted), Ordering::SeqCst);
            result
        };
        for waker in after.wake {
            // Whoever panics on being woken keeps nobody else from it.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
        let Some(at) = after.arm else { return Ok(result) };
        match (venue.clock().wake_at(at, self.alarm(venue)), decision) {
            (Err(_), Some(decision)) => {
                self.lines.lock().armed = None;
                Err((result, decision))
            }
            _ => Ok(result),
        }
    }

    fn with_quietly(
        &self,
        venue: &Arc<dyn Venue>,
        work: impl FnOnce(&mut Lines, Timestamp, &mut Afterwards),
    ) {
        // Nobody comes in here, so nobody has to be told if no timer can be had: one is armed already.
        let _ = self.with(venue, |lines, now, after| (work(lines, now, after), None));
    }

    fn alarm(&self, venue: &Arc<dyn Venue>) -> Waker {
        self.alarm.get_or_init(|| Waker::from(Arc::new(Alarm(Arc::downgrade(venue))))).clone()
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

impl Lines {
    fn line_of(&mut self, name: &Name) -> Option<&mut Line> {
        self.by_number.get_mut(self.numbers.get(name.key())?)
    }

    fn enter(
        &mut self,
        venue: &dyn Venue,
        now: Timestamp,
        max_waiters: usize,
        (name, ask, patience): (&Name, Ask, Option<Ticks>),
        waker: &Waker,
    ) -> (Entered, Option<Decision>) {
        let refused = |refusal| (Entered::Settled(Err(refusal)), None);
        let terms = venue.terms();
        let joins = self.numbers.get(name.key()).copied();
        let (decision, wait, serving) = match joins.and_then(|number| self.by_number.get_mut(&number)) {
            None => {
                let (decision, receipt) = venue.take_if_free(name, terms.in_line(ask), Some(now));
                match decision.verdict_in_ticks() {
                    Verdict::Allowed { delay: Ticks::ZERO } => {
                        return (Entered::Settled(Ok(Waited::at_once(decision))), None);
                    }
                    Verdict::Allowed { delay } => {
                        (decision, delay, receipt.map(|receipt| (decision, receipt)))
                    }
                    Verdict::Denied { retry_after } if !decision.is_store_full() => {
                        (decision, retry_after, None)
                    }
                    _ => return refused(Refusal::of(decision)),
                }
            }
            Some(line) => {
                let decision = venue.peek(name, terms.in_line(ask));
                if decision.verdict_in_ticks() == Verdict::Impossible {
                    return refused(Refusal::of(decision));
                }
                (decision, patience.map_or(Ticks::ZERO, |_| line.outlook(venue, &terms, now, ask)), None)
            }
        };
        let too_long = terms.foretells() && patience.is_some_and(|patience| wait > patience);
        if too_long || self.is_full(venue, &terms, now, max_waiters, (name, ask)) {
            if let Some((_, receipt)) = serving {
                venue.give_back(name, receipt);
            }
            let decision = decision.put_off(wait);
            return refused(if too_long { Refusal::of(decision) } else { Refusal::line_full(decision) });
        }
        let deadline = patience.map(|patience| now.saturating_add(patience));
        let waiter = Waiter { ask, since: now, deadline, waker: waker.clone() };
        let line = joins.unwrap_or_else(|| self.open(name.clone(), now.saturating_add(wait), serving));
        (Entered::Waits(self.join(line, waiter, &terms)), Some(decision))
    }

    /// Whether one more would be too many: in the room, or in the queue of a leaky bucket.
    fn is_full(
        &mut self,
        venue: &dyn Venue,
        terms: &Terms,
        now: Timestamp,
        max_waiters: usize,
        (name, ask): (&Name, Ask),
    ) -> bool {
        let units = self.line_of(name).map_or(ask.units(), |line| line.units_with(ask));
        self.waiting >= max_waiters || terms.is_queue_full(now, units, || venue.state(name))
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn open(&mut self, name: Name, due: Timestamp, serving: Option<Serving>) -> u64 {
        let number = self.number();
        self.numbers.insert(name.key().into(), number);
        self.by_number.insert(number, Line::new(name, due, serving));
        self.due.insert((due, number));
        number
    }

    fn join(&mut self, line: u64, waiter: Waiter, terms: &Terms) -> Ticket {
        let number = self.number();
        self.deadlines.extend(waiter.deadline.map(|deadline| (deadline, line, number)));
        if let Some(line) = self.by_number.get_mut(&line) {
            line.join(number, waiter, terms);
            self.waiting += 1;
        }
        Ticket { line, number }
    }

    fn leave(&mut self, venue: &dyn Venue, now: Timestamp, ticket: Ticket, after: &mut Afterwards) {
        if let Some(Settled::Passed { receipt: Some(receipt), name, .. }) =
            self.settled.remove(&ticket.number)
        {
            venue.give_back(&name, receipt);
            if let Some(line) = self.numbers.get(name.key()).copied() {
                self.look_again(venue, now, line, after);
            }
            return;
        }
        if let Some(waiter) = self.step_out(venue, now, ticket, after) {
            self.waiting -= 1;
            self.forget_deadline(ticket, waiter.deadline);
        }
    }

    /// Takes one out of its line; those behind it move up.
    fn step_out(
        &mut self,
        venue: &dyn Venue,
        now: Timestamp,
        ticket: Ticket,
        after: &mut Afterwards,
    ) -> Option<Waiter> {
        let line = self.by_number.get_mut(&ticket.line)?;
        let was_head = line.head().is_some_and(|(head, _)| head == ticket.number);
        let waiter = line.leave(ticket.number)?;
        if was_head {
            if let Some((_, receipt)) = line.serving.take() {
                venue.give_back(&line.name, receipt);
            }
            self.look_again(venue, now, ticket.line, after);
        }
        Some(waiter)
    }

    fn forget_deadline(&mut self, ticket: Ticket, deadline: Option<Timestamp>) {
        if let Some(deadline) = deadline {
            self.deadlines.remove(&(deadline, ticket.line, ticket.number));
        }
    }

    fn serve(&mut self, venue: &dyn Venue, now: Timestamp, after: &mut Afterwards) {
        if self.armed.is_some_and(|armed| armed <= now) {
            self.armed = None;
        }
        while let Some((due, line)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            let at = due.max(now.saturating_sub(LATENESS));
            self.let_through(venue, (now, at), line, after);
        }
        while let Some((deadline, line, number)) = self.deadlines.pop_first() {
            if deadline > now {
                self.deadlines.insert((deadline, line, number));
                break;
            }
            self.time_out(venue, now, Ticket { line, number }, after);
        }
    }

    /// One has waited as long as it would.
    fn time_out(&mut self, venue: &dyn Venue, now: Timestamp, ticket: Ticket, after: &mut Afterwards) {
        let Some(line) = self.by_number.get(&ticket.line) else { return };
        let name = line.name.clone();
        if let Some(waiter) = self.step_out(venue, now, ticket, after) {
            let refusal = Refusal::timed_out(venue.peek(&name, waiter.ask));
            self.settle(ticket.number, waiter, Settled::Refused(refusal), after);
        }
    }

    fn settle(&mut self, ticket: u64, waiter: Waiter, settled: Settled, after: &mut Afterwards) {
        self.waiting -= 1;
        self.settled.insert(ticket, settled);
        after.wake.push(waiter.waker);
    }

    /// Lets a line's heads through, as many as may pass by now, and notes when the next one may.
    fn let_through(
        &mut self,
        venue: &dyn Venue,
        (now, mut at): (Timestamp, Timestamp),
        number: u64,
        after: &mut Afterwards,
    ) {
        let Some(mut line) = self.by_number.remove(&number) else { return };
        self.due.remove(&(line.due, number));
        if at > line.due {
            line.forget_outlook();
        }
        let terms = venue.terms();
        while let Some(outcome) = line.advance(venue, &terms, now, &mut at) {
            let Some((ticket, waiter)) = line.pop() else { break };
            self.forget_deadline(Ticket { line: number, number: ticket }, waiter.deadline);
            let settled = match outcome {
                Ok((decision, receipt)) => {
                    let waited = Waited::new(now.since(waiter.since), decision);
                    Settled::Passed { waited, receipt, name: Box::new(line.name.clone()) }
                }
                Err(decision) => {
                    line.forget_outlook();
                    Settled::Refused(Refusal::of(decision))
                }
            };
            self.settle(ticket, waiter, settled, after);
        }
        if line.head().is_some() {
            self.due.insert((line.due, number));
            self.by_number.insert(number, line);
        } else {
            self.numbers.remove(line.name.key());
        }
    }

    fn look_again(&mut self, venue: &dyn Venue, now: Timestamp, number: u64, after: &mut Afterwards) {
        if let Some(line) = self.by_number.get_mut(&number) {
            line.forget_outlook();
            self.let_through(venue, (now, now), number, after);
        }
    }

    fn look_everywhere(&mut self, venue: &dyn Venue, now: Timestamp, after: &mut Afterwards) {
        let numbers: Vec<_> = self.by_number.keys().copied().collect();
        for number in numbers {
            self.look_again(venue, now, number, after);
        }
    }

    /// Whether the clock went back since it was seen last; the alarm that was set is then worth nothing.
    fn stepped_back(&mut self, now: Timestamp) -> bool {
        let stepped_back = now < self.seen;
        self.seen = now;
        if stepped_back {
            self.armed = None;
        }
        stepped_back
    }

    /// When the clock is to call next, if it does not know yet.
    fn next_alarm(&mut self) -> Option<Timestamp> {
        let due = self.due.first().map(|(due, _)| *due);
        let deadline = self.deadlines.first().map(|(deadline, ..)| *deadline);
        let next = due.into_iter().chain(deadline).min()?;
        if self.armed.is_some_and(|armed| armed <= next) {
            return None;
        }
        self.armed = Some(next);
        Some(next)
    }
}
