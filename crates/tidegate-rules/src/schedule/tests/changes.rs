//! Tests of clocks that are set forward and back.

use super::{Stretch, edges, second, timetable};

const NEW_YORK: &str = "America/New_York";
/// The instant at which 02:00 becomes 03:00.
const FORWARD: &str = "2026-03-08T07:00:00Z";
/// The instant at which 02:00 becomes 01:00.
const BACK: &str = "2026-11-01T06:00:00Z";

/// Times before, at the edges of, within and after both hours.
const TIMES: [&str; 10] =
    ["00:30", "01:00", "01:29:59", "01:30", "01:59:59", "02:00", "02:30", "02:59:59", "03:00", "03:30"];

fn each_pair(check: impl Fn(&str, &str)) {
    for from in TIMES {
        for to in TIMES.into_iter().filter(|to| *to != from) {
            check(from, to);
        }
    }
}

#[test]
fn daily_windows_hold_across_both_changes_of_new_york() {
    for change in [FORWARD, BACK] {
        let stretch = Stretch::around(change, NEW_YORK);
        each_pair(|from, to| {
            stretch.compare(&format!("{from} to {to}"));
            stretch.compare(&format!("sun {from} to {to}"));
        });
    }
}

#[test]
fn yearly_windows_hold_across_both_changes_of_new_york() {
    for (change, date) in [(FORWARD, "03-08"), (BACK, "11-01")] {
        let stretch = Stretch::around(change, NEW_YORK);
        each_pair(|from, to| stretch.compare(&format!("{date}T{from} to {date}T{to}")));
    }
}

#[test]
fn single_windows_hold_across_both_changes_of_new_york() {
    for (change, date) in [(FORWARD, "2026-03-08"), (BACK, "2026-11-01")] {
        let stretch = Stretch::around(change, NEW_YORK);
        each_pair(|from, to| {
            if from < to {
                stretch.compare(&format!("{date}T{from} to {date}T{to}"));
            }
        });
    }
}

#[test]
fn a_skipped_time_is_the_jump() {
    for (text, expected) in [
        ("02:30 to 03:30 America/New_York", &["2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z"][..]),
        ("01:30 to 02:30 America/New_York", &["2026-03-08T06:30:00Z", "2026-03-08T07:00:00Z"]),
        ("02:10 to 02:50 America/New_York", &[]),
        ("03-08T02:30 to 03-08T03:30 America/New_York", &["2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z"]),
        ("2026-03-08T02:10 to 2026-03-08T02:50 America/New_York", &[]),
    ] {
        assert_eq!(edges(text, "2026-03-08T05:00:00Z", "2026-03-08T10:00:00Z"), expected, "{text}");
    }
}

#[test]
fn a_time_that_comes_twice_counts_twice() {
    for (text, expected) in [
        (
            "01:15 to 01:45 America/New_York",
            &["2026-11-01T05:15:00Z", "2026-11-01T05:45:00Z", "2026-11-01T06:15:00Z", "2026-11-01T06:45:00Z"]
                [..],
        ),
        (
            "01:30 to 02:00 America/New_York",
            &["2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z", "2026-11-01T06:30:00Z", "2026-11-01T07:00:00Z"],
        ),
        (
            "00:30 to 01:30 America/New_York",
            &["2026-11-01T04:30:00Z", "2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z", "2026-11-01T06:30:00Z"],
        ),
        (
            "11-01T01:30 to 11-01T02:30 America/New_York",
            &["2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z", "2026-11-01T06:30:00Z", "2026-11-01T07:30:00Z"],
        ),
        ("01:00 to 02:00 America/New_York", &["2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z"]),
    ] {
        assert_eq!(edges(text, "2026-11-01T04:00:00Z", "2026-11-01T09:00:00Z"), expected, "{text}");
    }
}

#[test]
fn a_window_within_the_repeated_hour_of_berlin_holds_both_times() {
    let table = timetable(&["02:15 to 02:45 Europe/Berlin"]);
    for (now, holds, change) in [
        ("2026-10-25T00:00:00Z", None, "2026-10-25T00:15:00Z"),
        ("2026-10-25T00:30:00Z", Some(0), "2026-10-25T00:45:00Z"),
        ("2026-10-25T00:45:00Z", None, "2026-10-25T01:15:00Z"),
        ("2026-10-25T01:30:00Z", Some(0), "2026-10-25T01:45:00Z"),
        ("2026-10-25T01:45:00Z", None, "2026-10-26T01:15:00Z"),
    ] {
        assert_eq!(table.at(second(now)), holds, "{now}");
        assert_eq!(table.next_change(second(now)), Some(second(change)), "{now}");
    }
}

#[test]
fn half_an_hour_is_skipped_and_repeated_on_lord_howe_island() {
    for change in ["2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"] {
        let stretch = Stretch::around(change, "Australia/Lord_Howe");
        for text in [
            "01:30 to 02:00",
            "01:45 to 02:15",
            "02:00 to 02:30",
            "02:10 to 02:20",
            "02:15 to 02:45",
            "23:00 to 01:40",
            "04-05T01:40 to 10-04T02:10",
            "10-04T02:10 to 04-05T01:40",
        ] {
            stretch.compare(text);
        }
    }
}

#[test]
fn a_whole_day_is_skipped_in_samoa() {
    let stretch = Stretch::around("2011-12-30T10:00:00Z", "Pacific/Apia");
    for (text, expected) in [
        ("12-30 to 12-31", &[][..]),
        ("2011-12-30T01:00 to 2011-12-30T24:00", &[]),
        ("fri 09:00 to 17:00", &[]),
        ("12-29T22:00 to 12-30T12:00", &["2011-12-30T08:00:00Z", "2011-12-30T10:00:00Z"]),
        ("12-30T12:00 to 12-31T02:00", &["2011-12-30T10:00:00Z", "2011-12-30T12:00:00Z"]),
        ("22:00 to 02:00", &["2011-12-30T08:00:00Z", "2011-12-30T12:00:00Z"]),
        ("thu 22:00 to 02:00", &["2011-12-30T08:00:00Z", "2011-12-30T10:00:00Z"]),
        ("fri 22:00 to 02:00", &["2011-12-30T10:00:00Z", "2011-12-30T12:00:00Z"]),
    ] {
        let window = format!("{text} Pacific/Apia");
        assert_eq!(edges(&window, "2011-12-30T07:55:00Z", "2011-12-30T12:05:00Z"), expected, "{text}");
        stretch.compare(text);
    }
}

/// Alaska repeated the 18th of October 1867, and Phoenix repeated the beginning of 1944.
#[test]
fn clocks_that_are_put_back_to_yesterday_repeat_the_evening() {
    for (text, now, expected) in [
        ("15:00 to 15:10 America/Juneau", "1867-10-18T23:57:41Z", "1867-10-19T00:07:41Z"),
        ("15:00 to 15:10 America/Juneau", "1867-10-19T23:57:41Z", "1867-10-20T00:07:41Z"),
        ("01-01 to 01-01T00:00:30 America/Phoenix", "1944-01-01T06:00:00Z", "1944-01-01T06:00:30Z"),
        ("01-01 to 01-01T00:00:30 America/Phoenix", "1944-01-01T07:00:00Z", "1944-01-01T07:00:30Z"),
    ] {
        let table = timetable(&[text]);
        assert_eq!(table.at(second(now)), Some(0), "{text} at {now}");
        assert_eq!(table.next_change(second(now)), Some(second(expected)), "{text} at {now}");
    }
}
