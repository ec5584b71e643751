//! The attributes of an HTTP request.
//!
//! Reading all header fields of each request would be wasteful, and most rules match few. A policy lists the names that
//! its rules use, and only these are looked up.

use std::borrow::Cow;

use http::HeaderMap;
use tidegate_support::{cookies, headers, query};

use crate::attributes::Attributes;
use crate::policy::Policy;

/// The parts of an HTTP request that rules match. A part that is unknown is `None`, and its attribute is missing.
///
/// ```
/// use tidegate::rules::{HttpParts, Policy};
///
/// let text = "[[rule]]\nname = 'a'\nlimit = '1/s'\nwhen = { path = '/x' }\nkey = ['query.page']";
/// let policy = Policy::from_toml(text)?;
/// let fields = http::HeaderMap::new();
/// let parts = HttpParts { path: Some(b"/x"), query: Some(b"page=2&sort=up"), ..HttpParts::new(&fields) };
/// let attributes = parts.attributes(&policy);
/// assert_eq!(attributes.names().collect::<Vec<_>>(), ["path", "query.page"]); // no rule uses `query.sort`
/// # Ok::<(), tidegate::rules::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HttpParts<'r> {
    /// The method, in upper case.
    pub method: Option<&'r [u8]>,
    /// The path, without the query.
    pub path: Option<&'r [u8]>,
    /// The host, with or without a port.
    pub host: Option<&'r [u8]>,
    /// The query of the URI, without the question mark.
    pub query: Option<&'r [u8]>,
    /// The header fields, from which `header.NAME` and `cookie.NAME` are read.
    pub headers: &'r HeaderMap,
}

impl<'r> HttpParts<'r> {
    /// Creates the parts of a request of which only the header fields are known.
    pub fn new(headers: &'r HeaderMap) -> HttpParts<'r> {
        HttpParts { method: None, path: None, host: None, query: None, headers }
    }

    /// Returns the attributes that the rules of a policy use.
    ///
    /// The address of the client is not among them: a program decides which proxies it trusts.
    pub fn attributes(self, policy: &'r Policy) -> Attributes<'r> {
        policy.attributes().fold(Attributes::new(), |attributes, name| match name.split_once('.') {
            None => self.named(name).into_iter().fold(attributes, |known, value| known.set(name, value)),
            Some(("header", field)) => all(attributes, name, headers(self.headers, field)),
            Some(("cookie", cookie)) => all(attributes, name, cookies(self.headers, cookie)),
            Some(("query", part)) => all(attributes, name, query(self.query, part)),
            Some(_) => attributes,
        })
    }

    /// Returns the part that is an attribute of this name.
    fn named(self, name: &str) -> Option<&'r [u8]> {
        match name {
            "path" => self.path,
            "method" => self.method,
            "host" => self.host,
            _ => None,
        }
    }
}

/// Adds all values of a name.
fn all<'a>(
    attributes: Attributes<'a>,
    name: &'a str,
    values: impl Iterator<Item = Cow<'a, [u8]>>,
) -> Attributes<'a> {
    values.fold(attributes, |known, value| known.add(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_rules_use_is_read_and_all_of_that_is_found() {
        let text = "[[rule]]\nname = 'a'\nlimit = '1/s'\n\
            when = { path = '/x', method = 'GET', host = 'example.com', 'header.X-A' = '1' }\n\
            key = ['cookie.session', 'query.page', 'query.none', 'user']\n";
        let policy = Policy::from_toml(text).unwrap();
        let mut fields = HeaderMap::new();
        fields.insert("x-a", "1".parse().unwrap());
        fields.insert("x-b", "2".parse().unwrap());
        fields.insert("cookie", "a=1; session=\"s=1\"; session=2".parse().unwrap());
        let parts = HttpParts {
            method: Some(b"GET"),
            path: Some(b"/x"),
            host: Some(b"example.com"),
            query: Some(b"b=1&page=a%20b+c%zz&page=2"),
            headers: &fields,
        };
        let found = parts.attributes(&policy);
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
        assert!(!HttpParts::new(&fields).attributes(&policy).has("path"));
    }
}
