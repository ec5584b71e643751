//! Requests that wait: in FIFO order, without a thread or a task each; a dropped request leaves the queue.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tidegate::{Clock, Enqueued, Limit, Limiter, MILLISECOND, ManualClock, SECOND, Timestamp};
use tidegate_tower::{RateLimitLayer, key};
use tower::Service;
use tower_layer::Layer as _;

use super::{Counting, Task, field, of, whole};

/// A service that records the order of requests.
#[derive(Clone, Default)]
struct Noting(Arc<Mutex<Vec<usize>>>);

impl Service<Request<usize>> for Noting {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<usize>) -> Self::Future {
        self.0.lock().unwrap().push(request.into_body());
        std::future::ready(Ok(Response::new(Full::default())))
    }
}

fn threads() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:")).unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn ten_thousand_wait_in_one_task_and_leave_in_order_also_when_a_tenth_goes_away() {
    const CALLS: usize = 10_000;
    // If tests share a process, other tests start threads meanwhile.
    const FEW: usize = 100;
    let clock = Arc::new(ManualClock::new());
    let limiter = Limiter::with_clock(Limit::per_second(1000).burst(1), clock.clone());
    let noting = Noting::default();
    let mut service =
        RateLimitLayer::with(limiter, key::header("x-user")).wait(20 * SECOND).layer(noting.clone());
    let before = threads();

    let request = |number| Request::builder().header("x-user", "ana").body(number).unwrap();
    let mut task = Task::new((0..CALLS).map(|number| service.call(request(number))));
    assert_eq!(task.run().len(), 1, "the first passes at once");
    assert!(threads() < before + FEW, "a thread for each who waits");

    // A tenth of the requests, at random places, is dropped.
    let (mut state, mut gone) = (7_usize, Vec::new());
    while gone.len() < CALLS / 10 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = 1 + (state >> 33) % (CALLS - 1);
        if task.forget(number) {
            gone.push(number);
        }
    }
    gone.sort_unstable();
    let expected: Vec<_> = (0..CALLS).filter(|number| gone.binary_search(number).is_err()).collect();
    for passed in 2..=expected.len() {
        clock.advance(MILLISECOND);
        for (_, response) in task.run() {
            assert_eq!(response.unwrap().status(), StatusCode::OK);
        }
        assert_eq!(noting.0.lock().unwrap().len(), passed);
    }
    assert_eq!(*noting.0.lock().unwrap(), expected);
    assert!(threads() < before + FEW, "a thread for each who left");
}

/// A clock that counts its readings: a limiter reads it for each decision.
#[derive(Debug, Default)]
struct CountingClock {
    clock: ManualClock,
    readings: AtomicUsize,
}

impl CountingClock {
    /// Returns a limiter whose only unit is spent, and its clock.
    fn behind_spent_limiter() -> (Limiter, Arc<CountingClock>) {
        let clock = Arc::new(CountingClock::default());
        let limiter = Limiter::with_clock(Limit::per_second(1).burst(1), clock.clone());
        // A new key is looked up twice, with one reading each.
        assert!(limiter.admit("ana").is_allowed());
        clock.readings.store(0, Ordering::SeqCst);
        assert!(!limiter.admit("ana").is_allowed());
        assert_eq!(clock.readings.swap(0, Ordering::SeqCst), 1, "one decision is one reading");
        (limiter, clock)
    }
}

impl Clock for CountingClock {
    fn now(&self) -> Timestamp {
        self.readings.fetch_add(1, Ordering::SeqCst);
        self.clock.now()
    }

    fn wake_at(&self, at: Timestamp, waker: Waker) -> io::Result<bool> {
        self.clock.wake_at(at, waker)
    }
}

#[test]
fn a_request_that_waits_is_decided_by_joining_the_queue_and_not_once_more() {
    let (limiter, clock) = CountingClock::behind_spent_limiter();
    let queued = limiter.acquire("ana").max_wait(9 * SECOND).enqueue();
    assert!(matches!(queued, Enqueued::Waiting(_)));
    let joining = clock.readings.load(Ordering::SeqCst);

    let (limiter, clock) = CountingClock::behind_spent_limiter();
    let layer = RateLimitLayer::with(limiter, key::header("x-user")).wait(9 * SECOND);
    let mut task = Task::new([Counting::default().behind(&layer).call(of("ana"))]);
    assert_eq!(task.run().len(), 0, "it waits");
    assert_eq!(clock.readings.load(Ordering::SeqCst), joining);
}

#[test]
fn a_request_that_would_wait_too_long_is_denied_at_once_with_the_length_of_the_wait() {
    let clock = Arc::new(ManualClock::new());
    let limiter = Limiter::with_clock(Limit::per_second(1).burst(1), clock.clone());
    let counting = Counting::default();
    let mut service = counting.behind(&RateLimitLayer::with(limiter, key::header("x-user")).wait(2 * SECOND));
    let mut task = Task::new((0..5).map(|_| service.call(of("ana"))));
    let over = task.run();
    let statuses: Vec<_> =
        over.iter().map(|(number, answer)| (*number, answer.as_ref().unwrap().status())).collect();
    let (passed, refused) = (StatusCode::OK, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(statuses, [(0, passed), (3, refused), (4, refused)]);
    for (number, answer) in over.into_iter().skip(1) {
        let response = whole(answer.unwrap());
        assert_eq!(field(&response, "retry-after"), Some("3"), "{number}");
        assert_eq!(field(&response, "ratelimit"), Some("\"default\";r=0;t=3"));
    }
    clock.advance(SECOND);
    assert_eq!(task.run().len(), 1);
    clock.advance(SECOND);
    assert_eq!(task.run().len(), 1);
    assert_eq!(counting.asked(), 3);
}

#[test]
fn each_waits_in_its_own_line_and_everyone_in_one() {
    let clock = Arc::new(ManualClock::new());
    let limiter = Limiter::with_clock(Limit::per_second(1).burst(1), clock.clone());
    let counting = Counting::default();
    let mut service = counting.behind(&RateLimitLayer::with(limiter, key::header("x-user")).wait(9 * SECOND));
    let mut task = Task::new(["ana", "bob", "ana", "bob", "ana"].map(|user| service.call(of(user))));
    assert_eq!(task.run().len(), 2);
    clock.advance(SECOND);
    let numbers = |over: Vec<(usize, _)>| over.into_iter().map(|(number, _)| number).collect::<Vec<_>>();
    let mut next = numbers(task.run());
    next.sort_unstable();
    assert_eq!(next, [2, 3]);
    clock.advance(SECOND);
    assert_eq!(numbers(task.run()), [4]);
}

#[test]
fn a_caller_s_timeout_shortens_the_wait_and_nonsense_does_not() {
    let clock = Arc::new(ManualClock::new());
    let limiter = Limiter::with_clock(Limit::per_second(1).burst(1), clock);
    let counting = Counting::default();
    let mut service = counting.behind(&RateLimitLayer::with(limiter, key::everyone()).wait(9 * SECOND));
    let mut call = |timeout: &str| {
        let request = Request::builder().header("grpc-timeout", timeout).body(()).unwrap();
        let mut task = Task::new([service.call(request)]);
        task.run().len()
    };
    assert_eq!(call("1S"), 1, "this one passes");
    assert_eq!(call("999m"), 1, "refused");
    assert_eq!(call("0n"), 1, "refused");
    for waits in ["1S", "1000m", "1H", "99999999S", "soon", "1s", "", "123456789S"] {
        assert_eq!(call(waits), 0, "{waits}");
    }
    assert_eq!(counting.asked(), 1);
}

#[test]
fn a_heavy_request_is_not_overtaken_by_light_ones() {
    let clock = Arc::new(ManualClock::new());
    let limiter = Limiter::with_clock(Limit::per_second(1).burst(5), clock.clone());
    let counting = Counting::default();
    let layer =
        RateLimitLayer::with(limiter, key::everyone()).wait(60 * SECOND).cost(|head| match head.path() {
            "/heavy" => 5,
            _ => 1,
        });
    let mut service = counting.behind(&layer);
    let paths = ["/light", "/heavy", "/light"];
    let mut task = Task::new(paths.map(|path| service.call(Request::builder().uri(path).body(()).unwrap())));
    let bodies = |over: Vec<(usize, Result<_, Infallible>)>| {
        over.into_iter().map(|(_, answer)| whole(answer.unwrap()).into_body()).collect::<Vec<_>>()
    };
    assert_eq!(bodies(task.run()), ["/light"]);
    clock.advance(SECOND - Duration::from_nanos(1));
    assert!(bodies(task.run()).is_empty());
    clock.advance(Duration::from_nanos(1));
    assert_eq!(bodies(task.run()), ["/heavy"]);
    clock.advance(SECOND);
    assert_eq!(bodies(task.run()), ["/light"]);
}

#[test]
fn a_log_that_counts_refusals_counts_none_for_one_who_waits() {
    let clock = Arc::new(ManualClock::new());
    let limit: Limit = "1/1s sliding-log count-denied".parse().unwrap();
    let limiter = Limiter::with_clock(limit, clock.clone());
    let counting = Counting::default();
    let mut service = counting.behind(&RateLimitLayer::with(limiter, key::everyone()).wait(10 * SECOND));
    let mut task = Task::new((0..2).map(|_| service.call(of("ana"))));
    assert_eq!(task.run().len(), 1);
    clock.advance(SECOND);
    assert_eq!(task.run().len(), 1, "a second after the first, and not after a refusal");
}

#[test]
fn a_single_subject_waits_by_the_process_s_own_clock() {
    // No clock is set here: the timer of the process wakes the task.
    let counting = Counting::default();
    let layer = RateLimitLayer::new(Limit::per_second(200).burst(1), key::everyone()).wait(10 * SECOND);
    let mut service = counting.behind(&layer);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for _ in 0..4 {
            assert_eq!(service.call(of("ana")).await.unwrap().status(), StatusCode::OK);
        }
    });
    assert_eq!(counting.asked(), 4);
}
