//! The attributes of a request, which rules match.
//!
//! Rules match `method`, `path`, `host`, `ip`, header fields, cookies, query parameters, and attributes that the
//! program adds. Only attributes of rules in force are read from a request.
//!
//! Reading all header fields of each request would be wasteful, and most rules match few. The policy in force lists the
//! names that its rules match, and only these are looked up.

use std::borrow::Cow;

use tidegate_core::Cost;
use tidegate_rules::{Attributes, Grouping, Policy};

use crate::answer::Reason;
use crate::head::Head;
use crate::key::{Part, named};

/// The attribute that is an address.
pub(super) const IP: &str = "ip";

/// Returns the attributes of the head that these rules match.
pub(super) fn of_head<'a>(policy: &'a Policy, head: Head<'a>, units: u64) -> Attributes<'a> {
    let attributes = Attributes::new().cost(Cost::new(units).unwrap_or_default());
    policy.attributes().fold(attributes, |attributes, name| match name.split_once('.') {
        None => of_request(name, head).into_iter().fold(attributes, |known, value| known.set(name, value)),
        Some(("header", field)) => all(attributes, name, named::headers(head, field)),
        Some(("cookie", cookie)) => all(attributes, name, named::cookies(head, cookie)),
        Some(("query", part)) => all(attributes, name, named::query(head, part)),
        Some(_) => attributes,
    })
}

/// Adds all values of a name.
fn all<'a>(
    attributes: Attributes<'a>,
    name: &'a str,
    values: impl Iterator<Item = Cow<'a, [u8]>>,
) -> Attributes<'a> {
    values.fold(attributes, |known, value| match value {
        Cow::Borrowed(value) => known.add(name, value),
        Cow::Owned(value) => known.add(name, value),
    })
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

fn of_request<'a>(name: &str, head: Head<'a>) -> Option<&'a [u8]> {
    match name {
        "path" => Some(head.path().as_bytes()),
        "method" => Some(head.method().as_str().as_bytes()),
        "host" => head.host(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn only_what_rules_look_at_is_searched_for_and_all_of_that_is_found() {
        let text = "[[rule]]\nname = 'a'\nlimit = '1/s'\n\
            when = { path = '/x', method = 'GET', host = 'example.com', 'header.X-A' = '1' }\n\
            key = ['cookie.session', 'query.page', 'query.none', 'user']\n";
        let policy = Policy::from_toml(text).unwrap();
        let request = Request::builder()
            .uri("http://example.com/x?b=1&page=a%20b+c%zz&page=2")
            .header("x-a", "1")
            .header("x-b", "2")
            .header("cookie", "a=1; session=\"s=1\"; session=2")
            .body(())
            .unwrap();
        let found = of_head(&policy, Head::of(&request), 3);
        let mut names: Vec<_> = found.names().collect();
        names.sort_unstable();
        assert_eq!(names, ["cookie.session", "header.x-a", "host", "method", "path", "query.page"]);
        for (name, value) in [
            ("cookie.session", "s=1"),
            ("header.x-a", "1"),
            ("host", "example.com"),
            ("method", "GET"),
            ("path", "/x"),
            ("query.page", "a b c%zz"),
        ] {
            assert_eq!(found.get(name), Some(value.as_bytes()), "{name}");
        }
        assert_eq!(found.get_all("cookie.session").collect::<Vec<_>>(), [&b"s=1"[..], b"2"]);
        assert_eq!(found.get_all("query.page").collect::<Vec<_>>(), [&b"a b c%zz"[..], b"2"]);
    }
}
