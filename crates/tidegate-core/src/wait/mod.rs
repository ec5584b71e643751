//! Queues of waiters: one mechanism ([`WaitQueue`]), and policies that choose the next waiter and its time.
//!
//! ```text
//!   acquire --> passes at once, if its key has no waiters
//!          \--> wait too long, queue full: denied at once
//!           \-> [ key a: 1st 2nd 3rd ]      one queue per key that has waiters
//!               [ key b: 1st         ]
//!                     ^
//!   the alarm fires    `  the policy takes for the head, which is woken
//! ```
//!
//! The queue owns the lock, the one alarm (on the timer thread of the process, or on a manual clock), tickets,
//! wakers, cancellation, the bound of waiters and the reaction to a backward clock step.
//!
//! [`KeyFifo`] is the policy of limiters, shapers, pacers and permits. Its waiters have spent nothing, and only the
//! head takes. When a waiter leaves, those behind it move up. The concurrency limiter and the outbound layer have
//! policies of their own.

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
pub(crate) use key_fifo::{KeyFifo, QueueGrant, WaiterAsk};
pub use policy::{Cause, Next, QueuePolicy, QueueTurn};
pub use state::{Entry, KeyQueue, QueueState, QueueTicket};
pub use taken::TrackedTake;
pub use wait_queue::{Joined, WaitQueue, Waiter};

use crate::algorithm::State;
use crate::ask::{Adjusted, Ask, Cost};
use crate::decision::Decision;
use crate::store::OpenReceipt;
use crate::store::state_key::{EncodedKey, StateKey};
use crate::time::{Source, Timestamp};

/// The default of the largest number of waiters of a limiter.
pub(crate) const MAX_WAITERS: usize = 1 << 16;

/// The owner of a queue whose waiters take from a limit.
#[expect(private_interfaces, reason = "an associated type reaches it, but no path outside of this crate")]
pub trait WaitTarget: Send + Sync {
    /// Returns the queue.
    fn queue(&self) -> &WaitQueue<KeyFifo>;

    /// Returns the clock by which it decides.
    fn clock(&self) -> &Source;

    /// Returns the account of a key under the limit in force.
    fn account(&self, name: &EncodedKey) -> StateKey;

    /// Takes if allowed; a denial leaves the state unchanged.
    fn take_if_free(&self, account: &StateKey, ask: Ask) -> Decision;

    /// Takes like [`WaitTarget::take_if_free`], now or as of the given time, with a receipt. The receipt gives the
    /// whole take back before the waiter acts. If the ask is tracked, the take can be refunded by the receipt at
    /// any time.
    fn take_for_waiter(
        &self,
        account: &StateKey,
        asked: WaiterAsk,
        at: Option<Timestamp>,
    ) -> (Decision, Option<OpenReceipt>);

    /// Returns the decision of a take, without spending.
    fn look(&self, account: &StateKey, ask: Ask) -> Decision;

    /// Gives units of one take back, as far as they are still owed; `None` for all of them, if the waiter has not
    /// acted. [`Adjusted::Capped`] if less was given back than requested.
    fn refund(&self, account: &StateKey, receipt: &mut OpenReceipt, cost: Option<Cost>) -> Adjusted;

    /// Returns the state of the account.
    fn state(&self, account: &StateKey) -> State;
}
