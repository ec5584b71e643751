//! A task that sets the counters in Redis to the stock in the database, once a second.
//!
//! The database is read at one moment and the counter is set at a later one, while purchases go on. The counter may be
//! wrong after that, in two directions:
//!
//! - **Too high**: more buyers than units reach the database, which denies them: extra work, never an order too many.
//! - **Too low**: a new buyer gets "sold out" while a unit is left, until the next round reads the database again.
//!
//! | concurrent event | the counter is then |
//! |---|---|
//! | taken in Redis before the round, in the database after the reading | too high by one: the unit is set again, then sold |
//! | taken in Redis and in the database between reading and setting | too high by one, for the same reason |
//! | taken in Redis, and the shop failed before the database | too low by one before the round, right after it |
//! | denied by the database, given back before the setting | right: the setting replaces the giving back |
//! | denied by the database, given back after the setting | too high by one: the unit is counted twice |
//! | expired in the database and given back after the reading, before the setting | too low by one until the next round |
//! | expired in the database before the reading, given back after the setting | too high by one: the unit is counted twice |
//! | a take whose caller has timed out arrives after the setting | too low by one until the next round |
//! | a setting whose caller has timed out arrives late | as wrong as it is old, until the next round |
//! | two shops reconcile at the same time | what the later one read: one of these lines |
//!
//! No error persists: the next round does not read the previous value of the counter. If Redis accepts no writes or no
//! round comes, a counter that is too low expires, and the hint is unknown.
//!
//! The users stay in the set in all cases. A user in the set without an order passes without a unit: too high by one. A
//! user with an order who is not in the set would get "sold out" instead of that order. So each round writes all buyers
//! before it sets the counter. A buyer since the reading is written one round later.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::Hint;

/// The time between two rounds.
const ROUND: Duration = Duration::from_secs(1);

/// The timeout of a reading of the database; a round without a reading changes nothing.
const READING: Duration = Duration::from_secs(3);

/// The stock of a sale in the database, and its buyers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stock {
    /// The number of the sale.
    pub sale: i64,
    /// The number of units that can be reserved.
    pub left: i64,
    /// The users who have an order, or had one that expired: a repeated request gets the same reply.
    pub buyers: Vec<String>,
}

/// A task that corrects a hint; it stops when this is dropped.
#[derive(Debug)]
pub struct Reconciler {
    task: JoinHandle<()>,
}

impl Reconciler {
    /// Starts the task with a round at once; `truth` reads the sales that are not over from the database.
    ///
    /// The counter of any other sale is not changed, and expires within ten seconds.
    pub fn start<Truth, Reading, Fault>(hint: Hint, truth: Truth) -> Reconciler
    where
        Truth: Fn() -> Reading + Send + 'static,
        Reading: Future<Output = Result<Vec<Stock>, Fault>> + Send,
        Fault: Send,
    {
        let task = tokio::spawn(async move {
            let mut rounds = interval(ROUND);
            rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                rounds.tick().await;
                if let Ok(Ok(stocks)) = timeout(READING, truth()).await {
                    correct(&hint, &stocks).await;
                }
            }
        });
        Reconciler { task }
    }
}

impl Drop for Reconciler {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn correct(hint: &Hint, stocks: &[Stock]) {
    for stock in stocks {
        hint.know(stock.sale, &stock.buyers).await;
        hint.set(stock.sale, stock.left).await;
    }
}
