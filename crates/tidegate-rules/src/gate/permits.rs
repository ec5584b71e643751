//! Places in flight, given back and held on to.

use tidegate::{Algorithm, Limit, StoreError, Subject};

use super::admission::HeldPermit;
use super::overrides::Instead;
use super::{Gate, InForce, at_once};

impl Gate {
    /// Gives a place in flight back, to whoever holds it: the store, or this process if the store failed when it was
    /// taken. Whether the permit was still holding one.
    pub async fn release(&self, permit: &HeldPermit) -> Result<bool, StoreError> {
        let force = self.in_force();
        // A place that a rule took is given back also when the rule is gone.
        let limit = self.limit_in_force(&force, permit).unwrap_or(permit.limit);
        let holder = force.holder_of(permit, &limit);
        match force.store.elsewhere() {
            Some(elsewhere) if permit.is_local => Ok(elsewhere.local.release(holder, permit.id)),
            None if permit.is_local => Ok(false),
            _ => force.store.store().release(holder, permit.id).await,
        }
    }

    /// Starts a permit's lease anew, as long as its rule says now. Whether it was still holding its place; not if its
    /// rule is gone, as nobody says how long a lease is then.
    pub async fn renew(&self, permit: &HeldPermit) -> Result<bool, StoreError> {
        let force = self.in_force();
        let Some(limit) = self.limit_in_force(&force, permit) else { return Ok(false) };
        let holder = force.holder_of(permit, &limit);
        match force.store.elsewhere() {
            // A share has fewer places, and the same lease.
            Some(elsewhere) if permit.is_local => Ok(elsewhere.local.renew(holder, permit.id)),
            None if permit.is_local => Ok(false),
            _ => force.store.store().renew(holder, permit.id).await,
        }
    }

    /// [`Gate::release`] for a store that answers at once.
    pub fn release_now(&self, permit: &HeldPermit) -> Result<bool, StoreError> {
        at_once(self.release(permit))
    }

    /// [`Gate::renew`] for a store that answers at once.
    pub fn renew_now(&self, permit: &HeldPermit) -> Result<bool, StoreError> {
        at_once(self.renew(permit))
    }

    /// The limit by which the rule of a permit counts what is in flight. What the permit says is somebody's text.
    fn limit_in_force(&self, force: &InForce, permit: &HeldPermit) -> Option<Limit> {
        let rule = force.policy.named(&permit.rule)?;
        let date = self.inner.calendar.now();
        let limit = match self.inner.overrides.of(rule, &permit.key, || date) {
            Some(Instead::Limit(limit)) => limit,
            _ => rule.limited()?.now(|| date).0.limit,
        };
        (limit.algorithm() == Algorithm::Concurrency).then_some(limit)
    }
}

impl InForce {
    fn holder_of<'a>(&'a self, permit: &'a HeldPermit, limit: &'a Limit) -> Subject<'a> {
        let zone = self.policy.named(&permit.rule).and_then(|rule| rule.zone());
        Subject { zone, ..Subject::new(&permit.rule, &permit.key, limit) }
    }
}
