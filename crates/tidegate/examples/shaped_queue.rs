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
    let mut line: Vec<_> =
        ["bob", "cat", "dan", "eve", "fay"].into_iter().map(|name| (name, line_up(&shaper))).collect();
    println!("  0 ms  bob, cat, dan, eve and fay stand in line");

    // The wait is known in advance, so a caller with a shorter max wait is denied at once.
    let hasty = shaper.acquire().max_wait(100 * MILLISECOND).blocking().expect_err("five are before him");
    println!("  0 ms  gus has 100 ms; {hasty}");
    let late = shaper.acquire().blocking().expect_err("all five places are taken");
    println!("  0 ms  hal has all day; {late}");
    assert!(late.is_queue_full() && !hasty.is_queue_full());

    // A timeout or a disconnected client drops the future, too.
    drop(line.remove(1));
    println!("  0 ms  cat gives up: dan, eve and fay move up");
    line.push(("hal", line_up(&shaper)));
    println!("  0 ms  hal tries again: there is a place");

    let (tell, left) = mpsc::channel();
    for (name, place) in line {
        let tell = tell.clone();
        thread::spawn(move || tell.send((name, place.blocking())));
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
fn line_up(shaper: &Shaper) -> Acquire {
    let mut place = shaper.acquire();
    assert!(Pin::new(&mut place).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    place
}
