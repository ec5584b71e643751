//! A request as rules know it.
//!
//! Rules look at `method`, `path`, `host`, `ip`, at header fields, cookies and pieces of the query, and at whatever the
//! program adds. Only what a rule in force looks at is searched for.

use std::borrow::Cow;

use http::HeaderMap;
use http::header;
use tidegate::Cost;
use tidegate_rules::{Attributes, Grouping, Policy};

use crate::answer::Reason;
use crate::head::Head;
use crate::key::Part;

/// The attribute that is an address.
pub(super) const IP: &str = "ip";

/// What the head says about each attribute that these rules look at.
pub(super) fn of_head<'a>(policy: &'a Policy, head: Head<'a>, units: u64) -> Attributes<'a> {
    let attributes = Attributes::new().cost(Cost::new(units).unwrap_or_default());
    policy.attributes().fold(attributes, |attributes, name| match value(name, head) {
        Some(Cow::Borrowed(value)) => attributes.set(name, value),
        Some(Cow::Owned(value)) => attributes.set(name, value),
        None => attributes,
    })
}

/// The same with what an extractor has found.
pub(super) fn with_part<'a>(attributes: Attributes<'a>, name: &'a str, part: &'a Part<'_>) -> Attributes<'a> {
    match part {
        Part::Address(ip, grouping) if name == IP => match larger(*grouping) {
            Some(grouping) => attributes.ip(*ip).grouped(grouping),
            None => attributes.ip(*ip),
        },
        Part::Address(ip, grouping) => attributes.set(name, grouping.group(*ip)),
        Part::Bytes(bytes) => attributes.set(name, &**bytes),
        Part::Number(number) => attributes.set(name, number.to_string()),
        Part::Missing | Part::NoPeer | Part::Skip | Part::Refuse => attributes,
    }
}

/// Groups that are larger than those in which everybody counts addresses. How small groups are is for each rule to say.
fn larger(Grouping { ipv4_bits, ipv6_bits }: Grouping) -> Option<Grouping> {
    let usual = Grouping::default();
    let bits = |asked, usual, whole| if asked < usual { asked } else { whole };
    let (ipv4_bits, ipv6_bits) =
        (bits(ipv4_bits, usual.ipv4_bits, 32), bits(ipv6_bits, usual.ipv6_bits, 128));
    (ipv4_bits < 32 || ipv6_bits < 128).then_some(Grouping { ipv4_bits, ipv6_bits })
}

/// Why nobody can decide by these rules about a request of which this was found: an address that they look at is not
/// known, and nobody has said that this is meant.
pub(super) fn lack(
    policy: &Policy,
    attributes: &Attributes<'_>,
    (name, part): (&str, &Part<'_>),
) -> Option<Reason> {
    let reason = match part {
        Part::NoPeer => Reason::NoPeer,
        // What is no address is none: a rule that refuses some of them must not be got past by it.
        Part::Bytes(_) | Part::Number(_) if name == IP => Reason::Missing,
        _ => return None,
    };
    (!attributes.has(name) && policy.attributes().any(|of| of == name)).then_some(reason)
}

fn value<'a>(name: &str, head: Head<'a>) -> Option<Cow<'a, [u8]>> {
    match name.split_once('.') {
        None => of_request(name, head).map(Cow::Borrowed),
        Some(("header", field)) => head.header(field).map(|value| Cow::Borrowed(value.as_bytes())),
        Some(("cookie", cookie)) => self::cookie(head.headers(), cookie.as_bytes()).map(Cow::Borrowed),
        Some(("query", piece)) => query(head.uri().query()?.as_bytes(), piece.as_bytes()),
        Some(_) => None,
    }
}

fn of_request<'a>(name: &str, head: Head<'a>) -> Option<&'a [u8]> {
    match name {
        "path" => Some(head.path().as_bytes()),
        "method" => Some(head.method().as_str().as_bytes()),
        "host" => head.host(),
        _ => None,
    }
}

/// The first cookie of this name, without the quotes around it.
fn cookie<'a>(headers: &'a HeaderMap, name: &[u8]) -> Option<&'a [u8]> {
    let lines = headers.get_all(header::COOKIE).iter();
    let mut cookies = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    cookies.find_map(|cookie| {
        let equals = cookie.iter().position(|byte| *byte == b'=')?;
        let value = cookie[equals + 1..].trim_ascii();
        let unquoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        (cookie[..equals].trim_ascii() == name).then(|| unquoted.unwrap_or(value))
    })
}

/// The first piece of a query that has this name, decoded as forms are written; a piece without `=` is empty.
fn query<'a>(query: &'a [u8], name: &[u8]) -> Option<Cow<'a, [u8]>> {
    query.split(|byte| *byte == b'&').find_map(|piece| {
        let equals = piece.iter().position(|byte| *byte == b'=').unwrap_or(piece.len());
        let value = piece.get(equals + 1..).unwrap_or_default();
        (*decoded(&piece[..equals]) == *name).then(|| decoded(value))
    })
}

/// `%41` as `A`, and `+` as a space.
fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(text);
    }
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let (mut plain, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(byte) = text.get(at) {
        let code = if *byte == b'%' { digit(at + 1).zip(digit(at + 2)) } else { None };
        match (code, byte) {
            (Some((high, low)), _) => {
                plain.push((high * 16 + low) as u8);
                at += 3;
                continue;
            }
            (None, b'+') => plain.push(b' '),
            (None, byte) => plain.push(*byte),
        }
        at += 1;
    }
    Cow::Owned(plain)
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
    }

    #[test]
    fn a_piece_of_a_query_without_a_value_is_empty() {
        assert_eq!(query(b"a&b=", b"a").as_deref(), Some(&b""[..]));
        assert_eq!(query(b"a&b=", b"b").as_deref(), Some(&b""[..]));
        assert_eq!(query(b"%61=1", b"a").as_deref(), Some(&b"1"[..]));
        assert_eq!(query(b"", b"a"), None);
    }
}
