//! A line of buyers: one leaves at a time, evenly, by a leaky bucket; everybody knows their place.
//!
//! Whoever hangs up gives the place back, and all behind move up. So a place only ever falls.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tidegate::{Acquire, Algorithm, Limit, Limiter, Refusal, Timestamp};

/// Everybody stands in the same line.
const EVERYBODY: &str = "everybody";

/// A line. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Queue {
    limiter: Limiter,
    /// Between two who leave.
    interval: Duration,
    line: Arc<Mutex<Line>>,
}

/// Who stands in it, by the numbers they drew.
#[derive(Debug, Default)]
struct Line {
    next: u64,
    waiting: BTreeSet<u64>,
}

/// The limit is of no use for a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoQueue(String);

/// The place of somebody in the line: it is over when their turn has come. Dropped before, it is given back.
#[derive(Debug)]
pub struct Turn {
    /// None if nobody had to wait.
    acquire: Option<Acquire>,
    number: u64,
    interval: Duration,
    line: Arc<Mutex<Line>>,
}

impl Queue {
    /// A line that moves as a leaky bucket says, such as `200/s queue 2000 leaky-bucket`.
    pub fn new(limit: Limit) -> Result<Queue, NoQueue> {
        if limit.algorithm() != Algorithm::LeakyBucket {
            return Err(NoQueue(limit.to_string()));
        }
        let [_, interval, ..] = limit.numbers();
        let interval = Timestamp::from_ticks(interval).since(Timestamp::EPOCH).to_duration();
        Ok(Queue { limiter: Limiter::new(limit), interval, line: Arc::default() })
    }

    /// How it moves.
    pub fn limit(&self) -> Limit {
        self.limiter.limit()
    }

    /// Takes the last place; refused if the line is full.
    pub fn join(&self) -> Result<Turn, Refusal> {
        // The lock makes the order of the numbers that of the limiter's own line.
        let mut line = lock(&self.line);
        let mut acquire = self.limiter.acquire(EVERYBODY);
        let early = Pin::new(&mut acquire).poll(&mut Context::from_waker(Waker::noop()));
        let acquire = match early {
            Poll::Ready(Err(refusal)) => return Err(refusal),
            Poll::Ready(Ok(_)) => None,
            Poll::Pending => Some(acquire),
        };
        let number = line.next;
        if acquire.is_some() {
            line.next += 1;
            line.waiting.insert(number);
        }
        Ok(Turn { acquire, number, interval: self.interval, line: Arc::clone(&self.line) })
    }
}

impl Turn {
    /// How many leave the line until it is one's turn, oneself among them; none if it has come.
    pub fn place(&self) -> u64 {
        let line = lock(&self.line);
        if !line.waiting.contains(&self.number) || self.acquire.is_none() {
            return 0;
        }
        line.waiting.range(..=self.number).count() as u64
    }

    /// How long that takes at most.
    pub fn wait(&self, place: u64) -> Duration {
        self.interval.saturating_mul(u32::try_from(place).unwrap_or(u32::MAX))
    }

    fn leave(&mut self) {
        if self.acquire.take().is_some() {
            lock(&self.line).waiting.remove(&self.number);
        }
    }
}

impl Future for Turn {
    type Output = Result<(), Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(acquire) = &mut self.acquire else { return Poll::Ready(Ok(())) };
        let result = ready!(Pin::new(acquire).poll(context));
        self.leave();
        Poll::Ready(result.map(|_| ()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Display for NoQueue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "queue \"{}\": nobody stands in line under it; write \"200/s queue 2000 leaky-bucket\"",
            self.0
        )
    }
}

impl std::error::Error for NoQueue {}

fn lock(line: &Mutex<Line>) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(limit: &str) -> Queue {
        Queue::new(limit.parse().unwrap()).unwrap()
    }

    #[tokio::test]
    async fn the_first_passes_and_the_others_have_places_in_order() {
        let queue = queue("1/h queue 2 leaky-bucket");
        let mut first = queue.join().unwrap();
        assert_eq!(first.place(), 0);
        assert!((&mut first).await.is_ok());
        let (second, third) = (queue.join().unwrap(), queue.join().unwrap());
        assert_eq!((second.place(), third.place()), (1, 2));
        assert_eq!(third.wait(third.place()), Duration::from_secs(2 * 3600));
        let refusal = queue.join().unwrap_err();
        assert!(refusal.retry_after().is_some());
    }

    #[tokio::test]
    async fn whoever_leaves_lets_everybody_behind_move_up() {
        let queue = queue("1/h queue 2 leaky-bucket");
        let first = queue.join().unwrap();
        let (second, third) = (queue.join().unwrap(), queue.join().unwrap());
        drop(second);
        assert_eq!(third.place(), 1);
        let fourth = queue.join().unwrap();
        assert_eq!((fourth.place(), first.place()), (2, 0));
    }

    #[tokio::test]
    async fn turns_come_in_the_order_of_places() {
        let queue = queue("200/s queue 20 leaky-bucket");
        let turns: Vec<_> = (0..20).map(|_| queue.join().unwrap()).collect();
        let came = Arc::new(Mutex::new(Vec::new()));
        let tasks = turns.into_iter().enumerate().map(|(index, turn)| {
            let came = Arc::clone(&came);
            tokio::spawn(async move {
                turn.await.unwrap();
                came.lock().unwrap().push(index);
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        assert_eq!(*came.lock().unwrap(), (0..20).collect::<Vec<_>>());
        assert!(queue.line.lock().unwrap().waiting.is_empty());
    }

    #[test]
    fn only_a_leaky_bucket_is_a_line() {
        let error = Queue::new("200/s".parse().unwrap()).unwrap_err().to_string();
        assert!(error.starts_with("queue \"200/s\": nobody stands in line under it; write"), "{error}");
    }
}
