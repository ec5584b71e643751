//! Corrections of the cost of a request, when its response is there or when there will be none.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{Response, StatusCode};

use crate::head::ResponseHead;

/// The status of the empty response that stands for a request without a response: the client closed the request.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// The correction of a request's cost after its response.
///
/// ```
/// use http::StatusCode;
/// use tidegate::Limit;
/// use tidegate::tower::{RateLimitLayer, Settle, key};
///
/// // Only failed logins count: a correct password is refunded.
/// let logins = RateLimitLayer::new(Limit::per_hour(10), key::peer()).after(|response| match response.status() {
///     StatusCode::OK => Settle::Refund,
///     _ => Settle::Keep,
/// });
/// # let _ = logins;
/// ```
#[doc(alias = "refund")]
#[doc(alias = "charge")]
#[doc(alias = "idempotent refund")]
#[doc(alias = "token cost")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settle {
    /// The cost stays spent.
    #[default]
    Keep,
    /// The whole cost is refunded, as far as it is still debt. The part that time has repaid is not refunded.
    Refund,
    /// This many units are refunded: at most the cost, and at most the part of it that is still debt.
    RefundUnits(u64),
    /// This many units are spent in addition, even beyond the limit, as far as its `max_debt` allows.
    Charge(u64),
}

type After = dyn Fn(ResponseHead<'_>) -> Settle + Send + Sync;

/// The progress of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The service was not called for it yet.
    Unserved,
    /// The service was called.
    Served,
    /// It has a response, which decides the correction.
    Settled,
}

/// The corrections of a layer; its clones share them.
#[derive(Clone, Default)]
pub(super) struct Settlement {
    after: Option<Arc<After>>,
    /// The correction of requests without a response, if it was set.
    abandoned: Option<Settle>,
    /// The most that `after` has charged so far.
    most_charged: Arc<AtomicU64>,
}

impl Settlement {
    pub(super) fn set_after(&mut self, after: Arc<After>) {
        (self.after, self.most_charged) = (Some(after), Arc::default());
    }

    pub(super) fn set_abandoned(&mut self, abandoned: Settle) {
        self.abandoned = Some(abandoned);
    }

    /// Returns true if a take may have to be corrected.
    #[inline]
    pub(super) fn may_correct(&self) -> bool {
        self.after.is_some() || self.abandoned.is_some_and(|settle| settle != Settle::Keep)
    }

    /// Returns the correction of a request with this response.
    pub(super) fn of(&self, response: ResponseHead<'_>) -> Settle {
        let Some(after) = &self.after else { return Settle::Keep };
        let settle = after(response);
        if let Settle::Charge(units) = settle {
            self.most_charged.fetch_max(units, Ordering::Relaxed);
        }
        settle
    }

    /// Returns the correction of a request that is dropped in this phase.
    pub(super) fn if_dropped(&self, phase: Phase) -> Settle {
        match phase {
            Phase::Unserved => self.of_unserved(),
            Phase::Served => self.of_abandoned(),
            Phase::Settled => Settle::Keep,
        }
    }

    /// Returns the correction of a request for which the service was called and that has no response.
    ///
    /// Unless it was set, the take is kept, and the maximum that `after` would charge is charged: its charge for an
    /// empty response, or the largest charge so far.
    fn of_abandoned(&self) -> Settle {
        if let Some(settle) = self.abandoned {
            return settle;
        }
        let Some(after) = &self.after else { return Settle::Keep };
        let mut nothing = Response::new(());
        *nothing.status_mut() =
            StatusCode::from_u16(CLIENT_CLOSED_REQUEST).unwrap_or(StatusCode::BAD_REQUEST);
        // This runs while a future is dropped, perhaps because of a panic: a second panic would abort the process.
        let said = catch_unwind(AssertUnwindSafe(|| after(ResponseHead::of(&nothing))));
        let most = self.most_charged.load(Ordering::Relaxed);
        match said {
            Ok(Settle::Charge(units)) => Settle::Charge(units.max(most)),
            _ if most > 0 => Settle::Charge(most),
            _ => Settle::Keep,
        }
    }

    /// Returns the correction of a request that is dropped before the service was called: there is nothing to charge.
    pub(super) fn of_unserved(&self) -> Settle {
        match self.abandoned {
            Some(settle @ (Settle::Refund | Settle::RefundUnits(_))) => settle,
            _ => Settle::Keep,
        }
    }
}
