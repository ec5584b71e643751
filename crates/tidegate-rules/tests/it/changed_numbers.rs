//! Tests that a rule whose numbers change keeps its counts, and that each of its limits is enforced.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Limit, ManualClock, Map, SECOND, Zone};
use tidegate_rules::{Attributes, Gate, GateStore, ManualCalendar};

use crate::faulty::{Health, one_of};
use crate::requests::{admit, policy, remaining, stores};

/// Algorithms that count units; permits are counted by their holders.
pub(crate) const COUNTING: [&str; 5] =
    ["token-bucket", "leaky-bucket", "fixed-window", "sliding-log", "sliding-window"];
const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn ana() -> Attributes<'static> {
    Attributes::new().set("user", "ana")
}

/// Returns a limit of this algorithm with this amount and period.
pub(crate) fn limit_of(amount: u64, period: &str, algorithm: &str) -> String {
    match algorithm {
        "leaky-bucket" => format!("{amount}/{period} queue {} leaky-bucket", amount - 1),
        _ => format!("{amount}/{period} {algorithm}"),
    }
}

pub(crate) fn rule(limit: &str) -> String {
    format!("[[rule]]\nname = 'a'\nkey = ['user']\nlimit = '{limit}'\n")
}

/// Returns the number of allowed requests out of `requests`.
pub(crate) fn passed(gate: &Gate, requests: usize) -> usize {
    (0..requests).filter(|_| admit(gate, &ana()).is_allowed()).count()
}

fn reload(gate: &Gate, limit: &str) {
    gate.replace(policy(&rule(limit))).expect("a store in memory holds every limit");
}

/// Calls the test with a gate for each algorithm and store, with its clock in the middle of every window.
pub(crate) fn each(mut test: impl FnMut(&str, &str, (GateStore, Arc<ManualClock>))) {
    for algorithm in COUNTING {
        for (name, store, clock) in stores() {
            clock.advance(HOUR / 2);
            test(algorithm, &format!("{algorithm} on a {name}"), (store, clock));
        }
    }
}

#[test]
fn a_raised_limit_gives_its_difference_at_once() {
    each(|algorithm, what, (store, clock)| {
        let gate = Gate::new(policy(&rule(&limit_of(5, "d", algorithm))), store)
            .expect("the store supports the policy");
        assert_eq!(passed(&gate, 10), 5, "{what}");
        clock.advance(SECOND);
        reload(&gate, &limit_of(100, "d", algorithm));
        assert_eq!(remaining(&gate, "a", &ana()), 95, "{what}");
        assert_eq!(passed(&gate, 200), 95, "{what}");
    });
}

#[test]
fn a_lowered_limit_denies_for_at_most_one_refill_and_reports_when() {
    each(|algorithm, what, (store, clock)| {
        let gate = Gate::new(policy(&rule(&limit_of(1000, "d", algorithm))), store)
            .expect("the store supports the policy");
        assert_eq!(passed(&gate, 900), 900, "{what}");
        clock.advance(SECOND);
        let lowered = limit_of(100, "d", algorithm);
        reload(&gate, &lowered);
        let denied = admit(&gate, &ana());
        let wait =
            denied.binding().and_then(|binding| binding.decision.retry_after()).expect("it passes later");
        let refill = lowered.parse::<Limit>().expect("a limit").time_to_full();
        assert!(!denied.is_allowed() && wait <= refill + refill / 10, "{what}: {wait:?}");
        let nanosecond = Duration::from_nanos(1);
        clock.advance(wait - nanosecond);
        assert_eq!(passed(&gate, 1), 0, "{what}: a nanosecond early");
        clock.advance(nanosecond);
        assert_eq!(passed(&gate, 1), 1, "{what}: after {wait:?}");
    });
}

#[test]
fn counts_are_carried_over_through_several_limits_and_back() {
    each(|algorithm, what, (store, clock)| {
        let gate = Gate::new(policy(&rule(&limit_of(5, "d", algorithm))), store)
            .expect("the store supports the policy");
        assert_eq!(passed(&gate, 9), 5, "{what}");
        for (amount, left, used) in [(10, 5, 2), (50, 43, 3), (60, 50, 0)] {
            clock.advance(SECOND);
            reload(&gate, &limit_of(amount, "d", algorithm));
            assert_eq!(remaining(&gate, "a", &ana()), left, "{what}: {amount}/d");
            assert_eq!(passed(&gate, used), used, "{what}: {amount}/d");
        }
        clock.advance(SECOND);
        reload(&gate, &limit_of(5, "d", algorithm));
        assert_eq!(passed(&gate, 9), 0, "{what}: a limit that comes back finds its own state");
    });
}

#[test]
fn the_same_numbers_in_other_words_are_the_same_limit() {
    for (name, store, _) in stores() {
        let gate = Gate::new(policy(&rule("60/m burst 5")), store).expect("the store supports the policy");
        assert_eq!(passed(&gate, 9), 5, "{name}");
        reload(&gate, "1/s burst 5");
        assert_eq!(passed(&gate, 9), 0, "{name}");
    }
}

#[test]
fn windows_that_open_and_close_all_day_give_no_fresh_quota_each_time() {
    let window = |from: u32| {
        format!("{{ from = '{from:02}:00', to = '{:02}:00', timezone = 'UTC', limit = 'W' }}", from + 3)
    };
    let schedule = [1, 7, 13, 19].map(window).join(", ");
    each(|algorithm, what, (store, clock)| {
        let (usual, then) = (limit_of(5, "d", algorithm), limit_of(20, "d", algorithm));
        let text = format!("{}schedule = [{}]\n", rule(&usual), schedule.replace('W', &then));
        let calendar = Arc::new(ManualCalendar::at(0));
        let gate = Gate::builder(policy(&text), store)
            .calendar(calendar.clone())
            .build()
            .expect("the store supports the policy");
        let mut admitted = [0, 0];
        for hour in 0..24 {
            calendar.set(hour * 3600);
            for _ in 0..30 {
                let answer = admit(&gate, &ana());
                let is_window = answer.binding().expect("a limit decides").decision.limit() == 20;
                assert_eq!(is_window, (hour + 5) % 6 < 3, "{what}: {hour}:00");
                admitted[usize::from(is_window)] += u32::from(answer.is_allowed());
            }
            clock.advance(HOUR);
        }
        // A burst and the refill of a day; a fixed window may end in between.
        let most = if algorithm.starts_with("sliding") { 1 } else { 2 };
        assert!(admitted[0] <= 5 * most && admitted[1] <= 20 * most, "{what}: {admitted:?}");
        assert!(admitted[0] >= 5 && admitted[1] >= 15, "{what}: {admitted:?}");
    });
}

#[test]
fn a_window_gives_the_difference_and_its_end_takes_it_back() {
    each(|algorithm, what, (store, clock)| {
        let (usual, then) = (limit_of(5, "d", algorithm), limit_of(100, "d", algorithm));
        let window = format!("{{ from = '01:00', to = '03:00', timezone = 'UTC', limit = '{then}' }}");
        let text = format!("{}schedule = [{window}]\n", rule(&usual));
        let calendar = Arc::new(ManualCalendar::at(0));
        let gate = Gate::builder(policy(&text), store)
            .calendar(calendar.clone())
            .build()
            .expect("the store supports the policy");
        assert_eq!(passed(&gate, 10), 5, "{what}");
        clock.advance(SECOND);
        calendar.set(3600);
        assert_eq!(remaining(&gate, "a", &ana()), 95, "{what}: inside of the window");
        assert_eq!(passed(&gate, 200), 95, "{what}: inside of the window");
        calendar.set(3 * 3600);
        assert_eq!(passed(&gate, 10), 0, "{what}: after the window");
    });
}

#[test]
fn two_gates_with_old_and_new_numbers_on_one_store_keep_both_limits() {
    for algorithm in COUNTING {
        let (zone, map) = (Zone::new(1 << 20), Map::new());
        for store in
            [|zone: &Zone, _: &Map| GateStore::from(zone), |_: &Zone, map: &Map| GateStore::from(map)]
        {
            let gate = |limit: &str| {
                Gate::new(policy(&rule(limit)), store(&zone, &map)).expect("the store supports the policy")
            };
            let old = gate(&limit_of(1000, "d", algorithm));
            let new = gate(&limit_of(100, "d", algorithm));
            let (mut by_old, mut by_new) = (0, 0);
            for _ in 0..3000 {
                by_old += passed(&old, 1);
                by_new += passed(&new, 1);
            }
            // The refill during this test is small.
            assert!((1000..=1002).contains(&by_old), "{algorithm}: {by_old} of 1000/d");
            assert!((99..=101).contains(&by_new), "{algorithm}: {by_new} of 100/d");
        }
    }
}

#[test]
fn another_lease_leaves_those_that_were_given() {
    for (name, store, clock) in stores() {
        let gate =
            Gate::new(policy(&rule("2/60s concurrency")), store).expect("the store supports the policy");
        let held: Vec<_> = (0..2).flat_map(|_| admit(&gate, &ana()).permits().to_vec()).collect();
        assert_eq!(held.len(), 2);
        reload(&gate, "2/1s concurrency");
        assert_eq!(passed(&gate, 1), 0, "{name}");
        clock.advance(2 * SECOND);
        assert_eq!(passed(&gate, 1), 0, "{name}: a short lease ends no other");
        assert_eq!(gate.release(&held[0]).now().ok(), Some(true), "{name}");
        assert_eq!(passed(&gate, 2), 1, "{name}");
        assert_eq!(gate.renew(&held[1]).now().ok(), Some(true), "{name}");
        clock.advance(2 * SECOND);
        assert_eq!(passed(&gate, 3), 2, "{name}: both had a lease of a second");
    }
}

#[test]
fn a_share_of_a_limit_that_changes_while_the_store_fails_keeps_its_counts() {
    let node = one_of(&rule("30/d fixed-window"), 3);
    node.store.is(Health::Down);
    assert_eq!(passed(&node.gate, 50), 10);
    reload(&node.gate, "60/d fixed-window");
    assert_eq!(passed(&node.gate, 50), 10);
    let limit = "90/d fixed-window".parse().expect("a limit");
    node.gate
        .put_override("a", &ana(), tidegate_rules::Instead::Limit(limit), i64::MAX)
        .expect("it is supported");
    assert_eq!(passed(&node.gate, 50), 10);
}

#[test]
fn a_rule_that_has_more_limits_than_counts_are_carried_from_is_named_once() {
    each(|algorithm, what, (store, clock)| {
        let gate = Gate::new(policy(&rule(&limit_of(10, "d", algorithm))), store)
            .expect("the store supports the policy");
        for amount in 11..=15 {
            assert_eq!(passed(&gate, 1), 1, "{what}");
            assert!(gate.take_dropped_counts().is_empty(), "{what}: {amount} limits were never too many");
            clock.advance(SECOND);
            reload(&gate, &limit_of(amount, "d", algorithm));
        }
        assert_eq!(passed(&gate, 1), 1, "{what}");
        reload(&gate, &limit_of(16, "h", algorithm));
        assert_eq!(gate.take_dropped_counts(), ["a"], "{what}: the sixth limit followed five with counts");
        assert!(gate.take_dropped_counts().is_empty(), "{what}");
    });
}
