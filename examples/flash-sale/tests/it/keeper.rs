//! The shopkeeper's page: its authentication, and the places where the token must not appear.

use flash_sale::http::Settings;
use flash_sale::sale::NewSale;

use crate::open::{Open, generous};

#[tokio::test]
async fn the_shopkeepers_numbers_are_for_the_shopkeeper() {
    let shop = Open::generous(&NewSale::of(2)).await;
    for query in ["", "?token=", "?token=00", "?other=1"] {
        assert_eq!(shop.get(&format!("/keeper{query}")).await.status, 403, "{query}");
        let numbers = shop.get(&format!("/api/keeper/numbers{query}")).await;
        assert_eq!(numbers.said(), (403, "bad_token"), "{query}");
    }
    let before = shop.numbers().await;
    assert_eq!((&before["totals"]["requests"], &before["latency_ms"]["p99"]), (&0.into(), &().into()));
    for user in ["ana", "bob", "cleo"] {
        shop.buy(user, "a").await;
    }
    let names = ["requests", "admitted", "attempts", "sold", "sold_out", "refused"];
    assert_eq!(shop.totals(names).await, [3, 3, 3, 2, 1, 0]);
    let numbers = shop.numbers().await;
    assert!(numbers["all_latency_ms"]["p99"].as_f64().unwrap() > 0.0);
    assert!(numbers["at_ms"].as_i64() >= before["at_ms"].as_i64());
    assert_eq!(numbers["sale"]["id"], shop.sale);
}

#[tokio::test]
async fn the_token_leaves_the_address_at_the_first_visit() {
    let shop = Open::generous(&NewSale::of(2)).await;
    let token = shop.signer.keeper_token();
    let first = shop.get(&format!("/keeper?token={token}")).await;
    assert_eq!((first.status, first.field("location")), (303, "/keeper"), "{first:?}");
    assert_eq!(first.field("cache-control"), "no-store");
    let cookie = first.field("set-cookie");
    assert!(cookie.starts_with("keeper="), "{cookie}");
    assert!(cookie.ends_with("; Path=/keeper; Max-Age=43200; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(&token), "a cookie that leaks is not the token");

    let visit = cookie.split(';').next().unwrap();
    let page = shop.get_with("/keeper", visit).await;
    assert_eq!((page.status, page.field("content-type")), (200, "text/html; charset=utf-8"));
    let numbers = shop.get_with("/keeper/numbers", visit).await;
    assert_eq!(numbers["sale"]["id"], shop.sale);
    let script = shop.get("/pages/keeper.js").await.text;
    assert!(script.contains("\"/keeper/numbers\"") && !script.contains("token"), "{script}");

    for wrong in ["keeper=", "keeper=1.00", "keeper", "", &visit.replace("keeper=", "keeper=9"), "visitor=x"]
    {
        for path in ["/keeper", "/keeper/numbers"] {
            let got = shop.get_with(path, wrong).await;
            assert_eq!(got.said(), (403, "bad_token"), "{path} with {wrong}");
        }
    }
    let wrong = shop.get_with("/keeper?token=00", visit).await;
    assert_eq!(wrong.said(), (403, "bad_token"), "a wrong token is wrong beside any cookie");
    // Programs and old links have only the token.
    let numbers = shop.get(&format!("/api/keeper/numbers?token={token}")).await;
    assert_eq!(numbers["sale"]["id"], shop.sale);
}

#[tokio::test]
async fn behind_tls_cookies_are_sent_by_tls_only() {
    let settings = Settings { is_behind_tls: true, ..generous() };
    let shop = Open::alone(&NewSale::of(2), settings).await;
    let visitor = shop.get("/").await.field("set-cookie").to_owned();
    assert!(visitor.starts_with("__Host-visitor=") && visitor.ends_with("; Secure"), "{visitor}");
    let known = shop.get_with("/", visitor.split(';').next().unwrap()).await;
    assert_eq!((known.status, known.field("set-cookie")), (200, ""));
    // A cookie that a sibling domain may have set is not the visitor's.
    assert!(shop.get_with("/", &shop.cookie("eve")).await.field("set-cookie").starts_with("__Host-visitor="));

    let first = shop.get(&format!("/keeper?token={}", shop.signer.keeper_token())).await;
    let visit = first.field("set-cookie").to_owned();
    assert!(visit.starts_with("__Secure-keeper=") && visit.ends_with("; Secure"), "{visit}");
    assert_eq!(shop.get_with("/keeper", visit.split(';').next().unwrap()).await.status, 200);
}
