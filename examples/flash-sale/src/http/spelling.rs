//! One spelling of every address: what is written in another way is not there.
//!
//! Two spellings of one address are two for rules, logs and caches, and one for the shop.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::answer::unknown_path;

/// Answers paths with percent-encoding: no path of the shop needs any, so `%31` is no `1`, and `%ff` is no text.
pub(super) async fn refuse_encoded(request: Request, next: Next) -> Response {
    if request.uri().path().contains('%') {
        return unknown_path().into_response();
    }
    next.run(request).await
}

/// Returns the number of a sale that is written as the shop writes it: no sign, no zeros in front.
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
