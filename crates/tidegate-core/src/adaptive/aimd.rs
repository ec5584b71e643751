//! AIMD: additive increase, multiplicative decrease.
//!
//! *Measures* losses: calls that were denied or timed out.
//!
//! *Formula*, once per round. The limit grows if little was lost and at least half of it was used. If more than 5 %
//! were lost, it is cut to nine tenths of the answered calls, but to at least a third of the limit. The growth depends
//! on the edge, the limit at which the last losses began. Below three quarters of the edge it is `√limit`, the random
//! spread of the number in flight. Near the edge it is one, as in TCP, and one more for every eight rounds without a
//! loss, because the edge may have moved away.
//!
//! *Bounds*: the limit stays within about a quarter below the number at which losses begin.
//!
//! *Fails* where losses come too late: a timeout comes a whole deadline after the queue that causes it, and the work of
//! cancelled calls remains to be done. So set [`slow_after`](super::AdaptiveLimit::slow_after), to half of the deadline for
//! example. Without it, latency is always near the deadline; and without any losses the limit ends at its upper bound.

use super::Relevance;
use super::level::Level;
use super::round::RoundTally;

/// The rounds without a loss after which the growth near the edge increases by one.
const TIMEOUT: u64 = 8;

/// The state of the algorithm.
#[derive(Clone, Debug)]
pub(super) struct Aimd {
    /// The limit at the last loss.
    edge: u64,
    /// The rounds without a loss since then.
    calm: u64,
}

impl Aimd {
    pub(super) const START: Aimd = Aimd { edge: u64::MAX, calm: 0 };

    /// Moves a limit after a round. If losses have cut it, `cut_from` is the limit before the cut.
    pub(super) fn settle(
        &mut self,
        level: &mut Level,
        cut_from: Option<u64>,
        tally: &RoundTally,
    ) -> Relevance {
        if let Some(before) = cut_from {
            (self.edge, self.calm) = (before, 0);
            return Relevance::Cut;
        }
        self.calm = self.calm.saturating_add(1);
        if tally.is_near(level.places()) {
            let (is_far, root) = (level.places() < self.edge - self.edge / 4, level.root());
            level.raise(if is_far { root } else { (self.calm / TIMEOUT + 1).min(root) });
        }
        Relevance::Smooth
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::adaptive::{AdaptiveLimit, Estimator};

    fn aimd(start: u64) -> Estimator {
        Estimator::new(&AdaptiveLimit::aimd(1..=1000).starting_at(start))
    }

    fn tally(done: u64, lost: u64, peak: u64) -> RoundTally {
        RoundTally { latency: None, done, lost, rounds: 1, peak }
    }

    #[test]
    fn it_grows_by_the_root_until_something_is_lost() {
        let mut aimd = aimd(100);
        let limits: Vec<_> = (0..3)
            .map(|_| {
                assert_eq!(aimd.settle(&tally(95, 5, 100)), Relevance::Smooth, "5 % are tolerated");
                aimd.limit()
            })
            .collect();
        assert_eq!(limits, [110, 120, 130]);
    }

    #[test]
    fn a_loss_leaves_nine_tenths_of_what_was_answered() {
        let mut aimd = aimd(100);
        assert_eq!(aimd.settle(&tally(90, 10, 100)), Relevance::Cut);
        assert_eq!(aimd.limit(), 81);
    }

    #[test]
    fn near_the_edge_it_grows_by_one_and_then_faster() {
        let mut aimd = aimd(100);
        aimd.settle(&tally(90, 10, 100)); // 81
        let limits: Vec<_> = (0..10)
            .map(|_| {
                aimd.settle(&tally(100, 0, 100));
                aimd.limit()
            })
            .collect();
        assert_eq!(limits, [82, 83, 84, 85, 86, 87, 88, 90, 92, 94]);
    }

    #[test]
    fn far_below_the_edge_it_grows_by_the_root() {
        let mut aimd = aimd(100);
        aimd.settle(&tally(0, 100, 100)); // 33
        aimd.settle(&tally(33, 0, 33));
        assert_eq!(aimd.limit(), 38);
    }
}
