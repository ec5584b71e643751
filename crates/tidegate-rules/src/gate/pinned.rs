//! The policy in force, pinned for one request.

use std::fmt;

use tidegate_core::StoreFuture;

use super::admission::Admission;
use super::batch::Batch;
use super::charges::Charges;
use super::{Gate, Held};
use crate::attributes::Attributes;
use crate::policy::Policy;

/// The policy in force at one moment, for a request whose attributes are chosen by the policy; see [`Gate::pin`].
pub struct PinnedPolicy<'g> {
    gate: &'g Gate,
    force: Held,
}

impl Gate {
    /// Pins the policy in force: the attributes of a request are chosen and decided by the same policy, whatever
    /// replaces it meanwhile.
    ///
    /// A front reads only the attributes that the rules use. If the policy were replaced between that choice and the
    /// decision, attributes of the new rules would be missing, and none of them would apply.
    ///
    /// ```
    /// use tidegate::Zone;
    /// use tidegate::rules::{Attributes, Gate, Policy};
    ///
    /// let banned = |user| format!("[[rule]]\nname = '{user}'\nwhen = {{ user = '{user}' }}\ndecision = 'deny'\n");
    /// let gate = Gate::new(Policy::from_toml(&banned("ana"))?, Zone::new(1 << 20))?;
    /// let pinned = gate.pin();
    /// gate.replace(Policy::from_toml(&banned("bob"))?)?;
    /// let uses_user = pinned.policy().attributes().any(|name| name == "user");
    /// assert!(uses_user && !pinned.admit(&Attributes::new().set("user", "ana")).now()?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Pin it for a moment only: it delays the release of a replaced policy. [`PinnedPolicy::to_batch`] is for longer.
    pub fn pin(&self) -> PinnedPolicy<'_> {
        PinnedPolicy { gate: self, force: self.in_force() }
    }
}

impl PinnedPolicy<'_> {
    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        &self.force.policy
    }

    /// [`Gate::admit`] by the pinned policy.
    pub fn admit<'a>(&'a self, attributes: &'a Attributes<'_>) -> StoreFuture<'a, Admission> {
        self.gate.admit_under(&self.force, attributes)
    }

    /// [`Gate::admit_tracked`] by the pinned policy.
    pub fn admit_tracked<'a>(
        &'a self,
        attributes: &'a Attributes<'_>,
    ) -> StoreFuture<'a, (Admission, Charges)> {
        self.gate.tracked_under(&self.force, || self.force.to_arc(), attributes)
    }

    /// Returns a batch by the pinned policy, which can be kept for any length of time.
    pub fn to_batch(&self) -> Batch {
        Batch::new(self.gate.clone(), self.force.to_arc())
    }
}

impl fmt::Debug for PinnedPolicy<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PinnedPolicy")
            .field("rules", &self.force.policy.rules().len())
            .finish_non_exhaustive()
    }
}
