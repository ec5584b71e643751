//! A rate: an amount per period, as at the start of a limit.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::builder::WrittenRate as Written;
use super::{LimitBuilder, LimitError, text};
use crate::algorithm::Algorithm;

/// An amount per period, or unlimited; valid by construction.
///
/// Its text is the `RATE` in the [text of a limit](crate::Limit#text-of-a-limit).
///
/// ```
/// use tidegate::{Rate, SECOND};
///
/// let rate: Rate = "10/s".parse()?;
/// assert_eq!(rate, Rate::new(10, SECOND)?);
/// assert_eq!(rate.to_string(), "10/s");
/// let error = "10/sec".parse::<Rate>().unwrap_err();
/// assert!(error.to_string().contains("unknown unit"));
/// # Ok::<(), tidegate::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate(pub(super) Written);

impl Rate {
    /// The unlimited rate.
    pub const UNLIMITED: Rate = Rate(Written::Unlimited);

    /// Creates a rate of so many per period. Fails if the amount or the period is zero, or the rate is out of range.
    pub fn new(amount: u64, period: Duration) -> Result<Rate, LimitError> {
        let written = Written::Per { amount, period };
        LimitBuilder::with_rate(Algorithm::Pacer, written).build().map(|_| Rate(written))
    }
}

impl LimitBuilder {
    /// Returns the same draft with another rate.
    pub(crate) const fn with_other_rate(self, rate: Rate) -> LimitBuilder {
        LimitBuilder { rate: rate.0, ..self }
    }
}

/// Parses the `RATE` of a [text of a limit](crate::Limit#text-of-a-limit), such as `10/s` or `unlimited`.
impl FromStr for Rate {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Rate, LimitError> {
        text::parse(text, text::Reader::rate).map(Rate)
    }
}

/// Prints the canonical text, with the period in the largest unit that divides it: `30/60s` as `30/m`.
impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::SECOND;

    #[test]
    fn a_rate_is_checked_like_the_beginning_of_a_limit() {
        assert_eq!("30/60s".parse::<Rate>().unwrap().to_string(), "30/m");
        assert_eq!("unlimited".parse::<Rate>().unwrap(), Rate::UNLIMITED);
        assert_eq!(Rate::UNLIMITED.to_string(), "unlimited");
        for wrong in ["", "10", "0/s", "10/s burst 3", "10/0s", "99999999/s", "10/s 10/s"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
        assert!(Rate::new(0, SECOND).is_err());
        assert!(Rate::new(10, Duration::ZERO).is_err());
        assert!(Rate::new(10, Duration::MAX).is_err());
    }

    #[test]
    fn an_error_in_a_rate_points_at_the_place() {
        let error = "10/s burst 3".parse::<Rate>().unwrap_err();
        assert!(error.to_string().contains("burst"), "{error}");
    }
}
