//! The conditions under which a rule applies to a request.
//!
//! A condition names an attribute and a list of patterns, of which one has to match. All conditions of a rule have to
//! match, so a list is an "or" and several conditions are an "and". The same conditions under `unless` are a negation:
//! a rule does not apply to a request that meets all of them.
//!
//! | pattern | matches |
//! |---|---|
//! | `"ana"` | exactly this value |
//! | `"an*"` | every value with this prefix; `"*"` alone: every request that has the attribute |
//! | `"10.0.0.0/8"` | for `ip`: an address in this network, also as an IPv4-mapped IPv6 address |
//! | `"/users/{id}"` | for `path`: any one segment in place of the braces |
//! | `"/api/{*rest}"` | for `path`: one or more segments after the prefix |
//! | `{ present = true }` | every request that has the attribute, also with an empty value |
//! | `{ missing = true }` | every request that does not have it |

mod foreign;
pub(crate) mod network;
pub(crate) mod path;
mod text;

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use foreign::escaped;
pub(crate) use network::Network;
pub(crate) use path::PathPattern;
pub(crate) use text::read_pattern;

use crate::index::PatternSet;
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
/// A rule applies if all conditions of its `when` match, at most 16. A condition on an attribute that the request lacks
/// is false, except for [`{ missing = true }`](#patterns).
///
/// Conditions are negated by `unless`, which has the same syntax and the same limits as `when`: a rule does not apply
/// to a request that meets all conditions of its `unless`. A request that meets only some of them is not excepted.
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
/// | `{ present = true }` | all | every request that has the attribute; an empty value is present |
/// | `{ missing = true }` | all | every request that does not have it |
/// | a list of these, at most 65,536 | all | any of them |
///
/// An `ip` that is no address is missing: [`Attributes::set`](crate::Attributes::set) removes it. The layers and the
/// server deny such a request, or answer it with an error.
///
/// A star stands at the end of a pattern. `\*`, `\\` and, at the beginning, `\!` are the characters themselves; TOML in
/// double quotes and Rust need each backslash twice.
///
/// Common mistakes are errors with a remedy, because such a rule would limit no request. A second star in a path, as in
/// `/api/**`, has no meaning, because one star matches slashes too; other routers write it for `/api/{*rest}`, as they
/// write `/users/:id` and `/users/<id>` for `/users/{id}`. Also errors are a lower-case method, a path with a query or
/// without its first slash, `10.0.0.1/8` with bits behind the prefix, `!ana`, and a regular expression such as
/// `^/api/.*`. A backslash before one of `* ! . ^ $ ~` makes it an ordinary character.
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
/// A limit and a denial apply if any reading matches; `decision = "allow"` applies only if all of them match. For
/// `unless` it is the other way round: a limit or a denial excepts a request only if all readings match, an `allow`
/// excepts it if any does. So an ambiguous request obtains no exemption. The key has the first reading of a path; for
/// repeated values see [`OnRepeated`](crate::OnRepeated).
#[derive(Clone, Debug)]
pub struct Condition {
    attribute: Box<str>,
    pub(crate) slot: Slot,
    pub(crate) any_of: Box<[Pattern]>,
    /// True if one of the patterns matches a request without the attribute.
    matches_missing: bool,
    /// The patterns of a long list for a lookup. A condition under which its rule is filed in the index needs none.
    set: Option<Arc<PatternSet>>,
}

impl PartialEq for Condition {
    /// The other fields follow from these.
    fn eq(&self, other: &Condition) -> bool {
        (&self.attribute, self.slot, &self.any_of) == (&other.attribute, other.slot, &other.any_of)
    }
}

impl Eq for Condition {}

/// The number of spellings of a value that have to match: any or all.
///
/// A request may have several readings of a path, or several values of a header field. A limit applies if any of them
/// matches; an exemption has to match all of them. The conditions of `unless` have the [opposite](Spellings::opposite).
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
    /// Any value, also an empty one.
    Present,
    /// No value. It matches requests without the attribute.
    Missing,
}

impl Spellings {
    /// Returns the number of spellings that an exception from such conditions has to match.
    pub(crate) fn opposite(self) -> Spellings {
        match self {
            Spellings::Any => Spellings::All,
            Spellings::All => Spellings::Any,
        }
    }
}

impl Condition {
    /// The slot has to be that of the attribute in the policy; a condition never looks up its attribute by name.
    pub(crate) fn new(attribute: &str, slot: Slot, any_of: Vec<Pattern>) -> Condition {
        let matches_missing = any_of.contains(&Pattern::Missing);
        Condition { attribute: attribute.into(), slot, any_of: any_of.into(), matches_missing, set: None }
    }

    /// Makes a lookup of the patterns if there are many, for a condition that no index looks up.
    pub(crate) fn with_lookup(self) -> Condition {
        let set = (self.any_of.len() > SHORT).then(|| Arc::new(PatternSet::new(&self.any_of)));
        Condition { set, ..self }
    }

    /// Returns the attribute of the condition.
    pub fn attribute(&self) -> &str {
        &self.attribute
    }

    /// Returns true if the condition matches the request. A condition on an attribute that the request does not have
    /// matches in both readings if one of its patterns is [`Pattern::Missing`].
    pub(crate) fn holds(&self, seen: &NormalizedRequest<'_>, reading: Spellings) -> bool {
        let holds = match reading {
            _ if self.slot == Slot::Ip => seen.ip().is_some_and(|ip| self.has(ip)),
            Spellings::Any => seen.spellings(self.slot).any(|value| self.matches(value)),
            Spellings::All => {
                !seen.is_missing(self.slot) && seen.spellings(self.slot).all(|value| self.matches(value))
            }
        };
        holds || (self.matches_missing && seen.is_missing(self.slot))
    }

    /// Returns true if any pattern matches a value.
    fn matches(&self, value: &[u8]) -> bool {
        match &self.set {
            None => self.any_of.iter().any(|pattern| pattern.matches(value)),
            Some(set) => set.matches(value),
        }
    }

    /// Returns true if any pattern matches an address.
    fn has(&self, ip: IpAddr) -> bool {
        match &self.set {
            None => self.any_of.iter().any(|pattern| pattern.has(ip)),
            Some(set) => set.has(ip),
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
        let is_wanted = reading == Spellings::Any;
        let mut spellings = seen.spellings(self.slot);
        spellings.find(|value| self.matches(value) == is_wanted).or_else(|| seen.value(self.slot))
    }

    /// Returns true if the condition matches only requests that do not have the attribute.
    pub(crate) fn requires_missing(&self) -> bool {
        self.any_of.iter().all(|pattern| *pattern == Pattern::Missing)
    }

    /// Returns true if the condition matches every request that has the attribute.
    pub(crate) fn matches_all_present(&self) -> bool {
        self.any_of.iter().any(|pattern| pattern.covers(&Pattern::Present))
    }

    /// Returns true if it is certain that no request matches both conditions. False is always a safe answer.
    pub(crate) fn is_apart_from(&self, other: &Condition) -> bool {
        self.attribute == other.attribute
            && (self.requires_missing() && !other.matches_missing
                || other.requires_missing() && !self.matches_missing)
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
    /// Returns the pattern as it is displayed under this attribute.
    pub(crate) fn shown<'p>(&'p self, attribute: &'p str) -> ShownPattern<'p> {
        ShownPattern(self, attribute)
    }

    /// Returns true if the pattern is a network that contains the address, or matches every address.
    fn has(&self, ip: IpAddr) -> bool {
        match self {
            Pattern::Network(network) => network.contains(ip),
            Pattern::Present => true,
            _ => false,
        }
    }

    /// Returns true if the pattern matches a value. A network matches no text: the address is compared as a number.
    fn matches(&self, value: &[u8]) -> bool {
        match self {
            Pattern::Exact(bytes) => **bytes == *value,
            Pattern::Prefix(bytes) => value.starts_with(bytes),
            Pattern::Path(pattern) => pattern.matches(value),
            Pattern::Present => true,
            Pattern::Network(_) | Pattern::Missing => false,
        }
    }

    /// Returns true if every value of the other pattern matches this one. Patterns of kinds that cannot be compared
    /// yield false.
    fn covers(&self, other: &Pattern) -> bool {
        match (self, other) {
            (Pattern::Missing, _) | (_, Pattern::Missing) => self == other,
            (Pattern::Present, _) => true,
            (Pattern::Prefix(wide), Pattern::Present) => wide.is_empty(),
            (Pattern::Network(wide), Pattern::Present) => *wide == Network::ALL,
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
            [only] => write!(out, "{}", only.shown(&self.attribute)),
            several => {
                out.write_str("[")?;
                for (index, pattern) in several.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(out, "{comma}{}", pattern.shown(&self.attribute))?;
                }
                out.write_str("]")
            }
        }
    }
}

/// A pattern of an attribute, displayed as in a file.
pub(crate) struct ShownPattern<'p>(&'p Pattern, &'p str);

impl fmt::Display for ShownPattern<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShownPattern(pattern, attribute) = self;
        let text = |bytes: &[u8], end: &str| escaped(attribute, &String::from_utf8_lossy(bytes), end);
        match pattern {
            Pattern::Exact(bytes) => write!(out, "{:?}", text(bytes, "")),
            Pattern::Prefix(bytes) => write!(out, "{:?}", text(bytes, "*")),
            Pattern::Network(network) => write!(out, "\"{network}\""),
            Pattern::Path(pattern) => write!(out, "\"{pattern}\""),
            Pattern::Present => out.write_str("{ present = true }"),
            Pattern::Missing => out.write_str("{ missing = true }"),
        }
    }
}
