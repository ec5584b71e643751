//! Assertions about clients that act within a timeout, on machines that may suspend any process.
//!
//! A client that was suspended for longer than the timeout proves nothing about the server. So the client measures its
//! own steps. If one of them took too long, the assertion is repeated with a longer timeout.

use std::time::{Duration, Instant};

use testbed::now;

/// The first timeout.
const SHORTEST: Duration = Duration::from_millis(200);
/// The last timeout.
const LONGEST: Duration = Duration::from_secs(60);

/// The error of a client whose step took as long as the timeout or longer.
#[derive(Debug)]
pub(crate) struct HeldUp;

/// Runs an assertion with a timeout, and doubles the timeout for as long as its client was suspended.
///
/// # Panics
///
/// Panics if the client was suspended for [`LONGEST`].
pub(crate) fn in_time(claim: impl Fn(Duration) -> Result<(), HeldUp>) {
    let mut bound = SHORTEST;
    while claim(bound).is_err() {
        assert!(bound < LONGEST, "this machine held a client up for {bound:?}, so nothing was proved");
        bound *= 2;
    }
}

/// The start of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since(Instant);

impl Since {
    pub(crate) fn now() -> Since {
        Since(now())
    }

    /// Returns an error if the step took as long as the timeout.
    pub(crate) fn within(self, bound: Duration) -> Result<(), HeldUp> {
        if self.0.elapsed() < bound { Ok(()) } else { Err(HeldUp) }
    }
}
