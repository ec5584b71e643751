//! Three workers call a fragile service through one pacer, which warms up.
//!
//! When it is cold, it admits calls at a third of its rate; after a second of work, at the full rate.

use std::sync::{Mutex, mpsc};
use std::thread;

use tidegate::{Clock, MILLISECOND, Pacer, SECOND, SystemClock};

fn main() {
    let pacer = Pacer::builder(20).warm_up(SECOND).build();
    println!("{}\n", pacer.limit());
    let jobs = Mutex::new(1..=16);
    let clock = SystemClock::new();
    let start = clock.now();
    let (tell, started) = mpsc::channel();

    thread::scope(|scope| {
        for worker in 1..=3 {
            let (pacer, tell) = (pacer.clone(), tell.clone()); // clones share it
            let (jobs, clock) = (&jobs, &clock);
            scope.spawn(move || {
                while let Some(job) = next(jobs) {
                    let waited = pacer.acquire(1).blocking().expect("the queue has room for three");
                    let at = clock.now().since(start).to_duration();
                    tell.send((at, job, worker, waited.duration)).expect("the receiver is open");
                }
            });
        }
        drop(tell);

        let (mut starts, mut before) = (Vec::new(), 0);
        for (at, job, worker, waited) in started {
            let (now, waited) = (at.as_millis(), waited.as_millis());
            let gap = now.saturating_sub(before);
            println!("{now:>5} ms  +{gap:<4} job {job:>2}, worker {worker}, waited {waited} ms");
            starts.push(at);
            before = now;
        }
        // A start is never early; its lateness depends on the scheduler of the system.
        starts.sort();
        assert!(starts[10] >= 999 * MILLISECOND, "ten cold jobs take all of the warm-up");
    });
}

fn next(jobs: &Mutex<impl Iterator<Item = u32>>) -> Option<u32> {
    jobs.lock().expect("no holder panics").next()
}
