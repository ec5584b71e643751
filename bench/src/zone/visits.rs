//! Who comes when, by number: read one after the other, so that it is at hand.

use super::zipf::Zipf;
use crate::random::Xorshift;

/// How many visits of hot keys a thread has per round.
const HOT_VISITS: usize = 51_200;
/// How many it has where each is to a key that is not at hand.
const COLD_VISITS: usize = 25_600;
/// After so many turns the visits begin anew, where there are many keys: not within one table.
const TURNS: usize = 64;

/// Numbers of keys, in the order of visits.
pub(super) struct Visits {
    order: Vec<u32>,
    per_turn: usize,
}

impl Visits {
    /// The first of so many keys, the second, and so on, and the first again.
    pub(super) fn in_turn(keys: u32) -> Visits {
        Visits { order: (0..keys).cycle().take(HOT_VISITS).collect(), per_turn: HOT_VISITS }
    }

    /// Each visit is to any of so many keys.
    pub(super) fn uniform(keys: u32) -> Visits {
        let mut random = Xorshift::default();
        let order = (0..TURNS * COLD_VISITS).map(|_| random.below(keys)).collect();
        Visits { order, per_turn: COLD_VISITS }
    }

    /// Few keys are visited often, and many seldom.
    pub(super) fn zipf(keys: u32) -> Visits {
        Visits { order: Zipf::below(keys).take(TURNS * COLD_VISITS).collect(), per_turn: COLD_VISITS }
    }

    /// The visits of one thread in one round.
    pub(super) fn turn(&self, number: usize) -> &[u32] {
        let turns = self.order.len() / self.per_turn;
        &self.order[number % turns * self.per_turn..][..self.per_turn]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_turn() {
        let visits = Visits::in_turn(2);
        assert_eq!(visits.turn(7)[..3], [0, 1, 0]);
        assert_eq!(visits.turn(7).len(), HOT_VISITS);
    }

    #[test]
    fn turns_differ_until_all_are_over() {
        let visits = Visits::uniform(1_000_000);
        assert_ne!(visits.turn(0)[..8], visits.turn(1)[..8]);
        assert_eq!(visits.turn(0)[..8], visits.turn(TURNS)[..8]);
    }
}
