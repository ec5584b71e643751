//! Those who wait for a place: a line for each class, their deadlines, and what became of them.
//!
//! Whoever leaves does so in logarithmic time, wherever it stands. Nothing here reads a clock or wakes: who is to
//! be woken is written down for whoever holds the lock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::task::Waker;

use super::seats::Seats;
use crate::refusal::Refusal;
use crate::time::{Ticks, Timestamp};

/// All who wait.
#[derive(Debug)]
pub(super) struct Line {
    /// Of each class those who wait, by number: the smallest came first.
    classes: Vec<BTreeMap<u64, Waiter>>,
    /// By when somebody wants to be in, with its number and class.
    deadlines: BTreeSet<(Timestamp, u64, usize)>,
    /// Whose wait is over and who has not yet looked.
    settled: HashMap<u64, Settled>,
    /// Since when somebody waits.
    busy_since: Timestamp,
    /// The time that was seen last.
    seen: Timestamp,
    waiting: usize,
    next: u64,
    /// When the clock was asked to call.
    alarm: Option<Timestamp>,
}

/// One who waits.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) since: Timestamp,
    pub(super) patience: Option<Ticks>,
    pub(super) waker: Waker,
}

impl Waiter {
    fn deadline(&self) -> Option<Timestamp> {
        self.patience.map(|patience| self.since.saturating_add(patience))
    }
}

/// The place of one who waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    pub(super) number: u64,
    pub(super) class: usize,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Settled {
    /// A place was taken for it.
    In,
    Refused(Refusal),
}

/// Who goes first within a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    OldestFirst,
    NewestFirst,
}

/// What is to be done once nobody is locked out any more.
#[derive(Debug, Default)]
pub(super) struct Afterwards {
    /// Who is to be woken.
    pub(super) wake: Vec<Waker>,
    /// A waker to be dropped, which may run code of others.
    pub(super) gone: Option<Waker>,
}

impl Line {
    pub(super) fn new(classes: usize) -> Line {
        Line {
            classes: (0..classes).map(|_| BTreeMap::new()).collect(),
            deadlines: BTreeSet::new(),
            settled: HashMap::new(),
            busy_since: Timestamp::EPOCH,
            seen: Timestamp::EPOCH,
            waiting: 0,
            next: 0,
            alarm: None,
        }
    }

    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn waiting_of(&self, class: usize) -> usize {
        self.classes[class].len()
    }

    /// For how long somebody or other has been waiting by now.
    pub(super) fn busy_for(&self, now: Timestamp) -> Option<Ticks> {
        (self.waiting > 0).then(|| now.since(self.busy_since))
    }

    pub(super) fn join(&mut self, class: usize, waiter: Waiter) -> Ticket {
        if self.waiting == 0 {
            self.busy_since = waiter.since;
        }
        self.next += 1;
        let number = self.next;
        self.deadlines.extend(waiter.deadline().map(|deadline| (deadline, number, class)));
        self.classes[class].insert(number, waiter);
        self.waiting += 1;
        Ticket { number, class }
    }

    /// One leaves, wherever it stands. What was settled for it meanwhile is told instead.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Result<Option<Waiter>, Settled> {
        match self.settled.remove(&ticket.number) {
            Some(settled) => Err(settled),
            None => Ok(self.step_out(ticket)),
        }
    }

    fn step_out(&mut self, ticket: Ticket) -> Option<Waiter> {
        let waiter = self.classes[ticket.class].remove(&ticket.number)?;
        self.waiting -= 1;
        if let Some(deadline) = waiter.deadline() {
            self.deadlines.remove(&(deadline, ticket.number, ticket.class));
        }
        Some(waiter)
    }

    pub(super) fn take_settled(&mut self, ticket: Ticket) -> Option<Settled> {
        self.settled.remove(&ticket.number)
    }

    pub(super) fn waker_of(&mut self, ticket: Ticket) -> Option<&mut Waker> {
        self.classes[ticket.class].get_mut(&ticket.number).map(|waiter| &mut waiter.waker)
    }

    /// Lets in who may come in, the first classes first; the place is taken for them here.
    pub(super) fn serve(&mut self, seats: &mut Seats, order: Order, after: &mut Afterwards) {
        for class in 0..self.classes.len() {
            while let Some(number) = self.turn(class, order) {
                if !seats.take(class) {
                    break;
                }
                self.settle(Ticket { number, class }, Settled::In, after);
            }
        }
    }

    /// Whose turn it is in a class.
    fn turn(&self, class: usize, order: Order) -> Option<u64> {
        let waiters = &self.classes[class];
        let entry = match order {
            Order::OldestFirst => waiters.first_key_value(),
            Order::NewestFirst => waiters.last_key_value(),
        };
        entry.map(|(number, _)| *number)
    }

    /// Makes room for one more of this class, by pushing out one of the least class that wants more than what is
    /// kept for it: whoever would be served last there. Whether there is room: nobody is pushed out for one of a
    /// lesser class, and only a newcomer who would be served first for one of the same.
    pub(super) fn push_out(
        &mut self,
        seats: &Seats,
        (newcomer, order): (usize, Order),
        refusal: Refusal,
        after: &mut Afterwards,
    ) -> bool {
        let wants_more = |class: &usize| {
            let waiting = self.waiting_of(*class) + usize::from(*class == newcomer);
            waiting as u64 > seats.left_of_reserve(*class)
        };
        let (first, last_served) = match order {
            Order::OldestFirst => (newcomer + 1, Order::NewestFirst),
            Order::NewestFirst => (0, Order::OldestFirst),
        };
        let victim = (first..self.classes.len()).rev().find(wants_more);
        let victim = victim.and_then(|class| Some((class, self.turn(class, last_served)?)));
        if let Some((class, number)) = victim {
            self.settle(Ticket { number, class }, Settled::Refused(refusal), after);
        }
        victim.is_some()
    }

    /// Refuses whose time is over.
    pub(super) fn time_out(&mut self, now: Timestamp, refusal: Refusal, after: &mut Afterwards) {
        while let Some((_, number, class)) = self.deadlines.first().copied().filter(|(at, ..)| *at <= now) {
            self.settle(Ticket { number, class }, Settled::Refused(refusal), after);
        }
    }

    /// Refuses all who have a deadline, because nobody can be woken when it comes.
    pub(super) fn refuse_deadlines(&mut self, refusal: Refusal, after: &mut Afterwards) {
        self.alarm = None;
        self.time_out(Timestamp::LAST, refusal, after);
    }

    fn settle(&mut self, ticket: Ticket, settled: Settled, after: &mut Afterwards) {
        if let Some(waiter) = self.step_out(ticket) {
            self.settled.insert(ticket.number, settled);
            after.wake.push(waiter.waker);
        }
    }

    /// Notes the time. If the clock went back, nobody waits longer for that than it would from now.
    pub(super) fn see(&mut self, now: Timestamp) {
        let stepped_back = now < self.seen;
        self.seen = now;
        if !stepped_back {
            return;
        }
        self.alarm = None;
        self.busy_since = self.busy_since.min(now);
        self.deadlines.clear();
        for (class, waiters) in self.classes.iter_mut().enumerate() {
            for (number, waiter) in waiters {
                waiter.since = waiter.since.min(now);
                self.deadlines.extend(waiter.deadline().map(|deadline| (deadline, *number, class)));
            }
        }
    }

    /// The clock has called, or will not.
    pub(super) fn forget_alarm(&mut self) {
        self.alarm = None;
    }

    /// When the clock is to call next, if it does not know yet.
    pub(super) fn next_alarm(&mut self) -> Option<Timestamp> {
        let (next, ..) = *self.deadlines.first()?;
        if self.alarm.is_some_and(|alarm| alarm <= next) {
            return None;
        }
        self.alarm = Some(next);
        Some(next)
    }
}
