//! A request to the rules on a remote store.
//!
//! If it is dropped before the reply, it may have taken. The gate releases permits by itself. Units stay taken, unless
//! the layer refunds abandoned requests: then the request continues in the background, and its takes are refunded.
//!
//! The future owns the gate and knows the correction, so its destructor needs nothing from its caller.

use std::pin::Pin;
use std::task::{Context, Poll};

use tidegate_core::StoreError;
use tidegate_rules::{Admission, Charges, Gate};

use crate::limit::on_response::{HeldPermits, correct};
use crate::limit::settle::Settle;

/// The reply of a gate, with its takes if they may have to be corrected.
pub(super) type TrackedReply = Result<(Admission, Charges), StoreError>;

/// The reply of a gate on a remote store.
type GateReply = Pin<Box<dyn Future<Output = TrackedReply> + Send>>;

/// A request to the rules on a remote store.
pub(super) struct Asking {
    gate: Gate,
    /// The correction of the request if this is dropped.
    abandoned: Settle,
    cost: u64,
    /// `None` once the reply is there.
    answer: Option<GateReply>,
}

impl Asking {
    /// Returns a request of this cost; `abandoned` is done if it is dropped before the reply.
    pub(super) fn new(gate: Gate, answer: GateReply, abandoned: Settle, cost: u64) -> Asking {
        Asking { gate, abandoned, cost, answer: Some(answer) }
    }

    pub(super) fn cost(&self) -> u64 {
        self.cost
    }
}

impl Future for Asking {
    type Output = TrackedReply;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<TrackedReply> {
        let answer = self.answer.as_mut().expect("polled again after it was over");
        let answer = answer.as_mut().poll(context);
        if answer.is_ready() {
            self.answer = None;
        }
        answer
    }
}

impl Drop for Asking {
    /// Continues the request in the background if its takes are to be corrected; otherwise they stay spent.
    fn drop(&mut self) {
        let (gate, abandoned, cost) = (self.gate.clone(), self.abandoned, self.cost);
        let Some(answer) = self.answer.take().filter(|_| abandoned != Settle::Keep) else { return };
        self.gate.in_background(Box::pin(async move {
            if let Ok((admission, bill)) = answer.await {
                drop(HeldPermits::of(&gate, admission.permits()));
                correct(gate, bill, abandoned, cost).await;
            }
        }));
    }
}
