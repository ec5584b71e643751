//! Authentication of requests, before anything is counted, so that no client can spend the quota of another.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::answer::{Answer, bad_link, over, unknown_sale};
use super::app::App;
use super::pages::VISITOR;
use super::spelling::sale_number;
use super::wanted::Wanted;

/// A buyer with a valid signature of the shop.
#[derive(Clone, Debug)]
pub(crate) struct Buyer {
    pub(crate) user: String,
    /// The address by which the request is counted.
    pub(crate) address: String,
}

/// The reason why a request has no valid signature.
#[derive(Clone, Copy, Debug)]
enum Stranger {
    Forged,
    ForgedPayment,
    UnknownSale,
    TooLate,
    Over,
    NoVisitor,
}

/// The query parameters of a link to buy.
#[derive(Debug, Deserialize)]
struct ToBuy {
    user: String,
    until: i64,
    sign: String,
}

/// The query parameters of a link to pay.
#[derive(Debug, Deserialize)]
struct ToPay {
    user: String,
    sign: String,
}

/// The number of a sale in a path, if it is valid and in the spelling of the shop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number(pub(super) Option<i64>);

impl<S: Send + Sync> FromRequestParts<S> for Number {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Number, Infallible> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        Ok(Number(path.ok().and_then(|Path(text)| sale_number(&text))))
    }
}

/// The number of an order in a path; empty if it is not valid text.
#[derive(Clone, Debug)]
pub(super) struct Order(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Order {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Order, Infallible> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        Ok(Order(path.map(|Path(text)| text).unwrap_or_default()))
    }
}

/// Authenticates a purchase request by its link.
pub(super) async fn receive_buyer(
    State(app): State<App>,
    Number(sale): Number,
    request: Request,
    next: Next,
) -> Response {
    app.shop.meter.requested();
    let found = buyer(&app, sale, &request);
    pass_on(&app, found, request, next).await
}

/// Authenticates the request of a visitor for a link.
pub(super) async fn receive_visitor(State(app): State<App>, request: Request, next: Next) -> Response {
    let found = visitor(&app, request.headers()).ok_or(Stranger::NoVisitor);
    pass_on(&app, found, request, next).await
}

/// Authenticates a payment by its link.
pub(super) async fn receive_payer(
    State(app): State<App>,
    Order(order): Order,
    request: Request,
    next: Next,
) -> Response {
    let found = payer(&app, &order, &request);
    pass_on(&app, found, request, next).await
}

/// Rejects unauthenticated requests, which were counted by their address.
pub(super) async fn refuse_strangers(request: Request, next: Next) -> Response {
    match request.extensions().get::<Stranger>() {
        Some(stranger) => stranger.answer().into_response(),
        None => next.run(request).await,
    }
}

/// Returns the name of the visitor, if the cookie is valid.
pub(super) fn visitor(app: &App, headers: &HeaderMap) -> Option<String> {
    let mut cookies = VISITOR.values(headers, app.is_behind_tls);
    cookies.find_map(|cookie| app.signer.user_of(cookie)).map(str::to_owned)
}

async fn pass_on(app: &App, found: Result<String, Stranger>, mut request: Request, next: Next) -> Response {
    let wanted = match Wanted::of(app, request.headers()) {
        Ok(wanted) => wanted,
        Err(answer) => return answer.into_response(),
    };
    let address = app.limits.address_of(&request);
    let extensions = request.extensions_mut();
    extensions.insert(wanted);
    match found {
        Ok(user) => _ = extensions.insert(Buyer { user, address }),
        Err(stranger) => _ = extensions.insert(stranger),
    }
    next.run(request).await
}

fn buyer(app: &App, sale: Option<i64>, request: &Request) -> Result<String, Stranger> {
    let sale = sale.ok_or(Stranger::UnknownSale)?;
    let Query(link) = Query::<ToBuy>::try_from_uri(request.uri()).map_err(|_| Stranger::Forged)?;
    let is_ours = app.signer.has_made_buy_url(sale, &link.user, (link.until, &link.sign));
    if !is_ours || !is_spelled(request.uri(), &app.signer.buy_url(sale, &link.user, link.until)) {
        return Err(Stranger::Forged);
    }
    if link.until <= app.seen.now() {
        let is_over = app.seen.sale(sale).is_some_and(|view| view.is_settled());
        return Err(if is_over { Stranger::Over } else { Stranger::TooLate });
    }
    Ok(link.user)
}

fn payer(app: &App, order: &str, request: &Request) -> Result<String, Stranger> {
    let Query(link) = Query::<ToPay>::try_from_uri(request.uri()).map_err(|_| Stranger::ForgedPayment)?;
    let is_ours = app.signer.has_made_pay_url(order, &link.user, &link.sign);
    if !is_ours || !is_spelled(request.uri(), &app.signer.pay_url(order, &link.user)) {
        return Err(Stranger::ForgedPayment);
    }
    Ok(link.user)
}

/// Returns true if a URL is written exactly as the shop wrote it.
fn is_spelled(uri: &Uri, link: &str) -> bool {
    uri.path_and_query().is_some_and(|written| written.as_str() == link)
}

impl Stranger {
    fn answer(self) -> Answer {
        match self {
            Stranger::Forged => {
                bad_link("this link was not made by the shop for this sale; ask for one at …/link")
            }
            Stranger::ForgedPayment => bad_link(
                "this link was not made by the shop for this order; take the one that came with the order",
            ),
            Stranger::UnknownSale => unknown_sale(),
            Stranger::TooLate => bad_link("the time of this link is over; ask for a new one at …/link"),
            Stranger::Over => over(),
            Stranger::NoVisitor => {
                bad_link("the shop does not know this visitor; load its page, allow its cookie and try again")
            }
        }
    }
}
