//! Tests of rules with calendar limits: what a reload, a schedule and an override keep.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{DAY, HOUR, Timestamp, Zone};
use tidegate_rules::{Gate, ManualCalendar, Policy, Rule, parse_limit};

use crate::changed_numbers::{ana, passed, rule};
use crate::requests::{admit, policy, remaining, still_zone, stores};

/// Returns the wait of a denied request.
fn wait(gate: &Gate) -> Duration {
    let denied = admit(gate, &ana());
    assert!(!denied.is_allowed());
    denied.binding().and_then(|binding| binding.decision.retry_after()).expect("it passes later")
}

#[test]
fn a_spent_key_stays_spent_across_reloads_and_changes_of_the_time_zone() {
    for (name, store, clock) in stores() {
        // 2024-10-26T22:30Z: half an hour into a day of 25 hours in Berlin.
        let now = 299 * DAY + 22 * HOUR + HOUR / 2;
        clock.set(Timestamp::after_epoch(now));
        let berlin = rule("5/day calendar Europe/Berlin");
        let gate = Gate::new(policy(&berlin), store).expect("the store supports the policy");
        assert_eq!(passed(&gate, 10), 5, "{name}");
        assert_eq!(wait(&gate), 24 * HOUR + HOUR / 2, "{name}");
        for (limit, hours) in [
            ("5/day calendar Europe/Berlin", 49),
            // The day of Tokyo ends at 15:00Z, that of UTC at midnight, and the week of Berlin on Sunday at 23:00Z.
            ("5/day calendar Asia/Tokyo", 33),
            ("5/day calendar", 3),
            ("5/week calendar Europe/Berlin", 49),
            ("5/day calendar Europe/Berlin", 49),
        ] {
            gate.replace(policy(&rule(limit))).expect("a store in memory holds every limit");
            assert_eq!(remaining(&gate, "a", &ana()), 0, "{limit} on a {name}");
            assert_eq!(wait(&gate), hours * HOUR / 2, "{limit} on a {name}");
        }
        gate.replace(policy(&rule("8/day calendar Asia/Tokyo")))
            .expect("a store in memory holds every limit");
        assert_eq!(remaining(&gate, "a", &ana()), 3, "{name}");
        gate.replace(policy(&berlin)).expect("a store in memory holds every limit");
        clock.set(Timestamp::after_epoch(300 * DAY + 23 * HOUR));
        assert_eq!(passed(&gate, 10), 5, "{name}: the next day");
    }
}

#[test]
fn a_clock_that_steps_back_by_an_hour_reopens_no_day() {
    for (name, store, clock) in stores() {
        let gate = Gate::new(policy(&rule("5/day calendar Europe/Berlin")), store)
            .expect("the store supports the policy");
        let midnight = 40 * DAY + 23 * HOUR;
        clock.set(Timestamp::after_epoch(midnight + HOUR / 2));
        assert_eq!(passed(&gate, 10), 5, "{name}");
        for (at, hours) in
            [(midnight - HOUR / 2, 49), (midnight + HOUR / 2, 47), (midnight + 3 * HOUR / 2, 45)]
        {
            clock.set(Timestamp::after_epoch(at));
            assert_eq!(wait(&gate), hours * HOUR / 2, "{name}");
        }
    }
}

#[test]
fn a_window_of_a_schedule_can_count_by_the_calendar() {
    let text = rule("5/day calendar Europe/Berlin")
        + "schedule = [{ from = '01-01T00:00', to = '12-31T00:00', limit = '9/month calendar Asia/Shanghai from 15' }]\n";
    // In the middle of January 2027.
    let gate = Gate::builder(policy(&text), still_zone().0)
        .calendar(Arc::new(ManualCalendar::at(1_800_000_000)))
        .build()
        .expect("the store supports the policy");
    assert_eq!(passed(&gate, 20), 9);
    assert_eq!(wait(&gate), 13 * DAY + 16 * HOUR);
}

#[test]
fn a_limit_in_code_has_any_time_zone() {
    let limit = parse_limit("5/day calendar Asia/Tokyo").expect("a limit");
    let rule = Rule::builder("a").key(["user"]).limit(limit);
    let policy = Policy::builder().rule(rule).build().expect("a policy");
    let gate = Gate::new(policy, Zone::new(1 << 20)).expect("the store supports the policy");
    assert_eq!(passed(&gate, 10), 5);
}

#[test]
fn an_error_names_the_place_of_the_time_zone() {
    let text = rule("5/day calendar Europe/Belrin");
    let error = Policy::from_toml(&text).expect_err("no zone").to_string();
    let expected =
        "limit \"5/day calendar Europe/Belrin\": \"Europe/Belrin\" is no time zone; write \"Europe/Berlin\"";
    assert!(error.contains(expected) && error.contains("4:25"), "{error}");
}
