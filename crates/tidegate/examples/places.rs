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
    AcquireConcurrencyPermit, Class, ConcurrencyLimiter, ConcurrencyPermit, Denied, ManualClock, Outcome,
    SECOND,
};

const CRITICAL: usize = 0;
const BULK: usize = 1;

fn main() {
    let clock = Arc::new(ManualClock::new());
    let places = ConcurrencyLimiter::at_most(16)
        .classes([Class::new("critical").share(60), Class::new("bulk").share(20)])
        .max_waiters(8)
        .newest_first_after(SECOND)
        .with_clock(clock.clone());
    let mut scene = Scene { places, clock, held: Vec::new(), waiting: Vec::new() };

    println!("                 ------------ critical ------------    -------------- bulk --------------");
    println!("second places    let in gave up pushed out no room    let in gave up pushed out no room");
    for (second, limit) in [16, 16, 8, 8, 4, 4, 4, 16, 16, 16].into_iter().enumerate() {
        scene.places.set_limit(limit);
        let [critical, bulk] = scene.second();
        println!("{second:>6} {limit:>6}    {critical}    {bulk}");
    }
    println!("\nat the end {} are in flight and {} wait", scene.places.in_flight(), scene.places.waiting());
}

/// The service and its requests.
struct Scene {
    places: ConcurrencyLimiter,
    clock: Arc<ManualClock>,
    held: Vec<ConcurrencyPermit>,
    waiting: Vec<(usize, AcquireConcurrencyPermit)>,
}

/// The results of one class in one second.
#[derive(Clone, Copy, Default)]
struct Fared {
    let_in: u32,
    gave_up: u32,
    pushed_out: u32,
    no_room: u32,
}

impl Fared {
    fn refused(&mut self, refusal: &Denied) {
        if refusal.is_timed_out() {
            self.gave_up += 1;
        } else if refusal.is_pushed_out() {
            self.pushed_out += 1;
        } else {
            self.no_room += 1;
        }
    }
}

impl fmt::Display for Fared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fared { let_in, gave_up, pushed_out, no_room } = self;
        write!(out, "{let_in:>6} {gave_up:>7} {pushed_out:>10} {no_room:>7}")
    }
}

impl Scene {
    /// Simulates one second: sixteen requests arrive, then all calls in flight end, and waiters take their slots.
    fn second(&mut self) -> [Fared; 2] {
        let mut fared = [Fared::default(); 2];
        for _ in 0..8 {
            for class in [BULK, CRITICAL] {
                self.waiting.push((class, self.places.acquire(class).max_wait(2 * SECOND)));
                self.look(&mut fared);
            }
        }
        self.clock.advance(SECOND);
        for place in std::mem::take(&mut self.held) {
            place.done(Outcome::Done);
        }
        self.look(&mut fared);
        fared
    }

    /// Counts the waiters that have been admitted or denied.
    fn look(&mut self, fared: &mut [Fared; 2]) {
        let mut context = Context::from_waker(Waker::noop());
        self.waiting.retain_mut(|(class, acquire)| match Pin::new(acquire).poll(&mut context) {
            Poll::Pending => true,
            Poll::Ready(result) => {
                match result {
                    Ok(place) => {
                        fared[*class].let_in += 1;
                        self.held.push(place);
                    }
                    Err(refusal) => fared[*class].refused(&refusal),
                }
                false
            }
        });
    }
}
