//! The reply to requests that the limiter denies: the time to the next try, and the stock as last seen.
//!
//! It is cheap: it uses no database, and its page is static. A browser gets a page, a program gets JSON.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use bytes::Bytes;
use tidegate::SECOND;
use tidegate_tower::{DeniedRequest, Reason};

use super::answer::{Answer, SOLD_OUT, UNAVAILABLE, seconds};
use super::receive::sale_number;
use crate::meter::Meter;
use crate::seen::Seen;

const PAGE: &str = include_str!("../../pages/limited.html");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// A factory of such replies. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Degraded {
    seen: Seen,
    meter: Arc<Meter>,
}

impl Degraded {
    pub(super) fn new(seen: Seen, meter: Arc<Meter>) -> Degraded {
        Degraded { seen, meter }
    }

    /// Returns the reply to a request that a layer denies.
    pub(crate) fn answer(&self, refused: &DeniedRequest<'_>) -> Response<Bytes> {
        let head = refused.head();
        if !matches!(refused.reason(), Reason::Quota | Reason::Capacity) {
            return other(refused);
        }
        let (sale, what) = asked_for(head.path());
        let wait = refused.retry_after().unwrap_or(SECOND);
        match what {
            "buy" => self.limited(sale, wait, head.headers()),
            // Only purchase requests are counted as requests, so only they are counted as denied.
            _ => self.limited_answer(sale, wait, head.headers()),
        }
    }

    /// Returns the reply to a purchase request that may try again after this wait, and counts it.
    pub(super) fn limited(&self, sale: i64, wait: Duration, headers: &HeaderMap) -> Response<Bytes> {
        self.meter.refused();
        self.limited_answer(sale, wait, headers)
    }

    fn limited_answer(&self, sale: i64, wait: Duration, headers: &HeaderMap) -> Response<Bytes> {
        let left = self.seen.left(sale);
        let message = match left {
            Some(0) => SOLD_OUT.to_owned(),
            _ => format!("too many requests, try again in {} s", seconds(wait)),
        };
        let left_in_words = left.map_or("–".to_owned(), |left| left.to_string());
        let answer = Answer::new(StatusCode::TOO_MANY_REQUESTS, "limited");
        let mut response = answer.message(&message).with("left", left).retry_after(wait).into_json();
        if prefers_html(headers) {
            // The first lines of the file describe its placeholders.
            let page = PAGE.split_once("-->").map_or(PAGE, |(_, page)| page.trim_start());
            let page = page.replace("{message}", &message).replace("{left}", &left_in_words);
            *response.body_mut() = page.replace("{retry}", &seconds(wait).to_string()).into();
            response.headers_mut().insert(CONTENT_TYPE, HTML);
        }
        response
    }
}

/// Returns the reply to a request that rules deny for another reason than its rate.
fn other(refused: &DeniedRequest<'_>) -> Response<Bytes> {
    let (result, message) = match refused.reason() {
        Reason::Forbidden => ("forbidden", "the shop's rules refuse such requests; ask the shopkeeper"),
        Reason::NoPeer => ("unavailable", "the shop does not know who is connected; tell the shopkeeper"),
        Reason::Missing => ("refused", "the request lacks what it is counted by; load the shop's page again"),
        _ => ("unavailable", UNAVAILABLE),
    };
    Answer::new(refused.status(), result).message(message).into_json()
}

/// Returns the sale and the last word of a path such as `/api/sales/1/buy`; 0 if there is no sale, as numbers start at
/// 1.
fn asked_for(path: &str) -> (i64, &str) {
    let mut words = path.strip_prefix("/api/sales/").unwrap_or_default().split('/');
    let sale = words.next().and_then(sale_number);
    (sale.unwrap_or(0), words.next().unwrap_or_default())
}

/// Returns true if a page is preferred to JSON, by `Accept` with its weights.
fn prefers_html(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let ranges: Vec<_> = lines.flat_map(|line| line.split(',')).map(range).collect();
    let weight = |kind: &str, all: &str| {
        let of = |wanted: &str| ranges.iter().find(|(range, _)| range == wanted).map(|(_, weight)| *weight);
        of(kind).or_else(|| of(all)).or_else(|| of("*/*")).unwrap_or(0.0)
    };
    weight("text/html", "text/*") > weight("application/json", "application/*")
}

/// Parses a media type and its weight.
fn range(text: &str) -> (String, f32) {
    let mut parts = text.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    (kind, weight.and_then(|text| text.parse().ok()).unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_for_those_who_want_one_more_than_json() {
        let wants = |accept: &str| {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            prefers_html(&headers)
        };
        for accept in [
            "text/html",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "application/json;q=0.5, text/html;q=0.6",
            "TEXT/HTML",
            "text/*",
        ] {
            assert!(wants(accept), "{accept}");
        }
        for accept in
            ["*/*", "application/json", "text/html, application/json", "text/html;q=0.1,*/*", "", ";;,q=x"]
        {
            assert!(!wants(accept), "{accept}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }

    #[test]
    fn the_page_has_room_for_what_is_filled_in_and_for_nothing_else() {
        let (notes, page) = PAGE.split_once("-->").unwrap();
        assert!(notes.starts_with("<!--"));
        for name in ["{message}", "{left}", "{retry}"] {
            assert!(page.contains(name), "{name}");
        }
        let filled = page.replace("{message}", "").replace("{left}", "").replace("{retry}", "");
        assert!(!filled.contains('{') && !filled.contains('}'));
    }

    #[test]
    fn a_path_says_the_sale_and_what_for() {
        assert_eq!(asked_for("/api/sales/7/buy"), (7, "buy"));
        assert_eq!(asked_for("/api/sales/x/link"), (0, "link"));
        assert_eq!(asked_for("/"), (0, ""));
    }
}
