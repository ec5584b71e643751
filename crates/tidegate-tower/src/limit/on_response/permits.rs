//! Permits that rules gave to a request.

use tidegate_rules::{Gate, HeldPermit};

/// The permits of one request, released when they are dropped: in memory at once, in a remote store without a caller that
/// waits. Where the response is there, the release is awaited, so that the next request finds the permit free.
pub(in crate::limit) struct HeldPermits {
    gate: Gate,
    permits: Vec<HeldPermit>,
}

impl HeldPermits {
    /// Returns `None` if there are no permits.
    pub(in crate::limit) fn of(gate: &Gate, permits: &[HeldPermit]) -> Option<HeldPermits> {
        let permits = (!permits.is_empty()).then(|| permits.to_vec())?;
        Some(HeldPermits { gate: gate.clone(), permits })
    }

    /// Releases all of them at the same time.
    pub(super) async fn release(mut self) {
        let released = self.gate.release_all(&self.permits).await;
        // A release that failed is tried again without a caller that waits; so are all if this is dropped before.
        let mut answers = released.iter();
        self.permits.retain(|_| answers.next().is_some_and(Result::is_err));
    }
}

impl Drop for HeldPermits {
    fn drop(&mut self) {
        self.gate.release_later(&self.permits);
    }
}
