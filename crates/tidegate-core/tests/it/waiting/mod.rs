//! Tests of waiting through the public API.

mod adversity;
mod enqueued;
mod lines;
mod permits;
mod real_time;
mod thousand;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tidegate::{ManualClock, Timestamp};

/// Returns a manual clock, set to some time after its epoch.
pub(crate) fn clock() -> Arc<ManualClock> {
    let clock = ManualClock::new();
    clock.set(Timestamp::after_epoch(1000 * tidegate::SECOND));
    Arc::new(clock)
}

/// Polls a future once.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Returns the output of a future that must be ready.
pub(crate) fn over<F: Future + Unpin>(future: &mut F) -> F::Output {
    match poll(future) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it is still waiting"),
    }
}
