//! Named values, of which a request may have several: header fields, cookies, query parameters.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::{self, AsHeaderName};

use crate::decoded_query;

/// Returns the values of all lines of a header field.
#[inline]
pub fn headers(headers: &HeaderMap, name: impl AsHeaderName) -> impl Iterator<Item = Cow<'_, [u8]>> {
    headers.get_all(name).iter().map(|value| Cow::Borrowed(value.as_bytes()))
}

/// Returns all cookies of a name, without the quotes around them.
pub fn cookies<'r>(headers: &'r HeaderMap, name: &str) -> impl Iterator<Item = Cow<'r, [u8]>> {
    let lines = headers.get_all(header::COOKIE).iter();
    let cookies = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    cookies.filter_map(move |cookie| {
        let equals = cookie.iter().position(|byte| *byte == b'=')?;
        let value = cookie[equals + 1..].trim_ascii();
        let unquoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        let is_asked_for = cookie[..equals].trim_ascii() == name.as_bytes();
        is_asked_for.then(|| Cow::Borrowed(unquoted.unwrap_or(value)))
    })
}

/// Returns all parameters of this name in the query of a URI, decoded as in forms. A parameter without `=` is empty.
pub fn query<'r>(query: Option<&'r [u8]>, name: &str) -> impl Iterator<Item = Cow<'r, [u8]>> {
    let parts = query.into_iter().flat_map(|query| query.split(|byte| *byte == b'&'));
    parts.filter_map(move |part| {
        let equals = part.iter().position(|byte| *byte == b'=').unwrap_or(part.len());
        let value = part.get(equals + 1..).unwrap_or_default();
        (*decoded_query(&part[..equals]) == *name.as_bytes()).then(|| decoded_query(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(written: &str, name: &str) -> Vec<String> {
        let text = |value: Cow<'_, [u8]>| String::from_utf8_lossy(&value).into_owned();
        query(Some(written.as_bytes()), name).map(text).collect()
    }

    #[test]
    fn all_parts_of_a_query_are_found_in_any_spelling() {
        assert_eq!(values("a&b=", "a"), [""]);
        assert_eq!(values("a&b=", "b"), [""]);
        assert_eq!(values("%61=1&a=2&b=3&a=1+%31", "a"), ["1", "2", "1 1"]);
        assert_eq!(values("", "a"), [""; 0]);
        assert_eq!(query(None, "a").count(), 0);
    }

    #[test]
    fn cookies_of_all_lines_are_found_without_quotes() {
        let mut fields = HeaderMap::new();
        fields.append(header::COOKIE, "a=1; session=\"s=1\"".parse().unwrap());
        fields.append(header::COOKIE, "session=2; b".parse().unwrap());
        assert_eq!(cookies(&fields, "session").collect::<Vec<_>>(), [&b"s=1"[..], b"2"]);
        assert_eq!(cookies(&fields, "b").count(), 0);
    }
}
