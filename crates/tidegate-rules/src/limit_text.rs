//! The text of a limit, with the time zones of the machine.

use tidegate_core::{Limit, LimitError};

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
