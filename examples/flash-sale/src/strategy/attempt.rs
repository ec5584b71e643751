//! One attempt by a safe strategy: an order and a piece of the stock, both or neither.

use sqlx::AnyConnection;
use tokio::time::timeout;

use super::Strategy;
use super::seen::Seen;
use crate::database::{Database, Dialect, Fault, Statement, Work, abandon};
use crate::order;
use crate::outcome::{Outcome, Prospect, Wish};

static LOCK: Statement = Statement::new("SELECT id FROM sales WHERE id = ? FOR UPDATE");

/// Looks what can be said to a wish without taking anything, and locks nothing.
pub(crate) async fn look(database: &Database, wish: &Wish<'_>) -> Result<Prospect, Fault> {
    let mut connection = database.connection().await?;
    let looking = Seen::of(&mut connection, database.dialect(), wish);
    let seen = timeout(database.patience(), looking).await;
    let Some(seen) = seen.unwrap_or_else(|_| Err(abandon(connection)))? else {
        return Ok(Prospect::Settled(Outcome::UnknownSale));
    };
    Ok(seen.verdict(wish).map_or(Prospect::Open { left: seen.available }, Prospect::Settled))
}

/// Tries once, on one connection.
pub(crate) async fn attempt(
    database: &Database,
    wish: &Wish<'_>,
    strategy: Strategy,
) -> Result<Outcome, Fault> {
    let mut connection = database.connection().await?;
    let done = timeout(database.patience(), attempt_on(&mut connection, database, wish, strategy)).await;
    done.unwrap_or_else(|_| Err(abandon(connection)))
}

async fn attempt_on(
    connection: &mut AnyConnection,
    database: &Database,
    wish: &Wish<'_>,
    strategy: Strategy,
) -> Result<Outcome, Fault> {
    let dialect = database.dialect();
    if strategy == Strategy::Pessimistic {
        let mut work = database.begin(connection).await?;
        let seen = lock_and_look(&mut work, dialect, wish).await?;
        let Some(seen) = seen else { return Ok(Outcome::UnknownSale) };
        let taken = take(work, dialect, (wish, strategy), &seen).await?;
        return settled(taken, connection, dialect, wish).await;
    }
    let seen = Seen::of(connection, dialect, wish).await?;
    let Some(seen) = seen else { return Ok(Outcome::UnknownSale) };
    if let Some(outcome) = seen.verdict(wish) {
        return Ok(outcome);
    }
    let work = database.begin(connection).await?;
    let taken = take(work, dialect, (wish, strategy), &seen).await?;
    settled(taken, connection, dialect, wish).await
}

/// What came of the transaction.
enum Taken {
    /// This: a piece, or nothing for a reason that was seen.
    Known(Outcome),
    /// Nothing: it was not any more as it had been seen.
    Missed,
}

/// From now on nobody else changes the sale.
async fn lock_and_look(
    work: &mut Work<'_>,
    dialect: Dialect,
    wish: &Wish<'_>,
) -> Result<Option<Seen>, Fault> {
    // A transaction of SQLite that will write has locked everything already.
    if dialect != Dialect::Sqlite {
        let lock = sqlx::query(LOCK.text(dialect)).bind(wish.sale);
        lock.fetch_optional(work.connection()).await?;
    }
    Seen::of(work.connection(), dialect, wish).await
}

async fn take(
    mut work: Work<'_>,
    dialect: Dialect,
    (wish, strategy): (&Wish<'_>, Strategy),
    seen: &Seen,
) -> Result<Taken, Fault> {
    if let Some(outcome) = seen.verdict(wish) {
        work.give_up().await;
        return Ok(Taken::Known(outcome));
    }
    let order = order::new_number();
    let named = (order.as_str(), seen.pay_within);
    let is_taken = match order::insert(work.connection(), dialect, (wish, strategy), named).await {
        Ok(()) => deduct(&mut work, dialect, (wish, strategy), seen).await,
        // The same buyer was here at the same time.
        Err(fault) if fault.is_twice() => Ok(false),
        Err(fault) => Err(fault),
    };
    if let Ok(true) = is_taken {
        work.commit().await?;
        let left = (seen.available - 1).max(0);
        return Ok(Taken::Known(Outcome::Reserved {
            order,
            pay_within: seen.pay_within,
            left,
            replayed: false,
        }));
    }
    work.give_up().await;
    is_taken.map(|_| Taken::Missed)
}

/// Takes a piece, if it is still as it was seen.
async fn deduct(
    work: &mut Work<'_>,
    dialect: Dialect,
    (wish, strategy): (&Wish<'_>, Strategy),
    seen: &Seen,
) -> Result<bool, Fault> {
    let taking = sqlx::query(strategy.taking().text(dialect)).bind(wish.sale);
    let taking = match strategy {
        Strategy::Value => taking.bind(seen.available),
        Strategy::Version => taking.bind(seen.version),
        _ => taking,
    };
    let taking = taking.bind(wish.user).bind(wish.key);
    Ok(taking.execute(work.connection()).await?.rows_affected() == 1)
}

/// Says what came of it; where nothing was taken, looks again why. If a piece is left, somebody was faster.
async fn settled(
    taken: Taken,
    connection: &mut AnyConnection,
    dialect: Dialect,
    wish: &Wish<'_>,
) -> Result<Outcome, Fault> {
    match taken {
        Taken::Known(outcome) => Ok(outcome),
        Taken::Missed => {
            let seen = Seen::of(connection, dialect, wish).await?;
            let Some(seen) = seen else { return Ok(Outcome::UnknownSale) };
            Ok(seen.verdict(wish).unwrap_or(Outcome::Conflict { left: seen.available }))
        }
    }
}

static WRITE: Statement =
    Statement::new("UPDATE sales SET available = ?, version = version + 1 WHERE id = ?");

/// Reads, then writes: **sells more than there is**.
///
/// Between the two, others read the same number; each of them writes one less than that, and each has sold one.
/// Nothing is slowed down to make it happen. It is kept to prove that the tests would see it.
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
