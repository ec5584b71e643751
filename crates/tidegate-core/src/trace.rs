//! Events of the crate `tracing`, with the feature of that name; without it, these functions do nothing.
//!
//! | level | event | fields |
//! |---|---|---|
//! | debug | `denied` | `limiter` (its name), `limit`, `remaining`, `retry_after` (none if no wait helps) |
//! | warn | `remote store failed` | `error`, with its causes; at the first failure after a reply |
//! | info | `remote store recovered` | none; at the first reply after a failure |
//!
//! The target is `tidegate`. Keys are no fields: they may be addresses or names of persons.

use crate::decision::Decision;

/// Returns a decision, and emits an event if it is a denial.
// A function and not a value: without the feature, the decision is then written where the caller wants it. A value that
// only passes through is copied, by 25 instructions of a decision.
#[inline(always)]
pub(crate) fn decided(limiter: &str, decide: impl FnOnce() -> Decision) -> Decision {
    #[cfg(feature = "tracing")]
    {
        let decision = decide();
        observed(limiter, &decision);
        decision
    }
    #[cfg(not(feature = "tracing"))]
    {
        let _ = limiter;
        decide()
    }
}

/// Emits an event if the ask was denied.
#[inline(always)]
pub(crate) fn observed(limiter: &str, decision: &Decision) {
    #[cfg(feature = "tracing")]
    if !decision.is_allowed() {
        denied(limiter, decision);
    }
    #[cfg(not(feature = "tracing"))]
    let _ = (limiter, decision);
}

#[cfg(feature = "tracing")]
#[cold]
fn denied(limiter: &str, decision: &Decision) {
    tracing::debug!(
        target: "tidegate",
        limiter,
        limit = decision.limit(),
        remaining = decision.remaining(),
        retry_after = decision.retry_after().map(tracing::field::debug),
        "denied"
    );
}

/// Emits an event when a remote store begins to fail. Its fallback decides from then on.
#[inline(always)]
pub(crate) fn store_failed(error: impl FnOnce() -> String) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "tidegate", error = error(), "remote store failed");
    #[cfg(not(feature = "tracing"))]
    let _ = error;
}

/// Emits an event when a remote store replies again.
#[inline(always)]
pub(crate) fn store_recovered() {
    #[cfg(feature = "tracing")]
    tracing::info!(target: "tidegate", "remote store recovered");
}
