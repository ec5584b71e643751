//! The errors of a store, most of them of a remote store.
//!
//! A caller needs one fact above all: was the cost charged? Only [`StoreError::outcome_unknown`] leaves that open. A
//! take with this error may be charged zero times or once, and never twice, because stores do not repeat it.
//!
//! | error | charged | a retry is safe | means |
//! |---|---|---|---|
//! | unavailable | no | yes | not reached, or rejected |
//! | timeout | no | yes | not sent before the deadline |
//! | outcome unknown | perhaps | no | sent, and no reply |
//! | unfit | no | yes, but useless | the request can never be decided |

use std::error::Error;
use std::fmt;

use super::limit_table::{MAX_LIMITS, Unlisted};

/// An error of a store that could not decide.
///
/// ```
/// use tidegate::StoreError;
///
/// let error = StoreError::outcome_unknown("connection reset");
/// assert!(!error.is_retryable() && !error.is_timeout());
/// ```
#[doc(alias = "retry")]
#[doc(alias = "timeout")]
#[doc(alias = "unavailable")]
#[derive(Debug)]
#[non_exhaustive]
pub struct StoreError {
    kind: Kind,
    source: Box<dyn Error + Send + Sync>,
}

/// The four kinds, which callers distinguish by the methods of [`StoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unavailable,
    Timeout,
    OutcomeUnknown,
    Unfit,
}

impl StoreError {
    /// Creates an error for a store that was not reached, or that rejected the request: nothing was spent.
    pub fn unavailable(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError { kind: Kind::Unavailable, source: source.into() }
    }

    /// Creates an error for a request that was not sent before its deadline: nothing was spent.
    pub fn timeout(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError { kind: Kind::Timeout, source: source.into() }
    }

    /// Creates an error for a request that was sent and got no reply: it may have been spent.
    pub fn outcome_unknown(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError { kind: Kind::OutcomeUnknown, source: source.into() }
    }

    /// Creates an error for a request that the store can never decide, for any caller and at any time: nothing was
    /// spent.
    pub fn unfit(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError { kind: Kind::Unfit, source: source.into() }
    }

    /// Returns true if the request itself is at fault, so that the store has not failed. It is no reason for a
    /// fallback, a circuit breaker or an alarm.
    pub fn is_unfit(&self) -> bool {
        self.kind == Kind::Unfit
    }

    /// Returns true if the deadline passed before the request was sent.
    pub fn is_timeout(&self) -> bool {
        self.kind == Kind::Timeout
    }

    /// Returns true if a retry is safe: nothing can have been spent.
    #[doc(alias = "idempotent")]
    pub fn is_retryable(&self) -> bool {
        self.kind != Kind::OutcomeUnknown
    }
}

impl From<Unlisted> for StoreError {
    fn from(_: Unlisted) -> StoreError {
        StoreError::unfit(format!(
            "more than {MAX_LIMITS} limits are in use, and a reset by key does not know all of them; name the limit to reset"
        ))
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.kind {
            Kind::Unavailable => "the store cannot be reached",
            Kind::Timeout => "the store did not answer in time",
            Kind::OutcomeUnknown => "the store did not say whether it has spent",
            Kind::Unfit => "the store cannot answer this",
        })
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    #[test]
    fn only_an_unknown_outcome_forbids_to_ask_again() {
        let errors = [
            StoreError::unavailable("a"),
            StoreError::timeout("b"),
            StoreError::outcome_unknown("c"),
            StoreError::unfit("d"),
        ];
        assert_eq!(errors.each_ref().map(StoreError::is_retryable), [true, true, false, true]);
        assert_eq!(errors.each_ref().map(StoreError::is_timeout), [false, true, false, false]);
        assert_eq!(errors.each_ref().map(StoreError::is_unfit), [false, false, false, true]);
        let sources = errors.each_ref().map(|error| error.source().unwrap().to_string());
        assert_eq!(sources, ["a", "b", "c", "d"]);
    }
}
