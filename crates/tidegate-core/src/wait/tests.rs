//! Tests of the queue alone, over a target that holds one state per key and nothing else.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::*;
use crate::limit::{AlgorithmParams, Limit};
use crate::store::receipts::Receipts;
use crate::store::state_key::Namespace;
use crate::sync::Mutex;
use crate::time::{Clock, ManualClock};
use crate::{MILLISECOND, SECOND};

/// A target with states by key, decided by the pure functions.
struct Booth {
    queue: WaitQueue<KeyFifo>,
    clock: Source,
    limit: Mutex<Limit>,
    states: Mutex<HashMap<Vec<u8>, State>>,
    receipts: Receipts,
}

impl Booth {
    fn new(limit: &str, clock: Arc<dyn Clock>) -> Arc<Booth> {
        Arc::new(Booth {
            queue: WaitQueue::new(KeyFifo, MAX_WAITERS),
            clock: Source::Given(clock),
            limit: Mutex::new(limit.parse().expect("a limit")),
            states: Mutex::new(HashMap::new()),
            receipts: Receipts::of_one(),
        })
    }

    fn with<R>(&self, account: &StateKey, work: impl FnOnce(&AlgorithmParams, &mut State) -> R) -> R {
        let mut states = self.states.lock();
        work(account.terms(), states.entry(account.name().bytes().to_vec()).or_default())
    }

    fn acquire(self: &Arc<Booth>, key: &str, units: u64) -> Acquire {
        let ask = Ask::new(Cost::of(units));
        Acquire::new(KeyRequest::new(self.clone(), name(key), Some(ask), Untracked), None)
    }
}

fn name(key: &str) -> EncodedKey {
    EncodedKey::new(&Namespace::none(), key)
}

impl WaitTarget for Booth {
    fn queue(&self) -> &WaitQueue<KeyFifo> {
        &self.queue
    }

    fn clock(&self) -> &Source {
        &self.clock
    }

    fn account(&self, name: &EncodedKey) -> StateKey {
        name.clone().under_any(*self.limit.lock().terms())
    }

    fn take_if_free(&self, account: &StateKey, ask: Ask) -> Decision {
        self.with(account, |terms, state| terms.decide_if_free(state, self.clock.now(), ask, 0))
    }

    fn take_for_waiter(
        &self,
        account: &StateKey,
        WaiterAsk { ask, .. }: WaiterAsk,
        at: Option<Timestamp>,
    ) -> (Decision, Option<OpenReceipt>) {
        let now = at.unwrap_or_else(|| self.clock.now());
        let take = || {
            self.with(account, |terms, state| {
                let decision = terms.decide_if_free(state, now, ask, 0);
                (decision, terms.receipt(state, now, ask, &decision))
            })
        };
        self.receipts.noting(account, || self.clock.now(), take)
    }

    fn refund(&self, account: &StateKey, receipt: &mut OpenReceipt, cost: Option<Cost>) -> Adjusted {
        let give_back =
            |receipt| self.with(account, |terms, state| terms.give_back(state, self.clock.now(), receipt));
        receipt.settle(account.terms(), cost, || self.clock.now(), give_back, |_, _| None)
    }

    fn look(&self, account: &StateKey, ask: Ask) -> Decision {
        self.with(account, |terms, state| terms.peek(state, self.clock.now(), ask))
    }

    fn state(&self, account: &StateKey) -> State {
        self.with(account, |_, state| state.clone())
    }
}

#[derive(Default)]
struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll(acquire: &mut Acquire) -> Poll<Result<Waited, crate::Denied>> {
    Pin::new(acquire).poll(&mut Context::from_waker(Waker::noop()))
}

fn waits(mut acquire: Acquire) -> Acquire {
    assert!(poll(&mut acquire).is_pending());
    acquire
}

fn passes(acquire: &mut Acquire) -> Duration {
    match poll(acquire) {
        Poll::Ready(result) => result.expect("it is not refused").duration,
        Poll::Pending => panic!("it is still waiting"),
    }
}

fn clock() -> Arc<ManualClock> {
    let clock = ManualClock::new();
    clock.advance(1000 * SECOND);
    Arc::new(clock)
}

#[test]
fn each_line_goes_on_by_itself_in_the_order_of_arrival() {
    let clock = clock();
    let booth = Booth::new("10/s burst 1", clock.clone());
    let mut acquired: Vec<_> = ["a", "b", "a", "b", "a"].map(|key| booth.acquire(key, 1)).into();
    assert_eq!((passes(&mut acquired[0]), passes(&mut acquired[1])), (Duration::ZERO, Duration::ZERO));
    let mut waiting: Vec<_> = acquired.drain(2..).map(waits).collect();
    assert!(!booth.queue.is_empty());
    clock.advance(100 * MILLISECOND);
    assert_eq!((passes(&mut waiting[1]), passes(&mut waiting[0])), (100 * MILLISECOND, 100 * MILLISECOND));
    assert!(poll(&mut waiting[2]).is_pending());
    clock.advance(100 * MILLISECOND);
    assert_eq!(passes(&mut waiting[2]), 200 * MILLISECOND);
    assert!(booth.queue.is_empty());
}

#[test]
fn only_whose_turn_it_is_gets_woken_and_by_its_last_waker() {
    let clock = clock();
    let booth = Booth::new("10/s burst 1", clock.clone());
    assert_eq!(passes(&mut booth.acquire("a", 1)), Duration::ZERO);
    let wakers: Vec<_> = (0..4).map(|_| Arc::new(Counting::default())).collect();
    let poll_with = |acquire: &mut Acquire, nth: usize| {
        let waker = Waker::from(wakers[nth].clone());
        Pin::new(acquire).poll(&mut Context::from_waker(&waker)).is_pending()
    };
    let (mut first, mut second) = (booth.acquire("a", 1), booth.acquire("a", 1));
    assert!(poll_with(&mut first, 0) && poll_with(&mut second, 1));
    assert!(poll_with(&mut first, 2) && poll_with(&mut second, 3));
    clock.advance(99 * MILLISECOND);
    let woken = || wakers.iter().map(|waker| waker.0.load(Ordering::SeqCst)).collect::<Vec<_>>();
    assert_eq!(woken(), [0, 0, 0, 0]);
    clock.advance(MILLISECOND);
    assert_eq!(woken(), [0, 0, 1, 0]);
    clock.advance(SECOND);
    assert_eq!(woken(), [0, 0, 1, 1]);
}

#[test]
fn a_waker_that_panics_does_not_stop_the_next_one() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker of the test");
        }
    }
    let clock = clock();
    let booth = Booth::new("10/s burst 2", clock.clone());
    assert_eq!(passes(&mut booth.acquire("a", 2)), Duration::ZERO);
    let (mut first, mut second) = (booth.acquire("a", 1), booth.acquire("a", 1));
    let counting = Arc::new(Counting::default());
    let (panics, counts) = (Waker::from(Arc::new(Panics)), Waker::from(counting.clone()));
    assert!(Pin::new(&mut first).poll(&mut Context::from_waker(&panics)).is_pending());
    assert!(Pin::new(&mut second).poll(&mut Context::from_waker(&counts)).is_pending());
    clock.advance(SECOND);
    assert_eq!(counting.0.load(Ordering::SeqCst), 1);
    assert_eq!((passes(&mut first), passes(&mut second)), (SECOND, SECOND));
}

#[test]
fn a_waiter_that_leaves_at_any_moment_frees_its_place() {
    let clock = clock();
    let booth = Booth::new("10/s burst 1", clock.clone());
    drop(booth.acquire("a", 1));
    assert_eq!(passes(&mut booth.acquire("a", 1)), Duration::ZERO, "it had not even asked");
    let [head, middle, mut last] = [(); 3].map(|()| waits(booth.acquire("a", 1)));
    drop(middle);
    drop(head);
    clock.advance(100 * MILLISECOND);
    assert_eq!(passes(&mut last), 100 * MILLISECOND);
    let [granted, mut next] = [(); 2].map(|()| waits(booth.acquire("a", 1)));
    clock.advance(100 * MILLISECOND);
    drop(granted);
    assert_eq!(passes(&mut next), 100 * MILLISECOND, "what was taken for the other is its own now");
    drop(waits(booth.acquire("a", 1)));
    assert!(booth.queue.is_empty());
}

#[test]
fn a_deadline_ends_a_wait_with_an_unknown_end() {
    let clock = clock();
    let booth = Booth::new("1/m concurrency", clock.clone());
    let mut holder = booth.acquire("a", 1);
    assert_eq!(passes(&mut holder), Duration::ZERO);
    let mut hasty = waits(booth.acquire("a", 1).max_wait(SECOND));
    let mut patient = waits(booth.acquire("a", 1).max_wait(2 * SECOND));
    clock.advance(SECOND - Duration::from_nanos(1));
    assert!(poll(&mut hasty).is_pending());
    clock.advance(Duration::from_nanos(1));
    assert!(matches!(poll(&mut hasty), Poll::Ready(Err(refusal)) if refusal.is_timed_out()));
    assert!(poll(&mut patient).is_pending());
    clock.advance(SECOND);
    assert!(matches!(poll(&mut patient), Poll::Ready(Err(refusal)) if refusal.is_timed_out()));
    assert!(booth.queue.is_empty());
}

#[test]
fn threads_that_block_pass_one_by_one() {
    let clock = clock();
    let booth = Booth::new("10/s burst 1", clock.clone());
    let passed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                booth.acquire("a", 1).blocking().expect("no caller is denied");
                passed.fetch_add(1, Ordering::SeqCst);
            });
        }
        while passed.load(Ordering::SeqCst) < 4 {
            clock.advance(10 * MILLISECOND);
            std::thread::yield_now();
        }
    });
    assert!(booth.queue.is_empty());
}

#[test]
fn a_clock_without_alarms_refuses_to_make_anybody_wait() {
    #[derive(Debug)]
    struct NoAlarms(ManualClock);
    impl Clock for NoAlarms {
        fn now(&self) -> Timestamp {
            self.0.now()
        }

        fn wake_at(&self, _: Timestamp, _: Waker) -> std::io::Result<bool> {
            Err(std::io::Error::from(std::io::ErrorKind::WouldBlock))
        }
    }
    let booth = Booth::new("10/s burst 1", Arc::new(NoAlarms(ManualClock::new())));
    assert_eq!(passes(&mut booth.acquire("a", 1)), Duration::ZERO);
    let Poll::Ready(Err(refusal)) = poll(&mut booth.acquire("a", 1)) else {
        panic!("no alarm would wake it")
    };
    assert!(refusal.to_string().contains("threads"), "{refusal}");
    assert!(booth.queue.is_empty());
}

#[test]
fn at_the_end_of_time_no_waiter_waits_for_ever() {
    let clock = Arc::new(ManualClock::new());
    clock.set(Timestamp::from_ticks(u64::MAX - 10));
    for limit in ["10/s burst 1", "10/s pacer", "3/s sliding-log", "1/s concurrency", "2/s fixed-window"] {
        let booth = Booth::new(limit, clock.clone());
        let mut waiting: Vec<_> = (0..20).map(|_| booth.acquire("a", 1)).collect();
        waiting.retain_mut(|acquire| poll(acquire).is_pending());
        clock.set(Timestamp::LAST);
        waiting.retain_mut(|acquire| poll(acquire).is_pending());
        assert_eq!(waiting.len(), 0, "a waiter waits for ever under {limit}");
        clock.set(Timestamp::from_ticks(u64::MAX - 10));
    }
}

#[test]
fn ten_thousand_waiters_leave_first_in_first_out() {
    let clock = clock();
    let booth = Booth::new("1000/s burst 1", clock.clone());
    assert_eq!(passes(&mut booth.acquire("a", 1)), Duration::ZERO);
    let mut waiting: Vec<_> = (0..10_000).map(|_| waits(booth.acquire("a", 1))).collect();
    let positions = |waiting: &[Acquire]| [0, 255, 256, 9_999].map(|nth: usize| waiting[nth].position());
    assert_eq!(positions(&waiting), [Some(0), Some(255), Some(256), Some(9_999)]);
    for nth in 0..10_000 {
        clock.advance(MILLISECOND);
        assert_eq!(passes(&mut waiting[nth]), (nth as u32 + 1) * MILLISECOND, "waiter {nth}");
        if let Some(next) = waiting.get(nth + 1) {
            assert_eq!(next.position(), Some(0), "no other passes with waiter {nth}");
        }
    }
    assert!(booth.queue.is_empty());
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
    let clock = clock();
    let booth = Booth::new("1000/s burst 1", clock.clone());
    assert_eq!(passes(&mut booth.acquire("a", 1)), Duration::ZERO);
    let mut waiting: Vec<_> = (0..2000).map(|_| waits(booth.acquire("a", 1))).collect();
    let (mut cancelled, mut passed) = (0, 0);
    // In one of three cases the head leaves, sometimes after its turn has come.
    while cancelled < 1000 {
        let nth = if random(3) == 0 { 0 } else { random(waiting.len()) };
        if random(4) == 0 {
            clock.advance(MILLISECOND);
        }
        drop(waiting.remove(nth));
        cancelled += 1;
        while waiting.first().is_some_and(|head| head.position().is_none()) {
            let _ = passes(&mut waiting.remove(0));
            passed += 1;
        }
        assert_eq!(waiting.first().and_then(Acquire::position), Some(0));
    }
    assert!(passed > 100, "{passed} passed between the cancellations");
    assert!(waiting.iter().enumerate().all(|(nth, waiter)| waiter.position() == Some(nth)));
    for mut waiter in waiting {
        clock.advance(MILLISECOND);
        assert!(poll(&mut waiter).is_ready(), "the time of a waiter that left is not lost");
    }
    assert!(booth.queue.is_empty());
}
