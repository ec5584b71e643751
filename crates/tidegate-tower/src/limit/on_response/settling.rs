//! Requests to a remote store that settle a request, all at the same time.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tidegate_rules::{Bill, Gate};

use crate::limit::settle::Settle;

/// A request to a remote store.
pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A request to a remote store that is awaited before the response goes on. Dropped before its end, it goes on in the
/// background: a client does not escape a charge by hanging up meanwhile.
pub(in crate::limit) struct Settling {
    gate: Gate,
    /// `None` once it is over.
    task: Option<Task>,
}

impl Settling {
    pub(super) fn new(gate: Gate, task: Task) -> Settling {
        Settling { gate, task: Some(task) }
    }
}

impl Future for Settling {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(task) = &mut self.task {
            ready!(task.as_mut().poll(context));
            self.task = None;
        }
        Poll::Ready(())
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.gate.in_background(task);
        }
    }
}

/// Corrects the takes of a request of this cost.
pub(in crate::limit) async fn correct(gate: Gate, mut bill: Bill, settle: Settle, cost: u64) {
    // A request that was served already is not stopped by a store that fails.
    let _ = match settle {
        Settle::Keep => return,
        Settle::Refund => gate.refund(&mut bill, cost).await,
        Settle::RefundUnits(units) => gate.refund(&mut bill, units.min(cost)).await,
        Settle::Charge(units) => gate.charge(&mut bill, units).await,
    };
}
