//! The layer over services under the control of a test.

mod bodies;
mod outcomes;
mod waiting;

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use http::{HeaderMap, Request};
use http_body::Frame;
use tidegate_core::{AdaptiveLimit, Class, ManualClock, SECOND};
use tower_service::Service;

use super::*;

/// A service under the control of a test: it records its calls, and replies on command. At most `free` of its clones
/// are ready at the same time; a new clone is not ready.
#[derive(Debug)]
struct Hand {
    shared: Arc<Shared>,
    is_ready: bool,
}

#[derive(Debug, Default)]
struct Shared {
    came: Mutex<Vec<u32>>,
    answers: Mutex<BTreeMap<u32, Result<Response<Frames>, &'static str>>>,
    free: AtomicUsize,
    fails_to_be_ready: Mutex<bool>,
}

impl Hand {
    fn new() -> Hand {
        let shared = Shared { free: AtomicUsize::new(1_000_000), ..Shared::default() };
        Hand { shared: Arc::new(shared), is_ready: false }
    }
}

impl Shared {
    fn came(&self) -> Vec<u32> {
        std::mem::take(&mut *self.came.lock().unwrap())
    }

    fn answer(&self, number: u32, status: u16) {
        self.answer_with(number, Ok(Response::builder().status(status).body(Frames::default()).unwrap()));
    }

    fn answer_with(&self, number: u32, answer: Result<Response<Frames>, &'static str>) {
        self.answers.lock().unwrap().insert(number, answer);
    }
}

impl Clone for Hand {
    fn clone(&self) -> Hand {
        Hand { shared: Arc::clone(&self.shared), is_ready: false }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        if self.is_ready {
            self.shared.free.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Service<Request<u32>> for Hand {
    type Response = Response<Frames>;
    type Error = &'static str;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        if *self.shared.fails_to_be_ready.lock().unwrap() {
            return Poll::Ready(Err("never ready"));
        }
        if !self.is_ready {
            let take = |free: usize| free.checked_sub(1);
            if self.shared.free.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_err() {
                return Poll::Pending;
            }
            self.is_ready = true;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<u32>) -> Answering {
        assert!(std::mem::take(&mut self.is_ready), "called without being ready");
        self.shared.free.fetch_add(1, Ordering::SeqCst);
        self.shared.came.lock().unwrap().push(*request.body());
        Answering { number: *request.body(), shared: Arc::clone(&self.shared) }
    }
}

struct Answering {
    number: u32,
    shared: Arc<Shared>,
}

impl Future for Answering {
    type Output = Result<Response<Frames>, &'static str>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        match self.shared.answers.lock().unwrap().remove(&self.number) {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        }
    }
}

/// A body whose frames the test supplies. It ends on command.
#[derive(Clone, Debug, Default)]
struct Frames {
    frames: Arc<Mutex<VecDeque<Result<Piece, &'static str>>>>,
    /// True if `is_end_stream` reports the end.
    says_end: bool,
}

#[derive(Debug)]
enum Piece {
    Data,
    Trailers(HeaderMap),
    End,
}

impl Frames {
    fn push(&self, piece: Result<Piece, &'static str>) {
        self.frames.lock().unwrap().push_back(piece);
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        match self.frames.lock().unwrap().pop_front() {
            None => Poll::Pending,
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            Some(Ok(Piece::Data)) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"data"))))),
            Some(Ok(Piece::Trailers(trailers))) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
            Some(Ok(Piece::End)) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.says_end && self.frames.lock().unwrap().is_empty()
    }
}

type Call = Pin<Box<ConcurrencyLimitFuture<Hand, u32>>>;
type Answer = Response<Answered<PermitBody<Frames>>>;

/// A service with the layer, and the number of the next call.
struct Bench {
    service: ConcurrencyLimit<Hand>,
    shared: Arc<Shared>,
    next: u32,
}

impl Bench {
    fn new(layer: &ConcurrencyLimitLayer) -> Bench {
        let hand = Hand::new();
        let shared = Arc::clone(&hand.shared);
        Bench { service: layer.layer(hand), shared, next: 0 }
    }

    fn call_with(&mut self, fields: &[(&str, &str)]) -> Call {
        let mut request = Request::post("/");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let ready = self.service.poll_ready(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(ready, Poll::Ready(Ok(()))));
        let request = request.body(self.next).unwrap();
        self.next += 1;
        Box::pin(self.service.call(request))
    }

    fn call(&mut self) -> Call {
        self.call_with(&[])
    }
}

fn poll(call: &mut Call) -> Poll<Result<Answer, &'static str>> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn answered(call: &mut Call) -> Answer {
    let Poll::Ready(Ok(answer)) = poll(call) else { panic!("not answered") };
    answer
}

#[test]
fn as_many_are_in_flight_as_there_are_places_and_one_more_is_refused() {
    let places = ConcurrencyLimiter::at_most(2);
    let mut bench = Bench::new(&ConcurrencyLimitLayer::new(places.clone()));
    let mut calls = [bench.call(), bench.call()];
    assert!(calls.iter_mut().all(|call| poll(call).is_pending()));
    let refused = answered(&mut bench.call());
    assert_eq!(refused.status(), 503);
    assert!(refused.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(refused.headers()["content-type"], "application/problem+json");
    assert!(refused.body().is_denial());
    assert_eq!(bench.shared.came(), [0, 1]);

    bench.shared.answer(0, 200);
    let answer = answered(&mut calls[0]);
    assert!(!answer.body().is_denial());
    assert_eq!(places.in_flight(), 1, "the place is free when the head is there");
    drop(calls);
    assert_eq!(places.in_flight(), 0, "and when a call goes away");
}

#[test]
fn a_call_by_grpc_is_refused_in_its_own_language() {
    let mut bench = Bench::new(&ConcurrencyLimitLayer::new(ConcurrencyLimiter::at_most(1)));
    let _first = bench.call();
    let refused = answered(&mut bench.call_with(&[("content-type", "application/grpc")]));
    assert_eq!(refused.status(), 200);
    assert_eq!(refused.headers()["grpc-status"], "14");
    assert!(refused.headers()["grpc-retry-pushback-ms"].to_str().unwrap().parse::<u64>().unwrap() > 0);
    let status = tonic::Status::from_header_map(refused.headers()).unwrap();
    assert_eq!(status.code(), tonic::Code::Unavailable);
}

#[test]
fn a_denied_call_may_have_another_response() {
    let layer = ConcurrencyLimitLayer::new(ConcurrencyLimiter::at_most(1)).otherwise(|refused| {
        assert_eq!(refused.reason(), crate::Reason::Capacity);
        let mut response = Response::new(Bytes::from_static(b"later"));
        *response.status_mut() = http::StatusCode::IM_A_TEAPOT;
        response
    });
    let mut bench = Bench::new(&layer);
    let _first = bench.call();
    assert_eq!(answered(&mut bench.call()).status(), 418);
}

#[test]
fn critical_calls_pass_while_bulk_is_refused() {
    let places = ConcurrencyLimiter::builder(10)
        .classes([Class::new("critical").share(50), Class::new("bulk")])
        .build();
    let [critical, bulk] = places.class_ids();
    let layer = ConcurrencyLimitLayer::new(places)
        .class(move |head| if head.header("x-critical").is_some() { critical } else { bulk });
    let mut bench = Bench::new(&layer);
    let mut bulk: Vec<_> = (0..20).map(|_| bench.call()).collect();
    let refused = bulk.iter_mut().filter_map(|call| match poll(call) {
        Poll::Ready(Ok(answer)) => Some(answer.status()),
        _ => None,
    });
    assert_eq!(refused.collect::<Vec<_>>(), [503; 15]);
    let mut critical: Vec<_> = (0..5).map(|_| bench.call_with(&[("x-critical", "1")])).collect();
    assert!(critical.iter_mut().all(|call| poll(call).is_pending()));
    assert_eq!(bench.shared.came().len(), 10);
    assert_eq!(answered(&mut bench.call_with(&[("x-critical", "1")])).status(), 503);
}

#[test]
fn clones_share_the_places() {
    let layer = ConcurrencyLimitLayer::new(ConcurrencyLimiter::at_most(1));
    let (mut first, mut second) = (Bench::new(&layer), Bench::new(&layer.clone()));
    let _call = first.call();
    assert_eq!(answered(&mut second.call()).status(), 503);
}

#[test]
fn an_error_of_the_service_is_handed_on_and_gives_the_place_back() {
    let places = ConcurrencyLimiter::at_most(1);
    let mut bench = Bench::new(&ConcurrencyLimitLayer::new(places.clone()));
    let mut call = bench.call();
    bench.shared.answer_with(0, Err("broken"));
    assert!(matches!(poll(&mut call), Poll::Ready(Err("broken"))));
    assert_eq!(places.in_flight(), 0);
}
