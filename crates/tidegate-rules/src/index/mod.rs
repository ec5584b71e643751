//! Finds the rules that may apply to a request without looking at each.
//!
//! Every rule stands under one of its conditions, the one that fewest other rules share: under its texts, its
//! prefixes, its networks or its paths. A request asks for what stands under its own values, and only those rules
//! are looked at whole. Where many stand under one value, they have an index of their own there, by what is left of
//! their conditions.

mod level;
mod nested;
mod quick;
mod trie;

use smallvec::SmallVec;

use crate::condition::Condition;
use crate::seen::Seen;
use level::{Level, Standing};
pub(crate) use quick::QuickMap;

/// The number of a rule in its policy.
pub(crate) type RuleId = u32;

/// The rules of a request; a few need no allocation.
pub(crate) type RuleIds = SmallVec<[RuleId; level::FEW]>;

/// Which rules may apply.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    first: Level,
    /// Under which of its conditions each rule stands.
    entries: Vec<Option<usize>>,
}

impl Index {
    /// An index of rules by their conditions, in the order of the rules; what is none is left out.
    pub(crate) fn new<'a>(rules: impl Iterator<Item = Option<&'a [Condition]>>) -> Index {
        let (mut standing, mut entries) = (Vec::new(), Vec::new());
        for (id, conditions) in (0..).zip(rules) {
            entries.push(None);
            standing.extend(conditions.map(|conditions| Standing::new(id, conditions)));
        }
        let first = Level::new(&standing, |id, condition| entries[id as usize] = Some(condition));
        Index { first, entries }
    }

    /// The rules that may apply, in the order of their numbers, none twice.
    pub(crate) fn candidates(&self, seen: &Seen<'_>) -> RuleIds {
        let mut found = RuleIds::new();
        self.first.find(seen, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether a rule that was found stands under this one of its conditions, which holds then.
    pub(crate) fn stands_under(&self, rule: RuleId, condition: usize) -> bool {
        self.entries[rule as usize] == Some(condition)
    }
}
