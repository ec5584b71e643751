//! Two buckets on one flow: the token bucket limits the number, the leaky bucket the spacing.
//!
//! ```text
//!            token bucket              leaky bucket
//!   asks --> 8 saved, 2 a second  -->  5 may wait, one leaves every 100 ms --> departures
//! ```
//!
//! The token bucket alone would admit eight at one instant. The leaky bucket alone would admit ten a second
//! forever. Together they admit no more than was saved and refilled, and never two closer than 100 ms.

use std::sync::Arc;

use tidegate::{
    Clock, Limit, Limiter, MILLISECOND, ManualClock, Map, SECOND, Timestamp, Verdict, admit_all, ask,
};

const ALLOWANCE: Limit = Limit::per_second(2).burst(8);
const SPACING: Limit = Limit::leaky_bucket(10, SECOND).queue(5);

fn main() {
    let clock = Arc::new(ManualClock::new());
    let map = Map::with_clock(clock.clone());
    let allowance = Limiter::on(&map, "allowance", ALLOWANCE);
    let spacing = Limiter::on(&map, "spacing", SPACING);
    println!("allowance {ALLOWANCE}, spacing {SPACING}\n");
    println!("{:>8}  {:<28} {:>6} {:>7}", "asked", "verdict", "tokens", "queue");

    let mut departures = Vec::new();
    for pause in [0, 0, 0, 0, 0, 0, 0, 0, 250, 0, 0, 0, 1750, 0, 0, 0, 0] {
        clock.advance(pause * MILLISECOND);
        // Only the spacing may delay; the allowance is available or not.
        let both = admit_all([allowance.ask("ana"), spacing.ask(ask("ana").max_wait(SECOND))]);
        let now = clock.now().since(Timestamp::EPOCH).to_duration().as_millis();
        let binding = ["allowance", "spacing"][both.binding().expect("two were asked")];
        let verdict = match both.verdict() {
            Verdict::Allowed { delay } => {
                departures.push(now + delay.as_millis());
                format!("leaves at {} ms", now + delay.as_millis())
            }
            Verdict::Denied { retry_after } => format!("{binding}: again in {} ms", retry_after.as_millis()),
            Verdict::Impossible => unreachable!("one always fits"),
        };
        let left = [&allowance, &spacing].map(|limiter| limiter.peek("ana").remaining());
        println!("{now:>5} ms  {verdict:<28} {:>6} {:>7}", left[0], left[1]);
    }

    println!("\n{} of 17 left; no denial spent a token or a queue slot", departures.len());
    assert!(departures.windows(2).all(|pair| pair[1] - pair[0] >= 100), "evenly");
    assert_eq!(departures.len(), 8 + 2 * 2, "what was saved, and what was earned in two seconds");
}
