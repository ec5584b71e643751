//! The errors of a limit: the fault, its place and the remedy.
//!
//! A [`Problem`] is a plain code, which a `const fn` can return: so an invalid literal does not compile, and the
//! compiler prints the message. A [`LimitError`] is built at run time, owns the text, and points at the invalid part.

use std::fmt;
use std::ops::Range;

use super::builder::{LimitBuilder, WrittenRate};
use crate::algorithm::concurrency::MAX_IN_FLIGHT;
use crate::algorithm::pacer::MAX_COLD_FACTOR;
use crate::algorithm::sliding_log::MAX_ENTRIES;
use crate::algorithm::sliding_window::MAX_SLOTS;

/// Numbers that do not make a valid limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    ZeroAmount,
    ZeroPeriod,
    PeriodTooLong,
    NotWhole(Field),
    TooFast,
    ZeroBurst,
    BurstTooLong,
    UnlimitedBurst,
    QueueTooLong,
    MaxDebtTooLong,
    LogTooLong,
    SlotsOutOfRange,
    SlotsTooFine,
    SlotsWithEstimate,
    CountTooLarge,
    BurstIsTime,
    BurstWithWarmUp,
    WarmUpOutOfRange,
    ColdFactorOutOfRange,
    TooSlowToWarmUp,
    TooManyInFlight,
    NotFor(Field),
}

/// The part of a limit that a problem concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Rate,
    Burst,
    Queue,
    DelayAfter,
    Slots,
    Mode,
    Alignment,
    WarmUp,
    ColdFactor,
    Pay,
    MaxDebt,
    CountDenied,
    /// The unit of a calendar.
    Periods,
}

impl Problem {
    /// Returns the part of the limit to point at.
    pub(super) const fn field(self) -> Field {
        match self {
            Problem::ZeroAmount | Problem::ZeroPeriod | Problem::PeriodTooLong | Problem::TooFast => {
                Field::Rate
            }
            Problem::LogTooLong | Problem::TooManyInFlight | Problem::TooSlowToWarmUp => Field::Rate,
            Problem::ZeroBurst | Problem::BurstTooLong | Problem::UnlimitedBurst => Field::Burst,
            Problem::BurstIsTime | Problem::BurstWithWarmUp => Field::Burst,
            Problem::QueueTooLong => Field::Queue,
            Problem::MaxDebtTooLong | Problem::CountTooLarge => Field::MaxDebt,
            Problem::SlotsOutOfRange | Problem::SlotsTooFine | Problem::SlotsWithEstimate => Field::Slots,
            Problem::WarmUpOutOfRange => Field::WarmUp,
            Problem::ColdFactorOutOfRange => Field::ColdFactor,
            Problem::NotFor(field) | Problem::NotWhole(field) => field,
        }
    }

    /// Returns the fault and the remedy, without the numbers: a constant can contain no more.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Problem::ZeroAmount => "an amount of 0 admits nothing; use at least 1",
            Problem::ZeroPeriod => "a period of 0 has no rate; use at least 1us",
            Problem::PeriodTooLong => "the period is longer than 10 years; use at most 3650d",
            Problem::NotWhole(_) => "times are whole microseconds; round it to 1us",
            Problem::TooFast => {
                "the rate is above 10,000,000 per second; use a lower rate, or count in larger units"
            }
            Problem::ZeroBurst => "a burst of 0 admits nothing; use at least 1",
            Problem::BurstTooLong => {
                "the burst takes more than 10 years to earn; use a smaller burst or a higher rate"
            }
            Problem::UnlimitedBurst => {
                "an unlimited pacer has no permits to count; give its burst as a time, as in burst 1s"
            }
            Problem::QueueTooLong => {
                "the queue takes more than 10 years to drain; use a shorter queue or a higher rate"
            }
            Problem::MaxDebtTooLong => "the max-debt takes more than 10 years to repay; use a smaller one",
            Problem::LogTooLong => {
                "a sliding-log remembers every action, at most 1,048,576; use sliding-window, which needs constant memory"
            }
            Problem::SlotsOutOfRange => "a period is cut into 1 to 1,024 slots; 16 is a good number",
            Problem::WarmUpOutOfRange => "a warm-up lasts from 1us to 30d",
            Problem::ColdFactorOutOfRange => "a cold-factor is from 1 to 100; 3 is a good number",
            Problem::TooSlowToWarmUp => "the rate is too slow to warm up; use at least 1/18d, or no warm-up",
            Problem::TooManyInFlight => {
                "at most 1,048,576 can be in flight for one key; use fewer, or several keys"
            }
            Problem::BurstIsTime => "only a pacer's burst is a time; give the burst as a number",
            Problem::BurstWithWarmUp => "a pacer has a burst or a warm-up, not both; leave one of them out",
            Problem::SlotsWithEstimate => "mode estimate has two slots of a whole period; leave slots out",
            Problem::SlotsTooFine => {
                "the period is too short for so many slots; use fewer slots, or a longer period"
            }
            Problem::CountTooLarge => "a window counts to at most 2^62, max-debt included; use a smaller one",
            Problem::NotFor(field) => field.belongs_to(),
        }
    }
}

// The messages above contain these bounds.
const _: () = assert!(MAX_ENTRIES == 1_048_576 && MAX_IN_FLIGHT == 1_048_576);
const _: () = assert!(MAX_SLOTS == 1024 && MAX_COLD_FACTOR == 100);

impl Field {
    /// All settings beside the rate: the word in the text of a limit, and an example.
    pub(super) const OPTIONS: [(Field, &'static str, &'static str); 11] = [
        (Field::Burst, "burst", "burst 20"),
        (Field::Queue, "queue", "queue 50"),
        (Field::DelayAfter, "delay-after", "delay-after all"),
        (Field::Slots, "slots", "slots 16"),
        (Field::Mode, "mode", "mode estimate"),
        (Field::Alignment, "align", "align first-hit"),
        (Field::WarmUp, "warm-up", "warm-up 4s"),
        (Field::ColdFactor, "cold-factor", "cold-factor 3"),
        (Field::Pay, "pay", "pay self"),
        (Field::MaxDebt, "max-debt", "max-debt 20"),
        (Field::CountDenied, "count-denied", "count-denied"),
    ];

    /// Returns the message of a setting that the algorithm does not have.
    const fn belongs_to(self) -> &'static str {
        match self {
            Field::Rate => "only a pacer can be unlimited; give a rate such as 10/s",
            Field::Burst => "burst belongs to token-bucket and pacer; leave it out, or name one of them",
            Field::Queue => "queue belongs to leaky-bucket; leave it out, or add leaky-bucket",
            Field::DelayAfter => "delay-after belongs to leaky-bucket; leave it out, or add leaky-bucket",
            Field::Slots => "slots belong to sliding-window; leave them out, or add sliding-window",
            Field::Mode => "mode belongs to sliding-window; leave it out, or add sliding-window",
            Field::Alignment => "align belongs to fixed-window; leave it out, or add fixed-window",
            Field::WarmUp => "warm-up belongs to pacer; leave it out, or add pacer",
            Field::ColdFactor => "cold-factor goes with warm-up; leave it out, or add a warm-up",
            Field::Pay => "pay belongs to pacer; leave it out, or add pacer",
            Field::MaxDebt => {
                "max-debt belongs to token-bucket, leaky-bucket, fixed-window, sliding-window and calendar; leave it out"
            }
            Field::Periods => {
                "only a calendar has an amount per hour, day, week, month or year; write 1000/day calendar"
            }
            Field::CountDenied => "count-denied belongs to sliding-log; leave it out, or add sliding-log",
        }
    }
}

/// The error of an invalid text, or of invalid numbers.
///
/// Displays as one line: the text, the fault and the remedy. With `{:#}` two more lines show the text with carets under
/// the place. The grammar is that of the [text of a limit](crate::Limit#text-of-a-limit).
///
/// ```
/// use tidegate::Limit;
///
/// let error = "10/s burst many".parse::<Limit>().unwrap_err();
/// assert_eq!((error.place(), error.column()), (11..15, 12));
/// eprintln!("{error:#}"); // two more lines, with carets under `many`
/// ```
#[doc(alias("parse error", "ParseLimitError"))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitError {
    text: String,
    place: Range<usize>,
    what: String,
}

impl LimitError {
    /// Creates the error of a text; the place is a byte range of it.
    pub(super) fn in_text(text: &str, place: Range<usize>, what: String) -> LimitError {
        LimitError { text: text.to_owned(), place, what }
    }

    /// Creates the error of numbers, which names them in place of a text.
    pub(super) fn of_numbers(draft: &LimitBuilder, problem: Problem) -> LimitError {
        let text = match draft.rate {
            WrittenRate::Per { amount, period } => format!("{amount} per {period:?} {}", draft.algorithm),
            WrittenRate::Calendar { .. } => format!("{} {}", draft.rate, draft.algorithm),
            WrittenRate::Unlimited => draft.algorithm.to_string(),
        };
        LimitError { text, place: 0..0, what: problem.as_str().to_owned() }
    }

    /// Returns the invalid part of the text, as a byte range; empty for numbers.
    pub fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    /// Returns the column of the first invalid character, counted from 1.
    ///
    /// Characters are counted, not bytes, as in an editor.
    pub fn column(&self) -> usize {
        self.text.get(..self.place.start).map_or(0, |before| before.chars().count()) + 1
    }

    /// Returns the fault and the remedy.
    ///
    /// Use it where the text is shown beside the error; `Display` repeats the text.
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "limit \"{}\": {}", self.text.escape_debug(), self.what)?;
        if out.alternate() && !self.place.is_empty() {
            let wrong = self.text.get(self.place.clone()).map_or(1, |wrong| wrong.chars().count());
            let line: String = self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            write!(out, "\n  {line}\n  {:indent$}{:^<wrong$}", "", "", indent = self.column() - 1)?;
        }
        Ok(())
    }
}

impl std::error::Error for LimitError {}
