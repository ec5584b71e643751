//! Brings the counters in Redis back to what the database has, once a second.
//!
//! The database is read at one moment and the counter set at a later one, while buyers come and go.
//! The counter may be wrong after that, in two directions:
//!
//! - **Too high**: more buyers than units reach the database, and it refuses them: work, never an order too many.
//! - **Too low**: a newcomer hears "sold out" while a unit is left, until the next round reads a database that has it.
//!
//! | what comes between | the counter is then |
//! |---|---|
//! | taken in Redis before the round, in the database after the reading | too high by one: the unit is set again, then sold |
//! | taken in Redis and in the database between reading and setting | too high by one, for the same reason |
//! | taken in Redis, and its shop died before the database heard of it | too low by one before the round, right after it |
//! | refused by the database, given back before the setting | right: the setting replaces the giving back |
//! | refused by the database, given back after the setting | too high by one: the unit is counted twice |
//! | expired in the database and given back after the reading, before the setting | too low by one until the next round |
//! | expired in the database before the reading, given back after the setting | too high by one: the unit is counted twice |
//! | a taking that nobody waits for any more arrives after the setting | too low by one until the next round |
//! | a setting that nobody waits for any more arrives late | as wrong as it is old, until the next round |
//! | two shops reconcile at the same time | what the later one read: one of these lines |
//!
//! No line leaves anything behind: the next round does not look at what the counter was.
//! Where too low would last because Redis takes no writes or no round comes, the counter dies instead, and nobody knows.
//!
//! The users stay in the set in all of this. Someone who is in it without an order passes without a unit taken:
//! too high by one. Someone with an order who was not in it any more would hear "sold out" instead of that order: so each
//! round tells Redis all buyers before it sets the counter. Who became one after the reading is told of a round later.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::Hint;

/// Between two rounds.
const ROUND: Duration = Duration::from_secs(1);

/// How long the database may take to say what is left; a round without it changes nothing.
const READING: Duration = Duration::from_secs(3);

/// What the database has left of a sale, and who has the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stock {
    /// Which sale.
    pub sale: i64,
    /// How many units can be reserved.
    pub left: i64,
    /// Who has an order, or had one that expired: they are to hear the same again.
    pub buyers: Vec<String>,
}

/// A task that keeps a hint true; it ends when this is dropped.
#[derive(Debug)]
pub struct Reconciler {
    task: JoinHandle<()>,
}

impl Reconciler {
    /// Starts with a round at once; `truth` reads the sales that are on, from the database.
    ///
    /// A sale that is not among them is left alone, and its counter dies within ten seconds.
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
