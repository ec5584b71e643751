//! What is said to the server, and what it answers: one script call for any number of asks and limits.
//!
//! A script looks at every state of an ask, spends only if all allow, and sends back what it saw: the time and the states as
//! they were. The library then decides about those states once more, so that every figure of a [`Decision`] is its own;
//! the scripts only have to find the same verdict and the same next state.
//!
//! Numbers in a script are doubles, so no number there is above 2^53: a time is a pair of whole microseconds since 2024
//! and ticks below 16,000. Nothing here connects to anybody.

mod bid;
mod change;
mod key;
mod limits;
mod pack;
mod reply;
mod states;
mod table;
mod take;
#[cfg(test)]
mod tests;
mod text;
mod unreadable;
mod words;

pub(crate) use bid::{Begin, Bid, States, TakeAsk, Target};
pub(crate) use change::{Taken, adjust, give_back, refund, release, renew, reset};
pub(crate) use key::{LimitName, StateName, mark_name, slot, table_name};
pub(crate) use limits::{Unsupported, held, longest_use, supports};
pub(crate) use reply::{
    AskReply, Decided, DecidedBid, TakeReply, read_adjust, read_peek, read_take, read_takes, read_whether,
};
pub(crate) use states::{read_states, states};
pub(crate) use table::{
    Announced, InForce, ListedEntry, TableEntry, TableFields, list_limits, read_fields, read_history,
    read_listed, read_time,
};
pub(crate) use take::{peek, take};
pub(crate) use text::Script;
#[cfg(test)]
pub(crate) use text::all;
pub(crate) use unreadable::Unreadable;

#[cfg(doc)]
use tidegate::Decision;
use tidegate::{Ticks, Timestamp};

/// Ticks in a microsecond.
const TICKS: u64 = 16_000;
/// The second of Unix time at which the time of scripts begins: the Monday with which 2024 began.
const EPOCH: u64 = 1_704_067_200;

/// A span of so many ticks.
pub(crate) fn span(ticks: u64) -> Ticks {
    Timestamp::from_ticks(ticks).since(Timestamp::EPOCH)
}

/// The last whole microsecond that is not after a time.
pub(crate) fn whole_micros_at(time: Timestamp) -> Timestamp {
    Timestamp::from_ticks(time.ticks() / TICKS * TICKS)
}

/// The same span, rounded up to whole microseconds.
pub(crate) fn whole_micros(wait: Ticks) -> Ticks {
    span(wait.get().div_ceil(TICKS).saturating_mul(TICKS))
}

/// The clock by which a script decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub(crate) keys: Vec<StateName>,
    /// With which arguments.
    pub(crate) arguments: Vec<Vec<u8>>,
}
