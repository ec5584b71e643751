//! What a body is said to be, and what is accepted in reply.

use hyper::header;
use hyper::http::request::Parts;

/// Whether the body is of this type. A page of somebody else's cannot have a browser send what we take without
/// asking us first.
#[inline]
pub(super) fn is_said(head: &Parts, kind: &[u8]) -> bool {
    head.headers.get(header::CONTENT_TYPE).is_some_and(|said| is_of_type(said.as_bytes(), kind))
}

#[inline]
fn is_of_type(said: &[u8], kind: &[u8]) -> bool {
    said.split_at_checked(kind.len()).is_some_and(|(said, rest)| {
        said.eq_ignore_ascii_case(kind) && matches!(rest.trim_ascii_start().first(), None | Some(b';'))
    })
}

/// Whether the text of a file is preferred to JSON: whichever is named first.
pub(super) fn wants_text(head: &Parts) -> bool {
    const KINDS: [(&[u8], bool); 5] = [
        (b"application/toml", true),
        (b"text/plain", true),
        (b"application/json", false),
        (b"application/*", false),
        (b"*/*", false),
    ];
    let fields = head.headers.get_all(header::ACCEPT).into_iter();
    let mut said = fields.flat_map(|field| field.as_bytes().split(|byte| *byte == b','));
    let first = said.find_map(|said| {
        let known = KINDS.iter().find(|(kind, _)| is_of_type(said.trim_ascii(), kind));
        known.map(|(_, is_text)| *is_text)
    });
    first.unwrap_or(false)
}
