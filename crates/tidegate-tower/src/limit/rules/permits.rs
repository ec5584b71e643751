//! Places in flight that rules gave to a request.
//!
//! In memory they go back when they are dropped. To a store elsewhere something has to be sent, which takes somebody
//! who awaits it: the request itself when its response is there. What was dropped before is left to the next request,
//! while its service works, and at the latest its lease brings it back.

use std::sync::{Arc, Mutex, PoisonError};

use tidegate_rules::{Gate, HeldPermit};

/// The most that one request gives back for others.
const MOST_FOR_OTHERS: usize = 8;
/// The most that is left to others; what is beyond comes back with its lease.
const MOST_LEFT: usize = 4096;

/// Places that nobody has given back yet; clones share them.
#[derive(Clone, Default)]
pub(super) struct Abandoned(Arc<Mutex<Vec<HeldPermit>>>);

impl Abandoned {
    fn leave(&self, permits: Vec<HeldPermit>) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MOST_LEFT.saturating_sub(left.len());
        left.extend(permits.into_iter().take(room));
    }

    /// Some of them, to be given back.
    pub(super) fn some(&self) -> Vec<HeldPermit> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let keep = left.len().saturating_sub(MOST_FOR_OTHERS);
        left.split_off(keep)
    }
}

/// The places of one request.
pub(in crate::limit) struct Places {
    gate: Gate,
    permits: Vec<HeldPermit>,
    abandoned: Abandoned,
}

impl Places {
    /// Nothing if there are none.
    pub(super) fn of(gate: &Gate, permits: &[HeldPermit], abandoned: &Abandoned) -> Option<Places> {
        let permits = (!permits.is_empty()).then(|| permits.to_vec())?;
        Some(Places { gate: gate.clone(), permits, abandoned: abandoned.clone() })
    }

    /// Gives all of them back, at the same time.
    pub(super) async fn release(mut self) {
        // What fails comes back with its lease; what is dropped meanwhile is left to others, who may do it again.
        let _ = self.gate.release_all(&self.permits).await;
        self.permits.clear();
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        let permits = std::mem::take(&mut self.permits);
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            permits.into_iter().partition(|permit| permit.is_local || self.gate.is_in_memory());
        for permit in here {
            // A store in memory answers at once and cannot fail.
            let _ = self.gate.release_now(&permit);
        }
        if !elsewhere.is_empty() {
            self.abandoned.leave(elsewhere);
        }
    }
}
