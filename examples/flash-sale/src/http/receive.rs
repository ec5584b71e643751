//! Authentication of requests, before anything is counted, so that no client can spend the quota of another.
//!
//! Every URL has one spelling: another spelling is not found. Two spellings of one URL are different for rules, logs and
//! caches, and the same for the shop.

use std::str::FromStr;

use axum::extract::{Path, Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::answer::{Answer, bad_link, over, unknown_path, unknown_sale, unprocessable};
use super::app::App;
use super::pages::VISITOR;
use crate::limits::{Limiting, address_of};
use crate::strategy::Strategy;

/// A buyer with a valid signature of the shop.
#[derive(Clone, Debug)]
pub(crate) struct Buyer {
    pub(crate) user: String,
    /// The address by which the request is counted.
    pub(crate) address: String,
}

/// The limiter and the strategy of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) limiting: Limiting,
    pub(crate) strategy: Strategy,
}

/// A function that returns the user of a request to a path with this number, or the denial of a request without a valid
/// signature.
pub(super) type Authenticate = fn(&App, &str, &Request) -> Result<String, Answer>;

/// Authenticates a request. One without a valid signature is passed on with its denial: it is counted by its address
/// first.
pub(super) async fn receive(
    State((app, authenticate)): State<(App, Authenticate)>,
    Path(number): Path<String>,
    mut request: Request,
    next: Next,
) -> Response {
    let found = authenticate(&app, &number, &request);
    let wanted = match Wanted::of(&app, request.headers()) {
        Ok(wanted) => wanted,
        Err(answer) => return answer.into_response(),
    };
    let address = address_of(&request);
    let extensions = request.extensions_mut();
    extensions.insert(wanted);
    match found {
        Ok(user) => _ = extensions.insert(Buyer { user, address }),
        Err(denial) => _ = extensions.insert(denial),
    }
    next.run(request).await
}

/// Denies requests without a valid signature.
pub(super) async fn refuse_strangers(mut request: Request, next: Next) -> Response {
    match request.extensions_mut().remove::<Answer>() {
        Some(denial) => denial.into_response(),
        None => next.run(request).await,
    }
}

/// Rejects paths with percent-encoding. No path of the shop needs any, so `%31` is not `1`, and `%ff` is not text.
pub(super) async fn refuse_encoded(request: Request, next: Next) -> Response {
    if request.uri().path().contains('%') {
        return unknown_path().into_response();
    }
    next.run(request).await
}

/// Returns the buyer of a purchase request, by its link.
pub(super) fn buyer(app: &App, sale: &str, request: &Request) -> Result<String, Answer> {
    app.shop.meter.requested();
    let sale = sale_number(sale).ok_or_else(unknown_sale)?;
    let Some((user, until)) = app.settings.signer.buyer_of(sale, request.uri()) else {
        return Err(bad_link("this link was not made by the shop for this sale; ask for one at …/link"));
    };
    if until <= app.seen.now() {
        let is_over = app.seen.sale(sale).is_some_and(|view| view.is_settled());
        let too_late = || bad_link("the time of this link is over; ask for a new one at …/link");
        return Err(if is_over { over() } else { too_late() });
    }
    Ok(user)
}

/// Returns the visitor who requests a link, by the cookie.
pub(super) fn visitor(app: &App, _: &str, request: &Request) -> Result<String, Answer> {
    let unknown = "the shop does not know this visitor; load its page, allow its cookie and try again";
    visitor_of(app, request.headers()).ok_or_else(|| bad_link(unknown))
}

/// Returns the buyer who pays for an order, by the link.
pub(super) fn payer(app: &App, order: &str, request: &Request) -> Result<String, Answer> {
    let why = "this link was not made by the shop for this order; take the one that came with the order";
    app.settings.signer.payer_of(order, request.uri()).ok_or_else(|| bad_link(why))
}

/// Returns the name of the visitor, if the cookie is valid.
pub(super) fn visitor_of(app: &App, headers: &HeaderMap) -> Option<String> {
    let mut cookies = VISITOR.values(headers, app.settings.is_behind_tls);
    cookies.find_map(|cookie| app.settings.signer.user_of(cookie)).map(str::to_owned)
}

/// Returns the number of a sale in the spelling of the shop: no sign, no leading zeros.
pub(super) fn sale_number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

impl Wanted {
    /// Returns the settings of the shop; in an experiment, those that the request chooses.
    fn of(app: &App, headers: &HeaderMap) -> Result<Wanted, Answer> {
        let mut wanted = Wanted { limiting: app.settings.limiting, strategy: app.settings.strategy };
        if app.settings.is_experiment {
            choose(&mut wanted.strategy, headers, "strategy")?;
            choose(&mut wanted.limiting, headers, "limiter")?;
        }
        Ok(wanted)
    }
}

/// Sets what the header field `x-…` of this name chooses, if there is one.
fn choose<T: FromStr<Err = String>>(chosen: &mut T, headers: &HeaderMap, what: &str) -> Result<(), Answer> {
    if let Some(name) = headers.get(format!("x-{what}")) {
        let name = String::from_utf8_lossy(name.as_bytes());
        *chosen = name.parse().map_err(|error: String| unprocessable(&format!("bad_{what}"), error))?;
    }
    Ok(())
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
