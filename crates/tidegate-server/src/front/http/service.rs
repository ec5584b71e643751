//! The service: from a request to its response.
//!
//! ```text
//!   head --admitted--> Route --body--> (Route, Bytes) --reply_to--> Reply --> Response
//!             |                  |                          |
//!             '------------------+--------- Problem --------'
//! ```
//!
//! The checks of a head are ordered from cheap to expensive, and from the connection to the route: connection
//! limit, lengths, path, method, `Host`, token, content type.

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, StatusCode, Uri};
use tidegate_support::at_once;

use super::link::Link;
use super::operator::Conditions;
use super::problem::Problem;
use super::reply::{Reply, Response};
use super::route::{Content, Route};
use super::{
    TOO_MANY_DETAIL, admit, auth, bans, batch, body, host, metrics, operator, overrides, ready, rule_key,
    rules, throttle, top, verbs,
};
use crate::engine::Engine;
use crate::front::Scope;
use crate::permit::Lease;

/// The longest URI, in bytes.
pub(super) const MAX_URI_BYTES: usize = 2 << 10;
/// The maximum number of header fields of a request.
pub(super) const MAX_FIELDS: usize = 64;

/// The value of `Connection` in the last response.
pub(super) const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// The error of a foreign `Host`: by DNS rebinding a malicious page could read the responses through a browser.
const OTHER_HOST: &str = "this server has no token, so it is asked by its address or as localhost only, and Host says \
    something else; use the address, or start the server with TIDEGATE_TOKEN or --token-file";
/// The error of a request without the token.
const UNAUTHENTICATED: &str =
    "this server has a token; send it as Authorization: Bearer TOKEN, or as Tidegate-Token: TOKEN";
/// The field of the token where `Authorization` belongs to the client of a proxy.
const TOKEN: HeaderName = HeaderName::from_static("tidegate-token");
/// The error of a body that is not declared as JSON.
const NO_JSON: &str =
    "the body has to be JSON and to say so; send content-type: application/json (curl does with --json)";
/// The error of a body that is not declared as TOML.
const NO_TOML: &str = "the body has to be TOML and to say so; send content-type: application/toml \
    (curl does with -H 'content-type: application/toml')";

/// The `OpenAPI` document of this interface.
pub(super) const OPENAPI: &str = include_str!("openapi.json");

/// Answers one request.
///
/// Never fails: every error is a response. A store in memory replies within this call, without a boxed future.
///
/// Health checks, metrics and rules are answered from memory. A take on a remote store is awaited; other
/// connections of the worker run meanwhile.
pub(super) async fn answer(request: Request<Incoming>, link: &Link) -> Response {
    let meter = link.worker.meter();
    meter.http_requests.add(1);
    let (mut head, body) = request.into_parts();
    if link.is_unauthenticated() && knows_token(&head, &link.worker.engine) {
        link.authenticate();
    }
    let asked = asked(&head, body, link).await;
    let named = match &asked {
        Ok((route, _)) if route.needs_admin() => Conditions::read(&head.headers, link.peer()),
        _ => Ok(Conditions::default()),
    };
    let author = match &asked {
        Ok((route, body)) if rule_key::is_change(*route, body) => {
            Some(operator::author(&head.headers, link.peer()))
        }
        _ => None,
    };
    let decided = match &asked {
        Ok((Route::Auth, query)) => Some(auth::decide(&head.headers, query, &link.worker.engine)),
        _ => None,
    };
    // The header map of the request is reused for the response: one allocation less.
    let mut headers = std::mem::take(&mut head.headers);
    headers.clear();
    let replied = match (asked, decided) {
        (Ok((route, body)), _) if let Some(author) = author => {
            Box::pin(rule_key::change(route, &body, author, &link.worker.engine)).await
        }
        (_, Some(decided)) => Box::pin(auth::reply(decided, &mut headers, link)).await,
        (Ok((route, body)), _) if route.needs_admin() => {
            Box::pin(operator::change(route, body, named, &mut headers, &link.worker.engine)).await
        }
        (Ok((route, body)), _) if route.is_awaited(&link.worker.engine) => {
            // Its future is much larger; boxed, it does not enlarge that of replies from memory.
            Box::pin(reply_to(route, &body, &mut headers, link)).await
        }
        (asked, _) => asked.and_then(|(route, body)| {
            at_once(reply_to(route, &body, &mut headers, link)).expect("memory answers at once")
        }),
    };
    let mut reply = replied.unwrap_or_else(|problem| {
        meter.bad_requests.add(u64::from(problem.status.is_client_error()));
        problem.reply(&mut headers)
    });
    if link.worker.engine.is_stopping() || link.serves_one_request() {
        headers.insert(header::CONNECTION, CLOSE);
    }
    link.tell_of(std::mem::take(&mut reply.permits));
    reply.response(headers)
}

/// Returns the route and the whole body; for a route without a body, the query of the URI.
///
/// The body of a rejected request is not read here; see [`without_body`].
#[inline]
async fn asked(head: &Parts, body: Incoming, link: &Link) -> Result<(Route, Bytes), Problem> {
    match admitted(head, link) {
        Ok(route) if route.content() != Content::None => {
            Ok((route, body::whole(body, route.max_body_bytes(), link).await?))
        }
        Ok(route) if body.is_end_stream() => Ok((route, query(head))),
        other => without_body(other, head, body, link).await,
    }
}

/// Returns the same for a request whose body is not used. The body is read all the same, or the client could not read
/// the response, and the start of the next request would be unknown.
///
/// The connection is closed if the rest cannot be read: after `Expect: 100-continue`, from an unauthenticated
/// client, or above the bound of ignored bytes.
#[cold]
async fn without_body(
    admitted: Result<Route, Problem>,
    head: &Parts,
    body: Incoming,
    link: &Link,
) -> Result<(Route, Bytes), Problem> {
    let is_held_back = head.headers.contains_key(header::EXPECT);
    let is_read = !is_held_back && !link.serves_one_request();
    if body.is_end_stream() || (is_read && body::is_ignored(body, link).await) {
        return admitted.map(|route| (route, query(head)));
    }
    if !is_held_back {
        link.expect_more();
    }
    let unwanted = || Problem::bad_request("this route takes no body; send none");
    Err(admitted.map_or_else(|problem| problem, |_| unwanted()).and_close())
}

/// Returns the query of the URI; empty if there is none.
fn query(head: &Parts) -> Bytes {
    head.uri.query().map_or_else(Bytes::new, |query| Bytes::copy_from_slice(query.as_bytes()))
}

/// Returns the route of a request that may be served, after all checks of its head.
///
/// A missing or wrong token is status 401, a foreign `Host` and a change without a token are 403. An unknown path
/// is 404, and a wrong method 405 with `Allow`.
#[inline]
fn admitted(head: &Parts, link: &Link) -> Result<Route, Problem> {
    let engine = &*link.worker.engine;
    if link.scope == Scope::Health && !is_health(head.uri.path()) {
        return Err(too_many_connections(link));
    }
    if length(&head.uri) > MAX_URI_BYTES {
        return Err(uri_too_long());
    }
    if head.headers.len() > MAX_FIELDS {
        return Err(too_many_fields(head.headers.len()));
    }
    let path = head.uri.path();
    let place = Route::of(path).ok_or_else(|| no_such_route(path))?;
    let route = place.by(&head.method).ok_or_else(|| not_taken(place, head))?;
    if route.needs_admin() {
        engine.may_change().map_err(|why| Problem::new(StatusCode::FORBIDDEN, why))?;
    }
    if route.is_guarded() && engine.token().is_none() && !host::is_of_this_machine(head) {
        return Err(Problem::new(StatusCode::FORBIDDEN, OTHER_HOST));
    }
    if route.is_guarded() && !knows_token(head, engine) {
        let problem = Problem::new(StatusCode::UNAUTHORIZED, UNAUTHENTICATED);
        return Err(problem.with(header::WWW_AUTHENTICATE, "Bearer realm=\"tidegate\""));
    }
    match route.content() {
        Content::Json if !is_said(head, b"application/json") => {
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, NO_JSON))
        }
        Content::Toml if !is_said(head, b"application/toml") => {
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, NO_TOML))
        }
        Content::None if route == Route::Rules && wants_text(head) => Ok(Route::RulesText),
        Content::None if route == Route::Ready && is_authorized(head, engine) => Ok(Route::ReadyInDetail),
        _ => Ok(route),
    }
}

/// Returns true for the paths of health checks.
fn is_health(path: &str) -> bool {
    matches!(Route::of(path), Some(Route::Live | Route::Ready))
}

/// Returns the response to all requests but health checks above the connection limit.
#[cold]
fn too_many_connections(link: &Link) -> Problem {
    link.worker.meter().cut_off.add(1);
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, TOO_MANY_DETAIL);
    problem.with(header::RETRY_AFTER, "1").and_close()
}

/// Returns the length of a URI in bytes.
fn length(uri: &Uri) -> usize {
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    path + uri.authority().map_or(0, |authority| authority.as_str().len())
}

/// Returns the problem of a URI that is too long.
#[cold]
pub(super) fn uri_too_long() -> Problem {
    let detail = format!("the URI has more than {MAX_URI_BYTES} bytes; what is asked goes into the body");
    Problem::new(StatusCode::URI_TOO_LONG, detail)
}

/// Returns the problem of a head with too many fields.
#[cold]
fn too_many_fields(count: usize) -> Problem {
    let detail = format!("{count} header fields; send at most {MAX_FIELDS}");
    Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
}

/// Returns the problem of a method that the path does not take.
#[cold]
fn not_taken(place: Route, head: &Parts) -> Problem {
    let detail = format!("{} takes {}, not {}", head.uri.path(), place.methods(), head.method);
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).with(header::ALLOW, place.methods())
}

/// Returns the problem of an unknown path.
#[cold]
fn no_such_route(path: &str) -> Problem {
    let detail = format!("there is nothing at {path}; /openapi.json lists what there is");
    Problem::new(StatusCode::NOT_FOUND, detail)
}

/// Returns true if the request has the token, or the server has none.
///
/// The scheme `Bearer` is compared in any case, the token in constant time.
#[inline]
fn knows_token(head: &Parts, engine: &Engine) -> bool {
    let Some(token) = engine.token() else { return true };
    if head.headers.get(TOKEN).is_some_and(|guess| token.is(guess.as_bytes())) {
        return true;
    }
    let guess = head.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let guess = guess.and_then(|value| value.split_at_checked(b"Bearer ".len()));
    guess.is_some_and(|(scheme, guess)| scheme.eq_ignore_ascii_case(b"Bearer ") && token.is(guess))
}

/// Returns true if a client may use guarded routes.
///
/// Used for the details of readiness, which name files and addresses.
fn is_authorized(head: &Parts, engine: &Engine) -> bool {
    match engine.token() {
        Some(_) => knows_token(head, engine),
        None => host::is_of_this_machine(head),
    }
}

/// Returns the reply of a route. It may take a while if a remote store is asked, or a batch yields.
///
/// Routes that change something are executed by the module `operator`, which needs the preconditions as well.
async fn reply_to(route: Route, body: &[u8], headers: &mut HeaderMap, link: &Link) -> Result<Reply, Problem> {
    let engine = &*link.worker.engine;
    match route {
        Route::Live => Ok(Reply::json(r#"{"live":true}"#)),
        Route::Ready => ready::page(engine, ready::ReadyDetail::InShort),
        Route::ReadyInDetail => ready::page(engine, ready::ReadyDetail::InDetail),
        Route::Metrics => Ok(metrics::page(engine)),
        Route::OpenApi => Ok(Reply::json(OPENAPI)),
        Route::Take => verbs::take(body, headers, &link.worker).await,
        Route::Throttle => throttle::throttle(body, headers, &link.worker).await,
        Route::Peek => verbs::peek(body, headers, engine).await,
        Route::Adjust => verbs::adjust(body, engine).await,
        Route::Reset => verbs::reset(body, engine).await,
        Route::Release => verbs::lease(body, Lease::Release, engine).await,
        Route::Renew => verbs::lease(body, Lease::Renew, engine).await,
        Route::Admit => admit::admit(body, headers, engine).await,
        Route::AdmitBatch => batch::admit(body, headers, engine).await,
        Route::Explain => admit::explain(body, engine).await,
        Route::Top => top::top(body, engine),
        Route::Bans => bans::bans(body, engine).await,
        Route::Rules => Ok(rules::list(headers, engine)),
        Route::RulesText => rules::text(headers, engine),
        Route::Overrides => Ok(overrides::list(engine)),
        Route::Auth | Route::PutRules | Route::PutOverride | Route::DeleteOverride => {
            unreachable!("`auth` and `operator` read header fields of the request")
        }
    }
}

/// Returns true if the body has this `Content-Type`. A browser sends such a cross-origin request only after a
/// preflight, which this server does not accept.
#[inline]
fn is_said(head: &Parts, kind: &[u8]) -> bool {
    head.headers.get(header::CONTENT_TYPE).is_some_and(|said| is_of_type(said.as_bytes(), kind))
}

/// Returns true if a media type equals `kind`, in any case, with or without parameters.
#[inline]
fn is_of_type(said: &[u8], kind: &[u8]) -> bool {
    said.split_at_checked(kind.len()).is_some_and(|(said, rest)| {
        said.eq_ignore_ascii_case(kind) && matches!(rest.trim_ascii_start().first(), None | Some(b';'))
    })
}

/// Returns true if `Accept` prefers the text of the file to JSON: the first known type decides.
///
/// Weights (`q=`) are not evaluated.
fn wants_text(head: &Parts) -> bool {
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
