//! Tests of days, years and the ends of the calendar.

use jiff::Timestamp;

use super::super::{MAX_WINDOWS, Timetable};
use super::{edges, second, timetable, window};

#[test]
fn the_eleventh_of_november_begins_in_shanghai() {
    let sale = timetable(&["11-11T00:00 to 11-12T00:00 Asia/Shanghai"]);
    for year in [1970, 2025, 2026, 2027, 2100, 2200, 9998] {
        let from = second(&format!("{year}-11-10T16:00:00Z"));
        let to = second(&format!("{year}-11-11T16:00:00Z"));
        for (now, expected) in [(from - 1, None), (from, Some(0)), (to - 1, Some(0)), (to, None)] {
            assert_eq!(sale.at(now), expected, "{now}");
        }
        assert_eq!((sale.next_change(from - 1), sale.next_change(from)), (Some(from), Some(to)));
    }
}

#[test]
fn a_yearly_window_may_go_over_new_year() {
    let holidays = timetable(&["12-20 to 01-05 Europe/Berlin"]);
    for (now, expected) in [
        ("2026-12-19T22:59:59Z", None),
        ("2026-12-19T23:00:00Z", Some(0)),
        ("2026-12-31T22:59:59Z", Some(0)),
        ("2026-12-31T23:00:00Z", Some(0)),
        ("2027-01-01T00:00:00Z", Some(0)),
        ("2027-01-04T22:59:59Z", Some(0)),
        ("2027-01-04T23:00:00Z", None),
        ("2027-07-01T00:00:00Z", None),
    ] {
        assert_eq!(holidays.at(second(now)), expected, "{now}");
    }
}

#[test]
fn days_are_those_on_which_a_window_begins() {
    // The 7th of August 2026 is a Friday.
    assert_eq!(
        edges("fri 22:00 to 06:00 UTC", "2026-08-02T00:00:00Z", "2026-08-16T00:00:00Z"),
        ["2026-08-07T22:00:00Z", "2026-08-08T06:00:00Z", "2026-08-14T22:00:00Z", "2026-08-15T06:00:00Z"]
    );
}

#[test]
fn a_leap_day_is_empty_in_other_years() {
    let leap_day = "02-29 to 03-01 UTC";
    let around = |year: i16| (format!("{year}-02-28T00:00:00Z"), format!("{year}-03-02T12:00:00Z"));
    for (text, year, expected) in [
        (leap_day, 2028, &["2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z"][..]),
        (leap_day, 2026, &[]),
        ("02-29T12:00 to 03-02 UTC", 2028, &["2028-02-29T12:00:00Z", "2028-03-02T00:00:00Z"]),
        ("02-29T12:00 to 03-02 UTC", 2026, &["2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"]),
        ("02-28T12:00 to 02-29T12:00 UTC", 2028, &["2028-02-28T12:00:00Z", "2028-02-29T12:00:00Z"]),
        ("02-28T12:00 to 02-29T12:00 UTC", 2026, &["2026-02-28T12:00:00Z", "2026-03-01T00:00:00Z"]),
    ] {
        let (from, to) = around(year);
        assert_eq!(edges(text, &from, &to), expected, "{text} in {year}");
    }
    let next = timetable(&[leap_day]).next_change(second("2096-03-01T00:00:00Z"));
    assert_eq!(next, Some(second("2104-02-29T00:00:00Z")));
}

#[test]
fn the_first_window_that_covers_now_wins() {
    let table = timetable(&[
        "2026-11-11 to 2026-11-12 UTC",
        "wed 09:00 to 17:00 UTC",
        "11-01 to 12-01 UTC",
        "00:00 to 24:00 UTC",
    ]);
    for (now, expected) in [
        ("2026-11-11T10:00:00Z", 0),
        ("2026-11-18T10:00:00Z", 1),
        ("2026-11-18T17:00:00Z", 2),
        ("2027-11-11T10:00:00Z", 2),
        ("2026-12-01T00:00:00Z", 3),
    ] {
        assert_eq!(table.at(second(now)), Some(expected), "{now}");
    }
}

#[test]
fn no_clock_is_too_wrong() {
    let (first, last) = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    for texts in [
        &["2026-01-01 to 9999-12-31T24:00 Pacific/Apia", "00:00 to 24:00 America/New_York"][..],
        &["12-20 to 01-05 Pacific/Apia", "02-29 to 02-28T24:00 America/Juneau"],
        &["mon 22:00 to 06:00 Pacific/Kiritimati"],
        &[],
    ] {
        let table = timetable(texts);
        for now in [i64::MIN, i64::MIN + 1, first - 1, last + 1, i64::MAX - 1, i64::MAX] {
            assert_eq!(table.at(now), None, "{texts:?} at {now}");
            assert!(table.next_change(now).is_none_or(|change| change > now), "{texts:?} at {now}");
        }
        for now in [first, -1 << 40, -1, 0, 1 << 33, last].into_iter().flat_map(|now| now - 3..now + 3) {
            assert_eq!(table.at(now), table.look(now).0, "{texts:?} at {now}");
        }
    }
}

#[test]
fn a_window_may_end_with_the_calendar() {
    let from_now_on = timetable(&["2026-01-01 to 9999-12-31T24:00 UTC"]);
    let last = Timestamp::MAX.as_second();
    assert_eq!(from_now_on.at(second("2026-01-01T00:00:00Z")), Some(0));
    assert_eq!(from_now_on.at(last), Some(0));
    assert_eq!(from_now_on.next_change(i64::MIN), Some(second("2026-01-01T00:00:00Z")));
}

#[test]
fn the_next_change_is_found_behind_edges_that_change_nothing() {
    let now = second("2026-06-01T12:00:00Z");
    for (texts, expected) in [
        (&["00:00 to 24:00 UTC"][..], None),
        (&["01-01 to 12-31T24:00 UTC"], None),
        (&[], None),
        (&["2020-01-01 to 2021-01-01 UTC"], None),
        (&["2030-01-01 to 2031-01-01 UTC", "00:00 to 24:00 UTC"], Some("2030-01-01T00:00:00Z")),
        (&["09:00 to 12:00 UTC", "12:00 to 13:00 UTC"], Some("2026-06-01T13:00:00Z")),
        (&["mon,tue 00:00 to 24:00 UTC"], Some("2026-06-03T00:00:00Z")),
    ] {
        assert_eq!(timetable(texts).next_change(now), expected.map(second), "{texts:?}");
    }
}

#[test]
fn any_of_many_windows_can_be_chosen() {
    for count in [2, MAX_WINDOWS, MAX_WINDOWS + 1, 2 * MAX_WINDOWS] {
        let mut windows = vec![window("2026-01-01 to 2026-01-02 UTC").unwrap(); count];
        windows[count - 1] = window("00:00 to 24:00 UTC").unwrap();
        let table = Timetable::new(windows);
        for (now, expected) in [("2026-01-01T23:59:59Z", 0), ("2026-01-02T00:00:00Z", count - 1)] {
            assert_eq!(table.at(second(now)), Some(expected), "{now}");
            assert_eq!(table.at(second(now)), Some(expected), "{now}, remembered");
        }
    }
}

#[test]
fn timetables_of_the_same_windows_are_equal_whatever_was_asked() {
    let (one, other) = (timetable(&["09:00 to 17:00 UTC"]), timetable(&["09:00 to 17:00 UTC"]));
    assert_eq!(one.at(second("2026-06-01T12:00:00Z")), Some(0));
    assert_eq!(one, other);
    assert_eq!(one, one.clone());
    assert_eq!(one.windows(), [window("09:00 to 17:00 UTC").unwrap()]);
    assert_ne!(one, timetable(&["09:00 to 18:00 UTC"]));
    assert_ne!(one, Timetable::default());
}
