//! AIMD: additive increase, multiplicative decrease.
//!
//! *Measures* losses: calls that were refused or came too late.
//!
//! *Formula*, once per round: more if little was lost and at least half of the limit was used; nine tenths of what
//! was answered if more than 5 % were lost, but at least a third of the limit. How much more depends on the edge,
//! the limit at which losses began last: below three quarters of it `√limit`, as the random spread of what is in
//! flight goes; near it one, as in TCP, so that it is reached gently; and one more every eight rounds without
//! a loss, because the edge may have moved away.
//!
//! *Bounds*: it stays within about a quarter below the number at which losses begin.
//!
//! *Fails* where nothing is lost until it is too late: time-outs come a whole deadline after the queue that causes
//! them, and the work of those who have given up is still to be done. So it wants to know what is slow,
//! [`slow_after`](super::Adapt::slow_after), half of the deadline, say; without that, answers are always almost as
//! late as they may be, and where there are no losses at all the limit ends at its upper bound.

use super::Settled;
use super::level::Level;
use super::round::Tally;

/// A place more per so many rounds without a loss, near the edge.
const PATIENCE: u64 = 8;

/// The state of the algorithm.
#[derive(Clone, Debug)]
pub(super) struct Aimd {
    /// The limit at which the last loss was.
    edge: u64,
    /// Rounds without a loss since then.
    calm: u64,
}

impl Aimd {
    pub(super) const START: Aimd = Aimd { edge: u64::MAX, calm: 0 };

    /// Moves a limit after a round, unless losses have cut it from so many places.
    pub(super) fn settle(&mut self, level: &mut Level, cut_from: Option<u64>, tally: &Tally) -> Settled {
        if let Some(before) = cut_from {
            (self.edge, self.calm) = (before, 0);
            return Settled::Cut;
        }
        self.calm = self.calm.saturating_add(1);
        if tally.is_near(level.places()) {
            let (is_far, root) = (level.places() < self.edge - self.edge / 4, level.root());
            level.raise(if is_far { root } else { (self.calm / PATIENCE + 1).min(root) });
        }
        Settled::Smooth
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::adaptive::{Adapt, Estimator};

    fn aimd(start: u64) -> Estimator {
        Estimator::new(&Adapt::aimd(1..=1000).starting_at(start))
    }

    fn tally(done: u64, lost: u64, peak: u64) -> Tally {
        Tally { latency: None, done, lost, rounds: 1, peak }
    }

    #[test]
    fn it_grows_by_the_root_until_something_is_lost() {
        let mut aimd = aimd(100);
        let limits: Vec<_> = (0..3)
            .map(|_| {
                assert_eq!(aimd.settle(&tally(95, 5, 100)), Settled::Smooth, "5 % are tolerated");
                aimd.limit()
            })
            .collect();
        assert_eq!(limits, [110, 120, 130]);
    }

    #[test]
    fn a_loss_leaves_nine_tenths_of_what_was_answered() {
        let mut aimd = aimd(100);
        assert_eq!(aimd.settle(&tally(90, 10, 100)), Settled::Cut);
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
