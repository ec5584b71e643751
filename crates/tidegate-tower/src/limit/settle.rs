//! What a request was worth, known only when its response is there, or when there will be none.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{Response, StatusCode};

use crate::head::ResponseHead;

/// The status by which `after` is asked about a request that has no response: its client closed the request.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// How much of what a request has spent stays spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settle {
    /// All of it.
    #[default]
    Keep,
    /// Nothing: all that it weighed comes back, as far as it is still owed. What time has repaid does not come back.
    Refund,
    /// So many units come back, at most what it weighed and what of it is still owed.
    RefundUnits(u64),
    /// So many units are spent beside it, whether or not they would pass: as far as the limit's `max_debt`.
    Charge(u64),
}

type After = dyn Fn(ResponseHead<'_>) -> Settle + Send + Sync;

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The service was not called for it yet.
    Unserved,
    /// The service was called.
    Served,
    /// It has a response, by which it is settled.
    Settled,
}

/// By what requests are settled; clones of a layer share it.
#[derive(Clone, Default)]
pub(super) struct Settlement {
    after: Option<Arc<After>>,
    /// By what those without a response are settled, if it was set.
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

    /// Whether anything that was taken may have to be corrected.
    #[inline]
    pub(super) fn may_correct(&self) -> bool {
        self.after.is_some() || self.abandoned.is_some_and(|settle| settle != Settle::Keep)
    }

    /// By what a request with this response is settled.
    pub(super) fn of(&self, response: ResponseHead<'_>) -> Settle {
        let Some(after) = &self.after else { return Settle::Keep };
        let settle = after(response);
        if let Settle::Charge(units) = settle {
            self.most_charged.fetch_max(units, Ordering::Relaxed);
        }
        settle
    }

    /// Returns by what a request is settled that is dropped in this phase.
    pub(super) fn if_dropped(&self, phase: Phase) -> Settle {
        match phase {
            Phase::Unserved => self.of_unserved(),
            Phase::Served => self.of_abandoned(),
            Phase::Settled => Settle::Keep,
        }
    }

    /// Returns by what a request is settled that the service was called for and that has no response.
    ///
    /// Unless it was set: the take stays, and the most is charged that `after` would charge. That is what it says about an
    /// empty response, or the most that it has charged before.
    fn of_abandoned(&self) -> Settle {
        if let Some(settle) = self.abandoned {
            return settle;
        }
        let Some(after) = &self.after else { return Settle::Keep };
        let mut nothing = Response::new(());
        *nothing.status_mut() =
            StatusCode::from_u16(CLIENT_CLOSED_REQUEST).unwrap_or(StatusCode::BAD_REQUEST);
        // This is asked while a future is dropped, perhaps because of a panic: a second one would end the process.
        let said = catch_unwind(AssertUnwindSafe(|| after(ResponseHead::of(&nothing))));
        let most = self.most_charged.load(Ordering::Relaxed);
        match said {
            Ok(Settle::Charge(units)) => Settle::Charge(units.max(most)),
            _ if most > 0 => Settle::Charge(most),
            _ => Settle::Keep,
        }
    }

    /// Returns by what a request is settled that is dropped before the service was called for it: nothing was done that
    /// could be charged.
    pub(super) fn of_unserved(&self) -> Settle {
        match self.abandoned {
            Some(settle @ (Settle::Refund | Settle::RefundUnits(_))) => settle,
            _ => Settle::Keep,
        }
    }
}
