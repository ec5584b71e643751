//! Fixed window: a daily quota, and its behaviour around midnight.

use tidegate::{Ask, Clock, Cost, DAY, HOUR, Limit, ManualClock, State};

const QUOTA: Limit = Limit::fixed_window(1000, DAY);

fn main() {
    let clock = ManualClock::new();
    let mut account = State::default();

    clock.advance(23 * HOUR);
    let spent = QUOTA.decide(&mut account, clock.now(), Ask::new(Cost::of(1000)));
    println!("23:00, all 1000 at once: {} left, new ones in {:?}", spent.remaining(), spent.reset_after());
    println!("23:00, one more: wait {:?}", QUOTA.peek(&account, clock.now(), Ask::ONE).retry_after());

    clock.advance(HOUR);
    let again = QUOTA.decide(&mut account, clock.now(), Ask::new(Cost::of(1000)));
    println!(
        "00:00, another 1000: allowed {} (2000 within an hour: a boundary does that)",
        again.is_allowed()
    );
    assert!(again.is_allowed());
}
