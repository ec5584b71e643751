//! Stores and helpers for tests.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use testbed::{Flavour, Redis};
use tidegate::{Ask, Decisions, Key, Limit, Store as _, StoreError, Subject};
use tidegate_redis::{Options, RedisStore};

/// A long deadline, because a machine that runs many tests is slow.
pub(crate) const DEADLINE: Duration = Duration::from_secs(2);

/// Returns options with a deadline that no busy machine misses.
pub(crate) fn options(url: &str) -> Options {
    let url = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
    Options::new(url).deadline(DEADLINE)
}

pub(crate) fn store(url: &str) -> RedisStore {
    open(options(url))
}

/// Opens a store without a cache of denials.
pub(crate) fn forgetful(url: &str) -> RedisStore {
    open(options(url).caches_denials(false))
}

pub(crate) fn open(options: Options) -> RedisStore {
    RedisStore::open(options).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn redis() -> Redis {
    Redis::start(Flavour::Redis7)
}

/// Returns the number of scripts that the server runs for this, if it has all of them. Requests outside the decisions
/// are not scripts.
pub(crate) fn scripts(redis: &Redis, run: impl FnOnce()) -> usize {
    let calls = || {
        let stats = redis.command(&["INFO", "commandstats"]);
        let line = stats.lines().find(|line| line.starts_with("cmdstat_evalsha:")).unwrap_or_default();
        let number = line.split(['=', ',']).nth(1).and_then(|calls| calls.parse::<usize>().ok());
        number.unwrap_or_default()
    };
    let before = calls();
    run();
    calls() - before
}

/// Waits for a future of a store, on an independent runtime.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

/// Waits for all futures. All are polled in order before the first is awaited.
pub(crate) fn wait_for_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<_> = futures.iter().map(|_| None).collect();
    wait(poll_fn(|context| {
        let mut are_there = true;
        for (output, future) in outputs.iter_mut().zip(&mut futures).filter(|(output, _)| output.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(there) => *output = Some(there),
                Poll::Pending => are_there = false,
            }
        }
        if are_there { Poll::Ready(()) } else { Poll::Pending }
    }));
    outputs.into_iter().flatten().collect()
}

/// Waits for all futures, with the connection thread blocked until all of them are queued, so that it finds them
/// together. Their limits have to be listed already.
pub(crate) fn wait_for_all_at_once<F: Future>(
    store: &RedisStore,
    futures: impl IntoIterator<Item = F>,
) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    let held = HeldUp::new(store);
    let mut outputs: Vec<_> = futures.iter().map(|_| None).collect();
    for (future, output) in futures.iter_mut().zip(&mut outputs) {
        *output = future.as_mut().and_then(|future| poll_once(future.as_mut()));
        future.take_if(|_| output.is_some());
    }
    drop(held);
    let rest = wait_for_all(futures.into_iter().flatten());
    outputs
        .iter_mut()
        .filter(|output| output.is_none())
        .zip(rest)
        .for_each(|(one, there)| *one = Some(there));
    outputs.into_iter().flatten().collect()
}

/// Polls a future once, without a waker.
pub(crate) fn poll_once<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// A guard that blocks the connection thread of a store until it is dropped.
pub(crate) struct HeldUp(Option<mpsc::Sender<()>>);

impl HeldUp {
    pub(crate) fn new(store: &RedisStore) -> HeldUp {
        store.connect();
        let (go_on, gate) = mpsc::channel();
        let (begins, begun) = mpsc::channel();
        store.in_background(Box::pin(async move {
            let _ = begins.send(());
            let _: Result<(), _> = gate.recv();
        }));
        begun.recv().expect("the thread runs");
        HeldUp(Some(go_on))
    }
}

impl Drop for HeldUp {
    fn drop(&mut self) {
        self.0.take();
    }
}

/// A unique key, with its limit.
#[derive(Clone, Debug)]
pub(crate) struct Someone {
    key: Key,
    limit: Limit,
}

impl Someone {
    pub(crate) fn new(name: &str, limit: &str) -> Someone {
        Someone {
            key: Key::new(name),
            limit: limit.parse().unwrap_or_else(|error| panic!("{limit}: {error}")),
        }
    }

    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject::new("test", &self.key, &self.limit)
    }

    pub(crate) fn take(&self, store: &RedisStore) -> Result<Decisions, StoreError> {
        wait(store.take(&[(self.subject(), Ask::ONE)]))
    }

    pub(crate) fn is_allowed(&self, store: &RedisStore) -> bool {
        self.take(store).unwrap_or_else(|error| panic!("{}", reason(&error))).is_allowed()
    }

    /// Returns the number of allowed takes out of `times`.
    pub(crate) fn passes(&self, store: &RedisStore, times: usize) -> usize {
        (0..times).filter(|_| self.is_allowed(store)).count()
    }
}

/// Returns the text of a store's error.
pub(crate) fn reason(error: &StoreError) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Opens a store with a clock that the test sets.
pub(crate) fn given_time(url: &str) -> (RedisStore, Arc<tidegate::ManualClock>) {
    let clock = Arc::new(tidegate::ManualClock::new());
    let store = RedisStore::with_given_time(options(url), clock.clone());
    (store.unwrap_or_else(|error| panic!("{error}")), clock)
}

fn list(addresses: &[std::net::SocketAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

pub(crate) fn sentinel_url(sentinels: &testbed::Sentinels) -> String {
    format!("redis+sentinel://{}/{}", list(&sentinels.addresses()), sentinels.name())
}

pub(crate) fn cluster_url(cluster: &testbed::Cluster) -> String {
    format!("redis+cluster://{}", list(&cluster.addresses()))
}

/// Retries until a condition is true, with a generous timeout for slow machines.
pub(crate) fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    testbed::until(what, Duration::from_secs(60), look)
}
