//! A request as the rules of a policy see it: only the attributes that rules use, in a normalized form.
//!
//! A path or a host has many equivalent spellings. Rules see a normalized one, so that a spelling cannot bypass a rule.
//! A backend may read a path differently: keep `%2F` or `..`, drop what follows a `;`, or stop at a NUL. In these cases
//! rules see each of the spellings.
//!
//! ```text
//!   request target          what rules see, the first one is the value in a key
//!   /a/b?x=1                /a/b
//!   /a//./b/                /a/b/, and the target as received
//!   /a/%62                  /a/b, and the target as received
//!   /a%2Fb                  /a/b, and /a%2Fb as one segment
//!   /a;v=1/b                /a/b, /a;v=1/b
//!   /a#/../b                /a, and /b for a server that knows no fragments
//!   http://shop/a           /a, and the target as received
//! ```
//!
//! Attributes are numbered once per policy. A request is compared by numbers and not by names, and attributes that no
//! rule uses cost one bit test each.

use std::borrow::Cow;
use std::net::IpAddr;

use smallvec::SmallVec;
use tidegate_support::decoded;

use crate::attributes::{Attributes, IP, canonical};
use crate::index::QuickMap;
use crate::key::Grouping;

/// The number of values of a request that need no allocation.
const FEW: usize = 6;

/// The number of an attribute in a policy.
///
/// The address has no number, because it is typed and is never looked up by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Slot {
    /// The address.
    Ip,
    /// Any other attribute.
    Value(u32),
}

impl Slot {
    /// Returns the index in a list of all attributes. The address uses 0, because networks have a list of their own.
    pub(crate) fn number(self) -> usize {
        match self {
            Slot::Ip => 0,
            Slot::Value(number) => number as usize,
        }
    }
}

/// The attributes that the rules of a policy use.
///
/// It is built while rules are validated, and is immutable in a policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    values: QuickMap<Box<str>, KnownName>,
    /// The number of attributes other than `ip` that rules use.
    count: u32,
    /// A bit set of all names. Most names that are not known are rejected without hashing.
    bits: u64,
    /// True if a rule uses the address.
    has_ip: bool,
}

/// A name that a policy knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KnownName {
    /// A rule uses the attribute.
    Used(u32, Plain),
    /// The attribute is declared, and no rule uses it.
    Declared,
}

/// The normalization of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plain {
    /// Compared byte by byte.
    AsItIs,
    /// Without its query, decoded and resolved; several spellings if backends may read it differently.
    Path,
    /// In lower case, without a port and without a final dot.
    Host,
    /// In upper case, and as received if it was not: a backend may accept either.
    Method,
}

impl Slots {
    /// Returns the number of this attribute, and assigns one if it has none.
    ///
    /// Numbers are assigned in the order of first use, so they depend on the order of the rules and are valid only
    /// within one policy.
    pub(crate) fn of(&mut self, name: &str) -> Slot {
        if name == IP {
            self.has_ip = true;
            return Slot::Ip;
        }
        let plain = match name {
            "path" => Plain::Path,
            "host" => Plain::Host,
            "method" => Plain::Method,
            _ => Plain::AsItIs,
        };
        let name = canonical(name.into());
        self.bits |= name_bit(&name);
        let known = self.values.entry(name.into()).or_insert(KnownName::Declared);
        if let KnownName::Used(number, _) = known {
            return Slot::Value(*number);
        }
        let number = self.count;
        *known = KnownName::Used(number, plain);
        self.count += 1;
        Slot::Value(number)
    }

    /// Adds a declared attribute, which rules may use or not.
    pub(crate) fn declare(&mut self, name: &str) {
        let name = canonical(name.into());
        self.bits |= name_bit(&name);
        self.values.entry(name.into()).or_insert(KnownName::Declared);
    }

    /// Returns true if a rule uses the attribute, or it is declared or well known.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.values.contains_key(name) || is_well_known(name)
    }

    /// Returns all names in alphabetical order.
    pub(crate) fn names(&self) -> Box<[Box<str>]> {
        let used = self.values.iter().filter(|(_, known)| **known != KnownName::Declared);
        let mut names: Vec<Box<str>> = used.map(|(name, _)| name.clone()).collect();
        names.extend(self.has_ip.then(|| IP.into()));
        names.sort_unstable();
        names.into()
    }

    /// Borrows every value that is normalized already, as nearly all are. Up to six values need no allocation.
    ///
    /// Cost: a bit test and a comparison per attribute that no rule uses, one hash per attribute that some rule uses.
    pub(crate) fn see<'a>(&self, attributes: &'a Attributes<'_>) -> NormalizedRequest<'a> {
        let mut values = SmallVec::new();
        let mut last_of_several: Vec<(Slot, usize)> = Vec::new();
        let mut unknown = 0;
        for (name, value) in attributes.each() {
            let bit = name_bit(name);
            let known = if self.bits & bit == 0 { None } else { self.values.get(name) };
            let (slot, plain) = match known {
                Some(KnownName::Used(slot, plain)) => (Slot::Value(*slot), plain),
                Some(KnownName::Declared) => continue,
                None => {
                    unknown |= if is_well_known(name) { 0 } else { bit };
                    continue;
                }
            };
            if values.iter().any(|(known, _)| *known == slot) {
                last_of_several.retain(|(known, _)| *known != slot);
                last_of_several.push((slot, values.len()));
            }
            match plain {
                Plain::AsItIs => values.push((slot, Cow::Borrowed(value))),
                Plain::Host => values.push((slot, plain_host(value))),
                Plain::Method => {
                    if value.iter().any(u8::is_ascii_lowercase) {
                        values.push((slot, Cow::Owned(value.to_ascii_uppercase())));
                    }
                    values.push((slot, Cow::Borrowed(value)));
                }
                Plain::Path => each_spelling(value, |spelling| values.push((slot, spelling))),
            }
        }
        let (ip, grouping) = (attributes.address(), attributes.grouping);
        NormalizedRequest { ip, grouping, values, last_of_several, unknown }
    }
}

/// Returns the bit of a name, from its length and its first byte.
///
/// Two names may share a bit. The filter has no false negatives, and a false positive costs one hash lookup.
fn name_bit(name: &str) -> u64 {
    let first = name.as_bytes().first().copied().unwrap_or_default();
    1 << ((name.len() + 7 * usize::from(first)) % 64)
}

/// A request as the rules of a policy see it.
///
/// It borrows from the [`Attributes`]. A repeated attribute, a path with several readings and a lower-case method have
/// several values under one slot.
#[derive(Clone, Debug)]
pub(crate) struct NormalizedRequest<'a> {
    ip: Option<IpAddr>,
    grouping: Option<Grouping>,
    values: SmallVec<[(Slot, Cow<'a, [u8]>); FEW]>,
    /// The index of the last value of each attribute with several values.
    last_of_several: Vec<(Slot, usize)>,
    /// The bits of the names that no rule uses, and that are neither declared nor well known.
    unknown: u64,
}

/// Returns true for the attributes that frontends provide. A request may have them although no rule uses them.
pub(crate) fn is_well_known(name: &str) -> bool {
    match name.as_bytes().first() {
        Some(b'h') => name == "host" || name.starts_with("header."),
        Some(b'p') => name == "path",
        Some(b'm') => name == "method",
        Some(b'c') => name.starts_with("cookie."),
        Some(b'q') => name.starts_with("query."),
        Some(b'i') => name == IP,
        _ => false,
    }
}

impl NormalizedRequest<'_> {
    /// Returns the client address, if the request has one.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.ip
    }

    /// Returns a bit for each attribute that no rule uses, and that is neither declared nor well known. Two names may share
    /// a bit.
    pub(crate) fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Returns the minimum size of the groups in which the address is counted.
    pub(crate) fn grouping(&self) -> Option<Grouping> {
        self.grouping
    }

    /// Returns all spellings of all values of an attribute, the normalized first value first.
    pub(crate) fn spellings(&self, slot: Slot) -> impl Iterator<Item = &[u8]> {
        self.values.iter().filter(move |(of, _)| *of == slot).map(|(_, value)| &**value)
    }

    /// Returns the first value of an attribute, normalized. Keys use it unless a rule says `on_repeated = "last"`.
    pub(crate) fn value(&self, slot: Slot) -> Option<&[u8]> {
        self.values.iter().find(|(of, _)| *of == slot).map(|(_, value)| &**value)
    }

    /// Returns true if the request does not have an attribute.
    pub(crate) fn is_missing(&self, slot: Slot) -> bool {
        match slot {
            Slot::Ip => self.ip.is_none(),
            Slot::Value(_) => self.value(slot).is_none(),
        }
    }

    /// Returns the last value of an attribute.
    ///
    /// For an attribute with one value that is the first spelling of it, as for [`NormalizedRequest::value`].
    pub(crate) fn last(&self, slot: Slot) -> Option<&[u8]> {
        match self.last_of_several.iter().find(|(of, _)| *of == slot) {
            Some((_, at)) => self.values.get(*at).map(|(_, value)| &**value),
            None => self.value(slot),
        }
    }

    /// Returns true if an attribute has several values.
    ///
    /// Several spellings of one value do not count: only a second value that the request carries.
    pub(crate) fn is_repeated(&self, slot: Slot) -> bool {
        self.last_of_several.iter().any(|(of, _)| *of == slot)
    }

    /// Returns every spelling of every value with its slot, for a lookup in the index.
    pub(crate) fn values(&self) -> impl Iterator<Item = (Slot, &[u8])> {
        self.values.iter().map(|(slot, value)| (*slot, &**value))
    }
}

/// Returns a path without its query, with `%41` decoded to `A`, `//` merged to `/`, and `.` and `..` resolved.
///
/// Used for patterns of rules. A path that does not begin with a slash is returned unchanged.
pub(crate) fn plain_path(path: &[u8]) -> Cow<'_, [u8]> {
    let path = without_query(path);
    let is_plain = !path.contains(&b'%') && !path.windows(2).any(|two| matches!(two, b"//" | b"/."));
    if is_plain || path.first() != Some(&b'/') {
        return Cow::Borrowed(path);
    }
    walked(&decoded(path)).into()
}

/// Returns the path before its query or fragment.
fn without_query(path: &[u8]) -> &[u8] {
    let end = path.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(path.len());
    &path[..end]
}

/// Calls `see` with every reading of a request's path, each once. The first is the one that keys use: that of the
/// backend that drops most. The last is the path as received.
///
/// Servers disagree about `;` (a servlet container drops what follows), `%2F` (a separator or a byte of a segment), NUL
/// (the end of a C string) and `#` (a fragment, or a byte of a path, as no request should have one). All combinations
/// are visited: at most twelve, and the target as received.
fn each_spelling<'a>(path: &'a [u8], mut see: impl FnMut(Cow<'a, [u8]>)) {
    if has_one_spelling(path) {
        return see(Cow::Borrowed(path));
    }
    let raw = without_query(path);
    let target = without_authority(raw);
    let is_odd = |byte: &u8| matches!(byte, b'%' | b';' | b'\0');
    let whole = path.split(|byte| *byte == b'?').next().unwrap_or_default();
    let with_fragment = whole.contains(&b'#').then(|| without_authority(whole));
    let is_plain = with_fragment.is_none()
        && !target.iter().any(is_odd)
        && !target.windows(2).any(|two| matches!(two, b"//" | b"/."));
    if is_plain || target.first() != Some(&b'/') {
        see(Cow::Borrowed(target));
        if target.len() < raw.len() {
            see(Cow::Borrowed(raw));
        }
        return;
    }
    let mut seen: Vec<Vec<u8>> = Vec::new();
    let mut note = |spelling: Vec<u8>| {
        if !seen.contains(&spelling) {
            seen.push(spelling);
        }
    };
    let bare = target.contains(&b';').then(|| without_parameters(target));
    for text in [bare.as_deref(), Some(target), with_fragment].into_iter().flatten() {
        for plain in [Some(decoded(text).into_owned()), with_slashes_kept(text)].into_iter().flatten() {
            note(walked(until_nul(&plain)));
            note(walked(&plain));
        }
    }
    let is_raw_new = seen.iter().all(|spelling| spelling != raw);
    seen.into_iter().for_each(|spelling| see(Cow::Owned(spelling)));
    if is_raw_new {
        see(Cow::Borrowed(raw));
    }
}

/// Returns true if a path is normalized already, in one pass. Nearly all paths are.
fn has_one_spelling(path: &[u8]) -> bool {
    let mut before = 0;
    let is_plain = path.iter().all(|byte| {
        let is_odd = IS_ODD[usize::from(*byte)] || (before == b'/' && matches!(byte, b'/' | b'.'));
        before = *byte;
        !is_odd
    });
    is_plain && path.first() == Some(&b'/')
}

/// The bytes that end a path, begin an encoding or parameters, or may follow a scheme.
///
/// A table lookup per byte keeps the check of an ordinary path at one pass without branches.
const IS_ODD: [bool; 256] = {
    let mut table = [false; 256];
    let odd = b"?#%;:\0";
    let mut at = 0;
    while at < odd.len() {
        table[odd[at] as usize] = true;
        at += 1;
    }
    table
};

/// Returns the path of a target with a host, such as `http://example.com/login`. Any other target is returned
/// unchanged.
///
/// A proxy receives such targets ("absolute form", RFC 9112 section 3.2.2).
fn without_authority(target: &[u8]) -> &[u8] {
    let Some(colon) = target.iter().position(|byte| *byte == b':') else { return target };
    let (scheme, rest) = target.split_at(colon);
    let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
    match rest.strip_prefix(b"://").filter(|_| is_scheme) {
        Some(rest) => rest.iter().position(|byte| *byte == b'/').map_or(b"/", |slash| &rest[slash..]),
        None => target,
    }
}

/// Cuts each segment of a path at its first `;`, as servlet containers do.
///
/// Parameters belong to a segment, so each segment is cut on its own: `/a;x/b;y` is `/a/b`.
fn without_parameters(path: &[u8]) -> Vec<u8> {
    let pieces = path.split(|byte| *byte == b'/');
    let bare = pieces.map(|piece| piece.split(|byte| *byte == b';').next().unwrap_or_default());
    bare.collect::<Vec<_>>().join(&b'/')
}

/// Returns a path up to its first NUL, where a C string ends.
fn until_nul(path: &[u8]) -> &[u8] {
    path.split(|byte| *byte == b'\0').next().unwrap_or_default()
}

/// Returns a decoded path in which `%2F` stays within its segment; `None` if it has no `%2F`.
///
/// A backend that decodes after it splits the path sees such a segment with a slash in it.
fn with_slashes_kept(path: &[u8]) -> Option<Vec<u8>> {
    let is_coded = |three: &[u8]| three.eq_ignore_ascii_case(b"%2F");
    path.windows(3).any(is_coded).then(|| {
        // An encoded percent sign decodes back to `%2F`.
        let mut again = Vec::with_capacity(path.len() + 8);
        let mut rest = path;
        while let [first, more @ ..] = rest {
            if rest.get(..3).is_some_and(is_coded) {
                again.extend_from_slice(b"%252F");
                rest = &rest[3..];
            } else {
                again.push(*first);
                rest = more;
            }
        }
        decoded(&again).into_owned()
    })
}

/// Returns the normalized common prefix of all paths with this prefix: the path up to its last slash, then the partial
/// segment after it.
pub(crate) fn plain_beginning(path: &[u8]) -> Vec<u8> {
    let decoded = decoded(path);
    match decoded.iter().rposition(|byte| *byte == b'/') {
        Some(slash) if decoded.first() == Some(&b'/') => {
            [&walked(&decoded[..=slash])[..], &decoded[slash + 1..]].concat()
        }
        _ => decoded.into_owned(),
    }
}

/// Resolves `.`, `..` and empty segments in a decoded path that begins with a slash.
///
/// `..` at the root stays at the root, as RFC 3986 section 5.2.4 says. A path that ended in `.` or `..` ends in a
/// slash.
fn walked(path: &[u8]) -> Vec<u8> {
    let mut pieces: Vec<&[u8]> = Vec::new();
    let mut all = path.get(1..).unwrap_or_default().split(|byte| *byte == b'/').peekable();
    while let Some(piece) = all.next() {
        let is_last = all.peek().is_none();
        match piece {
            b"." => {}
            b".." => drop(pieces.pop()),
            b"" if !is_last => {}
            piece => pieces.push(piece),
        }
        // A path that ended in a slash still does.
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

/// Returns a host in lower case, without a port and without a trailing dot.
///
/// The port of an IPv6 address is found behind its brackets. The host is not validated.
pub fn plain_host(host: &[u8]) -> Cow<'_, [u8]> {
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
        assert_eq!(spellings("/login;x=1"), ["/login", "/login;x=1"]);
        assert_eq!(spellings("/x/..;/login"), ["/login", "/x/..;/login"]);
        assert_eq!(spellings("/a;b/c;d?e"), ["/a/c", "/a;b/c;d"]);
        assert_eq!(spellings("/login%3Bx"), ["/login;x", "/login%3Bx"]);
        assert_eq!(spellings("/login%00.png"), ["/login", "/login\0.png", "/login%00.png"]);
        assert_eq!(spellings("/login\0"), ["/login", "/login\0"]);
        assert_eq!(spellings("/%00"), ["/", "/\0", "/%00"]);
        assert_eq!(spellings("/;"), ["/", "/;"]);
        assert_eq!(spellings("/login#top"), ["/login", "/login#top"]);
        assert_eq!(spellings("/health#/../login?q#r"), ["/health", "/login"]);
        assert_eq!(spellings("/login?q#/../health"), ["/login"]);
        assert_eq!(
            spellings("/a;x%2F..%00/b"),
            ["/a/b", "/", "/a;x/..\0/b", "/a;x%2F..", "/a;x%2F..\0/b", "/a;x%2F..%00/b"]
        );
    }

    #[test]
    fn a_target_with_a_host_is_seen_by_its_path_too() {
        for (target, path) in [
            ("http://example.com/login", "/login"),
            ("HTTPS://example.com:8443/login", "/login"),
            ("http://example.com", "/"),
            ("h2+x-1.0://a/b/c", "/b/c"),
            ("/http://a/b", "/http://a/b"),
            ("://a/b", "://a/b"),
            ("1http://a/b", "1http://a/b"),
            ("ht tp://a/b", "ht tp://a/b"),
            ("http:/a/b", "http:/a/b"),
            ("example.com:443", "example.com:443"),
        ] {
            assert_eq!(String::from_utf8_lossy(without_authority(target.as_bytes())), path, "{target}");
        }
        let mut slots = Slots::default();
        let slot = slots.of("path");
        let request = Attributes::new().set("path", "http://a/x/../login?q");
        let seen = slots.see(&request);
        assert_eq!(
            seen.spellings(slot).collect::<Vec<_>>(),
            [&b"/login"[..], b"http://a/x/../login"],
            "the path is read like any other"
        );
    }

    #[test]
    fn a_method_is_seen_in_upper_case_and_as_it_came() {
        let mut slots = Slots::default();
        let slot = slots.of("method");
        for (method, expected) in [("POST", &["POST"][..]), ("post", &["POST", "post"]), ("", &[""])] {
            let request = Attributes::new().set("method", method);
            let seen = slots.see(&request);
            let texts: Vec<_> = seen.spellings(slot).map(String::from_utf8_lossy).collect();
            assert_eq!(texts, expected, "{method}");
        }
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
            ("[2001:DB8::1]:443", "[2001:db8::1]"),
            ("[::1", "[::1"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8_lossy(&plain_host(host.as_bytes())), plain, "{host}");
        }
    }
}
