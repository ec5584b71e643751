//! A request as the rules of a policy see it: only what one of them looks at, in the plainest form.
//!
//! A path or a host can be written in many ways that mean the same. Rules see one of them, so that nobody gets past
//! a rule by spelling. What is behind us may read a path in another way, and keep `%2F` or `..` as they are: then
//! rules see that spelling, too.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::attributes::{Attributes, IP, canonical};
use crate::index::QuickMap;
use crate::key::Grouping;

/// The number of an attribute in a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Slot {
    /// The address.
    Ip,
    /// Any other.
    Value(u32),
}

impl Slot {
    /// Its place in a list of all; the address has none, as its networks are a list of their own.
    pub(crate) fn number(self) -> usize {
        match self {
            Slot::Ip => 0,
            Slot::Value(number) => number as usize,
        }
    }
}

/// The attributes that the rules of a policy look at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    values: QuickMap<Box<str>, (u32, Plain)>,
    /// Whether any of them is the address.
    has_ip: bool,
}

/// How a value is made plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plain {
    AsItIs,
    Path,
    Host,
}

impl Slots {
    /// The number of this attribute, which it gets if it has none.
    pub(crate) fn of(&mut self, name: &str) -> Slot {
        if name == IP {
            self.has_ip = true;
            return Slot::Ip;
        }
        let plain = match name {
            "path" => Plain::Path,
            "host" => Plain::Host,
            _ => Plain::AsItIs,
        };
        let next = self.values.len() as u32;
        Slot::Value(self.values.entry(canonical(name.into()).into()).or_insert((next, plain)).0)
    }

    /// The names of all of them, in the order of the alphabet.
    pub(crate) fn names(&self) -> Box<[Box<str>]> {
        let mut names: Vec<Box<str>> = self.values.keys().cloned().collect();
        names.extend(self.has_ip.then(|| IP.into()));
        names.sort_unstable();
        names.into()
    }

    pub(crate) fn see<'a>(&self, attributes: &'a Attributes<'_>) -> Seen<'a> {
        let mut values = Vec::with_capacity(self.values.len().min(attributes.each().len()));
        for (name, value) in attributes.each() {
            let Some((slot, plain)) = self.values.get(name) else { continue };
            let slot = Slot::Value(*slot);
            match plain {
                Plain::AsItIs => values.push((slot, Cow::Borrowed(value))),
                Plain::Host => values.push((slot, plain_host(value))),
                Plain::Path => {
                    let plain = plain_path(value);
                    let others = if plain == value { [None, None] } else { other_spellings(value, &plain) };
                    values.push((slot, plain));
                    values.extend(others.into_iter().flatten().map(|other| (slot, other)));
                }
            }
        }
        Seen { ip: attributes.address(), grouping: attributes.grouping, values }
    }
}

/// What the rules of a policy see of a request.
#[derive(Clone, Debug)]
pub(crate) struct Seen<'a> {
    ip: Option<IpAddr>,
    grouping: Option<Grouping>,
    values: Vec<(Slot, Cow<'a, [u8]>)>,
}

impl Seen<'_> {
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.ip
    }

    /// In how large groups the address is counted at least.
    pub(crate) fn grouping(&self) -> Option<Grouping> {
        self.grouping
    }

    /// All spellings of a value, the plainest first.
    pub(crate) fn spellings(&self, slot: Slot) -> impl Iterator<Item = &[u8]> {
        self.values.iter().filter(move |(of, _)| *of == slot).map(|(_, value)| &**value)
    }

    pub(crate) fn value(&self, slot: Slot) -> Option<&[u8]> {
        self.values.iter().find(|(of, _)| *of == slot).map(|(_, value)| &**value)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = (Slot, &[u8])> {
        self.values.iter().map(|(slot, value)| (*slot, &**value))
    }
}

/// A path without its query, with `%41` as `A`, `//` as `/`, and `.` and `..` gone.
pub(crate) fn plain_path(path: &[u8]) -> Cow<'_, [u8]> {
    let path = without_query(path);
    let is_plain = !path.contains(&b'%') && !path.windows(2).any(|two| matches!(two, b"//" | b"/."));
    if is_plain || path.first() != Some(&b'/') {
        return Cow::Borrowed(path);
    }
    walked(&decoded(path)).into()
}

fn without_query(path: &[u8]) -> &[u8] {
    let end = path.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(path.len());
    &path[..end]
}

/// How a path reads to those who leave `%2F` within its piece, and to those who leave everything as it came; none
/// that is the plain form.
fn other_spellings<'a>(path: &'a [u8], plain: &[u8]) -> [Option<Cow<'a, [u8]>>; 2] {
    let raw = without_query(path);
    let is_coded = |three: &[u8]| three.eq_ignore_ascii_case(b"%2F");
    let kept = raw.windows(3).any(is_coded).then(|| {
        // A code of the percent sign is decoded to what it was: `%2F`.
        let mut again = Vec::with_capacity(raw.len() + 8);
        let mut rest = raw;
        while let [first, more @ ..] = rest {
            if rest.get(..3).is_some_and(is_coded) {
                again.extend_from_slice(b"%252F");
                rest = &rest[3..];
            } else {
                again.push(*first);
                rest = more;
            }
        }
        if raw.first() == Some(&b'/') { walked(&decoded(&again)) } else { decoded(&again) }
    });
    let kept = kept.filter(|kept| kept != plain);
    let raw = Some(raw).filter(|raw| *raw != plain && kept.as_deref() != Some(*raw));
    [kept.map(Cow::Owned), raw.map(Cow::Borrowed)]
}

/// What all paths begin with, in their plain form, that begin with this: a path up to its last slash, and a part of
/// the piece behind that.
pub(crate) fn plain_beginning(path: &[u8]) -> Vec<u8> {
    let decoded = decoded(path);
    match decoded.iter().rposition(|byte| *byte == b'/') {
        Some(slash) if decoded.first() == Some(&b'/') => {
            [&walked(&decoded[..=slash])[..], &decoded[slash + 1..]].concat()
        }
        _ => decoded,
    }
}

/// A decoded path that begins with a slash, without what leads nowhere.
fn walked(path: &[u8]) -> Vec<u8> {
    let mut pieces: Vec<&[u8]> = Vec::new();
    let mut all = path[1..].split(|byte| *byte == b'/').peekable();
    while let Some(piece) = all.next() {
        let is_last = all.peek().is_none();
        match piece {
            b"." => {}
            b".." => drop(pieces.pop()),
            b"" if !is_last => {}
            piece => pieces.push(piece),
        }
        // What ended in a slash still does.
        if is_last && matches!(piece, b"." | b"..") {
            pieces.push(b"");
        }
    }
    let mut plain = Vec::with_capacity(path.len());
    for piece in pieces {
        plain.push(b'/');
        plain.extend_from_slice(piece);
    }
    if plain.is_empty() { b"/".to_vec() } else { plain }
}

/// Bytes with `%41` as `A`; what is no such code stays.
pub(crate) fn decoded(bytes: &[u8]) -> Vec<u8> {
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                plain.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                plain.push(*byte);
                at += 1;
            }
        }
    }
    plain
}

/// A host in small letters, without a port and without the dot at its end.
pub(crate) fn plain_host(host: &[u8]) -> Cow<'_, [u8]> {
    let end = match host.first() {
        Some(b'[') => host.iter().position(|byte| *byte == b']').map_or(host.len(), |at| at + 1),
        _ => host.iter().position(|byte| *byte == b':').unwrap_or(host.len()),
    };
    let host = &host[..end];
    let host = host.strip_suffix(b".").unwrap_or(host);
    if host.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_plain_form() {
        for (path, plain) in [
            ("/login", "/login"),
            ("/login?x=/../y", "/login"),
            ("/login#top", "/login"),
            ("//login", "/login"),
            ("/./login", "/login"),
            ("/a/../login", "/login"),
            ("/a/..//./login", "/login"),
            ("/../../login", "/login"),
            ("/%6Cogin", "/login"),
            ("/%6cogin", "/login"),
            ("/%2e%2E/login", "/login"),
            ("/a%2Flogin", "/a/login"),
            ("/a/%2e%2e%2flogin", "/login"),
            ("/login/", "/login/"),
            ("/login//", "/login/"),
            ("/login/.", "/login/"),
            ("/a/b/..", "/a/"),
            ("/", "/"),
            ("//", "/"),
            ("/..", "/"),
            ("/%zz%4", "/%zz%4"),
            ("/%2561", "/%61"),
            ("/.hidden", "/.hidden"),
            ("/a...b", "/a...b"),
            ("*", "*"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8_lossy(&plain_path(path.as_bytes())), plain, "{path}");
        }
    }

    #[test]
    fn a_path_that_others_may_read_otherwise_has_those_spellings_too() {
        let mut slots = Slots::default();
        let slot = slots.of("path");
        let spellings = |path: &str| {
            let request = Attributes::new().set("path", path.to_owned());
            let seen = slots.see(&request);
            let texts = seen.spellings(slot).map(|path| String::from_utf8_lossy(path).into_owned());
            texts.collect::<Vec<_>>()
        };
        assert_eq!(spellings("/login"), ["/login"]);
        assert_eq!(spellings("/login?x=%2F"), ["/login"]);
        assert_eq!(spellings("/%6Cogin"), ["/login", "/%6Cogin"]);
        assert_eq!(spellings("/api/../x"), ["/x", "/api/../x"]);
        assert_eq!(spellings("/reports/7%2f?q"), ["/reports/7/", "/reports/7%2F", "/reports/7%2f"]);
        let deep = ["/x", "/api/files/..%2F..%2Fx"];
        assert_eq!(spellings("/api/files/..%2F..%2Fx"), deep);
    }

    #[test]
    fn a_host_has_one_plain_form() {
        for (host, plain) in [
            ("example.com", "example.com"),
            ("EXAMPLE.com", "example.com"),
            ("example.com.", "example.com"),
            ("Example.com:8080", "example.com"),
            ("example.com.:80", "example.com"),
            ("[::1]:80", "[::1]"),
            ("[::1", "[::1"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8_lossy(&plain_host(host.as_bytes())), plain, "{host}");
        }
    }
}
