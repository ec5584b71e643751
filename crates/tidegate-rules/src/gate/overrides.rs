//! Overrides: another limit or decision for single keys, until a time.
//!
//! An override is an exception for one key, made while the gate runs: a higher limit for a customer during a migration,
//! or a ban of an abusive client. It ends by itself. The policy file is for everything that lasts.
//!
//! All overrides are one immutable map that is replaced at each change. A request reads it without a lock, and pays one
//! atomic load as long as there are none.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tidegate_core::{Key, Limit};

use super::overridden::Overridden;
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
///
/// The parts of its key are in the order in which the rule has them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Override {
    /// The rule.
    pub rule: Arc<str>,
    /// The parts of the key by name.
    pub key: Vec<(String, String)>,
    /// The limit or decision in place of that of the rule.
    pub instead: Instead,
    /// The end of the override, in seconds since 1970.
    pub until: i64,
}

/// The limit or decision of an override.
///
/// The conditions, cost and mode of the rule stay in force; only its limit is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is copied once per request that is overridden, as a limit is"
)]
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
    /// Returns true if the key of the rule has the same parts as that of the override.
    ///
    /// Otherwise the key was made of other attributes, and equal bytes mean another client.
    fn is_about(&self, rule: &Rule) -> bool {
        rule.key().eq(self.key.iter().map(|(name, _)| name.as_str()))
    }

    /// Returns the size of the override under this key, as counted by [`MAX_OVERRIDE_BYTES`].
    fn bytes(&self, key: &Key) -> usize {
        let parts = self.key.iter().map(|(name, value)| name.len() + value.len());
        key.as_bytes().len() + parts.sum::<usize>()
    }
}

type All = HashMap<Arc<str>, HashMap<Key, Arc<Overridden>>>;

/// All overrides, readable without a lock, including those that ended less than one refill ago.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    all: ArcSwap<All>,
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
        let found = all.get(rule.name())?.get(key)?;
        (found.one().is_about(rule) && found.matters_at(now())).then(|| Arc::clone(found))
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
        let Some(of_rule) = all.get(rule.name()) else { return false };
        let denies = |found: &Overridden| {
            found.one().is_about(rule) && matches!(found.instead(now()), Some(Instead::Deny))
        };
        match key.keys_of_values(seen) {
            Some(keys) => keys.iter().any(|key| of_rule.get(key).is_some_and(|found| denies(found))),
            // With more values than are examined, one of them could be denied.
            None => of_rule.values().any(|found| denies(found)),
        }
    }

    /// Ends the overrides whose rule was removed or has other key parts, under which the same key means something else.
    /// If a rule moved to another zone, the counts of its overrides are not carried over.
    pub(crate) fn keep_those_of(&self, old: &Policy, new: &Policy, now: i64) {
        if self.all.load().is_empty() {
            return;
        }
        let zone = |policy: &Policy, rule: &str| policy.named(rule).and_then(Rule::zone).map(str::to_owned);
        self.change(now, |all| {
            for (rule, of_rule) in all.iter_mut() {
                let known = new.named(rule);
                of_rule.retain(|_, found| known.is_some_and(|known| found.one().is_about(known)));
                if zone(old, rule) != zone(new, rule) {
                    of_rule.values_mut().for_each(|found| *found = Arc::new(found.without_counts()));
                }
            }
        });
    }

    /// Adds an override, if the caller's check accepts it in place of the existing one.
    pub(crate) fn put<E: From<OverrideError>>(
        &self,
        key: Key,
        one: Override,
        now: i64,
        may_replace: impl FnOnce(Option<&Override>, &Override) -> Result<(), E>,
    ) -> Result<(), E> {
        self.change(now, |all| {
            may_replace(in_force(all, &one.rule, &key, now), &one)?;
            if room_for(all, &key, &one).is_err() {
                all.values_mut().for_each(|of_rule| of_rule.retain(|_, found| !found.has_ended(now)));
            }
            room_for(all, &key, &one)?;
            let of_rule = all.entry(one.rule.clone()).or_default();
            let next = Overridden::new(one, of_rule.get(&key).map(|old| &**old));
            of_rule.insert(key, Arc::new(next));
            Ok(())
        })
    }

    /// Ends an override, if the caller's check accepts. Returns true if there was one that had not ended.
    pub(crate) fn remove<E>(
        &self,
        rule: &str,
        key: &Key,
        now: i64,
        may_remove: impl FnOnce(Option<&Override>) -> Result<(), E>,
    ) -> Result<bool, E> {
        self.change(now, |all| {
            may_remove(in_force(all, rule, key, now))?;
            let Some(of_rule) = all.get_mut(rule) else { return Ok(false) };
            let Some(found) = of_rule.remove(key) else { return Ok(false) };
            let was_there = !found.has_ended(now);
            let ended = if was_there { Arc::new(found.ended_at(now)) } else { found };
            if ended.matters_at(now) {
                of_rule.insert(key.clone(), ended);
            }
            Ok(was_there)
        })
    }

    /// Returns all overrides that have not ended, by rule and end.
    pub(crate) fn list(&self, now: i64) -> Vec<Override> {
        let all = self.all.load();
        let each = all.values().flat_map(HashMap::values).filter(|found| !found.has_ended(now));
        let mut list: Vec<_> = each.map(|found| found.one().clone()).collect();
        list.sort_by(|one, other| {
            (&one.rule, one.until, &one.key).cmp(&(&other.rule, other.until, &other.key))
        });
        list
    }

    /// Applies a change and drops overrides that no longer matter.
    ///
    /// Changes are serialized by a lock, copy the whole map, and are rare. Readers see the map before or after a
    /// change.
    fn change<T>(&self, now: i64, change: impl FnOnce(&mut All) -> T) -> T {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = All::clone(&self.all.load());
        for of_rule in all.values_mut() {
            of_rule.retain(|_, found| found.matters_at(now));
        }
        let changed = change(&mut all);
        all.retain(|_, of_rule| !of_rule.is_empty());
        let has_any = !all.is_empty();
        self.all.store(Arc::new(all));
        self.has_any.store(has_any, Ordering::Release);
        changed
    }
}

/// Returns the override of a key, unless it has ended.
fn in_force<'a>(all: &'a All, rule: &str, key: &Key, now: i64) -> Option<&'a Override> {
    let found = all.get(rule)?.get(key)?;
    (!found.has_ended(now)).then(|| found.one())
}

/// Checks that one more override fits into the maximum number and size.
fn room_for(all: &All, key: &Key, one: &Override) -> Result<(), OverrideError> {
    let replaced = all.get(&one.rule).and_then(|of_rule| of_rule.get(key));
    let count: usize = all.values().map(HashMap::len).sum();
    if count >= MAX_OVERRIDES && replaced.is_none() {
        return Err(OverrideError::TooMany);
    }
    let each = all.values().flatten().map(|(key, found)| found.one().bytes(key));
    let others = each.sum::<usize>() - replaced.map_or(0, |old| old.one().bytes(key));
    let (bytes, left) = (one.bytes(key), MAX_OVERRIDE_BYTES.saturating_sub(others));
    if bytes > left { Err(OverrideError::TooLong { bytes, left }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
