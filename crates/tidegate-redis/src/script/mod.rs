//! What is said to the server, and what it answers: one script call for any number of limits.
//!
//! A script looks at every state, spends only if all let pass, and sends back what it saw: the time and the states as
//! they were. The library then decides about those states once more, so that every figure of a [`Decision`] is its own;
//! the scripts only have to find the same verdict and the same next state.
//!
//! Numbers in a script are doubles, so no number there is above 2^53: a time is a pair of whole microseconds since 2024
//! and ticks below 16,000. Nothing here connects to anybody.

mod change;
mod key;
mod limits;
mod pack;
mod reply;
mod take;
#[cfg(test)]
mod tests;
mod text;
mod unreadable;

pub(crate) use change::{Taken, adjust, give_back, refund, release, renew};
pub(crate) use key::{slot, state_key, state_keys_of_all_algorithms};
pub(crate) use limits::{Unsupported, supports};
pub(crate) use reply::{read_adjust, read_peek, read_take, read_whether};
pub(crate) use take::{peek, take};
pub(crate) use text::Script;
#[cfg(test)]
pub(crate) use text::all;
pub(crate) use unreadable::Unreadable;

#[cfg(doc)]
use tidegate::Decision;
use tidegate::Timestamp;

/// Ticks in a microsecond.
const TICKS: u64 = 16_000;
/// The second of Unix time at which the time of scripts begins: the Monday with which 2024 began.
const EPOCH: u64 = 1_704_067_200;

/// Who tells the time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Time {
    /// The server.
    Server,
    /// Whoever asks, in whole microseconds: a test. What is written then stays an hour longer.
    Given(Timestamp),
}

impl Time {
    /// The arguments that say so.
    fn arguments(self) -> Vec<Vec<u8>> {
        match self {
            Time::Server => Vec::new(),
            Time::Given(now) => {
                let micros = now.ticks() / TICKS;
                let seconds = EPOCH + micros / 1_000_000;
                vec![seconds.to_string().into_bytes(), (micros % 1_000_000).to_string().into_bytes()]
            }
        }
    }
}

/// A script with what it is to work on.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// What to run.
    pub(crate) script: &'static Script,
    /// On which keys.
    pub(crate) keys: Vec<Vec<u8>>,
    /// With which arguments.
    pub(crate) arguments: Vec<Vec<u8>>,
}
