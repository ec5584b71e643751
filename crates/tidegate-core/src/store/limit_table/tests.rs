use super::*;
use crate::{Limit, Ticks};

fn limit(text: &str) -> StateLimit {
    text.parse::<Limit>().expect(text).terms().pack()
}

fn at(second: u32) -> Timestamp {
    Timestamp::after_epoch(second * SECOND)
}

/// Notes a state under this limit that is clear at this second.
fn note(table: &LimitTable, namespace: &str, text: &str, clear_at: u32, now: u32) -> Timestamp {
    table.note(namespace, &limit(text), None, at(clear_at), at(now))
}

fn listed(table: &LimitTable, namespace: &str, now: u32) -> Vec<StateLimit> {
    let mut listed = table.listed(namespace, at(now)).expect("all are listed");
    listed.sort_unstable();
    listed
}

/// Returns the predecessors of a limit that comes into force, as numbers.
fn announce(table: &LimitTable, text: &str, now: u32) -> (Timestamp, Vec<[u64; 5]>) {
    let history = table.announce("rule", &limit(text), at(now)).history;
    (history.since(), history.before().iter().map(Predecessor::numbers).collect())
}

fn numbers(text: &str) -> [u64; 5] {
    text.parse::<Limit>().expect(text).numbers()
}

#[test]
fn a_namespace_lists_its_own_limits_each_once() {
    let table = LimitTable::new();
    for _ in 0..3 {
        note(&table, "a", "5/h", 100, 0);
        note(&table, "a", "5/h sliding-log", 100, 0);
        note(&table, "b", "7/h", 100, 0);
        // The same limit, written differently.
        note(&table, "b", "7/60m burst 7", 100, 0);
    }
    let mut both = vec![limit("5/h"), limit("5/h sliding-log")];
    both.sort_unstable();
    assert_eq!(listed(&table, "a", 1), both);
    assert_eq!(listed(&table, "b", 1), [limit("7/h")]);
    assert!(listed(&table, "", 1).is_empty());
}

#[test]
fn a_limit_is_noted_as_far_ahead_as_its_state_lasts_and_at_least_a_minute() {
    let table = LimitTable::new();
    assert_eq!(note(&table, "a", "5/s", 11, 10), at(71));
    assert_eq!(note(&table, "a", "5/d", 1010, 10), at(2010));
}

#[test]
fn the_last_limit_is_listed_and_one_more_makes_a_reset_by_key_an_error_until_it_is_clear() {
    let table = LimitTable::new();
    for nth in 1..=MAX_LIMITS {
        note(&table, "a", &format!("{nth}/h"), 1000, 0);
    }
    assert_eq!(listed(&table, "a", 0).len(), MAX_LIMITS);
    let until = note(&table, "a", "1/d", 500, 0);
    assert_eq!(until, at(1000));
    let before = until.checked_sub(Ticks::new(1)).expect("after the epoch");
    assert_eq!(table.listed("a", before), Err(Unlisted));
    assert_eq!(table.listed("other", before), Err(Unlisted), "nothing says whose limit it was");
    assert!(table.listed("a", until).is_ok());
    // Records that no state needs any more are used again.
    note(&table, "a", "2/d", 3000, 2000);
    assert!(listed(&table, "a", 2001).contains(&limit("2/d")));
}

#[test]
fn a_limit_in_force_keeps_its_time_and_one_that_comes_back_gets_a_new_one() {
    let table = LimitTable::new();
    let (a, b) = ("5/h", "7/h");
    assert_eq!(announce(&table, a, 10), (at(10), vec![]));
    note(&table, "rule", a, 3600, 11);
    assert_eq!(announce(&table, a, 20), (at(10), vec![]), "a second process with the same numbers");
    assert_eq!(announce(&table, b, 30), (at(30), vec![numbers(a)]));
    note(&table, "rule", b, 3600, 31);
    assert_eq!(announce(&table, a, 40), (at(40), vec![numbers(b)]));
    assert_eq!(announce(&table, b, 40), (at(40), vec![numbers(a)]), "at the same instant");
}

#[test]
fn a_limit_says_that_live_states_are_older_than_its_predecessors() {
    let table = LimitTable::new();
    let drops = |text: &str, now| table.announce("rule", &limit(text), at(now)).drops_counts;
    for nth in 1..=5 {
        assert!(!drops(&format!("{nth}/h"), nth), "{nth} limits are not too many");
        note(&table, "rule", &format!("{nth}/h"), 3600, nth);
    }
    assert!(!drops("6/h sliding-log", 6), "nothing is carried to another algorithm");
    assert!(drops("7/h", 7));
    assert!(!drops("7/h", 9000), "all are clear");
}

#[test]
fn four_predecessors_are_known_and_those_without_live_states_are_not() {
    let table = LimitTable::new();
    let text = |nth: u32| format!("{nth}/h");
    for nth in 1..=6 {
        announce(&table, &text(nth), nth);
        note(&table, "rule", &text(nth), 3600, nth);
    }
    let four: Vec<_> = (3..=6).rev().map(|nth| numbers(&text(nth))).collect();
    assert_eq!(announce(&table, "7/h", 10).1, four);
    assert_eq!(announce(&table, "8/h", 9000).1, Vec::<[u64; 5]>::new(), "all are clear");
}

/// Counts are carried through every limit in between, also through one that admitted nothing.
#[test]
fn a_limit_without_live_states_stays_while_an_older_one_has_some() {
    let table = LimitTable::new();
    announce(&table, "1/d", 0);
    note(&table, "rule", "1/d", 86_400, 0);
    announce(&table, "2/d", 10);
    assert_eq!(announce(&table, "3/d", 5000).1, [numbers("2/d"), numbers("1/d")]);
}

/// The record of an idle rule is used for other limits, and the rule continues.
#[test]
fn a_rule_whose_record_was_used_for_another_limit_is_listed_again() {
    let table = LimitTable::new();
    let (since, _) = announce(&table, "5/s", 0);
    table
        .open(1)
        .expect("a lock of one thread")
        .replace(0, LimitRecord { numbers: [1; 5], ..LimitRecord::default() });
    table.note("rule", &limit("5/s"), Some(since), at(30_001), at(30_000));
    assert_eq!(announce(&table, "7/s", 30_000), (at(30_000), vec![numbers("5/s")]));
}

/// Dynamic limits once filled the table, and rules lost their counts when their numbers changed.
#[test]
fn limits_of_rules_and_of_requests_take_no_room_of_each_other() {
    let table = LimitTable::new();
    for nth in 1..=MAX_LIMITS + 1 {
        note(&table, "", &format!("{nth}/h"), 9000, 0);
    }
    assert_eq!(announce(&table, "5/h", 1), (at(1), vec![]));
    table.note("rule", &limit("5/h"), Some(at(1)), at(3000), at(1));
    assert_eq!(announce(&table, "6/h", 2).1, [numbers("5/h")]);
    let table = LimitTable::new();
    for nth in 0..=MAX_LIMITS {
        table.announce(&format!("rule {nth}"), &limit("5/h"), at(1));
    }
    note(&table, "", "7/h", 9000, 1);
    assert_eq!(listed(&table, "", 2), [limit("7/h")]);
}

#[test]
fn permits_of_a_rule_are_one_set_and_nothing_is_carried_through_them() {
    let table = LimitTable::new();
    let set = [Algorithm::Concurrency as u64, 0, 0, 0, 0, 0];
    announce(&table, "5/h", 0);
    note(&table, "rule", "5/h", 3600, 0);
    table.announce("rule", &set, at(10));
    let history = table.announce("rule", &limit("7/h"), at(20)).history;
    let algorithms: Vec<_> = history.before().iter().map(Predecessor::algorithm).collect();
    assert_eq!(algorithms, [Algorithm::Concurrency, Algorithm::TokenBucket]);
}

#[test]
fn a_record_of_no_limit_is_no_predecessor() {
    let table = LimitTable::new();
    announce(&table, "5/h", 0);
    let mut open = table.open(1).expect("a lock of one thread");
    let damaged = LimitRecord { numbers: [5, 0, 7, 0, 9], until: u64::MAX, ..open.get(0) };
    open.replace(0, damaged);
    drop(open);
    assert_eq!(announce(&table, "6/h", 10).1, Vec::<[u64; 5]>::new());
}
