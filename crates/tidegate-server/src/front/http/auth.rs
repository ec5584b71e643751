//! `/v1/auth`: decides a request that a reverse proxy describes by header fields (forward authentication).
//!
//! nginx (`auth_request`), Caddy (`forward_auth`) and Traefik (`ForwardAuth`) ask before they pass a request on. Status
//! 2xx lets them continue. Traefik and Caddy send any other reply to the client as it is. nginx knows 401 and 403, and
//! turns every other status into 500, so the status of a denial is a setting.
//!
//! ```text
//!   X-Forwarded-For                                       ip, read from the right
//!   X-Forwarded-Uri, X-Original-URI, X-Original-URL       path, query.NAME
//!   X-Forwarded-Method, X-Original-Method                 method
//!   X-Forwarded-Host, the host of X-Original-URL          host
//!   the client's header fields, which proxies pass on     header.NAME, cookie.NAME
//!   the query of /v1/auth itself                          any other attribute, as the proxy is configured
//! ```
//!
//! A proxy sets one family of these fields, and a client can send the other one. Two fields that disagree are an error:
//! with a guess, a client could choose the path that is counted.

use std::borrow::Cow;
use std::net::IpAddr;

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tidegate::Verdict;
use tidegate_rules::{Admission, Attributes, Batch, HttpParts, Policy};
use tidegate_support::{Form, MAX_HOPS, TrustedProxies, decoded_query, from_the_right};
use tokio::time::sleep;

use super::admit::{self, ReplyFormat};
use super::link::{Link, Stage};
use super::problem::Problem;
use super::reply::Reply;
use crate::attribute;
use crate::engine::Engine;

static FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static HOST: [HeaderName; 2] =
    [HeaderName::from_static("x-forwarded-host"), HeaderName::from_static("x-original-url")];
static METHOD: [HeaderName; 2] =
    [HeaderName::from_static("x-forwarded-method"), HeaderName::from_static("x-original-method")];
static URI: [HeaderName; 3] = [
    HeaderName::from_static("x-forwarded-uri"),
    HeaderName::from_static("x-original-uri"),
    HeaderName::from_static("x-original-url"),
];
/// The field of the permits that an allowed request holds. Proxies drop the body of the reply.
const PERMIT: HeaderName = HeaderName::from_static("tidegate-permit");
/// The longest value of that field. A permit contains its key, and a proxy fails a request whose reply has a head above
/// its buffer, which is 4 KiB in nginx. Longer permits end with their lease.
const MAX_PERMIT_BYTES: usize = 1024;

/// The parameter of the query that sets the status of a denial for one proxy.
const DENIAL_STATUS: &str = "denial_status";

/// A request after its attributes are read.
#[derive(Debug)]
pub(super) struct AuthRequest {
    /// The decision, or what is needed to ask a remote store.
    asked: Asked,
    /// The status code of a denial.
    of_denial: StatusCode,
}

/// A decision of a store in memory, or the policy and the attributes for a remote store.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it lives for one request, and the large one is the usual one")]
enum Asked {
    Decided(Admission),
    Remote(Batch, Attributes<'static>),
}

/// Reads the attributes, and decides at once if the store is in memory.
///
/// # Errors
/// A problem with status 400 if the proxy does not send what the rules in force match.
pub(super) fn decide(headers: &HeaderMap, query: &[u8], engine: &Engine) -> Result<AuthRequest, Problem> {
    let described = Described::read(headers, &engine.settings().auth.trusted_proxies)?;
    let (own, of_denial) = of_query(query)?;
    if !own.is_empty() {
        described.differs_from(query)?;
    }
    let of_denial = of_denial.unwrap_or(engine.settings().auth.denial_status);
    let policy = engine.gate().pin();
    let attributes = described.attributes(policy.policy(), &own)?.all_limits();
    let asked = match engine.rules().admit_pinned(&policy, &attributes) {
        Some(admission) => Asked::Decided(admission),
        None => Asked::Remote(policy.to_batch(), attributes.into_owned()),
    };
    Ok(AuthRequest { asked, of_denial })
}

/// Replies, after the delay of an allowed request.
///
/// The permits of the request are released if the reply is not written.
pub(super) async fn reply(
    request: Result<AuthRequest, Problem>,
    headers: &mut HeaderMap,
    link: &Link,
) -> Result<Reply, Problem> {
    let (engine, AuthRequest { asked, of_denial }) = (&*link.worker.engine, request?);
    let admission = match asked {
        Asked::Decided(admission) => admission,
        Asked::Remote(policy, attributes) => engine.rules().admit_by(&policy, &attributes).await?,
    };
    let mut reply = admit::reply_to(&admission, headers, engine, ReplyFormat { of_denial, is_held: true });
    let text = reply.permits.first().map(ToString::to_string).filter(|text| text.len() <= MAX_PERMIT_BYTES);
    headers.extend(text.and_then(|text| HeaderValue::try_from(text).ok()).map(|value| (PERMIT, value)));
    link.tell_of(std::mem::take(&mut reply.permits));
    if let Verdict::Allowed { delay } = admission.verdict()
        && !delay.is_zero()
    {
        link.enter(Stage::Held);
        sleep(delay).await;
    }
    Ok(reply)
}

/// A request as a proxy describes it.
#[derive(Debug)]
struct Described<'h> {
    headers: &'h HeaderMap,
    /// The address of the client; `None` if no proxy has sent it.
    ip: Option<IpAddr>,
    method: Option<&'h [u8]>,
    /// The path, and the query if there is one.
    uri: Option<(&'h [u8], Option<&'h [u8]>)>,
    host: Option<&'h [u8]>,
}

impl<'h> Described<'h> {
    /// Reads the fields of a proxy.
    fn read(headers: &'h HeaderMap, trusted: &TrustedProxies) -> Result<Described<'h>, Problem> {
        // A browser cannot add these fields to a request to another site without permission, so no page can spend the
        // quota of others by a link to this server.
        let described = METHOD.iter().chain(&URI).chain(&HOST).chain([&FORWARDED_FOR]);
        if !described.into_iter().any(|name| headers.contains_key(name)) {
            return Err(Problem::bad_request(
                "no header field describes a request; let the proxy set X-Forwarded-For, X-Forwarded-Method, \
                 X-Forwarded-Host and X-Forwarded-Uri",
            ));
        }
        let method = agreed(&METHOD, METHOD.iter().flat_map(|name| values(headers, name)))?;
        let uris: Vec<_> =
            URI.iter().flat_map(|name| values(headers, name)).map(split).collect::<Result<_, _>>()?;
        let uri = agreed(&URI, uris.into_iter().map(|(_, uri)| uri))?.map(path_and_query);
        let of_urls: Vec<_> = values(headers, &HOST[1]).map(split).collect::<Result<_, _>>()?;
        let of_urls = of_urls.into_iter().filter_map(|(host, _)| host);
        let host = agreed(&HOST, values(headers, &HOST[0]).chain(of_urls))?;
        Ok(Described { headers, ip: client(headers, trusted)?, method, uri, host })
    }

    /// Returns an error if the query of the call is that of the client. Then a client could set attributes, and the
    /// status of its denials.
    fn differs_from(&self, query: &[u8]) -> Result<(), Problem> {
        match self.uri {
            Some((_, Some(own))) if !query.is_empty() && own == query => Err(Problem::bad_request(
                "the proxy passes the query of its client on to /v1/auth, where it would set attributes; let the proxy \
                 remove it, as `uri /v1/auth?` does in Caddy",
            )),
            _ => Ok(()),
        }
    }

    /// Returns the attributes that the rules use. `own` are those that the configuration of the proxy adds.
    fn attributes<'a>(
        &self,
        policy: &'a Policy,
        own: &[(Cow<'a, str>, Cow<'a, [u8]>)],
    ) -> Result<Attributes<'a>, Problem>
    where
        'h: 'a,
    {
        let (path, query) = self.uri.unzip();
        let parts = HttpParts {
            method: self.method,
            path,
            host: self.host,
            query: query.flatten(),
            headers: self.headers,
        };
        let mut attributes = parts.attributes(policy);
        for (name, value) in own {
            attribute::add(&mut attributes, name.clone(), value.clone()).map_err(|wrong| {
                Problem::bad_request(format!("the attribute {name:?} in the query {wrong}"))
            })?;
        }
        if let Some(ip) = self.ip {
            attributes = attributes.ip(ip);
        }
        self.require(policy)?;
        Ok(attributes)
    }

    /// Returns an error if rules match a part that the proxy does not send. A rule that never applies would limit
    /// nothing, and no client would notice.
    fn require(&self, policy: &Policy) -> Result<(), Problem> {
        let lacking = policy.attributes().find_map(|name| match name {
            "ip" => self.ip.is_none().then_some((name, "X-Forwarded-For")),
            "path" => self.uri.is_none().then_some((name, "X-Forwarded-Uri or X-Original-URI")),
            "method" => self.method.is_none().then_some((name, "X-Forwarded-Method or X-Original-Method")),
            "host" => self.host.is_none().then_some((name, "X-Forwarded-Host")),
            _ if name.starts_with("query.") => {
                self.uri.is_none().then_some((name, "X-Forwarded-Uri or X-Original-URI"))
            }
            _ => None,
        });
        lacking.map_or(Ok(()), |(attribute, field)| {
            Err(Problem::bad_request(format!(
                "rules match {attribute}, and the proxy does not send it; let the proxy set {field}"
            )))
        })
    }
}

/// Returns the address of the client, read from the right of `X-Forwarded-For`.
///
/// The proxy that asks has appended the right-most item, so that item is a fact. The items left of it are facts as long
/// as the items right of them are trusted proxies.
fn client(headers: &HeaderMap, trusted: &TrustedProxies) -> Result<Option<IpAddr>, Problem> {
    let mut hops = from_the_right(headers, &FORWARDED_FOR, Form::Bare).take(MAX_HOPS);
    match hops.next() {
        None => Ok(None),
        Some(Some(last)) => Ok(Some(trusted.client_of(last, hops))),
        Some(None) => Err(Problem::bad_request(
            "X-Forwarded-For ends with an item that is no address; let the proxy append the address of its client",
        )),
    }
}

/// Returns the values of a field that are not empty.
fn values<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h [u8]> + use<'h> {
    headers
        .get_all(name)
        .into_iter()
        .map(|value| value.as_bytes().trim_ascii())
        .filter(|value| !value.is_empty())
}

/// Returns the one value that all fields have, if there is one. Different values are an error.
fn agreed<'h>(
    names: &[HeaderName],
    mut values: impl Iterator<Item = &'h [u8]>,
) -> Result<Option<&'h [u8]>, Problem> {
    let Some(first) = values.next() else { return Ok(None) };
    if values.all(|value| value == first) {
        return Ok(Some(first));
    }
    let names = names.iter().map(HeaderName::as_str).collect::<Vec<_>>().join(", ");
    Err(Problem::bad_request(format!(
        "the fields {names} disagree, and a client may have sent one of them; let the proxy remove those that it does \
         not set"
    )))
}

/// Splits an absolute URI into its host and the rest, which begins with the path. Another URI is all path.
///
/// A host ends at a slash. With a `?` or `#` before it, as in `http://shop?/login`, a client has sent an invalid host:
/// the proxy passes `/login` on, and this URI has no path.
fn split(uri: &[u8]) -> Result<(Option<&[u8]>, &[u8]), Problem> {
    let Some(scheme) = uri.windows(3).position(|part| part == b"://").filter(|_| !uri.starts_with(b"/"))
    else {
        return Ok((None, uri));
    };
    let rest = &uri[scheme + 3..];
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    let host = rest[..end].rsplit(|byte| *byte == b'@').next().filter(|host| !host.is_empty());
    match rest.get(end) {
        Some(b'/') => Ok((host, &rest[end..])),
        None => Ok((host, b"/")),
        Some(_) => Err(Problem::bad_request(
            "the URL of the proxy has no path before its query; let the proxy send a URL as in https://shop.example/login",
        )),
    }
}

/// Splits a URI into its path and its query. A query ends at a `#`, and so does a path without a query; rules read such
/// a path with and without the rest.
fn path_and_query(uri: &[u8]) -> (&[u8], Option<&[u8]>) {
    let of_query = |byte: &u8| *byte == b'#';
    match uri.iter().position(|byte| matches!(byte, b'?' | b'#')) {
        Some(mark) if uri[mark] == b'?' => (&uri[..mark], uri[mark + 1..].split(of_query).next()),
        _ => (uri, None),
    }
}

/// The attributes that the configuration of a proxy adds, and the status of a denial.
type OfQuery<'q> = (Vec<(Cow<'q, str>, Cow<'q, [u8]>)>, Option<StatusCode>);

/// Reads the query of `/v1/auth`, which the configuration of the proxy contains.
fn of_query(query: &[u8]) -> Result<OfQuery<'_>, Problem> {
    let (mut attributes, mut status) = (Vec::new(), None);
    for part in query.split(|byte| *byte == b'&').filter(|part| !part.is_empty()) {
        let equals = part.iter().position(|byte| *byte == b'=').unwrap_or(part.len());
        let (name, value) =
            (decoded_query(&part[..equals]), decoded_query(part.get(equals + 1..).unwrap_or_default()));
        let name = attribute_name(name)?;
        match &*name {
            DENIAL_STATUS if status.is_some() => {
                return Err(Problem::bad_request(
                    "the query of /v1/auth has denial_status twice; leave one of them out",
                ));
            }
            DENIAL_STATUS => status = Some(denial_status(&value)?),
            known if matches!(known, "ip" | "path" | "method" | "host") || attribute::may_repeat(known) => {
                return Err(Problem::bad_request(format!(
                    "the attribute {known:?} comes from the header fields of the proxy; remove it from the query of /v1/auth"
                )));
            }
            _ => attributes.push((name, value)),
        }
    }
    Ok((attributes, status))
}

/// Returns the name of an attribute.
fn attribute_name(name: Cow<'_, [u8]>) -> Result<Cow<'_, str>, Problem> {
    let of_text =
        |_| Problem::bad_request("the query of /v1/auth has a name that is no text; write NAME=VALUE");
    match name {
        Cow::Borrowed(name) => std::str::from_utf8(name).map(Cow::Borrowed).map_err(of_text),
        Cow::Owned(name) => {
            String::from_utf8(name).map(Cow::Owned).map_err(|error| of_text(error.utf8_error()))
        }
    }
}

/// Parses the status of a denial.
fn denial_status(text: &[u8]) -> Result<StatusCode, Problem> {
    match text {
        b"403" => Ok(StatusCode::FORBIDDEN),
        b"429" => Ok(StatusCode::TOO_MANY_REQUESTS),
        _ => Err(Problem::bad_request(
            "the query of /v1/auth: unknown denial_status; write denial_status=403 or denial_status=429",
        )),
    }
}
