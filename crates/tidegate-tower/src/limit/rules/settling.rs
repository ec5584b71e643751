//! What is sent to a store elsewhere, all of it at the same time.

use std::pin::Pin;
use std::task::Poll;

use tidegate_rules::{Bill, Gate};

use crate::limit::settle::Settle;

/// Something that is sent to a store elsewhere; it has to be awaited.
pub(in crate::limit) type Settling = Pin<Box<dyn Future<Output = ()> + Send>>;

/// All of them; none waits for another.
pub(super) async fn all(mut each: Vec<Settling>) {
    std::future::poll_fn(|context| {
        each.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if each.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Corrects what a request took.
pub(super) async fn correct(gate: Gate, mut bill: Bill, (settle, units): (Settle, u64)) {
    // Whoever is served already is not stopped by a store that fails.
    let _ = match settle {
        Settle::Keep => return,
        Settle::Refund => gate.refund(&mut bill, units).await,
        Settle::RefundUnits(units) => gate.refund(&mut bill, units).await,
        Settle::Charge(units) => gate.charge(&mut bill, units).await,
    };
}

/// The same for a store in memory, which answers at once and cannot fail.
pub(super) fn correct_now(gate: &Gate, mut bill: Bill, (settle, units): (Settle, u64)) {
    let _ = match settle {
        Settle::Keep => return,
        Settle::Refund => gate.refund_now(&mut bill, units),
        Settle::RefundUnits(units) => gate.refund_now(&mut bill, units),
        Settle::Charge(units) => gate.charge_now(&mut bill, units),
    };
}
