//! The limiter in front: denials, their replies, and exempt requests.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use axum::http::Request;
use flash_sale::http::{App, Settings, router};
use flash_sale::limits::{Limiting, RULES};
use flash_sale::sale::NewSale;
use tidegate_rules::Policy;
use tower::ServiceExt;

use crate::open::{Got, Open, PLENTY, from, generous, sale_on, with};
use testbed::AnyDatabase;

/// Returns the rules with these limits of payments for each buyer and each address.
fn rules_of_paying(per_user: &str, per_address: &str) -> Policy {
    let (buying, paying) = RULES.split_once("# Payments").unwrap();
    let paying = paying.replace("2/s burst 5", per_user).replace("50/s burst 100", per_address);
    assert!(paying.contains(per_user) && paying.contains(per_address));
    Policy::from_toml(&format!("{buying}# Payments{paying}")).unwrap()
}

/// Returns the rules with these limits for each buyer and each address.
fn rules(per_user: &str, per_address: &str) -> Policy {
    let text = RULES.replace("5/s burst 10", per_user).replace("50/s burst 100", per_address);
    assert_ne!(text, RULES);
    Policy::from_toml(&text).unwrap()
}

async fn shop_with(stock: i64, settings: Settings) -> Open {
    Open::alone(&NewSale::of(stock), settings).await
}

/// Returns a shop whose bucket is that of the text.
async fn bucket(stock: i64, rate: &str) -> Open {
    shop_with(stock, Settings { rate: rate.parse().unwrap(), ..generous() }).await
}

fn is_limited(got: &Got, by: &str) {
    assert_eq!(got.said(), (429, "limited"), "{got:?}");
    assert!(got.field("ratelimit").contains(by), "{got:?}");
    let (seconds, milliseconds): (u64, _) =
        (got.field("retry-after").parse().unwrap(), got["retry_after_ms"].as_u64().unwrap());
    assert_eq!(seconds, milliseconds.div_ceil(1000));
}

#[tokio::test]
async fn beyond_the_bucket_the_answer_is_when_to_come_and_what_was_left() {
    let shop = bucket(5, "1/h").await;
    assert_eq!(shop.buy("ana", "k").await.status, 201);
    shop.until_left(4).await;
    let refused = shop.buy("bob", "k").await;
    is_limited(&refused, "\"everyone\"");
    assert_eq!(refused["left"], 4);
    let message = format!("too many requests, try again in {} s", refused.field("retry-after"));
    assert_eq!(refused["message"], message);
    assert_eq!(shop.totals(["requests", "admitted", "refused", "attempts"]).await, [2, 1, 1, 1]);

    let page = shop.send(with(shop.wish("bob", "k").await, "accept", "text/html,*/*;q=0.8")).await;
    assert_eq!((page.status, page.field("content-type")), (429, "text/html; charset=utf-8"));
    assert!(page.text.starts_with("<!doctype html>") && !page.text.contains('{'), "{}", page.text);
    assert!(page.text.contains("too many requests, try again in") && page.text.contains(">4<"), "{page:?}");
    assert!(!page.field("retry-after").is_empty());
}

#[tokio::test]
async fn after_the_last_sale_a_limited_request_gets_sold_out() {
    let shop = bucket(1, "1/h").await;
    assert_eq!(shop.buy("ana", "k").await.status, 201);
    shop.until_left(0).await;
    let refused = shop.buy("bob", "k").await;
    is_limited(&refused, "\"everyone\"");
    assert!(refused.text_of("message").starts_with("sold out"), "{refused:?}");
    assert_eq!(refused["left"], 0);
}

#[tokio::test]
async fn requests_that_wait_at_most_a_second_pass() {
    let shop = bucket(9, "10/s burst 1").await;
    for user in ["ana", "bob", "cleo", "dan", "eve"] {
        let got = shop.buy(user, "k").await;
        assert_eq!(got.status, 201, "{got:?}");
    }
    assert_eq!(shop.totals(["refused"]).await, [0]);
}

#[tokio::test]
async fn a_buyer_has_a_limit_of_their_own() {
    let shop = shop_with(9, Settings { rules: Some(rules("3/h", PLENTY)), ..generous() }).await;
    for key in ["a", "b", "c"] {
        assert_ne!(shop.buy("ana", key).await.status, 429);
    }
    is_limited(&shop.buy("ana", "d").await, "\"per-user\"");
    assert_eq!(shop.buy("bob", "k").await.status, 201);
    // A request for a link counts as well, and is denied in the same way.
    is_limited(&shop.ask_for_link("ana").await, "\"per-user\"");
    assert_eq!(shop.totals(["requests", "refused"]).await, [5, 1]);
}

#[tokio::test]
async fn an_address_has_one_limit_for_all_its_users() {
    let shop = shop_with(9, Settings { rules: Some(rules(PLENTY, "2/h")), ..generous() }).await;
    for user in ["ana", "bob"] {
        assert_eq!(shop.send(from("192.0.2.1", shop.wish(user, "k").await)).await.status, 201);
    }
    is_limited(&shop.send(from("192.0.2.1", shop.wish("cleo", "k").await)).await, "\"per-address\"");
    let other = shop.send(from("192.0.2.2", shop.wish("cleo", "k").await)).await;
    assert_eq!(other.status, 201, "{other:?}");
}

#[tokio::test]
async fn forged_links_charge_their_address_and_no_user() {
    let settings = Settings { rules: Some(rules("1/h", "5/h")), rate: "1/h".parse().unwrap(), ..generous() };
    let shop = shop_with(9, settings).await;
    let forge = async || {
        let mut wish = shop.wish("ana", "k").await;
        *wish.uri_mut() = wish.uri().to_string().replace("until=", "until=1").parse().unwrap();
        shop.send(from("192.0.2.66", wish)).await
    };
    for _ in 0..5 {
        assert_eq!(forge().await.said(), (403, "bad_link"));
    }
    is_limited(&forge().await, "\"per-address\"");
    // Neither her own quota nor the bucket of all requests was changed.
    let ana = shop.send(from("192.0.2.1", shop.wish("ana", "k").await)).await;
    assert_eq!(ana.status, 201, "{ana:?}");
}

#[tokio::test]
async fn payments_that_come_too_often_are_limited_and_charged_once() {
    let settings =
        Settings { rules: Some(rules_of_paying("2/h", PLENTY)), is_experiment: true, ..generous() };
    let shop = shop_with(9, settings).await;
    let pay = async |user| shop.buy(user, "k").await.text_of("pay").to_owned();
    let (ana, bob) = (pay("ana").await, pay("bob").await);
    for again in [false, true] {
        let paid = shop.post(&ana).await;
        assert_eq!((paid.said(), &paid["again"]), ((200, "paid"), &again.into()));
    }
    is_limited(&shop.post(&ana).await, "\"pay-per-user\"");
    // Other buyers are not denied, nor are her purchase requests, nor an experiment without a limiter.
    assert_eq!(shop.post(&bob).await.said(), (200, "paid"));
    assert_eq!(shop.buy("ana", "k").await.status, 201);
    let free = with(shop.request(axum::http::Method::POST, &ana), "x-limiter", "off");
    assert_eq!(shop.send(free).await.said(), (200, "paid"));
    let tally = shop.tally().await;
    assert_eq!((tally.live, tally.paid), (2, 2));
    shop.audit().await;
    assert_eq!(shop.totals(["refused"]).await, [0]);
}

#[tokio::test]
async fn forged_links_to_pay_cost_their_address_and_not_the_buyer() {
    let settings = Settings { rules: Some(rules_of_paying("1/h", "3/h")), ..generous() };
    let shop = shop_with(9, settings).await;
    let pay = shop.buy("ana", "k").await.text_of("pay").to_owned();
    let send = async |address, link: &str| {
        shop.send(from(address, shop.request(axum::http::Method::POST, link))).await
    };
    let forged = &pay[..pay.len() - 1];
    for _ in 0..3 {
        assert_eq!(send("192.0.2.66", forged).await.said(), (403, "bad_link"));
    }
    is_limited(&send("192.0.2.66", forged).await, "\"pay-per-address\"");
    assert_eq!(send("192.0.2.1", &pay).await.said(), (200, "paid"));
}

#[tokio::test]
async fn a_forwarded_address_of_an_untrusted_peer_is_ignored() {
    let running = AnyDatabase::sqlite();
    let (shop, sale) = sale_on(&running, &NewSale::of(9)).await;
    let settings = Settings { rules: Some(rules(PLENTY, "2/h")), ..generous() };
    let signer = settings.signer.clone();
    let app = App::new(shop.clone(), settings).await.unwrap();
    let until = shop.database.now().await.unwrap() + 60_000;
    let mut statuses = Vec::new();
    for (number, peer) in [1, 1, 1, 2].into_iter().enumerate() {
        let url = signer.buy_url(sale, &format!("user{number}"), until);
        let request = Request::post(url)
            .header("idempotency-key", "k")
            .header("x-forwarded-for", format!("198.51.100.{number}"))
            .extension(ConnectInfo(SocketAddr::from(([192, 0, 2, peer], 4711))))
            .body(axum::body::Body::empty())
            .unwrap();
        statuses.push(router(app.clone()).oneshot(request).await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [201, 201, 429, 201]);
}

#[tokio::test]
async fn without_a_limiter_no_request_is_limited() {
    let tight = || Settings { rules: Some(rules("1/h", "1/h")), rate: "1/h".parse().unwrap(), ..generous() };
    let shop = shop_with(9, Settings { limiting: Limiting::Off, ..tight() }).await;
    for user in ["ana", "bob", "cleo"] {
        assert_eq!(shop.buy(user, "k").await.status, 201);
    }
    let shop = shop_with(9, Settings { is_experiment: true, ..tight() }).await;
    let mut statuses = Vec::new();
    for (user, limiter) in [("ana", "bucket"), ("bob", "bucket"), ("cleo", "off"), ("dan", "off")] {
        let wish = with(shop.wish(user, "k").await, "x-limiter", limiter);
        statuses.push(shop.send(wish).await.status);
    }
    assert_eq!(statuses, [201, 429, 201, 201]);
}

#[test]
fn the_shops_own_rules_are_about_buyers_and_addresses() {
    let policy = Policy::from_toml(RULES).unwrap();
    let names: Vec<_> = policy.rules().iter().map(|rule| rule.name().to_owned()).collect();
    assert_eq!(names, ["per-user", "per-address", "pay-per-user", "pay-per-address"]);
}
