//! The predicted wait of one more waiter of a key.
//!
//! A client with a max wait is denied at once if its wait would be longer, so the wait has to be known before it joins.
//! For limits whose wait is a sum of costs, a formula gives it. For all other limits the queue is replayed on a copy of
//! the state: each waiter takes as soon as the limit allows.
//!
//! The result of the replay is kept as the [`Tail`] of the queue, so one more waiter costs one more step and not a
//! whole replay.

use super::WaitTarget;
use super::key_fifo::KeyFifo;
use super::state::KeyQueue;
use crate::algorithm::State;
use crate::ask::Ask;
use crate::decision::Verdict;
use crate::limit::AlgorithmParams;
use crate::store::state_key::StateKey;
use crate::time::{Ticks, Timestamp};

/// The largest number of successive denials that are predicted for one waiter. A sliding log may deny one ask many
/// times, each time until its next entry expires. The bound keeps one step of the replay short.
const MOST_WAITS: usize = 64;

/// The number of waiters that are predicted one by one, for algorithms without a formula for the wait of a whole
/// queue. The waiters behind them get a lower bound of their wait.
pub(super) const FORESEEN: usize = 1000;

/// The predicted state of a key when all waiters have passed, and the time of that.
#[derive(Debug)]
pub(super) struct Tail {
    /// The state that the last waiter will leave.
    state: State,
    /// The earliest time at which the last waiter can pass.
    at: Timestamp,
}

impl KeyQueue<KeyFifo> {
    /// Returns the predicted wait of one more waiter at the end of the queue, or a lower bound of it. The whole wait is
    /// predicted only if the limit [foretells](AlgorithmParams::foretells) its waits; under a concurrency limit the
    /// time until the queue is due is all that is known.
    pub(super) fn outlook(
        &mut self,
        target: &dyn WaitTarget,
        account: &StateKey,
        now: Timestamp,
        ask: Ask,
    ) -> Ticks {
        let terms = account.terms();
        let until_due = self.due().map_or(Ticks::ZERO, |due| due.since(now));
        let head = self.head().map_or(0, |(_, head)| head.ask.ask.units());
        if !terms.foretells() {
            return until_due;
        }
        if let Some(behind) = terms.wait_in_line(head, self.state.units, ask) {
            return until_due.saturating_add(behind);
        }
        let tail = match self.state.tail.take() {
            Some(tail) => tail,
            None => self.foresee(target, account, now),
        };
        let at = tail.at.max(now);
        let wait = match terms.peek(&tail.state, at, terms.in_line(ask)).verdict_in_ticks() {
            Verdict::Allowed { delay } => delay,
            Verdict::Denied { retry_after } => retry_after,
            Verdict::Impossible => Ticks::MAX,
        };
        self.state.tail = Some(tail);
        at.since(now).saturating_add(wait)
    }

    /// Adds one more waiter that is about to join to the prediction. Beyond [`FORESEEN`] waiters the prediction stays
    /// as it is, and is a lower bound from then on.
    pub(super) fn foresee_one_more(&mut self, terms: &AlgorithmParams, ask: Ask) {
        let is_foreseen = self.len() < FORESEEN;
        if let Some(tail) = self.state.tail.as_mut().filter(|_| is_foreseen) {
            tail.pass(terms, ask);
        }
    }

    /// Predicts the state after all waiters have passed, up to [`FORESEEN`] of them. The head is skipped if its take
    /// was already made: the state contains it.
    fn foresee(&self, target: &dyn WaitTarget, account: &StateKey, now: Timestamp) -> Tail {
        let mut tail = Tail { state: target.state(account), at: self.due().unwrap_or(now) };
        let served = usize::from(self.state.serving.is_some());
        for (_, waiter) in self.entries().take(FORESEEN).skip(served) {
            tail.pass(account.terms(), waiter.ask.ask);
        }
        tail
    }
}

impl Tail {
    /// Passes a waiter as soon as the limit allows; one that can never pass is skipped. Delays and denials both move
    /// the time of the tail forward. The state is a copy, so nothing is spent.
    fn pass(&mut self, terms: &AlgorithmParams, ask: Ask) {
        for _ in 0..MOST_WAITS {
            // A prediction gets no permit that a caller could hold.
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
