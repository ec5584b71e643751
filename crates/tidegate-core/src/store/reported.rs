//! Replies that may contain a decision, for stores that correct the reported values.
//!
//! While counts of an earlier limit matter, a store decides by the state and then corrects the reported wait and quota.
//! The change itself is generic over its reply, so the correction has to find the decision in it. Replies without a
//! decision pass through unchanged. A refund that cannot be kept is reported as capped.

use crate::algorithm::TakenOff;
use crate::ask::Adjusted;
use crate::decision::Decision;

/// The reply of a change to a state.
pub(crate) trait Reported: Sized {
    /// Replaces the decision in the reply, if there is one. The default is for replies without a decision.
    fn report(self, _: &mut dyn FnMut(Decision) -> Decision) -> Self {
        self
    }

    /// Replaces the result of an adjustment that was not written. The default is for other replies.
    #[must_use]
    fn not_kept(self) -> Self {
        self
    }
}

impl Reported for Decision {
    fn report(self, report: &mut dyn FnMut(Decision) -> Decision) -> Decision {
        report(self)
    }
}

impl<T> Reported for (Decision, T) {
    fn report(self, report: &mut dyn FnMut(Decision) -> Decision) -> (Decision, T) {
        (report(self.0), self.1)
    }
}

impl Reported for Adjusted {
    fn not_kept(self) -> Adjusted {
        Adjusted::Capped
    }
}

impl<T> Reported for (Adjusted, T) {
    fn not_kept(self) -> (Adjusted, T) {
        (Adjusted::Capped, self.1)
    }
}

impl Reported for Option<TakenOff> {}
impl Reported for bool {}
