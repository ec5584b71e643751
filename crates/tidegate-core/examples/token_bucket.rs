//! Token bucket: an API that allows bursts, charges by cost and corrects charges afterwards.

use tidegate::{Adjustment, Ask, Clock, Cost, Limit, MILLISECOND, ManualClock, SECOND, State};

const API: Limit = Limit::per_second(10).burst(20);

fn main() {
    let clock = ManualClock::new();
    let mut client = State::default();

    let search = Ask::new(Cost::of(15));
    let first = API.decide(&mut client, clock.now(), search);
    println!("a search that weighs 15: allowed {}, {} left", first.is_allowed(), first.remaining());

    let second = API.decide(&mut client, clock.now(), search);
    println!("another one: wait {:?}", second.retry_after().expect("it is denied"));

    API.adjust(&mut client, clock.now(), Adjustment::Refund(Cost::of(5)));
    println!(
        "the first was cheaper than thought: {} left",
        API.peek(&client, clock.now(), search).remaining()
    );

    API.adjust(&mut client, clock.now(), Adjustment::Charge(Cost::of(30)));
    let owing = API.peek(&client, clock.now(), Ask::ONE);
    println!("a response was very large: {} left, full in {:?}", owing.remaining(), owing.reset_after());

    clock.advance(SECOND);
    let patient = API.decide(&mut client, clock.now(), Ask::ONE.max_wait(2 * SECOND));
    println!(
        "a caller that accepts a wait gets a time: in {:?}",
        patient.delay().expect("within its max_wait")
    );
    assert_eq!(patient.delay(), Some(1100 * MILLISECOND));
}
