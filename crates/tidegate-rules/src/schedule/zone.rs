//! Time zones by IANA name, their local time, and their offsets for calendar limits.

use std::iter;
use std::ops::Range;

use jiff::civil::DateTime;
use jiff::tz::{self, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use tidegate_core as core;
use tidegate_support::distance;

/// The maximum edit distance of a suggested name, and the number of letters required per edit.
const MAX_DISTANCE: usize = 2;
const LETTERS_PER_SLIP: usize = 4;

/// 1900-01-01 and 2200-01-01: the changes between them are far fewer than a zone may have.
const FIRST_SECOND: i64 = -2_208_988_800;
const LAST_SECOND: i64 = 7_258_118_400;

/// A duration longer than clocks were ever set back: Alaska repeated one day.
const LONGEST_REPEAT: SignedDuration = SignedDuration::from_hours(48);

/// Returns the zone with this name, case-insensitive. The time zone database of the machine, which may be newer, takes
/// precedence over the built-in one.
pub(crate) fn time_zone(name: &str) -> Result<TimeZone, String> {
    let found = tz::db().get(name).or_else(|_| TimeZoneDatabase::bundled().get(name));
    match found.ok().filter(|zone| !zone.is_unknown()) {
        Some(zone) => Ok(zone),
        None => Err(match abbreviated(name).map(str::to_owned).or_else(|| nearest(name)) {
            Some(meant) => format!("is no time zone; write \"{meant}\""),
            None => "is no time zone; write a name such as \"Europe/Berlin\", or \"UTC\"".to_owned(),
        }),
    }
}

/// Returns the zone with this name for a calendar limit. The error follows the name in a message.
pub(crate) fn calendar_zone(name: &str) -> Result<core::TimeZone, String> {
    if let Some(known) = core::TimeZone::get(name) {
        return Ok(known);
    }
    let zone = time_zone(name)?;
    offsets_of(&zone).map_err(|error| format!("cannot be used: {error}"))
}

/// Returns the offsets of a zone from 1900 to 2200.
pub(super) fn offsets_of(zone: &TimeZone) -> Result<core::TimeZone, core::TimeZoneError> {
    let (begin, end) = (instant(FIRST_SECOND), instant(LAST_SECOND));
    let changes = zone
        .following(begin)
        .take_while(|change| change.timestamp() < end)
        .map(|change| (change.timestamp().as_second(), change.offset().seconds()));
    core::TimeZone::new(zone.iana_name().unwrap_or("UTC"), zone.to_offset(begin).seconds(), changes)
}

fn instant(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Returns the seconds around an instant in which the UTC offset of the zone does not change.
pub(super) fn steady(zone: &TimeZone, now: Timestamp) -> Range<i64> {
    // A change at exactly this second counts as the last one, and `preceding` is exclusive.
    let after = now.saturating_add(SignedDuration::from_secs(1)).unwrap_or(Timestamp::MAX);
    let last = zone.preceding(after).next().map(|change| change.timestamp().as_second());
    let next = zone.following(now).next().map(|change| change.timestamp().as_second());
    last.unwrap_or_else(|| Timestamp::MIN.as_second())..next.unwrap_or_else(end_of_time)
}

/// Returns true if the local time is this one or later, and will never be earlier again.
pub(super) fn has_passed(zone: &TimeZone, civil: DateTime, now: Timestamp) -> bool {
    let repeats = zone.following(now).map(|change| change.timestamp());
    let soon = |change: &Timestamp| change.duration_since(now) <= LONGEST_REPEAT;
    iter::once(now).chain(repeats.take_while(soon)).all(|now| zone.to_datetime(now) >= civil)
}

/// Returns one second after the last supported second.
pub(super) fn end_of_time() -> i64 {
    Timestamp::MAX.as_second() + 1
}

/// Returns a zone whose clock shows the time of this abbreviation for a part of the year. Abbreviations are no names:
/// some mean several zones, and all but a few name half a year.
fn abbreviated(name: &str) -> Option<&'static str> {
    const ZONES: [(&[&str], &str); 12] = [
        (&["CEST", "MEZ", "MESZ"], "Europe/Berlin"),
        (&["BST"], "Europe/London"),
        (&["EEST"], "Europe/Athens"),
        (&["MSK"], "Europe/Moscow"),
        (&["EDT", "ET"], "America/New_York"),
        (&["CDT", "CT"], "America/Chicago"),
        (&["MDT", "MT"], "America/Denver"),
        (&["PST", "PDT", "PT"], "America/Los_Angeles"),
        (&["IST"], "Asia/Kolkata"),
        (&["JST"], "Asia/Tokyo"),
        (&["SGT"], "Asia/Singapore"),
        (&["AEST", "AEDT"], "Australia/Sydney"),
    ];
    let is_meant = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    ZONES.into_iter().find(|(names, _)| is_meant(names)).map(|(_, zone)| zone)
}

/// Returns a similar name, or one with a similar city. Zones such as `Etc/GMT+8` have inverted signs and are never
/// suggested.
fn nearest(word: &str) -> Option<String> {
    let word = &word.to_lowercase();
    let (distance, name) = TimeZoneDatabase::bundled()
        .available()
        .map(|name| name.as_str().to_owned())
        .filter(|name| name.contains('/') && !name.starts_with("Etc/"))
        .map(|name| (distance_to(word, &name.to_lowercase()), name))
        .min()?;
    (distance <= MAX_DISTANCE.min(word.chars().count() / LETTERS_PER_SLIP)).then_some(name)
}

/// Returns the edit distance to a name, or to its city if the word has no slash.
fn distance_to(word: &str, name: &str) -> usize {
    match name.rsplit_once('/') {
        Some((_, city)) if !word.contains('/') => distance(word, city),
        _ => distance(word, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_found_by_its_name() {
        for (name, expected) in [
            ("UTC", "UTC"),
            ("Asia/Shanghai", "Asia/Shanghai"),
            ("america/new_york", "America/New_York"),
            ("US/Pacific", "US/Pacific"),
            ("Etc/GMT+8", "Etc/GMT+8"),
        ] {
            assert_eq!(time_zone(name).unwrap().iana_name(), Some(expected));
        }
    }

    #[test]
    fn an_abbreviation_is_rejected_with_a_zone_that_shows_its_time() {
        for (name, zone) in [("CEST", "Europe/Berlin"), ("pst", "America/Los_Angeles"), ("JST", "Asia/Tokyo")]
        {
            assert_eq!(time_zone(name).unwrap_err(), format!("is no time zone; write \"{zone}\""));
        }
        // Some abbreviations are names.
        assert!(["CET", "EST", "UTC"].iter().all(|name| time_zone(name).is_ok()));
    }

    #[test]
    fn other_text_is_rejected_with_a_remedy() {
        let example = "is no time zone; write a name such as \"Europe/Berlin\", or \"UTC\"";
        for (name, expected) in [
            ("America/New York", "is no time zone; write \"America/New_York\""),
            ("Asia/Shangai", "is no time zone; write \"Asia/Shanghai\""),
            ("Berlin", "is no time zone; write \"Europe/Berlin\""),
            ("new york", "is no time zone; write \"America/New_York\""),
            ("xxLondon", "is no time zone; write \"Europe/London\""),
            ("xxxLondon", example),
            ("York", example),
            ("", example),
            ("CST", example),
            ("UTC+8", example),
            ("GMT+8", example),
            ("Etc/GMT+15", example),
            ("Etc/Unknown", example),
            ("+08:00", example),
            ("../../etc/passwd", example),
            ("Mars/Olympus_Mons", example),
        ] {
            assert_eq!(time_zone(name), Err(expected.to_owned()), "{name}");
        }
    }

    #[test]
    fn clocks_are_steady_from_one_change_up_to_the_next() {
        let berlin = time_zone("Europe/Berlin").unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (forward, back) = (at("2026-03-29T01:00:00Z"), at("2026-10-25T01:00:00Z"));
        let summer = forward.as_second()..back.as_second();
        for now in [forward, at("2026-07-01T00:00:00Z"), back - SignedDuration::from_secs(1)] {
            assert_eq!(steady(&berlin, now), summer, "{now}");
        }
        assert_eq!(steady(&berlin, back).start, summer.end);
        assert_eq!(steady(&berlin, forward - SignedDuration::from_secs(1)).end, summer.start);
        assert_eq!(steady(&TimeZone::UTC, forward), Timestamp::MIN.as_second()..end_of_time());
    }

    #[test]
    fn a_time_has_passed_when_it_does_not_come_again() {
        let new_york = time_zone("America/New_York").unwrap();
        for (civil, last) in [
            ("2026-11-01T00:59:59", "2026-11-01T04:59:59Z"),
            ("2026-11-01T01:00:00", "2026-11-01T05:00:00Z"),
            ("2026-11-01T01:30:00", "2026-11-01T06:30:00Z"),
            ("2026-11-01T02:00:00", "2026-11-01T07:00:00Z"),
            ("2026-03-08T02:30:00", "2026-03-08T07:00:00Z"),
        ] {
            let (civil, last): (DateTime, Timestamp) = (civil.parse().unwrap(), last.parse().unwrap());
            assert!(has_passed(&new_york, civil, last), "{civil}");
            assert!(!has_passed(&new_york, civil, last - SignedDuration::from_secs(1)), "{civil}");
        }
    }
}
