//! The laws: what must hold after every step, whatever the limit, the clock and the history.
//!
//! Where the oracle knows exactly what must happen, these checks know only what must never be otherwise,
//! and so they also hold under late charges, refunds, changed limits and a clock that steps by a century.
//! Their names and numbers are those of the page of laws: I-3 to I-10 and I-13.

use tidegate::{Adjusted, Adjustment, Ask, Cost, Decision, Key, Limit, State, Ticks, Timestamp};

use crate::extreme::OUT_OF_ORDER;
use crate::keeper::{Keeper, judged};
use crate::promise::{Promise, TEN_YEARS};
use crate::random::Random;
use crate::ticks;
pub use boundaries::boundaries_are_exact;
pub use giving_back::giving_back_is_safe;
pub use several::{Asked, never_interfere};

use ledger::Ledger;
use promises::unit_of;

mod boundaries;
mod giving_back;
mod ledger;
pub(crate) mod promises;
mod several;
mod take;

const SECOND: u64 = 16_000_000_000;
const CENTURY: u128 = 100 * 365 * 86_400 * SECOND as u128;

/// Runs one random history on a keeper that has seen no key, and checks every law after every step.
pub fn obey(keeper: impl Keeper, kind: &str, seed: u64, operations: u64) -> Result<(), String> {
    let mut history = History::new(keeper, kind, seed);
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

struct History<K> {
    keeper: K,
    key: Key,
    random: Random,
    kind: &'static str,
    promise: Promise,
    limit: Limit,
    /// The state in the keeper.
    state: State,
    /// The time that the clock shows.
    now: u64,
    /// The latest that it has shown since it stepped back.
    latest: u64,
    /// The real time that has passed.
    real: i128,
    ledger: Ledger,
    /// The debt after the last write.
    owed: Ticks,
    /// The clock stepped back since the state was written: it may yet be taken for a reading out of order.
    behind: bool,
    /// The clock stepped: a denial may write a debt back that is too large.
    unsettled: bool,
}

impl<K: Keeper> History<K> {
    fn new(mut keeper: K, kind: &str, seed: u64) -> History<K> {
        let mut random = Random::new(seed);
        let promise = Promise::modest(kind, &mut random);
        let kind = crate::promise::KINDS.into_iter().find(|known| *known == kind).expect("a known kind");
        let now = random.sized(0, u64::MAX / 4);
        keeper.set_time(Timestamp::from_ticks(now));
        let mut ledger = Ledger::default();
        ledger.widen(&promise);
        let limit = promise.limit();
        History {
            keeper,
            key: Key::new("k"),
            random,
            kind,
            promise,
            limit,
            state: State::default(),
            now,
            latest: now,
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
            0..6 => self.step_clock()?,
            6..14 => self.adjust()?,
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

    fn set_time(&mut self, now: u64) {
        self.now = now;
        self.keeper.set_time(self.at());
        self.read();
    }

    fn read(&mut self) {
        self.state = self.keeper.state(judged(&self.key, &self.limit));
    }

    fn pass_time(&mut self) {
        let unit = unit_of(&self.promise);
        let passed = match self.random.between(0, 9) {
            0..4 => 0,
            4..6 => self.random.between(0, 2),
            6 => unit,
            7 => self.limit.clear_at(&self.state).since(self.at()).get().min(unit.saturating_mul(20)),
            _ => self.random.sized(0, unit.saturating_mul(20)),
        };
        let passed = passed.min(u64::MAX - self.now);
        self.set_time(self.now + passed);
        self.real += i128::from(passed);
        self.latest = self.latest.max(self.now);
    }

    /// I-9: the clock steps by up to a century, either way.
    fn step_clock(&mut self) -> Result<(), String> {
        let unit = unit_of(&self.promise);
        let size = match self.random.between(0, 9) {
            0..2 => self.random.between(1, 4),
            2..5 => self.random.sized(1, unit.saturating_mul(40)),
            5..9 => self.random.sized(1, TEN_YEARS),
            _ => u64::try_from(CENTURY).unwrap_or(u64::MAX),
        };
        self.unsettled = true;
        if self.random.percent(60) {
            self.set_time(self.now.saturating_sub(size));
            self.behind = true;
            self.excuse_forgetting();
            if self.kind.starts_with("pacer")
                && self.look(Ask::ONE).reset_after_in_ticks() > self.owed.saturating_add(ticks(OUT_OF_ORDER))
            {
                return Err("I-9: a step back made a pacer owe more".into());
            }
        } else {
            self.set_time(self.now.saturating_add(size));
            self.latest = self.latest.max(self.now);
            self.ledger.excuse(self.real);
        }
        Ok(())
    }

    /// A key that was forgotten when its window had ended finds the window open again after a step back. Readings
    /// that are only out of order are no excuse.
    fn excuse_forgetting(&mut self) {
        if self.keeper.forgets() && self.latest - self.now > OUT_OF_ORDER {
            self.latest = self.now;
            if matches!(self.kind, "fixed-window" | "calendar") {
                self.ledger.excuse(self.real);
            }
        }
    }

    fn adjust(&mut self) -> Result<(), String> {
        let most = self.promise.most_at_once();
        let cost = Cost::of(if self.random.percent(10) {
            self.random.number().max(1)
        } else {
            self.random.sized(1, 2 * most)
        });
        let before = self.look(Ask::ONE);
        if self.random.percent(50) {
            let adjusted = self.adjust_by(Adjustment::Charge(cost));
            let after = self.look(Ask::ONE);
            if after.remaining() > before.remaining() && self.kind != "pacer-warm-up" {
                return Err(format!("a charge of {cost:?} ({adjusted:?}) raised remaining"));
            }
            return Ok(());
        }
        let adjusted = self.adjust_by(Adjustment::Refund(cost));
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

    fn adjust_by(&mut self, adjustment: Adjustment) -> Adjusted {
        let adjusted = self.keeper.adjust(judged(&self.key, &self.limit), adjustment);
        self.read();
        adjusted
    }

    /// Near the end of time less than the limit can pass, and nothing is promised about later.
    fn is_late(&self) -> bool {
        u64::MAX - self.now < 21 * 365 * 86_400 * SECOND
    }

    fn look(&self, ask: Ask) -> Decision {
        self.keeper.peek(judged(&self.key, &self.limit), ask)
    }

    fn look_at(&self, after: Ticks, ask: Ask) -> Option<Decision> {
        Some(self.limit.peek(&self.state, self.at().checked_add(after)?, ask))
    }
}
