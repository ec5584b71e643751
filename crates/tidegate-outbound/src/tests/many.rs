//! Many calls, many servers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use tidegate_core::SECOND;

use super::super::origins::MAX_KEYS;
use super::*;

#[test]
fn ten_thousand_calls_in_one_task_leave_in_order_without_a_thread_each() {
    let mut bench =
        Bench::new(OutboundLimitLayer::new().pace("1000/s burst 1".parse().unwrap()).max_waiters(20_000));
    let mut calls: Vec<_> = (0..10_000).map(|_| bench.call()).collect();
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let before = threads();
    let mut arrived = bench.arrived(&mut calls);
    assert_eq!(bench.layer.waiting(), 9_999);
    // If tests share a process, other tests start threads meanwhile.
    assert!(threads() < before + 100, "a thread for each who waits");
    while arrived.len() < 10_000 {
        bench.clock.advance(SECOND / 1000);
        let due = arrived.len();
        let _ = poll(&mut calls[due]);
        arrived.extend(bench.server.arrived());
    }
    assert_eq!(arrived, (0..10_000).collect::<Vec<_>>());
}

#[test]
fn a_thousand_random_cancellations_leave_no_gap() {
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        usize::try_from(word % below as u64).expect("it is below a number of that type")
    };
    let mut bench =
        Bench::new(OutboundLimitLayer::new().pace("1000/s burst 1".parse().unwrap()).max_waiters(2000));
    let mut calls: Vec<_> = (0..2001).map(|number| (number, bench.call())).collect();
    assert!(poll(&mut calls[0].1).is_pending());
    let (mut on_their_way, mut passed) = (vec![calls.remove(0).1], 0);
    assert_eq!(bench.server.arrived(), [0]);
    // One of three is dropped at the head of the queue, some of them after they were released.
    for _ in 0..1000 {
        if random(4) == 0 {
            bench.clock.advance(SECOND / 1000);
        }
        drop(calls.remove(if random(3) == 0 { 0 } else { random(calls.len()) }));
        let _ = poll(&mut calls[0].1);
        for number in bench.server.arrived() {
            assert_eq!(number, calls[0].0);
            on_their_way.push(calls.remove(0).1);
            passed += 1;
        }
        assert_eq!(bench.layer.waiting(), calls.len());
    }
    assert!(passed > 100, "{passed} left between the cancellations");
    for (number, mut call) in calls {
        bench.clock.advance(SECOND / 1000);
        let _ = poll(&mut call);
        assert_eq!(bench.server.arrived(), [number], "the time of a call that went away is not lost");
        on_their_way.push(call);
    }
}

#[test]
fn a_line_that_is_full_lets_one_more_fail_at_once() {
    let mut bench = Bench::new(OutboundLimitLayer::new().max_waiters(2));
    bench.call_answered(429, &[("retry-after", "5")]);
    let mut calls = vec![bench.call(), bench.call()];
    assert!(held(&mut bench.call()).is_queue_full());
    drop(calls.pop());
    assert!(poll(&mut bench.call()).is_pending(), "one went away");
}

#[test]
fn a_denial_by_one_server_holds_no_calls_to_others() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    bench.call_answered(429, &[("retry-after", "5")]);
    let mut calls =
        [bench.call_to("EXAMPLE.com:80"), bench.call_to("example.org"), bench.call_to("example.com:8080")];
    assert_eq!(bench.arrived(&mut calls), [2, 3], "another port is another server");
}

#[test]
fn clones_share_what_they_know() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    bench.call_answered(429, &[("retry-after", "5")]);
    bench.client = bench.layer.clone().layer(bench.server.clone());
    let mut calls = [bench.call()];
    assert_eq!(bench.arrived(&mut calls), [0_u32; 0]);
}

#[test]
fn places_whose_time_is_over_are_forgotten_first() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    for number in 0..3 * MAX_KEYS {
        bench.server.answer(bench.sent, 200, &[]);
        answer(&mut bench.call_to(&format!("host-{number}.example")));
        assert!(bench.layer.shared.counts().1 <= MAX_KEYS);
    }
}

#[test]
fn when_all_places_are_in_use_newcomers_share_a_line_and_none_leaves_too_early() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    for number in 0..MAX_KEYS {
        bench.server.answer(bench.sent, 429, &[("retry-after", "10")]);
        answer(&mut bench.call_to(&format!("host-{number}.example")));
    }
    bench.server.arrived();
    // There is no queue for this server any more. It asks for a hold, and the layer obeys.
    bench.server.answer(bench.sent, 429, &[("retry-after", "20")]);
    answer(&mut bench.call_to("newcomer.example"));
    bench.server.arrived();
    let mut calls = [bench.call_to("newcomer.example"), bench.call_to("another.example")];
    assert_eq!(bench.arrived(&mut calls), [0_u32; 0]);
    bench.clock.advance(10 * SECOND);
    // By now the others are over, so there would be space; but its hold still applies.
    let mut again = [bench.call_to("newcomer.example")];
    assert_eq!((bench.arrived(&mut calls), bench.arrived(&mut again)), (vec![], vec![]));
    let mut known = [bench.call_to("host-0.example")];
    assert_eq!(bench.arrived(&mut known).len(), 1);
    bench.clock.advance(10 * SECOND);
    assert_eq!(bench.arrived(&mut calls).len(), 1);
    drop(calls);
    assert_eq!(bench.arrived(&mut again).len(), 1);
}

#[test]
fn a_host_that_denies_holds_no_other_while_there_is_a_queue_without_waiters() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    let left =
        |left: &str| [("x-ratelimit-remaining", left.to_owned()), ("x-ratelimit-reset", "3600".to_owned())];
    for number in 0..MAX_KEYS {
        let [left, reset] = left(if number == 7 { "1" } else { "4999" });
        bench.server.answer(bench.sent, 200, &[(left.0, &left.1), (reset.0, &reset.1)]);
        answer(&mut bench.call_to(&format!("host-{number}.example")));
    }
    bench.server.answer(bench.sent, 429, &[("retry-after", "3600")]);
    answer(&mut bench.call_to("greedy.example"));
    bench.server.arrived();
    let mut calls: Vec<_> = (0..100).map(|number| bench.call_to(&format!("new-{number}.example"))).collect();
    assert_eq!(bench.arrived(&mut calls).len(), 100);
    let mut greedy = [bench.call_to("greedy.example")];
    assert_eq!(bench.arrived(&mut greedy), [0_u32; 0], "what it reported is not forgotten");
    let mut tight = [bench.call_to("host-7.example"), bench.call_to("host-7.example")];
    assert_eq!(bench.arrived(&mut tight).len(), 1, "nor that of the tightest");
}

#[test]
fn a_server_that_shared_a_queue_holds_no_other_once_there_is_room() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    for number in 0..MAX_KEYS {
        bench.server.answer(bench.sent, 429, &[("retry-after", "10")]);
        answer(&mut bench.call_to(&format!("host-{number}.example")));
    }
    bench.server.answer(bench.sent, 429, &[("retry-after", "3600")]);
    answer(&mut bench.call_to("greedy.example"));
    bench.server.arrived();
    bench.clock.advance(10 * SECOND);
    bench.clock.advance(100 * SECOND);
    let mut calls = [bench.call_to("greedy.example"), bench.call_to("innocent.example")];
    assert_eq!(bench.arrived(&mut calls).len(), 1);
}

#[test]
fn those_who_wait_for_one_host_fill_no_other_s_line() {
    let mut bench = Bench::new(OutboundLimitLayer::new().max_waiters(2));
    bench.call_answered(429, &[("retry-after", "5")]);
    let _waiting = [bench.call(), bench.call()];
    bench.server.answer(bench.sent, 429, &[("retry-after", "5")]);
    answer(&mut bench.call_to("other.example"));
    assert!(poll(&mut bench.call_to("other.example")).is_pending());
    let mut others = Vec::new();
    for number in 0..40 {
        let host = format!("host-{number}.example");
        bench.server.answer(bench.sent, 429, &[("retry-after", "5")]);
        answer(&mut bench.call_to(&host));
        others.push(bench.call_to(&host));
    }
    let full = others.iter_mut().filter_map(|call| match poll(call) {
        Poll::Ready(Err(error)) => error.downcast_ref::<Throttled>().copied(),
        _ => None,
    });
    assert_eq!(full.filter(Throttled::is_queue_full).count(), 10, "sixteen lines full are enough in all");
}

#[test]
fn a_waker_that_panics_keeps_no_other_waiter_from_being_woken() {
    struct Counts(AtomicUsize, bool);
    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
            assert!(!self.1, "a waker of others");
        }
    }
    let mut bench = Bench::new(OutboundLimitLayer::new());
    bench.call_answered(429, &[("retry-after", "5")]);
    let mut calls = [bench.call(), bench.call()];
    bench.clock.advance(4 * SECOND);
    let wakes = [true, false].map(|panics| Arc::new(Counts(AtomicUsize::new(0), panics)));
    for (call, counts) in calls.iter_mut().zip(&wakes) {
        let waker = Waker::from(Arc::clone(counts));
        assert!(call.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    // The first leaves; the second leaves after a second without a response to the first.
    bench.clock.advance(SECOND);
    bench.clock.advance(SECOND);
    assert_eq!(wakes.map(|counts| counts.0.load(Ordering::SeqCst)), [1, 1]);
}

#[test]
fn threads_that_call_and_go_away_lose_no_call() {
    let bench =
        Bench::new(OutboundLimitLayer::new().pace("100000/s burst 1".parse().unwrap()).max_waiters(100_000));
    let (answered, abandoned) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let (mut client, server) = (bench.client.clone(), bench.server.clone());
            let (clock, answered, abandoned) = (&bench.clock, &answered, &abandoned);
            scope.spawn(move || {
                for round in 0..500_u32 {
                    let number = thread * 1000 + round;
                    server.answer(number, 200, &[]);
                    let request = Request::get("http://example.com/").body(number).unwrap();
                    let mut call: Call = Box::pin(client.call(request));
                    if (thread + round) % 3 == 0 {
                        let _ = poll(&mut call);
                        abandoned.fetch_add(1, Ordering::SeqCst);
                        continue;
                    }
                    while poll(&mut call).is_pending() {
                        clock.advance(SECOND / 100_000);
                        std::thread::yield_now();
                    }
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(answered.into_inner() + abandoned.into_inner(), 2000);
    assert_eq!(bench.layer.waiting(), 0);
}
