//! A call while it lasts, and what is said of it if it goes away before it was answered.

use std::time::Duration;

use tidegate::{Outcome, Passage, Place};

use super::not_sent::NotSent;

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

    /// It was answered; who listens is told by others.
    pub(crate) fn answered(mut self) -> Option<L> {
        self.listener.take()
    }

    /// The service gave an error in place of an answer.
    ///
    /// Behind layers of tower that is a time-out, shed load or a connection that nobody accepted: want of capacity. A call
    /// that was [`NotSent`] says nothing.
    pub(crate) fn failed<E: 'static>(self, error: &E) {
        if let Some(listener) = self.answered() {
            listener.tell(if NotSent::is_cause_of(error) { Outcome::Ignored } else { Outcome::Overloaded });
        }
    }
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
