//! A call while it lasts, and what is said of it if it goes away before it was answered.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tidegate::{Outcome, Passage, Place};

use super::not_sent::NotSent;

const OVER: &str = "polled again after it was over";

/// What is told how a call ended.
pub(crate) trait Listens {
    fn lasted(&self) -> Duration;
    fn tell(self, outcome: Outcome);
}

impl Listens for Place {
    fn lasted(&self) -> Duration {
        self.lasted()
    }

    fn tell(self, outcome: Outcome) {
        self.done(outcome);
    }
}

impl Listens for Passage {
    fn lasted(&self) -> Duration {
        self.lasted()
    }

    fn tell(self, outcome: Outcome) {
        self.done(outcome);
    }
}

/// A call that has begun. Dropped, its caller has given it up, or the service has panicked.
pub(crate) struct Ongoing<L: Listens> {
    listener: Option<L>,
    overloaded_after: Option<Duration>,
    /// Whether the service is working on it now, in a call that has to return.
    is_in_service: bool,
}

impl<L: Listens> Ongoing<L> {
    /// If it is given up after this time, it is for want of capacity.
    pub(crate) fn new(listener: L, overloaded_after: Option<Duration>) -> Ongoing<L> {
        Ongoing { listener: Some(listener), overloaded_after, is_in_service: false }
    }

    /// Lets the service work. If that panics, the call has failed, also where somebody catches the panic before this is
    /// dropped.
    pub(crate) fn work<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.is_in_service = true;
        let result = work();
        self.is_in_service = false;
        result
    }

    /// Polls the service for its answer. Returns also who is to be told how the call went; after an error that is done.
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

    /// The service gave an error before it was called.
    pub(crate) fn failed<E: 'static>(mut self, error: &E) {
        if let Some(listener) = self.listener.take() {
            listener.tell(outcome_of_error(error));
        }
    }
}

/// How a call went whose service gave an error in place of an answer.
///
/// Behind layers of tower that is a time-out, shed load or a connection that nobody accepted: want of capacity. A call
/// that was [`NotSent`] says nothing.
fn outcome_of_error<E: 'static>(error: &E) -> Outcome {
    if NotSent::is_cause_of(error) { Outcome::Ignored } else { Outcome::Overloaded }
}

impl<L: Listens> Drop for Ongoing<L> {
    fn drop(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        if self.is_in_service {
            return listener.tell(Outcome::Failed);
        }
        let is_late = self.overloaded_after.is_some_and(|after| listener.lasted() >= after);
        listener.tell(if is_late { Outcome::Overloaded } else { Outcome::Ignored });
    }
}
