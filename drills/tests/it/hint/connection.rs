//! A Redis that is stopped, absent, or says something else.

use super::*;

/// Waits until a hint is asked again.
async fn until_there(hint: &Hint, user: &str) {
    eventually("the hint is there", async || {
        hint.set(SALE, 1).await;
        hint.take(SALE, user).await == Perhaps
    })
    .await;
}

#[tokio::test]
async fn a_stopped_redis_is_asked_once_and_comes_back_by_itself() {
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    // The max wait of the shop: here it has to run out.
    let hint = Hint::connect(&proxy.url()).unwrap();
    until_there(&hint, "ana").await;
    redis.stop();
    assert_eq!(hint.take(SALE, "ben").await, Unknown);
    let requests = proxy.counters().requests;
    for _ in 0..1_000 {
        assert_eq!(hint.take(SALE, "ben").await, Unknown);
    }
    // No call waited for the thousand: the task that tries again may have asked meanwhile.
    let asked = proxy.counters().requests - requests;
    assert!(asked < 100, "redis was asked {asked} times");
    redis.resume();
    until_there(&hint, "cleo").await;
}

#[tokio::test]
async fn the_shop_starts_without_redis_and_finds_it_later() {
    let redis = redis();
    redis.kill();
    let hint = hint(&redis.url());
    hint.set(SALE, 1).await;
    assert_eq!(hint.take(SALE, "ana").await, Unknown);
    redis.restart();
    until_there(&hint, "ana").await;
}

#[tokio::test]
async fn a_connection_that_was_forgotten_in_between_is_replaced() {
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    let hint = Hint::connect(&proxy.url()).unwrap();
    until_there(&hint, "ana").await;
    // What is lost on a connection makes it silent for ever, as a router does that was started anew.
    proxy.flow(Direction::Replies, Flow::Swallow);
    assert_eq!(hint.take(SALE, "ana").await, Unknown);
    proxy.flow(Direction::Replies, Flow::Pass);
    eventually("the hint is back", async || {
        hint.take(SALE, "ana").await != Unknown || {
            hint.set(SALE, 1).await;
            false
        }
    })
    .await;
}

#[tokio::test]
async fn whatever_redis_says_instead_is_nothing_known() {
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    proxy.only_for(&["EVALSHA", "EVAL"]);
    let said = [
        "-LOADING Redis is loading the dataset in memory",
        "-OOM command not allowed",
        "+OK",
        "$2\r\nno",
        "*0",
    ];
    for line in said {
        let hint = hint(&proxy.url());
        hint.set(SALE, 1).await;
        assert_eq!(hint.take(SALE, "ana").await, Perhaps);
        proxy.answer(1, line);
        assert_eq!(hint.take(SALE, "ana").await, Unknown, "{line}");
        redis.command(&["DEL", USERS]);
    }
}

#[test]
fn an_address_that_cannot_be_one_is_refused_without_its_password() {
    let error = Hint::connect("http://ana:secret@example.com").unwrap_err();
    assert!(error.starts_with("address of redis: "), "{error}");
    assert!(error.ends_with("; write redis://host:port"), "{error}");
    assert!(!error.contains("secret"), "{error}");
}
