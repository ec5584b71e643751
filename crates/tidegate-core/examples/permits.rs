//! Permits: at most two exports at a time per customer, and the lease that ends abandoned ones.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tidegate::{Denied, MILLISECOND, ManualClock, Permits, SECOND, ask};

fn main() -> Result<(), Denied> {
    waiting_for_a_permit()?;
    leases()
}

/// Runs six threads that share two permits.
fn waiting_for_a_permit() -> Result<(), Denied> {
    let permits = Permits::builder(2).lease(30 * SECOND).build();
    let (in_flight, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let exports = [(); 6].map(|()| {
            scope.spawn(|| -> Result<(), Denied> {
                let _permit = permits.acquire("ana").max_wait(10 * SECOND).blocking()?;
                most.fetch_max(in_flight.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                pretend_to_work();
                in_flight.fetch_sub(1, Ordering::SeqCst);
                Ok(()) // the permit is dropped: the next one comes in
            })
        });
        exports.into_iter().try_for_each(|export| export.join().expect("no export panics"))
    })?;
    println!("six exports are done, at most {} at a time", most.load(Ordering::SeqCst));
    assert!(most.into_inner() <= 2);

    let _both = permits.admit(ask("ana").cost(2))?;
    let denied = permits.admit("ana").expect_err("both permits are taken");
    println!("a large export takes both units; the next ask: {denied}");
    let denied =
        permits.acquire("ana").max_wait(20 * MILLISECOND).blocking().expect_err("no permit is released");
    println!("a wait of at most 20 ms: {denied}");
    assert!(denied.is_timed_out());
    println!("bob has permits of his own: {} free\n", permits.peek("bob").remaining());
    Ok(())
}

/// Shows the end of leases, with a manual clock.
fn leases() -> Result<(), Denied> {
    let clock = Arc::new(ManualClock::new());
    let permits = Permits::builder(3).lease(30 * SECOND).clock(clock.clone()).build();
    let free = || permits.peek("ana").remaining();
    let (done, slow, dead) = (permits.admit("ana")?, permits.admit("ana")?, permits.admit("ana")?);
    println!("three of three in flight: {} free", free());

    clock.advance(20 * SECOND);
    assert!(done.release());
    println!("20 s: the first is released: {} free", free());
    assert!(slow.renew());
    println!("20 s: the second needs longer and renews its lease");
    let number = dead.id().expect("it holds a unit");
    mem::forget(dead); // a killed process runs no destructors
    println!("20 s: the third dies: {} free", free());

    clock.advance(10 * SECOND);
    println!("30 s: its lease is over: {} free", free());
    assert_eq!(free(), 2);
    println!("30 s: releasing it now frees no permit: {}", permits.release("ana", number));

    drop(slow);
    assert_eq!(free(), 3);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "this is the work, not a wait for the time")]
fn pretend_to_work() {
    thread::sleep(20 * MILLISECOND);
}
