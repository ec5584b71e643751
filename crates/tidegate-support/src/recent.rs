//! A cache of values derived from recent limits: most callers use a few limits repeatedly.
//!
//! A request may carry its limit as text. Parsing and preparing it costs more than the decision, and the same few
//! limits come again and again.

use std::hash::{Hash, Hasher};

/// The number of sets, a power of two.
const SETS: usize = 16;
/// The number of entries that are compared on each lookup.
const ENTRIES_PER_SET: usize = 4;

/// A cache of 64 entries, in 16 sets of four. The hash of its name chooses the set of an entry; a new entry takes the
/// place of the oldest of its set.
///
/// The size is fixed, so names chosen by clients cannot exhaust memory. A lookup hashes the name once and compares at
/// most four entries; nothing is moved on a hit.
#[doc(alias = "set-associative cache")]
#[doc(alias = "FIFO")]
#[doc(alias = "memoize")]
#[derive(Debug)]
pub struct RecentCache<T> {
    /// The sets, each from the newest entry to the oldest.
    sets: Vec<[Option<T>; ENTRIES_PER_SET]>,
}

impl<T> Default for RecentCache<T> {
    fn default() -> RecentCache<T> {
        RecentCache { sets: std::iter::repeat_with(Default::default).take(SETS).collect() }
    }
}

impl<T> RecentCache<T> {
    /// The capacity, in entries.
    pub const ENTRIES: usize = SETS * ENTRIES_PER_SET;

    /// Returns the entry of this name, and creates it if there is none. A failed creation evicts nothing.
    ///
    /// The hash of `name` selects the set, and `is_it` recognizes the entry. Both have to agree: equal names have equal
    /// hashes.
    ///
    /// # Examples
    ///
    /// ```
    /// use tidegate_support::RecentCache;
    ///
    /// let mut lengths = RecentCache::<(String, usize)>::default();
    /// let make = || Ok::<_, ()>(("10/s".to_owned(), 4));
    /// let entry = lengths.get_or_make("10/s", |(text, _)| text == "10/s", make);
    /// assert_eq!(entry.map(|(_, length)| *length), Ok(4));
    /// assert_eq!(lengths.entries().count(), 1);
    /// ```
    #[inline]
    pub fn get_or_make<E>(
        &mut self,
        name: impl Hash,
        is_it: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<&T, E> {
        let set = &mut self.sets[set_of(&name)];
        let known = set.iter().position(|entry| entry.as_ref().is_some_and(&is_it));
        let index = match known {
            Some(index) => index,
            None => {
                let made = make()?;
                set.rotate_right(1);
                set[0] = Some(made);
                0
            }
        };
        Ok(set[index].as_ref().expect("it was found there, or just put"))
    }

    /// Returns the entries, in no particular order.
    pub fn entries(&self) -> impl Iterator<Item = &T> {
        self.sets.iter().flatten().flatten()
    }
}

/// Returns the index of the set of a name.
#[inline]
fn set_of(name: &impl Hash) -> usize {
    let mut hasher = Mixer::default();
    name.hash(&mut hasher);
    // The high bits depend on the whole input.
    (hasher.0 >> 32) as usize % SETS
}

/// A fast hasher that is not collision-resistant. Names chosen to collide in one set only force their callers to create
/// their own entries again.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(size_of::<u64>()) {
            let mut word = [0; size_of::<u64>()];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::Limit;

    use super::*;

    type Texts = RecentCache<(Box<str>, Limit)>;

    fn read(cache: &mut Texts, text: &str) -> Result<Limit, String> {
        let read = || text.parse().map(|limit| (text.into(), limit)).map_err(|_| text.to_owned());
        cache.get_or_make(text, |known| *known.0 == *text, read).map(|known| known.1)
    }

    #[test]
    fn every_text_is_its_own_limit_whatever_set_it_is_in() {
        let mut cache = Texts::default();
        for _ in 0..2 {
            for amount in 1..500 {
                assert_eq!(read(&mut cache, &format!("{amount}/s")), Ok(Limit::per_second(amount)));
            }
        }
        assert_eq!(cache.entries().count(), Texts::ENTRIES);
    }

    #[test]
    fn a_limit_is_read_once_and_what_is_none_is_not_remembered() {
        let mut cache = Texts::default();
        assert_eq!(read(&mut cache, "1/s"), Ok(Limit::per_second(1)));
        let is_it = |known: &(Box<str>, Limit)| *known.0 == *"1/s";
        let again = cache.get_or_make("1/s", is_it, || -> Result<_, ()> { unreachable!("it is known") });
        assert_eq!(again.map(|known| known.1), Ok(Limit::per_second(1)));
        for _ in 0..2 {
            assert_eq!(read(&mut cache, "60/min"), Err("60/min".to_owned()));
        }
        assert_eq!(cache.entries().count(), 1);
    }

    #[test]
    fn five_names_of_one_set_leave_the_newest_four() {
        let mut cache = RecentCache::<u64>::default();
        // One name, so one set.
        for value in 0..5 {
            let made = cache.get_or_make("same", |known| *known == value, || Ok::<_, ()>(value));
            assert_eq!(made, Ok(&value));
        }
        let mut left: Vec<_> = cache.entries().copied().collect();
        left.sort_unstable();
        assert_eq!(left, [1, 2, 3, 4]);
    }

    #[test]
    fn limits_spread_over_the_sets() {
        let mut cache = RecentCache::<Limit>::default();
        for amount in 1..=16 {
            let limit = Limit::per_second(amount);
            assert!(cache.get_or_make(limit, |known| *known == limit, || Ok::<_, ()>(limit)).is_ok());
        }
        assert!(cache.entries().count() >= 15, "{cache:?}");
    }
}
