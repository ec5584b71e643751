//! The record of the units that a request took, so that exactly these can be corrected once the real cost is known.
//!
//! By then another policy may be in force, the store may have recovered, and a schedule may have changed the limit.
//! Matching the rules again at that time could refund units that were never taken.

use std::fmt;
use std::sync::Arc;

use tidegate_core::{Algorithm, DecidedBy, Key, OpenReceipt, PreparedLimit, StoreFuture, Subject};

use super::admission::Admission;
use super::admit::Measured;
use super::batch::BatchInstant;
use super::matched_rules::Asked;
use super::together::Decided;
use super::{Gate, InForce};
use crate::attributes::Attributes;
use crate::index::RuleId;
use crate::rule::Mode;

/// The units that a request took from each limit; see [`Gate::admit_tracked`].
///
/// It keeps the policy of the decision alive, and with it the store of the counts.
#[derive(Default)]
pub struct Charges {
    pub(super) force: Option<Arc<InForce>>,
    pub(super) entries: Vec<Entry>,
}

/// The units taken under one rule.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) rule: RuleId,
    pub(super) key: Key,
    /// The limit of all nodes together, even if this node decided by its share.
    pub(super) limit: PreparedLimit,
    /// The weight of each unit of the request under this rule.
    pub(super) weight: u64,
    /// The units taken and not yet refunded.
    pub(super) paid: u64,
    /// True if the local store took the units from this node's share, because the remote store failed.
    pub(super) is_local: bool,
    /// The mode of the rule at the time of the decision.
    pub(super) mode: Mode,
    /// The receipts for refunds: that of the take, and those of later charges.
    pub(super) receipts: Vec<Paid>,
}

/// A receipt, and the limit whose state was charged.
#[derive(Debug)]
pub(super) struct Paid {
    pub(super) limit: PreparedLimit,
    pub(super) receipt: OpenReceipt,
}

impl Gate {
    /// [`Gate::admit`] for a caller that learns the real cost of a request later. Returns a bill of the units taken
    /// from each limit, shadow rules included. [`Gate::charge`] and [`Gate::refund`] correct it.
    ///
    /// The bill holds a receipt of each take. A refund returns at most the part of that take that is still debt.
    ///
    /// The bill is empty if the request was denied, if no limit applies, or if it was allowed because a store failed.
    /// Concurrency permits are not on the bill; release them with [`Gate::release`].
    ///
    /// ```
    /// use tidegate::Zone;
    /// use tidegate::rules::{Attributes, Gate, Policy};
    ///
    /// let gate = Gate::new(Policy::from_toml("[[rule]]\nname = 'site'\nlimit = '1/h'")?, Zone::new(1 << 20))?;
    /// let (answer, mut bill) = gate.admit_tracked(&Attributes::new()).now()?;
    /// assert!(answer.is_allowed());
    /// gate.refund(&mut bill, 1).now()?;
    /// assert!(gate.admit(&Attributes::new()).now()?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn admit_tracked<'a>(
        &'a self,
        attributes: &'a Attributes<'_>,
    ) -> StoreFuture<'a, (Admission, Charges)> {
        let force = self.in_force();
        self.tracked_under(&force, || force.to_arc(), attributes)
    }

    /// [`Gate::admit_tracked`] under a policy. `to_arc` returns a reference to it that can be held for any length of
    /// time.
    pub(super) fn tracked_under<'a>(
        &'a self,
        force: &InForce,
        to_arc: impl FnOnce() -> Arc<InForce>,
        attributes: &'a Attributes<'_>,
    ) -> StoreFuture<'a, (Admission, Charges)> {
        let (moment, mut measured) = (BatchInstant::default(), Measured::tracked(self));
        if let Some(admission) = self.decide_now(force, attributes, &mut measured, &moment) {
            return StoreFuture::ready(with_charges(admission, to_arc, &mut measured));
        }
        let force = to_arc();
        StoreFuture::later(async move {
            let (moment, mut measured) = (BatchInstant::default(), Measured::tracked(self));
            let admission = self.decide_one(&force, attributes, &mut measured, &moment).await?;
            Ok(with_charges(admission, || force.clone(), &mut measured))
        })
    }
}

/// Returns an admission with the units that it took, and the policy that they were taken under.
fn with_charges(
    admission: Admission,
    force: impl FnOnce() -> Arc<InForce>,
    measured: &mut Measured<'_>,
) -> (Admission, Charges) {
    let entries = measured.bill.take().filter(|taken| admission.is_allowed() && !taken.is_empty());
    let bill = entries.map(|entries| Charges { force: Some(force()), entries });
    (admission, bill.unwrap_or_default())
}

impl Charges {
    /// Returns true if no units were taken.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the name of each rule with the units taken, minus refunds.
    pub fn taken(&self) -> impl Iterator<Item = (&str, u64)> {
        let of_force = |force| self.entries.iter().map(move |entry| (entry.name(force), entry.paid));
        self.force.as_deref().into_iter().flat_map(of_force)
    }
}

impl Entry {
    /// Returns the entry of a decision. `None` if it denied, is not counted, or granted a concurrency permit.
    pub(super) fn of(asked: &Asked<'_>, decided: Decided<'_>, receipt: Option<OpenReceipt>) -> Option<Entry> {
        let is_counted = decided.is_allowed() && !decided.is_uncounted();
        let is_taken = is_counted && asked.limit().algorithm() != Algorithm::Concurrency;
        let limit = || PreparedLimit::clone(&asked.limit);
        is_taken.then(|| Entry {
            rule: asked.id,
            key: asked.key.clone(),
            limit: limit(),
            weight: asked.weight,
            paid: asked.ask.cost.get(),
            is_local: decided.by == DecidedBy::Local,
            mode: asked.mode,
            receipts: receipt.into_iter().map(|receipt| Paid { limit: limit(), receipt }).collect(),
        })
    }

    /// Returns the name of the rule in the policy of the decision.
    pub(super) fn name<'f>(&self, force: &'f InForce) -> &'f str {
        force.policy.rule(self.rule).name()
    }

    /// Returns the key under this limit, in the store where the units were taken.
    pub(super) fn subject<'a>(&'a self, force: &'a InForce, limit: &'a PreparedLimit) -> Subject<'a> {
        let rule = force.policy.rule(self.rule);
        let subject = limit.subject(&self.key).when_full(rule.when_full()).in_zone(rule.zone());
        match self.mode {
            Mode::Enforce => subject.on_store_failure(rule.on_store_failure()),
            Mode::Shadow => subject.without_fallback(),
        }
        .in_local_store(self.is_local)
    }
}

impl fmt::Debug for Charges {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.taken()).finish()
    }
}
