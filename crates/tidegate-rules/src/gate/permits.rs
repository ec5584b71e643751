//! Release and renewal of concurrency permits.
//!
//! A permit of a concurrency limit is held until it is released, or until its lease expires. The caller may be another
//! process than the one that acquired it, so a permit carries all that is needed to release it, and none of its
//! contents is trusted: the store compares the id, which cannot be guessed.

use std::pin::Pin;

use tidegate_core::{Algorithm, Key, PreparedLimit, StoreError, StoreFuture, Subject};
use tidegate_support::join_all;

use super::admission::HeldPermit;
use super::limits::LimitInUse;
use super::overrides::Instead;
use super::{Gate, InForce};

impl Gate {
    /// Releases a concurrency permit in the store that granted it: the store, or the local fallback. Returns true if
    /// the permit was still held.
    ///
    /// A second release has no effect and returns false. So does the release of a permit whose lease has expired.
    ///
    /// ```
    /// use tidegate::Zone;
    /// use tidegate::rules::{Attributes, Gate, Policy};
    ///
    /// let policy = Policy::from_toml("[[rule]]\nname = 'uploads'\nlimit = '1/30s concurrency'")?;
    /// let gate = Gate::new(policy, Zone::new(1 << 20))?;
    /// let first = gate.admit(&Attributes::new()).now()?;
    /// assert!(!gate.admit(&Attributes::new()).now()?.is_allowed());
    /// for permit in first.permits() {
    ///     assert!(gate.release(permit).now()?);
    /// }
    /// assert!(gate.admit(&Attributes::new()).now()?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "semaphore")]
    #[doc(alias = "bulkhead")]
    pub fn release<'a>(&'a self, permit: &'a HeldPermit) -> StoreFuture<'a, bool> {
        self.reply(async move {
            let force = self.in_force();
            let limit = self.limit_to_release(&force, permit);
            force.release(permit, limit.as_ref()).await
        })
    }

    /// Releases several permits concurrently.
    ///
    /// Returns the results in the order of the permits. On a remote store all releases are in flight together.
    pub async fn release_all(&self, permits: &[HeldPermit]) -> Vec<Result<bool, StoreError>> {
        let force = self.in_force();
        let limits: Vec<_> = permits.iter().map(|permit| self.limit_to_release(&force, permit)).collect();
        join_all(permits.iter().zip(&limits).map(|(permit, limit)| force.release(permit, limit.as_ref())))
            .await
    }

    /// Releases permits without waiting for the result, for a request that no longer exists. A permit whose release
    /// does not reach the store expires with its lease.
    pub fn release_later(&self, permits: &[HeldPermit]) {
        let force = self.in_force();
        for permit in permits {
            let Some(limit) = self.limit_to_release(&force, permit) else { continue };
            force.store.store().release_later(force.holding(permit, &limit), permit.id);
        }
    }

    /// Runs a task in the background of the store, for example the correction of a request that no longer exists.
    pub fn in_background(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.in_force().store.store().in_background(task);
    }

    /// Returns the limit that identifies the permits of a rule. The permits are one set for all numbers of the limit,
    /// even after the rule is removed. `None` if the permit names a limit without permits.
    fn limit_to_release(&self, force: &InForce, permit: &HeldPermit) -> Option<PreparedLimit> {
        let gives_permits = permit.limit.algorithm() == Algorithm::Concurrency;
        let of_permit = || gives_permits.then(|| PreparedLimit::permits_of(&permit.rule, permit.limit));
        // The contents of a permit come from a client, so they never put a limit in force. A permit keeps the lease
        // that it was granted; if its release does not reach the store, it expires after that lease.
        let in_force = self.limit_in_force(force, permit).map(|limit| PreparedLimit::clone(&limit));
        let is_shorter = |limit: &PreparedLimit| limit.limit().time_to_full() < permit.limit.time_to_full();
        in_force.filter(|limit| !gives_permits || !is_shorter(limit)).or_else(of_permit)
    }

    /// Restarts a permit's lease, with the current lease time of its rule. Returns true if the permit was still held.
    /// Returns false if its rule was removed, because the lease time is then unknown.
    ///
    /// Renew at a third of the lease or more often, so that one lost renewal does not end it.
    #[doc(alias = "heartbeat")]
    #[doc(alias = "keep alive")]
    pub fn renew<'a>(&'a self, permit: &'a HeldPermit) -> StoreFuture<'a, bool> {
        self.reply(async move {
            let force = self.in_force();
            let Some(limit) = self.limit_in_force(&force, permit) else { return Ok(false) };
            force.store.store().renew(force.holding(permit, &limit), permit.id).await
        })
    }

    /// Returns the concurrency limit in force for the rule of a permit. The contents of the permit come from a client.
    fn limit_in_force<'f>(&self, force: &'f InForce, permit: &HeldPermit) -> Option<LimitInUse<'f>> {
        let limit = self.limit_of(force, &permit.rule, &permit.key)?;
        (limit.limit().algorithm() == Algorithm::Concurrency).then_some(limit)
    }

    /// Returns the limit in force for this key of a rule. `None` if the rule was removed or has no limit now.
    pub(super) fn limit_of<'f>(&self, force: &'f InForce, rule: &str, key: &Key) -> Option<LimitInUse<'f>> {
        let id = force.policy.id_of(rule)?;
        let rule = force.policy.rule(id);
        let date = self.inner.calendar.now();
        let usual = rule.limited()?.now(|| date).0.limit;
        let usual = force.limit_of(id, &usual, key, || date)?;
        Some(match self.inner.overrides.of(rule, key, || date) {
            Some(found) if !matches!(found.instead(date), Some(Instead::Allow | Instead::Deny)) => {
                found.in_place_of(usual, date)
            }
            _ => usual,
        })
    }
}

impl InForce {
    fn release<'a>(
        &'a self,
        permit: &'a HeldPermit,
        limit: Option<&'a PreparedLimit>,
    ) -> StoreFuture<'a, bool> {
        let Some(limit) = limit else { return StoreFuture::ready(false) };
        self.store.store().release(self.holding(permit, limit), permit.id)
    }

    /// Returns the key of a permit in the zone of its rule, or in the local store if the permit was granted there.
    fn holding<'a>(&'a self, permit: &'a HeldPermit, limit: &'a PreparedLimit) -> Subject<'a> {
        let zone = self.policy.named(&permit.rule).and_then(|rule| rule.zone());
        limit.subject(&permit.key).in_zone(zone).in_local_store(permit.is_local)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_core::Zone;

    use super::*;
    use crate::{Attributes, Policy};

    fn policy(lease: &str) -> Policy {
        let text = format!("[[rule]]\nname = 'a'\nlimit = '1/{lease} concurrency'\n");
        Policy::from_toml(&text).expect("a rule")
    }

    #[test]
    fn a_place_goes_back_for_as_long_as_its_own_lease_and_that_of_its_rule() {
        let gate = Gate::new(policy("60s"), Zone::new(1 << 16)).expect("the store supports the policy");
        let held = gate.admit(&Attributes::new()).now().expect("memory answers at once").permits()[0].clone();
        for (lease, longest) in [("60s", 60), ("1s", 60), ("1h", 3600)] {
            gate.replace(policy(lease)).expect("no zones");
            let limit = gate.limit_to_release(&gate.in_force(), &held).expect("it gives permits");
            assert_eq!(limit.limit().time_to_full(), Duration::from_secs(longest), "{lease}");
        }
        assert_eq!(gate.release(&held).now().ok(), Some(true));
    }
}
