//! Places in flight that rules gave to a request.
//!
//! They go back when they are dropped: to a store in memory at once, to one elsewhere without anybody who waits. Where
//! the response is there, somebody awaits it, and whoever comes next finds the place free.

use tidegate_rules::{Gate, HeldPermit};

/// The places of one request.
pub(in crate::limit) struct Places {
    gate: Gate,
    permits: Vec<HeldPermit>,
}

impl Places {
    /// Nothing if there are none.
    pub(super) fn of(gate: &Gate, permits: &[HeldPermit]) -> Option<Places> {
        let permits = (!permits.is_empty()).then(|| permits.to_vec())?;
        Some(Places { gate: gate.clone(), permits })
    }

    /// Gives all of them back, at the same time.
    pub(super) async fn release(mut self) {
        let released = self.gate.release_all(&self.permits).await;
        // What has failed is tried again, without anybody who waits; so is all of it if this is dropped before.
        let mut answers = released.iter();
        self.permits.retain(|_| answers.next().is_some_and(Result::is_err));
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        self.gate.release_later(&self.permits);
    }
}
