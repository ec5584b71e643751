//! Pacer: spaces calls to a fragile service, and warms it up after a pause.

use tidegate::{Ask, Clock, Limit, ManualClock, SECOND, State, Ticks, Verdict};

fn main() {
    let steady = Limit::pacer(5, SECOND);
    let warming = Limit::pacer(2, SECOND).warm_up(4 * SECOND);
    for (name, limit) in [("steady, 5 per second", steady), ("2 per second, warming up for 4 s", warming)] {
        let clock = ManualClock::new();
        let mut service = State::default();
        let mut waits = Vec::new();
        for _ in 0..8 {
            let patient = Ask::ONE.max_wait_in_ticks(Ticks::MAX);
            let Verdict::Allowed { delay } =
                limit.decide(&mut service, clock.now(), patient).verdict_in_ticks()
            else {
                unreachable!("an unbounded max wait is always served");
            };
            waits.push(format!("{:.3}", delay.to_duration().as_secs_f64()));
            clock.advance(delay.to_duration()); // a live program sleeps here
        }
        println!("{name}: waits of {} s", waits.join(", "));
    }
}
