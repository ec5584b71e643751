//! Keys, and the order in which they are visited.

use crate::random::Xorshift;

/// Names of users, and who comes when.
pub(super) struct Visits {
    pub(super) keys: Vec<String>,
    /// How many visits a round has.
    pub(super) per_round: usize,
    /// Indexes of keys, in the order of visits.
    order: Vec<u32>,
}

impl Visits {
    /// One key over and over.
    pub(super) fn to_one(per_round: usize) -> Visits {
        Visits { keys: users(1), per_round, order: vec![0; per_round] }
    }

    /// Each visit is to a key at random.
    pub(super) fn at_random(keys: u32, per_round: usize) -> Visits {
        let mut random = Xorshift::default();
        let order = (0..10 * per_round).map(|_| random.below(keys)).collect();
        Visits { keys: users(keys), per_round, order }
    }

    /// Each key once, shuffled.
    pub(super) fn to_each(keys: u32, per_round: usize) -> Visits {
        let (mut random, mut order) = (Xorshift::default(), (0..keys).collect::<Vec<_>>());
        for last in (1..keys).rev() {
            order.swap(last as usize, random.below(last + 1) as usize);
        }
        Visits { keys: users(keys), per_round, order }
    }

    /// The visits of each round; after the last, they start again.
    pub(super) fn rounds(&self) -> impl Iterator<Item = Round<'_>> {
        self.order.chunks_exact(self.per_round).cycle().map(|order| Round { keys: &self.keys, order })
    }
}

/// Visits in a row.
#[derive(Clone, Copy)]
pub(super) struct Round<'a> {
    keys: &'a [String],
    order: &'a [u32],
}

impl<'a> Round<'a> {
    /// The first half and the second.
    pub(super) fn halves(self) -> [Round<'a>; 2] {
        let (first, second) = self.order.split_at(self.order.len() / 2);
        [first, second].map(|order| Round { order, ..self })
    }

    /// How many visits pass.
    pub(super) fn count(self, mut decide: impl FnMut(&String) -> bool) -> u64 {
        self.order.iter().map(|index| u64::from(decide(&self.keys[*index as usize]))).sum()
    }
}

/// So many keys that are as long as each other.
pub(super) fn users(count: u32) -> Vec<String> {
    (0..count).map(|number| format!("user:{number:06}")).collect()
}
