//! A timer by a clock, on any runtime.
//!
//! The limiters of the library wake their waiters by the same means. So a layer needs neither a runtime's timer nor a
//! feature for each runtime, and tests advance a manual clock in place of sleeping.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tidegate_core::{Clock, Ticks, Timestamp};

/// A future that completes at a time of a clock. It fails if the system cannot start the timer thread.
#[derive(Debug)]
pub(crate) struct Delay {
    clock: Arc<dyn Clock>,
    until: Timestamp,
}

impl Delay {
    /// Returns a delay until this time.
    ///
    /// A time in the past makes a delay that is over at its first poll.
    pub(crate) fn until(clock: Arc<dyn Clock>, until: Timestamp) -> Delay {
        Delay { clock, until }
    }

    /// Returns a delay of this duration from now on.
    pub(crate) fn lasting(clock: Arc<dyn Clock>, span: Duration) -> Delay {
        let until = clock.now().saturating_add(Ticks::saturating_from(span));
        Delay::until(clock, until)
    }
}

impl Future for Delay {
    type Output = io::Result<()>;

    /// Registers the waker again at each poll, because another task may poll the delay by then.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.clock.now() >= self.until {
                return Poll::Ready(Ok(()));
            }
            match self.clock.wake_at(self.until, context.waker().clone()) {
                Ok(true) => return Poll::Pending,
                // The time was reached in between.
                Ok(false) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use tidegate_core::{ManualClock, SECOND};

    use super::*;

    #[test]
    fn a_delay_is_over_at_its_time_and_not_before() {
        let clock = Arc::new(ManualClock::new());
        let mut delay = pin!(Delay::lasting(clock.clone(), 2 * SECOND));
        let mut context = Context::from_waker(Waker::noop());
        assert!(delay.as_mut().poll(&mut context).is_pending());
        clock.advance(2 * SECOND - Duration::from_nanos(1));
        assert!(delay.as_mut().poll(&mut context).is_pending());
        clock.advance(Duration::from_nanos(1));
        assert!(matches!(delay.poll(&mut context), Poll::Ready(Ok(()))));
    }
}
