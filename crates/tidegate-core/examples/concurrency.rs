//! Concurrency limit: three reports at a time, and one whose worker died.

use tidegate::{Ask, Clock, Limit, ManualClock, SECOND, State};

const REPORTS: Limit = Limit::concurrency(3, SECOND.saturating_mul(30));

fn main() {
    let clock = ManualClock::new();
    let mut tenant = State::default();
    let enter = |clock: &ManualClock, state: &mut State| REPORTS.decide(state, clock.now(), Ask::ONE);

    let permits: Vec<_> = (0..3).filter_map(|_| enter(&clock, &mut tenant).permit()).collect();
    let fourth = enter(&clock, &mut tenant);
    println!("three in flight, the fourth waits at most {:?}", fourth.retry_after().expect("it is denied"));

    clock.advance(10 * SECOND);
    println!("the first is done: {}", REPORTS.release(&mut tenant, clock.now(), permits[0]));
    println!("the second needs longer: {}", REPORTS.renew(&mut tenant, clock.now(), permits[1]));

    clock.advance(20 * SECOND);
    let free = REPORTS.peek(&tenant, clock.now(), Ask::ONE).remaining();
    println!("the third died, its lease is over: {free} free");
    println!(
        "its late release frees no other permit: {}",
        REPORTS.release(&mut tenant, clock.now(), permits[2])
    );
    assert_eq!(free, 2);
}
