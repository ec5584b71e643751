//! The names of states and of tables of limits, and their cluster slots.
//!
//! ```text
//!   tg:{h5q0c}tB3kQ0-x_91a4:user 3 ana
//!   |  |      ||          |      the bytes of the key
//!   |  |      ||          namespace, with its length before it
//!   |  |      |digest of the numbers
//!   |  |      algorithm
//!   |  the tag: a hash of the key, so that all states of one key share a slot
//!   prefix
//! ```
//!
//! A state belongs to one limit, so the numbers are part of its name. An `r` before the algorithm gives the name of the
//! state's mark. The limits that a namespace has had are listed in a hash, `tg:limits:user`, by which a key is found
//! under all of them.

use std::sync::Arc;

use tidegate_core::{Algorithm, Key, PreparedLimit};

/// The number of slots of a cluster.
const SLOTS: u16 = 16_384;
/// The letters of a digest, 6 bits each. None of them is a brace, which would select a slot.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// The length of the letter of the algorithm and the letters of the digest.
pub(super) const LIMIT_LETTERS: usize = 12;

/// The maximum length of a name that is built on the stack.
const SHORT_NAME: usize = 128;

/// The name of a state, or of another key on the server.
pub(crate) type StateName = Arc<[u8]>;

/// The part of names that all keys under one limit share: algorithm, digest and namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LimitName(Box<[u8]>);

impl LimitName {
    /// Returns the name of a prepared limit.
    pub(crate) fn of(limit: &PreparedLimit) -> LimitName {
        let letters = limit_letters(limit.limit().algorithm(), limit.digest());
        LimitName::of_letters(&letters, limit.namespace())
    }

    /// Returns the name of a limit by its letters.
    pub(super) fn of_letters(letters: &[u8], namespace: &str) -> LimitName {
        let length = namespace.len().to_string();
        LimitName([letters, length.as_bytes(), b":", namespace.as_bytes()].concat().into())
    }

    /// Returns the letter of the algorithm and the letters of the digest.
    pub(crate) fn letters(&self) -> &[u8] {
        &self.0[..LIMIT_LETTERS]
    }

    /// Returns the name of a key's state under this limit.
    pub(crate) fn state(&self, prefix: &[u8], key: &Key) -> StateName {
        let key = key.as_bytes();
        let parts = [prefix, b"{", &tag(key), b"}", &*self.0, key];
        let (mut name, mut length) = ([0; SHORT_NAME], 0);
        for part in parts {
            let Some(place) = name.get_mut(length..length + part.len()) else { return parts.concat().into() };
            place.copy_from_slice(part);
            length += part.len();
        }
        name[..length].into()
    }
}

/// Returns the name of the mark of a state: the time at which units were last removed from it without a receipt.
pub(crate) fn mark_name(state: &[u8]) -> StateName {
    // No prefix contains a brace, so the first one ends the tag.
    let tag_end = state.iter().position(|byte| *byte == b'}').map_or(0, |brace| brace + 1);
    [&state[..tag_end], b"r", &state[tag_end..]].concat().into()
}

/// Returns the name of the table of the limits that a namespace has had.
pub(crate) fn table_name(prefix: &[u8], namespace: &str) -> StateName {
    [prefix, b"limits:", namespace.as_bytes()].concat().into()
}

/// Returns the name of the table of overrides.
pub(super) fn overrides_name(prefix: &[u8]) -> StateName {
    [prefix, b"overrides"].concat().into()
}

/// Returns the algorithm and the digest of a limit's numbers. They are part of the stored format and must not change.
fn limit_letters(algorithm: Algorithm, digest: u64) -> [u8; LIMIT_LETTERS] {
    let mut letters = [letter(algorithm); LIMIT_LETTERS];
    for (place, letter) in letters[1..].iter_mut().rev().enumerate() {
        *letter = LETTERS[(digest >> (6 * place)) as usize & 63];
    }
    letters
}

/// Returns the letter of an algorithm, in names and in script arguments.
pub(super) const fn letter(algorithm: Algorithm) -> u8 {
    match algorithm {
        Algorithm::TokenBucket => b't',
        Algorithm::LeakyBucket => b'l',
        Algorithm::FixedWindow => b'f',
        Algorithm::SlidingLog => b'g',
        Algorithm::SlidingWindow => b's',
        Algorithm::Pacer => b'p',
        Algorithm::Calendar => b'k',
        // The library may get more algorithms; `supports` rejects them.
        _ => b'c',
    }
}

/// Returns a tag of five letters of 32: enough to spread over all slots, and short, because every key has one. It is
/// part of the stored format and must not change.
fn tag(key: &[u8]) -> [u8; 5] {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [59, 54, 49, 44, 39].map(|shift| b"0123456789abcdefghijklmnopqrstuv"[(mixed >> shift) as usize & 31])
}

/// Returns the cluster slot of a key: that of its hash tag, if there is one.
pub(crate) fn slot(key: &[u8]) -> u16 {
    let after_brace = key.iter().position(|byte| *byte == b'{').map(|open| &key[open + 1..]);
    let tag = after_brace.and_then(|rest| Some(&rest[..rest.iter().position(|byte| *byte == b'}')?]));
    crc16(tag.filter(|tag| !tag.is_empty()).unwrap_or(key)) % SLOTS
}

/// Computes CRC-16/XMODEM.
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

    use tidegate_core::Limit;

    use super::*;

    fn name(namespace: &str, limit: &str) -> LimitName {
        LimitName::of(&PreparedLimit::dynamic(namespace, limit.parse().expect(limit)))
    }

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
    fn states_of_one_key_have_names_of_their_own_in_one_slot() {
        let limits = ["1/s", "2/s", "1/s burst 2", "1/s leaky-bucket", "1/s sliding-log", "1/s concurrency"];
        let key = Key::new(("ana", "{x}"));
        let names = ["user", "use"].map(|namespace| limits.map(|limit| name(namespace, limit)));
        let names: Vec<_> = names.concat().iter().map(|name| name.state(b"tg:", &key)).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 12);
        assert_eq!(names.iter().map(|name| slot(name)).collect::<BTreeSet<_>>().len(), 1);
        let same = [name("user", "60/m burst 10"), name("user", "1/s burst 10")];
        assert_eq!(same[0], same[1], "limits that decide alike are one");
    }

    /// Names are part of the stored format: a version with other names would start without counts.
    #[test]
    fn names_stay_as_they_are() {
        let named = name("user", "10/s burst 20").state(b"tg:", &Key::new("ana"));
        assert_eq!(named[9..10], *b"}");
        assert_eq!(String::from_utf8_lossy(&named[9..28]), "}tPEoDKRPpwkq4:user");
        let digits = limit_letters(Algorithm::Pacer, u64::MAX);
        assert_eq!(digits, *b"pP__________");
    }

    #[test]
    fn marks_have_names_of_their_own_in_the_slot_of_their_state() {
        let state = name("user", "10/s burst 20").state(b"tg:", &Key::new("a}{b"));
        let mark = mark_name(&state);
        assert_eq!((&mark[..10], mark[10], &mark[11..]), (&state[..10], b'r', &state[10..]));
        assert_eq!(slot(&mark), slot(&state));
    }

    #[test]
    fn keys_spread_over_all_slots() {
        let limit = LimitName::of(&PreparedLimit::dynamic("user", Limit::per_second(1)));
        let mut counts = vec![0_u32; 16];
        for user in 0..16_000_u64 {
            counts[usize::from(slot(&limit.state(b"tg:", &Key::new(user)))) / 1024] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
