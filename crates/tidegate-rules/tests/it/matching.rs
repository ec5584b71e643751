//! Tests that the index finds the same rules as a scan of all rules.
//!
//! The scan shares no code with the index: it works on texts, and on addresses as lists of bits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tidegate_rules::{Attributes, Rule};

use crate::random::{Random, seed, tries};
use crate::requests::policy;

const TEXTS: [&str; 12] = ["", "a", "ab", "abc", "abd", "b", "ba", "*", "a*", "\\", "a\\", "abcabc"];
const PIECES: [&str; 7] = ["a", "b", "ab", "v1", "x.y", ".", ".."];
const ODD_PIECES: [&str; 11] =
    ["%61", "", "%2e", "%2E%2e", "a%2fb", "%zz", "v%31", "b;v=1", "..;", ";a%2Fb;c", "ab%00b"];
const ADDRESSES: [&str; 10] = [
    "10.0.0.1",
    "10.1.0.1",
    "10.1.2.3",
    "192.0.2.7",
    "0.0.0.0",
    "255.255.255.255",
    "2001:db8::1",
    "2001:db8:1::1",
    "::1",
    "::ffff:10.1.2.3",
];

/// A value of a condition, before it is formatted.
#[derive(Clone, Debug)]
enum Value {
    Exact(String),
    Prefix(String),
    Network(IpAddr, u8),
    /// A path; `*` stands for one segment, `**` for the rest.
    Shape(Vec<&'static str>),
}

impl Value {
    fn written(&self) -> String {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('*', "\\*");
        match self {
            Value::Exact(text) => escaped(text),
            // A dot before the star would be a regular expression.
            Value::Prefix(text) if text.ends_with('.') => escaped(&text[..text.len() - 1]) + "\\.*",
            Value::Prefix(text) => escaped(text) + "*",
            Value::Network(ip, bits) => format!("{ip}/{bits}"),
            Value::Shape(pieces) => {
                let pieces = pieces.iter().enumerate().map(|(place, piece)| match *piece {
                    "*" => format!("/{{p{place}}}"),
                    "**" => "/{*rest}".to_owned(),
                    literal => format!("/{literal}"),
                });
                pieces.collect()
            }
        }
    }

    /// Returns true if a request with this value matches in one of its spellings.
    fn holds(&self, attribute: &str, value: &str) -> bool {
        match self {
            Value::Exact(text) if attribute == "path" => plain_path(text) == value,
            Value::Exact(text) if attribute == "host" => plain_host(text) == value,
            Value::Exact(text) => text == value,
            Value::Prefix(text) if attribute == "path" => value.starts_with(&plain_beginning(text)),
            Value::Prefix(text) if attribute == "host" => value.starts_with(&text.to_lowercase()),
            Value::Prefix(text) => value.starts_with(text),
            Value::Network(ip, bits) => {
                let (network, bits) = bits_of(*ip, usize::from(*bits));
                value.parse().is_ok_and(|ip| bits_of(ip, 0).0[..bits] == network[..bits])
            }
            Value::Shape(pieces) => value.strip_prefix('/').is_some_and(|path| {
                let path: Vec<_> = path.split('/').collect();
                has_shape(pieces, &path)
            }),
        }
    }
}

/// Returns the bits of an address, those of IPv4 after the 96 bits of the IPv4-mapped prefix, and a prefix length.
fn bits_of(ip: IpAddr, bits: usize) -> (Vec<bool>, usize) {
    let (ip, bits) = match ip {
        IpAddr::V4(ip) => (ip.to_ipv6_mapped(), bits + 96),
        IpAddr::V6(ip) => (ip, bits),
    };
    (ip.octets().iter().flat_map(|octet| (0..8).rev().map(move |bit| octet >> bit & 1 == 1)).collect(), bits)
}

fn has_shape(shape: &[&str], path: &[&str]) -> bool {
    match (shape, path) {
        (["**"], [_, ..]) => path.iter().any(|piece| !piece.is_empty()) || path.len() > 1,
        ([], []) => true,
        (["*", shape @ ..], [piece, path @ ..]) => !piece.is_empty() && has_shape(shape, path),
        ([literal, shape @ ..], [piece, path @ ..]) => literal == piece && has_shape(shape, path),
        _ => false,
    }
}

/// Returns the readings of a value. A path has several: with `%2F` as part of its segment, without the parameters after
/// a semicolon in each segment, up to a NUL, and as received.
fn spellings(attribute: &str, value: &str) -> Vec<String> {
    match attribute {
        "path" => {
            let raw = value.split(['?', '#']).next().unwrap_or_default();
            let path = match raw.strip_prefix("http://") {
                Some(rest) => rest.find('/').map_or("/", |slash| &rest[slash..]),
                None => raw,
            };
            let bare: Vec<_> =
                path.split('/').map(|piece| piece.split(';').next().unwrap_or_default()).collect();
            let mut all = vec![raw.to_owned()];
            for path in [path, &bare.join("/")] {
                for path in [path, &path.replace("%2f", "%252F").replace("%2F", "%252F")] {
                    let nul = path.find("%00").unwrap_or(path.len());
                    all.extend([plain_path(path), plain_path(&path[..nul])]);
                }
            }
            if path.starts_with('/') { all } else { vec![path.to_owned()] }
        }
        "host" => vec![plain_host(value)],
        _ => vec![value.to_owned()],
    }
}

/// Returns the normalized path: decoded, with dot segments resolved.
fn plain_path(path: &str) -> String {
    if path.starts_with('/') { walked(&unescaped(path)) } else { path.to_owned() }
}

/// Returns the normalized common prefix of all paths with this prefix.
fn plain_beginning(path: &str) -> String {
    let path = unescaped(path);
    match path.rsplit_once('/') {
        Some((before, last)) => walked(&format!("{before}/")) + last,
        None => path,
    }
}

fn unescaped(path: &str) -> String {
    let mut pieces = path.split('%');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let code = piece.get(..2).filter(|code| code.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => plain += &format!("{}{}", char::from(byte), &piece[2..]),
            None => plain += &format!("%{piece}"),
        }
    }
    plain
}

fn walked(path: &str) -> String {
    let mut place: Vec<&str> = Vec::new();
    for piece in path.split('/') {
        match piece {
            "" | "." => {}
            ".." => drop(place.pop()),
            piece => place.push(piece),
        }
    }
    let is_folder = ["", ".", ".."].contains(&path.rsplit('/').next().unwrap_or_default());
    let end = if is_folder && !place.is_empty() { "/" } else { "" };
    format!("/{}{end}", place.join("/"))
}

fn plain_host(host: &str) -> String {
    let host = host.split(':').next().unwrap_or_default().to_lowercase();
    host.strip_suffix('.').unwrap_or(&host).to_owned()
}

type Conditions = Vec<(&'static str, Vec<Value>)>;

fn path(random: &mut Random) -> String {
    let pieces = (0..random.below(4)).map(|_| {
        let odd = random.once_in(4);
        format!("/{}", random.pick(if odd { &ODD_PIECES } else { &PIECES }))
    });
    let path: String = pieces.collect();
    let end = random.pick(&["", "", "", "/", "//", "/."]);
    if path.is_empty() && end.is_empty() { "/".to_owned() } else { path + end }
}

fn host(random: &mut Random) -> String {
    random.pick(&["a.example", "A.Example", "b.example", "a.example:80", "a.example.", "a"]).to_owned()
}

fn address(random: &mut Random) -> IpAddr {
    random.pick(&ADDRESSES).parse().expect("an address")
}

fn network(random: &mut Random) -> Value {
    let ip = address(random).to_canonical();
    let (most, bits) = match ip {
        IpAddr::V4(_) => (32, [0, 7, 8, 9, 15, 16, 24, 31, 32][random.below(9)]),
        IpAddr::V6(_) => (128, [16, 31, 32, 33, 47, 48, 64, 127, 128][random.below(9)]),
    };
    let bits = if random.once_in(3) { most } else { bits };
    let net = match ip {
        IpAddr::V4(ip) => {
            IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & u32::MAX.checked_shl(32 - bits).unwrap_or(0)))
        }
        // A prefix of zeros would contain all of IPv4.
        IpAddr::V6(ip) if ip.is_loopback() => return Value::Network(ip.into(), 128),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & u128::MAX << (128 - bits))),
    };
    Value::Network(net, bits as u8)
}

fn shape(random: &mut Random) -> Value {
    let mut pieces: Vec<&'static str> =
        (0..random.below(4)).map(|_| if random.once_in(3) { "*" } else { PIECES[random.below(5)] }).collect();
    let is_any = pieces.contains(&"*");
    match random.below(3) {
        0 if is_any => pieces.push(""),
        1 if is_any => {}
        _ => pieces.push("**"),
    }
    Value::Shape(pieces)
}

fn value(random: &mut Random, attribute: &str) -> Value {
    let text = match attribute {
        "ip" => return network(random),
        "path" if random.once_in(2) => return shape(random),
        "path" => path(random),
        "host" => host(random),
        _ => random.pick(&TEXTS).to_owned(),
    };
    match random.once_in(3) && !text.contains(':') {
        true => Value::Prefix(text),
        false => Value::Exact(text),
    }
}

fn conditions(random: &mut Random) -> Conditions {
    let mut all = vec!["user", "header.x-a", "plan", "host", "path", "ip"];
    let count = random.below(4);
    let attributes: Vec<_> = (0..count).map(|_| all.remove(random.below(all.len()))).collect();
    let values = |random: &mut Random, attribute| {
        let count = if random.once_in(6) { 1 + random.below(12) } else { 1 };
        (0..count).map(|_| value(random, attribute)).collect()
    };
    attributes.into_iter().map(|attribute| (attribute, values(random, attribute))).collect()
}

fn written(random: &mut Random, number: usize, conditions: &Conditions) -> String {
    let when = conditions.iter().map(|(attribute, values)| {
        let attribute =
            if random.once_in(2) { attribute.replace("x-a", "X-A") } else { (*attribute).to_owned() };
        let values: Vec<_> = values.iter().map(|value| format!("{:?}", value.written())).collect();
        let is_one = values.len() == 1 && random.once_in(2);
        let values = values.join(", ");
        if is_one { format!("{attribute:?} = {values}") } else { format!("{attribute:?} = [{values}]") }
    });
    let when = when.collect::<Vec<_>>().join(", ");
    let says = random.pick(&["limit = '1/s'", "limit = '1/s'\nkey = ['ip']", "decision = 'allow'"]);
    let mut rule = format!("[[rule]]\nname = '{number}'\nwhen = {{ {when} }}\n{says}\n");
    if says.starts_with("limit") && random.once_in(8) {
        rule += &format!("[[rule]]\nname = 'beside-{number}'\ncandidate_for = '{number}'\nlimit = '2/s'\n");
    }
    rule
}

/// Returns a request: names and values.
fn request(random: &mut Random) -> Vec<(&'static str, String)> {
    let all = ["user", "header.x-a", "plan", "host", "path", "ip", "other"];
    let there: Vec<_> = all.into_iter().filter(|_| !random.once_in(4)).collect();
    let there = there.into_iter().map(|attribute| {
        let value = match attribute {
            "ip" if random.once_in(8) => "no address".to_owned(),
            "ip" => address(random).to_string(),
            "path" if random.once_in(12) => random.pick(&["", "*", "a", "/a?/b", "http://h"]).to_owned(),
            "path" if random.once_in(12) => format!("http://h:80{}", path(random)),
            "path" => path(random),
            "host" => host(random),
            _ => random.pick(&TEXTS).to_owned(),
        };
        (attribute, value)
    });
    there.collect()
}

/// Returns true if the conditions match: for a limit in any spelling, for an exemption in all spellings.
fn applies(conditions: &Conditions, is_exception: bool, request: &[(&str, String)]) -> bool {
    conditions.iter().all(|(attribute, values)| {
        let sent = request.iter().find(|(name, _)| name == attribute);
        let holds = |sent: &String| values.iter().any(|value| value.holds(attribute, sent));
        sent.is_some_and(|(_, sent)| {
            let sent = spellings(attribute, sent);
            if is_exception { sent.iter().all(holds) } else { sent.iter().any(holds) }
        })
    })
}

#[test]
fn the_rules_that_are_found_are_those_that_apply() {
    let mut random = Random::new(seed());
    let mut found = 0;
    for turn in 0..tries(5_000, 250) {
        let count = 1 + if turn % 3 == 0 { random.below(300) } else { random.below(12) };
        let rules: Vec<_> = (0..count).map(|_| conditions(&mut random)).collect();
        let texts: Vec<_> =
            rules.iter().enumerate().map(|(number, rule)| written(&mut random, number, rule)).collect();
        let (text, is_exception) = (texts.concat(), |number: usize| texts[number].contains("'allow'"));
        let policy = policy(&text);
        for _ in 0..100 {
            let sent = request(&mut random);
            let attributes =
                sent.iter().fold(Attributes::new(), |all, (name, value)| all.set(*name, value.as_str()));
            let matching: Vec<_> = policy.matching(&attributes).into_iter().map(Rule::name).collect();
            let scanned = (0..count).filter(|number| applies(&rules[*number], is_exception(*number), &sent));
            let scanned: Vec<_> = scanned.map(|number| number.to_string()).collect();
            assert_eq!(matching, scanned, "{sent:?} in\n{text}");
            found += matching.len();
        }
    }
    assert!(found > 10_000, "most requests met no rule at all");
}
