//! The key of a rule: the parts of a request by which the rule counts.
//!
//! A key is the encoded sequence of the values of its parts. Each value is preceded by its length, so no value can
//! imitate the boundary between two parts: `("a", "b:c")` and `("a:b", "c")` are different keys.
//!
//! A part may be missing, or repeated with different values. Both are marked in the key itself, in front of the parts,
//! so that no value that a client sends can reach the shared count of such requests.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::slice;

use tidegate_core::{Key, KeyPart};
use tidegate_support::AbsentParts;

use crate::normalized::{NormalizedRequest, Slot};

/// The maximum number of parts of a key. One byte holds the set of missing parts.
pub(crate) const MAX_PARTS: usize = 8;

/// The maximum number of keys that are examined for a request with several values of its parts.
///
/// A request with more combinations is treated as if one of them were denied.
const MAX_KEYS_OF_VALUES: usize = 64;

/// The parts of a key, with the rules for grouping and for missing or repeated parts.
///
/// Rules with equal parts compute the key of a request once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyParts {
    pub(crate) parts: Box<[Part]>,
    pub(crate) grouping: Grouping,
    pub(crate) on_missing: OnMissing,
    pub(crate) on_repeated: OnRepeated,
}

/// The result of computing the key of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Keyed {
    /// The request is counted by this key.
    By(Key),
    /// A part is missing: the rule does not apply.
    Skip,
    /// A part is repeated: the rule denies.
    Deny,
}

/// An attribute that is part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: Box<str>,
    pub(crate) slot: Slot,
}

/// The prefix lengths by which client addresses are grouped.
///
/// A client with a network of its own would otherwise have a count for each of its addresses.
///
/// ```
/// use tidegate::rules::Grouping;
///
/// let grouping = Grouping { ipv4_bits: 24, ..Grouping::default() };
/// assert_eq!(grouping.group("192.0.2.7".parse()?).to_string(), "192.0.2.0/24");
/// assert_eq!(grouping.group("2001:db8:1:2:3::4".parse()?).to_string(), "2001:db8:1:2::/64");
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "subnet")]
#[doc(alias = "CIDR")]
#[doc(alias = "prefix length")]
pub struct Grouping {
    /// The prefix length for IPv4; 32 by default.
    pub ipv4_bits: u8,
    /// The prefix length for IPv6; 64 by default, because a client usually controls all of the last 64 bits.
    pub ipv6_bits: u8,
}

/// The behavior for requests in which a part of the key is missing.
///
/// A frontend does not decide this: the same request may be counted by one rule and skipped by another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissing {
    /// All requests without it are counted together.
    #[default]
    Share,
    /// The rule does not apply.
    ///
    /// A client that can leave the part out can then evade the rule, so a second rule should count by something that
    /// is always there, such as the address.
    Skip,
}

/// The behavior for requests that have several values for a part of the key. A backend may read any of them, so no
/// single value is used unless the rule selects one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRepeated {
    /// All requests that repeat it are counted together.
    #[default]
    Share,
    /// The request is denied.
    Deny,
    /// The first value counts.
    First,
    /// The last value counts.
    Last,
}

impl Default for Grouping {
    fn default() -> Grouping {
        Grouping { ipv4_bits: 32, ipv6_bits: 64 }
    }
}

impl Default for KeyParts {
    fn default() -> KeyParts {
        let (grouping, on_missing, on_repeated) = Default::default();
        KeyParts { parts: Box::new([]), grouping, on_missing, on_repeated }
    }
}

impl KeyParts {
    /// Returns the key by which a request is counted.
    ///
    /// A key with a missing or repeated part starts with a marker, so it never equals another key.
    ///
    /// A rule without parts has one key for all requests. `on_repeated = "deny"` is evaluated before `on_missing`.
    pub(crate) fn key(&self, seen: &NormalizedRequest<'_>) -> Keyed {
        if self.parts.is_empty() {
            return Keyed::By(Key::from_parts::<PartValue<'_>>([]));
        }
        let mut absent = AbsentParts::default();
        for (index, part) in self.parts.iter().enumerate() {
            if self.on_repeated == OnRepeated::Share && seen.is_repeated(part.slot) {
                absent.repeated(index);
            } else if self.value(part, seen).is_none() {
                absent.missing(index);
            }
        }
        if self.on_repeated == OnRepeated::Deny && self.repeated(seen).next().is_some() {
            return Keyed::Deny;
        }
        if absent.any_missing() && self.on_missing == OnMissing::Skip {
            return Keyed::Skip;
        }
        let values = self.parts.iter().enumerate().filter_map(|(index, part)| match absent.contains(index) {
            true => Some(PartValue::Bytes(&[])),
            false => self.value(part, seen),
        });
        Keyed::By(match absent.mark() {
            None => Key::from_parts(self.parts.iter().filter_map(|part| self.value(part, seen))),
            Some(mark) => Key::from_parts(std::iter::once(PartValue::Bytes(mark)).chain(values)),
        })
    }

    /// Returns one key for each combination of the values of repeated parts, if all such requests are counted together.
    /// `None` if there are more than [`MAX_KEYS_OF_VALUES`].
    ///
    /// Used to find an override that denies one of the values, so that a second value does not hide the first.
    pub(crate) fn keys_of_values(&self, seen: &NormalizedRequest<'_>) -> Option<Vec<Key>> {
        if self.on_repeated != OnRepeated::Share || self.repeated(seen).next().is_none() {
            return Some(Vec::new());
        }
        let mut keys: Vec<Vec<PartValue<'_>>> = vec![Vec::new()];
        for part in &self.parts {
            let values: Vec<PartValue<'_>> = match self.value(part, seen) {
                // A key with a missing part never equals another key.
                None => return Some(Vec::new()),
                Some(_) if seen.is_repeated(part.slot) => {
                    seen.spellings(part.slot).map(PartValue::Bytes).collect()
                }
                Some(value) => vec![value],
            };
            if keys.len() * values.len() > MAX_KEYS_OF_VALUES {
                return None;
            }
            let mut longer = Vec::with_capacity(keys.len() * values.len());
            for key in &keys {
                longer.extend(values.iter().map(|value| [&key[..], slice::from_ref(value)].concat()));
            }
            keys = longer;
        }
        Some(keys.iter().map(Key::from_parts).collect())
    }

    /// Returns the names of the parts for which a request has several values.
    pub(crate) fn repeated(&self, seen: &NormalizedRequest<'_>) -> impl Iterator<Item = &str> {
        self.parts.iter().filter(|part| seen.is_repeated(part.slot)).map(|part| &*part.name)
    }

    /// Returns the parts of a request's key by name. A missing part has no value; a repeated part has the value that
    /// would count.
    pub(crate) fn named(&self, seen: &NormalizedRequest<'_>) -> Vec<(&str, Option<String>)> {
        let text = |value: PartValue<'_>| match value {
            PartValue::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            PartValue::Address(address) => address.to_string(),
        };
        self.parts.iter().map(|part| (&*part.name, self.value(part, seen).map(text))).collect()
    }

    /// Returns the key of these values by name, in the spelling of [`KeyParts::named`]. `None` if the key has other parts,
    /// or groups addresses otherwise: the same text would mean another client.
    pub(crate) fn key_of_named(&self, named: &[(String, String)]) -> Option<Key> {
        if named.len() != self.parts.len() {
            return None;
        }
        let values = self.parts.iter().map(|part| {
            let (_, value) = named.iter().find(|(name, _)| **name == *part.name)?;
            self.named_value(part, value)
        });
        Some(Key::from_parts(values.collect::<Option<Vec<_>>>()?))
    }

    /// Returns a value of a part, as it is counted, from its text.
    fn named_value<'v>(&self, part: &Part, value: &'v str) -> Option<PartValue<'v>> {
        if part.slot != Slot::Ip {
            return Some(PartValue::Bytes(value.as_bytes()));
        }
        let first = value.split_once('/').map_or(value, |(first, _)| first);
        let group = self.grouping.group(first.parse().ok()?);
        (group.to_string() == value).then_some(PartValue::Address(group))
    }

    /// Returns the value of a part as it is counted: the group of the address, the last value under `on_repeated =
    /// "last"`, the first one otherwise.
    #[inline]
    fn value<'s>(&self, part: &Part, seen: &'s NormalizedRequest<'_>) -> Option<PartValue<'s>> {
        match part.slot {
            Slot::Ip => {
                let grouping = seen.grouping().map_or(self.grouping, |least| self.grouping.at_least(least));
                seen.ip().map(|ip| PartValue::Address(grouping.group(ip)))
            }
            slot if self.on_repeated == OnRepeated::Last => seen.last(slot).map(PartValue::Bytes),
            slot => seen.value(slot).map(PartValue::Bytes),
        }
    }
}

/// The value of a part of a key.
///
/// A group that is a single address is encoded in binary, any other group as text such as `192.0.2.0/24`.
#[derive(Clone, Copy, Debug)]
enum PartValue<'s> {
    Bytes(&'s [u8]),
    Address(AddressGroup),
}

impl KeyPart for PartValue<'_> {
    fn with_bytes(&self, use_bytes: &mut dyn FnMut(&[u8])) {
        match self {
            PartValue::Bytes(bytes) => use_bytes(bytes),
            PartValue::Address(AddressGroup { first, bits: None }) => first.with_bytes(use_bytes),
            PartValue::Address(address) => address.to_string().with_bytes(use_bytes),
        }
    }
}

impl Grouping {
    /// Returns the larger groups (shorter prefixes) of both.
    fn at_least(self, other: Grouping) -> Grouping {
        let Grouping { ipv4_bits, ipv6_bits } = other;
        Grouping { ipv4_bits: self.ipv4_bits.min(ipv4_bits), ipv6_bits: self.ipv6_bits.min(ipv6_bits) }
    }

    /// Returns the group of an address.
    ///
    /// The host bits of the result are zero. An IPv4-mapped IPv6 address is grouped as the IPv4 address.
    pub fn group(self, ip: IpAddr) -> AddressGroup {
        match ip.to_canonical() {
            IpAddr::V4(ip) if self.ipv4_bits < 32 => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.ipv4_bits)).unwrap_or(0);
                AddressGroup {
                    first: Ipv4Addr::from_bits(ip.to_bits() & mask).into(),
                    bits: Some(self.ipv4_bits),
                }
            }
            IpAddr::V6(ip) if self.ipv6_bits < 128 => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.ipv6_bits)).unwrap_or(0);
                AddressGroup {
                    first: Ipv6Addr::from_bits(ip.to_bits() & mask).into(),
                    bits: Some(self.ipv6_bits),
                }
            }
            first => AddressGroup { first, bits: None },
        }
    }
}

/// Addresses that are counted as one: an address, or a network such as `192.0.2.0/24`.
///
/// It displays as an address, or as a network with its prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressGroup {
    first: IpAddr,
    /// The length of the common prefix; `None` for a single address.
    bits: Option<u8>,
}

impl fmt::Display for AddressGroup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits {
            Some(bits) => write!(out, "{}/{bits}", self.first),
            None => self.first.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Attributes;
    use crate::normalized::Slots;

    fn parts(slots: &mut Slots, names: &[&str], on_missing: OnMissing) -> KeyParts {
        let parts = names.iter().map(|name| Part { name: (*name).into(), slot: slots.of(name) });
        KeyParts { parts: parts.collect(), on_missing, ..KeyParts::default() }
    }

    fn by(keyed: Keyed) -> Key {
        match keyed {
            Keyed::By(key) => key,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_missing_part_is_one_key_that_no_value_has() {
        let mut slots = Slots::default();
        let both = parts(&mut slots, &["a", "b"], OnMissing::Share);
        let key = |request: Attributes<'_>| by(both.key(&slots.see(&request)));
        let all = [
            key(Attributes::new()),
            key(Attributes::new().set("a", "")),
            key(Attributes::new().set("b", "")),
            key(Attributes::new().set("a", "").set("b", "")),
            key(Attributes::new().set("a", "\u{1}").set("b", "")),
            key(Attributes::new().set("a", "x").set("b", "y")),
            key(Attributes::new().set("a", "x")),
            key(Attributes::new().add("a", "x").add("a", "y").set("b", "y")),
            key(Attributes::new().add("a", "x").add("a", "y")),
            key(Attributes::new().add("b", "x").add("b", "y")),
            key(Attributes::new().add("a", "x").add("a", "y").add("b", "x").add("b", "y")),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other != one), "{index}");
        }
        assert_eq!(key(Attributes::new().set("c", "z")), all[0]);
        let skips = KeyParts { on_missing: OnMissing::Skip, ..both.clone() };
        assert_eq!(skips.key(&slots.see(&Attributes::new().set("a", "x"))), Keyed::Skip);
        let whole = skips.key(&slots.see(&Attributes::new().set("a", "").set("b", "")));
        assert!(matches!(whole, Keyed::By(_)));
        // A repeated part is not missing.
        let repeated = Attributes::new().add("a", "x").add("a", "y");
        assert_eq!(skips.key(&slots.see(&repeated)), Keyed::Skip);
        let whole = skips.key(&slots.see(&repeated.clone().set("b", "")));
        assert!(matches!(whole, Keyed::By(_)));
    }

    #[test]
    fn a_repeated_part_gives_a_client_no_key_of_its_own() {
        let mut slots = Slots::default();
        let shared = parts(&mut slots, &["a"], OnMissing::Share);
        let said = |on_repeated| KeyParts { on_repeated, ..shared.clone() };
        let key = |parts: &KeyParts, values: &[&'static str]| {
            let request = values.iter().fold(Attributes::new(), |known, value| known.add("a", *value));
            parts.key(&slots.see(&request))
        };
        assert_eq!(key(&shared, &["x", "victim"]), key(&shared, &["y", "victim"]));
        assert_ne!(key(&shared, &["x", "victim"]), key(&shared, &["victim"]));
        // A repeated identical value has only one reading.
        assert_eq!(key(&shared, &["victim", "victim"]), key(&shared, &["victim"]));
        let (first, last, deny) = (said(OnRepeated::First), said(OnRepeated::Last), said(OnRepeated::Deny));
        assert_eq!(key(&first, &["x", "victim"]), key(&shared, &["x"]));
        assert_eq!(key(&last, &["x", "victim"]), key(&shared, &["victim"]));
        assert_eq!(key(&last, &["victim", "x", "victim"]), key(&shared, &["victim"]));
        assert_eq!(key(&deny, &["x", "victim"]), Keyed::Deny);
        for parts in [&first, &last, &deny] {
            assert_eq!(key(parts, &["x"]), key(&shared, &["x"]));
        }
    }

    #[test]
    fn of_two_groupings_the_larger_groups_count() {
        let mut slots = Slots::default();
        let of_rule = |ipv4_bits, ipv6_bits| Grouping { ipv4_bits, ipv6_bits };
        let ip = parts(&mut slots, &["ip"], OnMissing::Share);
        let ip = KeyParts { grouping: of_rule(24, 64), ..ip };
        let key = |text: &str, least| {
            let request = Attributes::new().ip(text.parse().unwrap());
            let request = match least {
                Some((ipv4_bits, ipv6_bits)) => request.grouped(of_rule(ipv4_bits, ipv6_bits)),
                None => request,
            };
            ip.named(&slots.see(&request)).remove(0).1.unwrap()
        };
        assert_eq!(key("192.0.2.7", None), "192.0.2.0/24");
        assert_eq!(key("192.0.2.7", Some((16, 128))), "192.0.0.0/16");
        assert_eq!(key("192.0.2.7", Some((32, 128))), "192.0.2.0/24");
        assert_eq!(key("2001:db8:1:2::3", Some((32, 48))), "2001:db8:1::/48");
        assert_eq!(key("2001:db8:1:2::3", Some((32, 128))), "2001:db8:1:2::/64");
    }

    #[test]
    fn addresses_are_counted_in_groups() {
        let group = |ip: &str, ipv4_bits, ipv6_bits| {
            Grouping { ipv4_bits, ipv6_bits }.group(ip.parse().unwrap()).to_string()
        };
        assert_eq!(group("192.0.2.7", 32, 64), "192.0.2.7");
        assert_eq!(group("::ffff:192.0.2.7", 32, 64), "192.0.2.7");
        assert_eq!(group("192.0.2.7", 24, 64), "192.0.2.0/24");
        assert_eq!(group("192.0.2.7", 0, 64), "0.0.0.0/0");
        assert_eq!(group("2001:db8:1:2:3:4:5:6", 32, 64), "2001:db8:1:2::/64");
        assert_eq!(group("2001:db8:1:2:3:4:5:6", 32, 128), "2001:db8:1:2:3:4:5:6");
        assert_eq!(group("2001:db8:1:2:3:4:5:6", 32, 48), "2001:db8:1::/48");
        assert_eq!(group("2001:db8:1:2:3:4:5:6", 32, 0), "::/0");
    }
}
