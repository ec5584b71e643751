//! Several zones as one store.

use std::io;
use std::sync::Arc;

use super::{MemoryStore, Zone, ZoneError};
use crate::limit::Limit;
use crate::time::Source;

/// An in-memory store and named zones beside it; clones share them.
///
/// A key that selects one of them ([`Subject::zone`](crate::Subject::zone)) is held there, every other key by the first
/// store. A take under several limits is all or none over all of them. A flood of keys in one zone takes no cell of
/// another.
///
/// ```
/// use tidegate::{Ask, Key, Limit, Subject, Zone, Zones};
///
/// let zones = Zones::new(&Zone::new(1 << 20)).with("logins", 1 << 16)?;
/// let (limit, key) = (Limit::per_minute(5), Key::new("ana"));
/// let login = Subject::new("login", &key, &limit).in_zone(Some("logins"));
/// assert!(zones.take_all(&[(login, Ask::ONE), (Subject::new("site", &key, &limit), Ask::ONE)]).is_allowed());
/// # Ok::<(), std::io::Error>(())
/// ```
#[doc(alias = "limit_req_zone")]
#[doc(alias = "shared memory")]
#[derive(Clone, Debug)]
pub struct Zones {
    first: MemoryStore,
    named: Arc<[(Box<str>, MemoryStore)]>,
}

impl Zones {
    /// Creates a store without named zones.
    pub fn new(first: impl Into<MemoryStore>) -> Zones {
        Zones { first: first.into(), named: Arc::new([]) }
    }

    /// Adds a zone of `bytes` bytes, which uses the clock of the first store. States of more than one word
    /// ([`Zone::keeps`]) take at most as many bytes again. Beside a zone in a file, the new zone is in files of its
    /// own. A zone of the same name is replaced.
    ///
    /// # Errors
    /// If the system provides no memory, or if these files cannot be used, with a [`ZoneError`] as the cause.
    pub fn with(self, name: &str, bytes: usize) -> io::Result<Zones> {
        let zone = match self.in_files(name, bytes).map_err(io::Error::other)? {
            Some(zone) => zone,
            None => Zone::try_on_clock(bytes, self.first.clock().clone())?.beside(bytes).named(name),
        };
        Ok(self.and((name.into(), MemoryStore::from(&zone))))
    }

    #[cfg(not(tidegate_models))]
    fn in_files(&self, name: &str, bytes: usize) -> Result<Option<Zone>, ZoneError> {
        self.first.zone().map_or(Ok(None), |first| first.named_beside(name, bytes))
    }

    #[cfg(tidegate_models)]
    fn in_files(&self, _: &str, _: usize) -> Result<Option<Zone>, ZoneError> {
        Ok(None)
    }

    /// Checks that all zones can store states under this limit: [`Zone::supports`].
    pub fn supports(&self, limit: &Limit) -> Result<(), String> {
        let named = self.named.iter().map(|(_, memory)| memory);
        std::iter::once(&self.first)
            .chain(named)
            .filter_map(MemoryStore::zone)
            .try_for_each(|zone| zone.supports(limit))
    }

    /// Adds the zone that another store has under this name, with its states. Returns the same store if there is none.
    ///
    /// # Panics
    ///
    /// If the two stores use different clocks. Several limits are decided as of one instant, and states of a later
    /// clock would count as repaid.
    #[must_use]
    pub fn with_that_of(self, other: &Zones, name: &str) -> Zones {
        match other.named.iter().find(|(of, _)| **of == *name) {
            Some(one) => {
                assert!(one.1.clock().is_same(self.clock()), "zones of one store go by one clock");
                self.and(one.clone())
            }
            None => self,
        }
    }

    /// Returns the names of the zones beside the first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|(name, _)| &**name)
    }

    /// Returns the zone of this name.
    pub fn named(&self, name: &str) -> Option<&Zone> {
        self.named.iter().find(|(of, _)| **of == *name).and_then(|(_, memory)| memory.zone())
    }

    /// Returns the clock of all zones.
    pub(super) fn clock(&self) -> &Source {
        self.first.clock()
    }

    /// Returns the zone of this name; an unknown name or `None` means the first.
    #[inline]
    pub(super) fn of(&self, name: Option<&str>) -> &MemoryStore {
        let named = name.and_then(|name| self.named.iter().find(|(of, _)| **of == *name));
        named.map_or(&self.first, |(_, memory)| memory)
    }

    fn and(self, one: (Box<str>, MemoryStore)) -> Zones {
        let mut named: Vec<_> = self.named.iter().filter(|(name, _)| *name != one.0).cloned().collect();
        named.push(one);
        Zones { named: named.into(), first: self.first }
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::{Algorithm, Ask, Key, Limit, ManualClock, Map, Subject};

    fn subject<'a>(zone: Option<&'a str>, key: &'a Key, limit: &'a Limit) -> Subject<'a> {
        Subject::new("rule", key, limit).in_zone(zone)
    }

    #[test]
    fn a_subject_is_held_where_it_says_and_else_by_the_first() {
        let (key, limit) = (Key::new("ana"), Limit::per_hour(1));
        for zones in [Zones::new(&Zone::new(1 << 16)), Zones::new(&Map::new())] {
            let zones = zones.with("a", 1 << 12).and_then(|zones| zones.with("b", 1 << 12)).unwrap();
            let take = |zone| zones.take(subject(zone, &key, &limit), Ask::ONE).0.is_allowed();
            assert!(take(None) && take(Some("a")) && take(Some("b")));
            assert!(!take(None) && !take(Some("a")) && !take(Some("b")) && !take(Some("unknown")));
            assert!(zones.reset(subject(Some("a"), &key, &limit)).is_ok_and(|was_known| was_known));
            assert!(take(Some("a")) && !take(None));
            assert_eq!(zones.names().collect::<Vec<_>>(), ["a", "b"]);
        }
    }

    #[test]
    fn all_or_none_goes_over_all_of_them() {
        let (key, limit) = (Key::new("ana"), Limit::per_hour(2));
        let zones = Zones::new(&Zone::new(1 << 16)).with("a", 1 << 12).unwrap();
        let one = Limit::per_hour(1);
        let both = [(subject(None, &key, &limit), Ask::ONE), (subject(Some("a"), &key, &one), Ask::ONE)];
        assert!(zones.take_all(&both).is_allowed());
        let refused = zones.take_all(&both);
        assert_eq!((refused.is_allowed(), refused.binding()), (false, Some(1)));
        assert_eq!(zones.peek(both[0].0, Ask::ONE).remaining(), 1);
    }

    #[test]
    fn what_is_only_ever_taken_together_is_remembered_as_long_as_its_limit_says() {
        // Limits that were not announced: logs were swept at once, and allowed every request.
        let (key, wide) = (Key::new("ana"), Limit::per_hour(1_000));
        for text in Algorithm::ALL.map(|algorithm| format!("10/h {}", algorithm.name())) {
            let limit: Limit = text.parse().unwrap();
            for zones in [Zones::new(&Zone::new(1 << 12)), Zones::new(&Map::new().max_keys(64))] {
                let both =
                    [(subject(None, &key, &limit), Ask::ONE), (Subject::new("wide", &key, &wide), Ask::ONE)];
                let tries = if cfg!(miri) { 12 } else { 100 };
                let passed = (0..tries).filter(|_| zones.take_all(&both).is_allowed()).count();
                let most = if limit.algorithm() == Algorithm::Pacer { 2 } else { 10 };
                assert!(passed <= most, "{text}: {passed}");
            }
        }
    }

    #[test]
    fn a_zone_that_goes_over_to_another_store_keeps_what_it_holds() {
        let (key, limit) = (Key::new("ana"), Limit::per_hour(1));
        let main = Zone::new(1 << 16);
        let before = Zones::new(&main).with("a", 1 << 12).unwrap();
        assert!(before.take(subject(Some("a"), &key, &limit), Ask::ONE).0.is_allowed());
        let after = Zones::new(&main)
            .with("b", 1 << 12)
            .unwrap()
            .with_that_of(&before, "a")
            .with_that_of(&before, "x");
        assert!(!after.take(subject(Some("a"), &key, &limit), Ask::ONE).0.is_allowed());
        assert!(after.named("a").is_some() && after.named("x").is_none());
    }

    #[test]
    #[should_panic(expected = "zones of one store go by one clock")]
    fn a_zone_of_another_clock_does_not_go_over() {
        let [first, other] = [(); 2].map(|()| Zone::with_clock(1 << 12, Arc::new(ManualClock::new())));
        let other = Zones::new(&other).with("a", 1 << 12).unwrap();
        let _ = Zones::new(&first).with_that_of(&other, "a");
    }

    #[test]
    #[cfg_attr(miri, ignore = "it needs the kernel")]
    fn a_zone_that_the_system_has_no_memory_for_is_an_error() {
        let zones = Zones::new(&Zone::new(1 << 16));
        let error = zones.with("large", usize::MAX >> 4).expect_err("no machine has that much");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        assert!(Zone::try_new(usize::MAX).is_err() && Zone::try_new(1 << 16).is_ok());
    }

    #[test]
    #[cfg_attr(miri, ignore = "it takes long")]
    fn states_of_several_words_take_at_most_as_many_bytes_again_as_the_zone_has() {
        const BYTES: usize = 1 << 18;
        let limit: Limit = "100/h sliding-log".parse().unwrap();
        let zones = Zones::new(&Zone::new(1 << 16)).with("a", BYTES).unwrap();
        let keys: Vec<_> = (0..10_000).map(|number| Key::new(number.to_string())).collect();
        let held = keys
            .iter()
            .filter(|key| zones.take(subject(Some("a"), key, &limit), Ask::ONE).0.is_allowed())
            .count();
        assert!((BYTES / 1000..BYTES / 100).contains(&held), "{held}");
    }
}
