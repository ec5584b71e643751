//! Readiness is that of the inner service: a waiter holds none of it, and a call that leaves has it.

use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate_core::{Clock, SECOND, Timestamp};

use super::*;
use tidegate_tower::key;

/// A service with a few slots: a ready clone has reserved one, and a new clone has none reserved.
#[derive(Debug)]
struct Few {
    server: Server,
    free: Arc<AtomicUsize>,
    reserved: bool,
}

impl Few {
    fn release(&mut self) {
        if std::mem::take(&mut self.reserved) {
            self.free.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Clone for Few {
    fn clone(&self) -> Few {
        Few { server: self.server.clone(), free: Arc::clone(&self.free), reserved: false }
    }
}

impl Drop for Few {
    fn drop(&mut self) {
        self.release();
    }
}

impl Service<Request<u32>> for Few {
    type Response = Response<()>;
    type Error = BoxError;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if !self.reserved {
            let take = |free: usize| free.checked_sub(1);
            if self.free.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_err() {
                return Poll::Pending;
            }
            self.reserved = true;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<u32>) -> Answering {
        assert!(self.reserved, "called without being ready");
        self.release();
        self.server.call(request)
    }
}

type FewCall = Pin<Box<OutboundLimitFuture<Few, u32>>>;

fn few(layer: &OutboundLimitLayer, places: usize) -> (OutboundLimit<Few>, Arc<AtomicUsize>, Server) {
    let (server, free) = (Server::default(), Arc::new(AtomicUsize::new(places)));
    let few = Few { server: server.clone(), free: Arc::clone(&free), reserved: false };
    (layer.layer(few), free, server)
}

fn is_ready(client: &mut OutboundLimit<Few>) -> bool {
    client.poll_ready(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn call(client: &mut OutboundLimit<Few>, number: u32) -> FewCall {
    assert!(is_ready(client));
    Box::pin(client.call(Request::get("http://example.com/").body(number).unwrap()))
}

fn poll(call: &mut FewCall) -> Poll<Result<Response<()>, BoxError>> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_call_that_waits_holds_no_readiness_and_is_ready_before_it_leaves() {
    let clock = Arc::new(ManualClock::new());
    let layer = OutboundLimitLayer::new().pace("1/s burst 1".parse().unwrap()).with_clock(clock.clone());
    let (mut client, free, server) = few(&layer, 1);
    let mut first = call(&mut client, 0);
    assert!(poll(&mut first).is_pending());
    let mut second = call(&mut client, 1);
    assert!(poll(&mut second).is_pending());
    assert_eq!(free.load(Ordering::SeqCst), 1, "no waiter has reserved readiness");

    free.store(0, Ordering::SeqCst);
    clock.advance(SECOND);
    assert!(poll(&mut second).is_pending(), "it may leave, but the service is not ready");
    assert_eq!(server.arrived(), [0]);
    free.store(1, Ordering::SeqCst);
    assert!(poll(&mut second).is_pending());
    assert_eq!(server.arrived(), [1]);
}

#[test]
fn a_refusal_that_comes_while_the_service_becomes_ready_is_obeyed() {
    let clock = Arc::new(ManualClock::new());
    let layer = OutboundLimitLayer::new().with_clock(clock.clone());
    let (mut client, free, server) = few(&layer, 1);
    let mut slow = call(&mut client, 0);
    let mut refused = call(&mut client, 1);
    server.answer(1, 429, &[("retry-after", "5")]);
    assert!(poll(&mut refused).is_ready());
    let mut waits = call(&mut client, 2);
    free.store(0, Ordering::SeqCst);
    clock.advance(5 * SECOND);
    assert!(poll(&mut waits).is_pending(), "let go, but the service is not ready");
    server.answer(0, 429, &[("retry-after", "7")]);
    assert!(poll(&mut slow).is_ready());
    free.store(1, Ordering::SeqCst);
    assert!(poll(&mut waits).is_pending());
    assert_eq!(server.arrived(), [0, 1]);
    assert_eq!(free.load(Ordering::SeqCst), 1, "it went back to the line without its readiness");
    clock.advance(7 * SECOND);
    assert!(poll(&mut waits).is_pending());
    assert_eq!(server.arrived(), [2]);
}

#[test]
fn the_pace_is_kept_also_by_those_whose_service_was_not_ready() {
    let clock = Arc::new(ManualClock::new());
    let layer = OutboundLimitLayer::new().pace("10/s burst 1".parse().unwrap()).with_clock(clock.clone());
    let (mut client, free, server) = few(&layer, 1);
    let mut calls: Vec<_> = (0..21).map(|number| call(&mut client, number)).collect();
    assert_eq!(server.arrived(), [0]);
    free.store(0, Ordering::SeqCst);
    for _ in 0..20 {
        clock.advance(SECOND / 10);
        assert!(calls.iter_mut().all(|call| poll(call).is_pending()));
    }
    free.store(1, Ordering::SeqCst);
    for number in 1..21 {
        assert!(calls.iter_mut().all(|call| poll(call).is_pending()));
        assert_eq!(server.arrived(), [number]);
        clock.advance(SECOND / 10);
    }
}

#[test]
fn what_goes_away_while_the_service_becomes_ready_was_never_sent() {
    let clock = Arc::new(ManualClock::new());
    let layer = OutboundLimitLayer::new().with_clock(clock.clone());
    let (mut client, free, server) = few(&layer, 1);
    let mut first = call(&mut client, 0);
    server.answer(0, 200, &[("ratelimit", "\"a\";r=0;t=5")]);
    assert!(poll(&mut first).is_ready());
    let mut waits = call(&mut client, 1);
    clock.advance(5 * SECOND);
    free.store(0, Ordering::SeqCst);
    assert!(poll(&mut waits).is_pending());
    drop(waits);
    free.store(1, Ordering::SeqCst);
    let mut next = call(&mut client, 2);
    server.answer(2, 200, &[("ratelimit", "\"a\";r=1;t=5")]);
    assert!(poll(&mut next).is_ready());
    let mut last = call(&mut client, 3);
    assert!(poll(&mut last).is_pending());
    assert_eq!(server.arrived(), [0, 2, 3], "the one that went away is not counted as on its way");
}

#[test]
fn what_goes_away_while_the_service_becomes_ready_takes_nothing_of_a_quota() {
    let layer = OutboundLimitLayer::new().per(key::later(|_| async { "ana".to_owned() }));
    let (mut client, free, server) = few(&layer, 1);
    let mut first = call(&mut client, 0);
    server.answer(0, 200, &[("ratelimit", "\"a\";r=1;t=30")]);
    assert!(poll(&mut first).is_ready());
    let mut goes_away = call(&mut client, 1);
    free.store(0, Ordering::SeqCst);
    assert!(poll(&mut goes_away).is_pending());
    drop(goes_away);
    free.store(1, Ordering::SeqCst);
    let mut calls = [call(&mut client, 2), call(&mut client, 3)];
    assert!(calls.iter_mut().all(|call| poll(call).is_pending()));
    assert_eq!(server.arrived(), [0, 2], "the one that was left, and no more");
}

#[test]
fn a_key_that_comes_later_holds_no_readiness_meanwhile() {
    let later = key::later(|_| async {
        let mut is_first = true;
        std::future::poll_fn(move |_| match std::mem::take(&mut is_first) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
        "ana".to_owned()
    });
    let (mut client, free, server) = few(&OutboundLimitLayer::new().per(later), 1);
    let mut first = call(&mut client, 0);
    assert!(poll(&mut first).is_pending());
    assert_eq!((free.load(Ordering::SeqCst), server.arrived()), (1, vec![]));
    assert!(poll(&mut first).is_pending());
    assert_eq!(server.arrived(), [0]);
}

#[test]
fn calls_without_their_key_go_free_or_fail_as_the_extractor_says() {
    use tidegate_tower::key::Extract as _;
    let mut bench = Bench::new(OutboundLimitLayer::new().per(key::header("x-account").or_skip()));
    bench.call_answered(429, &[("retry-after", "5")]);
    let mut calls = [bench.call()];
    assert_eq!(bench.arrived(&mut calls), [1], "it counts for no other call");

    let mut bench = Bench::new(OutboundLimitLayer::new().per(key::header("x-account").or_deny()));
    let failed = held(&mut bench.call());
    assert!(failed.to_string().contains("lacks"), "{failed}");
    assert_eq!(bench.server.arrived(), [0_u32; 0]);
}

#[test]
fn an_error_of_the_service_is_handed_on_and_ends_the_call() {
    #[derive(Clone)]
    struct Broken;
    impl Service<Request<u32>> for Broken {
        type Response = Response<()>;
        type Error = std::io::Error;
        type Future = std::future::Ready<Result<Response<()>, std::io::Error>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<u32>) -> Self::Future {
            std::future::ready(Err(std::io::Error::other("broken")))
        }
    }
    let mut client = OutboundLimitLayer::new().layer(Broken);
    let mut call = Box::pin(client.call(Request::new(0)));
    let Poll::Ready(Err(error)) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("no error")
    };
    assert_eq!(error.downcast_ref::<std::io::Error>().unwrap().to_string(), "broken");
}

#[test]
fn without_a_timer_no_call_waits() {
    #[derive(Debug)]
    struct NoAlarms;
    impl Clock for NoAlarms {
        fn now(&self) -> Timestamp {
            Timestamp::EPOCH
        }

        fn wake_at(&self, _: Timestamp, _: Waker) -> std::io::Result<bool> {
            Err(std::io::Error::from(std::io::ErrorKind::WouldBlock))
        }
    }
    let layer = OutboundLimitLayer::new().pace("1/s burst 1".parse().unwrap()).with_clock(Arc::new(NoAlarms));
    let (mut client, _, server) = few(&layer, 9);
    let _first = call(&mut client, 0);
    let Poll::Ready(Err(error)) = poll(&mut call(&mut client, 1)) else { panic!("it waits") };
    assert!(error.to_string().contains("threads"), "{error}");
    assert_eq!(server.arrived(), [0]);
    assert_eq!(layer.waiting(), 0);
}
