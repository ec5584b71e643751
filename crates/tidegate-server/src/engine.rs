//! The verbs that every front asks.

use std::error::Error as _;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate::{
    AdHoc, AdHocAsk, Adjusted, Adjustment, Answer, Ask, Clock, CounterClock, DecidedBy, Decision, Decisions,
    FallbackStore, IntoKey, Key, Limit, PermitId, PreparedLimit, Store, StoreError, StoreMeter, Subject,
    Timestamp, Zone,
};
use tidegate_redis::{OpenError, RedisStore};
use tidegate_rules::{Gate, Unfit};

use crate::meter::Meters;
use crate::rules::Rules;
use crate::settings::{Settings, SharedSettings, Token};
use crate::unfinished::Unfinished;

/// The namespace of limits that come with requests.
const NAMESPACE: &str = "";

/// The states, what was counted, and whether the server goes on.
#[derive(Debug)]
pub(crate) struct Engine {
    /// The store of limits that come with requests.
    store: Arc<dyn Store>,
    /// The same store, if it is in memory: it decides about many takes at once.
    many: Option<AdHoc>,
    /// The memory of this server: the store, or what decides while the remote one is down.
    zone: Zone,
    /// The remote store, to report how it is.
    redis: Option<RedisStore>,
    rules: Rules,
    settings: Settings,
    meters: Meters,
    unfinished: Arc<Unfinished>,
    started: Timestamp,
    stopping: AtomicBool,
}

/// One ask under a limit that came with it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) key: Key,
    pub(crate) limit: PreparedLimit,
    pub(crate) ask: Ask,
}

/// A decision, and what made it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided {
    pub(crate) decision: Decision,
    pub(crate) by: DecidedBy,
}

impl Decided {
    /// The decision about the ask at this place.
    pub(crate) fn at(place: usize, decisions: &Decisions) -> Option<Decided> {
        Some(Decided { decision: *decisions.each().get(place)?, by: decisions.decided_by(place) })
    }
}

impl Engine {
    /// An engine whose states are in the shared store of its settings, or else in this zone.
    pub(crate) fn new(
        mut settings: Settings,
        zone: Zone,
        redis: Option<RedisStore>,
    ) -> Result<Arc<Engine>, Unfit> {
        let shared = redis.as_ref().zip(settings.store.shared.as_ref());
        let shared = shared.map(|(redis, shared)| with_fallback(redis, shared, &zone));
        let (store, many): (Arc<dyn Store>, _) = match &shared {
            Some(shared) => (Arc::new(shared.clone()), None),
            None => (Arc::new(zone.clone()), Some(AdHoc::on(&zone, NAMESPACE))),
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

    /// Prepares a limit that came with a request, if the store can hold its states.
    pub(crate) fn accept(&self, limit: Limit) -> Result<PreparedLimit, String> {
        self.store.supports(&limit).map_err(|why| format!("limit \"{limit}\": {why}"))?;
        Ok(PreparedLimit::dynamic(NAMESPACE, limit))
    }

    /// Returns true if every verb answers at once: the store is in memory.
    #[inline]
    pub(crate) fn answers_at_once(&self) -> bool {
        self.many.is_some()
    }

    /// Decides about each of many asks at once, and reports each decision. Returns false, and decides nothing, if the
    /// store does not answer at once.
    #[inline]
    pub(crate) fn take_each<'l, K: IntoKey>(
        &self,
        asks: impl ExactSizeIterator<Item = AdHocAsk<'l, K>> + Clone,
        mut report: impl FnMut(Decided),
    ) -> bool {
        let Some(many) = &self.many else { return false };
        let mut report = |decision| report(Decided { decision, by: DecidedBy::Memory });
        match (asks.len(), asks.clone().next()) {
            // Nothing is gained by preparing for more.
            (1, Some(AdHocAsk { key, limit, ask })) => report(many.take(key, limit, ask)),
            _ => many.take_each(asks, report),
        }
        true
    }

    /// Decides about asks all or none, and spends if all are allowed.
    pub(crate) async fn take_all(&self, asks: &[Asked]) -> Result<Decisions, StoreError> {
        let subjects = asks.iter().map(|Asked { key, limit, ask }| (limit.subject(key), *ask));
        let decisions = self.store.take(&subjects.collect::<Vec<_>>()).await?;
        if let Some(meter) = self.store.meter() {
            meter.decided.count(decisions.decided_by(0), decisions.is_allowed());
        }
        Ok(decisions)
    }

    /// Decides about one ask, and spends if it is allowed. A store in memory is asked directly.
    pub(crate) async fn take(
        &self,
        key: &[u8],
        limit: &PreparedLimit,
        ask: Ask,
    ) -> Result<Decided, StoreError> {
        if let Some(many) = &self.many {
            return Ok(Decided { decision: many.take(key, limit, ask), by: DecidedBy::Memory });
        }
        let asked = Asked { key: Key::new(key), limit: limit.clone(), ask };
        let decisions = self.take_all(&[asked]).await?;
        Decided::at(0, &decisions).ok_or_else(|| StoreError::outcome_unknown("the store has decided nothing"))
    }

    /// The decision that a take would get, without spending.
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

    /// Charges more, or gives units back; with the state afterwards.
    pub(crate) async fn adjust(
        &self,
        key: &Key,
        limit: &PreparedLimit,
        adjustment: Adjustment,
    ) -> Result<(Adjusted, Decided), StoreError> {
        let adjusted = self.store.adjust(limit.subject(key), adjustment).await?;
        // It is done, so an error must not ask the caller to do it again.
        let left = self.peek(key, limit, Ask::ONE).await.map_err(|error| {
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            StoreError::outcome_unknown(format!("it is done, and what is left could not be seen: {why}"))
        })?;
        Ok((adjusted, left))
    }

    /// Forgets a key under every limit. Returns true if the store remembered anything. An error while not all limits are
    /// listed.
    pub(crate) fn reset<'a>(&'a self, key: &'a Key) -> Answer<'a, bool> {
        const ANY: &Limit = &Limit::per_second(1);
        self.store.reset(Subject::new(NAMESPACE, key, ANY))
    }

    /// Forgets a key under one limit. Returns true if the store remembered anything.
    pub(crate) fn reset_limit<'a>(&'a self, key: &'a Key, limit: &'a PreparedLimit) -> Answer<'a, bool> {
        self.store.reset_limit(limit.subject(key))
    }

    /// Gives a permit back. Returns true if it was still in flight.
    pub(crate) fn release<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> Answer<'a, bool> {
        self.store.release(subject, permit)
    }

    /// Gives a permit back without a reply.
    pub(crate) fn release_later(&self, subject: Subject<'_>, permit: PermitId) {
        self.store.release_later(subject, permit);
    }

    /// Starts the lease of a permit anew. Returns true if it was still in flight.
    pub(crate) fn renew<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> Answer<'a, bool> {
        self.store.renew(subject, permit)
    }

    /// The number of requests that were decided in place of the remote store.
    pub(crate) fn decided_without_store(&self) -> u64 {
        self.store.meter().map_or(0, |meter| meter.decided.without_store().total())
    }

    /// The counts of the remote store, if there is one.
    pub(crate) fn store_meter(&self) -> Option<&StoreMeter> {
        self.store.meter()
    }

    /// The remote store, if there is one.
    pub(crate) fn redis(&self) -> Option<&RedisStore> {
        self.redis.as_ref()
    }

    /// The memory of this server.
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

    /// The bytes that unfinished requests hold.
    pub(crate) fn unfinished(&self) -> &Arc<Unfinished> {
        &self.unfinished
    }

    /// The time since its start.
    pub(crate) fn uptime(&self) -> Duration {
        CounterClock::new().now().since(self.started).to_duration()
    }

    pub(crate) fn token(&self) -> Option<&Token> {
        self.settings.token.as_ref()
    }

    /// From now on the server is not ready for new clients.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// Opens the shared store of these settings.
pub(crate) fn open(shared: &SharedSettings) -> Result<RedisStore, OpenError> {
    let store = shared.open()?;
    // Or the first request would find no connection.
    store.connect();
    Ok(store)
}

fn with_fallback(redis: &RedisStore, shared: &SharedSettings, zone: &Zone) -> FallbackStore {
    let nodes = NonZeroU64::try_from(shared.nodes).unwrap_or(NonZeroU64::MAX);
    let store = FallbackStore::new(Arc::new(redis.clone()), zone);
    store.nodes(nodes).on_store_failure(shared.on_failure)
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
