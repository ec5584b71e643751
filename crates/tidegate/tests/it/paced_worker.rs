//! Workers that share a pacer, a queue of bounded length, and a limited number of calls in flight.

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use tidegate::{
    Class, ConcurrencyLimiter, Denied, Enqueued, Limit, MILLISECOND, ManualClock, Outcome, Pacer, SECOND,
    Shaper,
};
use tokio::task::JoinSet;

#[expect(clippy::disallowed_methods, reason = "a pacer of a program goes by the real time")]
#[tokio::test]
async fn tasks_share_one_pacer() -> Result<(), Box<dyn Error>> {
    // No idle time is saved, so that calls never leave in a burst.
    let pacer = Pacer::builder(50).burst_span(Duration::ZERO).build();
    let start = Instant::now();

    let mut workers = JoinSet::new();
    for _ in 0..3 {
        let pacer = pacer.clone();
        workers.spawn(async move {
            let mut calls = Vec::new();
            for _ in 0..4 {
                pacer.acquire(1).await?;
                calls.push(start.elapsed()); // the call itself
            }
            Ok::<_, Denied>(calls)
        });
    }
    let mut calls = Vec::new();
    while let Some(worker) = workers.join_next().await {
        calls.extend(worker??);
    }

    calls.sort();
    assert_eq!(calls.len(), 12);
    for (place, &call) in (0..).zip(&calls) {
        assert!(call >= place * 20 * MILLISECOND, "call {place} left after {call:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_shaper_has_a_queue_of_bounded_length() -> Result<(), Box<dyn Error>> {
    let clock = Arc::new(ManualClock::new());
    let shaper = Shaper::builder(Limit::leaky_bucket(50, SECOND).queue(2)).clock(clock.clone()).build();

    assert!(shaper.acquire().await?.duration.is_zero());
    let Enqueued::Waiting(first) = shaper.acquire().enqueue() else { panic!("the queue is empty") };
    let Enqueued::Waiting(second) = shaper.acquire().enqueue() else { panic!("one place is free") };
    let Enqueued::Denied(denied) = shaper.acquire().enqueue() else { panic!("the queue is full") };
    assert!(denied.is_queue_full());

    clock.advance(20 * MILLISECOND);
    assert_eq!(first.await?.duration, 20 * MILLISECOND);
    assert_eq!(second.position(), Some(0));
    clock.advance(20 * MILLISECOND);
    assert_eq!(second.await?.duration, 40 * MILLISECOND);
    Ok(())
}

#[tokio::test]
async fn interactive_calls_go_before_batch_calls() -> Result<(), Box<dyn Error>> {
    let limiter = ConcurrencyLimiter::builder(2)
        .classes([Class::new("interactive").share(50), Class::new("batch")])
        .max_waiters(10)
        .build();
    let [interactive, batch] = limiter.class_ids();

    let in_flight = limiter.admit(batch)?;
    assert!(limiter.admit(batch).is_err_and(|denied| denied.is_overloaded()), "one place is reserved");
    let _other = limiter.admit(interactive)?;
    assert_eq!((limiter.in_flight(), limiter.limit()), (2, 2));

    let Enqueued::Waiting(later) = limiter.acquire(batch).enqueue() else { panic!("no place is free") };
    let Enqueued::Waiting(sooner) = limiter.acquire(interactive).enqueue() else {
        panic!("no place is free")
    };
    in_flight.done(Outcome::Done);
    let first = sooner.await?;
    assert_eq!(first.class(), interactive);
    assert_eq!(limiter.waiting_of(batch), 1);

    drop(first);
    assert_eq!(later.await?.class(), batch);
    Ok(())
}
