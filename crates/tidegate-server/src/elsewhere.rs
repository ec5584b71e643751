//! Counts that other servers share, in a store that answers later or not at all.
//!
//! While it does not answer, limits that came with their ask are decided by one policy for all of them: by a share of
//! the limit in memory, always yes, or always no. Every such decision is counted and says so. What only looks or
//! changes is an error then: there is nothing true to be said.

use std::error::Error as _;
use std::num::NonZeroU64;
use std::sync::Arc;

use tidegate::{
    AdHoc, AdHocAsk, Adjusted, Adjustment, Ask, Decision, Key, Limit, PermitId, PreparedLimit, Store,
    StoreError, Subject, Zone,
};
use tidegate_redis::{OpenError, RedisStore};
use tidegate_rules::{GateStore, OnStoreFailure, fallback};

use crate::answer::{CLOSED, LOCAL, OPEN};
use crate::dynamic::{DynamicLimit, NAMESPACE};
use crate::meter::Meter;
use crate::settings::SharedSettings;

/// What the store is called in answers.
pub(crate) const REDIS: &str = "redis";

/// A store that other servers share.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    pub(crate) store: RedisStore,
    pub(crate) nodes: NonZeroU64,
    pub(crate) on_failure: OnStoreFailure,
}

/// One ask that came with its limit.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) key: Key,
    pub(crate) limit: DynamicLimit,
    pub(crate) ask: Ask,
}

impl Asked {
    /// The same under the whole limit, or under the share of this server.
    pub(crate) fn under<'a>(&'a self, limit: &'a PreparedLimit) -> AdHocAsk<'a, &'a Key> {
        AdHocAsk { key: &self.key, limit, ask: self.ask }
    }
}

/// What was decided about asks that stand or fall together, and by whom.
#[derive(Clone, Debug)]
pub(crate) struct Decided {
    pub(crate) each: Vec<Decision>,
    pub(crate) by: &'static str,
}

impl Elsewhere {
    pub(crate) fn new(settings: &SharedSettings) -> Result<Elsewhere, OpenError> {
        let nodes = NonZeroU64::try_from(settings.nodes).unwrap_or(NonZeroU64::MAX);
        let store = settings.open()?;
        // Or the first to ask would find nobody.
        store.connect();
        Ok(Elsewhere { store, nodes, on_failure: settings.on_failure })
    }

    /// What rules are counted by: this store, or the zone while it does not answer.
    pub(crate) fn for_rules(&self, zone: &Zone) -> GateStore {
        GateStore::from(Arc::new(self.store.clone())).named(REDIS).nodes(self.nodes).local_in(zone)
    }

    /// Decides all or none, and spends if allowed; without the store if it does not answer.
    pub(crate) async fn take(&self, asks: &[Asked], local: &AdHoc, meter: &Meter) -> Decided {
        let subjects: Vec<_> =
            asks.iter().map(|asked| (asked.limit.whole().subject(&asked.key), asked.ask)).collect();
        let taken = self.store.take(&subjects).await;
        let decided = match taken {
            Ok(decisions) => Decided { each: decisions.each().to_vec(), by: REDIS },
            Err(_) => self.without_store(asks, local),
        };
        match decided.by {
            LOCAL => meter.decided_local.add(1),
            OPEN => meter.decided_open.add(1),
            CLOSED => meter.decided_closed.add(1),
            _ => meter.decided_elsewhere.add(1),
        }
        decided
    }

    fn without_store(&self, asks: &[Asked], local: &AdHoc) -> Decided {
        let each = |decide: fn(&Limit, Ask) -> Decision| {
            asks.iter().map(|asked| decide(asked.limit.limit(), asked.ask)).collect()
        };
        match self.on_failure {
            OnStoreFailure::Open => Decided { each: each(fallback::open), by: OPEN },
            OnStoreFailure::Closed => Decided { each: each(fallback::closed), by: CLOSED },
            OnStoreFailure::Local => Decided { each: Elsewhere::by_shares(asks, local), by: LOCAL },
        }
    }

    fn by_shares(asks: &[Asked], local: &AdHoc) -> Vec<Decision> {
        let shares = asks.iter().map(|asked| asked.under(asked.limit.in_memory()));
        let taken = local.take_all(&shares.collect::<Vec<_>>());
        let each = asks.iter().zip(taken.each());
        each.map(|(Asked { limit, ask, .. }, decision)| {
            fallback::local((limit.limit(), *ask), (limit.in_memory().limit(), *decision))
        })
        .collect()
    }

    pub(crate) async fn peek(
        &self,
        key: &Key,
        limit: &DynamicLimit,
        ask: Ask,
    ) -> Result<Decision, StoreError> {
        self.store.peek(limit.whole().subject(key), ask).await
    }

    /// How an adjustment went, and what is left then.
    pub(crate) async fn adjust(
        &self,
        key: &Key,
        limit: &DynamicLimit,
        adjustment: Adjustment,
    ) -> Result<(Adjusted, Decision), StoreError> {
        let adjusted = self.store.adjust(limit.whole().subject(key), adjustment).await?;
        // It is done, so whoever is told of a failure must not be told to do it again.
        let left = self.peek(key, limit, Ask::ONE).await.map_err(|error| {
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            StoreError::outcome_unknown(format!("it is done, and what is left could not be seen: {why}"))
        })?;
        Ok((adjusted, left))
    }

    pub(crate) async fn release(
        &self,
        key: &Key,
        limit: &DynamicLimit,
        permit: PermitId,
    ) -> Result<bool, StoreError> {
        self.store.release(limit.whole().subject(key), permit).await
    }

    pub(crate) fn release_later(&self, key: &Key, limit: &DynamicLimit, permit: PermitId) {
        self.store.release_later(limit.whole().subject(key), permit);
    }

    pub(crate) async fn renew(
        &self,
        key: &Key,
        limit: &DynamicLimit,
        permit: PermitId,
    ) -> Result<bool, StoreError> {
        self.store.renew(limit.whole().subject(key), permit).await
    }

    /// Forgets a key under every limit. Returns true if anything was known about it.
    pub(crate) async fn reset(&self, key: &Key) -> Result<bool, StoreError> {
        const ANY: Limit = Limit::per_second(1);
        self.store.reset(Subject::new(NAMESPACE, key, &ANY)).await
    }

    /// Forgets a key under one limit. Returns true if anything was known about it.
    pub(crate) async fn reset_limit(&self, key: &Key, limit: &DynamicLimit) -> Result<bool, StoreError> {
        self.store.reset_limit(limit.whole().subject(key)).await
    }
}

/// The error for a caller that gets no answer from the store.
#[cold]
pub(crate) fn not_available(error: &StoreError) -> String {
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    if error.is_unfit() {
        // The store is there, and the question is at fault.
        why
    } else if error.is_retryable() {
        format!("the store is not available: {why}; try again")
    } else {
        format!("the store is not available: {why}; it may have been done, so look before trying again")
    }
}
