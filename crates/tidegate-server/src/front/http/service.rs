//! From a request to its answer.

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, StatusCode, Uri};

use super::link::Link;
use super::problem::Problem;
use super::reply::{Reply, Response};
use super::route::Route;
use super::{body, metrics, verbs};
use crate::engine::Engine;

/// The longest URI, in bytes.
pub(super) const MAX_URI_BYTES: usize = 2 << 10;
/// The most header fields of a request.
const MAX_FIELDS: usize = 64;

pub(super) const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// The document of this interface.
pub(super) const OPENAPI: &str = include_str!("openapi.json");

/// Answers whatever was asked.
pub(super) async fn answer(request: Request<Incoming>, link: &Link) -> Response {
    let meter = link.post.meter();
    meter.http_requests.add(1);
    let (mut head, body) = request.into_parts();
    let asked = asked(&head, body, link).await;
    // The map of the request's fields becomes that of the answer's: one allocation less.
    let mut headers = std::mem::take(&mut head.headers);
    headers.clear();
    let replied = asked.and_then(|(route, body)| reply_to(route, &body, &mut headers, link));
    let reply = replied.unwrap_or_else(|problem| {
        meter.bad_requests.add(u64::from(problem.is_of_the_caller()));
        problem.reply(&mut headers)
    });
    if link.post.engine.is_stopping() {
        headers.insert(header::CONNECTION, CLOSE);
    }
    reply.response(headers)
}

/// What was asked for, and the whole body.
#[inline]
async fn asked(head: &Parts, body: Incoming, link: &Link) -> Result<(Route, Bytes), Problem> {
    match admitted(head, &link.post.engine) {
        Ok(route) if route.has_body() => Ok((route, body::whole(body, link).await?)),
        Ok(route) if body.is_end_stream() => Ok((route, Bytes::new())),
        other => without_body(other, head, body, link).await,
    }
}

/// The same for a request whose body nobody wants. It is read all the same, or the client would not get to see the
/// answer, and the next request could not be told from it.
#[cold]
async fn without_body(
    admitted: Result<Route, Problem>,
    head: &Parts,
    body: Incoming,
    link: &Link,
) -> Result<(Route, Bytes), Problem> {
    let is_held_back = head.headers.contains_key(header::EXPECT);
    if body.is_end_stream() || (!is_held_back && body::is_ignored(body, link).await) {
        return admitted.map(|route| (route, Bytes::new()));
    }
    let unwanted = || Problem::bad_request("this route takes no body; send none");
    Err(admitted.map_or_else(|problem| problem, |_| unwanted()).and_close())
}

/// The route of a request that may be served.
#[inline]
fn admitted(head: &Parts, engine: &Engine) -> Result<Route, Problem> {
    if length(&head.uri) > MAX_URI_BYTES {
        return Err(uri_too_long());
    }
    if head.headers.len() > MAX_FIELDS {
        return Err(too_many_fields(head.headers.len()));
    }
    let path = head.uri.path();
    let route = Route::of(path).ok_or_else(|| no_such_route(path))?;
    if !route.takes(&head.method) {
        let detail = format!("{path} takes {}, not {}", route.methods(), head.method);
        return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).with(header::ALLOW, route.methods()));
    }
    if route.is_guarded() && !knows_token(head, engine) {
        let detail = "this server has a token; send it as Authorization: Bearer TOKEN";
        let problem = Problem::new(StatusCode::UNAUTHORIZED, detail);
        return Err(problem.with(header::WWW_AUTHENTICATE, "Bearer realm=\"tidegate\""));
    }
    if route.has_body() && !is_json(head) {
        let detail = "the body has to be JSON and to say so; send content-type: application/json (curl does with --json)";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    Ok(route)
}

fn length(uri: &Uri) -> usize {
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    path + uri.authority().map_or(0, |authority| authority.as_str().len())
}

#[cold]
pub(super) fn uri_too_long() -> Problem {
    let detail = format!("the URI has more than {MAX_URI_BYTES} bytes; what is asked goes into the body");
    Problem::new(StatusCode::URI_TOO_LONG, detail)
}

#[cold]
fn too_many_fields(count: usize) -> Problem {
    let detail = format!("{count} header fields; send at most {MAX_FIELDS}");
    Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
}

#[cold]
fn no_such_route(path: &str) -> Problem {
    let detail = format!("there is nothing at {path}; /openapi.json lists what there is");
    Problem::new(StatusCode::NOT_FOUND, detail)
}

#[inline]
fn knows_token(head: &Parts, engine: &Engine) -> bool {
    let Some(token) = engine.token() else { return true };
    let guess = head.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let guess = guess.and_then(|value| value.split_at_checked(b"Bearer ".len()));
    guess.is_some_and(|(scheme, guess)| scheme.eq_ignore_ascii_case(b"Bearer ") && token.is(guess))
}

/// A page of somebody else's cannot have a browser send this type without asking us first.
#[inline]
fn is_json(head: &Parts) -> bool {
    const JSON: &[u8] = b"application/json";
    let kind = head.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.and_then(|kind| kind.split_at_checked(JSON.len())).is_some_and(|(kind, rest)| {
        kind.eq_ignore_ascii_case(JSON) && matches!(rest.trim_ascii_start().first(), None | Some(b';'))
    })
}

#[inline]
fn reply_to(route: Route, body: &[u8], headers: &mut HeaderMap, link: &Link) -> Result<Reply, Problem> {
    let engine = &*link.post.engine;
    match route {
        Route::Live => Ok(Reply::json(r#"{"live":true}"#)),
        Route::Ready if engine.is_stopping() => {
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping; ask another"))
        }
        Route::Ready => Ok(Reply::json(r#"{"ready":true}"#)),
        Route::Metrics => Ok(metrics::page(engine)),
        Route::OpenApi => Ok(Reply::json(OPENAPI)),
        Route::Take => verbs::take(body, headers, &link.post),
        Route::Peek => verbs::peek(body, headers, engine),
        Route::Adjust => verbs::adjust(body, engine),
        Route::Reset => verbs::reset(body, engine),
        Route::Release => verbs::release(body, engine),
        Route::Renew => verbs::renew(body, engine),
    }
}
