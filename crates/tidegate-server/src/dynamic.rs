//! Limits that come with requests: most callers send one of a few, again and again, so the last ones stay prepared.

/// The namespace of limits that come with requests.
pub(crate) const NAMESPACE: &str = "";
/// The limits that a cache holds.
const SLOTS: usize = 64;
/// The bytes of a text that choose its slot.
const HASHED_BYTES: usize = 32;

/// What was read from texts lately, one in each slot.
#[derive(Debug)]
pub(crate) struct LimitCache<T> {
    slots: Vec<Option<(Box<[u8]>, T)>>,
}

impl<T> Default for LimitCache<T> {
    fn default() -> LimitCache<T> {
        LimitCache { slots: std::iter::repeat_with(|| None).take(SLOTS).collect() }
    }
}

impl<T> LimitCache<T> {
    /// What this text says; it is read only if it was not read lately.
    #[inline]
    pub(crate) fn get_or_read<E>(
        &mut self,
        text: &[u8],
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<&T, E> {
        let slot = &mut self.slots[slot_of(text)];
        let known = match slot.take() {
            Some(known) if *known.0 == *text => known,
            other => {
                // What is wrong takes no place of what is right.
                *slot = other;
                (text.into(), read()?)
            }
        };
        Ok(&slot.insert(known).1)
    }
}

/// The slot of a text.
#[inline]
fn slot_of(text: &[u8]) -> usize {
    let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let hash = text.iter().take(HASHED_BYTES).fold(text.len() as u32, mix);
    (hash ^ (hash >> 16)) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use tidegate::Limit;

    use super::*;

    fn read(cache: &mut LimitCache<Limit>, text: &str) -> Result<Limit, String> {
        cache.get_or_read(text.as_bytes(), || text.parse().map_err(|_| text.to_owned())).copied()
    }

    #[test]
    fn every_text_is_its_own_limit_whatever_slot_it_is_in() {
        let mut cache = LimitCache::default();
        for _ in 0..2 {
            for amount in 1..500 {
                assert_eq!(read(&mut cache, &format!("{amount}/s")), Ok(Limit::per_second(amount)));
            }
        }
    }

    #[test]
    fn a_limit_is_read_once_and_what_is_none_is_not_remembered() {
        let mut cache = LimitCache::default();
        assert_eq!(read(&mut cache, "1/s"), Ok(Limit::per_second(1)));
        let again = cache.get_or_read(b"1/s", || -> Result<Limit, ()> { unreachable!("it is known") });
        assert_eq!(again, Ok(&Limit::per_second(1)));
        for _ in 0..2 {
            assert_eq!(read(&mut cache, "60/min"), Err("60/min".to_owned()));
        }
    }
}
