//! A thousand waiters on ten keys with random cancellations, on three kinds of executors.
//!
//! The expected result is computed first with the pure functions: the waiters that pass, their times and their
//! order. Then the script is run: each waiter is a task, and the clock is moved from one event to the next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use conformance::random::Random;
use tidegate::{Acquire, Ask, Clock, Cost, Limit, Limiter, ManualClock, State, Timestamp, Verdict, ask};

const WAITERS: usize = 1000;
const KEYS: usize = 10;
const LIMITS: [&str; 6] = [
    "100/s burst 3",
    "100/s queue 5000 leaky-bucket",
    "100/s pacer burst 0s",
    "20/s sliding-log count-denied",
    "50/s sliding-window",
    "20/s fixed-window",
];

/// The operations of the script, in order, at one time.
#[derive(Clone, Copy, Debug)]
enum Act {
    Arrive { waiter: usize, key: usize, units: u64 },
    Cancel { waiter: usize },
}

type Script = BTreeMap<Timestamp, Vec<Act>>;

/// A waiter that has passed, with the time and its wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Passed {
    waiter: usize,
    key: usize,
    at: Timestamp,
    waited: Duration,
}

fn script(random: &mut Random) -> Script {
    let mut script = Script::new();
    let start = 1000 * 16_000_000_000;
    for waiter in 0..WAITERS {
        let arrives = start + random.between(0, 500) * 16_000_000;
        let key = random.between(0, KEYS as u64 - 1) as usize;
        let units = if random.percent(80) { 1 } else { random.between(2, 3) };
        let at = Timestamp::from_ticks(arrives);
        script.entry(at).or_default().push(Act::Arrive { waiter, key, units });
        if random.percent(30) {
            let leaves = Timestamp::from_ticks(arrives + random.between(0, 800) * 16_000_000);
            script.entry(leaves).or_default().push(Act::Cancel { waiter });
        }
    }
    script
}

/// The state of a key, and its waiters: number, cost, start of the wait.
type ModelLine = (State, VecDeque<(usize, u64, Timestamp)>);

/// The expected queues, computed by the pure functions alone.
struct Model {
    limit: Limit,
    lines: Vec<ModelLine>,
    passed: Vec<Passed>,
}

impl Model {
    fn admit_due(&mut self, key: usize, now: Timestamp) -> Option<Timestamp> {
        let (state, line) = &mut self.lines[key];
        while let Some((waiter, units, since)) = line.front().copied() {
            let ask = Ask::new(Cost::of(units));
            if let Verdict::Denied { retry_after } = self.limit.peek(state, now, ask).verdict_in_ticks() {
                return Some(now.saturating_add(retry_after));
            }
            assert!(self.limit.decide(state, now, ask).is_allowed());
            line.pop_front();
            let waited = now.since(since).to_duration();
            self.passed.push(Passed { waiter, key, at: now, waited });
        }
        None
    }

    /// Runs a script.
    fn run(limit: Limit, script: &Script) -> Outcome {
        let lines = (0..KEYS).map(|_| (State::default(), VecDeque::new())).collect();
        let mut model = Model { limit, lines, passed: Vec::new() };
        let mut due: Vec<Option<Timestamp>> = vec![None; KEYS];
        let (mut times, mut left) = (Vec::new(), BTreeSet::new());
        let mut rest = script.clone();
        while let Some(now) = due.iter().flatten().chain(rest.keys().next()).min().copied() {
            times.push(now);
            for (key, due) in due.iter_mut().enumerate() {
                if due.is_some_and(|due| due <= now) {
                    *due = model.admit_due(key, now);
                }
            }
            for act in rest.remove(&now).unwrap_or_default() {
                let key = match act {
                    Act::Arrive { waiter, key, units } => {
                        model.lines[key].1.push_back((waiter, units, now));
                        Some(key)
                    }
                    Act::Cancel { waiter } => model.leave(waiter).inspect(|_| {
                        left.insert(waiter);
                    }),
                };
                if let Some(key) = key {
                    due[key] = model.admit_due(key, now);
                }
            }
        }
        model.passed.sort_by_key(|passed| (passed.at, passed.waiter));
        Outcome { times, passed: model.passed, left }
    }

    /// Removes a waiter from its queue. Returns the index of that queue, if the waiter was still queued.
    fn leave(&mut self, waiter: usize) -> Option<usize> {
        let stands_in = |(_, line): &ModelLine| line.iter().any(|(other, ..)| *other == waiter);
        let key = self.lines.iter().position(stands_in)?;
        self.lines[key].1.retain(|(other, ..)| *other != waiter);
        Some(key)
    }
}

/// The expected result: the times of all events, the waiters that pass, and those that leave before.
struct Outcome {
    times: Vec<Timestamp>,
    passed: Vec<Passed>,
    left: BTreeSet<usize>,
}

/// The results that waiters have reported, and a condition variable to wait for them.
#[derive(Default)]
struct Book {
    reports: Mutex<Reports>,
    changed: Condvar,
}

#[derive(Default)]
struct Reports {
    passed: Vec<Passed>,
    left: usize,
}

impl Book {
    fn report(&self, change: impl FnOnce(&mut Reports)) {
        change(&mut self.reports.lock().expect("no holder panics"));
        self.changed.notify_all();
    }

    /// Waits until this many have passed and this many have left.
    fn wait_for(&self, passed: usize, left: usize) {
        let reports = self.reports.lock().expect("no holder panics");
        let too_few = |reports: &mut Reports| reports.passed.len() < passed || reports.left < left;
        let (reports, timeout) = self
            .changed
            .wait_timeout_while(reports, Duration::from_secs(60), too_few)
            .expect("no holder panics");
        assert!(
            !timeout.timed_out(),
            "{} of {passed} passed, {} of {left} left",
            reports.passed.len(),
            reports.left
        );
    }
}

/// A waiter that waits until it passes or is signalled to leave, whichever comes first.
struct Task {
    waiter: usize,
    key: usize,
    acquire: Option<Acquire>,
    leave: Arc<Mutex<Leave>>,
    clock: Arc<ManualClock>,
    book: Arc<Book>,
}

#[derive(Default)]
struct Leave {
    requested: bool,
    waker: Option<Waker>,
}

impl Leave {
    fn request(leave: &Mutex<Leave>) {
        let mut leave = leave.lock().expect("no holder panics");
        leave.requested = true;
        if let Some(waker) = leave.waker.take() {
            waker.wake();
        }
    }
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        {
            let mut leave = self.leave.lock().expect("no holder panics");
            leave.waker = Some(context.waker().clone());
            if leave.requested {
                drop(leave);
                self.acquire = None;
                self.book.report(|reports| reports.left += 1);
                return Poll::Ready(());
            }
        }
        let Some(acquire) = &mut self.acquire else { return Poll::Ready(()) };
        let Poll::Ready(result) = Pin::new(acquire).poll(context) else { return Poll::Pending };
        let waited = result.expect("no waiter is denied").duration;
        let passed = Passed { waiter: self.waiter, key: self.key, at: self.clock.now(), waited };
        self.book.report(|reports| reports.passed.push(passed));
        Poll::Ready(())
    }
}

/// Runs the script with real waiters and compares.
fn play(spawn: impl Fn(Task)) {
    let seed = Random::seed_from_environment();
    for text in LIMITS {
        let limit: Limit = text.parse().expect("a limit");
        let script = script(&mut Random::new(seed));
        let expected = Model::run(limit, &script);
        let passed = perform(limit, &script, &expected, &spawn);
        let left = expected.left.len();
        println!("{text}: {} passed, {left} left, all as foreseen (seed {seed})", passed.len());
        assert_eq!(passed, expected.passed, "{text}, seed {seed}");
        assert_eq!(passed.len() + left, WAITERS);
        assert!(left > WAITERS / 20, "only {left} left while they waited");
    }
}

fn perform(limit: Limit, script: &Script, expected: &Outcome, spawn: &impl Fn(Task)) -> Vec<Passed> {
    let clock = super::clock();
    let limiter = Limiter::with_clock(limit, clock.clone());
    let book = Arc::new(Book::default());
    let mut leaves = BTreeMap::new();
    let mut left = 0;
    for now in &expected.times {
        clock.set(*now);
        for act in script.get(now).into_iter().flatten() {
            match *act {
                Act::Arrive { waiter, key, units } => {
                    let leave = Arc::new(Mutex::new(Leave::default()));
                    leaves.insert(waiter, leave.clone());
                    let acquire = Some(limiter.acquire(ask(key).cost(units)));
                    let (clock, book) = (clock.clone(), book.clone());
                    let mut task = Task { waiter, key, acquire, leave, clock, book };
                    // The waiter joins its queue here, so that the order of arrival is that of the script.
                    if super::poll(&mut task).is_pending() {
                        spawn(task);
                    }
                }
                Act::Cancel { waiter } if expected.left.contains(&waiter) => {
                    left += 1;
                    Leave::request(&leaves[&waiter]);
                    book.wait_for(0, left);
                }
                Act::Cancel { .. } => {}
            }
        }
        book.wait_for(expected.passed.iter().filter(|passed| passed.at <= *now).count(), left);
    }
    let mut passed = std::mem::take(&mut book.reports.lock().expect("no holder panics").passed);
    passed.sort_by_key(|passed| (passed.at, passed.waiter));
    passed
}

#[test]
fn a_thousand_waiters_pass_in_order_on_tokio() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    play(|task| drop(runtime.spawn(task)));
}

#[test]
fn a_thousand_waiters_pass_in_order_on_smol() {
    let executor: &'static smol::Executor<'static> = Box::leak(Box::new(smol::Executor::new()));
    for _ in 0..4 {
        std::thread::spawn(|| smol::block_on(executor.run(std::future::pending::<()>())));
    }
    play(|task| executor.spawn(task).detach());
}

#[test]
fn a_thousand_waiters_pass_in_order_on_threads() {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    play(|mut task| {
        std::thread::spawn(move || {
            let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
            while Pin::new(&mut task).poll(&mut Context::from_waker(&waker)).is_pending() {
                std::thread::park();
            }
        });
    });
}
