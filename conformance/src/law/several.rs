//! I-15: a state belongs to one limit. Several limits on one key never interfere.

use tidegate::{Adjustment, Ask, Cost, Decision, Key, Limit, Subject, Timestamp};

use super::promises::unit_of;
use crate::keeper::{Crowd, Keeper, Sheltering, States};
use crate::promise::{KINDS, Promise};
use crate::random::Random;

/// The number of limits on one key.
const LIMITS: usize = 4;

/// The counts of one history.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Asks.
    pub asks: u64,
    /// Asks that were denied.
    pub denials: u64,
}

/// Asks about one key under four limits on one store, the first of this kind, and about each limit on a store of its
/// own. All replies and stored states must be the same. All-or-none requests ask several limits at once.
pub fn never_interfere<S: Sheltering>(kind: &str, seed: u64, operations: u64) -> Result<Asked, String> {
    let mut random = Random::new(seed);
    let promises = different(kind, &mut random);
    let limits = [0, 1, 2, 3].map(|limit: usize| promises[limit].limit());
    let mut both =
        Both { store: Crowd::<S>::new(seed), apart: Default::default(), limits, key: Key::new("k") };
    let (mut now, mut asked) = (random.sized(0, u64::MAX / 4), Asked::default());
    for operation in 0..operations {
        let limit = random.between(0, LIMITS as u64 - 1) as usize;
        let unit = unit_of(&promises[limit]);
        now += if random.percent(50) { 0 } else { random.sized(0, unit.saturating_mul(3)) };
        both.set_time(Timestamp::from_ticks(now));
        let cost = Cost::of(random.sized(1, promises[limit].most_at_once() + 1));
        let max_wait = if random.percent(70) { 0 } else { random.sized(1, 1 << 46) };
        let ask = Ask::new(cost).max_wait_in_ticks(crate::ticks(max_wait));
        let what = match random.between(0, 99) {
            0..10 => both.adjust(limit, cost, random.percent(50)),
            10..30 => both.take_all(ask),
            _ => {
                asked.asks += 1;
                both.take(limit, ask).map(|decision| asked.denials += u64::from(!decision.is_allowed()))
            }
        };
        let place = || format!("operation {operation} of seed {seed} at {now}t under {:?}", both.limits);
        what.and_then(|()| both.are_alike()).map_err(|what| format!("I-15: {what}\n{}", place()))?;
    }
    Ok(asked)
}

/// One store for all limits, and one for each.
struct Both<S> {
    store: Crowd<S>,
    apart: [States; LIMITS],
    limits: [Limit; LIMITS],
    key: Key,
}

impl<S: Sheltering> Both<S> {
    fn subject(&self, limit: usize) -> Subject<'_> {
        Subject::new("several", &self.key, &self.limits[limit])
    }

    fn set_time(&mut self, now: Timestamp) {
        self.store.set_time(now);
        self.apart.iter_mut().for_each(|apart| apart.set_time(now));
    }

    fn take(&mut self, limit: usize, ask: Ask) -> Result<Decision, String> {
        let subject = Subject::new("several", &self.key, &self.limits[limit]);
        let (one, _) = self.store.take(subject, ask);
        let (other, _) = self.apart[limit].take(subject, ask);
        same(one, other, limit).map(|()| one)
    }

    fn adjust(&mut self, limit: usize, cost: Cost, is_charge: bool) -> Result<(), String> {
        let subject = Subject::new("several", &self.key, &self.limits[limit]);
        let adjustment = if is_charge { Adjustment::Charge(cost) } else { Adjustment::Refund(cost) };
        let (one, other) =
            (self.store.adjust(subject, adjustment), self.apart[limit].adjust(subject, adjustment));
        if one == other {
            Ok(())
        } else {
            Err(format!("{adjustment:?} of limit {limit}: {one:?}, alone {other:?}"))
        }
    }

    /// Asks all limits at once: they pass if each passes alone, and are charged only then.
    fn take_all(&mut self, ask: Ask) -> Result<(), String> {
        let asks = [0, 1, 2, 3].map(|limit| (self.subject(limit), ask));
        let mut alone = (0..LIMITS).map(|limit| self.apart[limit].peek(self.subject(limit), ask));
        let passes = alone.all(|decision| decision.is_allowed());
        let together = self.store.take_all(&asks);
        if together.is_allowed() != passes {
            return Err(format!("{ask:?} of all limits: {}, each alone {passes}", together.is_allowed()));
        }
        for limit in 0..LIMITS {
            // A limit that denies by itself sees it: it may count denials.
            if passes || !self.apart[limit].peek(self.subject(limit), ask).is_allowed() {
                let subject = Subject::new("several", &self.key, &self.limits[limit]);
                let _ = self.apart[limit].take(subject, ask);
            }
        }
        Ok(())
    }

    /// Each limit answers as if it were alone.
    fn are_alike(&self) -> Result<(), String> {
        (0..LIMITS).try_for_each(|limit| {
            let subject = self.subject(limit);
            same(self.store.peek(subject, Ask::ONE), self.apart[limit].peek(subject, Ask::ONE), limit)
        })
    }
}

/// Promises with different numbers, two of them of this kind.
fn different(kind: &str, random: &mut Random) -> Vec<Promise> {
    let mut promises: Vec<Promise> = Vec::new();
    while promises.len() < LIMITS {
        let any = random.pick(&KINDS);
        let promise = Promise::modest(if promises.len() < 2 { kind } else { any }, random);
        let numbers = |promise: &Promise| (promise.limit().algorithm(), promise.limit().numbers());
        if promises.iter().all(|known| numbers(known) != numbers(&promise)) {
            promises.push(promise);
        }
    }
    promises
}

/// All that is decided but the number of a permit.
fn same(one: Decision, other: Decision, limit: usize) -> Result<(), String> {
    let figures = |decision: Decision| {
        (decision.verdict_in_ticks(), decision.remaining(), decision.reset_after_in_ticks())
    };
    if figures(one) == figures(other) {
        return Ok(());
    }
    Err(format!("limit {limit} answered {one:?}, and alone {other:?}"))
}
