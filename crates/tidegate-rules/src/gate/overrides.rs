//! Overrides: another limit or decision for single keys, until a time or without an end.
//!
//! An override is an exception for one key, made while the gate runs: a higher limit for a customer during a migration,
//! or a ban of an abusive client.
//!
//! All overrides are one immutable table that is replaced at each change. A request reads it without a lock, and pays one
//! atomic load as long as there are none. An override whose rule is not in force is kept without effect, so that it is
//! in effect again as soon as the rule is back.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tidegate_core::{Key, Limit};

use super::InForce;
use super::overridden::Overridden;
use super::override_set::{OverrideId, OverrideSet};
use crate::key::KeyParts;
use crate::normalized::NormalizedRequest;
use crate::policy::Policy;
use crate::rule::Rule;

/// The maximum number of overrides.
///
/// An exception for so many keys is a rule. Overrides that ended do not count.
pub const MAX_OVERRIDES: usize = 10_000;
/// The maximum size of all overrides together: their keys, and the names and values of the parts. All overrides are
/// copied at each change, and listed in one reply.
pub const MAX_OVERRIDE_BYTES: usize = 4 << 20;

/// An override for one key of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Override {
    /// The rule.
    pub rule: Arc<str>,
    /// The parts of the key by name, each in the spelling in which the rule counts it.
    pub key: Vec<(String, String)>,
    /// The limit or decision in place of that of the rule.
    pub instead: Instead,
    /// The end of the override, in seconds since 1970; `None` if it does not end.
    pub until: Option<i64>,
    /// The author of the override, if known.
    pub by: Option<String>,
    /// The time at which it was put, in seconds since 1970.
    pub at: i64,
}

/// An override that is kept and has no effect, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdleOverride {
    /// The override.
    pub one: Override,
    /// The reason: its rule is not in force, has another key, or the store does not support its limit.
    pub why: String,
}

/// The limit or decision of an override.
///
/// The conditions, cost and mode of the rule stay in force; only its limit is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a limit is a value, and an override is rarely anything else")]
pub enum Instead {
    /// Another limit.
    Limit(Limit),
    /// The rule does not apply.
    Allow,
    /// The rule denies every request of the key.
    Deny,
}

/// The reason why an override was rejected.
///
/// Each variant is an error of the caller, and displays the fault with its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverrideError {
    /// No rule has this name, or that rule has no limit.
    NoSuchRule(String),
    /// A part of the rule's key is missing.
    MissingPart(String),
    /// A part of the rule's key has several values.
    RepeatedPart(String),
    /// A part of the key has a value that no text names: bytes that are no UTF-8, or an address in a wider group.
    NoText(String),
    /// There are [`MAX_OVERRIDES`] overrides already.
    TooMany,
    /// The overrides together would exceed [`MAX_OVERRIDE_BYTES`].
    TooLong {
        /// The size of this override, in bytes.
        bytes: usize,
        /// The bytes that remain for it.
        left: usize,
    },
    /// The store does not support the limit.
    Unsupported {
        /// The limit, as text.
        limit: String,
        /// The reason from the store: the fault and its remedy.
        reason: String,
    },
}

impl fmt::Display for OverrideError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OverrideError::NoSuchRule(rule) => {
                write!(
                    out,
                    "rule {rule:?}: there is no rule of this name with a limit; name one that is in force"
                )
            }
            OverrideError::MissingPart(part) => {
                write!(out, "key: {part:?} is a part of this rule's key and missing; say whose limit it is")
            }
            OverrideError::RepeatedPart(part) => {
                write!(
                    out,
                    "key: {part:?} has several values, and an override is for one key; send one of them"
                )
            }
            OverrideError::NoText(part) => {
                write!(
                    out,
                    "key: {part:?} has a value that no text names, so no list could show it; count by a hash of it"
                )
            }
            OverrideError::TooMany => {
                write!(out, "there are {MAX_OVERRIDES} overrides already; delete some, or write a rule")
            }
            OverrideError::TooLong { bytes, left } => write!(
                out,
                "key: takes {bytes} bytes, and of the {MAX_OVERRIDE_BYTES} bytes for the keys of all overrides {left} are \
                 left; delete some, write a rule, or count by a hash of what is so long"
            ),
            OverrideError::Unsupported { limit, reason } => write!(out, "limit {limit:?}: {reason}"),
        }
    }
}

impl std::error::Error for OverrideError {}

impl Override {
    /// Creates an override without an end, of an unknown author. The parts of the key are in the spelling in which the
    /// rule counts them, as [`Gate::overrides`](super::Gate::overrides) returns them.
    pub fn new(rule: impl Into<Arc<str>>, key: Vec<(String, String)>, instead: Instead) -> Override {
        Override { rule: rule.into(), key, instead, until: None, by: None, at: 0 }
    }

    /// Returns its identity. Another override with the same identity replaces it.
    pub fn id(&self) -> OverrideId {
        OverrideId::new(self.rule.clone(), self.key.clone())
    }

    /// Returns true if it has ended at this time, in seconds since 1970.
    pub fn has_ended(&self, now: i64) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// Returns true if it has the same effect as the other one: the same limit or decision for the same key until the
    /// same time.
    pub fn is_same_as(&self, other: &Override) -> bool {
        (self.instead, self.until) == (other.instead, other.until) && self.id() == other.id()
    }

    /// Returns true if the key of the rule has the same parts as that of the override.
    ///
    /// Otherwise the key was made of other attributes, and equal bytes mean another client.
    fn is_about(&self, rule: &Rule) -> bool {
        let has = |part: &str| self.key.iter().any(|(name, _)| name == part);
        rule.key().count() == self.key.len() && rule.key().all(has)
    }

    /// Returns the size of the override, as counted by [`MAX_OVERRIDE_BYTES`]: each value is also in the key.
    pub(super) fn bytes(&self) -> usize {
        self.key.iter().map(|(name, value)| name.len() + 2 * value.len()).sum()
    }
}

/// The overrides of each rule by key, in effect or ended less than one refill ago.
pub(super) type ByKey = HashMap<Arc<str>, HashMap<Key, Arc<Overridden>>>;

/// All overrides at one time.
#[derive(Clone, Debug, Default)]
struct Table {
    keyed: ByKey,
    /// Those without an effect.
    idle: Vec<IdleOverride>,
}

impl Table {
    /// Returns all overrides that have not ended.
    fn set(&self, now: i64) -> OverrideSet {
        let mut set = OverrideSet::default();
        let keyed = self.keyed.values().flat_map(HashMap::values).filter(|found| !found.has_ended(now));
        let idle = self.idle.iter().map(|idle| &idle.one).filter(|one| !one.has_ended(now));
        for one in keyed.map(|found| found.one()).chain(idle) {
            // They were in a set before, so there is room for them.
            let _ = set.put(one.clone());
        }
        set
    }

    /// Inserts an override under its key.
    fn insert(&mut self, key: Key, found: Arc<Overridden>) {
        self.keyed.entry(found.one().rule.clone()).or_default().insert(key, found);
    }

    /// Inserts overrides that ended at this time or before, as long as their counts matter and there is room. Those in
    /// effect come first, and then those that have decided here.
    fn keep_ended(&mut self, mut ended: Vec<(Key, Arc<Overridden>)>, set: &OverrideSet) {
        if ended.is_empty() {
            return;
        }
        let mut all = set.clone();
        ended.sort_by_key(|(_, found)| !found.has_decided());
        for (key, found) in ended {
            if all.put(found.one().clone()).is_ok() {
                self.insert(key, found);
            }
        }
    }
}

/// All overrides, readable without a lock, including those that ended less than one refill ago.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    all: ArcSwap<Table>,
    /// False while there is no override, as with most policies. A request then pays only one atomic load.
    has_any: AtomicBool,
    changing: Mutex<()>,
}

impl Overrides {
    /// Returns true if there is no override, as with most policies.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_any.load(Ordering::Acquire)
    }

    /// Returns the override of a key, if it still matters. Reads the date only if there is an override.
    pub(crate) fn of(&self, rule: &Rule, key: &Key, now: impl FnOnce() -> i64) -> Option<Arc<Overridden>> {
        let all = self.all.load();
        find(&all.keyed, rule, key, now)
    }

    /// Returns true if an override denies one of the values of a repeated part. So a client cannot evade the denial by
    /// sending a second value.
    pub(crate) fn deny_a_value(
        &self,
        rule: &Rule,
        key: &KeyParts,
        seen: &NormalizedRequest<'_>,
        now: impl Fn() -> i64,
    ) -> bool {
        let all = self.all.load();
        let Some(of_rule) = all.keyed.get(rule.name()) else { return false };
        let denies = |found: &Overridden| {
            found.one().is_about(rule) && matches!(found.instead(now()), Some(Instead::Deny))
        };
        match key.keys_of_values(seen) {
            Some(keys) => keys.iter().any(|key| of_rule.get(key).is_some_and(|found| denies(found))),
            // With more values than are examined, one of them could be denied.
            None => of_rule.values().any(|found| denies(found)),
        }
    }

    /// Changes the set of overrides, and puts the result in force under a policy. The new set and the policy are read
    /// under one lock, so no other change and no other policy comes in between.
    ///
    /// An override that is not in the new set ends. One that replaces another of its key goes on with its counts.
    pub(super) fn change<T, E>(
        &self,
        now: i64,
        force: impl FnOnce() -> Arc<InForce>,
        change: impl FnOnce(&mut OverrideSet) -> Result<T, E>,
    ) -> Result<T, E> {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.all.load();
        let mut set = old.set(now);
        let changed = change(&mut set)?;
        set.remove_ended(now);
        let force = force();
        self.store(next_table(&old, &set, now, |one| force.key_of_override(one), |_| true));
        Ok(changed)
    }

    /// Goes on under another policy, which `put_in_force` puts in force under the same lock. Overrides of rules that are
    /// gone, or have another key, have no effect from now on, and those of rules that are back have one again. If a
    /// rule moved to another zone, the counts of its overrides are not carried over.
    pub(super) fn follow(&self, old: &Policy, new: &InForce, now: i64, put_in_force: impl FnOnce()) {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let all = self.all.load();
        if !all.keyed.is_empty() || !all.idle.is_empty() {
            let zone =
                |policy: &Policy, rule: &str| policy.named(rule).and_then(Rule::zone).map(str::to_owned);
            let is_in_place = |rule: &str| zone(old, rule) == zone(&new.policy, rule);
            let key_of = |one: &Override| new.key_of_override(one);
            self.store(next_table(&all, &all.set(now), now, key_of, is_in_place));
        }
        put_in_force();
    }

    fn store(&self, next: Table) {
        let has_any = !next.keyed.is_empty();
        self.all.store(Arc::new(next));
        self.has_any.store(has_any, Ordering::Release);
    }

    /// Returns all overrides that have not ended.
    pub(crate) fn set(&self, now: i64) -> OverrideSet {
        self.all.load().set(now)
    }

    /// Returns the overrides that have no effect and have not ended.
    pub(crate) fn idle(&self, now: i64) -> Vec<IdleOverride> {
        self.all.load().idle.iter().filter(|idle| !idle.one.has_ended(now)).cloned().collect()
    }
}

/// Returns the entry of a key, if it still matters. Reads the date only if there is one.
pub(super) fn find(
    all: &ByKey,
    rule: &Rule,
    key: &Key,
    now: impl FnOnce() -> i64,
) -> Option<Arc<Overridden>> {
    let found = all.get(rule.name())?.get(key)?;
    (found.one().is_about(rule) && found.matters_at(now())).then(|| Arc::clone(found))
}

/// Returns the entry of a key that goes on: the one before it if that is the same override, or else a new one with its
/// counts.
pub(super) fn going_on(before: Option<&Arc<Overridden>>, one: &Override, now: i64) -> Arc<Overridden> {
    match before.filter(|found| found.one() == one && !found.has_ended(now)) {
        Some(same) => Arc::clone(same),
        None => Arc::new(Overridden::new(one.clone(), before.map(|before| &**before))),
    }
}

/// Returns the entries of `old` whose keys are not in `next`, as ended, as long as their counts matter.
pub(super) fn ended(
    old: &ByKey,
    next: &ByKey,
    now: i64,
    key_of: impl Fn(&Override) -> Result<Key, String>,
) -> Vec<(Key, Arc<Overridden>)> {
    let mut ended = Vec::new();
    for (rule, of_rule) in old {
        for (key, found) in of_rule {
            let goes_on = next.get(rule).is_some_and(|of_rule| of_rule.contains_key(key));
            if goes_on || key_of(found.one()).as_ref() != Ok(key) {
                continue;
            }
            let is_over = found.has_ended(now);
            let found = if is_over { Arc::clone(found) } else { Arc::new(found.ended_at(now)) };
            if found.matters_at(now) {
                ended.push((key.clone(), found));
            }
        }
    }
    ended
}

/// Returns the table with these overrides. Counts of the rules for which `is_in_place` is false are not carried over.
fn next_table(
    old: &Table,
    set: &OverrideSet,
    now: i64,
    key_of: impl Fn(&Override) -> Result<Key, String>,
    is_in_place: impl Fn(&str) -> bool,
) -> Table {
    let mut next = Table::default();
    for one in set.iter() {
        match key_of(one) {
            Ok(key) => {
                let before = old.keyed.get(&one.rule).and_then(|of_rule| of_rule.get(&key));
                next.insert(key, going_on(before.filter(|_| is_in_place(&one.rule)), one, now));
            }
            Err(why) => next.idle.push(IdleOverride { one: one.clone(), why }),
        }
    }
    let mut ended = ended(&old.keyed, &next.keyed, now, key_of);
    ended.retain(|(_, found)| is_in_place(&found.one().rule));
    next.keep_ended(ended, set);
    next
}

#[cfg(test)]
mod tests;
