//! One spelling of every URL: another spelling is not found.
//!
//! Two spellings of one URL are different for rules, logs and caches, and the same for the shop.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::answer::unknown_path;

/// Rejects paths with percent-encoding. No path of the shop needs any, so `%31` is not `1`, and `%ff` is not text.
pub(super) async fn refuse_encoded(request: Request, next: Next) -> Response {
    if request.uri().path().contains('%') {
        return unknown_path().into_response();
    }
    next.run(request).await
}

/// Returns the number of a sale in the spelling of the shop: no sign, no leading zeros.
pub(super) fn sale_number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_spelling() {
        assert_eq!((sale_number("1"), sale_number("120")), (Some(1), Some(120)));
        for text in ["+1", "01", "001", "-0", "1 ", " 1", "1_0", "", "x", "99999999999999999999", "\u{661}"] {
            assert_eq!(sale_number(text), None, "{text}");
        }
    }
}
