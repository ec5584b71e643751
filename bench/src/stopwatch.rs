//! How long things take, and waiting for a process. Nothing is decided by this.

use std::thread;
use std::time::{Duration, Instant};

/// An instant of this machine's clock.
#[expect(clippy::disallowed_methods, reason = "a stopwatch decides nothing")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// Gives the processor away for a while.
#[expect(clippy::disallowed_methods, reason = "another process needs real time to start or to end")]
pub(crate) fn pause(duration: Duration) {
    thread::sleep(duration);
}
