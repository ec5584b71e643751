//! One limit for all requests.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tidegate::{
    Algorithm, Ask, Cost, Decision, Key, Limit, Limiter, Refusal, Single, Ticks, TrackedTake, Waited, Zone,
    ask,
};

use super::noted::{Course, HeldPlace, More, Noted};
use super::paused::{Step, Turn};
use super::service::Beginning;
use super::settings::Settings;
use super::settle::Settle;
use crate::answer::{Dialect, Promise, Refused};
use crate::body::Held;
use crate::head::Head;
use crate::key::{Identified, Identify, Parts};

/// The bytes of the zone that a layer has of its own, good for half a million keys; they are taken as they are used.
pub(super) const ZONE_BYTES: usize = 16 << 20;
/// When to try again after a refusal that no limit has decided.
const LATER: Ticks = Ticks::saturating_from(Duration::from_secs(1));

/// One limit for all requests; clones share what was counted.
#[derive(Clone)]
pub(super) struct Fixed {
    subjects: Subjects,
    promise: Arc<Promise>,
    replaced: Arc<Mutex<Replaced>>,
    counts_denied: bool,
    /// Whether its layer has no other limit, so that responses find it there.
    is_alone: bool,
}

/// A limit that was put in place of the first one, and what is said about it.
type Replaced = Option<(Limit, Arc<Promise>)>;

/// Who is counted.
#[derive(Clone)]
enum Subjects {
    /// All requests together.
    Everyone(Single),
    /// Whoever the key names.
    Keyed(Limiter, Arc<dyn Identify>),
}

impl Fixed {
    pub(super) fn new(limit: Limit, key: Arc<dyn Identify>) -> Fixed {
        // A place in flight has to be given back, which takes a limiter.
        match key.is_same_for_all() && limit.algorithm() != Algorithm::Concurrency {
            true => Fixed::of(Subjects::Everyone(Single::new(limit)), &limit),
            false => Fixed::by(Limiter::on(&Zone::new(ZONE_BYTES), "", limit), key),
        }
    }

    pub(super) fn by(limiter: Limiter, key: Arc<dyn Identify>) -> Fixed {
        let limit = limiter.limit();
        Fixed::of(Subjects::Keyed(limiter, key), &limit)
    }

    /// One of the limits of a layer that has many.
    pub(super) fn one_of_many(limiter: Limiter, key: Arc<dyn Identify>) -> Fixed {
        Fixed { is_alone: false, ..Fixed::by(limiter, key) }
    }

    fn of(subjects: Subjects, limit: &Limit) -> Fixed {
        let promise = Arc::new(Promise::new("", limit));
        let counts_denied = limit.counts_denied();
        Fixed { subjects, promise, replaced: Arc::default(), counts_denied, is_alone: true }
    }

    pub(super) fn named(self, name: &str) -> Fixed {
        let promise = Arc::new(Promise::new(name, &self.limit()));
        Fixed { promise, replaced: Arc::default(), ..self }
    }

    pub(super) fn limit(&self) -> Limit {
        match &self.subjects {
            Subjects::Everyone(single) => single.limit(),
            Subjects::Keyed(limiter, _) => limiter.limit(),
        }
    }

    #[inline]
    pub(super) fn begin(&self, settings: &Arc<Settings>, head: Head<'_>, units: u64) -> Beginning {
        match &self.subjects {
            Subjects::Everyone(_) => self.ask(settings, head, &Parts::one(""), units),
            Subjects::Keyed(_, key) => match key.identify(head) {
                Identified::Now(parts) => self.ask(settings, head, &parts, units),
                Identified::Later(parts) => Beginning::pause(Step::Identify(parts, units)),
            },
        }
    }

    /// Decides about a request whose key is known.
    #[inline]
    pub(super) fn ask(
        &self,
        settings: &Arc<Settings>,
        head: Head<'_>,
        key: &Parts<'_>,
        units: u64,
    ) -> Beginning {
        if let Some(beginning) = settings.uncounted(head, key) {
            return beginning;
        }
        let patience = settings.patience(head);
        // Where refusals count, one who waits must not be refused before.
        if self.counts_denied && !patience.is_zero() {
            return self.wait(settings, head, (key, units), patience);
        }
        let (decision, take) = match settings.settlement.may_correct() {
            true => self.admit_tracked(key, units),
            false => (self.admit(key, units), None),
        };
        if decision.is_allowed() {
            return Beginning::Pass(self.noted(settings, decision, take, || key.key()));
        }
        if !patience.is_zero() && decision.retry_after().is_some() && !decision.is_store_full() {
            return self.wait(settings, head, (key, units), patience);
        }
        Beginning::Refuse(self.refuse(settings, head, decision))
    }

    #[inline]
    fn admit(&self, key: &Parts<'_>, units: u64) -> Decision {
        match &self.subjects {
            Subjects::Everyone(single) => single.admit_with(Ask::new(Cost::new(units).unwrap_or_default())),
            // What lies somewhere as bytes is found again sooner.
            Subjects::Keyed(limiter, _) => match key.only_address() {
                Some(text) => limiter.admit(ask(text.as_bytes()).cost(units)),
                None => limiter.admit(ask(key).cost(units)),
            },
        }
    }

    /// The same with a receipt, for a response that may give it back.
    fn admit_tracked(&self, key: &Parts<'_>, units: u64) -> (Decision, Option<TrackedTake>) {
        match &self.subjects {
            Subjects::Everyone(single) => {
                single.admit_tracked(Ask::new(Cost::new(units).unwrap_or_default()))
            }
            Subjects::Keyed(limiter, _) => match key.only_address() {
                Some(text) => limiter.admit_tracked(ask(text.as_bytes()).cost(units)),
                None => limiter.admit_tracked(ask(key).cost(units)),
            },
        }
    }

    /// Stands in line, from now on: those who are asked first are first, whenever they are polled.
    fn wait(
        &self,
        settings: &Arc<Settings>,
        head: Head<'_>,
        (key, units): (&Parts<'_>, u64),
        patience: Duration,
    ) -> Beginning {
        let acquire = match &self.subjects {
            Subjects::Everyone(single) => single.acquire_units(units),
            Subjects::Keyed(limiter, _) => limiter.acquire(ask(key).cost(units)),
        };
        let acquire = acquire.within(patience);
        let mut turn = match settings.settlement.may_correct() {
            true => Turn::Tracked(acquire.tracked()),
            false => Turn::Plain(acquire),
        };
        match Pin::new(&mut turn).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => Beginning::pause(Step::Line { turn, by: self.clone(), key: key.key() }),
            Poll::Ready(over) => self.waited(settings, head, over, || key.key()),
        }
    }

    /// One has waited for its turn, or was not let wait.
    pub(super) fn waited(
        &self,
        settings: &Arc<Settings>,
        head: Head<'_>,
        over: Result<(Waited, Option<TrackedTake>), Refusal>,
        key: impl FnOnce() -> Key,
    ) -> Beginning {
        match over {
            Ok((waited, take)) => Beginning::Pass(self.noted(settings, waited.decision, take, key)),
            Err(refusal) => {
                let decision = refusal.decision();
                // Nobody could be woken, whatever the limit would say.
                let decision = if decision.is_allowed() { decision.put_off(LATER) } else { decision };
                Beginning::Refuse(self.refuse(settings, head, decision))
            }
        }
    }

    /// What is to be done with the response of a request that may pass.
    #[inline]
    fn noted(
        &self,
        settings: &Arc<Settings>,
        decision: Decision,
        take: Option<TrackedTake>,
        key: impl FnOnce() -> Key,
    ) -> Noted {
        let comes_back = settings.settlement.may_correct() || decision.permit().is_some();
        if !comes_back && (self.is_alone || settings.dialect == Dialect::None) {
            return Noted::fields(settings, decision);
        }
        let key = comes_back.then(key);
        let held = key.as_ref().and_then(|key| self.held(key, &decision));
        let (settings, by) = (Arc::clone(settings), self.clone());
        Noted::More(Box::new(More { settings, by, key, take, decision, held, course: Course::Unserved }))
    }

    fn held(&self, key: &Key, decision: &Decision) -> Option<Held> {
        let Subjects::Keyed(limiter, _) = &self.subjects else { return None };
        let permit = decision.permit()?;
        Some(Box::new(HeldPlace { limiter: limiter.clone(), key: key.clone(), permit }))
    }

    /// The answer to one who was refused.
    fn refuse(&self, settings: &Settings, head: Head<'_>, decision: Decision) -> Response<Bytes> {
        self.speak(|promise| settings.refuse(&Refused::by_limit(head, promise, decision)))
    }

    /// Hands over what is said about the limit in force.
    #[inline]
    pub(super) fn speak<T>(&self, say: impl FnOnce(&Promise) -> T) -> T {
        let replaced = match &self.subjects {
            Subjects::Everyone(_) => None,
            Subjects::Keyed(limiter, _) => limiter.replaced_limit(),
        };
        match replaced {
            None => say(&self.promise),
            Some(limit) => say(&self.promise_of(limit)),
        }
    }

    /// What is said about a limit that was put in place of the first one.
    fn promise_of(&self, limit: Limit) -> Arc<Promise> {
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        match &*replaced {
            Some((known, promise)) if *known == limit => Arc::clone(promise),
            _ => {
                let promise = Arc::new(Promise::new(self.promise.name(), &limit));
                Arc::clone(&replaced.insert((limit, promise)).1)
            }
        }
    }

    /// Corrects what was spent by a take, and tells what is left then.
    pub(super) fn settle(&self, key: &Key, settle: Settle, take: Option<TrackedTake>) -> Decision {
        match (settle, take) {
            (Settle::Refund, Some(take)) => drop(take.refund()),
            (Settle::RefundUnits(units), Some(mut take)) => drop(take.refund_units(units)),
            (Settle::Charge(units), _) => self.charge(key, units),
            (Settle::Keep, _) | (Settle::Refund | Settle::RefundUnits(_), None) => {}
        }
        match &self.subjects {
            Subjects::Everyone(single) => single.peek(),
            Subjects::Keyed(limiter, _) => limiter.peek(key),
        }
    }

    fn charge(&self, key: &Key, units: u64) {
        match &self.subjects {
            Subjects::Everyone(single) => single.charge(units),
            Subjects::Keyed(limiter, _) => limiter.charge(ask(key).cost(units)),
        };
    }
}
