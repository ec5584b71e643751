//! Slow start after a time in which no call was allowed to leave.
//!
//! The waiters must not leave all at once: the server would have to deny most of them. One leaves. After its response
//! two may be in flight, then four, and so on, until a call is denied. A call that hangs delays the others for a
//! second; then one more leaves.

use std::time::Duration;

use tidegate_core::{Ticks, Timestamp};

use super::hints::CallResult;

/// The time after which one more call leaves, whatever happened to those before it.
const HANGS: Ticks = Ticks::saturating_from(Duration::from_secs(1));
/// The time without a departure after which there are no waiters left.
const FORGOTTEN: Ticks = Ticks::saturating_from(Duration::from_secs(60));
/// The number of calls in flight at which slow start is over.
const WIDE_OPEN: u64 = 1024;

/// A slow start of one server: the number of calls in flight that it allows, and those in flight.
#[derive(Clone, Debug)]
pub(super) struct SlowStart {
    /// The number of this slow start at its server.
    number: u64,
    /// The quota that was used up before it; `None` after a hold.
    policy: Option<Box<[u8]>>,
    /// The number of calls that may be in flight.
    width: u64,
    /// The number of calls in flight that left since the start.
    on_their_way: u64,
    /// The time of the last departure, or else the start.
    last: Timestamp,
}

impl SlowStart {
    /// Returns a slow start at this time, with one call in flight allowed.
    pub(super) fn new(number: u64, policy: Option<Box<[u8]>>, since: Timestamp) -> SlowStart {
        SlowStart { number, policy, width: 1, on_their_way: 0, last: since }
    }

    /// Returns its number, by which calls of an earlier slow start are distinguished.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the time at which one more call may leave; `None` if now. A response may make it sooner.
    pub(super) fn wait(&self, now: Timestamp) -> Option<Timestamp> {
        let hangs_until = self.last.saturating_add(HANGS);
        (self.on_their_way >= self.width && hangs_until > now).then_some(hangs_until)
    }

    /// Records a call that leaves now.
    pub(super) fn leave(&mut self, now: Timestamp) {
        self.on_their_way += 1;
        self.last = now;
    }

    /// Records that a call which left since the start has ended, or has not left after all.
    ///
    /// Each response allows one call more, so the number doubles with every round trip. A denial resets it to one.
    pub(super) fn ended(&mut self, went: CallResult) {
        self.on_their_way = self.on_their_way.saturating_sub(1);
        match went {
            CallResult::Unanswered => {}
            CallResult::Answered => self.width += 1,
            CallResult::Refused => self.width = 1,
        }
    }

    /// Returns true if this quota was used up before it. A response that reports the remaining quota then ends it.
    pub(super) fn is_of(&self, policy: &[u8]) -> bool {
        self.policy.as_deref() == Some(policy)
    }

    /// Returns true if so many calls may be in flight that it has no effect, or if none has left for a minute.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.width >= WIDE_OPEN || now.since(self.last) >= FORGOTTEN
    }

    /// Moves the time after the clock stepped back.
    pub(super) fn step_back(&mut self, by: Ticks) {
        self.last = self.last.saturating_sub(by);
    }
}
