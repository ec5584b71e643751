//! Named values, of which a request may have several: header fields, cookies, query parameters.
//!
//! A client that repeats a name could otherwise choose which of its values is counted while the service reads another.
//! The default counts all such requests under one key, which a client cannot vary.

use std::borrow::Cow;

use http::header::HeaderName;
use tidegate_rules::OnRepeated;
use tidegate_support::{cookies, headers, query};

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
            What::Header(name) => self.part(headers(head.headers(), name)),
            What::Cookie(name) => self.part(cookies(head.headers(), name)),
            What::Query(name) => self.part(query(head.query(), name)),
        })
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

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
