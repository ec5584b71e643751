//! A limit that two stores share over Redis, and what happens when Redis is gone.

use std::{error::Error, num::NonZeroU64, sync::Arc, time::Duration};

use testbed::{Flavour, Redis};
use tidegate::{
    DecidedBy, FallbackStore, HOUR, Limit, SharedLimiter, Zone,
    redis::{Options, RedisStore},
};
use tokio::task::JoinSet;

const LOGINS: Limit = Limit::sliding_log(5, HOUR);

fn open(server: &Redis) -> Result<RedisStore, Box<dyn Error>> {
    // The machine may be busy; the default deadline suits production.
    Ok(RedisStore::open(Options::new(server.url().parse()?).deadline(Duration::from_secs(5)))?)
}

#[tokio::test]
async fn two_stores_share_one_limit() -> Result<(), Box<dyn Error>> {
    let server = Redis::start(Flavour::Redis7);
    let (one, other) = (open(&server)?, open(&server)?);
    one.ready().await?;
    other.ready().await?;

    let here = SharedLimiter::on(&one, "login", LOGINS);
    let there = SharedLimiter::try_on(&other, "login", "5/h sliding-log")?;
    let mut asks = JoinSet::new();
    for _ in 0..10 {
        for limiter in [&here, &there] {
            let limiter = limiter.clone();
            asks.spawn(async move { limiter.admit("ana").await });
        }
    }
    let mut allowed = 0;
    while let Some(decision) = asks.join_next().await {
        allowed += u32::from(decision??.is_allowed());
    }
    assert_eq!(allowed, 5, "exact across both stores");
    for limiter in [&here, &there] {
        let denied = limiter.admit("ana").await?;
        assert!(!denied.is_allowed());
        assert!(denied.retry_after().is_some_and(|wait| wait <= HOUR));
    }
    assert!(there.admit("bob").await?.is_allowed());
    Ok(())
}

#[tokio::test]
async fn a_strict_limiter_fails_without_redis_and_a_fallback_decides() -> Result<(), Box<dyn Error>> {
    let server = Redis::start(Flavour::Redis7);
    let store = open(&server)?;
    store.ready().await?;

    let nodes = NonZeroU64::new(2).ok_or("there are two nodes")?;
    let with_fallback = FallbackStore::new(Arc::new(store.clone()), &Zone::new(1 << 20)).nodes(nodes);
    let strict = SharedLimiter::on(&store, "login", LOGINS);
    let tolerant = SharedLimiter::on(&with_fallback, "login", LOGINS);
    assert!(strict.admit("ana").await?.is_allowed());
    assert_eq!(tolerant.admit("ana").await?.remaining(), 3); // the same name, so the same count

    server.kill();
    let error = strict.admit("ana").await.expect_err("Redis is gone");
    assert!(!error.is_unfit(), "the store has failed, not the request: {error}");

    // This is one of two nodes, so its share of five is two.
    for _ in 0..2 {
        let (decision, take) = tolerant.admit_tracked("ana").await?;
        assert!(decision.is_allowed());
        assert_eq!(take.map(|take| take.decided_by()), Some(DecidedBy::Local));
    }
    assert!(!tolerant.admit("ana").await?.is_allowed());

    let failures = tolerant.store_failures();
    assert!(failures.is_failing);
    assert_eq!((failures.failed, failures.decided.local_allowed, failures.decided.local_denied), (3, 2, 1));
    Ok(())
}
