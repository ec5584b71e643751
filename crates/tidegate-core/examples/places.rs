//! Concurrency limit with classes: critical and bulk requests while the capacity of a service falls, and then
//! recovers.
//!
//! Every second eight critical and eight bulk requests arrive, and each takes most of a second. A request that
//! finds no slot waits for at most two seconds. The clock is manual.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tidegate::{
    AcquireConcurrencyPermit, Class, ClassId, ConcurrencyLimiter, ConcurrencyPermit, Denied, ManualClock,
    Outcome, SECOND,
};

fn main() {
    let clock = Arc::new(ManualClock::new());
    let limiter = ConcurrencyLimiter::builder(16)
        .classes([Class::new("critical").share(60), Class::new("bulk").share(20)])
        .max_waiters(8)
        .newest_first_after(SECOND)
        .clock(clock.clone())
        .build();
    let mut scene = Scene { limiter, clock, held: Vec::new(), waiting: Vec::new() };

    println!("                 ------------ critical ------------    -------------- bulk --------------");
    println!("second  limit    passed timeout    evicted    full    passed timeout    evicted    full");
    for (second, limit) in [16, 16, 8, 8, 4, 4, 4, 16, 16, 16].into_iter().enumerate() {
        scene.limiter.set_limit(limit);
        let [critical, bulk] = scene.second();
        println!("{second:>6} {limit:>6}    {critical}    {bulk}");
    }
    println!("\nat the end {} are in flight and {} wait", scene.limiter.in_flight(), scene.limiter.waiting());
}

/// The service and its requests.
struct Scene {
    limiter: ConcurrencyLimiter,
    clock: Arc<ManualClock>,
    held: Vec<ConcurrencyPermit>,
    waiting: Vec<(ClassId, AcquireConcurrencyPermit)>,
}

/// The results of one class in one second.
#[derive(Clone, Copy, Default)]
struct ClassResults {
    passed: u32,
    timed_out: u32,
    evicted: u32,
    full: u32,
}

impl ClassResults {
    fn count(&mut self, denied: &Denied) {
        if denied.is_timed_out() {
            self.timed_out += 1;
        } else if denied.is_pushed_out() {
            self.evicted += 1;
        } else {
            self.full += 1;
        }
    }
}

impl fmt::Display for ClassResults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClassResults { passed, timed_out, evicted, full } = self;
        write!(out, "{passed:>6} {timed_out:>7} {evicted:>10} {full:>7}")
    }
}

impl Scene {
    /// Simulates one second: sixteen requests arrive, then all calls in flight end, and waiters take their slots.
    fn second(&mut self) -> [ClassResults; 2] {
        let mut results = [ClassResults::default(); 2];
        let [critical, bulk] = self.limiter.class_ids();
        for _ in 0..8 {
            for class in [bulk, critical] {
                self.waiting.push((class, self.limiter.acquire(class).max_wait(2 * SECOND)));
                self.look(&mut results);
            }
        }
        self.clock.advance(SECOND);
        for permit in std::mem::take(&mut self.held) {
            permit.done(Outcome::Done);
        }
        self.look(&mut results);
        results
    }

    /// Counts the waiters that have been admitted or denied.
    fn look(&mut self, results: &mut [ClassResults; 2]) {
        let mut context = Context::from_waker(Waker::noop());
        self.waiting.retain_mut(|(class, acquire)| match Pin::new(acquire).poll(&mut context) {
            Poll::Pending => true,
            Poll::Ready(result) => {
                match result {
                    Ok(permit) => {
                        results[class.rank()].passed += 1;
                        self.held.push(permit);
                    }
                    Err(denied) => results[class.rank()].count(&denied),
                }
                false
            }
        });
    }
}
