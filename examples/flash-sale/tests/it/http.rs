//! The shop over real connections: replies to buyers, visitors and the shopkeeper, whose token leaves the address.

use std::time::Duration;

use axum::http::Method;
use flash_sale::http::Settings;
use flash_sale::sale::NewSale;
use flash_sale::strategy::Strategy;
use serde_json::Value;

use crate::open::{Open, eventually, generous, with};
use testbed::AnyDatabase;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitor_gets_a_link_buys_pays_and_is_charged_once() {
    for running in AnyDatabase::all() {
        let shop = Open::on(&running, &NewSale::of(3), generous()).await;
        let page = shop.get("/").await;
        let cookie = page.field("set-cookie");
        assert!(cookie.starts_with("visitor=") && cookie.ends_with("HttpOnly; SameSite=Lax"), "{cookie}");
        let (path, cookie) = (format!("/api/sales/{}/link", shop.sale), cookie.split(';').next().unwrap());
        let link = shop.send(with(shop.request(Method::POST, &path), "cookie", cookie)).await;
        assert_eq!(link.said(), (200, "link"));

        let wish = || shop.wish_by(link.text_of("url"), "one wish").map(|_| "{\"quantity\":1}".into());
        let (first, again) = (shop.send(wish()).await, shop.send(wish()).await);
        assert_eq!((first.said(), again.said()), ((201, "reserved"), (201, "reserved")), "{first:?}");
        assert_eq!((&first["left"], &first["pay_within_ms"]), (&2.into(), &120_000.into()));
        assert_eq!((first.field("idempotent-replayed"), again.field("idempotent-replayed")), ("", "true"));
        assert_eq!(first["order"], again["order"]);

        for again in [false, true] {
            let paid = shop.post(first.text_of("pay")).await;
            assert_eq!(paid.said(), (200, "paid"), "{paid:?}");
            assert_eq!((&paid["charged_cents"], &paid["again"]), (&999.into(), &again.into()));
        }
        let tally = shop.tally().await;
        assert_eq!((tally.available, tally.live, tally.paid), (2, 1, 1));
        shop.audit().await;
    }
}

#[tokio::test]
async fn a_second_purchase_is_a_conflict_and_the_last_piece_is_the_last() {
    let shop = Open::generous(&NewSale::of(1)).await;
    let first = shop.buy("ana", "a").await;
    for (user, key, said) in [
        ("ana", "b", (409, "already_bought")),
        ("bob", "a", (410, "sold_out")),
        ("ana", "a", (201, "reserved")),
    ] {
        let got = shop.buy(user, key).await;
        assert_eq!(got.said(), said);
        match user {
            "ana" => assert_eq!(got["order"], first["order"]),
            _ => assert_eq!(got["left"], 0),
        }
    }
}

#[tokio::test]
async fn a_piece_that_is_not_paid_goes_to_the_next() {
    let sale = NewSale { pay_within: Duration::from_millis(300), ..NewSale::of(1) };
    let shop = Open::generous(&sale).await;
    let first = shop.buy("ana", "a").await;
    assert_eq!(first.said(), (201, "reserved"));
    eventually("the piece of ana", async || shop.buy("bob", "b").await.status == 201).await;
    assert_eq!(shop.buy("ana", "a").await.said(), (410, "expired"));
    assert_eq!(shop.post(first.text_of("pay")).await.said(), (410, "expired"));
    shop.audit().await;
}

#[tokio::test]
async fn before_and_after_the_sale_nothing_is_sold() {
    let soon = NewSale { opens_in: Duration::from_secs(3600), ..NewSale::of(1) };
    let shop = Open::generous(&soon).await;
    assert_eq!(shop.get("/api/sale").await["state"], "before");
    let early = shop.buy("ana", "a").await;
    assert_eq!(early.said(), (403, "not_open"));
    assert!(early["opens_in_ms"].as_i64().unwrap() > 3_000_000);
    assert_eq!(shop.ask_for_link("ana").await.said(), (403, "not_open"));
    assert_eq!(shop.tally().await.available, 1);

    let moment = Duration::from_millis(1);
    let short = NewSale { lasts: moment, pay_within: moment, ..NewSale::of(1) };
    let shop = Open::generous(&short).await;
    eventually("the end", async || shop.get("/api/sale").await["state"] == "over").await;
    assert_eq!(shop.buy("ana", "a").await.said(), (410, "over"));
    eventually("the last link", async || shop.ask_for_link("ana").await.said() == (410, "over")).await;
    let stale = shop.signer.buy_url(shop.sale, "ana", 1);
    assert_eq!(shop.post(&stale).await.said(), (410, "over"));
    assert_eq!(shop.tally().await.available, 1);
}

/// Returns the link by which ana has bought a piece, and the order, if she was in time.
async fn bought(shop: &Open) -> Option<(String, Value)> {
    let url = shop.ask_for_link("ana").await["url"].as_str()?.to_owned();
    let bought = shop.buy_by(&url, "a").await;
    (bought.status == 201).then(|| (url, bought["order"].clone()))
}

#[tokio::test]
async fn a_reservation_just_before_the_end_is_paid_after_it() {
    let mut lasts = Duration::from_secs(3);
    let (shop, url, order) = loop {
        let shop = Open::generous(&NewSale { lasts, ..NewSale::of(2) }).await;
        if let Some((url, order)) = bought(&shop).await {
            break (shop, url, order);
        }
        // The machine delayed the buyer until the sale was over, which proves nothing.
        assert!(lasts < Duration::from_secs(60), "no purchase within {lasts:?}");
        lasts *= 2;
    };
    eventually("the end", async || shop.get("/api/sale").await["state"] == "over").await;

    let again = shop.buy_by(&url, "a").await;
    assert_eq!((again.said(), again.field("idempotent-replayed")), ((201, "reserved"), "true"));
    assert_eq!(again["order"], order);
    // A buyer who has lost the link as well gets another one.
    let another = shop.ask_for_link("ana").await;
    let again = shop.buy_by(another.text_of("url"), "a").await;
    assert_eq!((again.status, &again["order"]), (201, &order));
    let stale = shop.signer.buy_url(shop.sale, "ana", 1);
    assert_eq!(shop.post(&stale).await.said(), (403, "bad_link"));
    // Such a link sells nothing more.
    let late = shop.ask_for_link("bob").await;
    let late = shop.buy_by(late.text_of("url"), "b").await;
    assert_eq!(late.said(), (410, "over"));

    let paid = shop.post(again.text_of("pay")).await;
    assert_eq!((paid.said(), &paid["order"]), ((200, "paid"), &order));
    let tally = shop.tally().await;
    assert_eq!((tally.available, tally.live, tally.paid), (1, 1, 1));
}

#[tokio::test]
async fn a_sale_is_shown_without_the_database_and_nothing_is_sold_without_it() {
    let shop = Open::generous(&NewSale::of(7)).await;
    let wish = shop.wish("ana", "a").await;
    shop.shop.database.close().await;
    let sale = shop.get(&format!("/api/sales/{}", shop.sale)).await;
    assert_eq!(sale.status, 200);
    assert_eq!((&sale["left"], &sale["stock"]), (&7.into(), &7.into()));
    assert_eq!((&sale["state"], &sale["opens_in_ms"]), (&"open".into(), &0.into()));
    let failed = shop.send(wish).await;
    assert_eq!(failed.said(), (503, "unavailable"));
    assert_eq!((failed.field("retry-after"), &failed["retry_after_ms"]), ("1", &1000.into()));
    let paid = shop.post(&shop.signer.pay_url("0", "ana")).await;
    assert_eq!((paid.said(), paid.field("retry-after")), ((503, "unavailable"), "1"));
    assert_eq!(shop.totals(["faults"]).await, [1]);
}

#[tokio::test]
async fn pages_come_with_everything_they_load_and_a_strict_policy() {
    let shop = Open::generous(&NewSale::of(1)).await;
    let mut wanted = vec!["/".to_owned(), "/keeper".to_owned()];
    let visit = shop.visit_of_the_keeper().await;
    let mut seen = Vec::new();
    while let Some(path) = wanted.pop() {
        let got = shop.get_with(&path, &visit).await;
        assert_eq!((got.status, got.field("cache-control")), (200, "no-cache"), "{path}");
        assert!(got.field("content-security-policy").starts_with("default-src 'self';"), "{path}");
        assert_eq!(got.field("x-content-type-options"), "nosniff");
        let named = got.text.split('"').filter_map(|word| {
            let file = word.strip_prefix("/pages/").or_else(|| word.strip_prefix("./"))?;
            Some(format!("/pages/{file}"))
        });
        wanted.extend(named.filter(|file| !seen.contains(file)));
        seen.push(path);
    }
    assert!(seen.iter().any(|path| path == "/pages/chart.js"), "{seen:?}");
    assert_eq!(shop.get("/pages/limited.html").await.said(), (404, "unknown_path"));
}

#[tokio::test]
async fn a_cookie_that_is_not_ours_makes_a_new_visitor() {
    let shop = Open::generous(&NewSale::of(1)).await;
    let visit = async |cookie: &str| shop.get_with("/", cookie).await.field("set-cookie").to_owned();
    let ours = shop.cookie("ana");
    assert_eq!(visit(&ours).await, "");
    assert_eq!(visit(&format!("theme=dark; {ours}; x=y")).await, "");
    for forged in ["visitor=ana.00", "visitor=", "visitor", "a=b", &ours.replace("ana", "bob")] {
        assert!(visit(forged).await.starts_with("visitor="), "{forged}");
    }
    assert_ne!(visit("").await, visit("").await);
}

#[tokio::test]
async fn answers_to_programs_are_never_cached() {
    let shop = Open::generous(&NewSale::of(1)).await;
    for path in ["/api/sale", "/healthz", "/api/keeper/numbers", "/nowhere"] {
        assert_eq!(shop.get(path).await.field("cache-control"), "no-store", "{path}");
    }
    assert_eq!(shop.get("/healthz").await.said(), (200, "ok"));
}

#[tokio::test]
async fn only_an_experiment_lets_requests_choose() {
    let shop = Open::generous(&NewSale::of(9)).await;
    let choose = async |shop: &Open, user: &str, name: &'static str, value: &str| {
        shop.send(with(shop.wish(user, "k").await, name, value)).await
    };
    assert_eq!(choose(&shop, "ana", "x-strategy", "magic").await.said(), (201, "reserved"));
    assert_eq!(choose(&shop, "bob", "x-limiter", "queue").await.said(), (201, "reserved"));

    let settings = Settings { is_experiment: true, ..generous() };
    let shop = Open::alone(&NewSale::of(9), settings).await;
    let unknown = choose(&shop, "ana", "x-strategy", "magic").await;
    assert_eq!(unknown.said(), (422, "bad_strategy"));
    assert!(unknown.text_of("message").contains("\"magic\": there is none of this name"));
    assert_eq!(choose(&shop, "ana", "x-limiter", "magic").await.said(), (422, "bad_limiter"));
    assert_eq!(shop.tally().await.live, 0);
    for strategy in Strategy::ALL {
        let got = choose(&shop, strategy.name(), "x-strategy", strategy.name()).await;
        assert_eq!(got.said(), (201, "reserved"), "{strategy}");
    }
    let line = choose(&shop, "bob", "x-limiter", "queue").await;
    assert_eq!((line.status, line.field("content-type")), (200, "application/x-ndjson"));
}

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
