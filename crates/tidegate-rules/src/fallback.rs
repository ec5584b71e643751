//! What is decided about a limit while the shared store does not answer.
//!
//! One answer for one condition, whoever asks: rules and limits that come with a request go through here.
//!
//! | `on_store_failure` | decision |
//! |---|---|
//! | `local` | by this node's share of the limit; a cost above the share, but not above the limit, is denied for [`RETRY_AFTER`] |
//! | `open` | as for a key that has spent nothing, so a cost that can never pass does not pass |
//! | `closed` | denied for [`RETRY_AFTER`]; a cost that can never pass stays impossible |

use std::time::Duration;

use tidegate::{Ask, Decision, Limit, State, Ticks, Timestamp, Verdict};

/// The wait that is reported where only the store could decide: it is asked again then.
pub const RETRY_AFTER: Ticks = Ticks::saturating_from(Duration::from_secs(1));

/// The decision of a rule or limit that is open: that for a key which has spent nothing. It holds no permit.
///
/// ```
/// use tidegate::{Ask, Cost, Limit, Verdict};
/// use tidegate_rules::fallback;
///
/// let limit = Limit::per_hour(10);
/// assert!(fallback::open(&limit, Ask::ONE).is_allowed());
/// assert_eq!(fallback::open(&limit, Ask::new(Cost::of(11))).verdict(), Verdict::Impossible);
/// ```
#[must_use = "a decision that nobody reads limits nobody"]
pub fn open(limit: &Limit, ask: Ask) -> Decision {
    limit.peek(&State::default(), Timestamp::EPOCH, ask)
}

/// The decision of a rule or limit that is closed.
#[must_use = "a decision that nobody reads limits nobody"]
pub fn closed(limit: &Limit, ask: Ask) -> Decision {
    open(limit, ask).put_off(RETRY_AFTER)
}

/// The decision of a rule or limit that is local, from that of this node's share.
///
/// What is too much for the share passes when the store answers again, unless it is too much for the whole limit.
#[must_use = "a decision that nobody reads limits nobody"]
pub fn local((limit, ask): (&Limit, Ask), (share, decision): (&Limit, Decision)) -> Decision {
    let is_impossible = |decision: &Decision| decision.verdict_in_ticks() == Verdict::Impossible;
    if is_impossible(&decision) && !is_impossible(&open(limit, ask)) {
        return closed(share, Ask::ONE);
    }
    decision
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use tidegate::{Algorithm, Cost, SECOND};

    use super::*;

    const DENIED: Verdict = Verdict::Denied { retry_after: SECOND };

    #[test]
    fn a_cost_between_the_share_and_the_limit_is_denied_for_a_second_under_every_algorithm() {
        let nodes = NonZeroU64::new(3).unwrap();
        for algorithm in Algorithm::ALL.into_iter().filter(|algorithm| *algorithm != Algorithm::Pacer) {
            // The queue of a leaky bucket is one less than what passes at once.
            let queue = if algorithm == Algorithm::LeakyBucket { " queue 29" } else { "" };
            let limit: Limit = format!("30/h{queue} {}", algorithm.name()).parse().unwrap();
            let share = limit.shared_among(nodes);
            let verdict = |units| {
                let ask = Ask::new(Cost::of(units));
                local((&limit, ask), (&share, open(&share, ask))).verdict()
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
