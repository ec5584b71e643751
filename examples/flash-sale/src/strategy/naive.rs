//! Reads, then writes: **sells more than there is**.
//!
//! Between the two, others read the same number; each of them writes one less than that, and each has sold one.
//! Nothing is slowed down to make it happen. It is kept to prove that the tests would see it.

use crate::database::{Database, Fault, Statement};
use crate::order;
use crate::outcome::{Outcome, Wish};

use super::Strategy;
use super::seen::Seen;

static WRITE: Statement =
    Statement::new("UPDATE sales SET available = ?, version = version + 1 WHERE id = ?");

/// Tries once.
pub(crate) async fn attempt_naively(database: &Database, wish: &Wish<'_>) -> Result<Outcome, Fault> {
    let dialect = database.dialect();
    let mut connection = database.connection().await?;
    let seen = Seen::of(&mut connection, dialect, wish).await?;
    let Some(seen) = seen else { return Ok(Outcome::UnknownSale) };
    if let Some(outcome) = seen.verdict(wish) {
        return Ok(outcome);
    }
    let left = seen.available - 1;
    sqlx::query(WRITE.text(dialect)).bind(left).bind(wish.sale).execute(&mut *connection).await?;
    let order = order::new_number();
    let named = (order.as_str(), seen.pay_within);
    let inserted = order::insert(&mut connection, dialect, (wish, Strategy::Naive), named);
    match inserted.await {
        Ok(()) => Ok(Outcome::Reserved { order, pay_within: seen.pay_within, left, replayed: false }),
        // What it has taken from the stock is lost.
        Err(fault) if fault.is_twice() => Ok(Outcome::Conflict { left }),
        Err(fault) => Err(fault),
    }
}
