//! Places in flight, given back and held on to.

use tidegate::{Algorithm, Answer, Key, Limit, StoreError, Subject};

use super::admission::HeldPermit;
use super::joined::all;
use super::overrides::Instead;
use super::{Gate, InForce, at_once};

impl Gate {
    /// Gives a place in flight back, to whoever holds it: the store, or this process if the store failed when it was
    /// taken. Whether the permit was still holding one.
    pub async fn release(&self, permit: &HeldPermit) -> Result<bool, StoreError> {
        let force = self.in_force();
        let limit = self.limit_to_release(&force, permit);
        force.release(permit, &limit).await
    }

    /// The same for several, all at the same time.
    pub async fn release_all(&self, permits: &[HeldPermit]) -> Vec<Result<bool, StoreError>> {
        let force = self.in_force();
        let limits: Vec<_> = permits.iter().map(|permit| self.limit_to_release(&force, permit)).collect();
        all(permits.iter().zip(&limits).map(|(permit, limit)| force.release(permit, limit)).collect()).await
    }

    /// A place that a rule took is given back also when the rule is gone.
    fn limit_to_release(&self, force: &InForce, permit: &HeldPermit) -> Limit {
        self.limit_in_force(force, permit).unwrap_or(permit.limit)
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
        let limit = self.limit_of(force, &permit.rule, &permit.key)?;
        (limit.algorithm() == Algorithm::Concurrency).then_some(limit)
    }

    /// The limit by which a rule counts this key now; none if the rule is gone, or counts no more.
    pub(super) fn limit_of(&self, force: &InForce, rule: &str, key: &Key) -> Option<Limit> {
        let rule = force.policy.named(rule)?;
        let limited = rule.limited()?;
        let date = self.inner.calendar.now();
        Some(match self.inner.overrides.of(rule, key, || date) {
            Some(Instead::Limit(limit)) => limit,
            _ => limited.now(|| date).0.limit,
        })
    }
}

impl InForce {
    fn release<'a>(&'a self, permit: &'a HeldPermit, limit: &'a Limit) -> Answer<'a, bool> {
        let holder = self.holder_of(permit, limit);
        match self.store.elsewhere() {
            Some(elsewhere) if permit.is_local => Answer::ready(elsewhere.local.release(holder, permit.id)),
            None if permit.is_local => Answer::ready(false),
            _ => self.store.store().release(holder, permit.id),
        }
    }

    fn holder_of<'a>(&'a self, permit: &'a HeldPermit, limit: &'a Limit) -> Subject<'a> {
        let zone = self.policy.named(&permit.rule).and_then(|rule| rule.zone());
        Subject { zone, ..Subject::new(&permit.rule, &permit.key, limit) }
    }
}
