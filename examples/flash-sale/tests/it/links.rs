//! Invalid requests: each gets a clear reply, and nothing changes.

use axum::http::{HeaderValue, Method};
use flash_sale::link::Signer;
use flash_sale::sale::NewSale;
use http_body_util::Full;

use crate::open::{Open, TestRequest, generous, with};
use testbed::AnyDatabase;

/// Sends a request, and checks the reply and the books.
async fn refuse(shop: &Open, what: &str, request: TestRequest, (status, result): (u16, &str)) {
    let before = shop.tally().await;
    let got = shop.send(request).await;
    assert_eq!(got.said(), (status, result), "{what}: {got:?}");
    assert!(got.text_of("message").len() > 10, "{what}: {got:?}");
    assert_eq!(got.field("content-type"), "application/json", "{what}");
    assert_eq!(shop.tally().await, before, "{what}");
}

async fn shop() -> Open {
    Open::generous(&NewSale::of(5)).await
}

#[tokio::test]
async fn a_body_that_wishes_for_anything_but_one_piece_changes_nothing() {
    let shop = shop().await;
    let link = shop.link("ana").await;
    let refuse = async |body: &str, said| {
        let wish = shop.wish_by(&link, "a key").map(|_| Full::from(body.to_owned()));
        refuse(&shop, body, wish, said).await;
    };
    for quantity in ["0", "-3", "2", "1.5", "\"1\"", "null", "true", "[1]", "18446744073709551617", "1e99"] {
        refuse(&format!("{{\"quantity\":{quantity}}}"), (422, "bad_quantity")).await;
    }
    for body in ["{\"amount\":1}", "{\"quantity\":1,\"price_cents\":0}", "[]", "1", "null", "\"quantity\""] {
        refuse(body, (422, "bad_quantity")).await;
    }
    for body in ["{", "quantity=1", "{\"quantity\":1}}", "\u{0}", "{\"quantity\":1e99999}", &"[".repeat(4000)]
    {
        refuse(body, (400, "bad_body")).await;
    }
    refuse(&format!("{{\"quantity\":1{}}}", " ".repeat(5000)), (413, "too_large")).await;
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
    for keys in [
        &[b"".as_slice()] as &[_],
        &["k".repeat(65).as_bytes()],
        &[b"tab\there"],
        &[b"not ASCII: k\xe4se"],
        &[],
        &[b"one", b"another"],
    ] {
        let mut wish = shop.request(Method::POST, &shop.link("ana").await);
        for key in keys {
            wish.headers_mut().append("idempotency-key", HeaderValue::from_bytes(key).unwrap());
        }
        refuse(&shop, &format!("{keys:?}"), wish, (422, "bad_key")).await;
    }
    assert_eq!(shop.buy("ana", &"k".repeat(64)).await.status, 201);
    assert_eq!(shop.buy("bob", "!~ #").await.status, 201);
}

#[tokio::test]
async fn a_key_of_another_sale_changes_nothing() {
    let running = AnyDatabase::sqlite();
    let shop = Open::on(&running, &NewSale::of(5), generous()).await;
    assert_eq!(shop.buy("ana", "a key").await.status, 201);
    let other = Open::on(&running, &NewSale::of(5), generous()).await;
    refuse(&other, "the key of another sale", other.wish("ana", "a key").await, (422, "key_used")).await;
}

#[tokio::test]
async fn a_link_that_the_shop_has_not_made_for_this_changes_nothing() {
    let shop = shop().await;
    let now = shop.shop.database.now().await.unwrap();
    let (sale, until) = (shop.sale, now + 60_000);
    let link = shop.signer.buy_url(sale, "ana", until);
    let pay = shop.signer.pay_url(&sale.to_string(), "ana");
    for (what, link) in [
        ("another buyer's", link.replace("user=ana", "user=bob")),
        ("another sale's", link.replace(&format!("/sales/{sale}/"), &format!("/sales/{}/", sale + 1))),
        ("a later time", link.replace(&format!("until={until}"), &format!("until={}", until + 1))),
        ("another secret's", Signer::new("another secret").buy_url(sale, "ana", until)),
        ("one digit less", link[..link.len() - 1].to_owned()),
        ("no signature", link.split("&sign").next().unwrap().to_owned()),
        ("nothing", link.split('?').next().unwrap().to_owned()),
        ("two buyers", format!("{link}&user=bob")),
        ("no number", link.replace(&format!("until={until}"), "until=soon")),
        ("another order", respelled(&link)),
        ("a letter in percent-encoding", link.replace("user=ana", "user=%61na")),
        ("a zero in front of the time", link.replace("until=", "until=0")),
        ("a sign in front of the time", link.replace("until=", "until=%2B")),
        ("something more", format!("{link}&more=1")),
        ("a link to pay", pay.replace("/orders/", "/sales/").replace("/pay", "/buy")),
        ("one that is over", shop.signer.buy_url(sale, "ana", now - 1)),
        (
            "parts whose concatenation is the same",
            shop.signer.buy_url(1, "23", until).replace("/1/", "/12/").replace("user=23", "user=3"),
        ),
    ] {
        refuse(&shop, what, shop.wish_by(&link, "k"), (403, "bad_link")).await;
    }
    let unknown = shop.signer.buy_url(999, "ana", until);
    refuse(&shop, "a sale that is not there", shop.wish_by(&unknown, "k"), (404, "unknown_sale")).await;
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
    for (spelling, result) in [
        (format!("+{sale}"), "unknown_sale"),
        (format!("0{sale}"), "unknown_sale"),
        ("x".to_owned(), "unknown_sale"),
        (format!("%3{sale}"), "unknown_path"),
        ("%ff".to_owned(), "unknown_path"),
    ] {
        let spelled = |path: &str| path.replace(&format!("/sales/{sale}"), &format!("/sales/{spelling}"));
        let buy = shop.wish_by(&spelled(&link), "a key");
        let ask = shop.request(Method::POST, &spelled(&format!("/api/sales/{sale}/link")));
        let ask = with(ask, "cookie", &shop.cookie("ana"));
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
    let order = shop.buy("ana", "a key").await.text_of("order").to_owned();
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
    assert_eq!(shop.post(&pay).await.said(), (200, "paid"));
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
        refuse(&shop, &what, shop.request(method, path), (405, "wrong_method")).await;
    }
    let unknown_paths = "/api /api/sales/1/buy/ /api/sales/1/sell /pages/../rules.toml /pages/none.js /.git \
                         /pages/%ff /pages/shop%2Ecss /% /api/orders/%ff/pay";
    let unknown_sales = "/api/sales/999 /api/sales/x /api/sales/-1 /api/sales/99999999999999999999";
    for (paths, result) in [(unknown_paths, "unknown_path"), (unknown_sales, "unknown_sale")] {
        for path in paths.split(' ') {
            refuse(&shop, path, shop.request(Method::GET, path), (404, result)).await;
        }
    }
    let path = format!("/api/sales/{}/link", shop.sale);
    refuse(&shop, "no cookie", shop.request(Method::POST, &path), (403, "bad_link")).await;
    let request = with(shop.request(Method::POST, "/api/sales/999/link"), "cookie", &shop.cookie("ana"));
    refuse(&shop, "a sale that is not there", request, (404, "unknown_sale")).await;
}
