//! One level of the index: rules by one condition each, with nested levels under patterns that many rules share.
//!
//! ```text
//!   tenant "ana"  -> a few rules
//!   tenant "bob"  -> many: path /orders -> a few rules
//!                          path /carts  -> a few rules
//! ```

use std::collections::HashMap;

use super::nested::{Networks, Prefixes};
use super::trie::Trie;
use super::{QuickMap, RuleId, RuleIds};
use crate::condition::{Condition, Network, Pattern};
use crate::normalized::{NormalizedRequest, Slot};

/// The number of rules under one pattern that are scanned one by one.
pub(super) const FEW: usize = 8;
/// The list length above which a lookup is faster than a scan.
const LONG_LIST: usize = 8;

/// The number of a bucket in its level.
pub(super) type BucketId = u32;

/// Rules by one of their conditions.
///
/// A rule is in one bucket for each pattern of the condition under which it is filed, or in `always`.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    /// The rules without a condition.
    always: Vec<RuleId>,
    networks: Networks,
    /// The values by the number of the attribute.
    slots: Vec<OfSlot>,
    /// The buckets of requests that do not have an attribute.
    missing: Vec<(Slot, BucketId)>,
    buckets: Vec<Bucket>,
}

/// The buckets of the values of one attribute.
#[derive(Clone, Debug, Default)]
pub(super) struct OfSlot {
    pub(super) exact: QuickMap<Box<[u8]>, BucketId>,
    pub(super) prefixes: Prefixes,
    pub(super) paths: Trie,
}

impl OfSlot {
    /// Calls `tell` with the buckets of all patterns that match this value.
    #[inline]
    pub(super) fn each_of(&self, value: &[u8], tell: &mut impl FnMut(BucketId)) {
        if let Some(id) = self.exact.get(value) {
            tell(*id);
        }
        self.prefixes.each_of(value, &mut *tell);
        self.paths.each_of(value, tell);
    }
}

/// The rules that are filed under one pattern.
///
/// A bucket becomes a level of its own if it has many rules that other conditions can distinguish.
#[derive(Clone, Debug)]
enum Bucket {
    Few(Vec<RuleId>),
    Many(Box<Level>),
}

/// A rule with the conditions under which it can be filed, each with its index in the rule.
#[derive(Clone)]
pub(super) struct Standing<'a> {
    id: RuleId,
    left: Vec<(usize, &'a Condition)>,
}

impl<'a> Standing<'a> {
    /// Creates a rule that can be filed under any of its conditions.
    pub(super) fn new(id: RuleId, conditions: &'a [Condition]) -> Standing<'a> {
        Standing { id, left: conditions.iter().enumerate().collect() }
    }

    /// Returns the rule for the next level. Only conditions with a single pattern are used again. Otherwise a rule
    /// would be stored once for each combination of the values of its lists.
    fn without(&self, used: usize) -> Standing<'a> {
        let is_left =
            |(place, condition): &(usize, &Condition)| *place != used && condition.any_of.len() == 1;
        Standing { id: self.id, left: self.left.iter().copied().filter(is_left).collect() }
    }
}

impl Level {
    /// Creates a level. Calls `stands` with the condition under which each rule is filed.
    pub(super) fn new(rules: &[Standing<'_>], mut stands: impl FnMut(RuleId, usize)) -> Level {
        let mut shared: HashMap<(Slot, &Pattern), usize> = HashMap::new();
        for (_, condition) in rules.iter().flat_map(|rule| &rule.left) {
            for pattern in &condition.any_of {
                *shared.entry((condition.slot, pattern)).or_default() += 1;
            }
        }
        let mut level = Level::default();
        let mut buckets: HashMap<(Slot, &Pattern), Vec<Standing<'_>>> = HashMap::new();
        for rule in rules {
            let entry = rule.left.iter().min_by_key(|(_, condition)| rank(condition, &shared));
            let Some((place, condition)) = entry else {
                level.always.push(rule.id);
                continue;
            };
            stands(rule.id, *place);
            let further = rule.without(*place);
            for pattern in &condition.any_of {
                buckets.entry((condition.slot, pattern)).or_default().push(further.clone());
            }
        }
        level.hold(buckets);
        level
    }

    /// Creates the buckets of this level, and the lookup structure of each kind of pattern.
    fn hold(&mut self, buckets: HashMap<(Slot, &Pattern), Vec<Standing<'_>>>) {
        let mut networks = Vec::new();
        let mut prefixes: HashMap<usize, Vec<_>> = HashMap::new();
        for (id, ((slot, pattern), rules)) in (0..).zip(buckets) {
            self.buckets.push(Bucket::new(&rules));
            let number = slot.number();
            match pattern {
                Pattern::Exact(bytes) => drop(self.of_slot(number).exact.insert(bytes.clone(), id)),
                Pattern::Prefix(bytes) => prefixes.entry(number).or_default().push((bytes.clone(), id)),
                Pattern::Path(pattern) => self.of_slot(number).paths.insert(pattern, id),
                Pattern::Network(network) => networks.push((*network, id)),
                Pattern::Present if slot == Slot::Ip => networks.push((Network::ALL, id)),
                Pattern::Present => prefixes.entry(number).or_default().push((Box::default(), id)),
                Pattern::Missing => self.missing.push((slot, id)),
            }
        }
        for (number, prefixes) in prefixes {
            self.of_slot(number).prefixes = Prefixes::new(prefixes);
        }
        self.networks = Networks::new(networks);
    }

    /// Returns the values of an attribute, created empty if it has none.
    fn of_slot(&mut self, number: usize) -> &mut OfSlot {
        if self.slots.len() <= number {
            self.slots.resize_with(number + 1, OfSlot::default);
        }
        &mut self.slots[number]
    }

    /// Appends the rules that may apply.
    pub(super) fn find(&self, seen: &NormalizedRequest<'_>, found: &mut RuleIds) {
        found.extend_from_slice(&self.always);
        if let Some(ip) = seen.ip() {
            self.networks.each_around(ip, |id| self.find_in(id, seen, found));
        }
        for (slot, value) in seen.values() {
            let Some(of_slot) = self.slots.get(slot.number()) else { continue };
            of_slot.each_of(value, &mut |id| self.find_in(id, seen, found));
        }
        for (slot, id) in &self.missing {
            if seen.is_missing(*slot) {
                self.find_in(*id, seen, found);
            }
        }
    }

    /// Appends the rules of one bucket.
    fn find_in(&self, id: BucketId, seen: &NormalizedRequest<'_>, found: &mut RuleIds) {
        match &self.buckets[id as usize] {
            Bucket::Few(rules) => found.extend_from_slice(rules),
            Bucket::Many(level) => level.find(seen, found),
        }
    }
}

impl Bucket {
    fn new(rules: &[Standing<'_>]) -> Bucket {
        let is_worth_it = rules.len() > FEW && rules.iter().any(|rule| !rule.left.is_empty());
        if is_worth_it {
            return Bucket::Many(Box::new(Level::new(rules, |_, _| {})));
        }
        Bucket::Few(rules.iter().map(|rule| rule.id).collect())
    }
}

/// Returns the rank of a condition for filing: long lists first, then the condition shared with the fewest rules, then
/// the fastest lookup.
fn rank(condition: &Condition, shared: &HashMap<(Slot, &Pattern), usize>) -> (bool, usize, usize) {
    let most_shared =
        condition.any_of.iter().filter_map(|pattern| shared.get(&(condition.slot, pattern))).max();
    let slowest = condition.any_of.iter().map(|pattern| match pattern {
        Pattern::Exact(_) => 0,
        Pattern::Network(_) => 1,
        Pattern::Path(_) => 2,
        Pattern::Prefix(prefix) if !prefix.is_empty() => 3,
        // The empty prefix matches every request that has the attribute.
        Pattern::Prefix(_) | Pattern::Present | Pattern::Missing => 1000,
    });
    let slowest = slowest.max().unwrap_or(0);
    (
        condition.any_of.len() <= LONG_LIST,
        most_shared.copied().unwrap_or(0).max(slowest / 1000 * 1000),
        slowest,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Attributes;
    use crate::normalized::Slots;

    fn condition(slots: &mut Slots, attribute: &str, values: &[String]) -> Condition {
        let any_of = values.iter().map(|value| Pattern::Exact(value.as_bytes().into())).collect();
        Condition::new(attribute, slots.of(attribute), any_of)
    }

    #[test]
    fn where_neither_of_two_conditions_tells_one_rule_both_do() {
        let mut slots = Slots::default();
        let texts = |letter: char| (0..20).map(|number| format!("{letter}{number}")).collect::<Vec<_>>();
        let (users, shops) = (texts('u'), texts('s'));
        let mut rules = Vec::new();
        for (user, shop) in users.iter().flat_map(|user| shops.iter().map(move |shop| (user, shop))) {
            let (user, shop) = (std::slice::from_ref(user), std::slice::from_ref(shop));
            rules.push([condition(&mut slots, "user", user), condition(&mut slots, "shop", shop)]);
        }
        let standing: Vec<_> = (0..).zip(&rules).map(|(id, rule)| Standing::new(id, rule)).collect();
        let level = Level::new(&standing, |_, _| {});
        let find = |request: Attributes<'_>| {
            let mut found = RuleIds::new();
            level.find(&slots.see(&request), &mut found);
            found.to_vec()
        };
        assert_eq!(find(Attributes::new().set("user", "u3").set("shop", "s7")), [3 * 20 + 7]);
        assert_eq!(find(Attributes::new().set("user", "u3")), [0; 0]);
        assert_eq!(find(Attributes::new().set("user", "u3").set("shop", "x")), [0; 0]);
    }

    #[test]
    fn lists_are_not_multiplied_by_one_another() {
        let mut slots = Slots::default();
        let values: Vec<_> = (0..50).map(|number| number.to_string()).collect();
        let lists = ["a", "b", "c", "d"].map(|attribute| condition(&mut slots, attribute, &values));
        let standing: Vec<_> = (0..20).map(|id| Standing::new(id, &lists)).collect();
        let level = Level::new(&standing, |_, place| assert_eq!(place, 0));
        assert_eq!(level.buckets.len(), values.len());
        assert!(level.buckets.iter().all(|bucket| matches!(bucket, Bucket::Few(rules) if rules.len() == 20)));
    }
}
