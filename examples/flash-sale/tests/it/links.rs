//! Invalid requests: each gets a clear reply, and nothing changes.

use axum::http::{HeaderValue, Method, Request};
use bytes::Bytes;
use flash_sale::sale::NewSale;
use http_body_util::Full;

use crate::open::{Open, generous};
use testbed::AnyDatabase;

/// Returns a valid purchase request with one change.
async fn wish(shop: &Open, change: impl FnOnce(&mut Request<Full<Bytes>>)) -> Request<Full<Bytes>> {
    let mut wish = shop.wish("ana", "a key").await;
    change(&mut wish);
    wish
}

async fn with_body(shop: &Open, body: &str) -> Request<Full<Bytes>> {
    let body = Full::from(body.to_owned());
    wish(shop, |wish| *wish.body_mut() = body).await
}

/// Sends a request, and checks the reply and the books.
async fn refuse(shop: &Open, what: &str, request: Request<Full<Bytes>>, (status, result): (u16, &str)) {
    let before = shop.tally().await;
    let got = shop.send(request).await;
    assert_eq!(got.said(), (status, result.to_owned()), "{what}: {got:?}");
    assert!(got.json()["message"].as_str().is_some_and(|text| text.len() > 10), "{what}: {got:?}");
    assert_eq!(got.field("content-type"), "application/json", "{what}");
    assert_eq!(shop.tally().await, before, "{what}");
}

async fn shop() -> Open {
    Open::generous(&NewSale::of(5)).await
}

#[tokio::test]
async fn a_body_that_wishes_for_anything_but_one_piece_changes_nothing() {
    let shop = shop().await;
    for body in [
        "{\"quantity\":0}",
        "{\"quantity\":-3}",
        "{\"quantity\":2}",
        "{\"quantity\":1.5}",
        "{\"quantity\":\"1\"}",
        "{\"quantity\":null}",
        "{\"quantity\":true}",
        "{\"quantity\":[1]}",
        "{\"quantity\":18446744073709551617}",
        "{\"amount\":1}",
        "{\"quantity\":1,\"price_cents\":0}",
        "[]",
        "1",
        "null",
        "\"quantity\"",
    ] {
        refuse(&shop, body, with_body(&shop, body).await, (422, "bad_quantity")).await;
    }
    for body in ["{", "quantity=1", "{\"quantity\":1}}", "\u{0}", "{\"quantity\":1e99999}", &"[".repeat(4000)]
    {
        refuse(&shop, body, with_body(&shop, body).await, (400, "bad_body")).await;
    }
    refuse(&shop, "1e99", with_body(&shop, "{\"quantity\":1e99}").await, (422, "bad_quantity")).await;
    let long = format!("{{\"quantity\":1{}}}", " ".repeat(5000));
    refuse(&shop, "a long body", with_body(&shop, &long).await, (413, "too_large")).await;
    assert_eq!(shop.tally().await.live, 0);
    for (number, body) in ["", " \n", "{}", "{\"quantity\":1}", " { \"quantity\" : 1 } "].iter().enumerate() {
        let wish = shop.wish(&format!("user{number}"), "k").await.map(|_| Full::from((*body).to_owned()));
        let got = shop.send(wish).await;
        assert_eq!(got.status, 201, "{body:?}: {got:?}");
    }
}

#[tokio::test]
async fn a_key_that_is_none_changes_nothing() {
    let shop = shop().await;
    let long = "k".repeat(65);
    for key in ["", &long, "tab\there"] {
        let value = HeaderValue::from_str(key).unwrap();
        let request = wish(&shop, |wish| _ = wish.headers_mut().insert("idempotency-key", value)).await;
        refuse(&shop, key, request, (422, "bad_key")).await;
    }
    let odd = HeaderValue::from_bytes(b"k\xe4se").unwrap();
    let request = wish(&shop, |wish| _ = wish.headers_mut().insert("idempotency-key", odd)).await;
    refuse(&shop, "not ASCII", request, (422, "bad_key")).await;
    let request = wish(&shop, |wish| _ = wish.headers_mut().remove("idempotency-key")).await;
    refuse(&shop, "no key", request, (422, "bad_key")).await;
    let second = HeaderValue::from_static("another");
    let request = wish(&shop, |wish| _ = wish.headers_mut().append("idempotency-key", second)).await;
    refuse(&shop, "two keys", request, (422, "bad_key")).await;
    assert_eq!(shop.buy("ana", &"k".repeat(64)).await.status, 201);
    assert_eq!(shop.buy("bob", "!~ #").await.status, 201);
}

#[tokio::test]
async fn a_key_of_another_sale_changes_nothing() {
    let running = AnyDatabase::sqlite();
    let shop = Open::on(&running, &NewSale::of(5), generous()).await;
    assert_eq!(shop.buy("ana", "a key").await.status, 201);
    let other = Open::on(&running, &NewSale::of(5), generous()).await;
    refuse(&other, "the key of another sale", wish(&other, |_| {}).await, (422, "key_used")).await;
}

#[tokio::test]
async fn a_link_that_the_shop_has_not_made_for_this_changes_nothing() {
    let shop = shop().await;
    let now = shop.shop.database.now().await.unwrap();
    let (sale, until) = (shop.sale, now + 60_000);
    let link = shop.signer.buy_url(sale, "ana", until);
    let cut = link.len() - 1;
    let other = flash_sale::link::Signer::new("another secret");
    let forged = [
        ("another buyer's", link.replace("user=ana", "user=bob")),
        ("another sale's", link.replace(&format!("/sales/{sale}/"), &format!("/sales/{}/", sale + 1))),
        ("a later time", link.replace(&format!("until={until}"), &format!("until={}", until + 1))),
        ("another secret's", other.buy_url(sale, "ana", until)),
        ("one digit less", link[..cut].to_owned()),
        ("no signature", link.split("&sign").next().unwrap().to_owned()),
        ("nothing", link.split('?').next().unwrap().to_owned()),
        ("two buyers", format!("{link}&user=bob")),
        ("no number", link.replace(&format!("until={until}"), "until=soon")),
        ("another order", respelled(&link)),
        ("a letter in percent-encoding", link.replace("user=ana", "user=%61na")),
        ("a zero in front of the time", link.replace("until=", "until=0")),
        ("a sign in front of the time", link.replace("until=", "until=%2B")),
        ("something more", format!("{link}&more=1")),
        (
            "a link to pay",
            shop.signer
                .pay_url(&sale.to_string(), "ana")
                .replace("/orders/", "/sales/")
                .replace("/pay", "/buy"),
        ),
        ("one that is over", shop.signer.buy_url(sale, "ana", now - 1)),
    ];
    for (what, link) in forged {
        let mut request = shop.request(Method::POST, &link);
        request.headers_mut().insert("idempotency-key", HeaderValue::from_static("k"));
        refuse(&shop, what, request, (403, "bad_link")).await;
    }
    // Parts whose concatenation is the same.
    let link =
        shop.signer.buy_url(1, "23", until).replace("/sales/1/", "/sales/12/").replace("user=23", "user=3");
    refuse(&shop, "12 and 3", shop.request(Method::POST, &link), (403, "bad_link")).await;
    let unknown = shop.signer.buy_url(999, "ana", until);
    let mut request = shop.request(Method::POST, &unknown);
    request.headers_mut().insert("idempotency-key", HeaderValue::from_static("k"));
    refuse(&shop, "a sale that is not there", request, (404, "unknown_sale")).await;
}

/// Returns a link with its parameters in another order.
fn respelled(link: &str) -> String {
    let (path, query) = link.split_once('?').unwrap();
    let parts: Vec<_> = query.split('&').rev().collect();
    format!("{path}?{}", parts.join("&"))
}

#[tokio::test]
async fn a_sale_has_one_spelling() {
    let shop = shop().await;
    let sale = shop.sale;
    let link = shop.link("ana").await;
    let cookie = format!("visitor={}", shop.signer.visitor("ana"));
    for (spelling, result) in [
        (format!("+{sale}"), "unknown_sale"),
        (format!("0{sale}"), "unknown_sale"),
        ("x".to_owned(), "unknown_sale"),
        (format!("%3{sale}"), "unknown_path"),
        ("%ff".to_owned(), "unknown_path"),
    ] {
        let spelled = |path: &str| path.replace(&format!("/sales/{sale}"), &format!("/sales/{spelling}"));
        let mut buy = wish(&shop, |_| {}).await;
        *buy.uri_mut() = shop.request(Method::POST, &spelled(&link)).uri().clone();
        let mut ask = shop.request(Method::POST, &spelled(&format!("/api/sales/{sale}/link")));
        ask.headers_mut().insert("cookie", cookie.parse().unwrap());
        let look = shop.request(Method::GET, &spelled(&format!("/api/sales/{sale}")));
        for (what, request) in [("buy", buy), ("link", ask), ("look", look)] {
            refuse(&shop, &format!("{what} {spelling}"), request, (404, result)).await;
        }
    }
    assert_eq!(shop.buy_by(&link, "k").await.status, 201);
}

#[tokio::test]
async fn a_payment_by_anybody_else_or_for_nothing_changes_nothing() {
    let shop = shop().await;
    let order = shop.buy("ana", "a key").await.json()["order"].as_str().unwrap().to_owned();
    let pay = shop.signer.pay_url(&order, "ana");
    for (what, link) in [
        ("another buyer's", pay.replace("user=ana", "user=bob")),
        ("another order's", pay.replace(&order, "0")),
        ("its parts in another order", respelled(&pay)),
        ("a letter in percent-encoding", pay.replace("user=ana", "user=%61na")),
        ("no signature", pay.split("&sign").next().unwrap().to_owned()),
        ("nothing", pay.split('?').next().unwrap().to_owned()),
    ] {
        refuse(&shop, what, shop.request(Method::POST, &link), (403, "bad_link")).await;
    }
    for (order, user) in [("0", "ana"), (order.as_str(), "bob")] {
        let link = shop.signer.pay_url(order, user);
        refuse(&shop, user, shop.request(Method::POST, &link), (404, "unknown_order")).await;
    }
    assert_eq!(shop.post(&pay).await.said(), (200, "paid".to_owned()));
}

#[tokio::test]
async fn a_wrong_method_or_path_or_visitor_changes_nothing() {
    let shop = shop().await;
    let link = shop.link("ana").await;
    for (method, path) in [
        (Method::GET, link.as_str()),
        (Method::PUT, link.as_str()),
        (Method::DELETE, "/api/sale"),
        (Method::POST, "/"),
        (Method::GET, "/api/sales/1/link"),
        (Method::GET, "/api/orders/1/pay"),
    ] {
        let what = format!("{method} {path}");
        let request = shop.request(method, path);
        refuse(&shop, &what, request, (405, "wrong_method")).await;
    }
    for path in [
        "/api",
        "/api/sales/1/buy/",
        "/api/sales/1/sell",
        "/pages/../rules.toml",
        "/pages/none.js",
        "/.git",
        "/pages/%ff",
        "/pages/shop%2Ecss",
        "/%",
        "/api/orders/%ff/pay",
    ] {
        refuse(&shop, path, shop.request(Method::GET, path), (404, "unknown_path")).await;
    }
    for path in ["/api/sales/999", "/api/sales/x", "/api/sales/-1", "/api/sales/99999999999999999999"] {
        refuse(&shop, path, shop.request(Method::GET, path), (404, "unknown_sale")).await;
    }
    let path = format!("/api/sales/{}/link", shop.sale);
    refuse(&shop, "no cookie", shop.request(Method::POST, &path), (403, "bad_link")).await;
    let mut request = shop.request(Method::POST, "/api/sales/999/link");
    let cookie = format!("visitor={}", shop.signer.visitor("ana"));
    request.headers_mut().insert("cookie", cookie.parse().unwrap());
    refuse(&shop, "a sale that is not there", request, (404, "unknown_sale")).await;
}
