//! Traces on whatever keeps states: the pure functions, or a store in memory.

use std::collections::HashMap;

use tidegate::{Adjusted, Adjustment, Ask, Key, Limit, PermitId, PreparedLimit, Receipt, Subject, Timestamp};

use super::{Answer, Arm, of_rule};
use crate::keeper::Keeper;

/// One limit on a [`Keeper`].
#[derive(Debug)]
pub struct Kept<K> {
    limit: PreparedLimit,
    keeper: K,
    receipts: HashMap<String, Receipt>,
}

impl<K: Keeper + Default> Kept<K> {
    fn on<R>(&mut self, key: &str, action: impl FnOnce(&mut K, Subject<'_>) -> R) -> R {
        action(&mut self.keeper, self.limit.subject(&Key::new(key)))
    }
}

impl<K: Keeper + Default> Default for Kept<K> {
    /// Creates the arm at the epoch, with no key seen.
    fn default() -> Kept<K> {
        Kept { limit: of_rule(Limit::per_second(1)), keeper: K::default(), receipts: HashMap::new() }
    }
}

impl<K: Keeper + Default> Arm for Kept<K> {
    fn name(&self) -> &str {
        self.keeper.name()
    }

    fn can(&self, _: &str) -> bool {
        true
    }

    fn begin(&mut self, limit: Limit) {
        *self = Kept { limit: of_rule(limit), ..Kept::default() };
    }

    fn change(&mut self, limit: Limit) {
        self.limit = of_rule(limit);
    }

    fn set_time(&mut self, now: Timestamp) {
        self.keeper.set_time(now);
    }

    fn take(&mut self, key: &str, ask: Ask, name: Option<&str>) -> Answer {
        let (decision, receipt) = self.on(key, |keeper, subject| keeper.take(subject, ask));
        if let (Some(name), Some(receipt)) = (name, receipt) {
            self.receipts.insert(name.to_owned(), receipt);
        }
        decision.into()
    }

    fn peek(&mut self, key: &str, ask: Ask) -> Answer {
        self.on(key, |keeper, subject| keeper.peek(subject, ask)).into()
    }

    fn adjust(&mut self, key: &str, adjustment: Adjustment) -> Adjusted {
        self.on(key, |keeper, subject| keeper.adjust(subject, adjustment))
    }

    fn reset(&mut self, key: &str) {
        self.on(key, |keeper, subject| keeper.reset(subject));
    }

    fn give_back(&mut self, key: &str, name: &str) -> Adjusted {
        match self.receipts.remove(name) {
            Some(receipt) => self.on(key, |keeper, subject| keeper.give_back(subject, receipt)),
            None => Adjusted::Capped,
        }
    }

    fn release(&mut self, key: &str, permit: PermitId) -> bool {
        self.on(key, |keeper, subject| keeper.release(subject, permit))
    }

    fn renew(&mut self, key: &str, permit: PermitId) -> bool {
        self.on(key, |keeper, subject| keeper.renew(subject, permit))
    }
}
