//! Login throttling: five attempts a minute per account and twenty per address, both or none.

use std::sync::Arc;

use tidegate::{Decisions, Limit, Limiter, MINUTE, ManualClock, Map, SECOND, admit_all};

const PER_ACCOUNT: Limit = Limit::sliding_log(5, MINUTE);
const PER_ADDRESS: Limit = Limit::per_minute(20);

/// The names of the limits, in the order in which `attempt` asks them.
const NAMES: [&str; 2] = ["account", "address"];

struct Throttle {
    accounts: Limiter,
    addresses: Limiter,
}

impl Throttle {
    fn attempt(&self, account: &str, address: &str) -> Decisions {
        admit_all([self.accounts.ask(account), self.addresses.ask(address)])
    }

    fn left(&self, account: &str, address: &str) -> (u64, u64) {
        (self.accounts.peek(account).remaining(), self.addresses.peek(address).remaining())
    }
}

fn main() {
    let clock = Arc::new(ManualClock::new());
    let map = Map::with_clock(clock.clone()); // one store, so that both are decided at one instant
    let throttle = Throttle {
        accounts: Limiter::on(&map, "account", PER_ACCOUNT),
        addresses: Limiter::on(&map, "address", PER_ADDRESS),
    };
    let thief = "203.0.113.9";

    println!("a thief guesses the password of ana:");
    let denied = until_denied(|| throttle.attempt("ana", thief));
    let left = throttle.left("ana", thief);
    println!("  then nothing more is spent: the address has {} left", left.1);
    assert_eq!((denied, left), ((5, "account"), (0, 15)));

    println!("he goes on with one guess for each of many accounts:");
    let mut guess = 0;
    let denied = until_denied(|| {
        guess += 1;
        throttle.attempt(&format!("user {guess}"), thief)
    });
    let left = throttle.left(&format!("user {guess}"), thief);
    println!("  and user {guess}, not to blame, has {} left", left.0);
    assert_eq!((denied, left), ((15, "address"), (5, 0)));

    println!("ana comes home, from an address of her own:");
    let own = "192.0.2.7";
    assert!(!throttle.attempt("ana", own).is_allowed());
    clock.advance(60 * SECOND);
    let again = throttle.attempt("ana", own);
    println!("  a minute after the thief she is let in: {}", again.is_allowed());
    assert_eq!(throttle.left("ana", own), (4, 19));
}

/// Returns the number of allowed attempts, and the limit that denied the next one.
fn until_denied(mut attempt: impl FnMut() -> Decisions) -> (u32, &'static str) {
    let mut passed = 0;
    loop {
        let both = attempt();
        let binding = NAMES[both.binding().expect("two were asked")];
        if let Some(wait) = both.retry_after() {
            println!("  {passed} passed, then the {binding} had enough: again in {wait:?}");
            return (passed, binding);
        }
        passed += 1;
    }
}
