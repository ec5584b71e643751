//! A burst of callers leaves a queue evenly.
//!
//! When a caller gives up, those behind it move up. A caller that finds the queue full is denied.

use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Waker};
use std::thread;

use tidegate::{Acquire, Denied, Limit, MILLISECOND, ManualClock, SECOND, Shaper};

const EVENLY: Limit = Limit::leaky_bucket(20, SECOND).queue(5);

fn main() -> Result<(), Denied> {
    let clock = Arc::new(ManualClock::new()); // a live program leaves it out: `Shaper::new(EVENLY)`
    let shaper = Shaper::with_clock(EVENLY, clock.clone());
    println!("{EVENLY}: one leaves every 50 ms, five may wait\n");

    shaper.acquire().blocking()?;
    println!("  0 ms  ana leaves: the queue was empty");
    let mut waiters: Vec<_> =
        ["bob", "cat", "dan", "eve", "fay"].into_iter().map(|name| (name, enqueue(&shaper))).collect();
    println!("  0 ms  bob, cat, dan, eve and fay are queued");

    // The wait is known in advance, so a caller with a shorter max wait is denied at once.
    let hasty =
        shaper.acquire().max_wait(100 * MILLISECOND).blocking().expect_err("five are queued before him");
    println!("  0 ms  gus has 100 ms; {hasty}");
    let late = shaper.acquire().blocking().expect_err("the queue is full");
    println!("  0 ms  hal sets no max wait; {late}");
    assert!(late.is_queue_full() && !hasty.is_queue_full());

    // A timeout or a disconnected client drops the future, too.
    drop(waiters.remove(1));
    println!("  0 ms  cat gives up: dan, eve and fay move up");
    waiters.push(("hal", enqueue(&shaper)));
    println!("  0 ms  hal tries again: the queue has room");

    let (tell, left) = mpsc::channel();
    for (name, waiter) in waiters {
        let tell = tell.clone();
        thread::spawn(move || tell.send((name, waiter.blocking())));
    }
    for (turn, expected) in (1..).zip(["bob", "dan", "eve", "fay", "hal"]) {
        clock.advance(50 * MILLISECOND);
        let (name, waited) = left.recv_timeout(60 * SECOND).expect("one leaves every 50 ms");
        let waited = waited?.duration;
        println!("{:>3} ms  {name} leaves", waited.as_millis());
        assert_eq!((name, waited), (expected, turn * 50 * MILLISECOND));
    }
    Ok(())
}

/// Joins the queue. A future joins at its first poll; here it is polled by hand, so that callers are queued in the
/// order in which they are named.
fn enqueue(shaper: &Shaper) -> Acquire {
    let mut waiter = shaper.acquire();
    assert!(Pin::new(&mut waiter).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    waiter
}
