//! Waiting done right: one at a time, in the order of arrival, as long as one is willing to.
//!
//! ```text
//!   acquire --> passes at once, if nobody of this key waits
//!          \--> too long, too many: refused at once
//!           \-> [ room:  key a: 1st 2nd 3rd ]      one line per key that has waiters
//!               [        key b: 1st         ]
//!                           ^
//!   clock: "it is time" ----'  the head takes, is woken, and the next one is due
//! ```
//!
//! Those who wait have spent nothing yet: whoever leaves takes nothing along, and all behind move up. Only the
//! head of a line takes, and somebody else's clock tells the room when: one alarm per room, on the one timer
//! thread of the process or on a clock that is set by hand. No thread, task or timer belongs to a waiter.

mod acquire;
mod line;
mod lines;
mod queued;
mod room;
mod taken;
#[cfg(all(test, not(tidegate_models)))]
mod tests;
mod tracked;

pub use acquire::{Acquire, AcquireTracked, Waited};
pub(crate) use acquire::{Visit, block_on};
pub(crate) use queued::Acquiring;
pub use queued::{Enqueued, Queued};
pub(crate) use room::Room;
pub use tracked::TrackedTake;

use crate::algorithm::State;
use crate::ask::{Adjusted, Ask, Cost};
use crate::decision::Decision;
use crate::store::OpenReceipt;
use crate::store::name::{Account, Name};
use crate::time::{Source, Timestamp};

/// The most who may wait at once, unless it is told otherwise.
pub(crate) const MAX_WAITERS: usize = 1 << 16;

/// What people wait for.
pub(crate) trait Venue: Send + Sync {
    /// Where they wait.
    fn room(&self) -> &Room;

    /// Whose time counts.
    fn clock(&self) -> &Source;

    /// A subject's state under the limit in force.
    fn account(&self, name: &Name) -> Account;

    /// Takes if it passes; if not, leaves no trace.
    fn take_if_free(&self, account: &Account, ask: Ask) -> Decision;

    /// Takes in the same way, now or as of the given time, with a receipt for giving all of it back before it acts.
    fn take_for_waiter(
        &self,
        account: &Account,
        ask: Ask,
        at: Option<Timestamp>,
    ) -> (Decision, Option<OpenReceipt>);

    /// What a take would say.
    fn look(&self, account: &Account, ask: Ask) -> Decision;

    /// Takes in the same way, with a receipt by which the take can be refunded at any time.
    fn take_if_free_tracked(
        &self,
        account: &Account,
        ask: Ask,
        at: Option<Timestamp>,
    ) -> (Decision, Option<OpenReceipt>);

    /// Gives units of one take back, as far as they are still owed; all of them, if it has not acted.
    fn refund(&self, account: &Account, receipt: &mut OpenReceipt, cost: Option<Cost>) -> Adjusted;

    /// What is remembered.
    fn state(&self, account: &Account) -> State;
}
