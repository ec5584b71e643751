//! A call in progress, and its outcome if it is dropped before it has a response.
//!
//! Both layers have to report an outcome in every case: a response, an error, a drop by a timeout, a panic. The last
//! two run no code of the layer but destructors, so the report is in one.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tidegate_core::{BreakerPermit, ConcurrencyPermit, Outcome};

use super::not_sent::NotSent;

const OVER: &str = "polled again after it was over";

/// The recipient of a call's outcome: a concurrency permit or the permit of a circuit breaker.
pub(crate) trait OutcomeListener {
    /// Returns the time since the call was admitted.
    fn lasted(&self) -> Duration;
    /// Reports the outcome and releases the permit.
    fn tell(self, outcome: Outcome);
}

impl OutcomeListener for ConcurrencyPermit {
    fn lasted(&self) -> Duration {
        self.lasted()
    }

    fn tell(self, outcome: Outcome) {
        self.done(outcome);
    }
}

impl OutcomeListener for BreakerPermit {
    fn lasted(&self) -> Duration {
        self.lasted()
    }

    fn tell(self, outcome: Outcome) {
        self.done(outcome);
    }
}

/// A call that has begun. It is dropped if its caller gives up or if the service panics.
pub(crate) struct Ongoing<L: OutcomeListener> {
    /// `None` once the outcome was reported.
    listener: Option<L>,
    /// The time after which a drop counts as overload.
    overloaded_after: Option<Duration>,
    /// True while the service runs. It stays true after a panic.
    is_in_service: bool,
}

impl<L: OutcomeListener> Ongoing<L> {
    /// Returns a call that counts as overloaded if it is dropped after at least `overloaded_after`.
    pub(crate) fn new(listener: L, overloaded_after: Option<Duration>) -> Ongoing<L> {
        Ongoing { listener: Some(listener), overloaded_after, is_in_service: false }
    }

    /// Runs the service. If it panics, the call has failed, even if the panic is caught before this is dropped.
    pub(crate) fn work<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.is_in_service = true;
        let result = work();
        self.is_in_service = false;
        result
    }

    /// Polls the service for its response. Returns it with the listener; an error is reported to the listener here.
    pub(crate) fn poll<F, T, E: 'static>(
        call: &mut Option<Ongoing<L>>,
        future: Pin<&mut F>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(T, L), E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let ongoing = call.as_mut().expect(OVER);
        let answer = ready!(ongoing.work(|| future.poll(context)));
        let listener = call.take().and_then(|mut call| call.listener.take()).expect(OVER);
        Poll::Ready(match answer {
            Ok(response) => Ok((response, listener)),
            Err(error) => {
                listener.tell(outcome_of_error(&error));
                Err(error)
            }
        })
    }

    /// Reports an error that the service returned before it was called.
    pub(crate) fn failed<E: 'static>(mut self, error: &E) {
        if let Some(listener) = self.listener.take() {
            listener.tell(outcome_of_error(error));
        }
    }
}

/// Returns the outcome of a call whose service returned an error in place of a response.
///
/// From layers of tower such an error is a timeout, shed load or a connection that was not accepted: a lack of
/// capacity. A call that was [`NotSent`] is ignored.
fn outcome_of_error<E: 'static>(error: &E) -> Outcome {
    if NotSent::is_cause_of(error) { Outcome::Ignored } else { Outcome::Overloaded }
}

impl<L: OutcomeListener> Drop for Ongoing<L> {
    /// Reports a call that ended without a response. During a panic of the service it failed; after a long wait its
    /// caller gave up, which is overload; any other drop says nothing about the service.
    fn drop(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        if self.is_in_service {
            return listener.tell(Outcome::Failed);
        }
        let is_late = self.overloaded_after.is_some_and(|after| listener.lasted() >= after);
        listener.tell(if is_late { Outcome::Overloaded } else { Outcome::Ignored });
    }
}
