//! Those who wait for one subject, in the order of arrival.

use std::collections::BTreeMap;
use std::task::Waker;

use super::Venue;
use super::taken::Taken;
use crate::algorithm::State;
use crate::ask::Ask;
use crate::decision::{Decision, Verdict};
use crate::limit::Terms;
use crate::store::name::{Account, Name};
use crate::time::{Ticks, Timestamp};

/// More often than this nobody is told to wait a little longer.
const MOST_WAITS: usize = 64;

/// How many are foreseen one by one, where the wait of a whole line is no sum; those behind them are told the
/// least that they will wait.
const FORESEEN: usize = 1000;

/// One who waits.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) ask: Ask,
    pub(super) is_tracked: bool,
    pub(super) since: Timestamp,
    pub(super) patience: Option<Ticks>,
    pub(super) waker: Waker,
}

impl Waiter {
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.patience.map(|patience| self.since.saturating_add(patience))
    }
}

/// The line of one subject.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) name: Name,
    /// When the head may pass.
    pub(super) due: Timestamp,
    /// What the head has taken already, if it has to wait for what it costs itself.
    pub(super) serving: Option<Taken>,
    pub(super) waiters: BTreeMap<u64, Waiter>,
    /// What all of them weigh.
    units: u64,
    tail: Option<Tail>,
}

/// How it will be when all have passed: when that is, and what is remembered then.
#[derive(Debug)]
struct Tail {
    state: State,
    at: Timestamp,
}

impl Line {
    pub(super) fn new(name: Name, due: Timestamp, serving: Option<Taken>) -> Line {
        Line { name, due, serving, waiters: BTreeMap::new(), units: 0, tail: None }
    }

    pub(super) fn join(&mut self, ticket: u64, waiter: Waiter, terms: &Terms) {
        if let Some(tail) = self.tail.as_mut().filter(|_| self.waiters.len() < FORESEEN) {
            tail.pass(terms, waiter.ask);
        }
        self.units = self.units.saturating_add(waiter.ask.units());
        self.waiters.insert(ticket, waiter);
    }

    /// One leaves the line, wherever it stands.
    pub(super) fn leave(&mut self, ticket: u64) -> Option<Waiter> {
        let waiter = self.waiters.remove(&ticket)?;
        self.units = self.units.saturating_sub(waiter.ask.units());
        self.forget_outlook();
        Some(waiter)
    }

    /// The head leaves the line because its time has come, as it was foreseen.
    pub(super) fn pop(&mut self) -> Option<(u64, Waiter)> {
        let (ticket, waiter) = self.waiters.pop_first()?;
        self.units = self.units.saturating_sub(waiter.ask.units());
        if self.waiters.len() >= FORESEEN {
            self.forget_outlook();
        }
        Some((ticket, waiter))
    }

    pub(super) fn head(&self) -> Option<(u64, &Waiter)> {
        self.waiters.first_key_value().map(|(ticket, waiter)| (*ticket, waiter))
    }

    /// Something came otherwise than foreseen.
    pub(super) fn forget_outlook(&mut self) {
        self.tail = None;
    }

    /// What all who wait weigh together with one more.
    pub(super) fn units_with(&self, ask: Ask) -> u64 {
        self.units.saturating_add(ask.units())
    }

    /// What becomes of the head by now, taking from time `at` on; `None` if it has to go on waiting.
    pub(super) fn advance(
        &mut self,
        venue: &dyn Venue,
        now: Timestamp,
        at: &mut Timestamp,
    ) -> Option<Result<Taken, Decision>> {
        let account = venue.account(&self.name);
        loop {
            let Waiter { ask, is_tracked, .. } = *self.head()?.1;
            if let Some(taken) = self.serving.take() {
                // It never waits longer than it was told, even if the clock stepped back since.
                let delay = taken.decision.delay().map_or(Ticks::ZERO, Ticks::saturating_from);
                self.due = self.due.min(now.saturating_add(delay));
                if self.due <= now {
                    return Some(Ok(taken));
                }
                self.serving = Some(taken);
                return None;
            }
            let ask = account.terms().in_line(ask);
            let taken = Taken::take(venue, &account, (ask, is_tracked), Some(*at));
            let decision = taken.decision;
            let wait = match decision.verdict_in_ticks() {
                Verdict::Denied { retry_after } if !decision.is_store_full() => retry_after,
                Verdict::Allowed { delay } => {
                    if delay == Ticks::ZERO {
                        return Some(Ok(taken));
                    }
                    self.serving = Some(taken);
                    delay
                }
                _ => return Some(Err(decision)),
            };
            self.due = at.saturating_add(wait);
            if self.due > now {
                return None;
            }
            if self.due == *at {
                // Time itself is over.
                return Some(Err(decision));
            }
            *at = self.due;
        }
    }

    /// How long one more would wait at the end of the line, or at least.
    pub(super) fn outlook(
        &mut self,
        venue: &dyn Venue,
        account: &Account,
        now: Timestamp,
        ask: Ask,
    ) -> Ticks {
        let terms = account.terms();
        let until_due = self.due.since(now);
        let head = self.head().map_or(0, |(_, head)| head.ask.units());
        if !terms.foretells() {
            return until_due;
        }
        if let Some(behind) = terms.wait_in_line(head, self.units, ask) {
            return until_due.saturating_add(behind);
        }
        let tail = match self.tail.take() {
            Some(tail) => tail,
            None => self.foresee(venue, account),
        };
        let at = tail.at.max(now);
        let wait = match terms.peek(&tail.state, at, terms.in_line(ask)).verdict_in_ticks() {
            Verdict::Allowed { delay } => delay,
            Verdict::Denied { retry_after } => retry_after,
            Verdict::Impossible => Ticks::MAX,
        };
        self.tail = Some(tail);
        at.since(now).saturating_add(wait)
    }

    /// How it will be when all who wait, or as many as are foreseen, have passed.
    fn foresee(&self, venue: &dyn Venue, account: &Account) -> Tail {
        let mut tail = Tail { state: venue.state(account), at: self.due };
        let served = usize::from(self.serving.is_some());
        for waiter in self.waiters.values().take(FORESEEN).skip(served) {
            tail.pass(account.terms(), waiter.ask);
        }
        tail
    }
}

impl Tail {
    /// Somebody passes as soon as the limit lets them; whom it never will is not waited for.
    fn pass(&mut self, terms: &Terms, ask: Ask) {
        for _ in 0..MOST_WAITS {
            // What is only foreseen gets no permit that anyone holds.
            let foreseen = terms.decide_if_free(&mut self.state, self.at, terms.in_line(ask), 0);
            match foreseen.verdict_in_ticks() {
                Verdict::Denied { retry_after } => self.at = self.at.saturating_add(retry_after),
                Verdict::Allowed { delay } => {
                    self.at = self.at.saturating_add(delay);
                    return;
                }
                Verdict::Impossible => return,
            }
        }
    }
}
