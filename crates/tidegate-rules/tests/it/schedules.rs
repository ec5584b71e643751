//! Tests that a schedule changes a rule to the second, for all requests at once, and that spent units stay spent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;

use tidegate::Map;
use tidegate_rules::{Attributes, Gate, ManualCalendar, WallClock};

use crate::random::tries;
use crate::requests::{admit, policy, remaining, still_zone, stores};

const THREADS: usize = 4;
/// Midnights in UTC, in seconds since 1970.
const MARCH_7: i64 = 1_772_841_600;
const MARCH_8: i64 = MARCH_7 + 86_400;
const OCTOBER_31: i64 = 1_793_404_800;
const NOVEMBER_1: i64 = OCTOBER_31 + 86_400;

fn scheduled(window: &str, usual: &str, then: &str) -> String {
    format!("[[rule]]\nname = 'rule'\nlimit = '{usual}'\nschedule = [{{ {window}, limit = '{then}' }}]\n")
}

/// Returns the limit of the next request.
fn limit_at(gate: &Gate, calendar: &ManualCalendar, now: i64) -> String {
    calendar.set(now);
    let explained = gate.explain(&Attributes::new()).now().expect("at once");
    let answer = admit(gate, &Attributes::new());
    let limit = answer.binding().expect("a limit decides").limit;
    assert_eq!(explained.rules[0].limit, Some(limit), "at {now}");
    limit.to_string()
}

#[test]
fn windows_are_right_to_the_second_on_the_days_when_new_york_changes_its_clocks() {
    let hour = |hours: f64| (hours * 3600.0) as i64;
    for (window, from, to) in [
        // Times that exist once on any day.
        ("from = '09:00', to = '17:00'", MARCH_7 + hour(14.0), MARCH_7 + hour(22.0)),
        ("from = '09:00', to = '17:00'", MARCH_8 + hour(13.0), MARCH_8 + hour(21.0)),
        ("from = '09:00', to = '17:00'", OCTOBER_31 + hour(13.0), OCTOBER_31 + hour(21.0)),
        ("from = '09:00', to = '17:00'", NOVEMBER_1 + hour(14.0), NOVEMBER_1 + hour(22.0)),
        // An hour that is skipped, and one that is repeated.
        ("from = '02:30', to = '03:30'", MARCH_7 + hour(7.5), MARCH_7 + hour(8.5)),
        ("from = '02:30', to = '03:30'", MARCH_8 + hour(7.0), MARCH_8 + hour(7.5)),
        ("from = '01:30', to = '02:00'", OCTOBER_31 + hour(5.5), OCTOBER_31 + hour(6.0)),
        ("from = '01:30', to = '02:00'", NOVEMBER_1 + hour(5.5), NOVEMBER_1 + hour(6.0)),
        ("from = '01:30', to = '02:00'", NOVEMBER_1 + hour(6.5), NOVEMBER_1 + hour(7.0)),
        // Nights over the clock change, an hour shorter and an hour longer.
        ("from = '22:00', to = '06:00'", MARCH_8 + hour(3.0), MARCH_8 + hour(10.0)),
        ("from = '22:00', to = '06:00'", NOVEMBER_1 + hour(2.0), NOVEMBER_1 + hour(11.0)),
        ("from = '22:00', to = '06:00', days = ['sat']", NOVEMBER_1 + hour(2.0), NOVEMBER_1 + hour(11.0)),
        // Days of 23 and of 25 hours.
        ("from = '03-08T00:00', to = '03-09T00:00'", MARCH_8 + hour(5.0), MARCH_8 + hour(28.0)),
        (
            "from = '2026-11-01T00:00', to = '2026-11-02T00:00'",
            NOVEMBER_1 + hour(4.0),
            NOVEMBER_1 + hour(29.0),
        ),
    ] {
        let text = scheduled(&format!("{window}, timezone = 'America/New_York'"), "1000/h", "2000/h");
        let calendar = Arc::new(ManualCalendar::default());
        let gate = Gate::builder(policy(&text), still_zone().0)
            .calendar(calendar.clone())
            .build()
            .expect("the store supports the policy");
        // Forward and back: the cached result for one second must not be used for another.
        for (now, expected) in [
            (from - 1, "1000/h"),
            (from, "2000/h"),
            (to - 1, "2000/h"),
            (to, "1000/h"),
            (to - 1, "2000/h"),
            (from, "2000/h"),
            (from - 1, "1000/h"),
            ((from + to) / 2, "2000/h"),
        ] {
            assert_eq!(
                limit_at(&gate, &calendar, now),
                expected,
                "{window}: {} s after it begins",
                now - from
            );
        }
        calendar.set(from);
        let explained = gate.explain(&Attributes::new()).now().expect("at once");
        assert_eq!(explained.rules[0].changes_at, Some(to), "{window}");
    }
}

#[test]
fn under_load_every_request_goes_by_the_limit_of_its_second_and_no_count_is_lost() {
    let edge = MARCH_8 + 7 * 3600;
    let window = "from = '02:30', to = '03:30', timezone = 'America/New_York'";
    for word in ["fixed-window", "sliding-log", "sliding-window"] {
        let text = scheduled(window, &format!("1000000/h {word}"), &format!("1048576/h {word}"));
        for (name, store, _) in stores() {
            let calendar = Arc::new(ManualCalendar::at(edge - 20));
            let gate = Gate::builder(policy(&text), store)
                .calendar(calendar.clone())
                .build()
                .expect("the store supports the policy");
            let (is_over, spent, seen) =
                (AtomicBool::new(false), AtomicU64::new(0), [AtomicU64::new(0), AtomicU64::new(0)]);
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    let (gate, is_over, spent, seen) = (&gate, &is_over, &spent, &seen);
                    scope.spawn(move || {
                        while !is_over.load(Ordering::Relaxed) && spent.load(Ordering::Relaxed) < 900_000 {
                            let before = gate.date();
                            let answer = admit(gate, &Attributes::new());
                            let after = gate.date();
                            let is_new =
                                answer.binding().expect("a limit decides").decision.limit() == 1_048_576;
                            assert!(
                                !is_new || after >= edge,
                                "the new limit decided before {edge}: {before} to {after}"
                            );
                            assert!(
                                is_new || before < edge,
                                "the old limit decided after {edge}: {before} to {after}"
                            );
                            assert!(answer.is_allowed());
                            spent.fetch_add(1, Ordering::Relaxed);
                            seen[usize::from(is_new)].fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
                for second in edge - 20..edge + 20 {
                    calendar.set(second);
                    let enough = spent.load(Ordering::Relaxed) + tries(20_000, 500) as u64;
                    while spent.load(Ordering::Relaxed) < enough.min(900_000) {
                        thread::yield_now();
                    }
                }
                is_over.store(true, Ordering::Relaxed);
            });
            let counted = 1_048_576 - remaining(&gate, "rule", &Attributes::new());
            // Units that the old limit still spends after the new one has begun to count stay with the old one.
            let uncounted = spent.load(Ordering::Relaxed) - counted;
            assert!(uncounted <= THREADS as u64, "{word} on a {name}: {uncounted} more than {counted}");
            assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) > 0), "{seen:?}");
        }
    }
}

#[test]
fn what_was_spent_before_an_edge_counts_behind_it() {
    let text = |word: &str| {
        scheduled(
            "from = '11-01T00:00', to = '11-02T00:00'",
            &format!("10/h {word}"),
            &format!("15/h {word}"),
        )
    };
    for word in ["fixed-window", "sliding-log", "sliding-window"] {
        for (name, store, clock) in stores() {
            // The middle of a window of an hour.
            clock.advance(std::time::Duration::from_secs(1800));
            let calendar = Arc::new(ManualCalendar::at(NOVEMBER_1 - 1));
            let gate = Gate::builder(policy(&text(word)), store)
                .calendar(calendar.clone())
                .build()
                .expect("the store supports the policy");
            let passing = || (0..100).filter(|_| admit(&gate, &Attributes::new()).is_allowed()).count();
            assert_eq!(passing(), 10, "{word} on a {name}");
            calendar.set(NOVEMBER_1);
            assert_eq!(passing(), 5, "{word} on a {name}: the window has 15, of which 10 are spent");
            calendar.set(NOVEMBER_1 + 86_400);
            assert_eq!(passing(), 0, "{word} on a {name}");
        }
    }
}

/// A calendar on which every reading takes a second.
#[derive(Debug)]
struct Slow(AtomicI64);

impl WallClock for Slow {
    fn now(&self) -> i64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

#[test]
fn a_request_has_one_date_for_all_its_rules() {
    let rule = |name: &str, more: &str| {
        let window = "{ from = '11-01T00:00', to = '11-02T00:00', cost = 1000 }";
        format!(
            "[[rule]]\nname = '{name}'\nlimit = '1000000/h fixed-window'\nschedule = [{window}]\n{more}\n"
        )
    };
    let text = [
        rule("first", ""),
        rule("second", ""),
        rule("shadow", "mode = 'shadow'"),
        rule("beside", "candidate_for = 'second'"),
        rule("behind", "candidate_for = 'shadow'"),
    ];
    for start in 0..12 {
        let calendar = Arc::new(Slow(AtomicI64::new(NOVEMBER_1 - start)));
        let gate = Gate::builder(policy(&text.concat()), Map::new())
            .calendar(calendar)
            .build()
            .expect("the store supports the policy");
        let answers = gate.admit_all(&[Attributes::new(), Attributes::new()]).now().expect("at once");
        assert!(answers.iter().all(tidegate_rules::Admission::is_allowed));
        let explained = gate.explain(&Attributes::new()).now().expect("at once");
        let left: Vec<_> = explained
            .rules
            .iter()
            .map(|explained| explained.decision.expect("it counts").remaining())
            .collect();
        assert!(left.iter().all(|one| *one == left[0]), "{start} s before: {left:?}");
    }
}
