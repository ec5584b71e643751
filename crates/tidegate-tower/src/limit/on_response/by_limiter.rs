//! The take of a limiter, while the service runs.
//!
//! The correction is done when the response is there, or when this is dropped without one. Both go through the same
//! function, so a client that disconnects is charged as the settings demand.

use std::sync::Arc;

use http::Response;
use tidegate_core::{Decision, Key, TrackedTake};

use crate::body::Held;
use crate::head::ResponseHead;
use crate::limit::named_limiter::NamedLimiter;
use crate::limit::settings::Settings;
use crate::limit::settle::{Phase, Settle};
use tidegate_support::put_remaining;

/// The take of a limiter that may have to be corrected, or that granted a permit.
pub(in crate::limit) struct TakenByLimiter {
    settings: Arc<Settings>,
    limiter: Arc<NamedLimiter>,
    key: Key,
    /// The receipt, if the take may have to be refunded.
    take: Option<TrackedTake>,
    decision: Decision,
    /// The permit, released when the response is over.
    held: Option<Held>,
    pub(super) phase: Phase,
}

impl TakenByLimiter {
    /// Returns the take of a decision; a permit that it granted is held from now on.
    pub(super) fn new(
        settings: &Arc<Settings>,
        limiter: &Arc<NamedLimiter>,
        decision: Decision,
        take: Option<TrackedTake>,
        key: Key,
    ) -> TakenByLimiter {
        let held = limiter.hold(&key, &decision);
        let (settings, limiter) = (Arc::clone(settings), Arc::clone(limiter));
        TakenByLimiter { settings, limiter, key, take, decision, held, phase: Phase::Unserved }
    }

    /// Corrects the take, writes header fields, and returns the permit that is held until the response is over.
    pub(super) fn conclude<R>(mut self, response: &mut Response<R>) -> Option<Held> {
        let settle = self.settings.settlement.of(ResponseHead::of(response));
        self.phase = Phase::Settled;
        let decision = self.settle(settle).unwrap_or(self.decision);
        let dialect = self.settings.dialect;
        self.limiter.with_promise(|promise| {
            put_remaining(response.headers_mut(), dialect, promise.status(&decision), &[]);
        });
        self.held.take()
    }

    /// Corrects the take, and returns the decision about a request after that.
    fn settle(&mut self, settle: Settle) -> Option<Decision> {
        (settle != Settle::Keep).then(|| self.limiter.settle(&self.key, settle, self.take.take()))
    }
}

impl Drop for TakenByLimiter {
    /// Corrects a take whose request has no response. After a response it does nothing.
    fn drop(&mut self) {
        let _ = self.settle(self.settings.settlement.if_dropped(self.phase));
    }
}
