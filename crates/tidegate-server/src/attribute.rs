//! Adds attributes to a request, for every front.
//!
//! HTTP, RESP and `tidegate explain` share these checks, so that one request means the same on every front: a name
//! is UTF-8 and at most [`MAX_NAME_BYTES`] long, `ip` is an address, and only header fields, cookies and query
//! parameters have several values.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use tidegate_rules::{Attributes, Gate, NotInserted, Rule, Value};

/// The longest name of an attribute, in bytes. Rules accept no longer names.
pub(crate) const MAX_NAME_BYTES: usize = 128;

/// The reason why an attribute is invalid. The front puts the name of the attribute before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The name is not UTF-8.
    NameIsNoText,
    /// The length of the name, in bytes.
    NameIsLong(usize),
    /// The attribute occurs twice, and requests have one value of it.
    Twice,
    /// The attribute occurs twice in a format that writes several values as a list.
    NoList,
    /// The value of `ip` is not an IP address. An address with a port is not one either.
    NoAddress,
}

/// A group of addresses in a key, as lists of keys show it: `2001:db8::/64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressPrefix {
    /// An address of the group.
    pub(crate) address: IpAddr,
    /// The prefix length.
    bits: u8,
}

impl AddressPrefix {
    /// Parses an address with a prefix length. Returns `None` for any other text, also for an address.
    pub(crate) fn parse(text: &str) -> Option<AddressPrefix> {
        let (address, bits) = text.split_once('/')?;
        let bits = Some(bits).filter(|bits| bits.bytes().all(|byte| byte.is_ascii_digit()))?;
        let address: IpAddr = address.parse().ok()?;
        Some(AddressPrefix { address: address.to_canonical(), bits: bits.parse().ok()? })
    }

    /// Returns an error if the rule groups addresses by another prefix length: the text would mean other clients. An
    /// unknown rule is not an error here.
    pub(crate) fn check(self, rule: &str, gate: &Gate) -> Result<(), String> {
        let Some(grouping) = gate.with_policy(|policy| policy.named(rule).map(Rule::grouping)) else {
            return Ok(());
        };
        let of_rule = if self.address.is_ipv4() { grouping.ipv4_bits } else { grouping.ipv6_bits };
        if self.bits == of_rule {
            return Ok(());
        }
        Err(format!(
            "key: \"ip\" has the prefix length /{}, and rule {rule:?} counts by /{of_rule}; send an address, or the key \
             as it is listed",
            self.bits
        ))
    }
}

/// Parses the name of an attribute from bytes.
pub(crate) fn name(bytes: &[u8]) -> Result<Cow<'_, str>, Wrong> {
    std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| Wrong::NameIsNoText)
}

/// Inserts an attribute. A second value of the same name is an error, because it is ambiguous.
///
/// A rule could otherwise read the first value while another system trusts the last one.
pub(crate) fn put<'a>(
    attributes: &mut Attributes<'a>,
    name: Cow<'a, str>,
    value: impl Into<Value<'a>>,
) -> Result<(), Wrong> {
    check_length(&name)?;
    attributes.insert_new(name, value).map_err(|wrong| match wrong {
        NotInserted::Twice => Wrong::Twice,
        NotInserted::NoAddress => Wrong::NoAddress,
    })
}

/// Adds a value. A request may have several values of one header field, cookie or query parameter. Any other attribute
/// may occur once.
///
/// A rule decides by its `on_repeated` setting what several values of a key part mean.
pub(crate) fn add<'a>(
    attributes: &mut Attributes<'a>,
    name: Cow<'a, str>,
    value: impl Into<Value<'a>>,
) -> Result<(), Wrong> {
    if !may_repeat(&name) {
        return put(attributes, name, value);
    }
    check_length(&name)?;
    attributes.append(name, value);
    Ok(())
}

/// Returns true if a request may have several values of this attribute.
pub(crate) fn may_repeat(name: &str) -> bool {
    ["header.", "cookie.", "query."].iter().any(|kind| name.starts_with(kind))
}

/// Returns an error if a name is longer than any name in a rule can be.
fn check_length(name: &str) -> Result<(), Wrong> {
    if name.len() > MAX_NAME_BYTES { Err(Wrong::NameIsLong(name.len())) } else { Ok(()) }
}

impl fmt::Display for Wrong {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::NameIsNoText => out.write_str("has a name that is no text"),
            Wrong::NameIsLong(bytes) => {
                write!(out, "has a name of {bytes} bytes; at most {MAX_NAME_BYTES}, as in rules")
            }
            Wrong::Twice => out.write_str("is there twice; leave one of them out"),
            Wrong::NoList => out
                .write_str("is there twice; send all of its values as a list, as in [\"first\", \"second\"]"),
            Wrong::NoAddress => {
                out.write_str("is no address; send one such as 192.0.2.7 or 2001:db8::1, without a port")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_addresses_is_an_address_with_a_prefix_length() {
        let parsed = |text| AddressPrefix::parse(text).map(|group| (group.address.to_string(), group.bits));
        assert_eq!(parsed("2001:db8::/64"), Some(("2001:db8::".to_owned(), 64)));
        assert_eq!(parsed("192.0.2.0/24"), Some(("192.0.2.0".to_owned(), 24)));
        for other in ["192.0.2.7", "192.0.2.7/", "192.0.2.7/+8", "192.0.2.7/256", "/24", "x/8", "::1/64/64"] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }

    #[test]
    fn each_is_taken_once_under_a_name_that_rules_could_have() {
        let mut known = Attributes::new();
        assert_eq!(put(&mut known, "header.A".into(), "x"), Ok(()));
        let again =
            |name: &'static str, value: &'static str| put(&mut known.clone(), name.into(), value).err();
        assert_eq!(again("header.a", "y"), Some(Wrong::Twice));
        assert_eq!(again("ip", "192.0.2.7:80"), Some(Wrong::NoAddress));
        assert_eq!(again("ip", "192.0.2.7"), None);
        assert_eq!(add(&mut known, "header.a".into(), "y"), Ok(()));
        assert_eq!(known.get_all("header.a").count(), 2);
        assert_eq!(put(&mut known, "user".into(), "ana"), Ok(()));
        assert_eq!(add(&mut known, "user".into(), "bob").err(), Some(Wrong::Twice));
        let long = |bytes: usize| put(&mut Attributes::new(), "n".repeat(bytes).into(), "").err();
        assert_eq!((long(MAX_NAME_BYTES), long(MAX_NAME_BYTES + 1)), (None, Some(Wrong::NameIsLong(129))));
        assert_eq!((name(b"user"), name(b"\xff")), (Ok("user".into()), Err(Wrong::NameIsNoText)));
    }
}
