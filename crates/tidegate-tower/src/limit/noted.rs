//! What is to be done with a response.

use std::sync::Arc;
use std::task::Context;

use http::Response;
use tidegate::{Decision, Key, Limiter, PermitId, TrackedTake};

use super::fixed::Fixed;
use super::rules::{Ruled, Settling};
use super::settings::{Settings, Way};
use super::settle::Settle;
use crate::answer::{Dialect, put_left};
use crate::body::{Answered, Held};
use crate::head::ResponseHead;

/// What is remembered about a request while the service answers it.
pub(super) enum Noted {
    /// It was not limited.
    Nothing,
    /// Only what is left has to be told.
    Fields(Arc<Settings>, Decision),
    /// There is more to do.
    More(Box<More>),
    /// Rules let it pass.
    Rules(Box<Ruled>),
}

/// What is remembered where there is more to do than to tell what is left.
pub(super) struct More {
    pub(super) settings: Arc<Settings>,
    /// Who decided.
    pub(super) by: Fixed,
    /// Whose the request is, if it has to be found again.
    pub(super) key: Option<Key>,
    /// What it took, if that may have to be given back.
    pub(super) take: Option<TrackedTake>,
    pub(super) decision: Decision,
    /// A place in flight, given back when the response is over.
    pub(super) held: Option<Held>,
}

impl Noted {
    /// Tells what is left, if anybody wants to know.
    #[inline]
    pub(super) fn fields(settings: &Arc<Settings>, decision: Decision) -> Noted {
        match settings.dialect {
            Dialect::None => Noted::Nothing,
            _ => Noted::Fields(Arc::clone(settings), decision),
        }
    }

    /// Goes on with what can be done while the service answers.
    #[inline]
    pub(super) fn meanwhile(&mut self, context: &mut Context<'_>) {
        if let Noted::Rules(ruled) = self {
            ruled.meanwhile(context);
        }
    }

    /// Does what has to be awaited before the response goes on, if there is anything.
    #[inline]
    pub(super) fn settle<R>(&mut self, response: &Response<R>) -> Option<Settling> {
        let Noted::Rules(ruled) = self else { return None };
        let settings = Arc::clone(ruled.settings());
        let Way::Rules(rules) = &settings.way else { return None };
        ruled.settle(rules, ResponseHead::of(response))
    }

    /// Does what is to be done.
    #[inline]
    pub(super) fn conclude<R>(self, mut response: Response<R>) -> Response<Answered<R>> {
        match self {
            Noted::Nothing => {}
            Noted::Fields(settings, decision) => {
                if let Way::Fixed(fixed) = &settings.way {
                    fixed.speak(|promise| {
                        put_left(response.headers_mut(), settings.dialect, promise.spoken(&decision));
                    });
                }
            }
            Noted::More(more) => return more.conclude(response),
            Noted::Rules(ruled) => {
                let settings = Arc::clone(ruled.settings());
                if let Way::Rules(rules) = &settings.way {
                    return ruled.conclude(rules, response);
                }
            }
        }
        response.map(Answered::theirs)
    }
}

impl More {
    fn conclude<R>(self, mut response: Response<R>) -> Response<Answered<R>> {
        let More { settings, by, key, take, decision, held } = self;
        let settle = settings.after.as_ref().map_or(Settle::Keep, |after| after(ResponseHead::of(&response)));
        let decision = match (settle, &key) {
            (Settle::Keep, _) | (_, None) => decision,
            (settle, Some(key)) => by.settle(key, settle, take),
        };
        by.speak(|promise| put_left(response.headers_mut(), settings.dialect, promise.spoken(&decision)));
        response.map(|body| match held {
            None => Answered::theirs(body),
            Some(held) => Answered::theirs_holding(body, held),
        })
    }
}

/// A place in flight under a limiter's limit, which goes back when this is dropped.
pub(super) struct HeldPlace {
    pub(super) limiter: Limiter,
    pub(super) key: Key,
    pub(super) permit: PermitId,
}

impl Drop for HeldPlace {
    fn drop(&mut self) {
        self.limiter.release(&self.key, self.permit);
    }
}
