//! Requests of the operator, which change rules or overrides: their preconditions, their author, and their execution.
//!
//! Such a change requires the token, and states with `If-Match` which version it replaces. Of two operators who
//! edit the same version, the second gets status 412 and not the last word.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::problem::Problem;
use super::reply::Reply;
use super::route::Route;
use super::{overrides, put_rules};
use crate::engine::Engine;
use crate::overrides::Author;
use crate::precondition::{Precondition, Tag, Tags, Unmet};

/// The field with the name of the author of a change.
const BY: HeaderName = HeaderName::from_static("x-tidegate-by");
/// The maximum length of that name.
const MAX_AUTHOR_BYTES: usize = 256;

/// Makes the change, if its preconditions are met.
///
/// The body is parsed before the preconditions are checked, so an invalid change is status 400 or 422 in either
/// case.
pub(super) async fn change(
    route: Route,
    body: Bytes,
    conditions: Result<Conditions, Problem>,
    headers: &mut HeaderMap,
    engine: &Arc<Engine>,
) -> Result<Reply, Problem> {
    let conditions = conditions?;
    match route {
        Route::PutOverride => overrides::put(&body, conditions, headers, engine).await,
        Route::DeleteOverride => overrides::delete(&body, conditions, engine).await,
        _ => put_rules::put(body, conditions, headers, engine.clone()).await,
    }
}

/// The header fields of a change.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    /// The version that the change replaces.
    pub(super) named: Precondition,
    /// The author of the change.
    pub(super) author: Author,
}

impl Conditions {
    /// Reads the preconditions and the author of a change.
    ///
    /// An invalid list of tags is a problem: a typing error must not make a change unconditional.
    pub(super) fn read(headers: &HeaderMap, address: Option<SocketAddr>) -> Result<Conditions, Problem> {
        let named = Precondition {
            if_match: tags(headers, &header::IF_MATCH)?,
            if_none_match: tags(headers, &header::IF_NONE_MATCH)?,
        };
        Ok(Conditions { named, author: author(headers, address)? })
    }
}

/// Returns the author of a change: the name in the request, if there is one, and the address of the client.
pub(super) fn author(headers: &HeaderMap, address: Option<SocketAddr>) -> Result<Author, Problem> {
    Ok(Author { name: name_of_author(headers)?, address })
}

/// Returns the name of the author, if the request has one: a text of at most [`MAX_AUTHOR_BYTES`] without control
/// characters.
fn name_of_author(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut fields = headers.get_all(BY).iter();
    let Some(field) = fields.next() else { return Ok(None) };
    let name = std::str::from_utf8(field.as_bytes()).ok().map(str::trim);
    let is_name =
        |name: &&str| (1..=MAX_AUTHOR_BYTES).contains(&name.len()) && !name.contains(char::is_control);
    match (name.filter(is_name), fields.next()) {
        (Some(name), None) => Ok(Some(name.to_owned())),
        _ => Err(Problem::bad_request(format!(
            "X-Tidegate-By: is no name; send one field with a text of 1 to {MAX_AUTHOR_BYTES} bytes, as in ana@example.com"
        ))),
    }
}

/// Sets the entity tag of a reply. The reply's form and counts may change while the tag stays, so caches must not store
/// it.
///
/// `If-None-Match` of a read is not evaluated: the reply is always complete.
pub(super) fn tag_reply(headers: &mut HeaderMap, tag: Option<Tag>) {
    let value = tag.and_then(|tag| HeaderValue::try_from(tag.to_string()).ok());
    headers.extend(value.map(|value| (header::ETAG, value)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Returns the problem of a change whose preconditions are not met. `thing` is the target of the change, and `GET path`
/// shows it.
///
/// Status 428 asks for a precondition, status 412 says that it failed. The detail names the request that shows the
/// current version.
pub(super) fn unmet(why: Unmet, thing: &str, path: &str) -> Problem {
    let again =
        format!("GET {path} again, make the change in what it shows now, and send the new entity tag");
    let detail = match why {
        Unmet::NotNamed => format!(
            "{thing} would be replaced, and the request does not say that it was seen; GET {path} first and send \
             its entity tag, with the quotes, as If-Match, or send If-Match: * to replace whatever is there"
        ),
        Unmet::Changed => {
            format!("If-Match: {thing} has another ETag, so it was changed since; {again}")
        }
        Unmet::Absent => {
            format!("If-Match: there is no such thing as {thing}, or it has ended; leave If-Match out")
        }
        Unmet::Present => {
            format!("If-None-Match: {thing} is there already; send its ETag as If-Match to replace it")
        }
    };
    let status = match why {
        Unmet::NotNamed => StatusCode::PRECONDITION_REQUIRED,
        Unmet::Changed | Unmet::Absent | Unmet::Present => StatusCode::PRECONDITION_FAILED,
    };
    Problem::new(status, detail)
}

/// Reads all tags of a field, which may have several lines.
///
/// Returns `None` if there is no such field. `*` counts only as the whole value of a single field.
fn tags(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Tags>, Problem> {
    let mut lines = headers.get_all(name).iter().peekable();
    if lines.peek().is_none() {
        return Ok(None);
    }
    let lines: Vec<_> = lines.map(HeaderValue::as_bytes).collect();
    let tags = match *lines {
        [line] if line.trim_ascii() == b"*" => Some(Tags::Any),
        _ => listed(&lines).map(Tags::Listed),
    };
    tags.map(Some).ok_or_else(|| {
        let field = if *name == header::IF_MATCH { "If-Match" } else { "If-None-Match" };
        Problem::bad_request(format!(
            "{field}: is no list of entity tags; send an ETag as it was received, with its quotes, or *"
        ))
    })
}

/// Returns the tags of these lines; `None` if one of them is not a list. A quoted tag may contain commas.
fn listed(lines: &[&[u8]]) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for line in lines {
        let mut rest = line.trim_ascii();
        while !rest.is_empty() {
            let quoted = rest.strip_prefix(b"W/").unwrap_or(rest);
            let quotes = quoted.strip_prefix(b"\"")?.iter().position(|byte| *byte == b'"')? + 2;
            let (tag, behind) = rest.split_at(rest.len() - quoted.len() + quotes);
            all.push(String::from_utf8_lossy(tag).into_owned());
            rest = match behind.trim_ascii_start() {
                [] => &[],
                [b',', next @ ..] => next.trim_ascii_start(),
                _ => return None,
            };
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<Option<Tags>, Problem> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::IF_MATCH, HeaderValue::from_str(line).unwrap());
        }
        tags(&headers, &header::IF_MATCH)
    }

    fn shown(lines: &[&str]) -> Vec<String> {
        match read(lines).unwrap() {
            Some(Tags::Listed(listed)) => listed,
            other => panic!("{lines:?}: {other:?}"),
        }
    }

    #[test]
    fn tags_come_in_lists_and_in_several_lines() {
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&["*"]).unwrap(), Some(Tags::Any));
        assert_eq!(shown(&["\"a\""]), ["\"a\""]);
        assert_eq!(shown(&["\"a\" ,W/\"b\"", " \"c,d\", \"\""]), ["\"a\"", "W/\"b\"", "\"c,d\"", "\"\""]);
    }

    #[test]
    fn the_author_of_a_change_is_a_short_text_that_occurs_once() {
        let read = |names: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for name in names {
                headers.append(BY, HeaderValue::from_bytes(name).unwrap());
            }
            name_of_author(&headers).ok()
        };
        let longest = "x".repeat(MAX_AUTHOR_BYTES);
        assert_eq!(read(&[]), Some(None));
        for name in ["ana", "Ana \"the\" Admin <ana@example.com>", "ané", &longest] {
            assert_eq!(read(&[name.as_bytes()]), Some(Some(name.to_owned())));
        }
        for names in [
            &[&b""[..]][..],
            &[b" "],
            &[b"a\tb"],
            &[b"\xff"],
            &[b"ana", b"bob"],
            &[&[b'x'; MAX_AUTHOR_BYTES + 1]],
        ] {
            assert_eq!(read(names), None, "{names:?}");
        }
    }

    #[test]
    fn an_invalid_tag_is_an_error_with_a_remedy() {
        for lines in [
            &["a"][..],
            &["\"a"],
            &["\"a\" \"b\""],
            &["\"a\"x"],
            &["w/\"a\""],
            &["*, \"a\""],
            &["*", "\"a\""],
            &["\"a\",, \"b\""],
        ] {
            let problem = read(lines).expect_err("it is no list");
            let said = String::from_utf8(problem.whole_message()).unwrap();
            assert!(
                said.contains("If-Match: is no list of entity tags; send an ETag as it was received"),
                "{said}"
            );
        }
    }
}
