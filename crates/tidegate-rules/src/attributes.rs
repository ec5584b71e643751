//! The attributes of a request.
//!
//! An attribute is a name with one or more values. A frontend fills in what it knows about a request; a rule reads only
//! the names that it mentions. Names are compared byte by byte, except for header fields:
//!
//! ```text
//! ip             the client address; typed, so that networks match and addresses can be grouped
//! path           the path of the request, with or without its query
//! host, method   of an HTTP request
//! header.NAME    a header field; NAME in any case
//! cookie.NAME    a cookie            query.NAME   a parameter of the query
//! any other      a name that the caller chooses, such as user, tenant or plan
//! ```
//!
//! Values are bytes. They are not decoded or validated here: [`crate::Policy`] normalizes the values that its rules
//! use.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use tidegate_core::Cost;

use crate::key::Grouping;

/// The name of the attribute that is an address.
pub(crate) const IP: &str = "ip";
/// The prefix of attributes that are header fields. The rest of the name is case-insensitive.
const HEADER: &str = "header.";

/// The attributes of one request: names and values, its cost, its max wait, and the extent of the answer.
///
/// ```
/// use tidegate::rules::Attributes;
///
/// let ip = "192.0.2.7".parse()?;
/// let request = Attributes::new().ip(ip).path("/api/x").set("user", "ana").set("header.X-Plan", "free");
/// assert_eq!(request.get("header.x-plan"), Some(&b"free"[..]));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
///
/// Names and values are borrowed where possible, so a set for one request costs one allocation for its list.
/// [`Attributes::cleared`] reuses that allocation for the next request of a connection.
///
/// Any name is an attribute. Those that the layers of `tidegate::tower` set, and the form in which rules see each, are
/// [listed at `Condition`](crate::Condition#attributes).
///
/// An attribute has one value if it was [set](Attributes::set), and possibly several if it was
/// [added](Attributes::add). A rule that counts by an attribute with several values follows its `on_repeated`, because
/// a backend may read any of them.
#[derive(Clone, Debug, Default)]
pub struct Attributes<'a> {
    ip: Option<IpAddr>,
    pub(crate) grouping: Option<Grouping>,
    each: Vec<(Cow<'a, str>, Value<'a>)>,
    pub(crate) cost: Cost,
    pub(crate) max_wait: Option<Duration>,
    /// True if the answer contains every limit that decided, and not only the binding one.
    pub(crate) all_limits: bool,
}

/// The value of an attribute, in bytes.
///
/// It is made from text or bytes, borrowed or owned. Values that are not UTF-8 are allowed; patterns compare bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value<'a>(pub(crate) Cow<'a, [u8]>);

impl<'a> Attributes<'a> {
    /// Creates an empty set of attributes.
    ///
    /// Its cost is 1, and the caller accepts any delay that the rules grant.
    pub fn new() -> Attributes<'a> {
        Attributes::default()
    }

    /// Sets the client address. An IPv4-mapped IPv6 address becomes the IPv4 address.
    ///
    /// Use it in place of `set("ip", …)` when the address is known already: nothing has to be parsed. The address has
    /// to be that of the client, not of a proxy in front; a rule cannot know the difference.
    #[must_use]
    pub fn ip(self, ip: IpAddr) -> Attributes<'a> {
        Attributes { ip: Some(ip.to_canonical()), ..self }
    }

    /// Returns the size of all names and values, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.each.iter().map(|(name, value)| name.len() + value.0.len()).sum()
    }

    /// Groups the address by these prefix lengths, also under rules with longer prefixes. Rules with shorter prefixes
    /// keep theirs. Conditions match the whole address.
    ///
    /// A frontend uses it when its operator wants larger groups than a rule does.
    ///
    /// ```
    /// use tidegate::rules::{Attributes, Grouping};
    ///
    /// let grouping = Grouping { ipv4_bits: 24, ..Grouping::default() };
    /// let request = Attributes::new().ip("192.0.2.7".parse()?).grouped(grouping);
    /// assert_eq!(request.address(), Some("192.0.2.7".parse()?)); // conditions see the whole address
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    #[must_use]
    pub fn grouped(self, grouping: Grouping) -> Attributes<'a> {
        Attributes { grouping: Some(grouping), ..self }
    }

    /// Sets the request path, without the query.
    ///
    /// A query or fragment is accepted and ignored. Percent-encoding, `//`, `.` and `..` need no handling by the
    /// caller: rules see the normalized path, and every other reading that a backend may have of it.
    #[must_use]
    pub fn path(self, path: &'a str) -> Attributes<'a> {
        self.set("path", path)
    }

    /// Sets an attribute, and replaces its value if it exists. An invalid address removes `ip`, as if it were missing;
    /// see [`Attributes::try_set`].
    ///
    /// All values that were [added](Attributes::add) before are replaced.
    ///
    /// ```
    /// use tidegate::rules::Attributes;
    ///
    /// let request = Attributes::new().set("user", "ana").set("user", "bob").set("ip", "localhost");
    /// assert_eq!(request.get("user"), Some(&b"bob"[..]));
    /// assert!(!request.has("ip"));
    /// ```
    #[must_use]
    pub fn set(mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Value<'a>>) -> Attributes<'a> {
        let _ = self.put(name.into(), value.into());
        self
    }

    /// Sets an attribute, but returns an error if `ip` is not a valid address.
    ///
    /// # Errors
    /// [`NoAddress`] if the name is `ip` and the value is no address. Any other attribute accepts every value.
    pub fn try_set(
        mut self,
        name: impl Into<Cow<'a, str>>,
        value: impl Into<Value<'a>>,
    ) -> Result<Attributes<'a>, NoAddress> {
        self.put(name.into(), value.into()).map(|()| self)
    }

    /// Inserts an attribute that does not exist yet, in place.
    ///
    /// Use it for attributes from a client, where a second value is an error and must not replace the first.
    ///
    /// # Errors
    /// [`NotInserted::Twice`] if the attribute exists, [`NotInserted::NoAddress`] if it is `ip` and the value is no
    /// address. The attributes are unchanged then.
    ///
    /// ```
    /// use tidegate::rules::{Attributes, NotInserted};
    ///
    /// let mut request = Attributes::new();
    /// assert_eq!(request.insert_new("user", "ana"), Ok(()));
    /// assert_eq!(request.insert_new("user", "bob"), Err(NotInserted::Twice));
    /// assert_eq!(request.insert_new("ip", "192.0.2.7:80"), Err(NotInserted::NoAddress));
    /// ```
    pub fn insert_new(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        value: impl Into<Value<'a>>,
    ) -> Result<(), NotInserted> {
        let (name, value) = (canonical(name.into()), value.into());
        if name == IP {
            if self.ip.is_some() {
                return Err(NotInserted::Twice);
            }
            self.ip = Some(address(&value.0).ok_or(NotInserted::NoAddress)?);
        } else if self.each.iter().any(|(of, _)| *of == name) {
            return Err(NotInserted::Twice);
        } else {
            self.each.push((name, value));
        }
        Ok(())
    }

    /// Replaces all values of an attribute by one. An invalid address removes the address, so that no older one is
    /// used.
    fn put(&mut self, name: Cow<'a, str>, value: Value<'a>) -> Result<(), NoAddress> {
        let name = canonical(name);
        if name == IP {
            self.ip = address(&value.0);
            return if self.ip.is_some() { Ok(()) } else { Err(NoAddress) };
        }
        match self.each.iter().position(|(of, _)| *of == name) {
            Some(first) => {
                self.each[first].1 = value;
                let mut at = 0;
                self.each.retain(|(of, _)| {
                    at += 1;
                    at <= first + 1 || *of != name
                });
            }
            None => self.each.push((name, value)),
        }
        Ok(())
    }

    /// Adds a value to an attribute that a request may repeat: a header field, a cookie, a query parameter. Repeating
    /// the value that was added last has no effect. A rule that counts by the attribute follows its `on_repeated`; a
    /// condition matches each value. A request has one address: a second one replaces the first.
    ///
    /// ```
    /// use tidegate::rules::Attributes;
    ///
    /// let request = Attributes::new().add("query.account", "x").add("query.account", "victim");
    /// assert_eq!(request.get_all("query.account").count(), 2);
    /// ```
    #[must_use]
    pub fn add(mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Value<'a>>) -> Attributes<'a> {
        self.append(name, value);
        self
    }

    /// [`Attributes::add`] in place.
    ///
    /// For loops over the header fields of a request. An invalid address removes `ip`, as in [`Attributes::set`].
    pub fn append(&mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Value<'a>>) {
        let (name, value) = (canonical(name.into()), value.into());
        if name == IP {
            self.ip = address(&value.0);
            return;
        }
        let last = self.each.iter().rev().find(|(of, _)| *of == name);
        if last.is_none_or(|(_, known)| *known != value) {
            self.each.push((name, value));
        }
    }

    /// Sets the cost of the request; 1 by default.
    ///
    /// Each rule multiplies it by its own `cost`. A cost above the capacity of a limit can never pass, and its verdict
    /// is [`Verdict::Impossible`](tidegate_core::Verdict::Impossible).
    #[must_use]
    pub fn cost(self, cost: Cost) -> Attributes<'a> {
        Attributes { cost, ..self }
    }

    /// Sets the longest delay that the caller accepts. By default the rules decide.
    ///
    /// It is an upper bound: a rule may grant less. Zero accepts no delay, so that a request is allowed now or denied.
    #[must_use]
    pub fn max_wait(self, longest: Duration) -> Attributes<'a> {
        Attributes { max_wait: Some(longest), ..self }
    }

    /// Asks for every limit that decides about the request: [`Admission::limits`](crate::Admission::limits) then
    /// contains all of them. By default it contains the binding one alone, which needs no allocation.
    ///
    /// ```
    /// use tidegate::Zone;
    /// use tidegate::rules::{Attributes, Gate, Policy};
    ///
    /// let text = "[[rule]]\nname = 'second'\nlimit = '10/s'\n[[rule]]\nname = 'hour'\nlimit = '100/h'";
    /// let gate = Gate::new(Policy::from_toml(text)?, Zone::new(1 << 20))?;
    /// let rules = |request: &Attributes<'_>| {
    ///     let answer = gate.admit(request).now()?;
    ///     Ok::<_, tidegate::StoreError>(answer.limits().map(|limit| limit.rule.to_string()).collect::<Vec<_>>())
    /// };
    /// assert_eq!(rules(&Attributes::new())?, ["second"]);
    /// assert_eq!(rules(&Attributes::new().all_limits())?, ["second", "hour"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn all_limits(self) -> Attributes<'a> {
        Attributes { all_limits: true, ..self }
    }

    /// Clears all attributes for the next request, and reuses the allocation.
    ///
    /// The cost, the max wait, the address and the extent of the answer are reset as well.
    #[must_use]
    pub fn cleared<'b>(mut self) -> Attributes<'b> {
        self.each.clear();
        let each = self.each.into_iter().map(|_| unreachable!("it was cleared")).collect();
        Attributes { each, ..Attributes::default() }
    }

    /// Returns a copy that owns its names and values.
    ///
    /// Use it to move a request into a task that outlives the buffers of its connection. It copies every borrowed name
    /// and value.
    #[must_use]
    pub fn into_owned(self) -> Attributes<'static> {
        let owned = |(name, Value(value)): (Cow<'a, str>, Value<'a>)| {
            (Cow::Owned(name.into_owned()), Value(Cow::Owned(value.into_owned())))
        };
        let Attributes { ip, grouping, each, cost, max_wait, all_limits } = self;
        Attributes { ip, grouping, each: each.into_iter().map(owned).collect(), cost, max_wait, all_limits }
    }

    /// Returns the value of an attribute other than `ip`; the first of several.
    ///
    /// Names of header fields are compared in any case. The value is as it was set, not normalized.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let name = canonical(Cow::Borrowed(name));
        self.each.iter().find(|(of, _)| *of == name).map(|(_, value)| &*value.0)
    }

    /// Returns all values of an attribute other than `ip`, in order.
    pub fn get_all(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let name = canonical(Cow::Borrowed(name)).into_owned();
        self.each.iter().filter(move |(of, _)| *of == name).map(|(_, value)| &*value.0)
    }

    /// Returns true if the attribute exists.
    pub fn has(&self, name: &str) -> bool {
        if name == IP { self.ip.is_some() } else { self.get(name).is_some() }
    }

    /// Returns the address, if there is one.
    pub fn address(&self) -> Option<IpAddr> {
        self.ip
    }

    /// Returns the names of all attributes, each once, the address first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let is_new = |at: usize| self.each[..at].iter().all(|(before, _)| *before != self.each[at].0);
        let each = (0..self.each.len()).filter(move |at| is_new(*at)).map(|at| &*self.each[at].0);
        self.ip.map(|_| IP).into_iter().chain(each)
    }

    /// Returns each name with one value, in the order in which they were added. A repeated attribute occurs several
    /// times.
    pub(crate) fn each(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
        self.each.iter().map(|(name, value)| (&**name, &*value.0))
    }
}

/// The error for an `ip` attribute that is not a valid address.
///
/// Its message says what an address looks like. A port, a host name and an empty value are the usual causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoAddress;

impl std::fmt::Display for NoAddress {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("ip: this is no address; send one such as 192.0.2.7 or 2001:db8::1, without a port")
    }
}

impl std::error::Error for NoAddress {}

/// The reason why an attribute was not inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotInserted {
    /// The attribute exists already.
    Twice,
    /// The value of `ip` is not a valid address: [`NoAddress`].
    NoAddress,
}

/// Returns the canonical name of an attribute: names of header fields in lower case.
pub(crate) fn canonical(name: Cow<'_, str>) -> Cow<'_, str> {
    match name.strip_prefix(HEADER) {
        Some(field) if field.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            Cow::Owned(name.to_ascii_lowercase())
        }
        _ => name,
    }
}

/// Parses an address. The interface behind a `%` (the zone of a scoped IPv6 address) is ignored.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let (text, is_scoped) = text.split_once('%').map_or((text, false), |(text, _)| (text, true));
    let ip: IpAddr = text.parse().ok()?;
    (ip.is_ipv6() || !is_scoped).then(|| ip.to_canonical())
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Value<'a> {
        Value(Cow::Borrowed(text.as_bytes()))
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Value<'a> {
        Value(Cow::Borrowed(bytes))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value(Cow::Owned(text.into_bytes()))
    }
}

impl From<Vec<u8>> for Value<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Value(Cow::Owned(bytes))
    }
}

impl<'a> From<Cow<'a, [u8]>> for Value<'a> {
    fn from(bytes: Cow<'a, [u8]>) -> Value<'a> {
        Value(bytes)
    }
}

impl<'a> From<Cow<'a, str>> for Value<'a> {
    fn from(text: Cow<'a, str>) -> Value<'a> {
        match text {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_last_counts_and_header_fields_have_one_name_in_any_case() {
        let request = Attributes::new().set("header.X-User", "a").set("header.x-user", "b").set("X", "c");
        assert_eq!(request.get("header.X-USER"), Some(&b"b"[..]));
        assert_eq!((request.get("X"), request.get("x")), (Some(&b"c"[..]), None));
        assert_eq!(request.names().collect::<Vec<_>>(), ["header.x-user", "X"]);
    }

    #[test]
    fn several_values_of_a_name_are_kept_in_their_order_until_one_is_set() {
        let several = Attributes::new().add("header.X-A", "1").add("b", "2").add("header.x-a", "3");
        let several = several.add("header.x-A", "3").add("header.x-A", "1");
        assert_eq!(several.get_all("header.X-a").collect::<Vec<_>>(), [b"1", b"3", b"1"]);
        assert_eq!(several.names().collect::<Vec<_>>(), ["header.x-a", "b"]);
        let one = several.set("header.X-A", "4");
        assert_eq!(one.get_all("header.x-a").collect::<Vec<_>>(), [b"4"]);
        assert_eq!(one.get("b"), Some(&b"2"[..]));
    }

    #[test]
    fn an_address_is_read_in_any_clothes_and_anything_else_is_none() {
        let ip = |text: &'static str| Attributes::new().set("ip", text).address().map(|ip| ip.to_string());
        for (text, read) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("::FFFF:C000:207", "192.0.2.7"),
            ("2001:DB8:0::1", "2001:db8::1"),
            ("fe80::1%eth0", "fe80::1"),
        ] {
            assert_eq!(ip(text).as_deref(), Some(read), "{text}");
        }
        for text in ["", "unknown", "192.0.2.7:80", "[::1]", "192.0.2.07", "192.0.2.7%eth0", "1.2.3"] {
            assert_eq!(ip(text), None, "{text}");
            assert_eq!(Attributes::new().try_set("ip", text).unwrap_err(), NoAddress);
        }
    }
}
