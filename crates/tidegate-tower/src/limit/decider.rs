//! The decider of a layer: by keys or by rules.
//!
//! An enum in place of a trait object: there are two, and the decision is on the path of every request.

use std::fmt;
use std::sync::Arc;

use super::by_key::ByKey;
use super::by_rules::ByRules;
use super::outcome::CallOutcome;
use super::settings::Settings;
use crate::head::Head;

/// The decider of a layer, with its settings; clones share both.
#[derive(Clone)]
pub(super) enum Decider {
    /// Requests are counted by their key, under one limit or under a limit of each request.
    ByKey(Arc<ByKey>),
    /// Requests are decided by the rules of a gate.
    ByRules(Arc<ByRules>),
}

impl Decider {
    /// Decides about a request, unless its cost is zero: such a request passes and spends nothing.
    #[inline]
    pub(super) fn decide(&self, head: Head<'_>) -> CallOutcome {
        let cost = self.settings().cost(head);
        if cost == 0 {
            return CallOutcome::Pass(None);
        }
        match self {
            Decider::ByKey(by) => by.decide(head, cost),
            Decider::ByRules(by) => by.decide(head, cost),
        }
    }

    /// Returns the settings, which both deciders have.
    #[inline]
    fn settings(&self) -> &Settings {
        match self {
            Decider::ByKey(by) => &by.settings,
            Decider::ByRules(by) => &by.settings,
        }
    }

    /// Changes the settings of this clone alone.
    pub(super) fn change_settings(&mut self, change: impl FnOnce(&mut Settings)) {
        let settings = Arc::make_mut(match self {
            Decider::ByKey(by) => &mut Arc::make_mut(by).settings,
            Decider::ByRules(by) => &mut Arc::make_mut(by).settings,
        });
        change(settings);
        settings.set_plain();
    }
}

impl fmt::Debug for Decider {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = out.debug_struct("RateLimitLayer");
        match self {
            Decider::ByKey(by) => match by.limit() {
                Some(limit) => shown.field("limit", &limit),
                None => shown.field("limit", &"of each request"),
            },
            Decider::ByRules(_) => shown.field("limit", &"by rules"),
        };
        let settings = self.settings();
        shown.field("wait", &settings.max_wait).field("fields", &settings.dialect).finish_non_exhaustive()
    }
}
