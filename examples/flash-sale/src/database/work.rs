//! What is done as a whole or not at all.

use sqlx::{Any, AnyConnection, Transaction};
use tokio::sync::OwnedSemaphorePermit;

use super::fault::Fault;

/// A transaction. Dropped, it has done nothing.
pub(crate) struct Work<'c> {
    transaction: Transaction<'c, Any>,
    /// Held until the transaction is over.
    _turn: Option<OwnedSemaphorePermit>,
}

impl<'c> Work<'c> {
    pub(super) fn new(transaction: Transaction<'c, Any>, turn: Option<OwnedSemaphorePermit>) -> Work<'c> {
        Work { transaction, _turn: turn }
    }

    /// Where its statements go.
    pub(crate) fn connection(&mut self) -> &mut AnyConnection {
        &mut self.transaction
    }

    /// Lets it be done. If the answer is lost, nobody knows whether it was.
    pub(crate) async fn commit(self) -> Result<(), Fault> {
        Ok(self.transaction.commit().await?)
    }

    /// Lets it not be done; what cannot be told any more is not done either.
    pub(crate) async fn give_up(self) {
        let _ = self.transaction.rollback().await;
    }
}
