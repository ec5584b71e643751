//! The first calls after a time in which none might leave.
//!
//! Who has waited must not leave all at once: the server would have to refuse most of them. One leaves. When it is
//! answered, two may be on their way, then four, and so on, as long as nothing is refused. A call that hangs holds the
//! others for a second, and then one more leaves.

use std::time::Duration;

use tidegate::{Ticks, Timestamp};

use super::told::Went;

/// After so long one more leaves, whatever became of those before it.
const HANGS: Ticks = Ticks::saturating_from(Duration::from_secs(1));
/// When nobody has left for so long, nobody is waiting to.
const FORGOTTEN: Ticks = Ticks::saturating_from(Duration::from_secs(60));
/// When so many may be on their way, that is as good as any number.
const WIDE_OPEN: u64 = 1024;

#[derive(Clone, Debug)]
pub(super) struct Opening {
    /// Which of a course it is.
    number: u64,
    /// The quota that was used up before it, if it was no hold.
    policy: Option<Box<[u8]>>,
    width: u64,
    on_their_way: u64,
    /// When one left last, or else when it opened.
    last: Timestamp,
}

impl Opening {
    pub(super) fn new(number: u64, policy: Option<Box<[u8]>>, since: Timestamp) -> Opening {
        Opening { number, policy, width: 1, on_their_way: 0, last: since }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// When one more may leave, if not now; it may be sooner, if one is answered.
    pub(super) fn wait(&self, now: Timestamp) -> Option<Timestamp> {
        let hangs_until = self.last.saturating_add(HANGS);
        (self.on_their_way >= self.width && hangs_until > now).then_some(hangs_until)
    }

    pub(super) fn leave(&mut self, now: Timestamp) {
        self.on_their_way += 1;
        self.last = now;
    }

    /// One of those that left since it opened has ended, or has not left after all.
    pub(super) fn ended(&mut self, went: Went) {
        self.on_their_way = self.on_their_way.saturating_sub(1);
        match went {
            Went::Unanswered => {}
            Went::Answered => self.width += 1,
            Went::Refused => self.width = 1,
        }
    }

    /// Whether it is the use of this quota that it came after: then whoever tells how much is left ends it.
    pub(super) fn is_of(&self, policy: &[u8]) -> bool {
        self.policy.as_deref() == Some(policy)
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.width >= WIDE_OPEN || now.since(self.last) >= FORGOTTEN
    }

    /// The clock has stepped back.
    pub(super) fn step_back(&mut self, by: Ticks) {
        self.last = self.last.saturating_sub(by);
    }
}
