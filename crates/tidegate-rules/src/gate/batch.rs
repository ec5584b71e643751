//! Batches: many requests decided by one policy, in stretches that each have one instant.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use tidegate_core::{StoreFuture, Timestamp};

use super::admission::Admission;
use super::admit::Measured;
use super::charges::Charges;
use super::{Gate, InForce};
use crate::attributes::Attributes;
use crate::rule::GroupId;

/// The size of attributes that one ask accounts for, in bytes.
const BYTES_PER_ASK: usize = 1 << 10;

/// A policy in force for many requests; see [`Gate::batch`].
#[derive(Clone)]
pub struct Batch {
    gate: Gate,
    force: Arc<InForce>,
}

/// Requests of a [`Batch`] that are decided one after the other, at one instant; see [`Batch::stretch`].
pub struct Stretch<'b> {
    batch: &'b Batch,
    moment: BatchInstant,
}

/// The instant at which a request is decided.
#[derive(Debug, Default)]
pub(super) struct BatchInstant {
    /// The date by the calendar. It is read when a schedule or an override needs it.
    date: OnceLock<i64>,
    /// The time by the clock of an in-memory store; `None` if each take reads the clock itself.
    pub(super) at: Option<Timestamp>,
}

impl BatchInstant {
    /// Returns the moment of several requests.
    pub(super) fn of(force: &InForce) -> BatchInstant {
        BatchInstant { at: force.store.now(), ..BatchInstant::default() }
    }

    pub(super) fn date(&self, gate: &Gate) -> i64 {
        *self.date.get_or_init(|| gate.inner.calendar.now())
    }
}

impl Gate {
    /// Begins a batch. All of its requests are decided by the policy that is in force now.
    ///
    /// ```
    /// use tidegate::Zone;
    /// use tidegate::rules::{Attributes, Gate, Policy};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let policy = Policy::from_toml("[[rule]]\nname = 'site'\nkey = ['user']\nlimit = '1/h'")?;
    /// let batch = Gate::new(policy, Zone::new(1 << 20))?.batch();
    /// let requests = ["ana", "ana", "bob"].map(|user| Attributes::new().set("user", user));
    /// assert_eq!(requests.iter().map(|request| batch.asks(request)).sum::<usize>(), 3);
    /// let stretch = batch.stretch();
    /// for (request, is_allowed) in requests.iter().zip([true, false, true]) {
    ///     assert_eq!(stretch.admit(request).await?.is_allowed(), is_allowed);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn batch(&self) -> Batch {
        Batch::new(self.clone(), self.inner.force.load_full())
    }
}

impl Batch {
    pub(super) fn new(gate: Gate, force: Arc<InForce>) -> Batch {
        Batch { gate, force }
    }

    /// [`Gate::admit`] by the policy of this batch, for one request. The requests of a [`Stretch`] share an instant.
    pub fn admit<'a>(&'a self, request: &'a Attributes<'_>) -> StoreFuture<'a, Admission> {
        self.gate.admit_under(&self.force, request)
    }

    /// [`Gate::admit_tracked`] by the policy of this batch, for one request.
    pub fn admit_tracked<'a>(&'a self, request: &'a Attributes<'_>) -> StoreFuture<'a, (Admission, Charges)> {
        self.gate.tracked_under(&self.force, || self.force.clone(), request)
    }

    /// Returns the number of asks of a request: one for each limit that applies to it, and at least one. A group of
    /// enforced rules is one limit. Shadow rules and candidates are included, also after a fixed decision. If the attributes exceed 1 KiB, the number is
    /// multiplied by their size in KiB, rounded up.
    ///
    /// The time and memory cost of a batch grows with the sum of these.
    pub fn asks(&self, request: &Attributes<'_>) -> usize {
        let policy = &self.force.policy;
        let limited =
            policy.applying(&policy.see(request)).into_iter().filter_map(|id| policy.rule(id).limited());
        let (mut rules, mut groups): (usize, HashMap<GroupId, usize>) = (0, HashMap::new());
        for limited in limited {
            let asks = 1 + limited.candidates.len();
            match limited.group.as_ref().filter(|_| limited.is_always_enforced()) {
                Some(group) => {
                    let most = groups.entry(group.id).or_default();
                    *most = asks.max(*most);
                }
                None => rules += asks,
            }
        }
        let rules = rules + groups.into_values().sum::<usize>();
        rules.max(1).saturating_mul(request.bytes().div_ceil(BYTES_PER_ASK).max(1))
    }

    /// Begins a stretch. If the store is in memory, its requests are decided at one instant, as single requests at that
    /// instant would be. A remote store decides about each request when it arrives there.
    ///
    /// A stretch that takes longer than a twentieth of a second continues at a later instant.
    pub fn stretch(&self) -> Stretch<'_> {
        Stretch { batch: self, moment: BatchInstant::of(&self.force) }
    }

    /// [`Gate::admit_all`] by the policy of this batch.
    pub fn admit_all<'a>(&'a self, requests: &'a [Attributes<'_>]) -> StoreFuture<'a, Vec<Admission>> {
        let Batch { gate, force } = self;
        gate.reply(async move {
            let moment = BatchInstant::of(force);
            gate.decide(force, requests, &mut Measured::new(gate), &moment).await
        })
    }
}

impl Stretch<'_> {
    /// [`Gate::admit`] by the policy of the batch, at the instant of this stretch.
    pub fn admit<'a>(&'a self, request: &'a Attributes<'_>) -> StoreFuture<'a, Admission> {
        let (Batch { gate, force }, moment) = (self.batch, &self.moment);
        match gate.decide_now(force, request, &mut Measured::new(gate), moment) {
            Some(admission) => StoreFuture::ready(admission),
            None => StoreFuture::later(async move {
                gate.decide_one(force, request, &mut Measured::new(gate), moment).await
            }),
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Batch").field("rules", &self.force.policy.rules().len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Stretch<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Stretch").field("at", &self.moment.at).finish_non_exhaustive()
    }
}
