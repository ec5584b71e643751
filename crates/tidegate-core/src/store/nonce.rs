//! The random bits of permits in memory.

#[cfg(not(tidegate_models))]
use std::{
    cell::Cell,
    hash::{BuildHasher, RandomState},
};

use crate::limit::AlgorithmParams;

#[cfg(not(tidegate_models))]
thread_local! {
    /// A SipHash key that the system drew for this thread, and a counter that is hashed under it.
    static DRAWN: (RandomState, Cell<u64>) = (RandomState::new(), Cell::new(0));
}

/// Returns the nonce of an ask: 64 random bits if it may get a permit, and zero if it cannot.
///
/// The bits are a keyed hash of a counter. A holder of any number of permits does not have the key, and cannot compute
/// the next one. From the outputs of a plain generator it could.
#[inline]
pub(crate) fn nonce_for(terms: &AlgorithmParams) -> u64 {
    match terms {
        AlgorithmParams::Concurrency(_) => draw(),
        _ => 0,
    }
}

/// Draws the next number of this thread: one `SipHash`, and no system call after the first one.
#[cfg(not(tidegate_models))]
fn draw() -> u64 {
    DRAWN.with(|(key, counter)| {
        counter.set(counter.get().wrapping_add(1));
        key.hash_one(counter.get())
    })
}

/// Returns zero, because a model has to run the same way each time.
#[cfg(tidegate_models)]
fn draw() -> u64 {
    0
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::{Limit, SECOND};

    #[test]
    fn every_bit_of_a_nonce_is_drawn_anew() {
        let limit = Limit::concurrency(1, SECOND);
        let drawn: Vec<u64> = (0..256).map(|_| nonce_for(limit.terms())).collect();
        assert_eq!(drawn.iter().collect::<HashSet<_>>().len(), drawn.len());
        // By chance, a bit is the same in all of them once in 2^249 runs.
        assert_eq!(drawn.iter().fold(0, |ones, nonce| ones | nonce), u64::MAX);
        assert_eq!(drawn.iter().fold(u64::MAX, |ones, nonce| ones & nonce), 0);
    }

    #[test]
    fn threads_draw_different_ones() {
        let limit = Limit::concurrency(1, SECOND);
        let draw_some = move || (0..64).map(|_| nonce_for(limit.terms())).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(draw_some)).collect();
        let drawn: HashSet<u64> =
            threads.into_iter().flat_map(|thread| thread.join().expect("it only draws")).collect();
        assert_eq!(drawn.len(), 256);
    }

    #[test]
    fn a_limit_without_permits_draws_nothing() {
        assert_eq!(nonce_for(Limit::per_second(1).terms()), 0);
    }
}
