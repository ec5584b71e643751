//! Sliding log: five logins a minute, and an attacker that does not stop.

use tidegate::{Ask, Clock, Limit, MINUTE, ManualClock, SECOND, State};

const LOGIN: Limit = Limit::sliding_log(5, MINUTE);
const STERN: Limit = LOGIN.count_denied();

fn main() {
    for (name, limit) in [("forgiving", LOGIN), ("stern", STERN)] {
        let clock = ManualClock::new();
        let mut guesser = State::default();
        let mut let_in = 0;
        for _ in 0..300 {
            let_in += u32::from(limit.decide(&mut guesser, clock.now(), Ask::ONE).is_allowed());
            clock.advance(SECOND);
        }
        println!("{name}: a guess every second for five minutes, {let_in} got through ({limit})");
        assert_eq!(let_in, if name == "stern" { 5 } else { 25 });
    }
}
