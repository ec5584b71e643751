//! Conversions of the small types by the traits of the standard library: text, numbers and spans.

use std::convert::Infallible;
use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;
use std::time::Duration;

use crate::algorithm::Algorithm;
use crate::ask::{Cost, CostError};
use crate::decision::PermitId;
use crate::key::{IntoKey as _, Key};
use crate::limit::{Limit, LimitBuilder, LimitError, Rate};
use crate::time::{Ticks, Timestamp};

/// Parses the name of an algorithm; the reverse of its `Display`.
///
/// ```
/// use tidegate::Algorithm;
///
/// assert_eq!("sliding-log".parse(), Ok(Algorithm::SlidingLog));
/// let error = "gcra".parse::<Algorithm>().unwrap_err();
/// assert!(error.to_string().starts_with(r#"unknown algorithm "gcra"; use token-bucket"#));
/// ```
impl FromStr for Algorithm {
    type Err = AlgorithmError;

    fn from_str(name: &str) -> Result<Algorithm, AlgorithmError> {
        Algorithm::from_name(name).ok_or_else(|| AlgorithmError { name: name.into() })
    }
}

/// The error of a name that no algorithm has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AlgorithmError {
    name: Box<str>,
}

impl fmt::Display for AlgorithmError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [others @ .., last] = Algorithm::ALL;
        write!(out, "unknown algorithm {:?}; use ", self.name)?;
        others.iter().try_for_each(|algorithm| write!(out, "{algorithm}, "))?;
        write!(out, "or {last}")
    }
}

impl std::error::Error for AlgorithmError {}

/// Fails for 0, like [`Cost::new`].
impl TryFrom<u64> for Cost {
    type Error = CostError;

    fn try_from(units: u64) -> Result<Cost, CostError> {
        Cost::new(units)
    }
}

impl From<NonZeroU64> for Cost {
    fn from(units: NonZeroU64) -> Cost {
        Cost::of(units.get())
    }
}

impl From<Cost> for u64 {
    fn from(cost: Cost) -> u64 {
        cost.get()
    }
}

/// Writes the number of units.
impl fmt::Display for Cost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(out)
    }
}

/// Exact; fails if the duration exceeds [`Ticks::MAX`], about 36 years. [`Ticks::saturating_from`] cannot fail.
///
/// ```
/// use std::time::Duration;
/// use tidegate::{SECOND, Ticks};
///
/// assert_eq!(Ticks::try_from(SECOND).map(Duration::from), Ok(SECOND));
/// assert!(Ticks::try_from(Duration::MAX).is_err());
/// ```
impl TryFrom<Duration> for Ticks {
    type Error = TicksError;

    fn try_from(duration: Duration) -> Result<Ticks, TicksError> {
        Ticks::from_duration(duration).ok_or(TicksError)
    }
}

/// The error of a duration that exceeds [`Ticks::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TicksError;

impl fmt::Display for TicksError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the duration is longer than 36 years, the longest span in ticks; use a shorter one")
    }
}

impl std::error::Error for TicksError {}

/// Rounds up to whole nanoseconds, like [`Ticks::to_duration`].
impl From<Ticks> for Duration {
    fn from(span: Ticks) -> Duration {
        span.to_duration()
    }
}

/// Saturates at [`Ticks::MAX`].
impl Add for Ticks {
    type Output = Ticks;

    fn add(self, other: Ticks) -> Ticks {
        self.saturating_add(other)
    }
}

/// Saturates at [`Ticks::MAX`].
impl AddAssign for Ticks {
    fn add_assign(&mut self, other: Ticks) {
        *self = *self + other;
    }
}

/// Saturates at [`Ticks::ZERO`].
impl Sub for Ticks {
    type Output = Ticks;

    fn sub(self, other: Ticks) -> Ticks {
        self.saturating_sub(other)
    }
}

/// Saturates at [`Ticks::ZERO`].
impl SubAssign for Ticks {
    fn sub_assign(&mut self, other: Ticks) {
        *self = *self - other;
    }
}

/// Saturates at [`Timestamp::LAST`].
impl Add<Ticks> for Timestamp {
    type Output = Timestamp;

    fn add(self, span: Ticks) -> Timestamp {
        self.saturating_add(span)
    }
}

/// Saturates at [`Timestamp::LAST`].
impl AddAssign<Ticks> for Timestamp {
    fn add_assign(&mut self, span: Ticks) {
        *self = *self + span;
    }
}

/// Saturates at [`Timestamp::EPOCH`].
impl Sub<Ticks> for Timestamp {
    type Output = Timestamp;

    fn sub(self, span: Ticks) -> Timestamp {
        self.saturating_sub(span)
    }
}

/// Returns the span between two instants, or zero if the second one is later, like [`Timestamp::since`].
impl Sub for Timestamp {
    type Output = Ticks;

    fn sub(self, earlier: Timestamp) -> Ticks {
        self.since(earlier)
    }
}

/// Writes the parts, escaped and separated by `, `, for logs. Different keys can have one text; to store or compare a
/// key, use [`Key::as_bytes`].
///
/// ```
/// use tidegate::Key;
///
/// assert_eq!(Key::new(("192.0.2.7", "login")).to_string(), "192.0.2.7, login");
/// ```
impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut result, mut separator) = (Ok(()), "");
        self.each_part(&mut |part| {
            if result.is_ok() {
                result = write!(out, "{separator}{}", part.escape_ascii());
                separator = ", ";
            }
        });
        result
    }
}

/// Returns the encoded bytes, like [`Key::as_bytes`].
impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// Writes the number in hexadecimal digits, without leading zeros.
///
/// ```
/// use tidegate::PermitId;
///
/// let permit = PermitId::from_number(0xfeed).expect("not zero");
/// assert_eq!(permit.to_string(), "feed");
/// assert_eq!("feed".parse(), Ok(permit));
/// ```
impl fmt::Display for PermitId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:x}", self.number())
    }
}

/// Parses 1 to 16 hexadecimal digits; the reverse of `Display`. Zero is no permit.
impl FromStr for PermitId {
    type Err = PermitIdError;

    fn from_str(text: &str) -> Result<PermitId, PermitIdError> {
        let is_hexadecimal = text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u64::from_str_radix(text, 16).ok().filter(|_| is_hexadecimal);
        number.and_then(PermitId::from_number).ok_or(PermitIdError)
    }
}

/// The error of a text that is not the number of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermitIdError;

impl fmt::Display for PermitIdError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("not a permit; use the 1 to 16 hexadecimal digits that the permit was written as")
    }
}

impl std::error::Error for PermitIdError {}

/// Implements the conversions from text for a type that is parsed.
macro_rules! from_text {
    ($($type:ty)+) => {$(
        /// Parses the text, like [`str::parse`].
        impl TryFrom<&str> for $type {
            type Error = LimitError;

            fn try_from(text: &str) -> Result<$type, LimitError> {
                text.parse()
            }
        }

        /// Parses the text, like [`str::parse`].
        impl TryFrom<&String> for $type {
            type Error = LimitError;

            fn try_from(text: &String) -> Result<$type, LimitError> {
                text.parse()
            }
        }

        /// Parses the text, like [`str::parse`].
        impl TryFrom<String> for $type {
            type Error = LimitError;

            fn try_from(text: String) -> Result<$type, LimitError> {
                text.parse()
            }
        }
    )+};
}

from_text! { Limit Rate }

/// Validates the numbers, like [`LimitBuilder::build`].
impl TryFrom<LimitBuilder> for Limit {
    type Error = LimitError;

    fn try_from(builder: LimitBuilder) -> Result<Limit, LimitError> {
        builder.build()
    }
}

/// A limit that is a limit already cannot be invalid, so functions that take `impl TryInto<Limit>` accept it as well.
impl From<Infallible> for LimitError {
    fn from(never: Infallible) -> LimitError {
        match never {}
    }
}
