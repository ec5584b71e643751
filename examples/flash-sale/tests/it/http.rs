//! The shop over real connections: replies to buyers, visitors and the shopkeeper.

use std::time::Duration;

use axum::http::Method;
use flash_sale::sale::NewSale;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::open::{Open, eventually, generous};
use testbed::AnyDatabase;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitor_gets_a_link_buys_pays_and_is_charged_once() {
    for running in AnyDatabase::all() {
        let shop = Open::on(&running, &NewSale::of(3), generous()).await;
        let page = shop.get("/").await;
        let cookie = page.field("set-cookie").to_owned();
        assert!(cookie.starts_with("visitor=") && cookie.ends_with("HttpOnly; SameSite=Lax"), "{cookie}");

        let mut request = shop.request(Method::POST, &format!("/api/sales/{}/link", shop.sale));
        request.headers_mut().insert("cookie", cookie.split(';').next().unwrap().parse().unwrap());
        let link = shop.send(request).await;
        assert_eq!(link.said(), (200, "link".to_owned()));
        let url = link.json()["url"].as_str().unwrap().to_owned();

        let mut answers = Vec::new();
        for _ in 0..2 {
            let mut wish = shop.request(Method::POST, &url).map(|_| "{\"quantity\":1}".into());
            wish.headers_mut().insert("idempotency-key", "one wish".parse().unwrap());
            answers.push(shop.send(wish).await);
        }
        let [first, again] = &answers[..] else { panic!("two answers") };
        assert_eq!(first.said(), (201, "reserved".to_owned()), "{first:?}");
        assert_eq!(first.json()["left"], 2);
        assert_eq!(first.json()["pay_within_ms"], 120_000);
        assert_eq!((first.field("idempotent-replayed"), again.field("idempotent-replayed")), ("", "true"));
        assert_eq!((&first.json()["order"], again.status.as_u16()), (&again.json()["order"], 201));

        let pay = first.json()["pay"].as_str().unwrap().to_owned();
        let paid = shop.post(&pay).await;
        assert_eq!(paid.said(), (200, "paid".to_owned()), "{paid:?}");
        assert_eq!((&paid.json()["charged_cents"], &paid.json()["again"]), (&999.into(), &false.into()));
        let paid_again = shop.post(&pay).await;
        assert_eq!(
            (paid_again.said(), &paid_again.json()["again"]),
            ((200, "paid".to_owned()), &true.into())
        );

        let tally = shop.tally().await;
        assert_eq!((tally.available, tally.live, tally.paid), (2, 1, 1));
        assert_eq!(shop.shop.database.audit().await.unwrap(), []);
    }
}

#[tokio::test]
async fn whoever_has_bought_is_told_so_and_the_last_piece_is_the_last() {
    let shop = Open::generous(&NewSale::of(1)).await;
    let order = shop.buy("ana", "a").await.json()["order"].clone();
    let second = shop.buy("ana", "b").await;
    assert_eq!((second.said(), &second.json()["order"]), ((409, "already_bought".to_owned()), &order));
    let other = shop.buy("bob", "a").await;
    assert_eq!((other.said(), &other.json()["left"]), ((410, "sold_out".to_owned()), &0.into()));
    let again = shop.buy("ana", "a").await;
    assert_eq!((again.said(), &again.json()["order"]), ((201, "reserved".to_owned()), &order));
}

#[tokio::test]
async fn a_piece_that_is_not_paid_goes_to_the_next() {
    let sale = NewSale { pay_within: Duration::from_millis(300), ..NewSale::of(1) };
    let shop = Open::generous(&sale).await;
    let first = shop.buy("ana", "a").await;
    assert_eq!(first.said(), (201, "reserved".to_owned()));
    eventually("the piece of ana", async || shop.buy("bob", "b").await.status == 201).await;
    assert_eq!(shop.buy("ana", "a").await.said(), (410, "expired".to_owned()));
    let pay = first.json()["pay"].as_str().unwrap().to_owned();
    assert_eq!(shop.post(&pay).await.said(), (410, "expired".to_owned()));
    assert_eq!(shop.shop.database.audit().await.unwrap(), []);
}

#[tokio::test]
async fn before_and_after_the_sale_nothing_is_sold() {
    let soon = NewSale { opens_in: Duration::from_secs(3600), ..NewSale::of(1) };
    let shop = Open::generous(&soon).await;
    assert_eq!(shop.get("/api/sale").await.json()["state"], "before");
    let early = shop.buy("ana", "a").await;
    assert_eq!(early.said(), (403, "not_open".to_owned()));
    assert!(early.json()["opens_in_ms"].as_i64().unwrap() > 3_000_000);
    assert_eq!(shop.ask_for_link("ana").await.said(), (403, "not_open".to_owned()));
    assert_eq!(shop.tally().await.available, 1);

    let moment = Duration::from_millis(1);
    let short = NewSale { lasts: moment, pay_within: moment, ..NewSale::of(1) };
    let shop = Open::generous(&short).await;
    eventually("the end", async || shop.get("/api/sale").await.json()["state"] == "over").await;
    assert_eq!(shop.buy("ana", "a").await.said(), (410, "over".to_owned()));
    eventually("the last link", async || shop.ask_for_link("ana").await.said() == (410, "over".to_owned()))
        .await;
    let stale = shop.signer.buy_url(shop.sale, "ana", 1);
    assert_eq!(shop.post(&stale).await.said(), (410, "over".to_owned()));
    assert_eq!(shop.tally().await.available, 1);
}

/// Returns the link by which ana has bought a piece, and the order, if she was in time.
async fn bought(shop: &Open) -> Option<(String, String)> {
    let url = shop.ask_for_link("ana").await.json()["url"].as_str()?.to_owned();
    let order = shop.buy_by(&url, "a").await.json()["order"].as_str()?.to_owned();
    Some((url, order))
}

#[tokio::test]
async fn whoever_reserved_just_before_the_end_learns_of_it_and_pays_afterwards() {
    let mut lasts = Duration::from_secs(3);
    let (shop, url, order) = loop {
        let shop = Open::generous(&NewSale { lasts, ..NewSale::of(2) }).await;
        if let Some((url, order)) = bought(&shop).await {
            break (shop, url, order);
        }
        // The machine delayed the buyer until the sale was over, which proves nothing.
        assert!(lasts < Duration::from_secs(60), "nobody bought anything within {lasts:?}");
        lasts *= 2;
    };
    eventually("the end", async || shop.get("/api/sale").await.json()["state"] == "over").await;

    let again = shop.buy_by(&url, "a").await;
    assert_eq!((again.said(), again.field("idempotent-replayed")), ((201, "reserved".to_owned()), "true"));
    assert_eq!(again.json()["order"], order);
    // A buyer who has lost the link as well gets another one.
    let another = shop.ask_for_link("ana").await;
    let again = shop.buy_by(another.json()["url"].as_str().unwrap(), "a").await;
    assert_eq!((again.status.as_u16(), &again.json()["order"]), (201, &order.clone().into()));
    let stale = shop.signer.buy_url(shop.sale, "ana", 1);
    assert_eq!(shop.post(&stale).await.said(), (403, "bad_link".to_owned()));
    // Such a link sells nothing more.
    let late = shop.ask_for_link("bob").await;
    let late = shop.buy_by(late.json()["url"].as_str().unwrap(), "b").await;
    assert_eq!(late.said(), (410, "over".to_owned()));

    let paid = shop.post(again.json()["pay"].as_str().unwrap()).await;
    assert_eq!((paid.said(), &paid.json()["order"]), ((200, "paid".to_owned()), &order.into()));
    let tally = shop.tally().await;
    assert_eq!((tally.available, tally.live, tally.paid), (1, 1, 1));
}

#[tokio::test]
async fn a_sale_is_told_without_the_database_and_nothing_is_sold_without_it() {
    let shop = Open::generous(&NewSale::of(7)).await;
    let wish = shop.wish("ana", "a").await;
    shop.shop.database.close().await;
    let sale = shop.get(&format!("/api/sales/{}", shop.sale)).await;
    assert_eq!(sale.status, 200);
    assert_eq!((&sale.json()["left"], &sale.json()["stock"]), (&7.into(), &7.into()));
    assert_eq!((&sale.json()["state"], &sale.json()["opens_in_ms"]), (&"open".into(), &0.into()));
    let failed = shop.send(wish).await;
    assert_eq!(failed.said(), (503, "unavailable".to_owned()));
    assert_eq!((failed.field("retry-after"), &failed.json()["retry_after_ms"]), ("1", &1000.into()));
    let paid = shop.post(&shop.signer.pay_url("0", "ana")).await;
    assert_eq!((paid.said(), paid.field("retry-after")), ((503, "unavailable".to_owned()), "1"));
    assert_eq!(shop.numbers().await["totals"]["faults"], 1);
}

#[tokio::test]
async fn pages_come_with_everything_they_load_and_a_strict_policy() {
    let shop = Open::generous(&NewSale::of(1)).await;
    let mut wanted = vec!["/".to_owned(), "/keeper".to_owned()];
    let visit = shop.visit_of_the_keeper().await;
    let mut seen = Vec::new();
    while let Some(path) = wanted.pop() {
        let got = shop.get_with(&path, &visit).await;
        assert_eq!((got.status.as_u16(), got.field("cache-control")), (200, "no-cache"), "{path}");
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
    assert_eq!(shop.get("/pages/limited.html").await.said(), (404, "unknown_path".to_owned()));
}

#[tokio::test]
async fn a_cookie_that_is_not_ours_makes_a_new_visitor() {
    let shop = Open::generous(&NewSale::of(1)).await;
    let visit = async |cookie: &str| {
        let mut request = shop.request(Method::GET, "/");
        request.headers_mut().insert("cookie", cookie.parse().unwrap());
        shop.send(request).await.field("set-cookie").to_owned()
    };
    let ours = shop.signer.visitor("ana");
    assert_eq!(visit(&format!("visitor={ours}")).await, "");
    assert_eq!(visit(&format!("theme=dark; visitor={ours}; x=y")).await, "");
    for forged in
        ["visitor=ana.00", "visitor=", "visitor", "a=b", &format!("visitor={}", ours.replace("ana", "bob"))]
    {
        assert!(visit(forged).await.starts_with("visitor="), "{forged}");
    }
    assert_ne!(visit("").await, visit("").await);
}

#[tokio::test]
async fn answers_to_programs_are_kept_by_nobody() {
    let shop = Open::generous(&NewSale::of(1)).await;
    for path in ["/api/sale", "/healthz", "/api/keeper/numbers", "/nowhere"] {
        assert_eq!(shop.get(path).await.field("cache-control"), "no-store", "{path}");
    }
    assert_eq!(shop.get("/healthz").await.said(), (200, "ok".to_owned()));
}

#[tokio::test]
async fn buyers_who_hang_up_in_the_middle_break_nothing() {
    let shop = Open::generous(&NewSale::of(50)).await;
    for number in 0..50 {
        let link = shop.link(&format!("user{number}")).await;
        let mut stream = TcpStream::connect(shop.address).await.unwrap();
        let request =
            format!("POST {link} HTTP/1.1\r\nhost: shop\r\nidempotency-key: k\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        if number % 3 > 0 {
            tokio::time::sleep(Duration::from_micros(300 * number)).await;
        }
    }
    for number in 0..50 {
        let got = shop.buy(&format!("user{number}"), "k").await;
        assert_eq!(got.said(), (201, "reserved".to_owned()), "{got:?}");
    }
    let tally = shop.tally().await;
    assert_eq!((tally.live, tally.available), (50, 0));
    assert_eq!(shop.shop.database.audit().await.unwrap(), []);
}

#[tokio::test]
async fn only_an_experiment_lets_requests_choose() {
    let shop = Open::generous(&NewSale::of(9)).await;
    let with = async |shop: &Open, user: &str, name: &'static str, value: &str| {
        let mut wish = shop.wish(user, "k").await;
        wish.headers_mut().insert(name, value.parse().unwrap());
        shop.send(wish).await
    };
    assert_eq!(with(&shop, "ana", "x-strategy", "magic").await.said(), (201, "reserved".to_owned()));
    assert_eq!(with(&shop, "bob", "x-limiter", "queue").await.said(), (201, "reserved".to_owned()));

    let settings = flash_sale::http::Settings { is_experiment: true, ..generous() };
    let shop = Open::alone(&NewSale::of(9), settings).await;
    let unknown = with(&shop, "ana", "x-strategy", "magic").await;
    assert_eq!(unknown.said(), (422, "bad_strategy".to_owned()));
    assert!(unknown.json()["message"].as_str().unwrap().contains("\"magic\": there is none of this name"));
    assert_eq!(with(&shop, "ana", "x-limiter", "magic").await.said(), (422, "bad_limiter".to_owned()));
    assert_eq!(shop.tally().await.live, 0);
    for strategy in flash_sale::strategy::Strategy::ALL {
        let got = with(&shop, strategy.name(), "x-strategy", strategy.name()).await;
        assert_eq!(got.said(), (201, "reserved".to_owned()), "{strategy}");
    }
    let line = with(&shop, "bob", "x-limiter", "queue").await;
    assert_eq!((line.status.as_u16(), line.field("content-type")), (200, "application/x-ndjson"));
}
