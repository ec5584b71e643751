//! Calls that wait during a hold.

use tidegate::SECOND;
use tokio::task::JoinHandle;

use super::*;

fn retry_after(headers: &mut HeaderMap, decision: &Decision, _: Timestamp) {
    if !decision.is_allowed() {
        headers.insert("retry-after", 30.into());
    }
}

/// Returns a client whose server has just denied a call for 30 seconds.
async fn refused(layer: OutboundLimitLayer) -> Caller {
    let caller = Caller::new(layer, "1/30s fixed-window".parse().unwrap(), retry_after).await;
    assert_eq!(caller.status().await, 200);
    assert_eq!(caller.status().await, 429);
    caller
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_refusal_nothing_arrives_before_its_time_is_over() {
    let caller =
        Caller::new(OutboundLimitLayer::new(), "200/30s fixed-window".parse().unwrap(), retry_after).await;
    for _ in 0..200 {
        assert_eq!(caller.status().await, 200);
    }
    assert_eq!(caller.status().await, 429);
    let calls: Vec<_> = (0..200).map(|_| tokio::spawn(caller.call("/"))).collect();
    until(|| caller.layer.waiting() == 200).await;
    for _ in 0..29 {
        caller.clock.advance(SECOND);
        tokio::task::yield_now().await;
    }
    caller.clock.advance(SECOND - Duration::from_nanos(1));
    assert_eq!((caller.counts.arrived(), caller.layer.waiting()), (201, 200));
    caller.clock.advance(Duration::from_nanos(1));
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!((caller.counts.arrived(), caller.counts.refused()), (401, 1));
}

#[tokio::test]
async fn a_call_that_is_dropped_never_arrives_and_the_others_leave_in_order() {
    let layer = OutboundLimitLayer::new().pace("1/s burst 1".parse().unwrap());
    let caller = Caller::new(layer, "1/30s fixed-window".parse().unwrap(), retry_after).await;
    assert_eq!(caller.status().await, 200);
    caller.clock.advance(SECOND);
    assert_eq!(caller.status().await, 429);
    let mut calls = Vec::new();
    for number in 0..100 {
        calls.push(tokio::spawn(caller.call(&format!("/{number}"))));
        until(|| caller.layer.waiting() == number + 1).await;
    }
    for call in calls.iter().skip(1).step_by(2) {
        call.abort();
    }
    until(|| caller.layer.waiting() == 50).await;
    assert_eq!(caller.counts.arrived(), 2);
    caller.clock.advance(30 * SECOND);
    let mut staying = Vec::new();
    for (number, call) in calls.into_iter().enumerate().step_by(2) {
        // The server denies them, too, and asks for 30 seconds more each time.
        call.await.unwrap().unwrap();
        staying.push(format!("/{number}"));
        caller.clock.advance(30 * SECOND);
    }
    assert_eq!(caller.counts.order.lock().unwrap()[2..], staying);
}

#[tokio::test]
async fn a_call_held_beyond_max_wait_fails_at_once_with_the_time_to_the_next_try() {
    let caller = refused(OutboundLimitLayer::new().max_wait(10 * SECOND)).await;
    let error = caller.call("/").await.unwrap_err();
    let held = error.downcast_ref::<Throttled>().expect("an error of ours");
    assert!(held.is_reported());
    assert_eq!(held.retry_after(), Some(30 * SECOND));
    assert_eq!(caller.counts.arrived(), 2);
    caller.clock.advance(30 * SECOND);
    assert_eq!(caller.status().await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_spend_no_more_than_was_left() {
    let tell: Tell = |headers, decision, _| {
        let value = format!("\"api\";r={};t={}", decision.remaining(), seconds(decision));
        headers.insert("ratelimit", text(&value));
    };
    let caller = Caller::new(OutboundLimitLayer::new(), "50/10s fixed-window".parse().unwrap(), tell).await;
    assert_eq!(caller.status().await, 200);
    let calls: Vec<_> = (0..200).map(|_| tokio::spawn(caller.call("/"))).collect();
    // At most 49 leave, fewer if responses overtake each other. The others wait for the next window, which is unknown.
    until(|| caller.counts.arrived() + caller.layer.waiting() == 201).await;
    assert!(caller.counts.arrived() <= 50);
    assert_eq!(caller.counts.refused(), 0);
    while !calls.iter().all(JoinHandle::is_finished) {
        caller.clock.advance(10 * SECOND);
        tokio::task::yield_now().await;
    }
    assert_eq!(caller.counts.arrived(), 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_the_clock_of_the_process_a_hold_ends_without_any_doing() {
    let tell: Tell = |headers, decision, _| {
        if !decision.is_allowed() {
            headers.insert("retry-after", 1.into());
        }
    };
    let caller = Caller::new(OutboundLimitLayer::new(), "1/30s fixed-window".parse().unwrap(), tell).await;
    let layer = OutboundLimitLayer::new();
    let mut client = layer.layer(Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>());
    for expected in [200, 429, 429] {
        let response = client.ready().await.unwrap().call(caller.request("/")).await.unwrap();
        assert_eq!(response.status(), expected);
    }
    assert_eq!(caller.counts.arrived(), 3);
}
