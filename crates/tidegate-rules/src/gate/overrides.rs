//! What holds for single keys instead of what their rule says, until a time.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tidegate::{Key, Limit};

use crate::policy::Policy;
use crate::rule::Rule;

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

type All = HashMap<Arc<str>, HashMap<Key, Override>>;

/// All overrides, read without a lock.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    all: ArcSwap<All>,
    changing: Mutex<()>,
}

impl Overrides {
    /// What holds for a key now; the date is only asked for if anything might.
    pub(crate) fn of(&self, rule: &Rule, key: &Key, now: impl FnOnce() -> i64) -> Option<Instead> {
        let all = self.all.load();
        if all.is_empty() {
            return None;
        }
        let found = all.get(rule.name())?.get(key)?;
        (found.is_about(rule) && now() < found.until).then_some(found.instead)
    }

    /// Ends those whose rule is gone or counts by other parts: their keys would be somebody else's.
    pub(crate) fn keep_those_of(&self, policy: &Policy, now: i64) {
        if self.all.load().is_empty() {
            return;
        }
        let rules: HashMap<_, _> = policy.rules().iter().map(|rule| (rule.name(), rule)).collect();
        self.change(now, |all| {
            for of_rule in all.values_mut() {
                of_rule.retain(|_, one| rules.get(&*one.rule).is_some_and(|rule| one.is_about(rule)));
            }
        });
    }

    pub(crate) fn put(&self, key: Key, one: Override, now: i64) -> Result<(), OverrideError> {
        self.change(now, |all| {
            let replaced = all.get(&one.rule).and_then(|of_rule| of_rule.get(&key));
            let count: usize = all.values().map(HashMap::len).sum();
            if count >= MAX_OVERRIDES && replaced.is_none() {
                return Err(OverrideError::TooMany);
            }
            let each = all.values().flatten().map(|(key, one)| one.bytes(key));
            let others = each.sum::<usize>() - replaced.map_or(0, |old| old.bytes(&key));
            let (bytes, left) = (one.bytes(&key), MAX_OVERRIDE_BYTES.saturating_sub(others));
            if bytes > left {
                return Err(OverrideError::TooLong { bytes, left });
            }
            all.entry(one.rule.clone()).or_default().insert(key, one);
            Ok(())
        })
    }

    /// Whether there was one.
    pub(crate) fn remove(&self, rule: &str, key: &Key, now: i64) -> bool {
        self.change(now, |all| all.get_mut(rule).is_some_and(|of_rule| of_rule.remove(key).is_some()))
    }

    /// All that have not ended, by rule and end.
    pub(crate) fn list(&self, now: i64) -> Vec<Override> {
        let all = self.all.load();
        let mut list: Vec<_> =
            all.values().flat_map(HashMap::values).filter(|one| now < one.until).cloned().collect();
        list.sort_by(|one, other| {
            (&one.rule, one.until, &one.key).cmp(&(&other.rule, other.until, &other.key))
        });
        list
    }

    /// Puts others in force, without those that have ended.
    fn change<T>(&self, now: i64, change: impl FnOnce(&mut All) -> T) -> T {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = All::clone(&self.all.load());
        for of_rule in all.values_mut() {
            of_rule.retain(|_, one| now < one.until);
        }
        let told = change(&mut all);
        all.retain(|_, of_rule| !of_rule.is_empty());
        self.all.store(Arc::new(all));
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(user: &str, until: i64) -> (Key, Override) {
        let key = vec![("user".to_owned(), user.to_owned())];
        (Key::new(user), Override { rule: "api".into(), key, instead: Instead::Allow, until })
    }

    fn policy(name: &str, part: &str) -> Policy {
        let text = format!("[[rule]]\nname = '{name}'\nkey = ['{part}']\nlimit = '1/s'");
        Policy::from_toml(&text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn an_override_holds_for_its_key_until_its_end() {
        let overrides = Overrides::default();
        let (api, other) = (policy("api", "user"), policy("other", "user"));
        let (api, other) = (&api.rules()[0], &other.rules()[0]);
        let (key, ana) = one("ana", 100);
        assert_eq!(overrides.put(key.clone(), ana, 0), Ok(()));
        assert_eq!(overrides.of(api, &key, || 99), Some(Instead::Allow));
        assert_eq!(overrides.of(api, &key, || 100), None);
        assert_eq!(overrides.of(api, &Key::new("bob"), || 0), None);
        assert_eq!(overrides.of(other, &key, || 0), None);
        assert_eq!((overrides.list(99).len(), overrides.list(100).len()), (1, 0));
        assert!(overrides.remove("api", &key, 0) && !overrides.remove("api", &key, 0));
        assert_eq!(overrides.of(api, &key, || unreachable!("there is none")), None);
    }

    #[test]
    fn an_override_is_nobody_elses_when_the_rule_counts_by_something_else() {
        let overrides = Overrides::default();
        let (key, ana) = one("ana", 100);
        assert_eq!(overrides.put(key.clone(), ana, 0), Ok(()));
        let by_header = policy("api", "header.x");
        assert_eq!(overrides.of(&by_header.rules()[0], &key, || 0), None);
        overrides.keep_those_of(&policy("api", "user"), 0);
        assert_eq!(overrides.list(0).len(), 1);
        overrides.keep_those_of(&by_header, 0);
        assert_eq!(overrides.list(0), []);
    }

    #[test]
    fn there_are_only_so_many_and_those_that_ended_make_room() {
        let overrides = Overrides::default();
        let (last_key, last) = one("last", 100);
        let many: All = HashMap::from([(
            "api".into(),
            (0..MAX_OVERRIDES).map(|user| one(&user.to_string(), 50)).collect(),
        )]);
        overrides.all.store(Arc::new(many));
        assert_eq!(overrides.put(last_key.clone(), last.clone(), 0), Err(OverrideError::TooMany));
        let (known, again) = one("7", 60);
        assert_eq!(overrides.put(known, again, 0), Ok(()));
        assert_eq!(overrides.put(last_key, last, 50), Ok(()));
        assert_eq!(overrides.list(50).len(), 2);
    }

    #[test]
    fn keys_have_only_so_many_bytes_together_and_those_that_ended_make_room() {
        let overrides = Overrides::default();
        let put = |user: &str, now| {
            let (key, one) = one(user, 100);
            overrides.put(key, one, now)
        };
        // Each is there twice: in the key, with its length before it, and as a part, with the name of the part.
        let long = |nth: usize, bytes: usize| format!("{nth:02}{}", "x".repeat(bytes - 2));
        for nth in 0..63 {
            assert_eq!(put(&long(nth, 32 << 10), 0), Ok(()));
        }
        let taken: usize = overrides.all.load().values().flatten().map(|(key, one)| one.bytes(key)).sum();
        let left = MAX_OVERRIDE_BYTES - taken;
        let around = one("", 0).1.bytes(&Key::new("")) + 2;
        let fits = (left - around) / 2;
        let error = put(&long(63, fits + 1), 0).expect_err("one more byte is too long");
        let OverrideError::TooLong { bytes, left: told } = error else { panic!("{error}") };
        assert!(bytes > left && bytes <= left + 2 && told == left, "{bytes} of {left}, told {told}");
        assert_eq!(put(&long(63, fits), 0), Ok(()));
        assert!(put("ana", 0).is_err(), "there is no room for a short one either");
        assert_eq!(put(&long(63, fits), 0), Ok(()), "one that replaces itself needs no room");
        assert_eq!(overrides.list(0).len(), 64);
        assert!(overrides.remove("api", &Key::new(long(7, 32 << 10).as_str()), 0));
        assert_eq!(put("ana", 0), Ok(()));
        assert_eq!(put(&long(99, 64 << 10), 100), Ok(()), "all others have ended");
    }
}
