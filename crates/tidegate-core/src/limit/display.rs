//! The text of a limit: the output parses as the same limit.
//!
//! Only settings that were given are printed, in a fixed order. A token bucket prints no algorithm, because it is the
//! default.

use std::fmt;
use std::time::Duration;

use super::Limit;
use super::builder::{Burst, DelayAfter, WrittenRate};
use super::text::{ALIGNMENTS, DAYS_OF_WEEK, MODES, PAYS, TIME_UNITS};
use crate::algorithm::Algorithm;
use crate::time::{CalendarPeriods, CalendarUnit, TimeZone};

/// Prints the period in its largest whole unit: 60 s as `m`, 90 s as `90s`.
impl fmt::Display for WrittenRate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            WrittenRate::Unlimited => out.write_str("unlimited"),
            WrittenRate::Calendar { amount, periods } => write!(out, "{amount}/{}", periods.unit().name()),
            WrittenRate::Per { amount, period } => match Span(period).in_units() {
                (1, unit) => write!(out, "{amount}/{unit}"),
                (number, unit) => write!(out, "{amount}/{number}{unit}"),
            },
        }
    }
}

/// Prints the canonical text: equal limits print the same text, and other limits print another one.
impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let draft = self.draft();
        write!(out, "{}", draft.rate)?;
        if let WrittenRate::Calendar { periods, .. } = draft.rate {
            return display_calendar(out, &periods, draft.max_debt);
        }
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let burst = draft.burst.map(|burst| match burst {
            Burst::Units(units) => units.to_string(),
            Burst::Span(span) => Span(span).to_string(),
        });
        let delay_after = draft.delay_after.map(|after| match after {
            DelayAfter::All => "all".to_owned(),
            DelayAfter::Units(units) => units.to_string(),
        });
        for (word, value) in [
            ("burst", burst),
            ("queue", number(draft.queue)),
            ("delay-after", delay_after),
            ("slots", number(draft.slots)),
            ("mode", name_of(draft.mode, MODES)),
            ("align", name_of(draft.alignment, ALIGNMENTS)),
            ("warm-up", draft.warm_up.map(|length| Span(length).to_string())),
            ("cold-factor", number(draft.cold_factor)),
            ("pay", name_of(draft.pay, PAYS)),
            ("max-debt", number(draft.max_debt)),
        ] {
            if let Some(value) = value {
                write!(out, " {word} {value}")?;
            }
        }
        if draft.count_denied {
            out.write_str(" count-denied")?;
        }
        if draft.algorithm == Algorithm::TokenBucket { Ok(()) } else { write!(out, " {}", draft.algorithm) }
    }
}

/// Prints the rest of a calendar limit. The zone UTC and the usual first day are not printed.
fn display_calendar(
    out: &mut fmt::Formatter<'_>,
    periods: &CalendarPeriods,
    max_debt: Option<u64>,
) -> fmt::Result {
    write!(out, " {}", Algorithm::Calendar)?;
    if periods.zone() != TimeZone::UTC {
        write!(out, " {}", periods.zone())?;
    }
    match (periods.unit(), periods.set_first_day()) {
        (CalendarUnit::Week, Some((_, day))) => write!(out, " from {}", DAYS_OF_WEEK[usize::from(day)])?,
        (CalendarUnit::Year, Some((month, day))) => write!(out, " from {month:02}-{day:02}")?,
        (_, Some((_, day))) => write!(out, " from {day}")?,
        (_, None) => {}
    }
    max_debt.map_or(Ok(()), |units| write!(out, " max-debt {units}"))
}

/// Returns the word of a choice of two.
fn name_of<T: PartialEq>(chosen: Option<T>, choices: [(&str, T); 2]) -> Option<String> {
    let chosen = chosen?;
    choices.into_iter().find(|(_, choice)| *choice == chosen).map(|(name, _)| name.to_owned())
}

/// A span in the largest unit that divides it.
struct Span(Duration);

impl Span {
    /// Returns the number of the largest unit that divides the span, and that unit.
    fn in_units(&self) -> (u128, &'static str) {
        let micros = self.0.as_micros();
        let exact = |unit: &&(&str, u64)| micros % u128::from(unit.1) == 0;
        let &(unit, scale) = TIME_UNITS.iter().rev().find(exact).unwrap_or(&TIME_UNITS[0]);
        (micros / u128::from(scale), unit)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = self.in_units();
        write!(out, "{number}{unit}")
    }
}
