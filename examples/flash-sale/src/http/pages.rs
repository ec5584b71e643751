//! The pages, which are a part of the program.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, SET_COOKIE};
use axum::response::{AppendHeaders, IntoResponse, Response};

use super::answer::unknown_path;
use super::app::App;
use super::headers::Cookie;
use super::receive::visitor;
use crate::link::new_visitor;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

const BUYER: &str = include_str!("../../pages/buyer.html");
const KEEPER: &str = include_str!("../../pages/keeper.html");

/// The cookie that says who a visitor is, for a day.
pub(super) const VISITOR: Cookie =
    Cookie { name: "visitor", path: "/", prefix: "__Host-", same_site: "Lax", max_age_s: 24 * 60 * 60 };

/// A file's name, its kind and its text.
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

/// The buyers' page; whoever has no cookie of ours gets one.
pub(super) async fn buyer(State(app): State<App>, headers: HeaderMap) -> Response {
    if visitor(&app, &headers).is_some() {
        return page(HTML, BUYER);
    }
    let cookie = VISITOR.set(&app.signer.visitor(&new_visitor()), app.is_behind_tls);
    (AppendHeaders([(SET_COOKIE, cookie)]), page(HTML, BUYER)).into_response()
}

/// One of the files that pages load.
pub(super) async fn file(Path(wanted): Path<String>) -> Response {
    match FILES.iter().find(|(name, ..)| *name == wanted) {
        Some((_, kind, text)) => page(kind, text),
        None => unknown_path().into_response(),
    }
}

/// A text of the program, which browsers ask for again each time.
fn page(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], text).into_response()
}

/// The shopkeeper's page.
pub(super) fn keeper() -> Response {
    page(HTML, KEEPER)
}
