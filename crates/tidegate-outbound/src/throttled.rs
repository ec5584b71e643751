//! The error of a call that was not sent.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tidegate_tower::concurrency_limit::NotSent;

/// The error of a call that would have had to wait longer than its max wait.
///
/// The call was not sent. Layers of tower pass errors on in boxes: `error.downcast_ref::<Throttled>()` finds this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttled {
    retry_after: Option<Duration>,
    reason: Reason,
}

/// The reason why a call has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Reported,
    Paced,
    LineFull,
    NoKey,
    NoTimer,
}

impl Throttled {
    pub(super) fn new(reason: Reason, retry_after: Option<Duration>) -> Throttled {
        Throttled { retry_after, reason }
    }

    /// Returns a lower bound of the wait after which the call could have left; `None` if it is unknown.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns true if the server asked for the wait.
    pub fn is_reported(&self) -> bool {
        self.reason == Reason::Reported
    }

    /// Returns true if the pace of this program caused the wait.
    pub fn is_paced(&self) -> bool {
        self.reason == Reason::Paced
    }

    /// Returns true if the queue was full.
    pub fn is_queue_full(&self) -> bool {
        self.reason == Reason::LineFull
    }
}

impl fmt::Display for Throttled {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.reason {
            Reason::Reported => "the server asked to be left alone",
            Reason::Paced => "the pace of outgoing calls is reached",
            Reason::LineFull => "too many calls are waiting already",
            Reason::NoKey => "the request lacks what its calls are counted by",
            Reason::NoTimer => "the system starts no more threads, so no waiter can be woken",
        };
        write!(out, "call held back: {why}")?;
        match self.retry_after {
            Some(wait) => write!(out, "; try again in {wait:?}"),
            None => Ok(()),
        }
    }
}

impl Error for Throttled {
    /// Marks the call as not sent, so that outer layers ignore its outcome.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&NotSent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_why_and_until_when() {
        let reported = Throttled::new(Reason::Reported, Some(Duration::from_secs(30)));
        assert_eq!(
            reported.to_string(),
            "call held back: the server asked to be left alone; try again in 30s"
        );
        assert_eq!(reported.retry_after(), Some(Duration::from_secs(30)));
        let full = Throttled::new(Reason::LineFull, None);
        assert_eq!(full.to_string(), "call held back: too many calls are waiting already");
        let questions = |held: Throttled| [held.is_reported(), held.is_paced(), held.is_queue_full()];
        assert_eq!(questions(reported), [true, false, false]);
        assert_eq!(questions(Throttled::new(Reason::Paced, None)), [false, true, false]);
        assert_eq!(questions(full), [false, false, true]);
        assert_eq!(questions(Throttled::new(Reason::NoKey, None)), [false; 3]);
    }
}
