//! A refusal as an error, for those who go on only if they were allowed.

use std::fmt;
use std::time::Duration;

use crate::decision::{Decision, Room, Verdict};
use crate::time::Ticks;
use crate::wait::Cause;

/// An action was refused, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    decision: Decision,
    reason: Reason,
}

/// The reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The limit said no.
    Limit,
    /// Too many are waiting already.
    LineFull,
    /// Its wait was cut short.
    CutShort(Cause),
    /// There is no capacity, whoever asks.
    Overloaded,
    /// Newer ones took its place in the line.
    PushedOut,
}

impl Refusal {
    /// The limit said no.
    pub(crate) const fn of(decision: Decision) -> Refusal {
        Refusal { decision, reason: Reason::Limit }
    }

    /// The decision stands for this reason.
    pub(crate) const fn because(reason: Reason, decision: Decision) -> Refusal {
        Refusal { decision, reason }
    }

    /// There is no capacity, whoever asks: so many may be in flight, and nobody more before this wait is over.
    pub(crate) const fn overloaded(limit: u64, retry_after: Ticks) -> Refusal {
        let verdict = Verdict::Denied { retry_after };
        let decision = Decision::new(verdict, limit, Room::of_units(0), retry_after);
        Refusal { decision, reason: Reason::Overloaded }
    }

    /// The wait after which it would pass if nobody else spends meanwhile; `None` if it never can.
    pub const fn retry_after(&self) -> Option<Duration> {
        self.decision.retry_after()
    }

    /// Whether no wait would help: the cost is more than the limit can hold.
    pub const fn is_impossible(&self) -> bool {
        matches!(self.decision.verdict(), Verdict::Impossible)
    }

    /// Whether too many were waiting already.
    pub const fn is_line_full(&self) -> bool {
        matches!(self.reason, Reason::LineFull)
    }

    /// Whether it waited as long as it was willing to, in vain.
    pub const fn is_timed_out(&self) -> bool {
        matches!(self.reason, Reason::CutShort(Cause::TimedOut))
    }

    /// Whether there was no capacity for anybody, at once and without waiting. Nobody knows when a place
    /// in flight comes back: `retry_after` is then a guess, unless a guard is shut until a known time.
    pub const fn is_overloaded(&self) -> bool {
        matches!(self.reason, Reason::Overloaded)
    }

    /// Whether it waited and newer or more important ones took its place in the line.
    pub const fn is_pushed_out(&self) -> bool {
        matches!(self.reason, Reason::PushedOut)
    }

    /// Whether the store had no room to remember another subject.
    pub const fn is_store_full(&self) -> bool {
        self.decision.is_store_full()
    }

    /// The decision behind it.
    pub const fn decision(&self) -> Decision {
        self.decision
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (decision, verdict) = (&self.decision, self.decision.verdict());
        out.write_str(match (self.reason, verdict) {
            (Reason::LineFull, _) => "refused: too many are waiting already; try again later",
            (Reason::CutShort(Cause::TimedOut), _) => "refused: it was not let through in the time it had",
            (Reason::CutShort(Cause::NoTimer), _) => {
                "refused: the system starts no more threads, so nobody can be woken"
            }
            (Reason::Overloaded, _) => "refused: there is no capacity for more now; try again later",
            (Reason::PushedOut, _) => "refused: others took its place in the line; try again later",
            (Reason::Limit, Verdict::Denied { .. }) if decision.is_store_full() => {
                "refused: the store has no room for another subject; raise max_keys or max_bytes"
            }
            (Reason::Limit, Verdict::Denied { retry_after }) => {
                return write!(out, "refused: try again in {retry_after:?}");
            }
            (Reason::Limit, Verdict::Impossible) => {
                let limit = decision.limit();
                return write!(out, "refused: this cost can never pass; at most {limit} can at once");
            }
            (Reason::Limit, Verdict::Allowed { .. }) => "refused",
        })
    }
}

impl std::error::Error for Refusal {}

impl Decision {
    /// The decision, or the refusal, for `?`.
    pub const fn into_result(self) -> Result<Decision, Refusal> {
        if self.is_allowed() { Ok(self) } else { Err(Refusal::of(self)) }
    }
}

/// What a refusal can become when a function that is held to a limit has to return something.
///
/// Every `Result` whose error is made of a [`Refusal`] is such a value; other types say here what they become.
///
/// ```
/// use tidegate::{FromRefusal, Refusal};
///
/// enum Answer {
///     Page(String),
///     TooMany,
/// }
///
/// impl FromRefusal for Answer {
///     fn from_refusal(_: Refusal) -> Answer {
///         Answer::TooMany
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a refusal cannot become `{Self}`, which this function returns",
    label = "nothing says what to return when the limit refuses",
    note = "return a `Result<_, E>` where `E` is `tidegate::Refusal` or has `From<tidegate::Refusal>`",
    note = "or say what to return instead: `otherwise = |refusal| …`, or `otherwise = some_function`"
)]
pub trait FromRefusal {
    /// What is returned in place of what was refused.
    fn from_refusal(refusal: Refusal) -> Self;
}

impl<T, E: From<Refusal>> FromRefusal for Result<T, E> {
    fn from_refusal(refusal: Refusal) -> Result<T, E> {
        Err(E::from(refusal))
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::{Ask, Cost, Limit, State, Timestamp};

    #[test]
    fn a_refusal_says_when_or_why_not() {
        let limit = Limit::per_second(10).burst(2);
        let mut state = State::default();
        let mut take = |cost| limit.decide(&mut state, Timestamp::EPOCH, Ask::new(Cost::of(cost)));
        assert!(take(2).into_result().is_ok());
        let refusal = take(1).into_result().unwrap_err();
        assert_eq!(refusal.to_string(), "refused: try again in 100ms");
        assert_eq!(refusal.retry_after(), Some(Duration::from_millis(100)));
        let never = take(3).into_result().unwrap_err();
        assert_eq!(never.to_string(), "refused: this cost can never pass; at most 2 can at once");
        assert!(never.is_impossible() && !refusal.is_impossible());
        let full = take(1).store_full().into_result().unwrap_err();
        assert!(full.is_store_full() && full.decision().is_store_full() && !refusal.is_store_full());
        assert!(full.to_string().contains("max_keys"), "{full}");
    }

    #[test]
    fn each_reason_answers_only_its_own_question() {
        let decision = Limit::per_second(1).peek(&State::default(), Timestamp::EPOCH, Ask::ONE);
        let reasons = [
            (Refusal::of(decision), [false, false, false, false]),
            (Refusal::because(Reason::LineFull, decision), [true, false, false, false]),
            (Refusal::because(Reason::CutShort(Cause::TimedOut), decision), [false, true, false, false]),
            (Refusal::overloaded(7, Ticks::new(16)), [false, false, true, false]),
            (Refusal::because(Reason::PushedOut, decision), [false, false, false, true]),
            (Refusal::because(Reason::CutShort(Cause::NoTimer), decision), [false, false, false, false]),
        ];
        let texts: std::collections::HashSet<_> =
            reasons.iter().map(|(refusal, _)| refusal.to_string()).collect();
        assert_eq!(texts.len(), 6);
        for (refusal, expected) in reasons {
            let (line_full, timed_out) = (refusal.is_line_full(), refusal.is_timed_out());
            let (overloaded, pushed_out) = (refusal.is_overloaded(), refusal.is_pushed_out());
            assert_eq!([line_full, timed_out, overloaded, pushed_out], expected);
        }
    }

    #[test]
    fn without_capacity_nothing_is_left_and_the_wait_is_told() {
        let refusal = Refusal::overloaded(7, Ticks::new(16));
        assert_eq!((refusal.decision().limit(), refusal.decision().remaining()), (7, 0));
        assert_eq!(refusal.retry_after(), Some(Duration::from_nanos(1)));
        assert!(!refusal.decision().is_allowed() && !refusal.is_impossible());
    }
}
