//! Claims about clients that act in time, on machines that may hold any of them up.
//!
//! A client that was held up for longer than the bound proves nothing, whatever the server did. So the client measures
//! its own steps: if one of them took too long, the claim is tried again with a longer bound.

use std::time::{Duration, Instant};

use testbed::now;

/// The bound that is tried first.
const SHORTEST: Duration = Duration::from_millis(200);
/// The bound that is tried last.
const LONGEST: Duration = Duration::from_secs(60);

/// A step of the client took as long as the bound or longer.
#[derive(Debug)]
pub(crate) struct HeldUp;

/// Tries a claim about a bound, with a longer one for as long as its client was held up.
pub(crate) fn in_time(claim: impl Fn(Duration) -> Result<(), HeldUp>) {
    let mut bound = SHORTEST;
    while claim(bound).is_err() {
        assert!(bound < LONGEST, "this machine held a client up for {bound:?}, so nothing was proved");
        bound *= 2;
    }
}

/// The beginning of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since(Instant);

impl Since {
    pub(crate) fn now() -> Since {
        Since(now())
    }

    /// Fails if the step took as long as the bound.
    pub(crate) fn within(self, bound: Duration) -> Result<(), HeldUp> {
        if self.0.elapsed() < bound { Ok(()) } else { Err(HeldUp) }
    }
}
