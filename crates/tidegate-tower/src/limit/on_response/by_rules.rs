//! The takes of rules, while the service runs.
//!
//! In memory corrections and releases are immediate. On a remote store they are requests: the response waits for them,
//! so that the next request of the same client finds its quota and its permit; a failure of the store does not fail the
//! response.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::Response;
use tidegate_rules::{Admission, Binding, Charges, Gate, HeldPermit};

use crate::answer::{Dialect, Promise, Promises};
use crate::body::Held;
use crate::event::{DecisionEvent, DecisionResult};
use crate::head::{Head, ResponseHead};
use crate::limit::settings::Settings;
use crate::limit::settle::{Phase, Settle};
use tidegate_support::{LimitStatus, join_all, put_remaining};

/// Rules on a store, with the parts of replies that depend on their limits.
pub(in crate::limit) struct RuleSet {
    pub(in crate::limit) gate: Gate,
    pub(in crate::limit) is_in_memory: bool,
    promises: Promises,
}

impl RuleSet {
    /// Returns the rules of a gate, without any header fields formatted yet.
    pub(in crate::limit) fn new(gate: Gate) -> RuleSet {
        let is_in_memory = gate.is_in_memory();
        RuleSet { gate, is_in_memory, promises: Promises::default() }
    }

    /// Returns the parts of replies for the decisive rule, from the cache or made now.
    pub(in crate::limit) fn promise(&self, binding: &Binding) -> Arc<Promise> {
        self.promises.of(&binding.rule, &binding.limit)
    }

    /// Calls `use_them` with the limits beside the decisive one, as header fields report them.
    pub(in crate::limit) fn with_others<T>(
        &self,
        admission: &Admission,
        use_them: impl FnOnce(&[LimitStatus<'_>]) -> T,
    ) -> T {
        let others = || admission.limits().skip(1);
        if others().len() == 0 {
            return use_them(&[]);
        }
        let promises = self.promises.of_each(others().map(|other| (&*other.rule, &other.limit)));
        let each = promises.iter().zip(others());
        use_them(&each.map(|(promise, other)| promise.status(&other.decision)).collect::<Vec<_>>())
    }
}

/// The takes of rules that allowed a request.
pub(in crate::limit) struct TakenByRules {
    pub(in crate::limit) settings: Arc<Settings>,
    pub(in crate::limit) rules: Arc<RuleSet>,
    pub(in crate::limit) admission: Admission,
    /// The takes, if they may have to be corrected.
    pub(in crate::limit) bill: Charges,
    pub(in crate::limit) cost: u64,
    pub(in crate::limit) permits: Option<HeldPermits>,
    pub(in crate::limit) phase: Phase,
}

impl TakenByRules {
    /// Reports that the rules have allowed the request.
    pub(in crate::limit) fn report(&self, head: Head<'_>, result: DecisionResult) {
        if !self.settings.hook.is_set() {
            return;
        }
        // The name of a rule as header fields have it, which is also that of a denial.
        let binding = self.admission.binding();
        let promise = binding.map(|binding| self.rules.promise(binding));
        self.settings.hook.report(|| DecisionEvent {
            limit: promise.as_deref().map(Promise::name),
            remaining: binding.map(|binding| binding.decision.remaining()),
            ..DecisionEvent::allowed(head, result)
        });
    }

    /// Corrects the takes and releases the permits; returns the future to await for that, if any.
    pub(super) fn settle(&mut self, response: ResponseHead<'_>) -> Option<Settling> {
        let settle = match self.bill.is_empty() {
            true => Settle::Keep,
            false => self.settings.settlement.of(response),
        };
        self.phase = Phase::Settled;
        if self.rules.is_in_memory {
            self.correct(settle);
            return None;
        }
        let mut each: Vec<Task> = Vec::new();
        if settle != Settle::Keep {
            each.push(Box::pin(self.correction(settle)));
        }
        if let Some(permits) = self.permits.take() {
            each.push(Box::pin(permits.release()));
        }
        let all = async |each| drop(join_all::<Task>(each).await);
        (!each.is_empty()).then(|| Settling::new(self.rules.gate.clone(), Box::pin(all(each))))
    }

    /// Corrects the takes without a waiting caller: at once in memory, else in the background.
    fn correct(&mut self, settle: Settle) {
        if settle != Settle::Keep && !self.bill.is_empty() {
            let correction = self.correction(settle);
            self.rules.gate.in_background(Box::pin(correction));
        }
    }

    /// Returns the correction as a future, and leaves no takes behind: a second correction does nothing.
    fn correction(&mut self, settle: Settle) -> impl Future<Output = ()> + Send + use<> {
        correct(self.rules.gate.clone(), std::mem::take(&mut self.bill), settle, self.cost)
    }

    /// Writes header fields, and returns the permits that are held until the response is over.
    pub(super) fn conclude<R>(mut self, response: &mut Response<R>) -> Option<Held> {
        let dialect = self.settings.dialect;
        if let (Some(binding), true) = (self.admission.binding(), dialect != Dialect::None) {
            let (promise, headers) = (self.rules.promise(binding), response.headers_mut());
            self.rules.with_others(&self.admission, |others| {
                put_remaining(headers, dialect, promise.status(&binding.decision), others);
            });
        }
        self.permits.take().map(|permits| Box::new(permits) as Held)
    }
}

impl Drop for TakenByRules {
    fn drop(&mut self) {
        self.correct(self.settings.settlement.if_dropped(self.phase));
    }
}

/// The permits of one request, released when they are dropped: in memory at once, in a remote store in the background.
/// When the response is there, the release is awaited, so that the next request finds the permit free.
pub(in crate::limit) struct HeldPermits {
    gate: Gate,
    permits: Vec<HeldPermit>,
}

impl HeldPermits {
    /// Returns `None` if there are no permits.
    pub(in crate::limit) fn of(gate: &Gate, permits: &[HeldPermit]) -> Option<HeldPermits> {
        let permits = (!permits.is_empty()).then(|| permits.to_vec())?;
        Some(HeldPermits { gate: gate.clone(), permits })
    }

    /// Releases all of them at the same time.
    async fn release(mut self) {
        let released = self.gate.release_all(&self.permits).await;
        // A release that failed is retried in the background; so are all if this is dropped before.
        let mut answers = released.iter();
        self.permits.retain(|_| answers.next().is_some_and(Result::is_err));
    }
}

impl Drop for HeldPermits {
    fn drop(&mut self) {
        self.gate.release_later(&self.permits);
    }
}

/// A request to a remote store.
type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A request to a remote store that is awaited before the response continues. If it is dropped before its end, it
/// continues in the background: a client cannot avoid a charge by disconnecting meanwhile.
pub(in crate::limit) struct Settling {
    gate: Gate,
    /// `None` once it is over.
    task: Option<Task>,
}

impl Settling {
    fn new(gate: Gate, task: Task) -> Settling {
        Settling { gate, task: Some(task) }
    }
}

impl Future for Settling {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(task) = &mut self.task {
            ready!(task.as_mut().poll(context));
            self.task = None;
        }
        Poll::Ready(())
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.gate.in_background(task);
        }
    }
}

/// Corrects the takes of a request of this cost.
pub(in crate::limit) async fn correct(gate: Gate, mut bill: Charges, settle: Settle, cost: u64) {
    // A failure of the store does not stop a request that was already served.
    let _ = match settle {
        Settle::Keep => return,
        Settle::Refund => gate.refund(&mut bill, cost).await,
        Settle::RefundUnits(units) => gate.refund(&mut bill, units.min(cost)).await,
        Settle::Charge(units) => gate.charge(&mut bill, units).await,
    };
}
