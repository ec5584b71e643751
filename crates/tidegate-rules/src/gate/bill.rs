//! What a request really took, so that exactly that can be corrected when it is known what the request was worth.
//!
//! By then other rules may be in force, the store may be back, and a schedule may say something else: whoever looked for
//! the rules of the request again would give back what nobody has taken.

use std::fmt;
use std::sync::Arc;

use tidegate::{Algorithm, DecidedBy, Key, OpenReceipt, PreparedLimit, StoreError, Subject};

use super::admission::Admission;
use super::admit::Measured;
use super::batch::Moment;
use super::together::Decided;
use super::visit::Asked;
use super::{Gate, InForce, at_once};
use crate::attributes::Attributes;
use crate::index::RuleId;
use crate::rule::Mode;

/// What a request took of each limit; see [`Gate::admit_billed`].
///
/// It holds on to the policy by which it was decided, and so to where its counts are.
#[derive(Default)]
pub struct Bill {
    pub(super) force: Option<Arc<InForce>>,
    pub(super) entries: Vec<Entry>,
}

/// What was taken under one rule.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) rule: RuleId,
    pub(super) key: Key,
    /// The limit of all nodes together, also where this one has decided by its share.
    pub(super) limit: PreparedLimit,
    /// What each unit of the request weighs under this rule.
    pub(super) weight: u64,
    /// What it took, and nobody has given back yet.
    pub(super) paid: u64,
    /// True if the local store took it from this node's share, as the remote store failed.
    pub(super) is_local: bool,
    /// Whether it is obeyed.
    pub(super) mode: Mode,
    /// What it can be refunded by: the receipt of the take, and those of late charges.
    pub(super) receipts: Vec<Paid>,
}

/// A receipt, and the limit whose state was charged.
#[derive(Debug)]
pub(super) struct Paid {
    pub(super) limit: PreparedLimit,
    pub(super) receipt: OpenReceipt,
}

impl Gate {
    /// [`Gate::admit`] for whoever learns only later what a request is worth: with what it took of each limit, also of
    /// those that are only measured, to be corrected by [`Gate::charge`] and [`Gate::refund`].
    ///
    /// The bill holds a receipt of each take, so a refund gives back at most what of just that take is still owed.
    ///
    /// There is nothing on the bill of a request that was refused, that no limit holds for, or that passed because a
    /// store failed. Places in flight are not on it: they go back by [`Gate::release`].
    ///
    /// ```
    /// use tidegate::Zone;
    /// use tidegate_rules::{Attributes, Gate, Policy};
    ///
    /// let gate = Gate::new(Policy::from_toml("[[rule]]\nname = 'site'\nlimit = '1/h'")?, Zone::new(1 << 20));
    /// let (answer, mut bill) = gate.admit_billed_now(&Attributes::new()).expect("memory cannot fail");
    /// assert!(answer.is_allowed());
    /// gate.refund_now(&mut bill, 1).expect("memory cannot fail");
    /// assert!(gate.admit_now(&Attributes::new()).is_ok_and(|answer| answer.is_allowed()));
    /// # Ok::<(), tidegate_rules::PolicyError>(())
    /// ```
    pub async fn admit_billed(&self, attributes: &Attributes<'_>) -> Result<(Admission, Bill), StoreError> {
        let force = self.in_force();
        let mut measured = Measured::billed(self);
        let admission = self.decide_one(&force, attributes, &mut measured, &Moment::default()).await?;
        let entries = measured.bill.take().filter(|taken| admission.is_allowed() && !taken.is_empty());
        let bill = entries.map(|entries| Bill { force: Some(force.to_arc()), entries });
        Ok((admission, bill.unwrap_or_default()))
    }

    /// [`Gate::admit_billed`] for a store that answers at once, as those in memory do.
    pub fn admit_billed_now(&self, attributes: &Attributes<'_>) -> Result<(Admission, Bill), StoreError> {
        at_once(self.admit_billed(attributes))
    }
}

impl Bill {
    /// Whether nothing was taken.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What each rule took, by name, less what was given back.
    pub fn taken(&self) -> impl Iterator<Item = (&str, u64)> {
        let of_force = |force| self.entries.iter().map(move |entry| (entry.name(force), entry.paid));
        self.force.as_deref().into_iter().flat_map(of_force)
    }
}

impl Entry {
    /// What a decision took; nothing if it refused, counts nothing, or gave a place in flight.
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

    /// The rule's name, in the policy by which it was decided.
    pub(super) fn name<'f>(&self, force: &'f InForce) -> &'f str {
        force.policy.rule(self.rule).name()
    }

    /// Its key under this limit, where it was taken.
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

impl fmt::Debug for Bill {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.taken()).finish()
    }
}
