//! All lines of a room: who passes next, whose time is over, and when to look again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::task::Waker;

use super::line::{Line, Waiter};
use super::room::{Coming, Entered, Passed, Ticket};
use super::taken::Taken;
use super::{Venue, Waited};
use crate::ask::Ask;
use crate::decision::Verdict;
use crate::limit::Terms;
use crate::refusal::Refusal;
use crate::store::name::{Account, Name};
use crate::time::{Ticks, Timestamp};

/// Where the promise is spacing, a head that is served up to this late passes as of the time at which it was
/// due, so that the lateness of timers does not add up: 1 ms.
const LATENESS: Ticks = Ticks::new(16_000_000);

/// The lines of one limiter.
#[derive(Debug, Default)]
pub(super) struct Lines {
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
    alarm: Option<Timestamp>,
    /// The time that was seen last.
    seen: Timestamp,
    waiting: usize,
}

#[derive(Debug)]
enum Settled {
    Passed { waited: Waited, taken: Box<Taken> },
    Refused(Refusal),
}

/// What is to be done once nobody is locked out any more.
#[derive(Debug, Default)]
pub(super) struct Afterwards {
    /// Who is to be woken.
    pub(super) wake: Vec<Waker>,
    /// Wakers to be dropped, which may run code of others.
    gone: Vec<Waker>,
}

impl Lines {
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn line_of(&mut self, name: &Name) -> Option<&mut Line> {
        self.by_number.get_mut(self.numbers.get(name.key())?)
    }

    pub(super) fn waker_of(&mut self, ticket: Ticket) -> Option<&mut Waker> {
        let line = self.by_number.get_mut(&ticket.line)?;
        line.waiters.get_mut(&ticket.number).map(|waiter| &mut waiter.waker)
    }

    pub(super) fn position(&self, ticket: Ticket) -> Option<usize> {
        let waiters = &self.by_number.get(&ticket.line)?.waiters;
        waiters.contains_key(&ticket.number).then(|| waiters.range(..ticket.number).count())
    }

    pub(super) fn take_settled(&mut self, ticket: Ticket) -> Option<Result<Passed, Refusal>> {
        self.settled.remove(&ticket.number).map(|settled| match settled {
            Settled::Passed { waited, taken } => Ok(Passed { waited, taken: *taken }),
            Settled::Refused(refusal) => Err(refusal),
        })
    }

    pub(super) fn enter(
        &mut self,
        venue: &dyn Venue,
        now: Timestamp,
        max_waiters: usize,
        coming: Coming<'_>,
        waker: Waker,
    ) -> Entered {
        let Coming { name, ask, is_tracked, patience } = coming;
        let refused = |refusal| Entered::Settled(Err(refusal));
        let account = venue.account(name);
        let terms = *account.terms();
        let joins = self.numbers.get(name.key()).copied();
        let (decision, wait, serving) = match joins.and_then(|number| self.by_number.get_mut(&number)) {
            None => {
                let taken = Taken::take(venue, &account, (terms.in_line(ask), is_tracked), Some(now));
                let decision = taken.decision;
                match decision.verdict_in_ticks() {
                    Verdict::Allowed { delay: Ticks::ZERO } => {
                        return Entered::Settled(Ok(Passed::at_once(taken)));
                    }
                    Verdict::Allowed { delay } => (decision, delay, Some(taken)),
                    Verdict::Denied { retry_after } if !decision.is_store_full() => {
                        (decision, retry_after, None)
                    }
                    _ => return refused(Refusal::of(decision)),
                }
            }
            Some(line) => {
                let decision = venue.look(&account, terms.in_line(ask));
                if decision.verdict_in_ticks() == Verdict::Impossible {
                    return refused(Refusal::of(decision));
                }
                let wait = patience.map_or(Ticks::ZERO, |_| line.outlook(venue, &account, now, ask));
                (decision, wait, None)
            }
        };
        let too_long = terms.foretells() && patience.is_some_and(|patience| wait > patience);
        if too_long || self.is_full(venue, &account, now, max_waiters, ask) {
            if let Some(taken) = serving {
                taken.give_back(venue);
            }
            let wait = self.line_of(name).map_or(wait, |line| line.outlook(venue, &account, now, ask));
            let decision = decision.put_off(wait.max(Ticks::new(1)));
            return refused(if too_long { Refusal::of(decision) } else { Refusal::line_full(decision) });
        }
        let waiter = Waiter { ask, is_tracked, since: now, patience, waker };
        let line = joins.unwrap_or_else(|| self.open(name.clone(), now.saturating_add(wait), serving));
        Entered::Waits(self.join(line, waiter, &terms))
    }

    /// Whether one more would be too many: in the room, or in the queue of a leaky bucket.
    fn is_full(
        &mut self,
        venue: &dyn Venue,
        account: &Account,
        now: Timestamp,
        max_waiters: usize,
        ask: Ask,
    ) -> bool {
        let units = self.line_of(account.name()).map_or(ask.units(), |line| line.units_with(ask));
        self.waiting >= max_waiters || account.terms().is_queue_full(now, units, || venue.state(account))
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn open(&mut self, name: Name, due: Timestamp, serving: Option<Taken>) -> u64 {
        let number = self.number();
        self.numbers.insert(name.key().into(), number);
        self.by_number.insert(number, Line::new(name, due, serving));
        self.due.insert((due, number));
        number
    }

    fn join(&mut self, line: u64, waiter: Waiter, terms: &Terms) -> Ticket {
        let number = self.number();
        self.deadlines.extend(waiter.deadline().map(|deadline| (deadline, line, number)));
        if let Some(line) = self.by_number.get_mut(&line) {
            line.join(number, waiter, terms);
            self.waiting += 1;
        }
        Ticket { line, number }
    }

    pub(super) fn leave(
        &mut self,
        venue: &dyn Venue,
        now: Timestamp,
        ticket: Ticket,
        after: &mut Afterwards,
    ) {
        match self.settled.remove(&ticket.number) {
            Some(Settled::Passed { taken, .. }) => {
                let name = taken.account.name().clone();
                taken.give_back(venue);
                self.look_again_at(venue, now, &name, after);
            }
            Some(Settled::Refused(_)) => {}
            None => {
                if let Some(waiter) = self.step_out(venue, now, ticket, after) {
                    after.gone.push(waiter.waker);
                }
            }
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
        self.waiting -= 1;
        if let Some(deadline) = waiter.deadline() {
            self.deadlines.remove(&(deadline, ticket.line, ticket.number));
        }
        if was_head {
            self.begin_anew(venue, now, ticket.line, after);
        }
        Some(waiter)
    }

    pub(super) fn serve(&mut self, venue: &dyn Venue, now: Timestamp, after: &mut Afterwards) {
        while let Some((due, line)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            self.let_through(venue, (now, due), line, after);
        }
        while let Some((_, line, number)) =
            self.deadlines.first().copied().filter(|(deadline, ..)| *deadline <= now)
        {
            self.time_out(venue, now, Ticket { line, number }, after);
        }
    }

    /// One has waited as long as it would.
    fn time_out(&mut self, venue: &dyn Venue, now: Timestamp, ticket: Ticket, after: &mut Afterwards) {
        let Some(line) = self.by_number.get(&ticket.line) else { return };
        let account = venue.account(&line.name);
        if let Some(waiter) = self.step_out(venue, now, ticket, after) {
            // It was not its turn, whatever the limit would say to somebody alone.
            let decision = venue.look(&account, waiter.ask);
            let decision = if decision.is_allowed() { decision.put_off(Ticks::new(1)) } else { decision };
            self.settle(ticket.number, waiter, Settled::Refused(Refusal::timed_out(decision)), after);
        }
    }

    fn settle(&mut self, ticket: u64, waiter: Waiter, settled: Settled, after: &mut Afterwards) {
        self.settled.insert(ticket, settled);
        after.wake.push(waiter.waker);
    }

    /// Lets a line's heads through that may pass by now, and notes when the next one may.
    fn let_through(
        &mut self,
        venue: &dyn Venue,
        (now, due): (Timestamp, Timestamp),
        number: u64,
        after: &mut Afterwards,
    ) {
        let Some(mut line) = self.by_number.remove(&number) else { return };
        self.due.remove(&(line.due, number));
        let spaces = venue.account(&line.name).terms().spaces();
        let mut at = if spaces { due.max(now.saturating_sub(LATENESS)) } else { now };
        if at > line.due {
            line.forget_outlook();
        }
        while let Some(outcome) = line.advance(venue, now, &mut at) {
            let Some((ticket, waiter)) = line.pop() else { break };
            self.waiting -= 1;
            if let Some(deadline) = waiter.deadline() {
                self.deadlines.remove(&(deadline, number, ticket));
            }
            let settled = match outcome {
                Ok(taken) => {
                    let waited = Waited::new(now.since(waiter.since), taken.decision);
                    Settled::Passed { waited, taken: Box::new(taken) }
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

    pub(super) fn look_again_at(
        &mut self,
        venue: &dyn Venue,
        now: Timestamp,
        name: &Name,
        after: &mut Afterwards,
    ) {
        let Some(number) = self.numbers.get(name.key()).copied() else { return };
        if let Some(line) = self.by_number.get_mut(&number) {
            line.forget_outlook();
            self.let_through(venue, (now, now), number, after);
        }
    }

    pub(super) fn begin_anew_at(
        &mut self,
        venue: &dyn Venue,
        now: Timestamp,
        name: &Name,
        after: &mut Afterwards,
    ) {
        if let Some(number) = self.numbers.get(name.key()).copied() {
            self.begin_anew(venue, now, number, after);
        }
    }

    /// Lets a line begin anew: what its head has taken before goes back.
    fn begin_anew(&mut self, venue: &dyn Venue, now: Timestamp, number: u64, after: &mut Afterwards) {
        let Some(line) = self.by_number.get_mut(&number) else { return };
        if let Some(taken) = line.serving.take() {
            taken.give_back(venue);
        }
        line.forget_outlook();
        self.let_through(venue, (now, now), number, after);
    }

    /// Gives back what was taken for the heads that pay before they pass.
    pub(super) fn give_back_serving(&mut self, venue: &dyn Venue) {
        for line in self.by_number.values_mut() {
            if let Some(taken) = line.serving.take() {
                taken.give_back(venue);
            }
        }
    }

    pub(super) fn begin_all_anew(&mut self, venue: &dyn Venue, now: Timestamp, after: &mut Afterwards) {
        let numbers: Vec<_> = self.by_number.keys().copied().collect();
        for number in numbers {
            self.begin_anew(venue, now, number, after);
        }
    }

    /// Nobody can be woken: everybody is refused.
    pub(super) fn refuse_all(&mut self, venue: &dyn Venue, after: &mut Afterwards) {
        self.due.clear();
        self.deadlines.clear();
        self.numbers.clear();
        self.alarm = None;
        for mut line in std::mem::take(&mut self.by_number).into_values() {
            if let Some(taken) = line.serving.take() {
                taken.give_back(venue);
            }
            let account = venue.account(&line.name);
            while let Some((ticket, waiter)) = line.pop() {
                self.waiting -= 1;
                let decision = venue.look(&account, waiter.ask);
                self.settle(ticket, waiter, Settled::Refused(Refusal::no_timer(decision)), after);
            }
        }
    }

    /// Notes the time. If the clock went back, everybody is looked at again, and nobody waits longer for that
    /// than it would from now.
    pub(super) fn see(&mut self, venue: &dyn Venue, now: Timestamp, after: &mut Afterwards) {
        let stepped_back = now < self.seen;
        self.seen = now;
        if !stepped_back {
            return;
        }
        self.alarm = None;
        self.deadlines.clear();
        for (line_number, line) in &mut self.by_number {
            for (number, waiter) in &mut line.waiters {
                waiter.since = waiter.since.min(now);
                self.deadlines.extend(waiter.deadline().map(|deadline| (deadline, *line_number, *number)));
            }
        }
        let names: Vec<_> = self.by_number.values().map(|line| line.name.clone()).collect();
        for name in names {
            self.look_again_at(venue, now, &name, after);
        }
    }

    /// The clock has called, or will not.
    pub(super) fn forget_alarm(&mut self) {
        self.alarm = None;
    }

    /// When the clock is to call next, if it does not know yet.
    pub(super) fn next_alarm(&mut self) -> Option<Timestamp> {
        let due = self.due.first().map(|(due, _)| *due);
        let deadline = self.deadlines.first().map(|(deadline, ..)| *deadline);
        let next = due.into_iter().chain(deadline).min()?;
        if self.alarm.is_some_and(|alarm| alarm <= next) {
            return None;
        }
        self.alarm = Some(next);
        Some(next)
    }
}
