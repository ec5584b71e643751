//! Many customers under one limit: costs, peeks, refunds, and a change of plan.

use std::sync::Arc;

use tidegate::{Adjusted, Decision, Limit, Limiter, ManualClock, Map, SECOND, ask};

const BASIC: Limit = Limit::per_second(10).burst(100);
const GOLD: Limit = Limit::per_second(50).burst(500);

fn main() {
    let clock = Arc::new(ManualClock::new()); // a live program leaves it out: `Map::new()`
    let map = Map::with_clock(clock.clone());
    let basic = Limiter::on(&map, "customer", BASIC);
    println!("each customer: {BASIC}");

    let first = basic.admit(ask("ana").cost(60));
    println!("ana, a report that weighs 60: allowed {}, {} left", first.is_allowed(), first.remaining());
    let second = basic.admit(ask("ana").cost(60));
    println!("ana, another one: again in {:?}", second.retry_after().expect("only 40 are left"));
    println!("bob, the same: allowed {}", basic.admit(ask("bob").cost(60)).is_allowed());
    println!("ana, a look that spends nothing: {} left", basic.peek("ana").remaining());

    assert_eq!(basic.refund(ask("ana").cost(20)), Adjusted::Whole);
    println!("ana's report was smaller, 20 come back: {} left", basic.peek("ana").remaining());
    assert_eq!(basic.charge(ask("ana").cost(80)), Adjusted::Whole);
    let owing = basic.peek("ana");
    println!("no, it was larger, 80 more: {}", left(&owing));
    assert_eq!((owing.remaining(), owing.retry_after()), (0, Some(21 * SECOND / 10)));

    clock.advance(7 * SECOND);
    println!("7 s later: {}", left(&basic.peek("ana")));

    // The same name on the same map: the same customers, whose used units stay used.
    let gold = Limiter::on(&map, "customer", GOLD);
    let upgraded = gold.peek("ana");
    println!("ana goes gold ({GOLD}): {}", left(&upgraded));
    assert_eq!(upgraded.remaining(), 450);

    // A new limit for all customers at once, while keys have debts.
    basic.set_limit(Limit::per_second(5).burst(100));
    let slower = basic.peek("ana");
    println!("basic becomes {}: {}", basic.limit(), left(&slower));
    assert_eq!(slower.remaining(), 50);

    basic.reset("ana");
    println!("ana is forgiven: {} left", basic.peek("ana").remaining());
    assert_eq!(basic.peek("ana").remaining(), 100);
}

fn left(decision: &Decision) -> String {
    format!("{} remaining, full in {:?}", decision.remaining(), decision.reset_after())
}
