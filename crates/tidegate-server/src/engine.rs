//! What every front asks.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate::{
    AdHoc, Adjusted, Adjustment, Ask, Clock, CounterClock, Decision, Key, Limit, Store as _, StoreError,
    Timestamp, Zone,
};
use tidegate_rules::Unfit;

use crate::answer::MEMORY;
use crate::dynamic::{DynamicLimit, NAMESPACE};
use crate::elsewhere::{Asked, Decided, Elsewhere, REDIS};
use crate::meter::{Count, Meter, Meters};
use crate::rules::Rules;
use crate::settings::{Settings, Token};
use crate::unfinished::Unfinished;

/// The states, what was counted, and whether the server goes on.
#[derive(Debug)]
pub(crate) struct Engine {
    /// Subjects whose limit comes with each call; beside a store elsewhere, those that are decided without it.
    pub(crate) adhoc: AdHoc,
    /// Where they are held.
    pub(crate) zone: Zone,
    /// Where states are that other servers share, if they are.
    pub(crate) elsewhere: Option<Elsewhere>,
    /// What is limited for whom.
    pub(crate) rules: Rules,
    pub(crate) settings: Settings,
    pub(crate) meters: Meters,
    /// What unfinished requests hold.
    pub(crate) unfinished: Arc<Unfinished>,
    started: Timestamp,
    stopping: AtomicBool,
}

impl Engine {
    /// One whose states are in this zone, or elsewhere if there is such a place.
    pub(crate) fn new(
        mut settings: Settings,
        zone: Zone,
        elsewhere: Option<Elsewhere>,
    ) -> Result<Arc<Engine>, Unfit> {
        let rules = match &elsewhere {
            None => Rules::new(&mut settings, &zone)?,
            Some(elsewhere) => Rules::new(&mut settings, elsewhere.for_rules(&zone))?,
        };
        let meters = Meters::new(settings.threads.get());
        let unfinished = Unfinished::new(settings.bounds.max_unfinished);
        let adhoc = AdHoc::on(&zone, NAMESPACE);
        let started = CounterClock::new().now();
        let stopping = AtomicBool::new(false);
        Ok(Arc::new(Engine {
            adhoc,
            zone,
            elsewhere,
            rules,
            settings,
            meters,
            unfinished,
            started,
            stopping,
        }))
    }

    /// Prepares a limit that came with a request, if its states can be held where they are.
    pub(crate) fn accept(&self, limit: Limit) -> Result<DynamicLimit, String> {
        self.supports(&limit)?;
        Ok(self.prepare(limit))
    }

    /// Prepares a limit that was accepted for all its decisions.
    pub(crate) fn prepare(&self, limit: Limit) -> DynamicLimit {
        DynamicLimit::new(limit, self.elsewhere.as_ref().map(|elsewhere| elsewhere.nodes))
    }

    /// Decides about limits that came with their ask, all or none, and spends if all allow.
    pub(crate) async fn take_all(&self, asks: &[Asked], meter: &Meter) -> Decided {
        match &self.elsewhere {
            None => {
                let asks = asks.iter().map(|asked| asked.under(asked.limit.whole()));
                let decisions = self.adhoc.take_all(&asks.collect::<Vec<_>>());
                Decided { each: decisions.each().to_vec(), by: MEMORY }
            }
            Some(elsewhere) => elsewhere.take(asks, &self.adhoc, meter).await,
        }
    }

    /// What a take would say, without spending.
    pub(crate) async fn peek(
        &self,
        key: &Key,
        limit: &DynamicLimit,
        ask: Ask,
    ) -> Result<Decision, StoreError> {
        match &self.elsewhere {
            None => Ok(self.adhoc.peek(key, limit.whole(), ask)),
            Some(elsewhere) => elsewhere.peek(key, limit, ask).await,
        }
    }

    /// Charges what turned out to be more, or gives back what was not used; and what is left then.
    pub(crate) async fn adjust(
        &self,
        key: &Key,
        limit: &DynamicLimit,
        adjustment: Adjustment,
    ) -> Result<(Adjusted, Decision), StoreError> {
        match &self.elsewhere {
            None => {
                let adjusted = self.adhoc.adjust(key, limit.whole(), adjustment);
                Ok((adjusted, self.adhoc.peek(key, limit.whole(), Ask::ONE)))
            }
            Some(elsewhere) => elsewhere.adjust(key, limit, adjustment).await,
        }
    }

    /// Forgets a key under every limit, also what was decided about it without the store. Returns true if anything was
    /// known about it where states are. An error while not all limits are listed.
    pub(crate) async fn reset(&self, key: &Key) -> Result<bool, StoreError> {
        let was_known = self.adhoc.reset(key);
        match &self.elsewhere {
            None => was_known,
            Some(elsewhere) => {
                let was_shared = elsewhere.reset(key).await?;
                was_known.map(|_| was_shared)
            }
        }
    }

    /// Forgets a key under one limit, also what was decided about it without the store.
    pub(crate) async fn reset_limit(&self, key: &Key, limit: &DynamicLimit) -> Result<bool, StoreError> {
        let was_known = self.adhoc.reset_limit(key, limit.in_memory());
        match &self.elsewhere {
            None => Ok(was_known),
            Some(elsewhere) => elsewhere.reset_limit(key, limit).await,
        }
    }

    /// Who decides about limits that come with their ask, as long as the store answers.
    pub(crate) fn decided_by(&self) -> &'static str {
        self.elsewhere.as_ref().map_or(MEMORY, |_| REDIS)
    }

    /// That states of this limit can be held where they are: in the shared store, or else in the zone.
    fn supports(&self, limit: &Limit) -> Result<(), String> {
        let supported = match &self.elsewhere {
            Some(elsewhere) => elsewhere.store.supports(limit),
            None => self.zone.supports(limit),
        };
        supported.map_err(|why| format!("limit \"{limit}\": {why}"))
    }

    /// How many requests were decided without a store elsewhere, as it did not answer.
    pub(crate) fn decided_without_store(&self) -> u64 {
        let counts: [fn(&Meter) -> &Count; 3] =
            [|meter| &meter.decided_local, |meter| &meter.decided_open, |meter| &meter.decided_closed];
        let adhoc: u64 = counts.into_iter().map(|which| self.meters.sum(which)).sum();
        adhoc + self.rules.gate.store_failures().decided.total()
    }

    /// How long it has been running.
    pub(crate) fn uptime(&self) -> Duration {
        CounterClock::new().now().since(self.started).to_duration()
    }

    pub(crate) fn token(&self) -> Option<&Token> {
        self.settings.token.as_ref()
    }

    /// From now on the server is not ready for anybody new.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// What comes of something that waits for nobody, as where states are in memory.
#[inline]
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("memory answers at once"),
    }
}
