//! The first five minutes: ten per second with bursts of three, for one visitor.
//!
//! Run it with `cargo run --example first`.

use tidegate::{Ask, Clock, Limit, MILLISECOND, ManualClock, SECOND, State, Verdict};

const API: Limit = Limit::per_second(10).burst(3);

fn main() {
    let clock = ManualClock::new(); // a live program reads a SystemClock instead
    let mut ana = State::default();

    println!("limit {API}\n");
    println!("{:>8}  {:<12} {:<6} until full", "time", "verdict", "left");
    for pause in [0, 0, 0, 0, 0, 60, 40, 500, 0] {
        clock.advance(pause * MILLISECOND);
        let decision = API.decide(&mut ana, clock.now(), Ask::ONE);
        let verdict = match decision.verdict() {
            Verdict::Allowed { .. } => "allowed".to_owned(),
            Verdict::Denied { retry_after } => format!("in {retry_after:?}"),
            Verdict::Impossible => "never".to_owned(),
        };
        let time = format!("{} ms", clock.now().since(tidegate::Timestamp::EPOCH).to_duration().as_millis());
        println!("{time:>8}  {verdict:<12} {:<6} {:?}", decision.remaining(), decision.reset_after());
    }

    let error = "10/sec burst 3".parse::<Limit>().expect_err("sec is no unit");
    println!("\nand a limit that is written wrongly:\n{error:#}");
    assert!(API.peek(&ana, clock.now(), Ask::ONE).reset_after() < SECOND);
}
