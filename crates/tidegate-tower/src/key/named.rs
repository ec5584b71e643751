//! Named values, of which a request may have several: header fields, cookies, query parameters.
//!
//! A client that repeats a name could otherwise choose which of its values is counted while the service reads another.
//! The default counts all such requests under one key, which a client cannot vary.

use std::borrow::Cow;

use http::header::{self, AsHeaderName, HeaderName};
use tidegate_rules::OnRepeated;
use tidegate_support::decoded_query;

use super::part::Part;
use super::{Extract, Extracted};
use crate::head::Head;

/// An extractor of a named value; made by [`header`](super::header()), [`cookie`](super::cookie) and
/// [`query`](super::query).
///
/// If a name is repeated with different values, the service may read the first or the last. So all requests that repeat
/// it are counted under one key; [`Named::on_repeated`] changes that.
#[doc(alias = "API key")]
#[doc(alias = "header")]
#[doc(alias = "cookie")]
#[doc(alias = "query parameter")]
#[derive(Clone, Debug)]
pub struct Named {
    what: What,
    on_repeated: OnRepeated,
}

/// The place and the name of a value in a request.
#[derive(Clone, Debug)]
pub(super) enum What {
    Header(HeaderName),
    Cookie(Box<str>),
    Query(Box<str>),
}

impl Named {
    pub(super) fn new(what: What) -> Named {
        Named { what, on_repeated: OnRepeated::default() }
    }

    /// Sets the handling of requests with several values of this name. The built-in attributes
    /// of rules (`header.x`, `cookie.x`, `query.x`) do not use it: there `on_repeated` of each rule applies.
    ///
    /// Equal values are one value. [`OnRepeated::First`] and [`OnRepeated::Last`] are right only if the service surely
    /// reads the same one.
    #[must_use]
    pub fn on_repeated(self, on_repeated: OnRepeated) -> Named {
        Named { on_repeated, ..self }
    }

    /// Returns the part for the values of a name, in the order of the request.
    fn part<'r>(&self, mut values: impl Iterator<Item = Cow<'r, [u8]>>) -> Part<'r> {
        let Some(first) = values.next() else { return Part::Missing };
        if self.on_repeated == OnRepeated::First {
            return Part::Bytes(first);
        }
        let Some(second) = values.find(|value| *value != first) else { return Part::Bytes(first) };
        match self.on_repeated {
            OnRepeated::Share => Part::Repeated([first, second].into_iter().chain(values).collect()),
            OnRepeated::Deny => Part::Refuse,
            OnRepeated::First => Part::Bytes(first),
            OnRepeated::Last => Part::Bytes(values.last().unwrap_or(second)),
        }
    }
}

impl Extract for Named {
    #[inline]
    fn extract<'r>(&self, head: Head<'r>) -> Extracted<'r> {
        Extracted::Now(match &self.what {
            What::Header(name) => self.part(headers(head, name)),
            What::Cookie(name) => self.part(cookies(head, name)),
            What::Query(name) => self.part(query(head, name)),
        })
    }
}

/// Returns the values of all lines of a header field.
#[inline]
pub(crate) fn headers<'r>(head: Head<'r>, name: impl AsHeaderName) -> impl Iterator<Item = Cow<'r, [u8]>> {
    head.headers().get_all(name).iter().map(|value| Cow::Borrowed(value.as_bytes()))
}

/// Returns all cookies of a name, without the quotes around them.
pub(crate) fn cookies<'r>(head: Head<'r>, name: &str) -> impl Iterator<Item = Cow<'r, [u8]>> {
    let lines = head.headers().get_all(header::COOKIE).iter();
    let cookies = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    cookies.filter_map(move |cookie| {
        let equals = cookie.iter().position(|byte| *byte == b'=')?;
        let value = cookie[equals + 1..].trim_ascii();
        let unquoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        let is_asked_for = cookie[..equals].trim_ascii() == name.as_bytes();
        is_asked_for.then(|| Cow::Borrowed(unquoted.unwrap_or(value)))
    })
}

/// Returns all query parameters of this name, decoded as in forms. A parameter without `=` is empty.
pub(crate) fn query<'r>(head: Head<'r>, name: &str) -> impl Iterator<Item = Cow<'r, [u8]>> {
    let parts = head.uri().query().into_iter().flat_map(|query| query.as_bytes().split(|byte| *byte == b'&'));
    parts.filter_map(move |part| {
        let equals = part.iter().position(|byte| *byte == b'=').unwrap_or(part.len());
        let value = part.get(equals + 1..).unwrap_or_default();
        (*decoded_query(&part[..equals]) == *name.as_bytes()).then(|| decoded_query(value))
    })
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn values(uri: &str, name: &str) -> Vec<String> {
        let request = Request::builder().uri(uri).body(()).unwrap();
        let text = |value: Cow<'_, [u8]>| String::from_utf8_lossy(&value).into_owned();
        query(Head::of(&request), name).map(text).collect()
    }

    #[test]
    fn all_parts_of_a_query_are_found_in_any_spelling() {
        assert_eq!(values("/?a&b=", "a"), [""]);
        assert_eq!(values("/?a&b=", "b"), [""]);
        assert_eq!(values("/?%61=1&a=2&b=3&a=1+%31", "a"), ["1", "2", "1 1"]);
        assert_eq!(values("/?", "a"), [""; 0]);
        assert_eq!(values("/", "a"), [""; 0]);
    }

    #[test]
    fn what_is_said_twice_is_one_value_and_what_is_said_otherwise_is_several() {
        let part = |on_repeated, uri: &str| {
            let request = Request::builder().uri(uri).body(()).unwrap();
            let named = Named::new(What::Query("a".into())).on_repeated(on_repeated);
            let Extracted::Now(part) = named.extract(Head::of(&request)) else { panic!("it is there") };
            part.into_owned()
        };
        let all = [OnRepeated::Share, OnRepeated::Deny, OnRepeated::First, OnRepeated::Last];
        for on_repeated in all {
            assert_eq!(part(on_repeated, "/?b=1"), Part::Missing);
            assert_eq!(part(on_repeated, "/?a=1&b=2&%61=1"), Part::from("1"));
        }
        let several = all.map(|on_repeated| part(on_repeated, "/?a=1&a=1&a=2&a=1&a=3"));
        assert!(matches!(several[0], Part::Repeated(_)), "{several:?}");
        assert_eq!(several[1..], [Part::Refuse, Part::from("1"), Part::from("3")]);
    }
}
