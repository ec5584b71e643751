//! Sliding window: a million a minute, in constant memory, and never one too many.

use tidegate::{Ask, Clock, Cost, Limit, MILLISECOND, MINUTE, ManualClock, State, WindowMode};

fn main() {
    let strict = Limit::sliding_window(1_000_000, MINUTE);
    let estimate = strict.draft().mode(WindowMode::Estimate).build().expect("the same numbers");
    for limit in [strict, estimate] {
        let clock = ManualClock::new();
        let mut tenant = State::default();
        let mut passed = 0_u64;
        // A burst right before the end of the minute, and everything that passes in the minute after it.
        clock.advance(59_999 * MILLISECOND);
        for _ in 0..600 {
            let room = limit.peek(&tenant, clock.now(), Ask::ONE).remaining();
            if let Ok(cost) = Cost::new(room) {
                passed +=
                    u64::from(limit.decide(&mut tenant, clock.now(), Ask::new(cost)).is_allowed()) * room;
            }
            clock.advance(100 * MILLISECOND);
        }
        println!("{limit}: {passed} within a minute, {} bytes", tenant.bytes());
    }
}
