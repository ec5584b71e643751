//! The secret seed of a zone, which is drawn when the zone is created and hides the buckets of keys.

use std::hash::{BuildHasher, RandomState};

/// Returns an unpredictable seed, from the system's source of random numbers. Models always get the same seed, because
/// a model that fails must fail again. Without that source it is drawn from the hash keys of the standard library,
/// which are random as well.
pub(crate) fn fresh_seed() -> [u64; 2] {
    if cfg!(tidegate_models) {
        return [1, 2];
    }
    from_system().unwrap_or_else(|| {
        let state = RandomState::new();
        [state.hash_one(0), state.hash_one(1)]
    })
}

/// Returns 16 bytes of `getrandom`; `None` if the call fails.
#[cfg(all(target_os = "linux", not(miri)))]
fn from_system() -> Option<[u64; 2]> {
    use rustix::io::retry_on_intr;
    use rustix::rand::{GetRandomFlags, getrandom};

    let mut bytes = [0; 16];
    let count = retry_on_intr(|| getrandom(&mut bytes, GetRandomFlags::empty())).ok()?;
    let (first, second) = (&bytes[..8], &bytes[8..]);
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
    (count == bytes.len()).then_some([word(first)?, word(second)?])
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn from_system() -> Option<[u64; 2]> {
    None
}

#[cfg(test)]
#[cfg(not(tidegate_models))]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_number_is_drawn_twice() {
        let drawn: HashSet<u64> = (0..100).flat_map(|_| fresh_seed()).collect();
        assert_eq!(drawn.len(), 200);
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn the_system_has_random_numbers() {
        assert!(from_system().is_some_and(|seed| seed != [0, 0]));
    }
}
