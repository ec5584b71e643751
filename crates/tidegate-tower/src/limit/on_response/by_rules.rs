//! The takes of rules, while the service answers.

use std::sync::Arc;

use http::Response;
use tidegate_rules::{Bill, Binding, Gate};

use super::permits::HeldPermits;
use super::settling::{self, Settling, Task};
use crate::answer::{Dialect, Promise, Promises};
use crate::body::Held;
use crate::head::ResponseHead;
use crate::limit::settings::Settings;
use crate::limit::settle::{Phase, Settle};
use tidegate_support::{join_all, put_remaining};

/// Rules on a store, and what replies say about their limits.
pub(in crate::limit) struct RuleSet {
    pub(in crate::limit) gate: Gate,
    pub(in crate::limit) is_in_memory: bool,
    promises: Promises,
}

impl RuleSet {
    pub(in crate::limit) fn new(gate: Gate) -> RuleSet {
        let is_in_memory = gate.is_in_memory();
        RuleSet { gate, is_in_memory, promises: Promises::default() }
    }

    pub(in crate::limit) fn promise(&self, binding: &Binding) -> Arc<Promise> {
        self.promises.of(&binding.rule, &binding.limit)
    }
}

/// The takes of rules that allowed a request.
pub(in crate::limit) struct TakenByRules {
    pub(in crate::limit) settings: Arc<Settings>,
    pub(in crate::limit) rules: Arc<RuleSet>,
    pub(in crate::limit) binding: Option<Binding>,
    /// The takes, if they may have to be corrected.
    pub(in crate::limit) bill: Bill,
    pub(in crate::limit) cost: u64,
    pub(in crate::limit) permits: Option<HeldPermits>,
    pub(in crate::limit) phase: Phase,
}

impl TakenByRules {
    /// Corrects the takes and releases the permits; returns what has to be awaited for that.
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

    /// Corrects the takes without a caller that waits: at once in memory.
    fn correct(&mut self, settle: Settle) {
        if settle != Settle::Keep && !self.bill.is_empty() {
            let correction = self.correction(settle);
            self.rules.gate.in_background(Box::pin(correction));
        }
    }

    fn correction(&mut self, settle: Settle) -> impl Future<Output = ()> + Send + use<> {
        settling::correct(self.rules.gate.clone(), std::mem::take(&mut self.bill), settle, self.cost)
    }

    /// Writes header fields, and returns what is held until the response is over.
    pub(super) fn conclude<R>(mut self, response: &mut Response<R>) -> Option<Held> {
        if let (Some(binding), true) = (&self.binding, self.settings.dialect != Dialect::None) {
            let promise = self.rules.promise(binding);
            put_remaining(response.headers_mut(), self.settings.dialect, promise.status(&binding.decision));
        }
        self.permits.take().map(|permits| Box::new(permits) as Held)
    }
}

impl Drop for TakenByRules {
    fn drop(&mut self) {
        self.correct(self.settings.settlement.if_dropped(self.phase));
    }
}
