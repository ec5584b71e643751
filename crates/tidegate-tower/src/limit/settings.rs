//! What a layer was told.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response};
use tidegate::{Clock, CounterClock};

use super::each::Each;
use super::fixed::Fixed;
use super::noted::Noted;
use super::rules::Rules;
use super::service::Beginning;
use super::settle::Settlement;
use crate::answer::{Dialect, Refused, put_fields, refuse};
use crate::head::Head;
use crate::key::{Course, Parts};

type CostOf = dyn Fn(Head<'_>) -> u64 + Send + Sync;
type IsExempt = dyn Fn(Head<'_>) -> bool + Send + Sync;
type Answer = dyn Fn(&Refused<'_>) -> Response<Bytes> + Send + Sync;

/// What a layer was told; clones of a layer share it.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) way: Way,
    pub(super) cost: Option<Arc<CostOf>>,
    pub(super) exempt: Option<Arc<IsExempt>>,
    pub(super) exempts_options: bool,
    pub(super) longest_wait: Duration,
    pub(super) dialect: Dialect,
    pub(super) settlement: Settlement,
    pub(super) otherwise: Option<Arc<Answer>>,
    pub(super) clock: Arc<dyn Clock>,
}

/// Who decides, and by what.
#[derive(Clone)]
pub(super) enum Way {
    /// One limit for all.
    Fixed(Fixed),
    /// A limit that comes with each request.
    Each(Each),
    /// Rules.
    Rules(Rules),
}

impl Way {
    pub(super) fn set_name(&mut self, name: &str) {
        match self {
            Way::Fixed(fixed) => *fixed = fixed.clone().named(name),
            Way::Each(each) => *each = each.clone().named(name),
            Way::Rules(_) => {}
        }
    }
}

impl Settings {
    pub(super) fn new(way: Way) -> Settings {
        Settings {
            way,
            cost: None,
            exempt: None,
            exempts_options: false,
            longest_wait: Duration::ZERO,
            dialect: Dialect::default(),
            settlement: Settlement::default(),
            otherwise: None,
            clock: Arc::new(CounterClock::new()),
        }
    }

    /// How much a request weighs; nothing if it is not limited.
    #[inline]
    pub(super) fn units(&self, head: Head<'_>) -> u64 {
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

    /// What becomes of a request that is not counted, by what was found in it.
    #[inline]
    pub(super) fn uncounted(&self, head: Head<'_>, key: &Parts<'_>) -> Option<Beginning> {
        match key.course() {
            Course::Count => None,
            Course::Skip => Some(Beginning::Pass(Noted::Nothing)),
            Course::Refuse(reason) => Some(Beginning::Refuse(self.refuse(&Refused::because(head, reason)))),
        }
    }

    /// How long a request may wait.
    #[inline]
    pub(super) fn patience(&self, head: Head<'_>) -> Duration {
        if self.longest_wait.is_zero() {
            return Duration::ZERO;
        }
        head.timeout().map_or(self.longest_wait, |timeout| timeout.min(self.longest_wait))
    }

    /// The answer to a request that was refused.
    pub(super) fn refuse(&self, refused: &Refused<'_>) -> Response<Bytes> {
        let mut response = match &self.otherwise {
            None => refuse(refused),
            Some(answer) => answer(refused),
        };
        if let Some(spoken) = refused.spoken() {
            put_fields(response.headers_mut(), self.dialect, spoken);
        }
        response
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = out.debug_struct("RateLimit");
        match &self.way {
            Way::Fixed(fixed) => shown.field("limit", &fixed.limit()),
            Way::Each(_) => shown.field("limit", &"of each request"),
            Way::Rules(_) => shown.field("limit", &"by rules"),
        };
        shown.field("wait", &self.longest_wait).field("fields", &self.dialect).finish_non_exhaustive()
    }
}
