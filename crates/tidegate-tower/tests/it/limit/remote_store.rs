//! Rules on a remote store: its replies take a while, and it may fail.

mod together;

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use http::{Request, StatusCode};
use tidegate::{
    Adjusted, Adjustment, Ask, Cost, Decision, Decisions, FallbackStore, ManualClock, Map, OpenReceipt,
    PermitId, PreparedLimit, Store, StoreError, StoreFuture, Subject, Zone,
};
use tidegate_rules::{Gate, Policy};
use tidegate_tower::{RateLimitLayer, Settle, key};
use tokio::sync::watch;
use tower::Service;
use tower_layer::Layer as _;

use super::by_rules::lost;
use super::{Counting, Task, field, of};

/// A map that replies on command, which no real store does.
struct Slow {
    map: Map,
    answers: AtomicUsize,
    fails: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
    background: Mutex<Vec<Background>>,
}

type Background = Pin<Box<dyn Future<Output = ()> + Send>>;

impl std::fmt::Debug for Slow {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Slow").field("map", &self.map).finish_non_exhaustive()
    }
}

impl Slow {
    fn new() -> Arc<Slow> {
        Arc::new(Slow {
            map: Map::with_clock(Arc::new(ManualClock::new())),
            answers: AtomicUsize::new(0),
            fails: AtomicBool::new(false),
            waiting: Mutex::default(),
            background: Mutex::default(),
        })
    }

    /// Replies to so many requests.
    fn answer(&self, questions: usize) {
        self.answers.fetch_add(questions, Ordering::SeqCst);
        self.waiting.lock().unwrap().drain(..).for_each(Waker::wake);
    }

    /// Completes the background tasks, with one reply each. Returns their number.
    fn finish(&self) -> usize {
        let background: Vec<_> = self.background.lock().unwrap().drain(..).collect();
        self.answer(background.len());
        Task::new(background).run().len()
    }

    /// Returns the number of requests that wait for a reply.
    fn asked(&self) -> usize {
        self.waiting.lock().unwrap().len()
    }

    async fn later<T>(&self, answer: impl FnOnce(&Map) -> T) -> Result<T, StoreError> {
        std::future::poll_fn(|context| {
            let taken =
                self.answers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if taken.is_ok() {
                return Poll::Ready(());
            }
            self.waiting.lock().unwrap().push(context.waker().clone());
            Poll::Pending
        })
        .await;
        match self.fails.load(Ordering::SeqCst) {
            true => Err(StoreError::unavailable("the plug is out")),
            false => Ok(answer(&self.map)),
        }
    }
}

impl Store for Slow {
    fn take<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> StoreFuture<'a, Decisions> {
        StoreFuture::later(self.later(move |map| map.take_all(asks)))
    }

    fn peek<'a>(&'a self, subject: Subject<'a>, ask: Ask) -> StoreFuture<'a, Decision> {
        StoreFuture::later(self.later(move |map| map.peek(subject, ask)))
    }

    fn adjust<'a>(&'a self, subject: Subject<'a>, adjustment: Adjustment) -> StoreFuture<'a, Adjusted> {
        StoreFuture::later(self.later(move |map| map.adjust(subject, adjustment)))
    }

    fn refund<'a>(
        &'a self,
        subject: Subject<'a>,
        receipt: &'a mut OpenReceipt,
        cost: Cost,
    ) -> StoreFuture<'a, Adjusted> {
        StoreFuture::later(self.later(move |map| map.refund(subject, receipt, cost)))
    }

    fn release<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool> {
        StoreFuture::later(self.later(move |map| map.release(subject, permit)))
    }

    fn release_later(&self, subject: Subject<'_>, permit: PermitId) {
        self.map.release(subject, permit);
    }

    fn in_background(&self, task: Background) {
        self.background.lock().unwrap().push(task);
    }

    fn renew<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool> {
        StoreFuture::later(self.later(move |map| map.renew(subject, permit)))
    }

    fn reset<'a>(&'a self, subject: Subject<'a>) -> StoreFuture<'a, bool> {
        StoreFuture::later(async move { self.later(move |map| map.reset(subject)).await? })
    }

    fn reset_limit<'a>(&'a self, subject: Subject<'a>) -> StoreFuture<'a, bool> {
        StoreFuture::later(self.later(move |map| map.reset_limit(subject)))
    }
}

fn by(store: &Arc<Slow>, text: &str) -> RateLimitLayer {
    let policy = Policy::from_toml(text).unwrap_or_else(|error| panic!("{error}"));
    let gate = Gate::new(policy, FallbackStore::new(store.clone(), &Zone::new(1 << 16)))
        .expect("the store supports the policy");
    RateLimitLayer::rules(gate).attribute("user", key::header("x-user"))
}

const HOURLY: &str = "[[rule]]\nname = 'a'\nkey = ['user']\nlimit = '2/h'\n";

#[test]
fn the_store_is_waited_for_before_and_after_the_service() {
    let (store, counting) = (Slow::new(), Counting::default());
    let layer = by(&store, HOURLY).after(|_| Settle::Charge(1));
    let mut service = counting.behind(&layer);
    let mut task = Task::new([service.call(of("ana"))]);
    assert!(task.run().is_empty());
    assert_eq!(counting.asked(), 0);
    store.answer(1);
    assert!(task.run().is_empty(), "the charge is on its way");
    assert_eq!(counting.asked(), 1);
    store.answer(1);
    let over = task.run();
    assert_eq!(over[0].1.as_ref().unwrap().status(), StatusCode::OK);

    let mut next = Task::new([service.call(of("ana"))]);
    assert!(next.run().is_empty());
    store.answer(1);
    let over = next.run();
    let refused = over[0].1.as_ref().unwrap();
    assert_eq!(
        (refused.status(), field(refused, "retry-after")),
        (StatusCode::TOO_MANY_REQUESTS, Some("1800"))
    );
    assert_eq!(counting.asked(), 1);
}

#[test]
fn a_correction_that_is_under_way_goes_on_when_the_client_hangs_up() {
    let (store, counting) = (Slow::new(), Counting::default());
    let layer = by(&store, "[[rule]]\nname = 'a'\nlimit = '10/h'\n").after(|_| Settle::Charge(3));
    let mut service = counting.behind(&layer);
    let mut task = Task::new([service.call(of("ana"))]);
    assert!(task.run().is_empty());
    store.answer(1);
    assert!(task.run().is_empty(), "the charge is on its way");
    assert!(task.forget(0));
    assert_eq!(store.finish(), 1);
    let (key, limit) = (tidegate::Key::from_parts::<&str>([]), "10/h".parse().unwrap());
    assert_eq!(store.map.peek(Subject::new("a", &key, &limit), Ask::ONE).remaining(), 6);
}

#[test]
fn a_store_that_fails_is_gone_on_without_as_the_rule_says() {
    for (policy, status, has_fields) in [("open", 200, false), ("closed", 503, true), ("local", 200, true)] {
        let store = Slow::new();
        store.fails.store(true, Ordering::SeqCst);
        store.answer(100);
        let mut service =
            Counting::default().behind(&by(&store, &format!("{HOURLY}on_store_failure = '{policy}'\n")));
        let over = Task::new([service.call(of("ana"))]).run();
        let response = over[0].1.as_ref().unwrap();
        assert_eq!(
            (response.status().as_u16(), field(response, "ratelimit").is_some()),
            (status, has_fields),
            "{policy}"
        );
        assert_eq!(field(response, "retry-after"), (status == 503).then_some("1"));
    }
}

/// Sends a request of this cost while the store fails; returns the status and the time to the next try.
fn while_it_fails(policy: &str, cost: u64) -> (u16, Option<String>) {
    let store = Slow::new();
    store.fails.store(true, Ordering::SeqCst);
    store.answer(100);
    let text = format!("[[rule]]\nname = 'a'\nlimit = '4/h'\non_store_failure = '{policy}'\n");
    let rules = Policy::from_toml(&text).unwrap_or_else(|error| panic!("{error}"));
    let two = std::num::NonZeroU64::new(2).unwrap();
    let gate = Gate::new(rules, FallbackStore::new(store, &Zone::new(1 << 16)).nodes(two))
        .expect("the store supports the policy");
    let mut service = Counting::default().behind(&RateLimitLayer::rules(gate).cost(move |_| cost));
    let over = Task::new([service.call(of("ana"))]).run();
    let response = over[0].1.as_ref().unwrap();
    (response.status().as_u16(), field(response, "retry-after").map(ToOwned::to_owned))
}

#[test]
fn a_cost_above_this_node_s_share_is_denied_for_a_second_and_one_above_the_limit_for_good() {
    assert_eq!(while_it_fails("local", 2), (200, None));
    assert_eq!(while_it_fails("local", 3), (429, Some("1".to_owned())));
    assert_eq!(while_it_fails("local", 5), (429, None));
}

#[test]
fn a_rule_that_is_open_does_not_let_pass_what_can_never_pass() {
    assert_eq!(while_it_fails("open", 4), (200, None));
    assert_eq!(while_it_fails("open", 5), (429, None));
}

#[test]
fn a_place_in_flight_goes_back_with_the_response_and_one_that_was_dropped_at_once() {
    let store = Slow::new();
    let mut service = Counting::default()
        .behind(&by(&store, "[[rule]]\nname = 'few'\nkey = ['user']\nlimit = '1/60s concurrency'\n"));
    let call = |service: &mut tidegate_tower::RateLimit<Counting>, answers| {
        let mut task = Task::new([service.call(of("ana"))]);
        let mut over = task.run();
        for _ in 0..answers {
            store.answer(1);
            over.extend(task.run());
        }
        let status = over.first().map(|(_, answer)| answer.as_ref().unwrap().status().as_u16());
        status.ok_or(task)
    };
    assert_eq!(call(&mut service, 2).ok(), Some(200), "asked, and given back");
    assert_eq!(call(&mut service, 2).ok(), Some(200));
    // This one is dropped when it has its permit and its reply, but before anything was sent.
    let dropped = call(&mut service, 1).expect_err("it gives its place back just now");
    drop(dropped);
    assert_eq!(store.finish(), 1);
    assert_eq!(call(&mut service, 2).ok(), Some(200));
}

/// The missing permits are those of abandoned requests: no request that passes is needed to release them.
#[test]
fn clients_that_hang_up_together_leave_the_places_to_others() {
    let (store, (_release, released)) = (Slow::new(), watch::channel(false));
    let layer = by(&store, "[[rule]]\nname = 'two'\nlimit = '2/1h concurrency'\n");
    let mut service = layer.layer(lost(&released));
    let mut both = Task::new([service.call(of("ana")), service.call(of("bob"))]);
    assert!(both.run().is_empty());
    store.answer(2);
    assert!(both.run().is_empty(), "the service works on both");
    let status = || {
        let mut task = Task::new([Counting::default().behind(&layer).call(of("cy"))]);
        assert!(task.run().is_empty());
        store.answer(2);
        task.run()[0].1.as_ref().unwrap().status()
    };
    assert_eq!(status(), StatusCode::TOO_MANY_REQUESTS);
    store.answers.store(0, Ordering::SeqCst);
    drop(both);
    assert_eq!(status(), StatusCode::OK);
}

/// A candidate grants a permit beside a rule that denies; no request holds it.
#[test]
fn a_place_of_a_candidate_goes_back_at_a_denial() {
    let store = Slow::new();
    store.answer(1000);
    let layer = by(
        &store,
        "[[rule]]\nname = 'one'\nlimit = '1/h'\n\
         [[rule]]\nname = 'tried'\ncandidate_for = 'one'\nlimit = '3/1h concurrency'\n",
    );
    let mut service = Counting::default().behind(&layer);
    for _ in 0..20 {
        let _ = Task::new([service.call(of("ana"))]).run();
    }
    let (key, limit) = (tidegate::Key::from_parts::<&str>([]), "3/1h concurrency".parse().unwrap());
    // The permits of a rule are one set, whatever its numbers.
    let permits = PreparedLimit::permits_of("tried", limit);
    let left = store.map.peek(permits.subject(&key), Ask::ONE).remaining();
    assert_eq!(left, 3, "a place was lost");
}

#[test]
fn a_request_that_is_dropped_while_it_is_asked_about_never_reaches_the_service() {
    let (store, counting) = (Slow::new(), Counting::default());
    let mut service = counting.behind(&by(&store, HOURLY));
    let mut task = Task::new([service.call(of("ana")), service.call(Request::new(()))]);
    assert!(task.run().is_empty());
    assert!(task.forget(0));
    store.answer(1);
    assert_eq!(task.run().len(), 1);
    assert_eq!(counting.asked(), 1);
}
