//! A remote store with a fallback, which decides while the remote store is down.
//!
//! | policy | decision while the remote store is down |
//! |---|---|
//! | `local` | by this node's share of the limit; a cost above the share, but not above the limit, is denied for a second |
//! | `open` | as for a key that has spent nothing (fail-open), so a cost above the limit is denied |
//! | `closed` | denied for a second (fail-closed); a cost above the limit stays impossible |
//!
//! Several asks are allowed or denied together, whatever the policy of each:
//!
//! ```text
//!   one that is closed, or open and too small for the cost -> denied, and nothing is spent
//!   else -> those that are local, all or none, by the shares of their limits; those that are open allow
//! ```
//!
//! A peek, an adjustment and a reset are errors while the remote store is down, because only it holds the counts.
//!
//! A take that was decided locally carries that fact in its decision. The caller passes it back by
//! [`Subject::in_local_store`], so that a refund, a release and a late charge go to the store that has the state.

mod meter;
mod policy;

pub use meter::{DecisionMeter, StoreFailure, StoreFailures, StoreMeter, WithoutStore};
pub use policy::OnStoreFailure;

use std::fmt;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;

use super::{
    Fallback, MemoryStore, OpenReceipt, PreparedLimit, Store, StoreError, StoreFuture, Subject, Zones,
};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::{Ban, Decision, PermitId};
use crate::decisions::{DecidedBy, Decisions};
use crate::few::Few;
use crate::limit::Limit;
use crate::trace;

/// A remote store with a fallback: a policy that decides while it is down, and an in-memory store of this node for the
/// policy `local`. Clones share it.
///
/// ```
/// use std::num::NonZeroU64;
/// use std::sync::Arc;
/// use tidegate::{Ask, DecidedBy, FallbackStore, Key, Limit, Map, Store, Subject, Zone};
///
/// # async fn example() -> Result<(), tidegate::StoreError> {
/// let remote = Arc::new(Map::new()); // in place of a store that other nodes reach as well
/// let three = NonZeroU64::new(3).expect("not zero");
/// let store = FallbackStore::new(remote, &Zone::new(1 << 20)).nodes(three);
/// let (limit, key) = (Limit::per_second(30), Key::new("ana"));
/// let decisions = store.take(&[(Subject::new("site", &key, &limit), Ask::ONE)]).await?;
/// assert_eq!(decisions.decided_by(0), DecidedBy::Remote);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "degraded mode")]
#[doc(alias = "failover")]
#[doc(alias = "circuit breaker")]
#[doc(alias = "Redis down")]
#[doc(alias = "fail-open")]
#[doc(alias = "fail-closed")]
#[derive(Clone)]
pub struct FallbackStore {
    /// The store that decides while it can be reached.
    remote: Arc<dyn Store>,
    /// The stores of this node, which the policy `local` decides by.
    local: Zones,
    /// The number of nodes, by which a limit is divided.
    nodes: NonZeroU64,
    /// The policy of asks that name none.
    policy: OnStoreFailure,
    meter: Arc<StoreMeter>,
}

impl FallbackStore {
    /// Creates a store with a fallback, for one node and with the policy `local`.
    pub fn new(remote: Arc<dyn Store>, local: impl Into<MemoryStore>) -> FallbackStore {
        let (nodes, policy) = (NonZeroU64::MIN, OnStoreFailure::Local);
        FallbackStore { remote, local: Zones::new(local), nodes, policy, meter: Arc::default() }
    }

    /// Sets the number of nodes that share the remote store. While it is down, each of them decides by [its
    /// share](Limit::shared_among) of a limit. A number that is too small admits too much while the remote store is
    /// down: at most the limit times nodes divided by this number.
    #[must_use]
    pub fn nodes(self, nodes: NonZeroU64) -> FallbackStore {
        FallbackStore { nodes, ..self }
    }

    /// Sets the policy of asks without a policy of their own ([`Subject::on_store_failure`]). Rules of a gate always
    /// have their own, `local` unless they name another.
    #[must_use]
    pub fn on_store_failure(self, policy: OnStoreFailure) -> FallbackStore {
        FallbackStore { policy, ..self }
    }

    /// Returns the policy of an ask; `None` if its failures are errors.
    fn policy_of(&self, subject: &Subject<'_>) -> Option<OnStoreFailure> {
        match subject.fallback {
            Fallback::OfStore => Some(self.policy),
            Fallback::Policy(policy) => Some(policy),
            Fallback::None => None,
        }
    }

    /// Returns the limit by which this node decides. It is cached in the prepared limit.
    fn share(&self, subject: &Subject<'_>) -> PreparedLimit {
        subject.prepared_limit().share(self.nodes)
    }

    /// Returns the decisions of the remote store, or those in its place. A store that has not decided every ask has
    /// failed.
    fn decided(
        &self,
        asks: &[(Subject<'_>, Ask)],
        answer: Result<Decisions, StoreError>,
    ) -> Result<Decisions, StoreError> {
        let answer = answer.and_then(|decisions| {
            let (decided, asked) = (decisions.each().len(), asks.len());
            let missing = || format!("the store decided about {decided} of {asked} limits");
            if decided == asked { Ok(decisions) } else { Err(StoreError::outcome_unknown(missing())) }
        });
        match answer {
            Ok(decisions) => {
                if !decisions.is_remembered() && self.meter.answered() {
                    trace::store_recovered();
                }
                Ok(decisions.by(DecidedBy::Remote))
            }
            Err(error) => {
                if self.meter.failed(&error, self.local.now()) {
                    trace::store_failed(|| meter::in_one_line(&error));
                }
                let policies: Option<Vec<_>> =
                    asks.iter().map(|(subject, _)| self.policy_of(subject)).collect();
                policies.map(|policies| self.decide(asks, &policies)).ok_or(error)
            }
        }
    }

    /// Returns the decision of the local store about an ask that is not taken. A denial is then no strike, so it begins
    /// no ban.
    fn look(&self, subject: Subject<'_>, ask: Ask) -> Decision {
        let seen = self.local.peek(subject, ask);
        if seen.ban() == Some(Ban::Begun) { self.local.peek(subject.penalty(None), ask) } else { seen }
    }

    /// Returns the decisions in place of the remote store. Asks that count nothing are decided first: if one of them is
    /// denied, the local asks are only peeked. The local store decides its asks all or none.
    #[cold]
    fn decide(&self, asks: &[(Subject<'_>, Ask)], policies: &[OnStoreFailure]) -> Decisions {
        let each = || asks.iter().zip(policies);
        let uncounted: Vec<_> =
            each().map(|((subject, ask), policy)| policy.uncounted(subject.limit(), *ask)).collect();
        let is_denied = uncounted.iter().flatten().any(|decision| !decision.is_allowed());
        let local = || each().filter(|(_, policy)| **policy == OnStoreFailure::Local).map(|(asked, _)| asked);
        let shares: Vec<_> = local().map(|(subject, _)| self.share(subject)).collect();
        let local: Vec<_> =
            local().zip(&shares).map(|((subject, ask), share)| (subject.under(share), *ask)).collect();
        let mut taken = if is_denied {
            Decisions::new(local.iter().map(|(subject, ask)| self.look(*subject, *ask)).collect::<Few<_>>())
        } else {
            self.local.take_all(&local)
        };
        let mut receipts = taken.take_receipts().into_iter();
        let mut by_share = taken.each().iter().zip(&shares);
        let (mut decisions, mut by_each, mut open) = (Vec::new(), Vec::new(), Vec::new());
        for (((subject, ask), policy), uncounted) in each().zip(uncounted) {
            decisions.push(uncounted.unwrap_or_else(|| {
                let (decision, share) = by_share.next().expect("every local ask has a share");
                policy::by_share(subject.limit(), *ask, share.limit(), *decision)
            }));
            by_each.push(policy.decides());
            open.push(if *policy == OnStoreFailure::Local { receipts.next().flatten() } else { None });
        }
        let has_receipts = open.iter().any(Option::is_some);
        let receipts = if has_receipts { open } else { Vec::new() };
        Decisions::by_each(decisions, by_each).with_receipts(receipts)
    }
}

impl Store for FallbackStore {
    fn take<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> StoreFuture<'a, Decisions> {
        self.remote.take(asks).then(|answer| self.decided(asks, answer))
    }

    fn peek<'a>(&'a self, subject: Subject<'a>, ask: Ask) -> StoreFuture<'a, Decision> {
        self.remote.peek(subject, ask)
    }

    fn adjust<'a>(&'a self, subject: Subject<'a>, adjustment: Adjustment) -> StoreFuture<'a, Adjusted> {
        self.remote.adjust(subject, adjustment)
    }

    /// Charges in the store that decided the take. If the remote store fails and the policy is `local`, the local store
    /// is charged and the error is still returned. The local store decides about the key from now on.
    fn charge<'a>(
        &'a self,
        subject: Subject<'a>,
        cost: Cost,
    ) -> StoreFuture<'a, (Adjusted, Option<OpenReceipt>)> {
        if subject.is_local {
            return StoreFuture::ready(self.local.charge_tracked(subject.under(&self.share(&subject)), cost));
        }
        self.remote.charge(subject, cost).then(move |charged| {
            if charged.is_err() && self.policy_of(&subject) == Some(OnStoreFailure::Local) {
                self.local.adjust(subject.under(&self.share(&subject)), Adjustment::Charge(cost));
            }
            charged
        })
    }

    fn refund<'a>(
        &'a self,
        subject: Subject<'a>,
        receipt: &'a mut OpenReceipt,
        cost: Cost,
    ) -> StoreFuture<'a, Adjusted> {
        if subject.is_local {
            return StoreFuture::ready(self.local.refund(
                subject.under(&self.share(&subject)),
                receipt,
                cost,
            ));
        }
        self.remote.refund(subject, receipt, cost)
    }

    fn release<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool> {
        if subject.is_local {
            return StoreFuture::ready(self.local.release(subject.under(&self.share(&subject)), permit));
        }
        self.remote.release(subject, permit)
    }

    fn release_later(&self, subject: Subject<'_>, permit: PermitId) {
        if subject.is_local {
            self.local.release(subject.under(&self.share(&subject)), permit);
        } else {
            self.remote.release_later(subject, permit);
        }
    }

    fn in_background(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.remote.in_background(task);
    }

    fn renew<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool> {
        if subject.is_local {
            return StoreFuture::ready(self.local.renew(subject.under(&self.share(&subject)), permit));
        }
        self.remote.renew(subject, permit)
    }

    /// Removes the states of the key in both stores. Returns true if the remote store had any.
    fn reset<'a>(&'a self, subject: Subject<'a>) -> StoreFuture<'a, bool> {
        let forgotten = self.local.reset(subject);
        self.remote.reset(subject).then(|was_known| was_known.and_then(|known| forgotten.map(|_| known)))
    }

    /// Removes the state of the key under this limit in both stores. Returns true if the remote store had one.
    fn reset_limit<'a>(&'a self, subject: Subject<'a>) -> StoreFuture<'a, bool> {
        self.local.reset_limit(subject.under(&self.share(&subject)));
        self.remote.reset_limit(subject)
    }

    fn supports(&self, limit: &Limit) -> Result<(), String> {
        self.remote.supports(limit)
    }

    fn most_together(&self) -> usize {
        self.remote.most_together()
    }

    fn forget_refusals(&self) {
        self.remote.forget_refusals();
    }

    fn meter(&self) -> Option<&StoreMeter> {
        Some(&self.meter)
    }
}

impl fmt::Debug for FallbackStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FallbackStore")
            .field("remote", &self.remote)
            .field("nodes", &self.nodes)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
