//! Transactions, and retries where they are harmless.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use sqlx::{Any, AnyConnection, Transaction};
use tokio::sync::OwnedSemaphorePermit;

use super::fault::Fault;

/// The maximum number of tries while there are conflicts with other transactions.
const MOST: u32 = 20;

/// The maximum number of tries while the database cannot be reached.
const MOST_IN_VAIN: u32 = 2;

/// A counter of tries.
#[derive(Debug, Default)]
pub(crate) struct Tries(u32);

impl Tries {
    /// Pauses and returns true if a retry is useful.
    pub(crate) async fn again<T: Sync>(&mut self, done: &Result<T, Fault>) -> bool {
        self.0 += 1;
        let most = match done {
            Err(fault) if fault.is_in_the_way() => MOST,
            Err(fault) if fault.is_unreachable() => MOST_IN_VAIN,
            _ => return false,
        };
        if self.0 < most {
            // The backoff grows with each try, with jitter against the other transactions of the conflict.
            tokio::time::sleep(Duration::from_micros(random_up_to(1_000 * u64::from(self.0)))).await;
        }
        self.0 < most
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
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_reached_is_tried_twice_and_what_does_not_fit_once() {
        let unreachable = Err::<(), _>(Fault::from(sqlx::Error::PoolTimedOut));
        let mut tries = Tries::default();
        assert!(tries.again(&unreachable).await);
        assert!(!tries.again(&unreachable).await);
        assert!(!Tries::default().again(&Err::<(), _>(Fault::unfit("x"))).await);
        assert!(!Tries::default().again(&Ok(())).await);
    }
}
