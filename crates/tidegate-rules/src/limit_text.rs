//! The text of a limit, with the time zones of the machine.

use tidegate_core::{Limit, LimitError, TimeZone};

use crate::schedule::calendar_zone;

/// Parses the [text of a limit](Limit#text-of-a-limit) with all time zones of the IANA database.
///
/// `text.parse()` knows UTC only, because the crate `tidegate-core` has no database of time zones. That of the machine
/// takes precedence over the built-in one. A zone that was found keeps its offsets for the rest of the process.
///
/// ```
/// use tidegate::rules::parse_limit;
///
/// let limit = parse_limit("1000/day calendar europe/berlin")?;
/// assert_eq!(limit.to_string(), "1000/day calendar Europe/Berlin");
/// let error = parse_limit("1000/day calendar Europe/Belrin").unwrap_err();
/// assert!(error.what().ends_with("is no time zone; write \"Europe/Berlin\""));
/// # Ok::<(), tidegate::LimitError>(())
/// ```
#[doc(alias("time zone", "calendar", "quota"))]
pub fn parse_limit(text: &str) -> Result<Limit, LimitError> {
    Limit::parse_with(text, calendar_zone)
}

/// Parses the text of a limit that was valid where it was written, as [`parse_limit`] does. A time zone that this machine
/// does not have is kept by its name: [`TimeZone::is_resolved`] returns false then, and the limit must not decide.
///
/// ```
/// use tidegate::rules::parse_kept_limit;
///
/// let limit = parse_kept_limit("1000/day calendar Mars/Olympus_Mons")?;
/// assert_eq!(limit.to_string(), "1000/day calendar Mars/Olympus_Mons");
/// assert!(limit.periods().is_some_and(|periods| !periods.zone().is_resolved()));
/// # Ok::<(), tidegate::LimitError>(())
/// ```
pub fn parse_kept_limit(text: &str) -> Result<Limit, LimitError> {
    let by_name =
        |name: &str| calendar_zone(name).or_else(|what| TimeZone::unresolved(name).map_err(|_| what));
    // The first error has the remedy.
    parse_limit(text).or_else(|error| Limit::parse_with(text, by_name).map_err(|_| error))
}
