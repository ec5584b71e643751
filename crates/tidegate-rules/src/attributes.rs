//! The attributes of a request.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use tidegate::Cost;

use crate::key::Grouping;

/// The name of the attribute that is an address.
pub(crate) const IP: &str = "ip";
/// The prefix of attributes that are header fields. The rest of the name is case-insensitive.
const HEADER: &str = "header.";

/// The attributes of one request: names and values, its cost and its max wait.
///
/// ```
/// use tidegate_rules::Attributes;
///
/// let ip = "192.0.2.7".parse()?;
/// let request = Attributes::new().ip(ip).path("/api/x").set("user", "ana").set("header.X-Plan", "free");
/// assert_eq!(request.get("header.x-plan"), Some(&b"free"[..]));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Attributes<'a> {
    ip: Option<IpAddr>,
    pub(crate) grouping: Option<Grouping>,
    each: Vec<(Cow<'a, str>, Value<'a>)>,
    pub(crate) cost: Cost,
    pub(crate) max_wait: Option<Duration>,
}

/// The value of an attribute, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value<'a>(pub(crate) Cow<'a, [u8]>);

impl<'a> Attributes<'a> {
    /// Creates an empty set of attributes.
    pub fn new() -> Attributes<'a> {
        Attributes::default()
    }

    /// Sets the client address. An IPv4-mapped IPv6 address becomes the IPv4 address.
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
    #[must_use]
    pub fn grouped(self, grouping: Grouping) -> Attributes<'a> {
        Attributes { grouping: Some(grouping), ..self }
    }

    /// Sets the request path, without the query.
    #[must_use]
    pub fn path(self, path: &'a str) -> Attributes<'a> {
        self.set("path", path)
    }

    /// Sets an attribute, and replaces its value if it exists. An invalid address removes `ip`, as if it were missing;
    /// see [`Attributes::try_set`].
    #[must_use]
    pub fn set(mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Value<'a>>) -> Attributes<'a> {
        let _ = self.put(name.into(), value.into());
        self
    }

    /// Sets an attribute, but returns an error if `ip` is not a valid address.
    pub fn try_set(
        mut self,
        name: impl Into<Cow<'a, str>>,
        value: impl Into<Value<'a>>,
    ) -> Result<Attributes<'a>, NoAddress> {
        self.put(name.into(), value.into()).map(|()| self)
    }

    /// Inserts an attribute that does not exist yet, in place.
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
    /// use tidegate_rules::Attributes;
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
    #[must_use]
    pub fn cost(self, cost: Cost) -> Attributes<'a> {
        Attributes { cost, ..self }
    }

    /// Sets the longest delay that the caller accepts. By default the rules decide.
    #[must_use]
    pub fn max_wait(self, longest: Duration) -> Attributes<'a> {
        Attributes { max_wait: Some(longest), ..self }
    }

    /// Clears all attributes for the next request, and reuses the allocation.
    #[must_use]
    pub fn cleared<'b>(mut self) -> Attributes<'b> {
        self.each.clear();
        let each = self.each.into_iter().map(|_| unreachable!("it was cleared")).collect();
        Attributes { each, ..Attributes::default() }
    }

    /// Returns a copy that owns its names and values.
    #[must_use]
    pub fn into_owned(self) -> Attributes<'static> {
        let owned = |(name, Value(value)): (Cow<'a, str>, Value<'a>)| {
            (Cow::Owned(name.into_owned()), Value(Cow::Owned(value.into_owned())))
        };
        let Attributes { ip, grouping, each, cost, max_wait } = self;
        Attributes { ip, grouping, each: each.into_iter().map(owned).collect(), cost, max_wait }
    }

    /// Returns the value of an attribute other than `ip`; the first of several.
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

    pub(crate) fn each(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
        self.each.iter().map(|(name, value)| (&**name, &*value.0))
    }
}

/// The error for an `ip` attribute that is not a valid address.
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
