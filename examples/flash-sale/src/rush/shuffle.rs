//! An order in which everybody has the same chance, and that is the same for the same seed.

/// Puts items in an order that the seed says.
pub(super) fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for last in (1..items.len()).rev() {
        let place = next(&mut state) % (last as u64 + 1);
        items.swap(last, place as usize);
    }
}

/// The numbers of `SplitMix64`: each state gives one, and no two states the same.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut number = *state;
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_stays_and_a_seed_says_the_order() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..1000).collect();
            shuffle(&mut items, seed);
            items
        };
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        let mut sorted = shuffled(3);
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..1000));
    }
}
