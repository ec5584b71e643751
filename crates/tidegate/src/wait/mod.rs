//! Queues of waiters: one mechanism ([`WaitQueue`]), and policies that say which waiter is next, and when.
//!
//! ```text
//!   acquire --> passes at once, if its key has no waiters
//!          \--> too long, too many: denied at once
//!           \-> [ key a: 1st 2nd 3rd ]      one queue per key that has waiters
//!               [ key b: 1st         ]
//!                     ^
//!   clock: "it is due" `  the policy takes for the next waiter, which is woken
//! ```
//!
//! The queue owns the lock, the one alarm (on the timer thread of the process, or on a manual clock), tickets, wakers,
//! cancellation, the bound of waiters and what a step back of the clock means. [`KeyFifo`] is the policy of limiters,
//! shapers, pacers and permits: its waiters have spent nothing, only the head takes, and when one leaves, those behind
//! move up. The policies of the concurrency limiter and of the outbound layer are with them.

mod acquire;
mod key_fifo;
mod outlook;
mod policy;
mod state;
mod taken;
#[cfg(all(test, not(tidegate_models)))]
mod tests;
mod wait_queue;

pub use acquire::{Acquire, AcquireTracked, Enqueued, Queued, QueuedTracked, Waited};
pub(crate) use acquire::{KeyRequest, Kind, Request, Untracked, block_on};
pub(crate) use key_fifo::{KeyFifo, Passed, WaiterAsk};
pub use policy::{Cause, Next, QueuePolicy, Turn};
pub use state::{Entry, KeyQueue, QueueState, Ticket};
pub use taken::TrackedTake;
pub use wait_queue::{Joined, WaitQueue, Waiter};

use crate::algorithm::State;
use crate::ask::{Adjusted, Ask, Cost};
use crate::decision::Decision;
use crate::store::OpenReceipt;
use crate::store::name::{Account, Name};
use crate::time::{Source, Timestamp};

/// The most waiters of a limiter unless set.
pub(crate) const MAX_WAITERS: usize = 1 << 16;

/// The owner of a queue whose waiters take from a limit.
#[expect(private_interfaces, reason = "an associated type reaches it, but no path outside of this crate")]
pub trait WaitTarget: Send + Sync {
    /// Returns the queue.
    fn queue(&self) -> &WaitQueue<KeyFifo>;

    /// Returns the clock that decides.
    fn clock(&self) -> &Source;

    /// A subject's state under the limit in force.
    fn account(&self, name: &Name) -> Account;

    /// Takes if it passes; if not, leaves no trace.
    fn take_if_free(&self, account: &Account, ask: Ask) -> Decision;

    /// Takes in the same way, now or as of the given time, with a receipt for giving all of it back before it acts; if it
    /// is tracked, the take can be refunded by it at any time.
    fn take_for_waiter(
        &self,
        account: &Account,
        asked: WaiterAsk,
        at: Option<Timestamp>,
    ) -> (Decision, Option<OpenReceipt>);

    /// What a take would say.
    fn look(&self, account: &Account, ask: Ask) -> Decision;

    /// Gives units of one take back, as far as they are still owed; all of them, if it has not acted.
    fn refund(&self, account: &Account, receipt: &mut OpenReceipt, cost: Option<Cost>) -> Adjusted;

    /// What is remembered.
    fn state(&self, account: &Account) -> State;
}
