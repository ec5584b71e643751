//! A call that was not made, and until when.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tidegate_tower::in_flight::NotSent;

/// A call was held back, because it would have had to wait for longer than it may.
///
/// It has not been made. Layers of tower hand errors on in boxes; this one is found in its box by
/// `error.downcast_ref::<Held>()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    retry_after: Option<Duration>,
    reason: Reason,
}

/// Why a call has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Told,
    Paced,
    LineFull,
    NoKey,
    NoTimer,
}

impl Held {
    pub(super) fn new(reason: Reason, retry_after: Option<Duration>) -> Held {
        Held { retry_after, reason }
    }

    /// The wait after which the call could have left, or at least; `None` if nobody knows.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether it is the server that asked to be left alone.
    pub fn is_told(&self) -> bool {
        self.reason == Reason::Told
    }

    /// Whether it is the pace that this program has set itself.
    pub fn is_paced(&self) -> bool {
        self.reason == Reason::Paced
    }

    /// Whether too many were waiting already.
    pub fn is_line_full(&self) -> bool {
        self.reason == Reason::LineFull
    }
}

impl fmt::Display for Held {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.reason {
            Reason::Told => "the server asked to be left alone",
            Reason::Paced => "the pace of outgoing calls is reached",
            Reason::LineFull => "too many calls are waiting already",
            Reason::NoKey => "the request lacks what its calls are counted by",
            Reason::NoTimer => "the system starts no more threads, so nobody can be woken",
        };
        write!(out, "call held back: {why}")?;
        match self.retry_after {
            Some(wait) => write!(out, "; try again in {wait:?}"),
            None => Ok(()),
        }
    }
}

impl Error for Held {
    /// A call that was not sent says nothing to the layers around this one.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&NotSent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_why_and_until_when() {
        let told = Held::new(Reason::Told, Some(Duration::from_secs(30)));
        assert_eq!(told.to_string(), "call held back: the server asked to be left alone; try again in 30s");
        assert_eq!(told.retry_after(), Some(Duration::from_secs(30)));
        let full = Held::new(Reason::LineFull, None);
        assert_eq!(full.to_string(), "call held back: too many calls are waiting already");
        let questions = |held: Held| [held.is_told(), held.is_paced(), held.is_line_full()];
        assert_eq!(questions(told), [true, false, false]);
        assert_eq!(questions(Held::new(Reason::Paced, None)), [false, true, false]);
        assert_eq!(questions(full), [false, false, true]);
        assert_eq!(questions(Held::new(Reason::NoKey, None)), [false; 3]);
    }
}
