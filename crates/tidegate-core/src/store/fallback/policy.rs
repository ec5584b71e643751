//! The decision on one limit while the remote store is down.

use crate::algorithm::State;
use crate::ask::Ask;
use crate::decision::{Decision, Verdict};
use crate::decisions::DecidedBy;
use crate::limit::Limit;
use crate::time::{SECOND, Ticks, Timestamp};

/// The reported wait where only the remote store could decide, after which it may be back.
const RETRY_AFTER: Ticks = Ticks::saturating_from(SECOND);

/// The policy for a remote store that is down.
#[doc(alias = "fail-open")]
#[doc(alias = "fail-closed")]
#[doc(alias = "degraded mode")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStoreFailure {
    /// Fail-open: decides as for a key that has spent nothing.
    Open,
    /// Fail-closed: denies.
    Closed,
    /// Decides in the in-memory store of this node, by its share of the limit.
    #[default]
    Local,
}

impl OnStoreFailure {
    /// Returns the decision of a policy that counts nothing, which holds no permit; `None` for the policy `local`.
    pub(super) fn uncounted(self, limit: &Limit, ask: Ask) -> Option<Decision> {
        match self {
            OnStoreFailure::Open => Some(open(limit, ask)),
            OnStoreFailure::Closed => Some(closed(limit, ask)),
            OnStoreFailure::Local => None,
        }
    }

    /// Returns the origin that decisions of this policy report.
    pub(super) fn decides(self) -> DecidedBy {
        match self {
            OnStoreFailure::Open => DecidedBy::Open,
            OnStoreFailure::Closed => DecidedBy::Closed,
            OnStoreFailure::Local => DecidedBy::Local,
        }
    }
}

/// Returns the decision of the policy `local`, from the decision of this node's share.
///
/// A cost above the share may be allowed once the remote store is back, unless it is above the whole limit.
pub(super) fn by_share(limit: &Limit, ask: Ask, share: &Limit, decision: Decision) -> Decision {
    let is_too_much = |limit| open(limit, ask).verdict_in_ticks() == Verdict::Impossible;
    if is_too_much(share) && !is_too_much(limit) { closed(share, Ask::ONE) } else { decision }
}

/// Returns the decision on a key that has spent nothing, so only a cost above the limit is denied.
fn open(limit: &Limit, ask: Ask) -> Decision {
    limit.peek(&State::default(), Timestamp::EPOCH, ask)
}

/// Returns a denial with a wait of a second; a cost above the limit stays impossible.
fn closed(limit: &Limit, ask: Ask) -> Decision {
    open(limit, ask).denied_for(RETRY_AFTER)
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use std::num::NonZeroU64;
    use std::time::Duration;

    use super::*;
    use crate::{Algorithm, Cost};

    const DENIED: Verdict = Verdict::Denied { retry_after: SECOND };

    #[test]
    fn a_cost_between_the_share_and_the_limit_is_denied_for_a_second_under_every_algorithm() {
        let nodes = NonZeroU64::new(3).unwrap();
        for algorithm in Algorithm::ALL.into_iter().filter(|algorithm| *algorithm != Algorithm::Pacer) {
            // The queue of a leaky bucket is one less than the units that are allowed at once.
            let queue = if algorithm == Algorithm::LeakyBucket { " queue 29" } else { "" };
            let limit: Limit = format!("30/h{queue} {}", algorithm.name()).parse().unwrap();
            let share = limit.shared_among(nodes);
            let verdict = |units| {
                let ask = Ask::new(Cost::of(units));
                by_share(&limit, ask, &share, open(&share, ask)).verdict()
            };
            assert_eq!(verdict(10), Verdict::Allowed { delay: Duration::ZERO }, "{limit}");
            assert_eq!([verdict(11), verdict(30)], [DENIED; 2], "{limit}");
            assert_eq!(verdict(31), Verdict::Impossible, "{limit}");
        }
    }

    #[test]
    fn what_can_never_pass_is_impossible_whatever_the_policy() {
        let (limit, dear) = (Limit::per_hour(10), Ask::new(Cost::of(11)));
        assert_eq!(open(&limit, dear).verdict(), Verdict::Impossible);
        assert_eq!(closed(&limit, dear).verdict(), Verdict::Impossible);
        assert_eq!((open(&limit, Ask::ONE).is_allowed(), closed(&limit, Ask::ONE).verdict()), (true, DENIED));
    }

    #[test]
    fn no_place_in_flight_is_held_where_nothing_counts() {
        let limit = Limit::concurrency(2, SECOND);
        assert_eq!(open(&limit, Ask::ONE).permit(), None);
        assert_eq!(closed(&limit, Ask::ONE).permit(), None);
    }
}
