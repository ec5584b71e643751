//! Async functions, on two runtimes and polled by hand.

use std::cell::Cell;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use tidegate::Denied;
use tidegate_macros::rate_limit;

fn is_send<F: Future + Send>(future: F) -> F {
    future
}

#[tokio::test]
async fn three_an_hour_pass_and_the_fourth_does_not_run() {
    static RUNS: AtomicU32 = AtomicU32::new(0);

    #[rate_limit("3/h", key = user)]
    async fn report(user: String) -> Result<u32, Denied> {
        tokio::task::yield_now().await;
        let _user = user;
        Ok(RUNS.fetch_add(1, Ordering::Relaxed))
    }

    for expected in 0..3 {
        assert_eq!(is_send(report("ana".into())).await, Ok(expected));
    }
    assert!(report("ana".into()).await.is_err());
    assert_eq!(RUNS.load(Ordering::Relaxed), 3);
}

#[test]
fn the_limit_is_asked_when_the_function_is_awaited_and_not_when_it_is_called() {
    #[rate_limit("1/h")]
    async fn once() -> Result<(), Denied> {
        Ok(())
    }

    let (first, second) = (once(), once());
    drop(first);
    assert!(smol::block_on(second).is_ok());
    assert!(smol::block_on(once()).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_tokio_wait_their_turn_and_all_pass() {
    #[rate_limit("500/s burst 1", key = user, wait = "1m")]
    async fn send(user: &'static str, number: u32) -> Result<u32, Denied> {
        tokio::task::yield_now().await;
        let _user = user;
        Ok(number)
    }

    let tasks: Vec<_> = (0..50).map(|number| tokio::spawn(send("ana", number))).collect();
    for (number, task) in (0..).zip(tasks) {
        assert_eq!(task.await.expect("no thread panics"), Ok(number));
    }
}

#[test]
fn tasks_of_one_thread_pass_in_the_order_in_which_they_came() {
    static PASSED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

    #[rate_limit("500/s burst 1", wait = "1m")]
    async fn send(number: u32) -> Result<(), Denied> {
        PASSED.lock().expect("no thread panics").push(number);
        Ok(())
    }

    let executor = smol::LocalExecutor::new();
    smol::block_on(executor.run(async {
        let tasks: Vec<_> = (0..30).map(|number| executor.spawn(send(number))).collect();
        for task in tasks {
            assert_eq!(task.await, Ok(()));
        }
    }));
    assert_eq!(*PASSED.lock().expect("no thread panics"), (0..30).collect::<Vec<_>>());
}

#[test]
fn who_stops_waiting_has_spent_nothing() {
    #[rate_limit("1/h", key = user, wait = "90m")]
    async fn send(user: &str) -> Result<usize, Denied> {
        Ok(user.len())
    }

    assert!(smol::block_on(send("ana")).is_ok());
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..5 {
        // Behind another waiter it would have to wait for two hours, which is too long.
        let mut waiting = pin!(send("ana"));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert!(matches!(pin!(send("ana")).poll(&mut context), Poll::Ready(Err(_))));
    }
}

#[tokio::test]
async fn a_fallback_is_awaited_and_so_may_be_a_closure() {
    #[rate_limit("1/h", otherwise = instead)]
    async fn load(number: u32) -> u32 {
        number
    }
    async fn instead(number: u32) -> u32 {
        tokio::task::yield_now().await;
        number + 1
    }
    #[rate_limit("1/h", otherwise = async |_| instead(number).await)]
    async fn load_too(number: u32) -> u32 {
        number
    }
    #[rate_limit("1/h", otherwise = |_| number + 2)]
    async fn load_again(number: u32) -> u32 {
        number
    }

    assert_eq!((load(5).await, load(5).await), (5, 6));
    assert_eq!((load_too(5).await, load_too(5).await), (5, 6));
    assert_eq!((load_again(5).await, load_again(5).await), (5, 7));
}

#[test]
fn a_key_that_may_not_leave_its_thread_does_not_keep_the_task_there() {
    #[rate_limit("1/h", key = Cell::new(number).get(), wait = "1m", cost = *std::rc::Rc::new(1))]
    async fn send(number: u32) -> Result<u32, Denied> {
        Ok(number)
    }

    assert_eq!(smol::block_on(is_send(send(3))), Ok(3));
}

struct Downstream {
    name: String,
    calls: u32,
}

impl Downstream {
    #[rate_limit("2/h", key = self.name, wait = "10ms", otherwise = Self::spare)]
    async fn call(&mut self, number: u32) -> u32 {
        self.calls += 1;
        number
    }

    async fn spare(&mut self, _number: u32) -> u32 {
        self.calls
    }
}

#[test]
fn methods_may_be_async() {
    smol::block_on(async {
        let mut downstream = Downstream { name: "weak".into(), calls: 0 };
        assert_eq!((downstream.call(7).await, downstream.call(8).await), (7, 8));
        assert_eq!((downstream.call(9).await, downstream.calls), (2, 2));
    });
}

trait Service {
    async fn serve(&self, number: u32) -> Result<u32, Denied>;
}

impl Service for u32 {
    #[rate_limit("1/h", key = *self)]
    async fn serve(&self, number: u32) -> Result<u32, Denied> {
        Ok(self + number)
    }
}

#[test]
fn async_methods_of_traits_are_held_too() {
    assert_eq!(smol::block_on(1.serve(2)), Ok(3));
    assert!(smol::block_on(1.serve(2)).is_err());
    assert_eq!(smol::block_on(2.serve(2)), Ok(4));
}

#[test]
fn a_place_in_flight_is_given_back_when_the_task_is_dropped() {
    #[rate_limit("1/h concurrency")]
    async fn hold() -> Result<(), Denied> {
        std::future::pending().await
    }
    #[rate_limit("1/h concurrency", wait = "1m")]
    async fn hold_later() -> Result<(), Denied> {
        std::future::pending().await
    }

    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..3 {
        let mut first = pin!(hold());
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(matches!(pin!(hold()).poll(&mut context), Poll::Ready(Err(_))));
    }
    for _ in 0..3 {
        assert!(pin!(hold_later()).poll(&mut context).is_pending());
    }
}
