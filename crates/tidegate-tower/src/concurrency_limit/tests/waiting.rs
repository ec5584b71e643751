//! Waiters for a permit.

use super::*;

fn waiting_layer(places: u64, clock: &Arc<ManualClock>) -> (ConcurrencyLimiter, ConcurrencyLimitLayer) {
    let places = ConcurrencyLimiter::builder(places).max_waiters(100_000).clock(clock.clone()).build();
    (places.clone(), ConcurrencyLimitLayer::new(places).wait(SECOND))
}

#[test]
fn ten_thousand_calls_in_one_task_leave_in_order_without_a_thread_each() {
    let clock = Arc::new(ManualClock::new());
    let (places, layer) = waiting_layer(1, &clock);
    let mut bench = Bench::new(&layer);
    let mut calls: Vec<_> = (0..10_000).map(|_| bench.call()).collect();
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let before = threads();
    assert!(calls.iter_mut().all(|call| poll(call).is_pending()));
    assert_eq!(places.waiting(), 9_999);
    // If tests share a process, other tests start threads meanwhile.
    assert!(threads() < before + 100, "a thread for each who waits");

    let mut came = bench.shared.came();
    for number in 0..10_000_u32 {
        bench.shared.answer(number, 200);
        answered(&mut calls[number as usize]);
        if let Some(next) = calls.get_mut(number as usize + 1) {
            assert!(poll(next).is_pending());
        }
        came.extend(bench.shared.came());
        assert!(places.in_flight() <= 1);
    }
    assert_eq!(came, (0..10_000).collect::<Vec<_>>());
    assert_eq!((places.waiting(), places.in_flight()), (0, 0));
}

#[test]
fn of_those_who_wait_some_go_away_and_the_others_lose_nothing() {
    let clock = Arc::new(ManualClock::new());
    let (places, layer) = waiting_layer(1, &clock);
    let mut bench = Bench::new(&layer);
    let mut calls: Vec<_> = (0..1000).map(|_| Some(bench.call())).collect();
    for call in calls.iter_mut().flatten() {
        assert!(poll(call).is_pending());
    }
    for number in (1..1000).filter(|number| number % 3 != 0) {
        calls[number] = None;
    }
    let mut came = bench.shared.came();
    let staying: Vec<u32> = (0..1000).filter(|number| number % 3 == 0).collect();
    for number in &staying {
        let mut call = calls[*number as usize].take().unwrap();
        let _ = poll(&mut call);
        came.extend(bench.shared.came());
        bench.shared.answer(*number, 200);
        answered(&mut call);
    }
    assert_eq!(came, staying);
    assert_eq!((places.waiting(), places.in_flight()), (0, 0));
}

#[test]
fn a_waiter_holds_no_readiness_and_the_service_is_ready_when_it_is_called() {
    let clock = Arc::new(ManualClock::new());
    let (places, layer) = waiting_layer(1, &clock);
    let mut bench = Bench::new(&layer);
    bench.shared.free.store(1, Ordering::SeqCst);
    let mut first = bench.call();
    let mut second = bench.call();
    assert!(poll(&mut second).is_pending());
    assert_eq!(bench.shared.free.load(Ordering::SeqCst), 1, "what was reserved for it is free again");

    bench.shared.free.store(0, Ordering::SeqCst);
    bench.shared.answer(0, 200);
    answered(&mut first);
    assert!(poll(&mut second).is_pending());
    assert_eq!(
        (bench.shared.came(), places.in_flight()),
        (vec![0], 1),
        "it has a permit, but the service is not ready"
    );
    bench.shared.free.store(1, Ordering::SeqCst);
    assert!(poll(&mut second).is_pending());
    assert_eq!(bench.shared.came(), [1]);
}

#[test]
fn a_call_dropped_while_the_service_becomes_ready_releases_its_permit() {
    let clock = Arc::new(ManualClock::new());
    let (places, layer) = waiting_layer(1, &clock);
    let mut bench = Bench::new(&layer);
    let first = bench.call();
    let mut second = bench.call();
    assert!(poll(&mut second).is_pending());
    bench.shared.free.store(0, Ordering::SeqCst);
    drop(first);
    assert!(poll(&mut second).is_pending());
    assert_eq!(places.in_flight(), 1);
    drop(second);
    assert_eq!((places.in_flight(), places.waiting()), (0, 0));
}

#[test]
fn a_service_that_fails_to_be_ready_fails_who_waited_for_it() {
    let clock = Arc::new(ManualClock::new());
    let (places, layer) = waiting_layer(1, &clock);
    let mut bench = Bench::new(&layer);
    let first = bench.call();
    let mut second = bench.call();
    assert!(poll(&mut second).is_pending());
    *bench.shared.fails_to_be_ready.lock().unwrap() = true;
    drop(first);
    assert!(matches!(poll(&mut second), Poll::Ready(Err("never ready"))));
    assert_eq!(places.in_flight(), 0);
}

#[test]
fn a_wait_beyond_max_wait_is_denied_and_the_caller_s_timeout_shortens_it() {
    let clock = Arc::new(ManualClock::new());
    let (places, layer) = waiting_layer(1, &clock);
    let mut bench = Bench::new(&layer);
    let _first = bench.call();
    let mut patient = bench.call();
    let mut hasty = bench.call_with(&[("grpc-timeout", "250m"), ("content-type", "application/grpc")]);
    let mut endless = bench.call_with(&[("grpc-timeout", "1H")]);
    assert!(
        poll(&mut patient).is_pending() && poll(&mut hasty).is_pending() && poll(&mut endless).is_pending()
    );
    clock.advance(SECOND / 4);
    assert_eq!(answered(&mut hasty).headers()["grpc-status"], "14");
    assert!(poll(&mut patient).is_pending());
    clock.advance(SECOND * 3 / 4);
    assert_eq!(answered(&mut patient).status(), 503);
    assert_eq!(answered(&mut endless).status(), 503, "the layer's own bound holds for everybody");
    assert_eq!(places.waiting(), 0);
    let mut at_once = bench.call_with(&[("grpc-timeout", "0n")]);
    assert_eq!(answered(&mut at_once).status(), 503);
}

#[test]
fn without_a_queue_no_call_waits() {
    let places = ConcurrencyLimiter::at_most(1);
    let mut bench = Bench::new(&ConcurrencyLimitLayer::new(places).wait(SECOND));
    let _first = bench.call();
    assert_eq!(answered(&mut bench.call()).status(), 503);
}
