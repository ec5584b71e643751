//! The error of a call that was not sent.
//!
//! It is an error, not a response: a client that receives a 429 would report a denial by the server, and there was
//! none.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tidegate_tower::concurrency_limit::NotSent;

/// The error of a call that would have had to wait longer than its max wait.
///
/// The call was not sent. Layers of tower pass errors on in boxes: `error.downcast_ref::<Throttled>()` finds this one.
///
/// ```
/// use std::time::Duration;
///
/// use tidegate::outbound::{BoxError, Throttled};
///
/// /// Returns the time to the next try of a call that was held back, and no time for any other error.
/// fn next_try(error: &BoxError) -> Option<Duration> {
///     error.downcast_ref::<Throttled>()?.retry_after()
/// }
/// # let _ = next_try;
/// ```
///
/// [`NotSent`] is its source, so the layers of `tidegate::tower` do not count it as a failure of the server.
#[doc(alias = "rate limited")]
#[doc(alias = "backpressure")]
#[doc(alias = "too many requests")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttled {
    retry_after: Option<Duration>,
    reason: Reason,
}

/// The reason why a call has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// A server asked for a hold, or its reported quota is used up.
    Reported,
    /// The pace of this program is reached.
    Paced,
    /// The queue has no room for another waiter.
    LineFull,
    /// The key of the request is missing, and its extractor denies that.
    NoKey,
    /// The system could not start the timer thread.
    NoTimer,
}

impl Throttled {
    pub(super) fn new(reason: Reason, retry_after: Option<Duration>) -> Throttled {
        Throttled { retry_after, reason }
    }

    /// Returns a lower bound of the wait after which the call could have left; `None` if it is unknown.
    ///
    /// Other calls that wait may extend it: a call that is made again joins the end of the queue.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns true if the server asked for the wait.
    ///
    /// It is true for a hold (`Retry-After`) and for a remaining quota of zero. Retry later, or use another server.
    pub fn is_reported(&self) -> bool {
        self.reason == Reason::Reported
    }

    /// Returns true if the pace of this program caused the wait.
    ///
    /// More calls are made than the [`pace`](crate::OutboundLimitLayer::pace) allows: make fewer, or allow a longer max
    /// wait.
    pub fn is_paced(&self) -> bool {
        self.reason == Reason::Paced
    }

    /// Returns true if the queue was full.
    ///
    /// The capacity is that of [`max_waiters`](crate::OutboundLimitLayer::max_waiters). The call did not wait.
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
