//! What a trace is played on.

use std::collections::HashMap;

use tidegate::{
    Adjusted, Adjustment, Ask, Decision, Limit, PermitId, Receipt, State, Ticks, Timestamp, Verdict,
};

/// An implementation under test: pure functions, a store, a protocol. Time stands still unless it is set.
pub trait Arm {
    /// What to call it in a message.
    fn name(&self) -> &str;

    /// The finest span that its answers can tell; longer ones are rounded up to it.
    fn resolution(&self) -> Ticks;

    /// Whether it can play a trace that needs this, see [`crate::trace`].
    fn can(&self, need: &str) -> bool;

    /// Forgets everything and takes up this limit.
    fn begin(&mut self, limit: Limit);

    /// Changes the limit; subjects keep what they owe.
    fn change(&mut self, limit: Limit);

    /// Sets the clock, forwards or back.
    fn set_time(&mut self, now: Timestamp);

    /// Decides and spends; a named take may be given back later.
    fn take(&mut self, key: &str, ask: Ask, name: Option<&str>) -> Answer;

    /// Looks.
    fn peek(&mut self, key: &str, ask: Ask) -> Answer;

    /// Charges late or gives back.
    fn adjust(&mut self, key: &str, adjustment: Adjustment) -> Adjusted;

    /// Forgets one subject.
    fn reset(&mut self, key: &str);

    /// Gives one take back, by the name under which it was taken.
    fn give_back(&mut self, key: &str, name: &str) -> Adjusted;

    /// Gives a place in flight back.
    fn release(&mut self, key: &str, permit: PermitId) -> bool;

    /// Starts a lease anew.
    fn renew(&mut self, key: &str, permit: PermitId) -> bool;
}

/// A decision as an arm tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The verdict.
    pub verdict: Verdict<Ticks>,
    /// The most at one instant.
    pub limit: u64,
    /// What would still pass.
    pub remaining: u64,
    /// Until like new.
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

/// The pure functions, with a map of states around them.
#[derive(Debug)]
pub struct Pure {
    limit: Limit,
    now: Timestamp,
    states: HashMap<String, State>,
    receipts: HashMap<String, Receipt>,
}

impl Pure {
    /// Nobody seen, at the epoch.
    pub fn new() -> Pure {
        Pure {
            limit: Limit::per_second(1),
            now: Timestamp::EPOCH,
            states: HashMap::new(),
            receipts: HashMap::new(),
        }
    }

    fn state(&mut self, key: &str) -> &mut State {
        self.states.entry(key.to_owned()).or_default()
    }
}

impl Default for Pure {
    fn default() -> Pure {
        Pure::new()
    }
}

impl Arm for Pure {
    fn name(&self) -> &str {
        "pure"
    }

    fn resolution(&self) -> Ticks {
        Ticks::new(1)
    }

    fn can(&self, _: &str) -> bool {
        true
    }

    fn begin(&mut self, limit: Limit) {
        *self = Pure { limit, ..Pure::new() };
    }

    fn change(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn set_time(&mut self, now: Timestamp) {
        self.now = now;
    }

    fn take(&mut self, key: &str, ask: Ask, name: Option<&str>) -> Answer {
        let (limit, now) = (self.limit, self.now);
        let state = self.state(key);
        let decision = limit.decide(state, now, ask);
        let receipt = limit.receipt(state, now, ask, &decision);
        if let (Some(name), Some(receipt)) = (name, receipt) {
            self.receipts.insert(name.to_owned(), receipt);
        }
        decision.into()
    }

    fn peek(&mut self, key: &str, ask: Ask) -> Answer {
        let unseen = State::default();
        self.limit.peek(self.states.get(key).unwrap_or(&unseen), self.now, ask).into()
    }

    fn adjust(&mut self, key: &str, adjustment: Adjustment) -> Adjusted {
        let (limit, now) = (self.limit, self.now);
        limit.adjust(self.state(key), now, adjustment)
    }

    fn reset(&mut self, key: &str) {
        self.states.remove(key);
    }

    fn give_back(&mut self, key: &str, name: &str) -> Adjusted {
        let (limit, now) = (self.limit, self.now);
        match self.receipts.remove(name) {
            Some(receipt) => limit.give_back(self.state(key), now, receipt),
            None => Adjusted::Capped,
        }
    }

    fn release(&mut self, key: &str, permit: PermitId) -> bool {
        let (limit, now) = (self.limit, self.now);
        limit.release(self.state(key), now, permit)
    }

    fn renew(&mut self, key: &str, permit: PermitId) -> bool {
        let (limit, now) = (self.limit, self.now);
        limit.renew(self.state(key), now, permit)
    }
}
