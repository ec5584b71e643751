//! A set of overrides: the content of a gate, of a file, or of a shared store.
//!
//! A set has one override for each key of a rule, and bounds. A change of overrides is a change of a set: it is read,
//! changed and put in force as a whole. So a set that is kept durably and the set in force are changed by the same code.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::overrides::{MAX_OVERRIDE_BYTES, MAX_OVERRIDES, Override, OverrideError};

/// The identity of an override: a rule and a key of it, with the parts of the key in the order of their names.
///
/// Two overrides with the same identity replace each other. It needs no policy, so it also identifies an override of a
/// rule that is not in force.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OverrideId {
    rule: Arc<str>,
    key: Vec<(String, String)>,
}

impl OverrideId {
    /// Creates the identity of a key with these parts, in any order.
    pub fn new(rule: impl Into<Arc<str>>, mut key: Vec<(String, String)>) -> OverrideId {
        key.sort();
        OverrideId { rule: rule.into(), key }
    }

    /// Returns the name of the rule.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Returns the parts of the key, in the order of their names.
    pub fn key(&self) -> &[(String, String)] {
        &self.key
    }

    /// Returns an injective encoding: each text has its length before it, so no value can imitate a boundary.
    pub fn encoded(&self) -> String {
        let parts = self.key.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        let each = [&*self.rule].into_iter().chain(parts).map(|text| format!("{}:{text}", text.len()));
        each.collect()
    }
}

/// A set of overrides, at most one for each key of a rule, within [`MAX_OVERRIDES`] and [`MAX_OVERRIDE_BYTES`].
///
/// ```
/// use tidegate::rules::{Instead, Override, OverrideSet};
///
/// let ana = vec![("user".to_owned(), "ana".to_owned())];
/// let mut set = OverrideSet::default();
/// set.put(Override::new("api", ana.clone(), Instead::Deny))?;
/// set.put(Override::new("api", ana, Instead::Allow))?;
/// assert_eq!(set.iter().map(|one| one.instead).collect::<Vec<_>>(), [Instead::Allow]);
/// # Ok::<(), tidegate::rules::OverrideError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverrideSet {
    each: BTreeMap<OverrideId, Override>,
    bytes: usize,
}

impl OverrideSet {
    /// Returns the override of this key, if there is one.
    pub fn get(&self, id: &OverrideId) -> Option<&Override> {
        self.each.get(id)
    }

    /// Adds an override, or replaces the one of its key.
    ///
    /// # Errors
    /// [`OverrideError::TooMany`] or [`OverrideError::TooLong`] if there is no room for it; the set is unchanged then.
    pub fn put(&mut self, one: Override) -> Result<(), OverrideError> {
        let id = one.id();
        let replaced = self.each.get(&id);
        if replaced.is_none() && self.each.len() >= MAX_OVERRIDES {
            return Err(OverrideError::TooMany);
        }
        let others = self.bytes - replaced.map_or(0, Override::bytes);
        let (bytes, left) = (one.bytes(), MAX_OVERRIDE_BYTES.saturating_sub(others));
        if bytes > left {
            return Err(OverrideError::TooLong { bytes, left });
        }
        self.bytes = others + bytes;
        self.each.insert(id, one);
        Ok(())
    }

    /// Removes the override of this key, and returns it.
    pub fn remove(&mut self, id: &OverrideId) -> Option<Override> {
        let removed = self.each.remove(id)?;
        self.bytes -= removed.bytes();
        Some(removed)
    }

    /// Removes the overrides that have ended at this time, in seconds since 1970.
    pub fn remove_ended(&mut self, now: i64) {
        self.each.retain(|_, one| !one.has_ended(now));
        self.bytes = self.each.values().map(Override::bytes).sum();
    }

    /// Returns all overrides, in the order of their identities.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Override> {
        self.each.values()
    }

    /// Returns the number of overrides.
    pub fn len(&self) -> usize {
        self.each.len()
    }

    /// Returns true if there is no override.
    pub fn is_empty(&self) -> bool {
        self.each.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Instead;

    fn one(user: &str) -> Override {
        Override::new("api", vec![("user".to_owned(), user.to_owned())], Instead::Allow)
    }

    #[test]
    fn the_parts_of_a_key_identify_it_in_any_order_and_no_value_imitates_a_boundary() {
        let id = |rule: &str, parts: &[(&str, &str)]| {
            let parts = parts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            OverrideId::new(rule, parts.collect())
        };
        let pair = id("api", &[("b", "2"), ("a", "1")]);
        assert_eq!(pair, id("api", &[("a", "1"), ("b", "2")]));
        assert_eq!(pair.encoded(), "3:api1:a1:11:b1:2");
        let all = [
            pair,
            id("api", &[]),
            id("api1:a", &[]),
            id("api", &[("a", "1")]),
            id("api", &[("a1:1", "")]),
            id("api", &[("a", "11:b1:2")]),
            id("apy", &[("a", "1"), ("b", "2")]),
        ];
        for (nth, id) in all.iter().enumerate() {
            assert!(all[..nth].iter().all(|other| other.encoded() != id.encoded()), "{id:?}");
        }
    }

    #[test]
    fn there_are_only_so_many_and_those_that_ended_make_room() {
        let mut set = OverrideSet::default();
        for user in 0..MAX_OVERRIDES {
            assert_eq!(set.put(Override { until: Some(50), ..one(&user.to_string()) }), Ok(()));
        }
        assert_eq!(set.put(one("last")), Err(OverrideError::TooMany));
        assert_eq!(set.put(one("7")), Ok(()), "one that replaces another needs no room");
        set.remove_ended(49);
        assert_eq!(set.len(), MAX_OVERRIDES);
        set.remove_ended(50);
        assert_eq!(set.len(), 1);
        assert_eq!(set.put(one("last")), Ok(()));
    }

    #[test]
    fn keys_have_only_so_many_bytes_together() {
        let long = |nth: usize, bytes: usize| one(&format!("{nth:02}{}", "x".repeat(bytes - 2)));
        let mut set = OverrideSet::default();
        for nth in 0..63 {
            assert_eq!(set.put(long(nth, 32 << 10)), Ok(()));
        }
        let left = MAX_OVERRIDE_BYTES - set.bytes;
        // The name of the part counts once, and its value twice: it is also in the key.
        let fits = (left - "user".len()) / 2;
        let error = set.put(long(63, fits + 1)).expect_err("one more byte is too long");
        assert!(
            matches!(error, OverrideError::TooLong { bytes, left: reported } if bytes > left && reported == left),
            "{error}"
        );
        assert_eq!((set.put(long(63, fits)), set.put(long(63, fits))), (Ok(()), Ok(())));
        assert!(set.put(one("ana")).is_err() && set.len() == 64);
        assert!(set.remove(&long(7, 32 << 10).id()).is_some());
        assert_eq!(set.put(one("ana")), Ok(()));
    }
}
