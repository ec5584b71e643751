//! Events of the crate `tracing`, with the feature of that name; without it, these functions do nothing.
//!
//! | level | event | fields |
//! |---|---|---|
//! | debug | `denied` | `limiter` (its name), `limit`, `remaining`, `retry_after` (none if no wait helps) |
//! | warn | `remote store failed` | `error` |
//!
//! Keys are no fields: they may be addresses or names of persons.

use crate::decision::Decision;
use crate::store::StoreError;

/// Emits an event if the ask was denied.
#[inline(always)]
pub(crate) fn decided(limiter: &str, decision: Decision) -> Decision {
    #[cfg(feature = "tracing")]
    if !decision.is_allowed() {
        denied(limiter, &decision);
    }
    #[cfg(not(feature = "tracing"))]
    let _ = limiter;
    decision
}

#[cfg(feature = "tracing")]
#[cold]
fn denied(limiter: &str, decision: &Decision) {
    tracing::debug!(
        limiter,
        limit = decision.limit(),
        remaining = decision.remaining(),
        retry_after = decision.retry_after().map(tracing::field::debug),
        "denied"
    );
}

/// Emits an event about a failure of a remote store, in place of which its fallback decides.
#[inline(always)]
pub(crate) fn store_failed(error: &StoreError) {
    #[cfg(feature = "tracing")]
    tracing::warn!(error = error as &dyn std::error::Error, "remote store failed");
    #[cfg(not(feature = "tracing"))]
    let _ = error;
}
