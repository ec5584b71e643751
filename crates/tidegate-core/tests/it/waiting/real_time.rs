//! Tests of waiting by the real clock: the one timer thread of the process wakes all waiters.

use std::time::Duration;

use tidegate::{DirectLimiter, HOUR, Limit, Limiter, MILLISECOND, Pacer, SECOND, Shaper};

/// Returns the number of timer threads of the library in this process; `None` if the system does not report it.
fn timers() -> Option<usize> {
    let names = std::fs::read_dir("/proc/self/task").ok()?.flatten();
    let names = names.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    Some(names.filter(|name| name.trim_end() == "tidegate-timer").count())
}

#[test]
fn one_timer_thread_wakes_all_waiters() {
    let limiter = Limiter::new(Limit::per_second(200).burst(1));
    let shaper = Shaper::new(Limit::leaky_bucket(200, SECOND).queue(100));
    let single = DirectLimiter::new(Limit::per_second(500).burst(1));
    std::thread::scope(|scope| {
        for caller in 0..30_usize {
            let (limiter, shaper, single) = (&limiter, &shaper, &single);
            scope.spawn(move || {
                limiter.acquire(caller % 3).blocking().unwrap();
                shaper.acquire().blocking().unwrap();
                single.acquire().blocking().unwrap();
            });
        }
    });
    assert!(timers().is_none_or(|timers| timers == 1), "{:?} timer threads", timers());
}

#[test]
fn the_length_of_the_wait_is_reported() {
    let pacer = Pacer::per_second(100);
    let mut waits = (0..1000).map(|_| pacer.acquire(1).blocking().unwrap().duration);
    assert_eq!(waits.next(), Some(Duration::ZERO), "the first has nothing to wait for");
    // A caller that the machine delayed by an interval does not have to wait.
    assert!(waits.any(|wait| !wait.is_zero()), "one of a thousand comes before its turn");
    let pacer = Pacer::new(Limit::pacer(1, HOUR)).expect("a limit of a pacer");
    pacer.acquire(1).blocking().unwrap();
    let refused = pacer.acquire(1).max_wait(MILLISECOND).blocking().unwrap_err();
    assert!(refused.retry_after().is_some_and(|wait| wait > MILLISECOND));
}

#[test]
fn constructors_start_no_thread() {
    // Under nextest the test has its own process; under `cargo test` another test may have started the timer.
    let before = timers();
    let limiter = Limiter::new(Limit::per_second(10));
    assert!(limiter.admit("ana").is_allowed());
    assert!(limiter.acquire("ana").blocking().is_ok());
    assert!(timers() <= before.max(Some(1)));
}
