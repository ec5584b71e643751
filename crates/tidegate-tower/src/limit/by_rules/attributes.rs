//! The attributes of a request, which rules match.
//!
//! Rules match `method`, `path`, `host`, `ip`, header fields, cookies, query parameters, and attributes that the
//! program adds. Only attributes of rules in force are read from a request.

use tidegate_core::Cost;
use tidegate_rules::{Attributes, Grouping, HttpParts, Policy};

use crate::answer::Reason;
use crate::head::Head;
use crate::key::Part;

/// The attribute that is an address.
pub(super) const IP: &str = "ip";

/// Returns the attributes of the head that these rules match.
pub(super) fn of_head<'a>(policy: &'a Policy, head: Head<'a>, units: u64) -> Attributes<'a> {
    let parts = HttpParts {
        method: Some(head.method().as_str().as_bytes()),
        path: Some(head.path().as_bytes()),
        host: head.host(),
        query: head.query(),
        headers: head.headers(),
    };
    parts.attributes(policy).cost(Cost::new(units).unwrap_or_default())
}

/// Adds the part that an extractor has found.
pub(super) fn with_part<'a>(attributes: Attributes<'a>, name: &'a str, part: &'a Part<'_>) -> Attributes<'a> {
    match part {
        Part::Address(ip, grouping) if name == IP => match larger(*grouping) {
            Some(grouping) => attributes.ip(*ip).grouped(grouping),
            None => attributes.ip(*ip),
        },
        Part::Address(ip, grouping) => attributes.set(name, grouping.group(*ip).to_string()),
        Part::Bytes(bytes) => attributes.set(name, &**bytes),
        Part::Number(number) => attributes.set(name, number.to_string()),
        Part::Repeated(values) => values.iter().fold(attributes, |known, value| known.add(name, &**value)),
        Part::Missing | Part::NoPeer | Part::Skip | Part::Refuse => attributes,
    }
}

/// Returns the networks of a grouping that are larger than the default ones. Smaller ones are set by each rule.
fn larger(Grouping { ipv4_bits, ipv6_bits }: Grouping) -> Option<Grouping> {
    let usual = Grouping::default();
    let bits = |asked, usual, whole| if asked < usual { asked } else { whole };
    let (ipv4_bits, ipv6_bits) =
        (bits(ipv4_bits, usual.ipv4_bits, 32), bits(ipv6_bits, usual.ipv6_bits, 128));
    (ipv4_bits < 32 || ipv6_bits < 128).then_some(Grouping { ipv4_bits, ipv6_bits })
}

/// Returns the reason why rules cannot decide about a request: they match an address that is unknown, and the extractor
/// does not accept that.
pub(super) fn lack(
    policy: &Policy,
    attributes: &Attributes<'_>,
    (name, part): (&str, &Part<'_>),
) -> Option<Reason> {
    let reason = match part {
        Part::NoPeer => Reason::NoPeer,
        // Text that is not an address must not bypass a rule that denies addresses.
        Part::Bytes(_) | Part::Number(_) | Part::Repeated(_) if name == IP => Reason::Missing,
        _ => return None,
    };
    (!attributes.has(name) && policy.attributes().any(|of| of == name)).then_some(reason)
}
