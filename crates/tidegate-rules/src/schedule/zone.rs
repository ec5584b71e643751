//! A time zone by its IANA name, and its wall clock in instants.

use std::iter;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{self, TimeZone, TimeZoneDatabase};

use crate::config::distance;

/// How many letters of a name may be wrong, and how many right ones stand against each wrong one.
const MAX_DISTANCE: usize = 2;
const LETTERS_PER_SLIP: usize = 4;

/// The zone of this name, in any case: as the machine knows it, which may be newer, else as the program does.
pub(crate) fn time_zone(name: &str) -> Result<TimeZone, String> {
    let found = tz::db().get(name).or_else(|_| TimeZoneDatabase::bundled().get(name));
    match found.ok().filter(|zone| !zone.is_unknown()) {
        Some(zone) => Ok(zone),
        None => Err(match nearest(name) {
            Some(meant) => format!("is no time zone; write \"{meant}\""),
            None => "is no time zone; write a name such as \"Europe/Berlin\", or \"UTC\"".to_owned(),
        }),
    }
}

/// The first instant at which a clock of the zone shows this time or a later one; none beyond what is known of time.
///
/// Looked for where it may be, so it does not matter that jiff 0.2 once sees a fold that never was (Nuuk, 2023).
pub(super) fn instant(zone: &TimeZone, civil: DateTime) -> Option<i64> {
    let ambiguous = zone.to_ambiguous_timestamp(civil);
    let (earlier, later) = (ambiguous.earlier().ok()?, ambiguous.later().ok()?);
    let jumps = zone.following(earlier).map(|change| change.timestamp());
    iter::once(earlier)
        .chain(jumps.take_while(|jump| *jump < later))
        .chain(iter::once(later))
        .find(|instant| zone.to_datetime(*instant) >= civil)
        .map(Timestamp::as_second)
}

/// The last second of which anything is known, and one more.
pub(super) fn end_of_time() -> i64 {
    Timestamp::MAX.as_second() + 1
}

/// The name that is like this one, or whose city is; zones such as `Etc/GMT+8` count west and are never meant.
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
    fn anything_else_is_told_what_would_do() {
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
    fn a_skipped_time_is_the_jump_and_a_double_one_its_first() {
        for (zone, civil, expected) in [
            ("America/New_York", "2026-03-08T01:59:59", "2026-03-08T06:59:59Z"),
            ("America/New_York", "2026-03-08T02:00:00", "2026-03-08T07:00:00Z"),
            ("America/New_York", "2026-03-08T02:59:59", "2026-03-08T07:00:00Z"),
            ("America/New_York", "2026-03-08T03:00:01", "2026-03-08T07:00:01Z"),
            ("America/New_York", "2026-11-01T01:00:00", "2026-11-01T05:00:00Z"),
            ("America/New_York", "2026-11-01T01:59:59", "2026-11-01T05:59:59Z"),
            ("America/New_York", "2026-11-01T02:00:00", "2026-11-01T07:00:00Z"),
            ("Australia/Lord_Howe", "2026-10-04T02:29:59", "2026-10-03T15:30:00Z"),
            ("Australia/Lord_Howe", "2026-04-05T01:30:00", "2026-04-04T14:30:00Z"),
            ("Australia/Lord_Howe", "2026-04-05T02:00:00", "2026-04-04T15:30:00Z"),
            ("Pacific/Apia", "2011-12-30T00:00:00", "2011-12-30T10:00:00Z"),
            ("Pacific/Apia", "2011-12-30T23:59:59", "2011-12-30T10:00:00Z"),
        ] {
            let expected: Timestamp = expected.parse().unwrap();
            let found = instant(&time_zone(zone).unwrap(), civil.parse().unwrap());
            assert_eq!(found, Some(expected.as_second()), "{civil} {zone}");
        }
    }

    /// The bundled data of Nuuk end with a change from one name of an offset to another.
    #[test]
    fn a_change_of_rules_that_changes_no_clock_is_none() {
        let nuuk = TimeZoneDatabase::bundled().get("America/Nuuk").unwrap();
        let expected: Timestamp = "2023-10-29T01:40:00Z".parse().unwrap();
        assert_eq!(instant(&nuuk, "2023-10-28T23:40:00".parse().unwrap()), Some(expected.as_second()));
    }
}
