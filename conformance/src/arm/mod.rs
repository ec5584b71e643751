//! The targets on which a trace is played.

mod adhoc;
mod fallback;
mod kept;
mod limiter;
mod single;

pub use adhoc::OnAdHoc;
pub use fallback::OnFallback;
pub use kept::Kept;
pub use limiter::OnLimiter;
pub use single::OnSingle;

use tidegate::{
    Adjusted, Adjustment, Ask, Decision, Limit, PermitId, PreparedLimit, Ticks, Timestamp, Verdict,
};

use crate::keeper::{Crowd, States};

/// The pure functions.
pub type Pure = Kept<States>;

/// A [`tidegate::Map`] that is busy with other keys, and forgets a clear key at once.
pub type OnMap = Kept<Crowd<tidegate::Map>>;

/// A [`tidegate::Zone`] that is busy with other keys.
pub type OnZone = Kept<Crowd<tidegate::Zone>>;

/// An implementation under test: pure functions, a store, a protocol. Time stands still unless it is set.
pub trait Arm {
    /// Returns its name in messages.
    fn name(&self) -> &str;

    /// The finest span that its answers can tell; longer ones are rounded up to it.
    fn resolution(&self) -> Ticks {
        crate::ticks(1)
    }

    /// Returns true if it can play a trace that needs this; see [`crate::trace`].
    fn can(&self, need: &str) -> bool;

    /// Forgets everything and takes up this limit.
    fn begin(&mut self, limit: Limit);

    /// Changes the limit; subjects keep what they owe.
    fn change(&mut self, _limit: Limit) {
        unreachable!("such steps are left out")
    }

    /// Sets the clock, forwards or back.
    fn set_time(&mut self, now: Timestamp);

    /// Makes the clock advance by this much after every reading from now on; returns false if it cannot.
    fn tick(&mut self, step: Ticks) -> bool {
        step == Ticks::ZERO
    }

    /// The most by which the clock is ahead of the time that was set, where its advance in earlier batches is kept:
    /// a span may be reported shorter by this much.
    fn slack(&self) -> Ticks {
        Ticks::ZERO
    }

    /// Decides and spends; a named take may be given back later.
    fn take(&mut self, key: &str, ask: Ask, name: Option<&str>) -> Answer;

    /// Decides about several takes in one call, in this order. An arm without such a call takes one by one.
    fn take_each(&mut self, takes: &[Take<'_>]) -> Vec<Answer> {
        takes.iter().map(|take| self.take(take.key, take.ask, take.name)).collect()
    }

    /// Looks.
    fn peek(&mut self, _key: &str, _ask: Ask) -> Answer {
        unreachable!("such steps are left out")
    }

    /// Charges late or gives back.
    fn adjust(&mut self, _key: &str, _adjustment: Adjustment) -> Adjusted {
        unreachable!("such steps are left out")
    }

    /// Forgets one subject.
    fn reset(&mut self, _key: &str) {
        unreachable!("such steps are left out")
    }

    /// Gives one take back, by the name under which it was taken.
    fn give_back(&mut self, _key: &str, _name: &str) -> Adjusted {
        unreachable!("a trace that gives back needs it, and this arm cannot")
    }

    /// Gives a place in flight back.
    fn release(&mut self, key: &str, permit: PermitId) -> bool;

    /// Starts a lease anew.
    fn renew(&mut self, key: &str, permit: PermitId) -> bool;
}

/// The limit of a rule: when it changes, counts are carried over.
fn of_rule(limit: Limit) -> PreparedLimit {
    PreparedLimit::of_rule("judged", limit)
}

/// One take of several.
#[derive(Clone, Copy, Debug)]
pub struct Take<'a> {
    /// The key.
    pub key: &'a str,
    /// The ask.
    pub ask: Ask,
    /// The name under which it may be given back.
    pub name: Option<&'a str>,
}

/// A decision as an arm reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The verdict.
    pub verdict: Verdict<Ticks>,
    /// The most at one instant.
    pub limit: u64,
    /// The largest cost that would still pass.
    pub remaining: u64,
    /// The time until the key is full.
    pub reset_after: Ticks,
    /// The place in flight, if one was taken.
    pub permit: Option<PermitId>,
}

impl From<Decision> for Answer {
    fn from(decision: Decision) -> Answer {
        Answer {
            verdict: decision.verdict_in_ticks(),
            limit: decision.limit(),
            remaining: decision.remaining(),
            reset_after: decision.reset_after_in_ticks(),
            permit: decision.permit(),
        }
    }
}
