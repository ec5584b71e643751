//! Traces on the handle for many subjects.

use tidegate::{Adjusted, Adjustment, Ask, KeyedAsk, Limit, Limiter, PermitId, Ticks, Timestamp, ask};

use super::{Answer, Arm, Take};
use crate::keeper::{Crowd, Keeper, Sheltering};

/// As many asks as [`Limiter::admit_each`] decides as of one instant.
const GROUP: usize = 32;

/// A [`Limiter`] on a store that is busy with others. It hands out no receipts.
#[derive(Debug)]
pub struct OnLimiter<S> {
    limiter: Limiter,
    crowd: Crowd<S>,
}

impl<S: Sheltering> OnLimiter<S> {
    /// The handle on this store.
    pub fn on(crowd: Crowd<S>, limit: Limit) -> OnLimiter<S> {
        OnLimiter { limiter: Limiter::on(crowd.memory(), "judged", limit), crowd }
    }
}

impl<S: Sheltering> Default for OnLimiter<S> {
    /// Creates the arm at the epoch, with no key seen.
    fn default() -> OnLimiter<S> {
        OnLimiter::on(Crowd::default(), Limit::per_second(1))
    }
}

impl<S: Sheltering> Arm for OnLimiter<S> {
    fn name(&self) -> &str {
        self.crowd.name_of_limiter()
    }

    fn can(&self, need: &str) -> bool {
        need != "give-back"
    }

    fn begin(&mut self, limit: Limit) {
        *self = OnLimiter::on(Crowd::default(), limit);
    }

    fn change(&mut self, limit: Limit) {
        self.limiter.set_limit(limit);
    }

    fn set_time(&mut self, now: Timestamp) {
        self.crowd.set_time(now);
    }

    fn tick(&mut self, step: Ticks) -> bool {
        self.crowd.tick(step);
        true
    }

    fn take(&mut self, key: &str, ask: Ask, _: Option<&str>) -> Answer {
        self.limiter.admit(keyed(key, ask)).into()
    }

    fn take_each(&mut self, takes: &[Take<'_>]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(takes.len());
        // Each group has an instant of its own: here that of the batch.
        for group in takes.chunks(GROUP) {
            self.crowd.set_clock_again();
            let asks = group.iter().map(|take| keyed(take.key, take.ask));
            answers.extend(self.limiter.admit_each(asks).map(Answer::from));
        }
        answers
    }

    fn peek(&mut self, key: &str, ask: Ask) -> Answer {
        self.limiter.peek(keyed(key, ask)).into()
    }

    fn adjust(&mut self, key: &str, adjustment: Adjustment) -> Adjusted {
        match adjustment {
            Adjustment::Charge(cost) => self.limiter.charge(ask(key).cost(cost.get())),
            Adjustment::Refund(cost) => self.limiter.refund(ask(key).cost(cost.get())),
        }
    }

    fn reset(&mut self, key: &str) {
        self.limiter.reset(key);
    }

    fn release(&mut self, key: &str, permit: PermitId) -> bool {
        self.limiter.release(key, permit)
    }

    fn renew(&mut self, key: &str, permit: PermitId) -> bool {
        self.limiter.renew(key, permit)
    }
}

/// The ask as a program writes it: the max wait is in nanoseconds, rounded up.
fn keyed(key: &str, asked: Ask) -> KeyedAsk<&str> {
    ask(key).cost(asked.cost.get()).max_wait(asked.max_wait.to_duration())
}
