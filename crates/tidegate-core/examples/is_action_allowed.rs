//! The introductory example of rate limiting: may this user do this action once more?

use std::collections::HashMap;
use std::time::Duration;

use tidegate::{Algorithm, Ask, Clock, Key, LimitBuilder, LimitError, MINUTE, ManualClock, State};

/// The actions of all users, in the memory of this process.
struct Actions<C> {
    clock: C,
    states: HashMap<Key, State>,
}

impl<C: Clock> Actions<C> {
    /// Returns true if at most `max_count` actions happened in the trailing `period`, including this one.
    fn is_action_allowed(
        &mut self,
        user: &str,
        action: &str,
        period: Duration,
        max_count: u64,
    ) -> Result<bool, LimitError> {
        let limit = LimitBuilder::new(Algorithm::SlidingLog, max_count, period).build()?;
        let state = self.states.entry(Key::new((user, action))).or_default();
        Ok(limit.decide(state, self.clock.now(), Ask::ONE).is_allowed())
    }
}

fn main() -> Result<(), LimitError> {
    let mut actions = Actions { clock: ManualClock::new(), states: HashMap::new() };
    for reply in 1..=7 {
        let allowed = actions.is_action_allowed("laoqian", "reply", MINUTE, 5)?;
        println!("reply {reply} within the same instant: {}", if allowed { "posted" } else { "not now" });
        assert_eq!(allowed, reply <= 5);
    }
    actions.clock.advance(MINUTE);
    assert!(actions.is_action_allowed("laoqian", "reply", MINUTE, 5)?);
    println!("a minute later: posted");
    Ok(())
}
