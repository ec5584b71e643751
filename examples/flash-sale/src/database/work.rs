//! Transactions, and retries where they are harmless.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use sqlx::{Any, AnyConnection, Transaction};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;

use super::fault::Fault;

/// The maximum number of tries while there are conflicts with other transactions.
const MOST: u32 = 20;

/// The maximum number of tries while the database cannot be reached.
const MOST_IN_VAIN: u32 = 2;

/// Repeats an operation as long as that is harmless and may help, with pauses.
pub(crate) async fn retry<T, F>(mut operation: impl FnMut() -> F) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    let mut number = 0;
    loop {
        number += 1;
        let done = operation().await;
        let most = match &done {
            Err(fault) if fault.is_in_the_way() => MOST,
            Err(fault) if fault.is_unreachable() => MOST_IN_VAIN,
            _ => return done,
        };
        if number >= most {
            return done;
        }
        // The backoff grows with each try, with jitter against the other transactions of the conflict.
        sleep(Duration::from_micros(random_up_to(1_000 * u64::from(number)))).await;
    }
}

fn random_up_to(most: u64) -> u64 {
    RandomState::new().hash_one(most) % (most + 1)
}

/// A transaction. Dropping it rolls it back.
pub(crate) struct Work<'c> {
    transaction: Transaction<'c, Any>,
    /// The writer's turn, held until the transaction is over.
    _turn: Option<OwnedSemaphorePermit>,
}

impl<'c> Work<'c> {
    pub(super) fn new(transaction: Transaction<'c, Any>, turn: Option<OwnedSemaphorePermit>) -> Work<'c> {
        Work { transaction, _turn: turn }
    }

    /// Returns the connection of its statements.
    pub(crate) fn connection(&mut self) -> &mut AnyConnection {
        &mut self.transaction
    }

    /// Commits. If the reply is lost, the result is unknown.
    pub(crate) async fn commit(self) -> Result<(), Fault> {
        Ok(self.transaction.commit().await?)
    }

    /// Rolls back; if the connection is lost, the database does it.
    pub(crate) async fn give_up(self) {
        let _ = self.transaction.rollback().await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_reached_is_tried_twice_and_what_does_not_fit_once() {
        let tries = async |error: fn() -> Fault| {
            let mut tries = 0;
            let failing = || {
                tries += 1;
                ready(Err::<(), _>(error()))
            };
            assert!(retry(failing).await.is_err());
            tries
        };
        assert_eq!(tries(|| Fault::from(sqlx::Error::PoolTimedOut)).await, 2);
        assert_eq!(tries(|| Fault::unfit("x")).await, 1);
        assert!(retry(|| ready(Ok(()))).await.is_ok());
    }
}
