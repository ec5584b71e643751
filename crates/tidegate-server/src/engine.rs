//! The operations behind every front.

use std::error::Error as _;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate::{
    Adjusted, Adjustment, Ask, Clock, CounterClock, DecidedBy, Decision, Decisions, DynamicAsk,
    DynamicLimiter, FallbackStore, IntoKey, Key, Limit, PermitId, PreparedLimit, Store, StoreError,
    StoreFuture, StoreMeter, Subject, Timestamp, Zone,
};
use tidegate_redis::{OpenError, RedisStore};
use tidegate_rules::{Gate, UnsupportedPolicy};

use crate::meter::Meters;
use crate::rules::Rules;
use crate::settings::{Settings, SharedSettings, Token};
use crate::unfinished::Unfinished;

/// The namespace of limits that come with requests.
const NAMESPACE: &str = "";

/// The shared state of all workers: store, rules, settings and meters.
#[derive(Debug)]
pub(crate) struct Engine {
    /// The store of limits that come with requests.
    store: Arc<dyn Store>,
    /// The same store, if it is in memory. It decides about many takes in one call.
    many: Option<DynamicLimiter>,
    /// The memory of this server: the store itself, or the fallback of the remote store.
    zone: Zone,
    /// The remote store, for its status.
    redis: Option<RedisStore>,
    rules: Rules,
    settings: Settings,
    meters: Meters,
    unfinished: Arc<Unfinished>,
    started: Timestamp,
    stopping: AtomicBool,
}

/// One take under a limit that came with the request.
#[derive(Clone, Debug)]
pub(crate) struct TakeRequest {
    pub(crate) key: Key,
    pub(crate) limit: PreparedLimit,
    pub(crate) ask: Ask,
}

/// A decision, and its source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided {
    pub(crate) decision: Decision,
    pub(crate) by: DecidedBy,
}

impl Decided {
    /// Returns the decision about the ask at index `place`.
    pub(crate) fn at(place: usize, decisions: &Decisions) -> Option<Decided> {
        Some(Decided { decision: *decisions.each().get(place)?, by: decisions.decided_by(place) })
    }
}

impl Engine {
    /// Creates an engine on the shared store of its settings, or else on this zone.
    pub(crate) fn new(
        mut settings: Settings,
        zone: Zone,
        redis: Option<RedisStore>,
    ) -> Result<Arc<Engine>, UnsupportedPolicy> {
        let shared = redis.as_ref().zip(settings.store.shared.as_ref());
        let shared = shared.map(|(redis, shared)| with_fallback(redis, shared, &zone));
        let (store, many): (Arc<dyn Store>, _) = match &shared {
            Some(shared) => (Arc::new(shared.clone()), None),
            None => (Arc::new(zone.clone()), Some(DynamicLimiter::on(&zone, NAMESPACE))),
        };
        let rules = match shared {
            Some(shared) => Rules::new(&mut settings, shared)?,
            None => Rules::new(&mut settings, &zone)?,
        };
        let meters = Meters::new(settings.threads.get());
        let unfinished = Unfinished::new(settings.bounds.max_unfinished);
        let (started, stopping) = (CounterClock::new().now(), AtomicBool::new(false));
        Ok(Arc::new(Engine {
            store,
            many,
            zone,
            redis,
            rules,
            settings,
            meters,
            unfinished,
            started,
            stopping,
        }))
    }

    /// Prepares a limit that came with a request. Returns an error if the store does not support it.
    pub(crate) fn accept(&self, limit: Limit) -> Result<PreparedLimit, String> {
        self.store.supports(&limit).map_err(|why| format!("limit \"{limit}\": {why}"))?;
        Ok(PreparedLimit::dynamic(NAMESPACE, limit))
    }

    /// Returns true if every operation completes at once, because the store is in memory.
    #[inline]
    pub(crate) fn answers_at_once(&self) -> bool {
        self.many.is_some()
    }

    /// Decides about many asks at once, and reports each decision. Returns false, and decides nothing, if the store is
    /// not in memory.
    #[inline]
    pub(crate) fn take_each<'l, K: IntoKey>(
        &self,
        asks: impl ExactSizeIterator<Item = DynamicAsk<'l, K>> + Clone,
        mut report: impl FnMut(Decided),
    ) -> bool {
        let Some(many) = &self.many else { return false };
        let mut report = |decision| report(Decided { decision, by: DecidedBy::Memory });
        match (asks.len(), asks.clone().next()) {
            // The batch path has no benefit for one ask.
            (1, Some(DynamicAsk { key, limit, ask })) => report(many.admit(key, limit, ask)),
            _ => many.admit_each(asks, report),
        }
        true
    }

    /// Decides about asks all or none. Spends only if all are allowed.
    pub(crate) async fn take_all(&self, asks: &[TakeRequest]) -> Result<Decisions, StoreError> {
        let subjects = asks.iter().map(|TakeRequest { key, limit, ask }| (limit.subject(key), *ask));
        let decisions = self.store.take(&subjects.collect::<Vec<_>>()).await?;
        if let Some(meter) = self.store.meter() {
            meter.decided.count(decisions.decided_by(0), decisions.is_allowed());
        }
        Ok(decisions)
    }

    /// Decides about one ask, and spends if it is allowed. A store in memory is called directly.
    pub(crate) async fn take(
        &self,
        key: &[u8],
        limit: &PreparedLimit,
        ask: Ask,
    ) -> Result<Decided, StoreError> {
        if let Some(many) = &self.many {
            return Ok(Decided { decision: many.admit(key, limit, ask), by: DecidedBy::Memory });
        }
        let asked = TakeRequest { key: Key::new(key), limit: limit.clone(), ask };
        let decisions = self.take_all(&[asked]).await?;
        Decided::at(0, &decisions).ok_or_else(|| StoreError::outcome_unknown("the store has decided nothing"))
    }

    /// Returns the decision that a take would get, without spending.
    pub(crate) async fn peek(
        &self,
        key: &Key,
        limit: &PreparedLimit,
        ask: Ask,
    ) -> Result<Decided, StoreError> {
        let decision = self.store.peek(limit.subject(key), ask).await?;
        let by = if self.answers_at_once() { DecidedBy::Memory } else { DecidedBy::Remote };
        Ok(Decided { decision, by })
    }

    /// Charges more units, or returns some. Returns the outcome and the state afterwards.
    pub(crate) async fn adjust(
        &self,
        key: &Key,
        limit: &PreparedLimit,
        adjustment: Adjustment,
    ) -> Result<(Adjusted, Decided), StoreError> {
        let adjusted = self.store.adjust(limit.subject(key), adjustment).await?;
        // The adjustment is done, so the error must not be retryable.
        let left = self.peek(key, limit, Ask::ONE).await.map_err(|error| {
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            StoreError::outcome_unknown(format!("it is done, and what is left could not be seen: {why}"))
        })?;
        Ok((adjusted, left))
    }

    /// Resets a key under every limit. Returns true if the store had state of it. Returns an error while the store has
    /// not listed all limits.
    pub(crate) fn reset<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, bool> {
        const ANY: &Limit = &Limit::per_second(1);
        self.store.reset(Subject::new(NAMESPACE, key, ANY))
    }

    /// Resets a key under one limit. Returns true if the store had state of it.
    pub(crate) fn reset_limit<'a>(&'a self, key: &'a Key, limit: &'a PreparedLimit) -> StoreFuture<'a, bool> {
        self.store.reset_limit(limit.subject(key))
    }

    /// Releases a permit. Returns true if it was still in flight.
    pub(crate) fn release<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool> {
        self.store.release(subject, permit)
    }

    /// Releases a permit without waiting for the reply.
    pub(crate) fn release_later(&self, subject: Subject<'_>, permit: PermitId) {
        self.store.release_later(subject, permit);
    }

    /// Renews the lease of a permit. Returns true if it was still in flight.
    pub(crate) fn renew<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool> {
        self.store.renew(subject, permit)
    }

    /// Returns the number of requests that were decided while the remote store was down.
    pub(crate) fn decided_without_store(&self) -> u64 {
        self.store.meter().map_or(0, |meter| meter.decided.without_store().total())
    }

    /// Returns the counters of the remote store, if there is one.
    pub(crate) fn store_meter(&self) -> Option<&StoreMeter> {
        self.store.meter()
    }

    /// Returns the remote store, if there is one.
    pub(crate) fn redis(&self) -> Option<&RedisStore> {
        self.redis.as_ref()
    }

    /// Returns the memory of this server.
    pub(crate) fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Returns true if states are kept in a file.
    pub(crate) fn is_in_file(&self) -> bool {
        self.answers_at_once() && self.settings.store.file.is_some()
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.rules.gate
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    #[inline]
    pub(crate) fn meters(&self) -> &Meters {
        &self.meters
    }

    /// Returns the accounting of bytes that unfinished requests hold.
    pub(crate) fn unfinished(&self) -> &Arc<Unfinished> {
        &self.unfinished
    }

    /// Returns the time since the start of the server.
    pub(crate) fn uptime(&self) -> Duration {
        CounterClock::new().now().since(self.started).to_duration()
    }

    pub(crate) fn token(&self) -> Option<&Token> {
        self.settings.token.as_ref()
    }

    /// Marks the server as not ready for new clients.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// Opens the shared store of these settings, and starts to connect.
pub(crate) fn open(shared: &SharedSettings) -> Result<RedisStore, OpenError> {
    let store = shared.open()?;
    // Connect now, so that the first request does not have to wait.
    store.connect();
    Ok(store)
}

fn with_fallback(redis: &RedisStore, shared: &SharedSettings, zone: &Zone) -> FallbackStore {
    let nodes = NonZeroU64::try_from(shared.nodes).unwrap_or(NonZeroU64::MAX);
    let store = FallbackStore::new(Arc::new(redis.clone()), zone);
    store.nodes(nodes).on_store_failure(shared.on_store_failure)
}

/// Returns the error text for a caller whose store request failed.
#[cold]
pub(crate) fn not_available(error: &StoreError) -> String {
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    if error.is_unfit() {
        // The store is available; the request is at fault.
        why
    } else if error.is_retryable() {
        format!("the store is not available: {why}; try again")
    } else {
        format!("the store is not available: {why}; it may have been done, so look before trying again")
    }
}
