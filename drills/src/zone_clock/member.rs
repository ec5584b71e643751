//! One subject: what the zone says about it, and what its own accounts do.

use std::time::Duration;

use tidegate::{Ask, Cost, Decision, Limit, Limiter, State, Ticks, Timestamp, ask};

use super::judge::{Breach, Judged};
use super::limits::{OUT_OF_ORDER, Terms};
use crate::account::{Account, ticks};

/// An ask that no limit here ever admits: all it does is to cut a debt that is too large.
const IMPOSSIBLE: Ask = Ask::new(Cost::of(u64::MAX));

/// A subject under a limit.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) terms: Terms,
    limit: Limit,
    limiter: Limiter,
    key: u64,
    /// What it was admitted, forgotten and cut as soon as a zone may.
    lenient: State,
    /// What it was admitted if no process ever forgets or cuts it but by its own asks.
    kept: State,
    /// The same in true time, without the library's arithmetic.
    account: Account,
    /// How much longer than its limit says it may have to wait, in ticks.
    spare: u64,
    pub(super) was_admitted: bool,
}

/// When something is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// As the zone's clock says.
    pub(super) reading: Timestamp,
    /// By how much the clock was advanced, without its jumps, if it is one clock.
    pub(super) passed: Option<Timestamp>,
}

impl Member {
    pub(super) fn new(terms: Terms, limiter: &Limiter, key: u64) -> Member {
        Member {
            terms,
            limit: limiter.limit(),
            limiter: limiter.clone(),
            key,
            lenient: State::default(),
            kept: State::default(),
            account: Account::default(),
            spare: 0,
            was_admitted: false,
        }
    }

    /// The same among readers who are so far apart.
    pub(super) fn read_apart(self, apart: Duration) -> Member {
        Member { spare: ticks(apart), ..self }
    }

    /// The clock may have moved on to this time: a zone may have forgotten what is repaid by then.
    pub(super) fn may_be_forgotten(&mut self, latest: Timestamp) {
        let spare = Ticks::saturating_from(OUT_OF_ORDER);
        if self.limit.clear_at(&self.lenient).saturating_add(spare) <= latest {
            self.lenient = State::default();
        }
    }

    /// The clock was set back to this time: a zone may have cut what cannot be owed.
    pub(super) fn may_be_cut(&mut self, now: Timestamp) {
        let _ = self.limit.decide(&mut self.lenient, now, IMPOSSIBLE);
    }

    /// The clock jumped forwards: everything is repaid, once.
    pub(super) fn jumped(&mut self) {
        self.account = Account::default();
    }

    /// Asks the zone, and everybody else about the answer.
    pub(super) fn ask(&mut self, cost: u64, max_wait: Ticks, at: Moment, judged: &mut Judged) -> Decision {
        let name = self.key.to_le_bytes();
        let decision = self.limiter.admit(ask(&name[..]).cost(cost).max_wait(max_wait.to_duration()));
        let same = Ask::new(Cost::of(cost)).max_wait_in_ticks(max_wait);
        let kept = self.limit.decide(&mut self.kept, at.reading, same);
        if kept != decision {
            judged.found(Breach::Differs, || {
                format!("{} key {} at {at:?}: {decision:?}, not {kept:?}", self.limit, self.key)
            });
        }
        let lenient = self.limit.peek(&self.lenient, at.reading, same);
        if decision.is_allowed() || !lenient.is_allowed() {
            let _ = self.limit.decide(&mut self.lenient, at.reading, same);
        }
        if decision.is_allowed() && !lenient.is_allowed() {
            judged.found(Breach::TooMuch, || self.describe(at, cost, lenient));
        }
        judged.asked(&decision);
        match decision.retry_after() {
            Some(wait) => {
                let longest = self.terms.longest_wait(cost) + self.spare;
                judged.waits(ticks(wait), longest, || self.describe(at, cost, kept));
            }
            None if decision.is_allowed() => self.admitted(cost, at, judged),
            None => judged.found(Breach::Never, || self.describe(at, cost, kept)),
        }
        decision
    }

    fn admitted(&mut self, cost: u64, at: Moment, judged: &mut Judged) {
        self.was_admitted = true;
        let (Some(prices), Some(passed)) = (self.terms.prices(), at.passed) else { return };
        let within = (0..cost).map(|_| self.account.admit(&prices, passed, passed)).last();
        if within == Some(false) {
            let describe = || format!("{} key {} at {at:?} cost {cost}", self.limit, self.key);
            judged.found(Breach::BeyondTrueTime, describe);
        }
    }

    fn describe(&self, at: Moment, cost: u64, own: Decision) -> String {
        format!("{} key {} at {at:?} cost {cost}; its own state says {own:?}", self.limit, self.key)
    }
}
