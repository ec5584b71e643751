//! Places in flight, given back and held on to.

use std::pin::Pin;

use tidegate::{Algorithm, Answer, Key, PreparedLimit, StoreError, Subject};
use tidegate_support::join_all;

use super::admission::HeldPermit;
use super::limits::LimitInUse;
use super::overrides::Instead;
use super::{Gate, InForce, at_once};

impl Gate {
    /// Gives a place in flight back, to whoever holds it: the store, or this process if the store failed when it was
    /// taken. Whether the permit was still holding one.
    pub async fn release(&self, permit: &HeldPermit) -> Result<bool, StoreError> {
        let force = self.in_force();
        let limit = self.limit_to_release(&force, permit);
        force.release(permit, limit.as_ref()).await
    }

    /// The same for several, all at the same time.
    pub async fn release_all(&self, permits: &[HeldPermit]) -> Vec<Result<bool, StoreError>> {
        let force = self.in_force();
        let limits: Vec<_> = permits.iter().map(|permit| self.limit_to_release(&force, permit)).collect();
        join_all(permits.iter().zip(&limits).map(|(permit, limit)| force.release(permit, limit.as_ref())))
            .await
    }

    /// Gives places back without an answer, for those who cannot wait for one: their request is gone. What the store does
    /// not hear of comes back with its lease.
    pub fn release_later(&self, permits: &[HeldPermit]) {
        let force = self.in_force();
        for permit in permits {
            let Some(limit) = self.limit_to_release(&force, permit) else { continue };
            force.store.store().release_later(force.holding(permit, &limit), permit.id);
        }
    }

    /// Goes on with a task that nobody waits for, where the states are: the correction of a request that is gone.
    pub fn in_background(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.in_force().store.store().in_background(task);
    }

    /// The limit that names what is in flight under the rule of a permit. That is one set whatever the numbers, also
    /// when the rule is gone. None if the permit names a limit that gives no permits.
    fn limit_to_release(&self, force: &InForce, permit: &HeldPermit) -> Option<PreparedLimit> {
        let gives_permits = permit.limit.algorithm() == Algorithm::Concurrency;
        let of_permit = || gives_permits.then(|| PreparedLimit::permits_of(&permit.rule, permit.limit));
        // What a permit says is the text of a client: nothing is put in force by it. A permit keeps the lease that it was
        // given, and a place that the store does not hear of goes on to come back for that long.
        let in_force = self.limit_in_force(force, permit).map(|limit| PreparedLimit::clone(&limit));
        let is_shorter = |limit: &PreparedLimit| limit.limit().regained_in() < permit.limit.regained_in();
        in_force.filter(|limit| !gives_permits || !is_shorter(limit)).or_else(of_permit)
    }

    /// Starts a permit's lease anew, as long as its rule says now. Whether it was still holding its place; not if its
    /// rule is gone, as nobody says how long a lease is then.
    pub async fn renew(&self, permit: &HeldPermit) -> Result<bool, StoreError> {
        let force = self.in_force();
        let Some(limit) = self.limit_in_force(&force, permit) else { return Ok(false) };
        force.store.store().renew(force.holding(permit, &limit), permit.id).await
    }

    /// [`Gate::release`] for a store that answers at once.
    pub fn release_now(&self, permit: &HeldPermit) -> Result<bool, StoreError> {
        at_once(self.release(permit))
    }

    /// [`Gate::renew`] for a store that answers at once.
    pub fn renew_now(&self, permit: &HeldPermit) -> Result<bool, StoreError> {
        at_once(self.renew(permit))
    }

    /// The limit by which the rule of a permit counts what is in flight. What the permit says is a client's text.
    fn limit_in_force<'f>(&self, force: &'f InForce, permit: &HeldPermit) -> Option<LimitInUse<'f>> {
        let limit = self.limit_of(force, &permit.rule, &permit.key)?;
        (limit.limit().algorithm() == Algorithm::Concurrency).then_some(limit)
    }

    /// The limit by which a rule counts this key now; none if the rule is gone, or counts no more.
    pub(super) fn limit_of<'f>(&self, force: &'f InForce, rule: &str, key: &Key) -> Option<LimitInUse<'f>> {
        let id = force.policy.id_of(rule)?;
        let rule = force.policy.rule(id);
        let date = self.inner.calendar.now();
        let usual = rule.limited()?.now(|| date).0.limit;
        let of_rule = force.limit(id).now(&usual)?;
        let Some(found) = self.inner.overrides.of(rule, key, || date) else { return Some(of_rule) };
        Some(match found.instead(date) {
            Some(Instead::Limit(limit)) => found.limit(&limit, of_rule, date),
            None => found.limit(&usual, of_rule, date),
            Some(Instead::Allow | Instead::Deny) => of_rule,
        })
    }
}

impl InForce {
    fn release<'a>(&'a self, permit: &'a HeldPermit, limit: Option<&'a PreparedLimit>) -> Answer<'a, bool> {
        let Some(limit) = limit else { return Answer::ready(false) };
        self.store.store().release(self.holding(permit, limit), permit.id)
    }

    /// The key of a permit where it was taken: in the zone of its rule, unless the rule has had another one.
    fn holding<'a>(&'a self, permit: &'a HeldPermit, limit: &'a PreparedLimit) -> Subject<'a> {
        let zone = self.policy.named(&permit.rule).and_then(|rule| rule.zone());
        limit.subject(&permit.key).in_zone(zone).in_local_store(permit.is_local)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate::Zone;

    use super::*;
    use crate::{Attributes, Policy};

    fn policy(lease: &str) -> Policy {
        let text = format!("[[rule]]\nname = 'a'\nlimit = '1/{lease} concurrency'\n");
        Policy::from_toml(&text).expect("a rule")
    }

    #[test]
    fn a_place_goes_back_for_as_long_as_its_own_lease_and_that_of_its_rule() {
        let gate = Gate::new(policy("60s"), Zone::new(1 << 16));
        let held = gate.admit_now(&Attributes::new()).expect("memory answers at once").permits()[0].clone();
        for (lease, longest) in [("60s", 60), ("1s", 60), ("1h", 3600)] {
            gate.replace(policy(lease)).expect("no zones");
            let limit = gate.limit_to_release(&gate.in_force(), &held).expect("it gives permits");
            assert_eq!(limit.limit().regained_in(), Duration::from_secs(longest), "{lease}");
        }
        assert_eq!(gate.release_now(&held).ok(), Some(true));
    }
}
