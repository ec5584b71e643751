//! Many threads at one limit.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use tidegate::Denied;
use tidegate_macros::rate_limit;

static RUNS: AtomicU32 = AtomicU32::new(0);

#[rate_limit("5/h")]
fn for_all() -> Result<(), Denied> {
    RUNS.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

#[rate_limit("5/h", key = user)]
fn for_each(user: u32) -> Result<u32, Denied> {
    Ok(user)
}

#[test]
fn of_a_thousand_threads_exactly_five_pass() {
    let (together, separate) = (AtomicU32::new(0), [const { AtomicU32::new(0) }; 2]);
    let start = Barrier::new(1_000);
    thread::scope(|scope| {
        for number in 0..1_000 {
            let (start, together, separate) = (&start, &together, &separate);
            let run = move || {
                start.wait();
                together.fetch_add(for_all().is_ok().into(), Ordering::Relaxed);
                let passed = for_each(number % 2).is_ok();
                separate[number as usize % 2].fetch_add(passed.into(), Ordering::Relaxed);
            };
            thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, run).expect("a thread");
        }
    });
    assert_eq!(together.into_inner(), 5);
    assert_eq!(RUNS.load(Ordering::Relaxed), 5);
    assert_eq!(separate.map(AtomicU32::into_inner), [5, 5]);
}
