//! The laws of a take, whichever way it goes.

use tidegate::{Adjustment, Ask, Cost, Decision, PermitId, State, Ticks, Timestamp, Verdict};

use super::History;
use super::promises::{longest_wait, raise};
use crate::keeper::{Keeper, judged, representable};
use crate::promise::Promise;
use crate::ticks;

impl<K: Keeper> History<K> {
    pub(super) fn take(&mut self) -> Result<(), String> {
        let most = self.promise.most_at_once();
        let units = if self.random.percent(50) { 1 } else { self.random.sized(1, most.saturating_add(1)) };
        let max_wait = if self.random.percent(70) {
            0
        } else {
            representable(&self.keeper, self.random.sized(1, 1 << 50))
        };
        let ask = Ask::new(Cost::of(units)).max_wait_in_ticks(ticks(max_wait));
        let before = self.state.clone();
        let peeked = self.look(ask);
        let decision = self.spend(ask);
        let counts_denied = matches!(self.promise, Promise::SlidingLog { count_denied: true, .. });
        if peeked.verdict_in_ticks() != decision.verdict_in_ticks() && !counts_denied {
            return Err(format!(
                "I-6: peek returned {:?}, take {:?}",
                peeked.verdict_in_ticks(),
                decision.verdict_in_ticks()
            ));
        }
        match decision.verdict_in_ticks() {
            Verdict::Allowed { delay } => {
                // A delayed request departs later, and only adds to the units for which the others have to leave room.
                if delay == Ticks::ZERO || self.kind == "leaky-bucket" {
                    self.ledger.admit(self.real, units);
                    self.ledger.check(self.kind)?;
                }
                if self.is_late() {
                    return Ok(());
                }
                self.monotone(&before, units, ask)?;
                self.refund_restores(&before, Cost::of(units), decision)?;
            }
            Verdict::Denied { retry_after } => {
                if !counts_denied {
                    self.denial_is_free(&before, ask)?;
                }
                if !self.is_late() {
                    self.retry_is_exact(retry_after, units, ask)?;
                }
            }
            Verdict::Impossible => {}
        }
        if self.is_late() {
            return Ok(());
        }
        self.figures_are_true(decision)?;
        self.forgetting_is_safe()
    }

    fn spend(&mut self, ask: Ask) -> Decision {
        let (decision, _) = self.keeper.take(judged(&self.key, &self.limit), ask);
        self.read();
        decision
    }

    /// I-3: a denial writes nothing, except a debt that is too large, and that only once.
    fn denial_is_free(&mut self, before: &State, ask: Ask) -> Result<(), String> {
        // Leases end by themselves; asking for an unknown permit removes the ended ones.
        let mut before = before.clone();
        if let Some(unknown) = PermitId::from_number(u64::MAX) {
            self.limit.release(&mut before, self.at(), unknown);
        }
        let is_new = before == State::default() && self.limit.clear_at(&self.state) == Timestamp::EPOCH;
        if !self.unsettled && !is_new && !self.is_still(&before) {
            return Err(format!("I-3: a denial changed {before:?} to {:?}", self.state));
        }
        let first = self.state.clone();
        let second = self.spend(ask);
        if second.is_allowed() || !self.is_still(&first) {
            return Err(format!("I-3: a second denial changed {first:?} to {:?}", self.state));
        }
        Ok(())
    }

    /// Returns true if the state is still this one, or was forgotten because it was clear.
    fn is_still(&self, before: &State) -> bool {
        let is_clear = self.limit.clear_at(before) <= self.at();
        self.state == *before || (self.keeper.forgets() && is_clear && self.state == State::default())
    }

    /// I-4: after the promised wait it passes, a tick earlier it does not; and the wait is bounded.
    fn retry_is_exact(&self, retry_after: Ticks, units: u64, ask: Ask) -> Result<(), String> {
        if let Some(then) = self.look_at(retry_after, ask) {
            let earlier = self.look_at(ticks(retry_after.get() - 1), ask);
            if !then.is_allowed() || earlier.is_some_and(|decision| decision.is_allowed()) {
                return Err(format!(
                    "I-4: {retry_after:?} is not when {ask:?} passes: {:?}",
                    then.verdict_in_ticks()
                ));
            }
        }
        let longest = longest_wait(&self.promise, units);
        if u128::from(retry_after.get()) > longest {
            return Err(format!("I-4: a wait of {retry_after:?}, longer than {longest}"));
        }
        Ok(())
    }

    /// I-5: `remaining` passes and one more does not; after `reset_after` the key is full.
    fn figures_are_true(&self, decision: Decision) -> Result<(), String> {
        let (patient, paces) = match self.promise {
            Promise::LeakyBucket { .. } => (true, false),
            Promise::Steady { .. } | Promise::WarmUp { .. } => (false, true),
            _ => (false, false),
        };
        let passes = |units: u64| {
            let ask = Ask::new(Cost::of(units));
            self.look(if patient { ask.max_wait_in_ticks(Ticks::MAX) } else { ask }).is_allowed()
        };
        let remaining = decision.remaining();
        if !paces && ((remaining > 0 && !passes(remaining)) || passes(remaining + 1)) {
            return Err(format!("I-5: remaining {remaining} is not what passes"));
        }
        if let (Some(then), false) = (self.look_at(decision.reset_after_in_ticks(), Ask::ONE), paces) {
            self.is_full(
                self.at().saturating_add(decision.reset_after_in_ticks()),
                then,
                "I-5: reset_after",
            )?;
        }
        Ok(())
    }

    /// I-10: from its clear time on a state can be dropped without any effect on a decision.
    pub(super) fn forgetting_is_safe(&self) -> Result<(), String> {
        let clear_at = self.limit.clear_at(&self.state).max(self.at());
        if clear_at == Timestamp::LAST {
            return Ok(());
        }
        self.is_full(clear_at, self.limit.peek(&self.state, clear_at, Ask::ONE), "I-10: clear_at")
    }

    fn is_full(&self, at: Timestamp, seen: Decision, law: &str) -> Result<(), String> {
        let unseen = self.limit.peek(&State::default(), at, Ask::ONE);
        let figures =
            |decision: Decision| (decision.verdict_in_ticks(), decision.remaining(), decision.reset_after());
        if figures(seen) != figures(unseen) {
            return Err(format!("{law}: {:?} is not full: {:?}", figures(seen), figures(unseen)));
        }
        Ok(())
    }

    /// I-7: what passes would pass with a smaller cost, later, and under a larger limit.
    fn monotone(&mut self, before: &State, units: u64, ask: Ask) -> Result<(), String> {
        let smaller = Ask::new(Cost::of(self.random.between(1, units))).max_wait_in_ticks(Ticks::MAX);
        if !self.limit.peek(before, self.at(), smaller).is_allowed() {
            return Err(format!("I-7: {ask:?} passed, {smaller:?} would not"));
        }
        let colder = matches!(self.promise, Promise::WarmUp { own: true, .. }) || self.behind;
        let later = self.at().checked_add(ticks(self.random.sized(1, 1 << 45)));
        if let (Some(later), false) = (later, colder) {
            if !self.limit.peek(before, later, ask).is_allowed() {
                return Err(format!("I-7: {ask:?} passed, at {later:?} it would not"));
            }
        }
        if let Some(larger) = raise(&self.promise) {
            if !larger.limit().peek(before, self.at(), ask).is_allowed() {
                return Err(format!("I-7: {ask:?} passed, under {larger:?} it would not"));
            }
        }
        Ok(())
    }

    /// I-8: a take given back at the same instant leaves everything as it was.
    fn refund_restores(&self, before: &State, cost: Cost, decision: Decision) -> Result<(), String> {
        let mut state = self.state.clone();
        match decision.permit() {
            Some(permit) => {
                if !self.limit.release(&mut state, self.at(), permit)
                    || self.limit.release(&mut state, self.at(), permit)
                {
                    return Err("I-8: a permit is released once".into());
                }
            }
            None => {
                self.limit.adjust(&mut state, self.at(), Adjustment::Refund(cost));
            }
        }
        // A warming pacer cannot tell fresh permits from saved ones once its savings are used up.
        if self.kind == "pacer-warm-up" {
            return Ok(());
        }
        let figures = |state: &State| {
            let decision = self.limit.peek(state, self.at(), Ask::ONE);
            (decision.verdict_in_ticks(), decision.remaining(), decision.reset_after())
        };
        if figures(&state) != figures(before) {
            return Err(format!(
                "I-8: a refund of {cost:?} left {:?}, not {:?}",
                figures(&state),
                figures(before)
            ));
        }
        Ok(())
    }
}
