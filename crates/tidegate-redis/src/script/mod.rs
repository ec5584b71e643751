//! The protocol with the server: one script call for any number of asks and limits.
//!
//! A script reads every state of an ask, spends only if all allow, and returns the time and the states before the take.
//! The library then repeats the decision on those states, so that every value of a [`Decision`] is its own. The scripts
//! only have to find the same verdict and the same next state.
//!
//! Numbers in a script are doubles, so no number there exceeds 2^53. A time is a pair of whole microseconds since 2024
//! and ticks below 16,000. This module opens no connections.
//!
//! The files: `text` assembles scripts, `take`, `change`, `states`, `table` and `overrides` build calls, `bid`, `limits` and `pack`
//! encode their arguments, `key` names the keys, `reply` and `words` parse the replies.

mod bid;
mod change;
mod key;
mod limits;
mod overrides;
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

pub(crate) use bid::{Begin, Bid, Role, States, TakeAsk, Target};
pub(crate) use change::{TakeRecord, adjust, give_back, refund, release, renew, reset};
pub(crate) use key::{LimitName, StateName, mark_name, slot, table_name};
pub(crate) use limits::{Unsupported, held, longest_use, supports};
pub(crate) use overrides::{
    TableContent, change_overrides, read_changed, read_overrides, read_table, read_version, version_field,
};
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
use tidegate_core::Decision;
use tidegate_core::{Clock as _, SystemClock, Ticks, Timestamp};

/// The number of ticks in a microsecond. A tick is a sixteenth of a nanosecond.
const TICKS: u64 = 16_000;
/// The Unix second at which the time of scripts begins: Monday, 1 January 2024. A later epoch keeps microseconds within
/// 2^53 for centuries, and windows aligned to Mondays.
const EPOCH: u64 = 1_704_067_200;

/// Returns a span of this many ticks.
pub(crate) fn span(ticks: u64) -> Ticks {
    Timestamp::from_ticks(ticks).since(Timestamp::EPOCH)
}

/// Rounds a time down to whole microseconds.
pub(crate) fn whole_micros_at(time: Timestamp) -> Timestamp {
    Timestamp::from_ticks(time.ticks() / TICKS * TICKS)
}

/// Rounds a span up to whole microseconds.
pub(crate) fn whole_micros(wait: Ticks) -> Ticks {
    span(wait.get().div_ceil(TICKS).saturating_mul(TICKS))
}

/// The clock of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// The server's clock.
    Server,
    /// A time given by the caller, in whole microseconds, for tests. Keys then live an hour longer.
    Given(Timestamp),
}

impl Time {
    /// Returns the time that the script will probably read, by the clock of this machine.
    fn expected(self) -> Timestamp {
        match self {
            Time::Server => SystemClock::new().now(),
            Time::Given(now) => now,
        }
    }

    /// Returns the arguments that select the clock. They are the last two arguments of a script, in the format of the
    /// reply to `TIME`. The server's clock needs none.
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

/// A script with its keys and arguments.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The script.
    pub(crate) script: &'static Script,
    /// The keys.
    pub(crate) keys: Vec<StateName>,
    /// The arguments.
    pub(crate) arguments: Vec<Vec<u8>>,
}
