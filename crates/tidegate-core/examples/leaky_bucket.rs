//! Leaky bucket: the behaviour of nginx with `limit_req rate=5r/s burst=12 delay=8`.

use tidegate::{Ask, Clock, Limit, ManualClock, SECOND, State, Verdict};

fn main() {
    let limit: Limit = "5/s queue 12 delay-after 8 leaky-bucket".parse().expect("a literal");
    let clock = ManualClock::new();
    let mut visitor = State::default();
    let ask = Ask::ONE.max_wait(60 * SECOND); // a proxy can hold a request back

    for request in 1..=15 {
        match limit.decide(&mut visitor, clock.now(), ask).verdict() {
            Verdict::Allowed { delay } if delay.is_zero() => println!("request {request:>2}: passes"),
            Verdict::Allowed { delay } => println!("request {request:>2}: passes after {delay:?}"),
            Verdict::Denied { retry_after } => {
                println!("request {request:>2}: denied, again in {retry_after:?}");
            }
            Verdict::Impossible => unreachable!("one request always fits"),
        }
    }
}
