//! What is to be done with a response.

use std::sync::Arc;

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
    pub(super) course: Course,
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// The service was not asked for it yet.
    Unserved,
    /// The service was asked.
    Served,
    /// It has a response, by which it is settled.
    Settled,
}

impl Course {
    /// By what a request is settled that is dropped now.
    pub(super) fn if_dropped(self, settings: &Settings) -> Settle {
        match self {
            Course::Unserved => settings.settlement.of_unserved(),
            Course::Served => settings.settlement.of_abandoned(),
            Course::Settled => Settle::Keep,
        }
    }
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

    /// The service is asked now.
    #[inline]
    pub(super) fn served(mut self) -> Noted {
        match &mut self {
            Noted::Nothing | Noted::Fields(..) => {}
            Noted::More(more) => more.course = Course::Served,
            Noted::Rules(ruled) => ruled.course = Course::Served,
        }
        self
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
    fn conclude<R>(mut self, mut response: Response<R>) -> Response<Answered<R>> {
        let settle = self.settings.settlement.of(ResponseHead::of(&response));
        self.course = Course::Settled;
        let decision = self.settle(settle).unwrap_or(self.decision);
        let dialect = self.settings.dialect;
        self.by.speak(|promise| put_left(response.headers_mut(), dialect, promise.spoken(&decision)));
        response.map(|body| match self.held.take() {
            None => Answered::theirs(body),
            Some(held) => Answered::theirs_holding(body, held),
        })
    }

    /// Corrects what was taken, and tells what is left then.
    fn settle(&mut self, settle: Settle) -> Option<Decision> {
        let key = self.key.as_ref().filter(|_| settle != Settle::Keep)?;
        Some(self.by.settle(key, settle, self.take.take()))
    }
}

impl Drop for More {
    fn drop(&mut self) {
        let _ = self.settle(self.course.if_dropped(&self.settings));
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
