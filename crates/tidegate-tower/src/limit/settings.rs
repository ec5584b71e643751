//! The settings of a layer, common to all deciders.
//!
//! They are behind an `Arc` that clones of a layer share until one of them is changed, so a service is cheap to clone.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response};
use tidegate_core::{Clock, CounterClock};
use tidegate_support::put_fields;

use super::settle::Settlement;
use crate::answer::{DeniedRequest, Dialect, deny};
use crate::event::{DecisionEvent, DecisionHook};
use crate::head::Head;

type CostOf = dyn Fn(Head<'_>) -> u64 + Send + Sync;
type IsExempt = dyn Fn(Head<'_>) -> bool + Send + Sync;
type DenialResponse = dyn Fn(&DeniedRequest<'_>) -> Response<Bytes> + Send + Sync;

/// The settings of a layer, common to all deciders.
#[derive(Clone)]
pub(super) struct Settings {
    /// The cost of a request; 1 unless set.
    pub(super) cost: Option<Arc<CostOf>>,
    /// Requests for which it returns true are not limited.
    pub(super) exempt: Option<Arc<IsExempt>>,
    /// True if `OPTIONS` requests are not limited.
    pub(super) exempts_options: bool,
    /// The longest wait in a queue; zero if none waits.
    pub(super) max_wait: Duration,
    /// The header fields with the remaining quota.
    pub(super) dialect: Dialect,
    /// The corrections of costs after the response.
    pub(super) settlement: Settlement,
    /// The reply to denied requests, in place of the default one.
    pub(super) otherwise: Option<Arc<DenialResponse>>,
    /// The clock by which rules delay requests.
    pub(super) clock: Arc<dyn Clock>,
    /// The function that receives each decision.
    pub(super) hook: DecisionHook,
    /// True if nothing is set that matters to an allowed request: its cost is 1, and nothing happens before or after
    /// its decision. One check in place of seven is a fiftieth of what the layer costs.
    is_plain: bool,
}

impl Settings {
    /// Returns true if nothing is set that matters to an allowed request.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Checks again, after a change, if anything is set that matters to an allowed request.
    pub(super) fn set_plain(&mut self) {
        let has_cost = self.cost.is_some() || self.exempt.is_some() || self.exempts_options;
        let is_corrected = self.settlement.may_correct() || self.dialect != Dialect::None;
        self.is_plain = !has_cost && !is_corrected && self.max_wait.is_zero() && !self.hook.is_set();
    }

    /// Returns the cost of a request; zero if it is not limited.
    #[inline]
    pub(super) fn cost(&self, head: Head<'_>) -> u64 {
        if self.is_plain {
            return 1;
        }
        if self.exempts_options && head.method() == Method::OPTIONS {
            return 0;
        }
        match (&self.exempt, &self.cost) {
            (None, None) => 1,
            (Some(exempt), _) if exempt(head) => 0,
            (_, Some(cost)) => cost(head),
            (Some(_), None) => 1,
        }
    }

    /// Returns the max wait of a request: that of the layer, or its own timeout if that is shorter.
    #[inline]
    pub(super) fn max_wait(&self, head: Head<'_>) -> Duration {
        if self.max_wait.is_zero() {
            return Duration::ZERO;
        }
        head.timeout().map_or(self.max_wait, |timeout| timeout.min(self.max_wait))
    }

    /// Makes the reply to a request that was denied, and reports the denial.
    pub(super) fn deny(&self, refused: &DeniedRequest<'_>) -> Response<Bytes> {
        self.hook.report(|| DecisionEvent::denied(refused));
        let mut response = match &self.otherwise {
            None => deny(refused),
            Some(answer) => answer(refused),
        };
        if let Some(status) = refused.limit_status() {
            put_fields(response.headers_mut(), self.dialect, status, refused.other_limits());
        }
        response
    }
}

impl Default for Settings {
    fn default() -> Settings {
        let mut settings = Settings {
            cost: None,
            exempt: None,
            exempts_options: false,
            max_wait: Duration::ZERO,
            dialect: Dialect::default(),
            settlement: Settlement::default(),
            otherwise: None,
            clock: Arc::new(CounterClock::new()),
            hook: DecisionHook::default(),
            is_plain: false,
        };
        settings.set_plain();
        settings
    }
}
