//! Traces on the handle for one subject, of which there is one for each key.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate::{Adjusted, Adjustment, Ask, Clock, DirectLimiter, Limit, ManualClock, PermitId, Timestamp};

use super::{Answer, Arm};

/// A [`DirectLimiter`] for each key. It hands out no receipts and takes no permits back.
#[derive(Debug)]
pub struct OnSingle {
    limit: Limit,
    clock: Arc<ManualClock>,
    singles: HashMap<String, DirectLimiter>,
}

impl OnSingle {
    fn with(limit: Limit) -> OnSingle {
        OnSingle { limit, clock: Arc::new(ManualClock::new()), singles: HashMap::new() }
    }

    fn single(&mut self, key: &str) -> &DirectLimiter {
        let OnSingle { limit, clock, singles } = self;
        singles.entry(key.to_owned()).or_insert_with(|| made_at_epoch(*limit, clock))
    }
}

impl Default for OnSingle {
    /// Creates the arm at the epoch, with no key seen.
    fn default() -> OnSingle {
        OnSingle::with(Limit::per_second(1))
    }
}

impl Arm for OnSingle {
    fn name(&self) -> &str {
        "single"
    }

    fn can(&self, need: &str) -> bool {
        // It forgets nothing, so counts that are carried over last as long as the new limit requires.
        !matches!(need, "give-back" | "permits" | "rules")
    }

    fn begin(&mut self, limit: Limit) {
        *self = OnSingle::with(limit);
    }

    fn change(&mut self, limit: Limit) {
        self.limit = limit;
        self.singles.values().for_each(|single| single.set_limit(limit));
    }

    fn set_time(&mut self, now: Timestamp) {
        self.clock.set(now);
    }

    fn take(&mut self, key: &str, ask: Ask, _: Option<&str>) -> Answer {
        self.single(key).admit_with(ask).into()
    }

    fn peek(&mut self, key: &str, ask: Ask) -> Answer {
        self.single(key).peek_with(ask).into()
    }

    fn adjust(&mut self, key: &str, adjustment: Adjustment) -> Adjusted {
        match adjustment {
            Adjustment::Charge(cost) => self.single(key).charge(cost.get()),
            Adjustment::Refund(cost) => self.single(key).refund(cost.get()),
        }
    }

    fn reset(&mut self, key: &str) {
        self.single(key).reset();
    }

    fn release(&mut self, _: &str, _: PermitId) -> bool {
        unreachable!("a trace that releases needs permits, and this arm has none")
    }

    fn renew(&mut self, _: &str, _: PermitId) -> bool {
        unreachable!("a trace that renews needs permits, and this arm has none")
    }
}

/// Creates a limiter whose state begins at the epoch, as every key of a trace does.
fn made_at_epoch(limit: Limit, clock: &Arc<ManualClock>) -> DirectLimiter {
    let now = clock.now();
    clock.set(Timestamp::EPOCH);
    let single = DirectLimiter::with_clock(limit, clock.clone());
    clock.set(now);
    single
}
