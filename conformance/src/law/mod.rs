//! The laws: what must hold after every step, whatever the limit, the clock and the history.
//!
//! Where the oracle knows exactly what must happen, these checks know only what must never be otherwise,
//! and so they also hold under late charges, refunds, changed limits and a clock that steps by a century.
//! Their names and numbers are those of the page of laws: I-3 to I-10 and I-13.

use tidegate::{
    Adjusted, Adjustment, Ask, Cost, Decision, Limit, PermitId, State, Ticks, Timestamp, Verdict,
};

use crate::extreme::OUT_OF_ORDER;
use crate::promise::Promise;
use crate::random::Random;
pub use giving_back::giving_back_is_safe;

use ledger::Ledger;
use promises::{longest_wait, lower, modest, raise, unit_of};

mod giving_back;
mod ledger;
mod promises;

const SECOND: u64 = 16_000_000_000;
const CENTURY: u128 = 100 * 365 * 86_400 * SECOND as u128;

/// Runs one random history and checks every law after every step.
pub fn obey(kind: &str, seed: u64, operations: u64) -> Result<(), String> {
    let mut history = History::new(kind, seed);
    for operation in 0..operations {
        history.step().map_err(|what| {
            format!(
                "{what}\noperation {operation} of seed {seed} at {}t under {:?}",
                history.now, history.promise
            )
        })?;
    }
    Ok(())
}

struct History {
    random: Random,
    kind: &'static str,
    promise: Promise,
    limit: Limit,
    state: State,
    /// What the clock shows.
    now: u64,
    /// How much time really passed.
    real: i128,
    ledger: Ledger,
    /// What was owed after the last write.
    owed: Ticks,
    /// The clock stepped back since the state was written: it may yet be taken for a reading out of order.
    behind: bool,
    /// The clock stepped or the limit changed: a refusal may write a debt back that is too large.
    unsettled: bool,
}

impl History {
    fn new(kind: &str, seed: u64) -> History {
        let mut random = Random::new(seed);
        let promise = modest(kind, &mut random);
        let kind = crate::promise::KINDS.into_iter().find(|known| *known == kind).expect("a known kind");
        let now = random.sized(0, u64::MAX / 4);
        let mut ledger = Ledger::default();
        ledger.widen(&promise);
        let limit = promise.limit();
        let state = State::default();
        History {
            random,
            kind,
            promise,
            limit,
            state,
            now,
            real: 0,
            ledger,
            owed: Ticks::ZERO,
            behind: false,
            unsettled: false,
        }
    }

    fn step(&mut self) -> Result<(), String> {
        let before = self.state.clone();
        match self.random.between(0, 99) {
            0..6 => return self.step_clock(),
            6..12 => self.change_limit()?,
            12..20 => self.adjust()?,
            _ => {
                self.pass_time();
                self.take()?;
            }
        }
        if self.state != before {
            self.behind = false;
            self.owed = self.look(Ask::ONE).reset_after_in_ticks();
        }
        Ok(())
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_ticks(self.now)
    }

    fn pass_time(&mut self) {
        let unit = unit_of(&self.promise);
        let passed = match self.random.between(0, 9) {
            0..4 => 0,
            4..6 => self.random.between(0, 2),
            6..8 => unit,
            _ => self.random.sized(0, unit.saturating_mul(20)),
        };
        let passed = passed.min(u64::MAX - self.now);
        self.now += passed;
        self.real += i128::from(passed);
    }

    /// I-9: the clock steps by up to a century, either way.
    fn step_clock(&mut self) -> Result<(), String> {
        let unit = unit_of(&self.promise);
        let size = if self.random.percent(50) {
            self.random.sized(1, unit.saturating_mul(40))
        } else {
            u64::try_from(CENTURY).unwrap_or(u64::MAX)
        };
        self.unsettled = true;
        if self.random.percent(60) {
            self.now = self.now.saturating_sub(size);
            self.behind = true;
            if self.kind.starts_with("pacer")
                && self.look(Ask::ONE).reset_after_in_ticks()
                    > self.owed.saturating_add(Ticks::new(OUT_OF_ORDER))
            {
                return Err("I-9: a step back made a pacer owe more".into());
            }
        } else {
            self.now = self.now.saturating_add(size);
            self.ledger.excuse(self.real);
        }
        Ok(())
    }

    /// I-13: numbers change, the state stays.
    fn change_limit(&mut self) -> Result<(), String> {
        let (promise, lowered) = match lower(&self.promise) {
            Some(promise) if self.random.percent(50) => (promise, true),
            _ => (modest(self.kind, &mut self.random), false),
        };
        let ask = Ask::new(Cost::of(self.random.sized(1, promise.most_at_once())));
        let refused = !self.look(ask).is_allowed();
        self.promise = promise;
        self.limit = promise.limit();
        self.ledger.widen(&promise);
        self.ledger.excuse(self.real);
        self.unsettled = true;
        if lowered && refused && self.look(ask).is_allowed() {
            return Err(format!("I-13: {ask:?} was refused, and a lower limit lets it pass"));
        }
        if self.is_late() { Ok(()) } else { self.forgetting_is_safe() }
    }

    fn adjust(&mut self) -> Result<(), String> {
        let most = self.promise.most_at_once();
        let cost = Cost::of(if self.random.percent(10) {
            self.random.number().max(1)
        } else {
            self.random.sized(1, 2 * most)
        });
        let before = self.look(Ask::ONE);
        let at = self.at();
        if self.random.percent(50) {
            let adjusted = self.limit.adjust(&mut self.state, at, Adjustment::Charge(cost));
            let after = self.look(Ask::ONE);
            if after.remaining() > before.remaining() && self.kind != "pacer-warm-up" {
                return Err(format!("a charge of {cost:?} ({adjusted:?}) raised remaining"));
            }
            return Ok(());
        }
        let adjusted = self.limit.adjust(&mut self.state, at, Adjustment::Refund(cost));
        self.ledger.refund(self.real, cost.get());
        let after = self.look(Ask::ONE);
        if after.remaining() < before.remaining() && !self.is_late() {
            return Err(format!("I-8: a refund of {cost:?} lowered remaining"));
        }
        let paces = self.kind.starts_with("pacer");
        if adjusted == Adjusted::Capped && !paces && !self.is_late() && after.remaining() < after.limit() {
            return Err(format!("I-8: a refund of {cost:?} was capped below full"));
        }
        Ok(())
    }

    /// Near the end of time less than the limit can pass, and nothing is promised about later.
    fn is_late(&self) -> bool {
        u64::MAX - self.now < 21 * 365 * 86_400 * SECOND
    }

    fn look(&self, ask: Ask) -> Decision {
        self.limit.peek(&self.state, self.at(), ask)
    }

    fn look_at(&self, after: Ticks, ask: Ask) -> Option<Decision> {
        Some(self.limit.peek(&self.state, self.at().checked_add(after)?, ask))
    }

    fn take(&mut self) -> Result<(), String> {
        let most = self.promise.most_at_once();
        let units = if self.random.percent(50) { 1 } else { self.random.sized(1, most.saturating_add(1)) };
        let patience = if self.random.percent(70) { 0 } else { self.random.sized(1, 1 << 50) };
        let ask = Ask { cost: Cost::of(units), patience: Ticks::new(patience) };
        let before = self.state.clone();
        let peeked = self.look(ask);
        let at = self.at();
        let decision = self.limit.decide(&mut self.state, at, ask);
        let counts_denied = matches!(self.promise, Promise::SlidingLog { count_denied: true, .. });
        if peeked.verdict_in_ticks() != decision.verdict_in_ticks() && !counts_denied {
            return Err(format!(
                "I-6: peek said {:?}, take {:?}",
                peeked.verdict_in_ticks(),
                decision.verdict_in_ticks()
            ));
        }
        match decision.verdict_in_ticks() {
            Verdict::Allowed { delay } => {
                // Whoever waits departs later, and only adds to what the others have to leave room for.
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

    /// I-3: a refusal writes nothing, but for a debt that is too large, and that only once.
    fn denial_is_free(&mut self, before: &State, ask: Ask) -> Result<(), String> {
        // Leases end by themselves; asking for a permit that nobody holds shows what is left of them.
        let mut before = before.clone();
        if let Some(nobody) = PermitId::from_number(u64::MAX) {
            self.limit.release(&mut before, self.at(), nobody);
        }
        let untouched = before == self.state
            || (before == State::default() && self.limit.clear_at(&self.state) == Timestamp::EPOCH);
        if !self.unsettled && !untouched {
            return Err(format!("I-3: a refusal changed {before:?} to {:?}", self.state));
        }
        let mut again = self.state.clone();
        let second = self.limit.decide(&mut again, self.at(), ask);
        if second.is_allowed() || again != self.state {
            return Err(format!("I-3: a second refusal changed {:?} to {again:?}", self.state));
        }
        Ok(())
    }

    /// I-4: after the promised wait it passes, a tick earlier it does not; and the wait is bounded.
    fn retry_is_exact(&self, retry_after: Ticks, units: u64, ask: Ask) -> Result<(), String> {
        if let Some(then) = self.look_at(retry_after, ask) {
            let earlier = self.look_at(Ticks::new(retry_after.get() - 1), ask);
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

    /// I-5: `remaining` passes and one more does not; after `reset_after` the subject is like new.
    fn figures_are_true(&self, decision: Decision) -> Result<(), String> {
        let (patient, paces) = match self.promise {
            Promise::LeakyBucket { .. } => (true, false),
            Promise::Steady { .. } | Promise::WarmUp { .. } => (false, true),
            _ => (false, false),
        };
        let passes = |units: u64| {
            let ask = Ask::new(Cost::of(units));
            self.look(if patient { Ask { patience: Ticks::MAX, ..ask } } else { ask }).is_allowed()
        };
        let remaining = decision.remaining();
        if !paces && ((remaining > 0 && !passes(remaining)) || passes(remaining + 1)) {
            return Err(format!("I-5: remaining {remaining} is not what passes"));
        }
        if let (Some(then), false) = (self.look_at(decision.reset_after_in_ticks(), Ask::ONE), paces) {
            self.like_new(
                self.at().saturating_add(decision.reset_after_in_ticks()),
                then,
                "I-5: reset_after",
            )?;
        }
        Ok(())
    }

    /// I-10: from its clear time on a state can be forgotten without anybody noticing.
    fn forgetting_is_safe(&self) -> Result<(), String> {
        let clear_at = self.limit.clear_at(&self.state).max(self.at());
        if clear_at == Timestamp::LAST {
            return Ok(());
        }
        self.like_new(clear_at, self.limit.peek(&self.state, clear_at, Ask::ONE), "I-10: clear_at")
    }

    fn like_new(&self, at: Timestamp, seen: Decision, law: &str) -> Result<(), String> {
        let unseen = self.limit.peek(&State::default(), at, Ask::ONE);
        let figures =
            |decision: Decision| (decision.verdict_in_ticks(), decision.remaining(), decision.reset_after());
        if figures(seen) != figures(unseen) {
            return Err(format!("{law}: {:?} is not like new: {:?}", figures(seen), figures(unseen)));
        }
        Ok(())
    }

    /// I-7: what passes would pass with a smaller cost, later, and under a larger limit.
    fn monotone(&mut self, before: &State, units: u64, ask: Ask) -> Result<(), String> {
        let smaller = Ask { cost: Cost::of(self.random.between(1, units)), patience: Ticks::MAX };
        if !self.limit.peek(before, self.at(), smaller).is_allowed() {
            return Err(format!("I-7: {ask:?} passed, {smaller:?} would not"));
        }
        let colder = matches!(self.promise, Promise::WarmUp { own: true, .. }) || self.behind;
        let later = self.at().checked_add(Ticks::new(self.random.sized(1, 1 << 45)));
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
