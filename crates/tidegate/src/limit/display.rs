//! A limit back to text: what is printed reads back as the same limit.

use std::fmt;
use std::time::Duration;

use super::Limit;
use super::draft::{Alignment, Burst, DelayAfter, Pay, Rate, WindowMode};
use super::problem::Field;
use super::text::TIME_UNITS;
use crate::algorithm::Algorithm;

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Rate::Unlimited => out.write_str("unlimited"),
            Rate::Per { amount, period } => match Span(period).in_units() {
                (1, unit) => write!(out, "{amount}/{unit}"),
                (number, unit) => write!(out, "{amount}/{number}{unit}"),
            },
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let draft = self.draft();
        write!(out, "{}", draft.rate)?;
        match draft.burst {
            Some(Burst::Units(units)) => write!(out, " burst {units}")?,
            Some(Burst::Span(span)) => write!(out, " burst {}", Span(span))?,
            None => {}
        }
        let number = |out: &mut fmt::Formatter<'_>, field: Field, value: Option<u64>| match value {
            Some(value) => write!(out, " {} {value}", field.word()),
            None => Ok(()),
        };
        number(out, Field::Queue, draft.queue)?;
        match draft.delay_after {
            Some(DelayAfter::All) => out.write_str(" delay-after all")?,
            Some(DelayAfter::Units(units)) => write!(out, " delay-after {units}")?,
            None => {}
        }
        number(out, Field::Slots, draft.slots)?;
        let choice = |out: &mut fmt::Formatter<'_>, said: Option<&str>| match said {
            Some(said) => write!(out, " {said}"),
            None => Ok(()),
        };
        choice(
            out,
            draft.mode.map(|mode| if mode == WindowMode::Strict { "mode strict" } else { "mode estimate" }),
        )?;
        choice(
            out,
            draft.alignment.map(|a| if a == Alignment::Epoch { "align epoch" } else { "align first-hit" }),
        )?;
        if let Some(length) = draft.warm_up {
            write!(out, " warm-up {}", Span(length))?;
        }
        number(out, Field::ColdFactor, draft.cold_factor)?;
        choice(out, draft.pay.map(|pay| if pay == Pay::Next { "pay next" } else { "pay self" }))?;
        number(out, Field::MaxDebt, draft.max_debt)?;
        choice(out, draft.count_denied.then_some("count-denied"))?;
        if draft.algorithm == Algorithm::TokenBucket { Ok(()) } else { write!(out, " {}", draft.algorithm) }
    }
}

/// A span in the largest unit that divides it.
struct Span(Duration);

impl Span {
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
