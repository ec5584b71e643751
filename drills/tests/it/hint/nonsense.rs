//! What is in Redis and should not be, and a Redis that does not obey.

use super::*;

#[tokio::test]
async fn garbage_in_the_counter_is_nothing_known_and_is_overwritten() {
    let redis = redis();
    let hint = hint_of(&redis, 1).await;
    let texts = [
        "",
        " 1",
        "1 ",
        "many",
        "1.5",
        "1e3",
        "0x10",
        "+1",
        "007",
        "00",
        "-0",
        "nan",
        "inf",
        "9223372036854775807",
        "99999999999999999999",
        "1\n",
        "1\0",
    ];
    for text in texts {
        write(&redis, text);
        assert_eq!(hint.take(SALE, "ana").await, Unknown, "{text:?}");
        hint.give_back(SALE, "ana").await;
        assert_eq!(counter(&redis), text, "nothing is counted with {text:?}");
        hint.set(SALE, 1).await;
        assert_eq!(hint.take(SALE, "ana").await, Perhaps, "after {text:?}");
        hint.give_back(SALE, "ana").await;
    }
}

#[tokio::test]
async fn a_counter_below_zero_is_sold_out() {
    let redis = redis();
    let hint = hint_of(&redis, 1).await;
    write(&redis, "-3");
    assert_eq!(hint.take(SALE, "ana").await, SoldOut);
    assert_eq!(counter(&redis), "-3");
}

#[tokio::test]
async fn keys_of_another_type_are_nothing_known_and_are_replaced() {
    let redis = redis();
    let hint = hint_of(&redis, 1).await;
    let kinds: [&[&str]; 4] = [&["RPUSH", "1"], &["SADD", "1"], &["HSET", "1", "1"], &["ZADD", "1", "1"]];
    for kind in kinds {
        redis.command(&["DEL", LEFT]);
        redis.command(&[&[kind[0], LEFT], &kind[1..]].concat());
        redis.command(&["PEXPIRE", LEFT, "10000"]);
        assert_eq!(hint.take(SALE, "ana").await, Unknown, "counter by {kind:?}");
        hint.give_back(SALE, "ana").await;
        hint.set(SALE, 1).await;
        assert_eq!(hint.take(SALE, "ana").await, Perhaps, "counter by {kind:?}");
        hint.give_back(SALE, "ana").await;
    }
    redis.command(&["SET", USERS, "ana"]);
    assert_eq!(hint.take(SALE, "ana").await, Unknown);
    hint.give_back(SALE, "ana").await;
    hint.set(SALE, 1).await;
    assert_eq!(hint.take(SALE, "ana").await, Perhaps);
    assert_eq!(counter(&redis), "0");
}

#[tokio::test]
async fn a_counter_that_is_no_longer_corrected_is_not_believed() {
    let redis = redis();
    let hint = hint_of(&redis, 1).await;
    for left in ["0", "5"] {
        redis.command(&["SET", LEFT, left]);
        assert_eq!(hint.take(SALE, "ana").await, Unknown, "{left} for ever");
        redis.command(&["SET", LEFT, left, "EX", "3600"]);
        assert_eq!(hint.take(SALE, "ana").await, Unknown, "{left} for an hour");
    }
}

#[tokio::test]
async fn both_keys_always_have_an_end() {
    let redis = redis();
    let hint = hint_of(&redis, 2).await;
    let ends = || {
        let life = number(&redis, &["PTTL", LEFT]);
        assert!((0..=10_000).contains(&life), "the counter lives {life} ms");
        let life = number(&redis, &["TTL", USERS]);
        assert!((0..=86_400).contains(&life), "the users live {life} s");
    };
    assert_eq!(hint.take(SALE, "ana").await, Perhaps);
    ends();
    hint.take(SALE, "ben").await;
    hint.give_back(SALE, "ben").await;
    ends();
    redis.command(&["PERSIST", USERS]);
    hint.set(SALE, 1).await;
    ends();
}

#[tokio::test]
async fn names_of_users_are_bytes_to_redis() {
    let redis = redis();
    let hint = hint_of(&redis, 3).await;
    for user in ["", "ana\r\nFLUSHALL\r\n", "{7}:left"] {
        assert_eq!(hint.take(SALE, user).await, Perhaps, "{user:?}");
    }
    assert_eq!(hint.take(SALE, "dora").await, SoldOut);
    assert_eq!(number(&redis, &["SCARD", USERS]), 3);
}

#[tokio::test]
async fn a_redis_that_takes_no_writes_is_nothing_known() {
    let redis = redis();
    let hint = hint_of(&redis, 5).await;
    redis.command(&["REPLICAOF", "127.0.0.1", "1"]);
    assert_eq!(hint.take(SALE, "ana").await, Unknown);
    hint.set(SALE, 3).await;
    redis.command(&["REPLICAOF", "NO", "ONE"]);
    assert_eq!(counter(&redis), "5", "it could not be set");
    assert_eq!(hint.take(SALE, "ana").await, Perhaps, "an answer is no reason to leave redis alone");
}
