//! The hint over a real Redis that is emptied, filled wrong, stopped, cut off and killed.

mod connection;
mod correction;
mod nonsense;

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use flash_sale::hint::{Hint, Hinted, Reconciler, Stock};
use testbed::{Direction, Flavour, Flow, Proxy, Redis, Reply, now};
use tokio::time::sleep;

use Hinted::{Perhaps, SoldOut, Unknown};

const SALE: i64 = 7;
const LEFT: &str = "flash-sale:{7}:left";
const USERS: &str = "flash-sale:{7}:users";

/// How long to wait for what comes in a second or so, on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// A machine with many tests is slower than a buyer's max wait.
const TIMEOUT: Duration = Duration::from_secs(5);

fn redis() -> Redis {
    Redis::start(Flavour::Redis7)
}

fn hint(url: &str) -> Hint {
    Hint::with_timeout(url, TIMEOUT).unwrap_or_else(|error| panic!("{error}"))
}

/// A hint that says this many are left.
async fn hint_of(redis: &Redis, left: i64) -> Hint {
    let hint = hint(&redis.url());
    hint.set(SALE, left).await;
    hint
}

/// Puts a text where the counter is, with the life of a real one.
fn write(redis: &Redis, text: &str) {
    redis.command(&["SET", LEFT, text, "PX", "10000"]);
}

fn counter(redis: &Redis) -> String {
    redis.command(&["GET", LEFT])
}

fn number(redis: &Redis, words: &[&str]) -> i64 {
    let reply = redis.command(words);
    reply.parse().unwrap_or_else(|error| panic!("{words:?}: {reply}: {error}"))
}

/// Looks until it is so, without holding up the tasks of this runtime.
async fn eventually(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let started = now();
    while !look().await {
        assert!(started.elapsed() < SOON, "{what}: not within {SOON:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// A database with fixed replies.
fn reading(stock: &Arc<AtomicI64>) -> impl Fn() -> Ready<Result<Vec<Stock>, Infallible>> + use<> {
    let stock = stock.clone();
    move || ready(Ok(vec![Stock { sale: SALE, left: stock.load(Ordering::SeqCst), buyers: Vec::new() }]))
}

#[tokio::test]
async fn each_newcomer_takes_one_until_it_is_sold_out() {
    for flavour in Flavour::available() {
        let redis = Redis::start(flavour);
        let hint = hint_of(&redis, 2).await;
        assert_eq!(hint.take(SALE, "ana").await, Perhaps, "{flavour}");
        assert_eq!(hint.take(SALE, "ben").await, Perhaps, "{flavour}");
        assert_eq!(hint.take(SALE, "cleo").await, SoldOut, "{flavour}");
        assert_eq!(counter(&redis), "0", "{flavour}");
    }
}

#[tokio::test]
async fn a_user_takes_once_and_passes_again_when_all_is_gone() {
    let redis = redis();
    let hint = hint_of(&redis, 1).await;
    assert_eq!(hint.take(SALE, "ana").await, Perhaps);
    assert_eq!(hint.take(SALE, "ben").await, SoldOut);
    assert_eq!(hint.take(SALE, "ana").await, Perhaps);
    assert_eq!(counter(&redis), "0");
}

#[tokio::test]
async fn a_hundred_at_once_take_exactly_what_is_left() {
    let redis = redis();
    let hint = hint_of(&redis, 30).await;
    let users: Vec<_> = (0..100)
        .map(|user| {
            let hint = hint.clone();
            tokio::spawn(async move { hint.take(SALE, &format!("user-{user}")).await })
        })
        .collect();
    let mut passed = 0;
    for user in users {
        let hinted = user.await.unwrap();
        assert_ne!(hinted, Unknown);
        passed += usize::from(hinted == Perhaps);
    }
    assert_eq!(passed, 30);
}

#[tokio::test]
async fn sales_do_not_share() {
    let redis = redis();
    let hint = hint_of(&redis, 1).await;
    hint.set(SALE + 1, 1).await;
    assert_eq!(hint.take(SALE, "ana").await, Perhaps);
    assert_eq!(hint.take(SALE + 1, "ben").await, Perhaps);
    assert_eq!(hint.take(SALE + 1, "ana").await, SoldOut);
}

#[tokio::test]
async fn what_is_given_back_can_be_taken_by_another() {
    let redis = redis();
    let hint = hint_of(&redis, 1).await;
    assert_eq!(hint.take(SALE, "ana").await, Perhaps);
    hint.give_back(SALE, "ana").await;
    assert_eq!(hint.take(SALE, "ben").await, Perhaps);
    assert_eq!(hint.take(SALE, "ana").await, SoldOut);
}

#[tokio::test]
async fn only_what_was_taken_is_given_back_and_only_once() {
    let redis = redis();
    let hint = hint_of(&redis, 1).await;
    hint.give_back(SALE, "ben").await;
    assert_eq!(counter(&redis), "1");
    assert_eq!(hint.take(SALE, "ana").await, Perhaps);
    hint.give_back(SALE, "ana").await;
    hint.give_back(SALE, "ana").await;
    assert_eq!(counter(&redis), "1");
}

#[tokio::test]
async fn giving_back_makes_no_counter_where_there_is_none() {
    let redis = redis();
    let hint = hint_of(&redis, 1).await;
    assert_eq!(hint.take(SALE, "ana").await, Perhaps);
    redis.command(&["DEL", LEFT]);
    hint.give_back(SALE, "ana").await;
    assert_eq!(number(&redis, &["EXISTS", LEFT]), 0);
    assert_eq!(hint.take(SALE, "ana").await, Unknown);
}

#[tokio::test]
async fn an_emptied_redis_knows_nothing_until_it_is_corrected() {
    let redis = redis();
    let hint = hint_of(&redis, 2).await;
    assert_eq!(hint.take(SALE, "ana").await, Perhaps);
    redis.command(&["FLUSHALL"]);
    redis.command(&["SCRIPT", "FLUSH"]);
    assert_eq!(hint.take(SALE, "ben").await, Unknown);
    hint.set(SALE, 1).await;
    assert_eq!(hint.take(SALE, "ben").await, Perhaps);
    assert_eq!(hint.take(SALE, "cleo").await, SoldOut);
}
