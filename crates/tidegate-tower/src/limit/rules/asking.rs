//! A question to a gate that is elsewhere.
//!
//! Whoever drops it before it is answered gets no answer, and may have taken. Places in flight the gate gives back by
//! itself. Units stay taken, unless the layer says that an abandoned request gets them back: then the question goes on
//! without anybody who waits, and what it takes comes back.

use std::pin::Pin;
use std::task::{Context, Poll};

use tidegate_rules::Gate;

use super::Billed;
use super::permits::Places;
use super::settling;
use crate::limit::settle::Settle;

/// The answer of a gate that is elsewhere.
type Asked = Pin<Box<dyn Future<Output = Billed> + Send>>;

/// A question to a gate that is elsewhere.
pub(in crate::limit) struct Asking {
    gate: Gate,
    /// By what the request is settled if nobody waits for the answer, and how much it weighs.
    abandoned: (Settle, u64),
    /// Nothing once it is answered.
    asked: Option<Asked>,
}

impl Asking {
    pub(in crate::limit) fn new(gate: Gate, abandoned: (Settle, u64), asked: Asked) -> Asking {
        Asking { gate, abandoned, asked: Some(asked) }
    }
}

impl Future for Asking {
    type Output = Billed;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Billed> {
        let asked = self.asked.as_mut().expect("polled again after it was over");
        let answer = asked.as_mut().poll(context);
        if answer.is_ready() {
            self.asked = None;
        }
        answer
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let (gate, abandoned) = (self.gate.clone(), self.abandoned);
        let Some(asked) = self.asked.take().filter(|_| abandoned.0 != Settle::Keep) else { return };
        self.gate.in_background(Box::pin(async move {
            if let Ok((admission, bill)) = asked.await {
                drop(Places::of(&gate, admission.permits()));
                settling::correct(gate, bill, abandoned).await;
            }
        }));
    }
}
