//! Traces on the handle whose limit comes with each ask.

use tidegate::{
    Adjusted, Adjustment, Ask, DynamicAsk, DynamicLimiter, Limit, PermitId, PreparedLimit, Ticks, Timestamp,
};

use super::{Answer, Arm, Take, of_rule};
use crate::keeper::{Crowd, Keeper, Sheltering};

/// An [`DynamicLimiter`] on a store that is busy with others, or on one that is not. It hands out no receipts.
#[derive(Debug)]
pub struct OnAdHoc<S> {
    adhoc: DynamicLimiter,
    crowd: Crowd<S>,
    limit: PreparedLimit,
}

impl<S: Sheltering> OnAdHoc<S> {
    /// The handle on this store, under this limit.
    pub fn on(crowd: Crowd<S>, limit: Limit) -> OnAdHoc<S> {
        let adhoc = DynamicLimiter::on(crowd.memory(), "judged");
        let limit = in_force(&adhoc, limit);
        OnAdHoc { adhoc, crowd, limit }
    }
}

impl<S: Sheltering> Default for OnAdHoc<S> {
    /// Creates the arm at the epoch, with no key seen.
    fn default() -> OnAdHoc<S> {
        OnAdHoc::on(Crowd::default(), Limit::per_second(1))
    }
}

impl<S: Sheltering> Arm for OnAdHoc<S> {
    fn name(&self) -> &str {
        S::ADHOC
    }

    fn can(&self, need: &str) -> bool {
        need != "give-back"
    }

    fn begin(&mut self, limit: Limit) {
        *self = OnAdHoc::on(Crowd::default(), limit);
    }

    fn change(&mut self, limit: Limit) {
        self.limit = in_force(&self.adhoc, limit);
    }

    fn set_time(&mut self, now: Timestamp) {
        self.crowd.set_time(now);
    }

    fn tick(&mut self, step: Ticks) -> bool {
        self.crowd.tick(step);
        true
    }

    fn take(&mut self, key: &str, ask: Ask, _: Option<&str>) -> Answer {
        self.adhoc.admit(key, &self.limit, ask).into()
    }

    fn take_each(&mut self, takes: &[Take<'_>]) -> Vec<Answer> {
        let asks = takes.iter().map(|take| DynamicAsk::new(take.key, &self.limit, take.ask));
        let mut answers = Vec::with_capacity(takes.len());
        self.adhoc.admit_each(asks, |decision| answers.push(decision.into()));
        answers
    }

    fn peek(&mut self, key: &str, ask: Ask) -> Answer {
        self.adhoc.peek(key, &self.limit, ask).into()
    }

    fn adjust(&mut self, key: &str, adjustment: Adjustment) -> Adjusted {
        self.adhoc.adjust(key, &self.limit, adjustment)
    }

    fn reset(&mut self, key: &str) {
        self.adhoc.reset(key).expect("few limits are in use");
    }

    fn release(&mut self, key: &str, permit: PermitId) -> bool {
        self.adhoc.release(key, &self.limit, permit)
    }

    fn renew(&mut self, key: &str, permit: PermitId) -> bool {
        self.adhoc.renew(key, &self.limit, permit)
    }
}

/// The limit of a rule. Its first use puts it in force, and reads the clock for that.
fn in_force(adhoc: &DynamicLimiter, limit: Limit) -> PreparedLimit {
    let limit = of_rule(limit);
    let _ = adhoc.peek("", &limit, Ask::ONE);
    limit
}
