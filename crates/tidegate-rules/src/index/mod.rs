//! An index that finds the rules that may apply to a request without a scan of all rules.
//!
//! Every rule is filed under one of its conditions: the one that it shares with the fewest other rules. The index key
//! is an exact text, a prefix, a network or a path. A request looks up its own values, and only the rules found there
//! are matched completely. Where many rules share one value, they form a nested index by their remaining conditions.
//! Rules for requests without an attribute are filed under that attribute. `unless` is not in the index.

mod level;
mod nested;
mod pattern_set;
mod quick;
mod trie;

use smallvec::SmallVec;

use crate::condition::Condition;
use crate::normalized::NormalizedRequest;
use level::{Level, Standing};
pub(crate) use pattern_set::PatternSet;
pub(crate) use quick::{Quick, QuickMap};

/// The number of a rule in its policy.
pub(crate) type RuleId = u32;

/// The rules of a request. A few need no allocation.
pub(crate) type RuleIds = SmallVec<[RuleId; level::FEW]>;

/// The index of all rules of a policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    first: Level,
    /// The index of the condition under which each rule is filed.
    entries: Vec<Option<usize>>,
}

impl Index {
    /// Creates an index of rules by their conditions, in the order of the rules. Rules that are `None` are left out.
    pub(crate) fn new<'a>(rules: impl Iterator<Item = Option<&'a [Condition]>>) -> Index {
        let (mut standing, mut entries) = (Vec::new(), Vec::new());
        for (id, conditions) in (0..).zip(rules) {
            entries.push(None);
            standing.extend(conditions.map(|conditions| Standing::new(id, conditions)));
        }
        let first = Level::new(&standing, |id, condition| entries[id as usize] = Some(condition));
        Index { first, entries }
    }

    /// Returns the rules that may apply, in ascending order, without duplicates.
    pub(crate) fn candidates(&self, seen: &NormalizedRequest<'_>) -> RuleIds {
        let mut found = RuleIds::new();
        self.first.find(seen, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns true if a rule that was found is filed under this condition, which then matches.
    pub(crate) fn stands_under(&self, rule: RuleId, condition: usize) -> bool {
        self.entries[rule as usize] == Some(condition)
    }
}
