//! The queue: every buyer has a place, whose number decreases, and then a turn.

use bytes::Bytes;
use flash_sale::http::Settings;
use flash_sale::limits::Limiting;
use flash_sale::sale::NewSale;
use futures_util::future::join_all;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

use crate::open::{Open, eventually, generous};

async fn shop_of(stock: i64, queue: &str) -> Open {
    let settings = Settings { limiting: Limiting::Queue, queue: queue.parse().unwrap(), ..generous() };
    Open::alone(&NewSale::of(stock), settings).await
}

async fn shop(queue: &str) -> Open {
    shop_of(50, queue).await
}

/// A waiter in the queue.
struct Waiting {
    body: Incoming,
    text: String,
}

impl Waiting {
    /// Sends a purchase request with this key.
    async fn come_by(shop: &Open, user: &str, key: &str) -> Waiting {
        let response = shop.begin(shop.wish(user, key).await).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "application/x-ndjson");
        Waiting { body: response.into_body(), text: String::new() }
    }

    async fn come(shop: &Open, user: &str) -> Waiting {
        Waiting::come_by(shop, user, "k").await
    }

    /// Returns the place that the next line reports.
    async fn place(&mut self) -> u64 {
        self.line().await.and_then(|line| line["place"].as_u64()).expect("a place is reported")
    }

    /// Returns the next line of the response, if there is one.
    async fn line(&mut self) -> Option<Value> {
        loop {
            if let Some((line, rest)) = self.text.split_once('\n') {
                let said = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
                self.text = rest.to_owned();
                return Some(said);
            }
            let data: Bytes = self.body.frame().await?.unwrap().into_data().unwrap();
            self.text += std::str::from_utf8(&data).unwrap();
        }
    }

    /// Returns all lines until the end.
    async fn rest(mut self) -> Vec<Value> {
        let mut lines = Vec::new();
        while let Some(line) = self.line().await {
            lines.push(line);
        }
        lines
    }
}

#[tokio::test]
async fn a_place_in_the_queue_falls_until_the_turn_comes() {
    let shop = shop("2/s queue 10 leaky-bucket").await;
    // All at once, so that the queue is long however slow the machine is.
    let buyers = ["ana", "bob", "cleo", "dan", "eve", "fay"];
    let replies = join_all(buyers.map(async |user| Waiting::come(&shop, user).await.rest().await)).await;
    let mut of_all = Vec::new();
    for lines in &replies {
        let (last, waits) = lines.split_last().unwrap();
        assert_eq!((&last["status"], &last["result"]), (&201.into(), &"reserved".into()), "{lines:?}");
        let places: Vec<u64> = waits.iter().map(|line| line["place"].as_u64().unwrap()).collect();
        assert!(places.is_sorted_by(|a, b| a >= b), "{places:?}");
        for (wait, place) in waits.iter().zip(&places) {
            assert_eq!(wait["wait_ms"], place * 500, "{lines:?}");
        }
        of_all.push(places);
    }
    let last = of_all.iter().max_by_key(|places| places.first()).unwrap();
    assert!(last.first() > last.last(), "{of_all:?}");
    assert_eq!(shop.tally().await.live, 6);
}

#[tokio::test]
async fn when_the_line_is_full_the_next_is_sent_away_at_once() {
    let shop = shop("1/h queue 1 leaky-bucket").await;
    let first = Waiting::come(&shop, "ana").await.rest().await;
    assert_eq!((first.len(), &first[0]["status"]), (1, &201.into()), "{first:?}");
    let mut second = Waiting::come(&shop, "bob").await;
    let line = second.line().await.unwrap();
    assert_eq!((&line["place"], &line["wait_ms"]), (&1.into(), &3_600_000.into()));
    let third = shop.buy("cleo", "k").await;
    assert_eq!(third.said(), (429, "limited"), "{third:?}");
    assert!(!third.field("retry-after").is_empty());
    assert_eq!(shop.totals(["refused", "attempts"]).await, [1, 1]);
}

#[tokio::test]
async fn a_buyer_that_hangs_up_in_the_queue_buys_nothing_and_others_move_up() {
    let shop = shop("1/h queue 2 leaky-bucket").await;
    Waiting::come(&shop, "ana").await.rest().await;
    let mut second = Waiting::come(&shop, "bob").await;
    second.place().await;
    let mut third = Waiting::come(&shop, "cleo").await;
    assert_eq!(third.place().await, 2);
    drop(second);
    eventually("the place of bob", async || third.place().await == 1).await;
    assert_eq!(shop.tally().await.live, 1);
    // There is space for one more.
    let mut fourth = Waiting::come(&shop, "dan").await;
    assert_eq!(fourth.place().await, 2);
}

#[tokio::test]
async fn an_invalid_request_is_an_error_before_it_is_queued() {
    let shop = shop("1/h queue 1 leaky-bucket").await;
    let mut wish = shop.wish("ana", "k").await;
    wish.headers_mut().remove("idempotency-key");
    assert_eq!(shop.send(wish).await.said(), (422, "bad_key"));
    let first = Waiting::come(&shop, "ana").await.rest().await;
    assert_eq!(first[0]["status"], 201, "{first:?}");
}

#[tokio::test]
async fn at_shutdown_queued_buyers_are_served_first() {
    let mut shop = shop("4/s queue 10 leaky-bucket").await;
    let mut line = Vec::new();
    for user in ["ana", "bob", "cleo", "dan"] {
        line.push(Waiting::come(&shop, user).await);
    }
    shop.end();
    for waiting in line {
        let lines = waiting.rest().await;
        assert_eq!(lines[lines.len() - 1]["status"], 201, "{lines:?}");
    }
    shop.ended().await;
    assert_eq!(shop.tally().await.live, 4);
}

#[tokio::test]
async fn one_buyer_has_one_place_however_many_requests_ask_for_it() {
    let shop = shop("1/h queue 20 leaky-bucket").await;
    Waiting::come(&shop, "ana").await.rest().await;
    let mut requests = Vec::new();
    for number in 0..9 {
        let mut request = Waiting::come_by(&shop, "eve", &format!("k{number}")).await;
        assert_eq!(request.place().await, 1, "{number}");
        requests.push(request);
    }
    let mut honest = Waiting::come(&shop, "bob").await;
    assert_eq!(honest.place().await, 2, "behind a buyer, not behind nine requests");
    // The place is held until the last of the requests is dropped.
    let mut last = requests.pop().unwrap();
    drop(requests);
    assert_eq!(last.place().await, 1);
    drop(last);
    eventually("the place of eve", async || honest.place().await == 1).await;
}

/// Returns the status and the result that a request ends with, queued or not.
async fn end_of(shop: &Open, user: &str, key: &str) -> (u64, String, Value) {
    let got = shop.send(shop.wish(user, key).await).await;
    let last: Value = serde_json::from_str(got.text.lines().last().unwrap()).unwrap();
    let status = last["status"].as_u64().unwrap_or(got.status.into());
    (status, last["result"].as_str().unwrap().to_owned(), last["order"].clone())
}

#[tokio::test]
async fn requests_that_share_a_turn_are_one_order() {
    let shop = shop("2/s queue 10 leaky-bucket").await;
    Waiting::come(&shop, "ana").await.rest().await;
    let keys = ["a", "b", "c", "d", "e", "f"];
    let replies = join_all(keys.map(|key| end_of(&shop, "eve", key))).await;
    let (bought, others): (Vec<_>, Vec<_>) = replies.iter().partition(|(status, ..)| *status == 201);
    assert_eq!((bought.len(), others.len()), (1, 5), "{replies:?}");
    for (status, result, order) in others {
        assert_eq!((*status, result.as_str(), order), (409, "already_bought", &bought[0].2), "{replies:?}");
    }
    assert_eq!((shop.tally().await.live, shop.totals(["sold"]).await), (2, [2]));
}

#[tokio::test]
async fn a_buyer_with_an_order_does_not_wait_in_the_queue() {
    let shop = shop("1/h queue 1 leaky-bucket").await;
    let first = Waiting::come(&shop, "ana").await.rest().await;
    let order = &first[0]["order"];
    let mut full = Waiting::come(&shop, "bob").await;
    assert_eq!(full.place().await, 1);
    // The queue is full, and she gets her order all the same.
    let again = shop.buy("ana", "k").await;
    assert_eq!((again.said(), again.field("idempotent-replayed")), ((201, "reserved"), "true"));
    let other = shop.buy("ana", "another").await;
    assert_eq!(other.said(), (409, "already_bought"));
    assert_eq!((&again["order"], &other["order"]), (order, order));
    assert_eq!(shop.buy("cleo", "k").await.said(), (429, "limited"));
}

#[tokio::test]
async fn no_buyer_waits_in_the_queue_after_the_last_sale() {
    let shop = shop_of(1, "1/h queue 9 leaky-bucket").await;
    Waiting::come(&shop, "ana").await.rest().await;
    // Its status is enough: a place in this queue would last an hour.
    assert_eq!(shop.begin(shop.wish("bob", "k").await).await.status(), 410);
}
