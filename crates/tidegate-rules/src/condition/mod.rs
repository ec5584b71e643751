//! The conditions under which a rule applies to a request.
//!
//! A condition names an attribute and a list of patterns, of which one has to match. All conditions of a rule have to
//! match, so a list is an "or" and several conditions are an "and". There is no negation: a rule with
//! `decision = "allow"` exempts requests from later rules.
//!
//! | pattern | matches |
//! |---|---|
//! | `"ana"` | exactly this value |
//! | `"an*"` | every value with this prefix; `"*"` alone: every request that has the attribute |
//! | `"10.0.0.0/8"` | for `ip`: an address in this network, also as an IPv4-mapped IPv6 address |
//! | `"/users/{id}"` | for `path`: any one segment in place of the braces |
//! | `"/api/{*rest}"` | for `path`: one or more segments after the prefix |

pub(crate) mod network;
pub(crate) mod path;
mod text;

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;

pub(crate) use network::Network;
pub(crate) use path::PathPattern;
pub(crate) use text::read_pattern;

use crate::normalized::{NormalizedRequest, Slot};

/// The list length up to which all pairs of patterns are compared.
const SHORT: usize = 16;
/// The maximum number of pairs of patterns that are compared to find out if one list covers another.
const MAX_PAIRS: usize = 1 << 20;

/// A condition: one attribute has to match any of these patterns.
///
/// It displays as in a policy file, with its patterns normalized:
///
/// ```
/// use tidegate::rules::Policy;
///
/// let policy = Policy::from_toml("[[rule]]\nname = 'a'\nlimit = '1/s'\nwhen = { path = ['/a//b', '/c/{id}'] }")?;
/// let condition = &policy.rules()[0].conditions()[0];
/// assert_eq!(condition.attribute(), "path");
/// assert_eq!(condition.to_string(), r#"path = ["/a/b", "/c/{id}"]"#);
/// # Ok::<(), tidegate::rules::PolicyError>(())
/// ```
///
/// A rule applies if all of its conditions match, at most 16. A condition on an attribute that the request lacks is
/// false. Conditions cannot be negated: a rule with `decision = "allow"` exempts requests from all limits.
///
/// # Attributes
///
/// | attribute | value | seen by conditions and keys |
/// |---|---|---|
/// | `ip` | the client address | as an address: `::ffff:192.0.2.7` is `192.0.2.7` |
/// | `path` | the request path | without query and fragment; `%41` as `A`, `//` as `/`, `.` and `..` resolved |
/// | `method` | the method | in upper case |
/// | `host` | the host | in lower case, without port and trailing dot |
/// | `header.NAME` | a header field; `NAME` in any case | as received |
/// | `cookie.NAME` | a cookie | as received |
/// | `query.NAME` | a query parameter | as received |
/// | any other name, such as `user` | a value of the program | as received |
///
/// Names have letters, digits and `_ - .`, at most 128 bytes. Except for the names of header fields they are compared
/// byte by byte: `User` is another attribute than `user`.
///
/// The layer `RateLimitLayer::rules` of `tidegate::tower` sets all attributes of this table but the last, which the
/// program adds by `RateLimitLayer::attribute`. It decodes query parameters as forms are decoded, and removes the
/// quotes around a cookie. A program that calls [`Gate::admit`](crate::Gate::admit) sets every attribute itself, by
/// [`Attributes::set`](crate::Attributes::set).
///
/// # Patterns
///
/// | pattern | attributes | matches |
/// |---|---|---|
/// | `ana` | all but `ip` | exactly this value; an empty pattern matches an empty value |
/// | `an*` | all but `ip` | every value with this prefix |
/// | `*` | all but `ip` | every value, so every request that has the attribute |
/// | `192.0.2.7` | `ip` | this address |
/// | `10.0.0.0/8`, `2001:db8::/32` | `ip` | every address of this network (CIDR); `::/0` is every address |
/// | `/login` | `path` | this path: `/login/` is another one |
/// | `/static/*` | `path` | every path with this prefix, whatever the number of its slashes |
/// | `/users/{id}/posts` | `path` | any one segment in place of `{id}`, but not an empty one |
/// | `/api/{*rest}` | `path` | everything below: `/api/x` and `/api/x/y`, but neither `/api` nor `/api/` |
/// | a list of these, at most 65,536 | all | any of them |
///
/// A star stands at the end of a pattern. `\*`, `\\` and, at the beginning, `\!` are the characters themselves; TOML in
/// double quotes and Rust need each backslash twice.
///
/// Common mistakes are errors with a remedy, because such a rule would limit no request. A second star in a path, as in
/// `/api/**`, has no meaning, because one star matches slashes too; other routers write it for `/api/{*rest}`, as they
/// write `/users/:id` and `/users/<id>` for `/users/{id}`. Also errors are a lower-case method, a path with a query or
/// without its first slash, `10.0.0.1/8` with bits behind the prefix, and `!ana`.
///
/// ```
/// use tidegate::rules::{Attributes, Policy, Rule};
///
/// let admin = Rule::builder("admin").when_any("path", ["/admin", "/admin/{*rest}"]).limit("1/s");
/// let policy = Policy::builder().rule(admin).build()?;
/// let applies = |path| !policy.matching(&Attributes::new().path(path)).is_empty();
/// assert!(applies("/admin") && applies("/admin/users/7") && applies("/x/..//%61dmin?page=2"));
/// assert!(!applies("/admin/") && !applies("/administrators"));
///
/// let api = Rule::builder("api").when("path", "/api/**").limit("1/s");
/// let error = Policy::builder().rule(api).build().unwrap_err();
/// assert!(error.to_string().contains("write \"/api/{*rest}\" for all below"), "{error}");
/// # Ok::<(), tidegate::rules::PolicyError>(())
/// ```
///
/// # Several readings
///
/// A backend may read a request in another way than the rules do. So a path has several readings: as received, with
/// `%2F` kept within its segment, without what follows a `;` in each segment, and up to a NUL. A method that is not in
/// upper case is also read as received. A repeated header field, cookie or query parameter has all of its values.
///
/// A limit and a denial apply if any reading matches; `decision = "allow"` applies only if all of them match. The key
/// has the first reading of a path; for repeated values see [`OnRepeated`](crate::OnRepeated).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    attribute: Box<str>,
    pub(crate) slot: Slot,
    pub(crate) any_of: Box<[Pattern]>,
}

/// The number of spellings of a value that have to match: any or all.
///
/// A request may have several readings of a path, or several values of a header field. A limit applies if any of them
/// matches; an exemption has to match all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spellings {
    /// Any spelling that matches is enough: for limits and denials.
    Any,
    /// Every spelling has to match, and there has to be one: for exemptions. So a client cannot obtain an exemption by
    /// an ambiguous spelling.
    All,
}

/// A pattern for the value of an attribute.
///
/// The order is arbitrary but total, so that patterns can be sorted and compared as sets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Pattern {
    /// Exactly these bytes.
    Exact(Box<[u8]>),
    /// Any value with this prefix. An empty prefix matches every value.
    Prefix(Box<[u8]>),
    /// An address in this network.
    Network(Network),
    /// A path that matches this pattern.
    Path(PathPattern),
}

impl Condition {
    /// The slot has to be that of the attribute in the policy; a condition never looks up its attribute by name.
    pub(crate) fn new(attribute: &str, slot: Slot, any_of: Vec<Pattern>) -> Condition {
        Condition { attribute: attribute.into(), slot, any_of: any_of.into_boxed_slice() }
    }

    /// Returns the attribute of the condition.
    pub fn attribute(&self) -> &str {
        &self.attribute
    }

    /// Returns true if the condition matches the request. A condition on an attribute that the request does not have is
    /// false in both readings.
    pub(crate) fn holds(&self, seen: &NormalizedRequest<'_>, reading: Spellings) -> bool {
        if self.slot == Slot::Ip {
            return seen.ip().is_some_and(|ip| self.any_of.iter().any(|pattern| pattern.has(ip)));
        }
        let matches = |value: &[u8]| self.any_of.iter().any(|pattern| pattern.matches(value));
        match reading {
            Spellings::Any => seen.spellings(self.slot).any(matches),
            Spellings::All => seen.value(self.slot).is_some() && seen.spellings(self.slot).all(matches),
        }
    }

    /// Returns the spelling of a value that decides whether the condition matches.
    ///
    /// With [`Spellings::Any`] that is the first match, with [`Spellings::All`] the first one that does not match. If
    /// no spelling decides, it is the first value. Used to explain decisions.
    pub(crate) fn decisive<'s>(
        &self,
        seen: &'s NormalizedRequest<'_>,
        reading: Spellings,
    ) -> Option<&'s [u8]> {
        let matches = |value: &[u8]| self.any_of.iter().any(|pattern| pattern.matches(value));
        let is_wanted = reading == Spellings::Any;
        let mut spellings = seen.spellings(self.slot);
        spellings.find(|value| matches(value) == is_wanted).or_else(|| seen.value(self.slot))
    }

    /// Returns true if everything that matches the other condition matches this one. Returns false for lists that are
    /// too long to compare.
    ///
    /// It is used for warnings and for the search of rules that apply together. False is always a safe answer: it can
    /// only suppress a warning.
    pub(crate) fn covers(&self, other: &Condition) -> bool {
        if self.attribute != other.attribute {
            return false;
        }
        if self.any_of.len() <= SHORT {
            return other.any_of.iter().all(|narrow| self.any_of.iter().any(|wide| wide.covers(narrow)));
        }
        if self.any_of == other.any_of {
            return true;
        }
        let known: HashSet<_> = self.any_of.iter().collect();
        let wide: Vec<_> = self.any_of.iter().filter(|wide| !matches!(wide, Pattern::Exact(_))).collect();
        let mut left = MAX_PAIRS;
        other.any_of.iter().all(|narrow| {
            known.contains(narrow)
                || left.checked_sub(wide.len()).is_some_and(|rest| {
                    left = rest;
                    wide.iter().any(|wide| wide.covers(narrow))
                })
        })
    }
}

impl Pattern {
    /// Returns true if the pattern is a network that contains the address.
    fn has(&self, ip: IpAddr) -> bool {
        matches!(self, Pattern::Network(network) if network.contains(ip))
    }

    /// Returns true if the pattern matches a value. A network matches no text: the address is compared as a number.
    fn matches(&self, value: &[u8]) -> bool {
        match self {
            Pattern::Exact(bytes) => **bytes == *value,
            Pattern::Prefix(bytes) => value.starts_with(bytes),
            Pattern::Path(pattern) => pattern.matches(value),
            Pattern::Network(_) => false,
        }
    }

    /// Returns true if every value of the other pattern matches this one. Patterns of kinds that cannot be compared
    /// yield false.
    fn covers(&self, other: &Pattern) -> bool {
        match (self, other) {
            (Pattern::Exact(wide), Pattern::Exact(narrow)) => wide == narrow,
            (Pattern::Prefix(wide), Pattern::Exact(narrow) | Pattern::Prefix(narrow)) => {
                narrow.starts_with(wide)
            }
            (Pattern::Network(wide), Pattern::Network(narrow)) => wide.covers(narrow),
            (Pattern::Path(wide), Pattern::Path(narrow)) => wide.covers(narrow),
            (Pattern::Path(wide), Pattern::Exact(narrow)) => wide.matches(narrow),
            (Pattern::Prefix(wide), Pattern::Path(narrow)) => narrow.literal_beginning().starts_with(wide),
            _ => false,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} = ", self.attribute)?;
        match &*self.any_of {
            [only] => write!(out, "{only}"),
            several => {
                out.write_str("[")?;
                for (index, pattern) in several.iter().enumerate() {
                    write!(out, "{}{pattern}", if index > 0 { ", " } else { "" })?;
                }
                out.write_str("]")
            }
        }
    }
}

/// Formats the pattern as written in a file.
impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).replace('\\', "\\\\").replace('*', "\\*");
            if text.starts_with('!') { format!("\\{text}") } else { text }
        };
        match self {
            Pattern::Exact(bytes) => write!(out, "{:?}", text(bytes)),
            Pattern::Prefix(bytes) => write!(out, "{:?}", format!("{}*", text(bytes))),
            Pattern::Network(network) => write!(out, "\"{network}\""),
            Pattern::Path(pattern) => write!(out, "\"{pattern}\""),
        }
    }
}
