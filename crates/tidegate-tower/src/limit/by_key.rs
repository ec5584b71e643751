//! A decider about requests by their key, under one limit or under a limit that comes with each request.
//!
//! ```text
//!   the key is found at once, or awaited -> allowed or denied at once, or queued
//! ```
//!
//! A counted request ends in one decision of a limiter. The paths to it differ in what has to be kept until the
//! response: nothing, the header fields, a receipt for a refund, a permit. The path without any of these is the fastest
//! and is inlined.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tidegate_core::{
    Acquire, Algorithm, Decision, Denied, DirectLimiter, Enqueued, Key, Limit, Limiter, TrackedTake, Zone,
};

use super::named_limiter::{LimiterStates, NamedLimiter};
use super::on_response::OnResponse;
use super::outcome::{CallOutcome, Wait};
use super::per_request::PerRequest;
use super::settings::Settings;
use crate::answer::{DeniedRequest, LATER};
use crate::event::DecisionResult;
use crate::head::Head;
use crate::key::{Identified, Identify, KeyOutcome, LaterParts, Parts};

/// The size of a layer's own zone, enough for half a million keys. The system commits the memory as it is used.
pub(super) const ZONE_BYTES: usize = 16 << 20;

/// A decider by keys; clones share the counts.
#[derive(Clone)]
pub(super) struct ByKey {
    pub(super) settings: Arc<Settings>,
    key: Arc<dyn Identify>,
    limiters: Limiters,
}

/// The limiters of a decider by keys.
#[derive(Clone)]
pub(super) enum Limiters {
    /// One for all requests.
    One(Arc<NamedLimiter>),
    /// One for each limit that comes with a request.
    PerRequest(PerRequest),
}

impl Limiters {
    /// Returns a limiter with memory of its own; with one state if all requests have the same key.
    pub(super) fn own(limit: Limit, key: &impl Identify, name: &str) -> Limiters {
        // A permit has to be released, and only a limiter by keys can do that.
        let counter = match key.is_same_for_all() && limit.algorithm() != Algorithm::Concurrency {
            true => LimiterStates::Shared(DirectLimiter::new(limit)),
            false => LimiterStates::PerKey(Limiter::on(&Zone::new(ZONE_BYTES), "", limit)),
        };
        Limiters::of(counter, name)
    }

    /// Returns a limiter of these states for all requests.
    pub(super) fn of(counter: LimiterStates, name: &str) -> Limiters {
        Limiters::One(Arc::new(NamedLimiter::new(counter, name)))
    }
}

impl ByKey {
    pub(super) fn new(key: impl Identify, limiters: Limiters) -> ByKey {
        ByKey { settings: Arc::default(), key: Arc::new(key), limiters }
    }

    /// Returns the limit of all requests, if there is one.
    pub(super) fn limit(&self) -> Option<Limit> {
        match &self.limiters {
            Limiters::One(limiter) => Some(limiter.limit()),
            Limiters::PerRequest(_) => None,
        }
    }

    /// Renames the limiters in header fields; their counts stay.
    pub(super) fn set_name(&mut self, name: &str) {
        self.limiters = match &self.limiters {
            Limiters::One(limiter) => Limiters::One(Arc::new(limiter.named(name))),
            Limiters::PerRequest(limiters) => Limiters::PerRequest(limiters.named(name)),
        };
    }

    /// Decides about a request of this cost. If all requests share one state, no key is extracted.
    #[inline]
    pub(super) fn decide(self: &Arc<Self>, head: Head<'_>, cost: u64) -> CallOutcome {
        if matches!(&self.limiters, Limiters::One(limiter) if limiter.is_shared()) {
            return self.decide_for(head, &Parts::one(""), cost);
        }
        let found = self.key.identify(head);
        match found {
            // By reference: a key of several parts is large to move.
            Identified::Now(ref key) => {
                let outcome = self.decide_inline(head, key, cost);
                if key.is_address() {
                    // The most frequent key has nothing to drop. Checking that again costs a tenth of the decision.
                    mem::forget(found);
                }
                outcome
            }
            Identified::Later(key) => CallOutcome::wait(WaitForKey { by: Arc::clone(self), key, cost }),
        }
    }

    /// Decides about a request whose key is known.
    #[inline(never)]
    fn decide_for(&self, head: Head<'_>, key: &Parts<'_>, cost: u64) -> CallOutcome {
        self.decide_inline(head, key, cost)
    }

    /// Decides the same, inlined into its caller, because most requests take this path.
    #[inline(always)]
    fn decide_inline(&self, head: Head<'_>, key: &Parts<'_>, cost: u64) -> CallOutcome {
        match key.course() {
            KeyOutcome::Count => {}
            KeyOutcome::Skip => return CallOutcome::Pass(None),
            KeyOutcome::Refuse(reason) => {
                return CallOutcome::Deny(self.settings.deny(&DeniedRequest::because(head, reason)));
            }
        }
        let own;
        let limiter = match &self.limiters {
            Limiters::One(limiter) => limiter,
            Limiters::PerRequest(limiters) => {
                own = limiters.limiter_of(head);
                &own
            }
        };
        let settings = &self.settings;
        if !settings.is_plain() {
            let max_wait = settings.max_wait(head);
            if !max_wait.is_zero() {
                return self.enqueue(limiter, limiter.acquire(key, cost).max_wait(max_wait), head, key);
            }
            if settings.settlement.may_correct() {
                return self.track(limiter, head, key, cost);
            }
        }
        let decision = limiter.admit(key, cost);
        if !decision.is_allowed() {
            return deny(settings, limiter, head, &decision);
        }
        if settings.is_plain() && decision.permit().is_none() {
            return CallOutcome::Pass(None);
        }
        settings.hook.report(|| limiter.event(head, &decision, DecisionResult::Allowed));
        CallOutcome::Pass(OnResponse::kept(settings, limiter, &decision, || key.key()))
    }

    /// Decides with a receipt, for a response that may correct the cost.
    #[inline(never)]
    fn track(&self, limiter: &Arc<NamedLimiter>, head: Head<'_>, key: &Parts<'_>, cost: u64) -> CallOutcome {
        let settings = &self.settings;
        match limiter.admit_tracked(key, cost) {
            (decision, Some(take)) => {
                settings.hook.report(|| limiter.event(head, &decision, DecisionResult::Allowed));
                CallOutcome::Pass(Some(OnResponse::settled(settings, limiter, decision, take, key.key())))
            }
            (decision, None) => deny(settings, limiter, head, &decision),
        }
    }

    /// Joins the queue at the call, by one decision: requests pass in the order of their calls, whenever they are
    /// polled.
    fn enqueue(
        &self,
        limiter: &Arc<NamedLimiter>,
        acquire: Acquire,
        head: Head<'_>,
        key: &Parts<'_>,
    ) -> CallOutcome {
        let over = |passed: Passed| {
            report_passed(&self.settings, limiter, head, &passed, DecisionResult::Allowed);
            waited(&self.settings, limiter, head, passed, || key.key())
        };
        let wait = |turn| {
            let (settings, limiter) = (Arc::clone(&self.settings), Arc::clone(limiter));
            CallOutcome::wait(WaitInQueue { settings, limiter, key: key.key(), turn })
        };
        if self.settings.settlement.may_correct() {
            return match acquire.tracked().enqueue() {
                Enqueued::Passed((waited, take)) => over(Ok((waited.decision, Some(take)))),
                Enqueued::Denied(refusal) => over(Err(refusal)),
                Enqueued::Waiting(queued) => wait(Box::pin(async {
                    let (waited, take) = queued.await?;
                    Ok((waited.decision, Some(take)))
                })),
            };
        }
        match acquire.enqueue() {
            Enqueued::Passed(waited) => over(Ok((waited.decision, None))),
            Enqueued::Denied(refusal) => over(Err(refusal)),
            Enqueued::Waiting(queued) => wait(Box::pin(async { Ok((queued.await?.decision, None)) })),
        }
    }
}

/// A wait for the key.
struct WaitForKey {
    by: Arc<ByKey>,
    key: LaterParts,
    cost: u64,
}

impl Wait for WaitForKey {
    fn poll(&mut self, head: Head<'_>, context: &mut Context<'_>) -> Poll<CallOutcome> {
        let key = ready!(Pin::new(&mut self.key).poll(context));
        Poll::Ready(self.by.decide_for(head, &key, self.cost))
    }
}

/// The result of a wait in a queue: the decision, with a receipt of the take if a response may refund it.
type Passed = Result<(Decision, Option<TrackedTake>), Denied>;

/// A wait in the queue of a limiter.
struct WaitInQueue {
    settings: Arc<Settings>,
    limiter: Arc<NamedLimiter>,
    key: Key,
    /// The place in the queue. Dropping it leaves the queue and spends nothing.
    turn: Pin<Box<dyn Future<Output = Passed> + Send>>,
}

impl Wait for WaitInQueue {
    fn poll(&mut self, head: Head<'_>, context: &mut Context<'_>) -> Poll<CallOutcome> {
        let passed = ready!(self.turn.as_mut().poll(context));
        report_passed(&self.settings, &self.limiter, head, &passed, DecisionResult::Waited);
        Poll::Ready(waited(&self.settings, &self.limiter, head, passed, || self.key.clone()))
    }
}

/// Reports a request that has passed a queue; a denial is reported where its response is made.
fn report_passed(
    settings: &Settings,
    limiter: &NamedLimiter,
    head: Head<'_>,
    passed: &Passed,
    result: DecisionResult,
) {
    if let Ok((decision, _)) = passed {
        settings.hook.report(|| limiter.event(head, decision, result));
    }
}

/// Returns the outcome of a request that has passed the queue, or that the queue has denied.
fn waited(
    settings: &Arc<Settings>,
    limiter: &Arc<NamedLimiter>,
    head: Head<'_>,
    passed: Passed,
    key: impl FnOnce() -> Key,
) -> CallOutcome {
    match passed {
        Ok((decision, Some(take))) => {
            CallOutcome::Pass(Some(OnResponse::settled(settings, limiter, decision, take, key())))
        }
        Ok((decision, None)) => CallOutcome::Pass(OnResponse::kept(settings, limiter, &decision, key)),
        Err(refusal) => {
            let decision = refusal.decision();
            // The decision is "allowed" if the system has no timer thread to wake the waiter.
            let decision = if decision.is_allowed() { decision.denied_for(LATER) } else { decision };
            deny(settings, limiter, head, &decision)
        }
    }
}

/// Returns the denial by a decision of this limiter, with the header fields of the limit in force.
#[inline(never)]
fn deny(settings: &Settings, limiter: &NamedLimiter, head: Head<'_>, decision: &Decision) -> CallOutcome {
    CallOutcome::Deny(
        limiter.with_promise(|promise| settings.deny(&DeniedRequest::by_limit(head, promise, *decision))),
    )
}
