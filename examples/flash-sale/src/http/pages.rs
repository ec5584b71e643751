//! The pages, which are compiled into the program.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, SET_COOKIE};
use axum::response::{AppendHeaders, IntoResponse, Response};

use super::answer::unknown_path;
use super::app::App;
use super::headers::Cookie;
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
