//! The operations behind every front.
//!
//! Fronts call the [`Engine`] and nothing below it. The engine knows two paths. If the store is in memory, a take
//! is a function call, and many takes are decided in one pass. If the store is remote, a take is a future, and the
//! `FallbackStore` decides while the store is down. Rules have their own gate, on the same store.

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
use tidegate_rules::{Admission, Gate, RuleKey, UnsupportedPolicy};

use crate::meter::Meters;
use crate::overrides::{AuditLog, NotKept, OverrideKeeper};
use crate::rules::Rules;
use crate::settings::{Settings, SharedSettings, Token};
use crate::unfinished::Unfinished;

/// The error of a change on a server without a token: any local process could make it.
const NO_TOKEN: &str = "this changes what holds for others, and the server has no token to know who may; \
    start it with TIDEGATE_TOKEN or --token-file";

/// The namespace of limits that come with requests.
const NAMESPACE: &str = "";

/// The shared state of all workers: store, rules, settings and meters.
///
/// One engine serves all workers behind an `Arc`. Everything in it is either immutable, atomic, or locked for a
/// moment.
#[derive(Debug)]
pub(crate) struct Engine {
    /// The store of limits that come with requests.
    store: Arc<dyn Store>,
    /// The same store, if it is in memory. It decides about many takes in one call.
    many: Option<DynamicLimiter>,
    /// The memory of this server: the store itself, or the fallback of the remote store.
    zone: Zone,
    /// The remote store, for its status.
    /// Cloned from the store inside the fallback, so that both report the same connection.
    redis: Option<RedisStore>,
    /// The rules in force. A reload replaces them; it does not replace the settings below.
    rules: Rules,
    /// The overrides of the rules, and the place where they are kept.
    overrides: OverrideKeeper,
    /// The log of changes by operators.
    audit: AuditLog,
    /// The settings of the start. Its policy is empty: the policy is moved into `rules`.
    settings: Settings,
    /// The counters of limits that came with requests, and of connections, one set per thread.
    meters: Meters,
    /// The bytes of unfinished requests of all connections.
    unfinished: Arc<Unfinished>,
    /// The start of the server, for the uptime.
    started: Timestamp,
    /// True from the stop signal on. It never becomes false again.
    stopping: AtomicBool,
}

/// One take under a limit that came with the request.
///
/// The fronts build it for several takes that are decided all or none.
#[derive(Clone, Debug)]
pub(crate) struct TakeRequest {
    /// The key to count by.
    pub(crate) key: Key,
    /// The limit, prepared once by [`Engine::accept`].
    pub(crate) limit: PreparedLimit,
    /// The cost, and the longest acceptable wait.
    pub(crate) ask: Ask,
}

/// A decision, and its source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided {
    /// The verdict with its numbers, and a permit under a concurrency limit.
    pub(crate) decision: Decision,
    /// The store that decided, or the policy that replaced it.
    pub(crate) by: DecidedBy,
}

impl Decided {
    /// Returns true if the request was allowed because the store failed, so no limit has counted it.
    #[inline]
    pub(crate) fn is_uncounted(&self) -> bool {
        self.by == DecidedBy::Open && self.decision.is_allowed()
    }

    /// Returns the decision about the ask at index `place`.
    ///
    /// Returns `None` if the store decided about fewer asks. The callers reply with an error then: a missing reply
    /// would shift all later replies of a pipeline.
    pub(crate) fn at(place: usize, decisions: &Decisions) -> Option<Decided> {
        Some(Decided { decision: *decisions.each().get(place)?, by: decisions.decided_by(place) })
    }
}

/// The reason why an engine was not created.
#[derive(Debug)]
pub(crate) enum NotBuilt {
    /// The store does not support the rules.
    Unfit(UnsupportedPolicy),
    /// The overrides cannot be read, or the audit log cannot be written.
    NotKept(NotKept),
}

impl From<NotKept> for NotBuilt {
    fn from(why: NotKept) -> NotBuilt {
        NotBuilt::NotKept(why)
    }
}

impl Engine {
    /// Creates an engine on the shared store of its settings, or else on this zone.
    ///
    /// Moves the policy out of `settings`. Returns an error if the store does not support a rule, for example if a
    /// zone has no memory or a state file belongs to another process, and if the file of overrides is broken. A remote store need not be reachable.
    pub(crate) fn new(
        mut settings: Settings,
        zone: Zone,
        redis: Option<RedisStore>,
    ) -> Result<Arc<Engine>, NotBuilt> {
        let shared = redis.as_ref().zip(settings.store.shared.as_ref());
        let shared = shared.map(|(redis, shared)| with_fallback(redis, shared, &zone));
        let (store, many): (Arc<dyn Store>, _) = match &shared {
            Some(shared) => (Arc::new(shared.clone()), None),
            None => (Arc::new(zone.clone()), Some(DynamicLimiter::on(&zone, NAMESPACE))),
        };
        let rules = match shared {
            Some(shared) => Rules::new(&mut settings, shared).map_err(NotBuilt::Unfit)?,
            None => Rules::new(&mut settings, &zone).map_err(NotBuilt::Unfit)?,
        };
        let overrides = OverrideKeeper::open(&settings, redis.as_ref(), &rules.gate)?;
        let audit = AuditLog::open(settings.audit_log.as_deref())?;
        let meters = Meters::new(settings.threads.get());
        let unfinished = Unfinished::new(settings.bounds.max_unfinished);
        let (started, stopping) = (CounterClock::new().now(), AtomicBool::new(false));
        Ok(Arc::new(Engine {
            store,
            many,
            zone,
            redis,
            rules,
            overrides,
            audit,
            settings,
            meters,
            unfinished,
            started,
            stopping,
        }))
    }

    /// Prepares a limit that came with a request. Returns an error if the store does not support it.
    ///
    /// The preparation computes what all takes under this limit have in common, so callers cache the result.
    pub(crate) fn accept(&self, limit: Limit) -> Result<PreparedLimit, String> {
        self.store.supports(&limit).map_err(|why| format!("limit \"{limit}\": {why}"))?;
        Ok(PreparedLimit::dynamic(NAMESPACE, limit))
    }

    /// Returns true if every operation completes at once, because the store is in memory.
    ///
    /// The fronts use it to poll a reply once instead of boxing its future.
    #[inline]
    pub(crate) fn answers_at_once(&self) -> bool {
        self.many.is_some()
    }

    /// Decides about many asks at once, and reports each decision. Returns false, and decides nothing, if the store is
    /// not in memory.
    ///
    /// The asks may repeat a key: they are decided in order, at one instant. The iterator is cloned, so it has to
    /// be cheap to clone.
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
            (1, Some(DynamicAsk { key, limit, ask, .. })) => report(many.admit(key, limit, ask)),
            _ => many.admit_each(asks, report),
        }
        true
    }

    /// Decides about asks all or none. Spends only if all are allowed.
    ///
    /// A denial spends nothing under any of the limits. The meter of the remote store counts the whole request
    /// once, by the source of its first decision.
    pub(crate) async fn take_all(&self, asks: &[TakeRequest]) -> Result<Decisions, StoreError> {
        let subjects = asks.iter().map(|TakeRequest { key, limit, ask }| (limit.subject(key), *ask));
        let decisions = self.store.take(&subjects.collect::<Vec<_>>()).await?;
        if let Some(meter) = self.store.meter() {
            meter.decided.count(decisions.decided_by(0), decisions.is_allowed());
        }
        Ok(decisions)
    }

    /// Decides about one ask, and spends if it is allowed. A store in memory is called directly.
    ///
    /// After an error whose outcome is unknown, the cost may have been spent. The error is then not retryable.
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
    ///
    /// The fallback does not answer peeks: while the remote store is down, a peek is an error.
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
    ///
    /// Costs two store requests: the adjustment, and a peek for the remaining quota.
    pub(crate) async fn adjust(
        &self,
        key: &Key,
        limit: &PreparedLimit,
        adjustment: Adjustment,
    ) -> Result<(Adjusted, Decided), StoreError> {
        let adjusted = self.store.adjust(limit.subject(key), adjustment).await?;
        Ok((adjusted, self.peek(key, limit, Ask::ONE).await.map_err(|error| not_seen(&error))?))
    }

    /// Charges more units under a rule, or returns some. Returns the outcome and the state afterwards.
    ///
    /// Costs two store requests, as [`Engine::adjust`] does.
    pub(crate) async fn adjust_rule_key(
        &self,
        key: &RuleKey,
        adjustment: Adjustment,
    ) -> Result<(Adjusted, Admission), StoreError> {
        let adjusted = key.adjust(adjustment).await?;
        Ok((adjusted, key.peek().await.map_err(|error| not_seen(&error))?))
    }

    /// Returns an error if the server has no token: it does not know which client may change what holds for others.
    pub(crate) fn may_change(&self) -> Result<(), &'static str> {
        if self.token().is_some() { Ok(()) } else { Err(NO_TOKEN) }
    }

    /// Resets a key under every limit. Returns true if the store had state of it. Returns an error while the store has
    /// not listed all limits.
    ///
    /// The limit of the subject is not used: a reset by key removes the states of all limits of the namespace.
    pub(crate) fn reset<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, bool> {
        const ANY: &Limit = &Limit::per_second(1);
        self.store.reset(Subject::new(NAMESPACE, key, ANY))
    }

    /// Resets a key under one limit. Returns true if the store had state of it.
    pub(crate) fn reset_limit<'a>(&'a self, key: &'a Key, limit: &'a PreparedLimit) -> StoreFuture<'a, bool> {
        self.store.reset_limit(limit.subject(key))
    }

    /// Releases a permit. Returns true if it was still in flight.
    ///
    /// A permit that was released before, or whose lease has expired, is not in flight any more.
    pub(crate) fn release<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool> {
        self.store.release(subject, permit)
    }

    /// Releases a permit without waiting for the reply.
    ///
    /// For permits of clients that are gone. If the remote store is down, the lease expires by itself.
    pub(crate) fn release_later(&self, subject: Subject<'_>, permit: PermitId) {
        self.store.release_later(subject, permit);
    }

    /// Renews the lease of a permit. Returns true if it was still in flight.
    ///
    /// The lease starts anew with its full length.
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
    ///
    /// With a remote store it is the fallback zone; its counts are those of outages only.
    pub(crate) fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Returns true if states are kept in a file.
    ///
    /// A file next to a shared store is rejected when settings are read.
    pub(crate) fn is_in_file(&self) -> bool {
        self.answers_at_once() && self.settings.store.file.is_some()
    }

    /// Returns the rules in force, and their file.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the gate that decides by the rules.
    pub(crate) fn gate(&self) -> &Gate {
        &self.rules.gate
    }

    /// Returns the place of overrides.
    pub(crate) fn overrides(&self) -> &OverrideKeeper {
        &self.overrides
    }

    /// Returns the log of changes by operators.
    pub(crate) fn audit(&self) -> &AuditLog {
        &self.audit
    }

    /// Returns the settings of the start. A reload changes none of them.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the counters of all threads.
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

    /// Returns the token that clients must send, if the server has one.
    pub(crate) fn token(&self) -> Option<&Token> {
        self.settings.token.as_ref()
    }

    /// Marks the server as not ready for new clients.
    ///
    /// Readiness checks fail from now on, so that a load balancer sends new clients to other servers.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Returns true after [`Engine::stop`]. Connections finish the requests that have begun, and then close.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// Opens the shared store of these settings, and starts to connect.
///
/// Returns an error for invalid settings only. An unreachable Redis is not an error: the server starts and decides
/// by the fallback until the connection is made.
pub(crate) fn open(shared: &SharedSettings) -> Result<RedisStore, OpenError> {
    let store = shared.open()?;
    // Connect now, so that the first request does not have to wait.
    store.connect();
    Ok(store)
}

/// Returns the remote store with this zone as its fallback. Each of `nodes` servers decides by its part of a limit
/// during an outage.
fn with_fallback(redis: &RedisStore, shared: &SharedSettings, zone: &Zone) -> FallbackStore {
    let nodes = NonZeroU64::try_from(shared.nodes).unwrap_or(NonZeroU64::MAX);
    let store = FallbackStore::new(Arc::new(redis.clone()), zone);
    store.nodes(nodes).on_store_failure(shared.on_store_failure)
}

/// Returns the error of a peek after an adjustment. The adjustment is done, so the error must not be retryable.
#[cold]
fn not_seen(error: &StoreError) -> StoreError {
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    StoreError::outcome_unknown(format!("it is done, and what is left could not be seen: {why}"))
}

/// Returns the error text for a caller whose store request failed.
///
/// The text tells the caller if a retry is safe. After a timeout the request may have been executed, and a blind
/// retry could spend twice.
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
