//! Tests that keys are injective: different parts give different bytes.

use proptest::prelude::*;
use tidegate::Key;

/// Returns parts of the bytes that occur in separators, lengths and hash tags.
fn parts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let byte = prop_oneof![
        Just(0_u8),
        Just(1),
        Just(2),
        Just(b':'),
        Just(b'{'),
        Just(b'}'),
        Just(0x80),
        Just(0xff),
        any::<u8>()
    ];
    let part = prop_oneof![
        9 => prop::collection::vec(byte, 0..6),
        1 => (120_usize..140).prop_map(|length| vec![1; length]),
    ];
    prop::collection::vec(part, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(200_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn different_parts_never_give_the_same_key(one in parts(), other in parts()) {
        let (one_key, other_key) = (Key::from_parts(&one), Key::from_parts(&other));
        prop_assert_eq!(one == other, one_key == other_key);
    }

    #[test]
    fn moving_a_boundary_gives_another_key(text in "[a:]{2,8}", first in 0_usize..8, second in 0_usize..8) {
        let (first, second) = (first % text.len(), second % text.len());
        let split = |at: usize| Key::new((&text[..at], &text[at..]));
        prop_assert_eq!(first == second, split(first) == split(second));
        prop_assert_ne!(split(first), Key::new(text.as_str()));
    }
}
