//! A key as the list of its parts.
//!
//! Different parts never result in the same key, because each part is written with its length before it. A key with a
//! missing or repeated part starts with a mark. Rules use the same mark, so a layer and a rule count a request under
//! the same key.
//!
//! The fast path is one short text or one IPv4 address: it reaches the zone without an allocation and without a copy.
//! The text of an address is composed from a table of octets, because formatting it would cost more than the decision.

use std::net::{IpAddr, Ipv4Addr};

use tidegate_core::{IntoKey, Key};
use tidegate_rules::Grouping;
use tidegate_support::{AbsentParts, Digits};

use super::part::Part;
use crate::answer::Reason;

/// The maximum number of parts of a key.
pub(super) const MOST: usize = 6;

/// The key of a request: one part, or several.
///
/// A key of one part is equal to that part as a key of the library. A key of several parts is the tuple of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts<'r>(Kind<'r>);

/// One part is by far the most frequent, and an array of six is large to move.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind<'r> {
    One(Part<'r>),
    Several { parts: [Part<'r>; MOST], length: usize },
}

/// The handling of a request, by the parts of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum KeyOutcome {
    /// It is counted.
    Count,
    /// It is not limited.
    Skip,
    /// It is denied.
    Refuse(Reason),
}

impl<'r> Parts<'r> {
    /// Returns a key of one part.
    ///
    /// The part is moved into the key, not copied.
    #[inline]
    pub fn one(part: impl Into<Part<'r>>) -> Parts<'r> {
        Parts(Kind::One(part.into()))
    }

    /// Returns a key of several parts; parts after the sixth are ignored.
    pub(super) fn several(each: impl IntoIterator<Item = Part<'r>>) -> Parts<'r> {
        let (mut parts, mut length) = ([const { Part::Missing }; MOST], 0);
        for (place, part) in parts.iter_mut().zip(each) {
            *place = part;
            length += 1;
        }
        Parts(Kind::Several { parts, length })
    }

    /// Returns the parts.
    pub fn each(&self) -> &[Part<'r>] {
        match &self.0 {
            Kind::One(part) => std::slice::from_ref(part),
            Kind::Several { parts, length } => &parts[..*length],
        }
    }

    /// Returns the same key with its bytes copied.
    pub fn into_owned(self) -> Parts<'static> {
        Parts(match self.0 {
            Kind::One(part) => Kind::One(part.into_owned()),
            Kind::Several { parts, length } => Kind::Several { parts: parts.map(Part::into_owned), length },
        })
    }

    /// Returns the key in the form that a zone finds fastest: a zone caches the cell of a key of one short text.
    #[inline]
    pub(crate) fn written(&self) -> WrittenKey<'_> {
        match self.0 {
            Kind::One(Part::Address(IpAddr::V4(ip), grouping)) if grouping.ipv4_bits >= 32 => {
                WrittenKey::Address(Ipv4Text::of(ip))
            }
            _ => WrittenKey::Parts(self),
        }
    }

    /// Returns true if the key is one address, which owns no memory.
    #[inline]
    pub(crate) fn is_address(&self) -> bool {
        matches!(self.0, Kind::One(Part::Address(..)))
    }

    /// Returns the key as an owned value.
    ///
    /// It is the key under which the request is counted, for example to ask the same
    /// [`Limiter`](tidegate_core::Limiter) in a handler. Addresses are replaced by their networks.
    pub fn key(&self) -> Key {
        Key::new(self)
    }

    /// Returns the handling of the request. A missing peer address takes precedence over a denial, and a denial over a
    /// skip.
    #[doc(hidden)]
    #[inline]
    pub fn course(&self) -> KeyOutcome {
        if let Kind::One(Part::Bytes(_) | Part::Address(..) | Part::Number(_) | Part::Missing) = self.0 {
            return KeyOutcome::Count;
        }
        let has = |what: &Part<'_>| self.each().contains(what);
        match (has(&Part::NoPeer), has(&Part::Refuse), has(&Part::Skip)) {
            (true, _, _) => KeyOutcome::Refuse(Reason::NoPeer),
            (false, true, _) => KeyOutcome::Refuse(Reason::Missing),
            (false, false, true) => KeyOutcome::Skip,
            (false, false, false) => KeyOutcome::Count,
        }
    }
}

impl IntoKey for Parts<'_> {
    #[inline]
    fn each_part(&self, use_part: &mut dyn FnMut(&[u8])) {
        let mut absent = AbsentParts::default();
        for (index, part) in self.each().iter().enumerate() {
            match part {
                Part::Bytes(_) | Part::Address(..) | Part::Number(_) => {}
                Part::Missing | Part::NoPeer | Part::Skip | Part::Refuse => absent.missing(index),
                Part::Repeated(_) => absent.repeated(index),
            }
        }
        if let Some(mark) = absent.mark() {
            use_part(mark);
        }
        for part in self.each() {
            match part {
                Part::Bytes(bytes) => use_part(bytes),
                Part::Address(ip, grouping) => with_address(*ip, *grouping, use_part),
                Part::Number(number) => use_part(Digits::of(*number).as_bytes()),
                _ => use_part(&[]),
            }
        }
    }

    #[inline]
    fn only_part(&self) -> Option<&[u8]> {
        match &self.0 {
            Kind::One(Part::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }
}

impl IntoKey for &Parts<'_> {
    #[inline]
    fn each_part(&self, use_part: &mut dyn FnMut(&[u8])) {
        (**self).each_part(use_part);
    }

    #[inline]
    fn only_part(&self) -> Option<&[u8]> {
        (**self).only_part()
    }
}

/// A key of one address that is its own group, as text; or any other key.
pub(crate) enum WrittenKey<'k> {
    Address(Ipv4Text),
    Parts(&'k Parts<'k>),
}

impl IntoKey for WrittenKey<'_> {
    #[inline]
    fn each_part(&self, use_part: &mut dyn FnMut(&[u8])) {
        match self {
            WrittenKey::Address(text) => use_part(text.as_bytes()),
            WrittenKey::Parts(parts) => parts.each_part(use_part),
        }
    }

    #[inline]
    fn only_part(&self) -> Option<&[u8]> {
        match self {
            WrittenKey::Address(text) => Some(text.as_bytes()),
            WrittenKey::Parts(parts) => parts.only_part(),
        }
    }
}

/// Passes on the group of an address as text: the address itself if it is its own group.
#[inline]
fn with_address(ip: IpAddr, grouping: Grouping, use_part: &mut dyn FnMut(&[u8])) {
    match ip {
        IpAddr::V4(ip) if grouping.ipv4_bits >= 32 => use_part(Ipv4Text::of(ip).as_bytes()),
        ip => use_part(grouping.group(ip).to_string().as_bytes()),
    }
}

/// The text of an IPv4 address, such as `192.0.2.7`, written without the `fmt` machinery.
pub(crate) struct Ipv4Text {
    bytes: [u8; 16],
    length: usize,
}

impl Ipv4Text {
    /// Composes the text of the four octets, two at a time, each with the dot after it.
    #[inline(always)]
    fn of(ip: Ipv4Addr) -> Ipv4Text {
        let [a, b, c, d] = ip.octets();
        let ((left, at), (right, more)) = (pair(a, b), pair(c, d));
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&left.to_le_bytes());
        bytes[at..at + 8].copy_from_slice(&right.to_le_bytes());
        // Without the dot after the last octet.
        Ipv4Text { bytes, length: at + more - 1 }
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The text of an octet and the dot after it, the first character in the lowest byte, and the length in bytes.
type OctetText = (u32, u8);

/// Returns the texts of two octets, one after the other. They fit a 64-bit word whatever their lengths.
#[inline(always)]
fn pair(first: u8, second: u8) -> (u64, usize) {
    let (first, length) = OCTETS[usize::from(first)];
    let (second, more) = OCTETS[usize::from(second)];
    let text = u64::from(first) | u64::from(second) << (8 * u32::from(length & 7));
    (text, usize::from(length) + usize::from(more))
}

/// The text of each octet, made by the compiler: one load in place of two divisions.
const OCTETS: [OctetText; 256] = {
    let mut octets = [(0, 0); 256];
    let mut octet = 0;
    while octet < 256 {
        let digits = [b'0' + (octet / 100) as u8, b'0' + (octet / 10 % 10) as u8, b'0' + (octet % 10) as u8];
        let (text, length) = match octet {
            0..10 => ([digits[2], b'.', 0, 0], 2),
            10..100 => ([digits[1], digits[2], b'.', 0], 3),
            _ => ([digits[0], digits[1], digits[2], b'.'], 4),
        };
        octets[octet] = (u32::from_le_bytes(text), length);
        octet += 1;
    }
    octets
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_parts_are_different_keys_also_when_some_are_missing() {
        let values = || {
            let bytes = [&b""[..], b"\x01", b"\x02", b"\x03", b"a", b"ab"];
            let repeated = Part::Repeated(vec![b"a".into(), b"b".into()]);
            bytes.map(Part::from).into_iter().chain([Part::Missing, repeated, Part::Number(7)])
        };
        let mut all: Vec<Parts<'_>> = values().map(Parts::one).collect();
        for first in values() {
            for second in values() {
                all.push(Parts::several([first.clone(), second.clone()]));
                for third in values() {
                    all.push(Parts::several([first.clone(), second.clone(), third]));
                }
            }
        }
        let keys: std::collections::HashSet<_> = all.iter().map(Parts::key).collect();
        // A key with a missing part has one part more, which is below 8. A complete key can be equal to it only if
        // another extractor made it, with as many parts: the two never occur in one limiter.
        let of_length = |length| all.iter().filter(move |parts| parts.each().len() == length);
        for length in 1..=3 {
            let keys: std::collections::HashSet<_> = of_length(length).map(Parts::key).collect();
            assert_eq!(keys.len(), of_length(length).count());
        }
        assert!(keys.len() > 300);
    }

    #[test]
    fn a_key_is_what_the_library_makes_of_the_same() {
        let ip: IpAddr = "192.0.2.7".parse().unwrap();
        assert_eq!(Parts::one(ip).key(), Key::new(ip));
        assert_eq!(Parts::one("ana").key(), Key::new("ana"));
        assert_eq!(Parts::one(42_u64).key(), Key::new(42_u64));
        let both = Parts::several([Part::from(ip), Part::from("login")]);
        assert_eq!(both.key(), Key::new((ip, "login")));
        for ip in ["0.0.0.0", "9.10.99.100", "255.255.255.255", "1.20.0.199"] {
            let ip: Ipv4Addr = ip.parse().unwrap();
            assert_eq!(Parts::one(ip).key(), Key::new(ip));
        }
    }

    #[test]
    fn addresses_are_counted_in_groups() {
        let group = |ip: &str, ipv4_bits, ipv6_bits| {
            let ip: IpAddr = ip.parse().unwrap();
            let key = Parts::one(Part::Address(ip, Grouping { ipv4_bits, ipv6_bits })).key();
            String::from_utf8(key.parts().remove(0)).unwrap()
        };
        assert_eq!(group("::ffff:192.0.2.7", 32, 64), "192.0.2.7");
        assert_eq!(group("192.0.2.7", 24, 64), "192.0.2.0/24");
        assert_eq!(group("::ffff:192.0.2.7", 24, 64), "192.0.2.0/24");
        assert_eq!(group("192.0.2.7", 0, 64), "0.0.0.0/0");
        assert_eq!(group("2001:db8:1:2:3:4:5:6", 32, 64), "2001:db8:1:2::/64");
        assert_eq!(group("2001:db8:1:2:3:4:5:6", 32, 128), "2001:db8:1:2:3:4:5:6");
        assert_eq!(group("2001:db8:1:2:3:4:5:6", 32, 0), "::/0");
    }

    #[test]
    fn a_part_that_denies_goes_before_a_part_that_skips() {
        let course = |parts: &[Part<'static>]| Parts::several(parts.to_vec()).course();
        assert_eq!(course(&["a".into(), Part::Missing]), KeyOutcome::Count);
        assert_eq!(course(&["a".into(), Part::Skip]), KeyOutcome::Skip);
        assert_eq!(course(&[Part::Skip, Part::Refuse]), KeyOutcome::Refuse(Reason::Missing));
        assert_eq!(course(&[Part::Skip, Part::Refuse, Part::NoPeer]), KeyOutcome::Refuse(Reason::NoPeer));
        assert_eq!(Parts::one(Part::NoPeer).course(), KeyOutcome::Refuse(Reason::NoPeer));
        assert_eq!(Parts::one(Part::Skip).course(), KeyOutcome::Skip);
        assert_eq!(Parts::one(Part::Missing).course(), KeyOutcome::Count);
    }
}
