//! What holds for single keys instead of what their rule says, until a time.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tidegate::{Key, Limit};

use super::overridden::Overridden;
use crate::key::KeyParts;
use crate::policy::Policy;
use crate::rule::Rule;
use crate::seen::Seen;

/// The most of them at a time.
pub const MAX_OVERRIDES: usize = 10_000;
/// The most bytes of all of them together: of their keys, and of the names and values of the parts. All are copied when
/// one is put or removed, and listed at once.
pub const MAX_OVERRIDE_BYTES: usize = 4 << 20;

/// What holds for one key of one rule instead of what the rule says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The rule.
    pub rule: Arc<str>,
    /// The parts of the key by name.
    pub key: Vec<(String, String)>,
    /// What holds.
    pub instead: Instead,
    /// When it ends, in seconds since 1970.
    pub until: i64,
}

/// What holds instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// Another limit.
    Limit(Limit),
    /// The rule does not apply.
    Allow,
    /// The rule refuses everything.
    Deny,
}

/// Why there is no such override.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverrideError {
    /// No rule has this name, or the one that has counts nothing.
    NoSuchRule(String),
    /// A part of the rule's key was not said.
    MissingPart(String),
    /// A part of the rule's key was said with several values.
    RepeatedPart(String),
    /// There are too many.
    TooMany,
    /// Their keys would be too long together.
    TooLong {
        /// The bytes of this one.
        bytes: usize,
        /// The bytes that the others leave it.
        left: usize,
    },
    /// The store cannot count by such a limit.
    Unsupported {
        /// The limit, as text.
        limit: String,
        /// What the store says: what is wrong with it, and what would do.
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
    /// Whether the rule counts by the parts that its key was named with.
    fn is_about(&self, rule: &Rule) -> bool {
        rule.key().eq(self.key.iter().map(|(name, _)| name.as_str()))
    }

    /// The bytes that it takes under this key, as [`MAX_OVERRIDE_BYTES`] counts them.
    fn bytes(&self, key: &Key) -> usize {
        let parts = self.key.iter().map(|(name, value)| name.len() + value.len());
        key.as_bytes().len() + parts.sum::<usize>()
    }
}

type All = HashMap<Arc<str>, HashMap<Key, Arc<Overridden>>>;

/// All overrides, read without a lock, and those that ended less than one refill ago.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    all: ArcSwap<All>,
    /// Most policies have no override, and a request finds that out by one load.
    has_any: AtomicBool,
    changing: Mutex<()>,
}

impl Overrides {
    /// Returns true if there is none at all, as with most policies.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_any.load(Ordering::Acquire)
    }

    /// The override of a key, if it matters now; the date is only asked for if there is one.
    pub(crate) fn of(&self, rule: &Rule, key: &Key, now: impl FnOnce() -> i64) -> Option<Arc<Overridden>> {
        let all = self.all.load();
        let found = all.get(rule.name())?.get(key)?;
        (found.one().is_about(rule) && found.matters_at(now())).then(|| Arc::clone(found))
    }

    /// Returns true if one of the values that a request has of a repeated part is denied by an override. Nobody gets rid
    /// of that by sending another value beside it.
    pub(crate) fn deny_a_value(
        &self,
        rule: &Rule,
        key: &KeyParts,
        seen: &Seen<'_>,
        now: impl Fn() -> i64,
    ) -> bool {
        let all = self.all.load();
        let Some(of_rule) = all.get(rule.name()) else { return false };
        let denies = |found: &Overridden| {
            found.one().is_about(rule) && matches!(found.instead(now()), Some(Instead::Deny))
        };
        match key.keys_of_values(seen) {
            Some(keys) => keys.iter().any(|key| of_rule.get(key).is_some_and(|found| denies(found))),
            // More values than anybody looks at could be one that is denied.
            None => of_rule.values().any(|found| denies(found)),
        }
    }

    /// Ends those whose rule is gone or counts by other parts, under which the same key has another meaning. Counts of a
    /// rule that moved to another zone are not there.
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

    /// Puts one in force, if the caller agrees to that in place of the one which is there.
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

    /// Ends one, if the caller agrees. Returns true if there was one that had not ended.
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

    /// All that have not ended, by rule and end.
    pub(crate) fn list(&self, now: i64) -> Vec<Override> {
        let all = self.all.load();
        let each = all.values().flat_map(HashMap::values).filter(|found| !found.has_ended(now));
        let mut list: Vec<_> = each.map(|found| found.one().clone()).collect();
        list.sort_by(|one, other| {
            (&one.rule, one.until, &one.key).cmp(&(&other.rule, other.until, &other.key))
        });
        list
    }

    /// Puts others in force, without those that matter no more.
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

/// The override of a key, unless it has ended.
fn in_force<'a>(all: &'a All, rule: &str, key: &Key, now: i64) -> Option<&'a Override> {
    let found = all.get(rule)?.get(key)?;
    (!found.has_ended(now)).then(|| found.one())
}

/// Whether one more override fits beside all others.
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
