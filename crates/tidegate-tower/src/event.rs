//! One event for each decision of a layer, for metrics and logs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::answer::{DeniedRequest, Reason};
use crate::head::Head;

/// A decision of a layer about one request, as [`RateLimitLayer::on_decision`](crate::RateLimitLayer::on_decision)
/// and the same method of the other layers pass it on.
///
/// Fields that a layer does not know are `None`; new fields may be added.
#[doc(alias = "metrics")]
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DecisionEvent<'a> {
    /// The head of the request, for labels such as the method.
    pub head: Head<'a>,
    /// The decision.
    pub result: DecisionResult,
    /// The name of the limit: that of [`RateLimitLayer::named`](crate::RateLimitLayer::named), or of the rule that was
    /// decisive. `None` if no limit decided, and in the layers that have none.
    pub limit: Option<&'a str>,
    /// The remaining quota after the decision; for a concurrency limit the number of free permits.
    pub remaining: Option<u64>,
    /// The time to the next try of a denied request, if it is known and a retry can pass.
    pub retry_after: Option<Duration>,
}

/// The result of a [`DecisionEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecisionResult {
    /// The request was allowed at once.
    Allowed,
    /// The request was allowed after a wait: in a queue, or for the delay that a rule has set.
    Waited,
    /// The request was denied, at once or after a wait.
    Denied(Reason),
}

impl<'a> DecisionEvent<'a> {
    /// Returns the event of an allowed request.
    pub(crate) fn allowed(head: Head<'a>, result: DecisionResult) -> DecisionEvent<'a> {
        DecisionEvent { head, result, limit: None, remaining: None, retry_after: None }
    }

    /// Returns the event of a denied request.
    pub(crate) fn denied(refused: &DeniedRequest<'a>) -> DecisionEvent<'a> {
        DecisionEvent {
            head: refused.head(),
            result: DecisionResult::Denied(refused.reason()),
            limit: refused.policy(),
            remaining: refused.decision().map(|decision| decision.remaining()),
            retry_after: refused.retry_after(),
        }
    }

    /// Returns true if the request was denied.
    pub fn is_denied(&self) -> bool {
        matches!(self.result, DecisionResult::Denied(_))
    }
}

/// The function of a program that receives events.
type Observer = dyn Fn(&DecisionEvent<'_>) + Send + Sync;

/// The function that receives the events of a layer, if one is set. Unless it is, no event is made.
#[derive(Clone, Default)]
pub(crate) struct DecisionHook(Option<Arc<Observer>>);

impl DecisionHook {
    pub(crate) fn new(observer: impl Fn(&DecisionEvent<'_>) + Send + Sync + 'static) -> DecisionHook {
        DecisionHook(Some(Arc::new(observer)))
    }

    /// Returns true if a function is set.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// Passes on an event, which is made only if a function is set.
    #[inline]
    pub(crate) fn report<'e>(&self, event: impl FnOnce() -> DecisionEvent<'e>) {
        if let Some(observer) = &self.0 {
            pass_on(observer, event);
        }
    }
}

/// Keeps the making of events out of the code of layers without a function.
#[cold]
#[inline(never)]
fn pass_on<'e>(observer: &Arc<Observer>, event: impl FnOnce() -> DecisionEvent<'e>) {
    observer(&event());
}

impl fmt::Debug for DecisionHook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("DecisionHook").field(&self.0.is_some()).finish()
    }
}
