//! Lists that proxies write, read from the right.
//!
//! Every proxy appends its item at the right end, so the text of a client is at the left. Because the list is read from
//! the right, that text cannot change how the items of trusted proxies are parsed, not even by an unclosed quote.
//!
//! Nothing is copied but quoted values, and the caller bounds the number of items. A hostile line costs time linear in
//! its length, which the server bounds.

use std::borrow::Cow;
use std::net::IpAddr;

use http::HeaderMap;
use http::header::HeaderName;

use super::hop;

/// The form of the items of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Bare addresses, as in `X-Forwarded-For`.
    Bare,
    /// Pairs that include `for=`, as in `Forwarded` (RFC 7239).
    Pairs,
}

/// Returns the addresses of a field, the right-most first. All lines are one list, and empty items are skipped. An item
/// that is not an address is `None`.
pub fn from_the_right<'h>(
    headers: &'h HeaderMap,
    name: &'h HeaderName,
    form: Form,
) -> impl Iterator<Item = Option<IpAddr>> + 'h {
    let lines = headers.get_all(name).iter().rev();
    let items = lines.flat_map(move |line| Items { rest: Some(line.as_bytes()), form });
    items.map(<[u8]>::trim_ascii).filter(|item| !item.is_empty()).map(move |item| match form {
        Form::Bare => hop::address(item),
        Form::Pairs => hop::address(&pair(item)?),
    })
}

/// The items of one line, the right-most first.
struct Items<'h> {
    rest: Option<&'h [u8]>,
    form: Form,
}

impl<'h> Iterator for Items<'h> {
    type Item = &'h [u8];

    /// Returns the item after the last comma, and keeps the rest.
    fn next(&mut self) -> Option<&'h [u8]> {
        let rest = self.rest?;
        match last_comma(rest, self.form) {
            Some(comma) => {
                self.rest = Some(&rest[..comma]);
                Some(&rest[comma + 1..])
            }
            None => {
                self.rest = None;
                Some(rest)
            }
        }
    }
}

/// Returns the index of the last comma that is not within quotes.
fn last_comma(line: &[u8], form: Form) -> Option<usize> {
    let mut is_quoted = false;
    for (at, byte) in line.iter().enumerate().rev() {
        match byte {
            b',' if !is_quoted => return Some(at),
            b'"' if form == Form::Pairs => {
                // A quote within quotes is escaped by a backslash.
                let is_escaped =
                    is_quoted && line[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
                is_quoted ^= !is_escaped;
            }
            _ => {}
        }
    }
    None
}

/// Returns the value of `for=` in one item of `Forwarded`; `None` if there is none, if there are two, or if it is
/// invalid.
fn pair(item: &[u8]) -> Option<Cow<'_, [u8]>> {
    let (mut rest, mut found) = (item, None);
    loop {
        let equals = rest.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (rest[..equals].trim_ascii(), &rest[equals + 1..]);
        let (value, behind) = value_of(value)?;
        if name.eq_ignore_ascii_case(b"for") && found.replace(value).is_some() {
            return None;
        }
        match behind.trim_ascii_start() {
            [] => return found,
            [b';', more @ ..] => rest = more,
            _ => return None,
        }
    }
}

/// Splits off a value, plain or quoted, and returns it with the rest.
fn value_of(text: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|byte| *byte == b';').unwrap_or(text.len());
        return Some((Cow::Borrowed(text[..end].trim_ascii_end()), &text[end..]));
    };
    let mut plain = Vec::new();
    let mut bytes = quoted.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return Some((Cow::Owned(plain), &quoted[at + 1..])),
            b'\\' => plain.push(*bytes.next()?.1),
            byte => plain.push(*byte),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: Form, lines: &[&str]) -> Vec<Option<String>> {
        let name = HeaderName::from_static("x");
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(&name, line.parse().unwrap());
        }
        from_the_right(&headers, &name, form).map(|ip| ip.map(|ip| ip.to_string())).collect()
    }

    fn known(addresses: &[&str]) -> Vec<Option<String>> {
        addresses.iter().map(|ip| Some((*ip).to_owned())).collect()
    }

    #[test]
    fn several_lines_are_one_list_and_empty_items_are_none() {
        let lines = ["1.1.1.1, 2.2.2.2", "", " ,3.3.3.3,, ", "4.4.4.4:80"];
        assert_eq!(read(Form::Bare, &lines), known(&["4.4.4.4", "3.3.3.3", "2.2.2.2", "1.1.1.1"]));
    }

    #[test]
    fn the_pairs_of_forwarded_are_read_in_all_their_forms() {
        for (item, expected) in [
            ("for=192.0.2.7", Some("192.0.2.7")),
            ("For=192.0.2.7;proto=http;by=203.0.113.43", Some("192.0.2.7")),
            ("proto=http; for=\"192.0.2.7:47011\"", Some("192.0.2.7")),
            ("for=\"[2001:db8:cafe::17]:4711\"", Some("2001:db8:cafe::17")),
            ("for=\"[2001:db8:cafe::17]\";by=\"a,b;c\\\"d\"", Some("2001:db8:cafe::17")),
            ("by=\"for=1.1.1.1\";for=192.0.2.7", Some("192.0.2.7")),
            ("for=\"192.0.2\\.7\"", Some("192.0.2.7")),
            ("for=unknown", None),
            ("for=_hidden", None),
            ("proto=http", None),
            ("192.0.2.7", None),
            ("for=192.0.2.7;for=192.0.2.8", None),
            ("for=\"192.0.2.7", None),
            ("for=\"192.0.2.7\"x", None),
            ("for=\"192.0.2.7\\", None),
        ] {
            assert_eq!(read(Form::Pairs, &[item]), [expected.map(str::to_owned)], "{item}");
        }
    }

    #[test]
    fn a_quote_that_a_client_never_ends_hides_nothing_that_proxies_wrote() {
        for start in ["for=\"", "for=\"a", "\"", "for=\"\\", "for=1.1.1.1;x=\"", "for=\"\\\""] {
            let read = read(Form::Pairs, &[&format!("{start}, for=\"[2001:db8::1]:80\", for=192.0.2.7")]);
            assert_eq!(read[..2], known(&["192.0.2.7", "2001:db8::1"]), "{start}");
        }
        let read = read(Form::Bare, &["\", 192.0.2.7"]);
        assert_eq!(read[0].as_deref(), Some("192.0.2.7"));
    }
}
