//! The pages, which are compiled into the program; cookies with their restrictions, and the fields of every response.

use axum::extract::{Path, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{AppendHeaders, IntoResponse, Response};

use super::answer::unknown_path;
use super::app::App;
use super::receive::visitor_of;
use crate::link::new_number;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

const BUYER: &str = include_str!("../../pages/buyer.html");
const KEEPER: &str = include_str!("../../pages/keeper.html");

/// The cookie that identifies a visitor, for a day.
pub(super) const VISITOR: Cookie =
    Cookie { name: "visitor", path: "/", prefix: "__Host-", same_site: "Lax", max_age_s: 24 * 60 * 60 };

/// A file: its name, its content type and its text.
type File = (&'static str, &'static str, &'static str);

const FILES: [File; 8] = [
    ("shop.css", CSS, include_str!("../../pages/shop.css")),
    ("icon.svg", SVG, include_str!("../../pages/icon.svg")),
    ("buyer.js", SCRIPT, include_str!("../../pages/buyer.js")),
    ("purchase.js", SCRIPT, include_str!("../../pages/purchase.js")),
    ("results.js", SCRIPT, include_str!("../../pages/results.js")),
    ("words.js", SCRIPT, include_str!("../../pages/words.js")),
    ("keeper.js", SCRIPT, include_str!("../../pages/keeper.js")),
    ("chart.js", SCRIPT, include_str!("../../pages/chart.js")),
];

/// Returns the buyers' page; a visitor without a valid cookie gets one.
pub(super) async fn buyer(State(app): State<App>, headers: HeaderMap) -> Response {
    if visitor_of(&app, &headers).is_some() {
        return page(HTML, BUYER);
    }
    let cookie = VISITOR.set(&app.settings.signer.visitor(&new_number()), app.settings.is_behind_tls);
    (AppendHeaders([(SET_COOKIE, cookie)]), page(HTML, BUYER)).into_response()
}

/// Returns one of the files that pages load.
pub(super) async fn file(Path(wanted): Path<String>) -> Response {
    match FILES.iter().find(|(name, ..)| *name == wanted) {
        Some((_, kind, text)) => page(kind, text),
        None => unknown_path().into_response(),
    }
}

/// Returns a static text, which browsers revalidate each time.
fn page(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], text).into_response()
}

/// Returns the shopkeeper's page.
pub(super) fn keeper() -> Response {
    page(HTML, KEEPER)
}

/// A cookie that the shop sets. Scripts cannot read it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cookie {
    pub(super) name: &'static str,
    /// The path below which browsers send it.
    pub(super) path: &'static str,
    /// The prefix of its name if buyers use TLS. Browsers accept a cookie of such a name only if it was set over TLS,
    /// and with `__Host-` only from this very host, so a sibling domain cannot replace it.
    pub(super) prefix: &'static str,
    pub(super) same_site: &'static str,
    pub(super) max_age_s: u32,
}

impl Cookie {
    /// Returns the value of the header field `Set-Cookie`.
    pub(super) fn set(&self, value: &str, is_behind_tls: bool) -> String {
        let Cookie { path, same_site, max_age_s, .. } = self;
        let (name, secure) = (self.name(is_behind_tls), if is_behind_tls { "; Secure" } else { "" });
        format!("{name}={value}; Path={path}; Max-Age={max_age_s}; HttpOnly; SameSite={same_site}{secure}")
    }

    /// Returns all its values in a request: a browser may have several, of other paths and domains.
    pub(super) fn values<'h>(
        &self,
        headers: &'h HeaderMap,
        is_behind_tls: bool,
    ) -> impl Iterator<Item = &'h str> {
        let name = self.name(is_behind_tls);
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.filter(move |(found, _)| *found == name).map(|(_, value)| value)
    }

    fn name(&self, is_behind_tls: bool) -> String {
        let prefix = if is_behind_tls { self.prefix } else { "" };
        format!("{prefix}{}", self.name)
    }
}

/// The content security policy: pages load from the shop only, and cannot be put into a frame.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
);

/// Adds missing header fields. Responses that may be cached have set `Cache-Control` already.
pub(super) async fn complete(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // URLs of the shop contain signatures.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
