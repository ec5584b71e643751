//! The handling of the response of an allowed request.
//!
//! Three things may have to happen: header fields, a correction of the cost, the release of a permit. Most requests
//! need the first alone, so that case is not boxed.

mod by_limiter;
mod by_rules;

use std::sync::Arc;

use http::Response;
use tidegate_core::{Decision, Key, TrackedTake};

use super::named_limiter::NamedLimiter;
use super::settings::Settings;
use super::settle::Phase;
use crate::answer::Dialect;
use crate::body::Answered;
use crate::head::ResponseHead;
use by_limiter::TakenByLimiter;
pub(super) use by_rules::{HeldPermits, RuleSet, Settling, TakenByRules, correct};
use tidegate_support::put_remaining;

/// The handling of the response of an allowed request.
pub(super) enum OnResponse {
    /// The remaining quota is written into header fields.
    Fields { limiter: Arc<NamedLimiter>, dialect: Dialect, decision: Decision },
    /// The take of a limiter is corrected, or its permit is held until the response is over.
    ByLimiter(Box<TakenByLimiter>),
    /// The takes of rules are corrected, and their permits are held until the response is over.
    ByRules(Box<TakenByRules>),
}

impl OnResponse {
    /// Returns the handling after a take that the response does not correct, if there is any.
    // The decision is large to copy, and most requests need none.
    #[inline(always)]
    pub(super) fn kept(
        settings: &Arc<Settings>,
        limiter: &Arc<NamedLimiter>,
        decision: &Decision,
        key: impl FnOnce() -> Key,
    ) -> Option<OnResponse> {
        if decision.permit().is_some() {
            let taken = TakenByLimiter::new(settings, limiter, *decision, None, key());
            return Some(OnResponse::ByLimiter(Box::new(taken)));
        }
        match settings.dialect {
            Dialect::None => None,
            dialect => {
                Some(OnResponse::Fields { limiter: Arc::clone(limiter), dialect, decision: *decision })
            }
        }
    }

    /// Returns the handling after a take that the response may correct.
    pub(super) fn settled(
        settings: &Arc<Settings>,
        limiter: &Arc<NamedLimiter>,
        decision: Decision,
        take: TrackedTake,
        key: Key,
    ) -> OnResponse {
        OnResponse::ByLimiter(Box::new(TakenByLimiter::new(settings, limiter, decision, Some(take), key)))
    }

    /// Records that the service is called now.
    #[inline]
    pub(super) fn set_served(&mut self) {
        match self {
            OnResponse::Fields { .. } => {}
            OnResponse::ByLimiter(taken) => taken.phase = Phase::Served,
            OnResponse::ByRules(taken) => taken.phase = Phase::Served,
        }
    }

    /// Starts the correction that has to be awaited before the response continues, if there is one.
    #[inline]
    pub(super) fn settle<R>(&mut self, response: &Response<R>) -> Option<Settling> {
        match self {
            OnResponse::Fields { .. } | OnResponse::ByLimiter(_) => None,
            OnResponse::ByRules(taken) => taken.settle(ResponseHead::of(response)),
        }
    }

    /// Corrects the cost of the request and writes header fields.
    #[inline]
    pub(super) fn conclude<R>(self, mut response: Response<R>) -> Response<Answered<R>> {
        let held = match self {
            OnResponse::Fields { limiter, dialect, decision } => {
                limiter.with_promise(|promise| {
                    put_remaining(response.headers_mut(), dialect, promise.status(&decision), &[]);
                });
                None
            }
            OnResponse::ByLimiter(taken) => taken.conclude(&mut response),
            OnResponse::ByRules(taken) => taken.conclude(&mut response),
        };
        response.map(|body| Answered::theirs_holding(body, held))
    }
}
