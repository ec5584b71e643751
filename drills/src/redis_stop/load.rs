//! Requests that are due at even times, and a gate that answers them.
//!
//! One thread looks at the clock and lets requests go, another one runs them: neither waits for an answer before the
//! next request.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;

use harness::{Stopwatch, pause};
use testbed::{By, Decided};
use tidegate::{FallbackStore, WithoutStore, Zone};
use tidegate_redis::{Options, RedisStore};
use tidegate_rules::{Attributes, Gate, Policy};
use tokio::sync::oneshot;

use super::sampler::{Sampler, Samples};
use crate::someone::wait;

/// Between two requests: two thousand per second.
const EVERY: Duration = Duration::from_micros(500);
/// How many nodes share the limits; this is one of them.
pub(super) const NODES: u64 = 4;
/// The rules, and what they are asked about.
pub(super) const CLOSED: &str = "closed";
pub(super) const OPEN: &str = "open";
pub(super) const LOCAL: &str = "local";
/// Burst, and amount per second, of the rule that goes on by itself; the others never refuse.
pub(super) const LOCAL_LIMIT: (u64, u64) = (100, 200);

const POLICY: &str = r#"
[[rule]]
name = "closed"
when = { path = "/closed" }
limit = "100000/s burst 100000"
on_store_failure = "closed"

[[rule]]
name = "open"
when = { path = "/open" }
limit = "100000/s burst 100000"
on_store_failure = "open"

[[rule]]
name = "local"
when = { path = "/local" }
limit = "200/s burst 100"
on_store_failure = "local"
"#;

/// A gate under load.
pub(super) struct Load {
    shared: Arc<Shared>,
    pacing: JoinHandle<()>,
    running: JoinHandle<()>,
    sampler: Sampler,
    _end: oneshot::Sender<()>,
}

struct Shared {
    watch: Stopwatch,
    gate: Gate,
    calls: Mutex<Vec<Call>>,
    errors: AtomicU64,
    under_way: AtomicU64,
    is_over: AtomicBool,
}

impl Load {
    /// Begins to ask a gate whose store is there.
    pub(super) fn start(url: &str) -> Result<Load, String> {
        let options = Options::new(url.parse().map_err(|error| format!("{url}: {error}"))?);
        let store = RedisStore::open(options).map_err(|error| error.to_string())?;
        let nodes = NonZeroU64::new(NODES).ok_or("there is no node")?;
        let with_fallback = FallbackStore::new(Arc::new(store.clone()), &Zone::new(16 << 20)).nodes(nodes);
        let policy = Policy::from_toml(POLICY).map_err(|error| error.to_string())?;
        let shared = Arc::new(Shared {
            watch: Stopwatch::start(),
            gate: Gate::new(policy, with_fallback).expect("the store supports the policy"),
            // So that it is not the log that grows.
            calls: Mutex::new(Vec::with_capacity(1 << 18)),
            errors: AtomicU64::new(0),
            under_way: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let (end, ended) = oneshot::channel::<()>();
        let (given, taken) = std::sync::mpsc::channel();
        let running = thread::spawn(move || {
            wait(async move {
                let _ = given.send(tokio::runtime::Handle::current());
                let _ = ended.await;
            });
        });
        let handle = taken.recv().map_err(|_| "the thread that runs requests has ended".to_owned())?;
        let pacer = Arc::clone(&shared);
        let pacing = thread::spawn(move || pace(&pacer, &handle));
        let sampler = Sampler::start(store)?;
        Ok(Load { shared, pacing, running, sampler, _end: end })
    }

    /// The time of the log.
    pub(super) fn now(&self) -> Duration {
        self.shared.watch.elapsed()
    }

    /// What was decided without the store so far.
    pub(super) fn failures(&self) -> WithoutStore {
        self.shared.gate.store_failures().decided
    }

    /// Ends, when everything has been answered. All calls, what was seen meanwhile, and how many the gate counted that
    /// were let pass without the store.
    pub(super) fn finish(self) -> Result<(Calls, Samples, u64), String> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.pacing.join().map_err(|_| "the thread that lets requests go has panicked".to_owned())?;
        while self.shared.under_way.load(Ordering::Acquire) > 0 {
            pause(EVERY);
        }
        drop(self._end);
        self.running.join().map_err(|_| "the thread that runs requests has panicked".to_owned())?;
        let samples = self.sampler.finish()?;
        let calls = std::mem::take(&mut *self.shared.calls.lock().unwrap_or_else(PoisonError::into_inner));
        let errors = self.shared.errors.load(Ordering::Relaxed);
        let counted = self.shared.gate.store_failures().decided.open;
        Ok((Calls { calls, errors }, samples, counted))
    }
}

/// Lets each request go when it is due.
fn pace(shared: &Arc<Shared>, handle: &tokio::runtime::Handle) {
    for number in 0_u32.. {
        let due = EVERY * number;
        let now = shared.watch.elapsed();
        if now < due {
            pause(due - now);
        }
        if shared.is_over.load(Ordering::Relaxed) {
            return;
        }
        let name = [CLOSED, OPEN, LOCAL][number as usize % 3];
        shared.under_way.fetch_add(1, Ordering::Relaxed);
        handle.spawn(ask(Arc::clone(shared), due, name));
    }
}

async fn ask(shared: Arc<Shared>, due: Duration, name: &'static str) {
    let path = format!("/{name}");
    let attributes = Attributes::new().path(&path);
    let asked = shared.watch.elapsed();
    let answer = shared.gate.admit(&attributes).await;
    let answered = shared.watch.elapsed();
    let admission = answer.ok();
    let by = admission.as_ref().and_then(|admission| admission.decided_by().as_str().parse::<By>().ok());
    if let (Some(admission), Some(by)) = (admission, by) {
        let (key, is_allowed) = (name.to_owned(), admission.is_allowed());
        let decided = Decided { asked, answered, key, is_allowed, cost: 1, by };
        shared.calls.lock().unwrap_or_else(PoisonError::into_inner).push(Call { due, decided });
    } else {
        shared.errors.fetch_add(1, Ordering::Relaxed);
    }
    shared.under_way.fetch_sub(1, Ordering::Release);
}

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// When it should have been asked.
    pub(super) due: Duration,
    pub(super) decided: Decided,
}

/// All requests, or some of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    pub(super) calls: Vec<Call>,
    /// Those without any answer.
    pub(super) errors: u64,
}

impl Calls {
    pub(super) fn len(&self) -> u64 {
        self.calls.len() as u64
    }

    /// Those that were asked and answered between these times.
    pub(super) fn between(&self, from: Duration, to: Duration) -> Calls {
        let is_in = |call: &&Call| call.decided.asked >= from && call.decided.answered <= to;
        Calls { calls: self.calls.iter().filter(is_in).cloned().collect(), errors: 0 }
    }

    pub(super) fn decided(&self) -> impl Iterator<Item = &Decided> {
        self.calls.iter().map(|call| &call.decided)
    }

    /// How long each took after it was asked.
    pub(super) fn took(&self) -> Vec<Duration> {
        self.decided().map(|decided| decided.answered - decided.asked).collect()
    }

    /// How long after it was due each was asked at last.
    pub(super) fn unasked(&self) -> Vec<Duration> {
        self.calls.iter().map(|call| call.decided.asked.saturating_sub(call.due)).collect()
    }

    /// How long each took after it was due.
    pub(super) fn late(&self) -> Vec<Duration> {
        self.calls.iter().map(|call| call.decided.answered.saturating_sub(call.due)).collect()
    }
}
