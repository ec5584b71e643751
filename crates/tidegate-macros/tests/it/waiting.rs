//! Waits for admission: on a thread, and in a task of any runtime.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use tidegate::Denied;
use tidegate_macros::rate_limit;

#[test]
fn threads_wait_their_turn_and_all_pass() {
    static PASSED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

    #[rate_limit("200/s burst 1", wait = "1m")]
    fn send(number: u32) -> Result<u32, Denied> {
        PASSED.lock().expect("no thread panics").push(number);
        Ok(number)
    }

    thread::scope(|scope| {
        let threads: Vec<_> = (0..20).map(|number| scope.spawn(move || send(number))).collect();
        for (number, thread) in threads.into_iter().enumerate() {
            assert_eq!(thread.join().expect("no thread panics").map(|sent| sent as usize), Ok(number));
        }
    });
    let mut passed = PASSED.lock().expect("no thread panics").clone();
    passed.sort_unstable();
    assert_eq!(passed, (0..20).collect::<Vec<_>>());
}

#[test]
fn a_wait_that_would_be_too_long_is_refused_at_once() {
    #[rate_limit("1/h", key = user, wait = "59m")]
    fn send(user: &str) -> Result<usize, Denied> {
        Ok(user.len())
    }

    assert!(send("ana").is_ok());
    let refusal = send("ana").expect_err("it would take an hour");
    assert!(!refusal.is_timed_out() && refusal.retry_after() > Some(Duration::from_secs(59 * 60)));
    assert!(send("bob").is_ok());
}

#[test]
fn the_longest_wait_may_come_with_the_call() {
    #[rate_limit("50/s burst 1", wait = longest)]
    fn send(longest: Duration) -> Result<Duration, Denied> {
        Ok(longest)
    }

    assert!(send(Duration::ZERO).is_ok());
    assert!(send(Duration::from_secs(60)).is_ok());
    #[rate_limit("1/h", wait = longest)]
    fn send_rarely(longest: Duration) -> Result<Duration, Denied> {
        Ok(longest)
    }
    assert!(send_rarely(Duration::ZERO).is_ok() && send_rarely(Duration::from_secs(60)).is_err());
}

#[test]
fn who_waits_with_a_fallback_gets_one_of_both() {
    #[rate_limit("1/h", wait = "1m30s", otherwise = |refusal| refusal.is_timed_out().into())]
    fn send() -> u32 {
        7
    }

    assert_eq!((send(), send()), (7, 0));
}

#[test]
fn a_place_in_flight_is_waited_for_until_its_holder_is_done() {
    static INSIDE: Mutex<u32> = Mutex::new(0);

    #[rate_limit("1/h concurrency", wait = "1m")]
    fn alone() -> Result<u32, Denied> {
        let mut inside = INSIDE.try_lock().expect("no other call is in here");
        *inside += 1;
        thread::yield_now();
        Ok(*inside)
    }

    thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(alone)).collect();
        assert!(threads.into_iter().all(|thread| thread.join().is_ok_and(|answer| answer.is_ok())));
    });
    assert_eq!(*INSIDE.lock().expect("no thread panicked"), 16);
}
