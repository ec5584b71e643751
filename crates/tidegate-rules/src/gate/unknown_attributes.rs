//! Attributes of requests that no rule uses.
//!
//! A misspelled attribute, in a rule or in a program, is missing in every request: a limit by `usr` counts all users
//! together, and nothing else shows it. So requests with an attribute that no rule uses are counted, and the name of each
//! such attribute is reported once. Attributes that frontends provide and those that the policy declares are expected.

use std::hash::{BuildHasher as _, BuildHasherDefault};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::attributes::Attributes;
use crate::index::Quick;
use crate::policy::Policy;

/// The maximum number of names that are kept: the bits of a word.
const MAX_NAMES: usize = u64::BITS as usize;
/// The maximum length of a name that is kept, in bytes. Names in rules are not longer.
const MAX_NAME_BYTES: usize = 128;

/// Of so many requests whose names have bits that were seen before, one is examined: two names may share a bit.
const EXAMINED: u64 = 64;

/// The number of requests with unknown attributes, and the names of these.
///
/// The names are a hash table of constant size, whose entries are written once: a request with a name that is known here
/// takes no lock. When it is full, further names are only counted. Most requests cost one count and one bit test: names
/// are compared if a bit is new, and once in [`EXAMINED`] requests.
#[derive(Debug)]
pub(super) struct UnknownAttributes {
    requests: AtomicU64,
    /// The bits of all names that were examined.
    seen: AtomicU64,
    names: [OnceLock<Box<str>>; MAX_NAMES],
    count: AtomicUsize,
    /// The entries that were reported: a bit for each.
    reported: AtomicU64,
}

impl Default for UnknownAttributes {
    fn default() -> UnknownAttributes {
        UnknownAttributes {
            requests: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            names: [const { OnceLock::new() }; MAX_NAMES],
            count: AtomicUsize::new(0),
            reported: AtomicU64::new(0),
        }
    }
}

impl UnknownAttributes {
    /// Counts a request that has unknown attributes with these bits, and keeps their names. A policy without rules uses no
    /// attribute at all, so nothing is counted under it.
    #[inline]
    pub(super) fn note(&self, bits: u64, policy: &Policy, attributes: &Attributes<'_>) {
        if policy.rules().is_empty() {
            return;
        }
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        if bits & !self.seen.load(Ordering::Relaxed) != 0 || before.is_multiple_of(EXAMINED) {
            self.examine(bits, policy, attributes);
        }
    }

    /// Keeps the names of unknown attributes, if there is room.
    #[cold]
    fn examine(&self, bits: u64, policy: &Policy, attributes: &Attributes<'_>) {
        self.seen.fetch_or(bits, Ordering::Relaxed);
        if self.count.load(Ordering::Relaxed) < MAX_NAMES {
            attributes.each().filter(|(name, _)| !policy.knows(name)).for_each(|(name, _)| self.keep(name));
        }
    }

    /// Keeps a name, unless it is kept already.
    fn keep(&self, name: &str) {
        if name.len() > MAX_NAME_BYTES {
            return;
        }
        let first = entry_of(name);
        for entry in (0..MAX_NAMES).map(|nth| &self.names[(first + nth) % MAX_NAMES]) {
            let mut is_new = false;
            let known = entry.get_or_init(|| {
                is_new = true;
                name.into()
            });
            if is_new {
                self.count.fetch_add(1, Ordering::Relaxed);
            }
            if **known == *name {
                return;
            }
        }
    }

    /// Returns the number of requests that had unknown attributes.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Returns the names that were not returned before and that this policy does not know either, in alphabetical order.
    pub(super) fn take(&self, policy: &Policy) -> Vec<String> {
        let is_new = |place: usize| self.reported.fetch_or(1 << place, Ordering::Relaxed) >> place & 1 == 0;
        let known = self.names.iter().enumerate().filter_map(|(place, entry)| Some((place, entry.get()?)));
        let new = known.filter(|(place, name)| !policy.knows(name) && is_new(*place));
        let mut names: Vec<_> = new.map(|(_, name)| name.to_string()).collect();
        names.sort_unstable();
        names
    }
}

/// Returns the entry at which the search for a name begins.
fn entry_of(name: &str) -> usize {
    BuildHasherDefault::<Quick>::default().hash_one(name) as usize % MAX_NAMES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unknown_name_is_reported_once_and_at_most_so_many_are() {
        let policy = Policy::from_toml("[[rule]]\nname = 'a'\nlimit = '1/s'\n").unwrap();
        let unknown = UnknownAttributes::default();
        let note = |policy: &Policy, request: &Attributes<'_>| {
            unknown.note(policy.see(request).unknown(), policy, request);
        };
        note(&Policy::default(), &Attributes::new().set("none", "x"));
        for turn in 0..3 {
            for name in ["usr", "plan"] {
                note(&policy, &Attributes::new().set(name, "x").path("/").set("header.x", "y"));
            }
            let expected: &[&str] = if turn == 0 { &["plan", "usr"] } else { &[] };
            assert_eq!(unknown.take(&policy), expected);
        }
        assert_eq!(unknown.requests(), 6);
        note(&policy, &Attributes::new().set("n".repeat(MAX_NAME_BYTES + 1), "x"));
        assert_eq!((unknown.take(&policy).len(), unknown.requests()), (0, 7));
        // Names of one length with one first letter have one bit, so most of them are found in examined requests.
        for _ in 0..EXAMINED {
            note(&policy, &Attributes::new().set("n1", "x"));
        }
        for _ in 0..EXAMINED {
            note(&policy, &Attributes::new().set("n2", "x"));
        }
        assert_eq!(unknown.take(&policy), ["n1", "n2"]);
        for number in 0..100 * EXAMINED {
            note(&policy, &Attributes::new().set(format!("n{number}"), "x"));
        }
        assert_eq!((unknown.take(&policy).len(), unknown.requests()), (MAX_NAMES - 4, 7 + 102 * EXAMINED));
    }
}
