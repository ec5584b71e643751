//! The keys of states, and the slots that they are in.
//!
//! ```text
//!   tg:{h5q0c}t4:user 3 ana
//!   |  |      ||      the bytes of the key
//!   |  |      |namespace, with its length before it
//!   |  |      algorithm
//!   |  the tag: a hash of the key, so that one subject's states share a slot
//!   prefix
//! ```

use tidegate::{Algorithm, Subject};

/// How many slots a cluster has.
const SLOTS: u16 = 16_384;

/// The name of a subject's state under its limit.
pub(crate) fn state_key(prefix: &[u8], subject: &Subject<'_>) -> Vec<u8> {
    state_key_under(prefix, subject, subject.limit.algorithm())
}

/// The names of all states that a subject may have; they share a slot.
pub(crate) fn state_keys_of_all_algorithms(prefix: &[u8], subject: &Subject<'_>) -> Vec<Vec<u8>> {
    Algorithm::ALL.into_iter().map(|algorithm| state_key_under(prefix, subject, algorithm)).collect()
}

fn state_key_under(prefix: &[u8], subject: &Subject<'_>, algorithm: Algorithm) -> Vec<u8> {
    let (namespace, key) = (subject.namespace.as_bytes(), subject.key.as_bytes());
    let mut name = Vec::with_capacity(prefix.len() + namespace.len() + key.len() + 14);
    name.extend_from_slice(prefix);
    name.push(b'{');
    name.extend_from_slice(&tag(key));
    name.extend_from_slice(&[b'}', letter(algorithm)]);
    name.extend_from_slice(namespace.len().to_string().as_bytes());
    name.push(b':');
    name.extend_from_slice(namespace);
    name.extend_from_slice(key);
    name
}

/// The letter of an algorithm, in keys and in what scripts are told.
pub(super) const fn letter(algorithm: Algorithm) -> u8 {
    match algorithm {
        Algorithm::TokenBucket => b't',
        Algorithm::LeakyBucket => b'l',
        Algorithm::FixedWindow => b'f',
        Algorithm::SlidingLog => b'g',
        Algorithm::SlidingWindow => b's',
        Algorithm::Pacer => b'p',
        // The library may have more algorithms one day; `supports` refuses them.
        _ => b'c',
    }
}

/// Five letters of 32: enough to spread over all slots, and short, because every key has them. It is part of what is
/// stored, and never changes.
fn tag(key: &[u8]) -> [u8; 5] {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [59, 54, 49, 44, 39].map(|shift| b"0123456789abcdefghijklmnopqrstuv"[(mixed >> shift) as usize & 31])
}

/// The slot of a key in a cluster: that of its first part in braces, if there is one.
pub(crate) fn slot(key: &[u8]) -> u16 {
    let after_brace = key.iter().position(|byte| *byte == b'{').map(|open| &key[open + 1..]);
    let tag = after_brace.and_then(|rest| Some(&rest[..rest.iter().position(|byte| *byte == b'}')?]));
    crc16(tag.filter(|tag| !tag.is_empty()).unwrap_or(key)) % SLOTS
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tidegate::{Key, Limit, SECOND};

    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot(b"foo"), 12182);
        assert_eq!(slot(b"{foo}bar"), slot(b"foo"));
        assert_eq!(slot(b"a{foo}{zap}"), slot(b"foo"));
        assert_eq!(slot(b"foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS, "an empty part is no part");
        assert_eq!(slot(b"foo{bar"), crc16(b"foo{bar") % SLOTS);
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
    }

    #[test]
    fn states_of_one_subject_have_names_of_their_own_in_one_slot() {
        let (limit, key) = (Limit::per_second(1), Key::new(("ana", "{x}")));
        let one = Subject::new("user", &key, &limit);
        let other = Subject::new("use", &key, &limit);
        let names = [one, other].map(|subject| state_keys_of_all_algorithms(b"tg:", &subject)).concat();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 14);
        assert_eq!(names.iter().map(|name| slot(name)).collect::<BTreeSet<_>>().len(), 1);
        let log = Limit::sliding_log(1, SECOND);
        assert_eq!(state_key(b"tg:", &Subject::new("user", &key, &log))[9..16], *b"}g4:use");
    }

    #[test]
    fn subjects_spread_over_all_slots() {
        let limit = Limit::per_second(1);
        let mut counts = vec![0_u32; 16];
        for user in 0..16_000_u64 {
            let key = Key::new(user);
            let name = state_key(b"tg:", &Subject::new("user", &key, &limit));
            counts[usize::from(slot(&name)) / 1024] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
