//! One attempt by a safe strategy: an order and a piece of the stock, both or neither.

use sqlx::AnyConnection;
use tokio::time::timeout;

use super::Strategy;
use super::seen::Seen;
use crate::database::{Database, Dialect, Fault, Statement, Work, abandon};
use crate::order;
use crate::outcome::{Outcome, Prospect, Wish};

static LOCK: Statement = Statement::new("SELECT id FROM sales WHERE id = ? FOR UPDATE");

/// Reads the outcome of a purchase request as far as possible without taking a piece, and locks nothing.
pub(crate) async fn look(database: &Database, wish: &Wish<'_>) -> Result<Prospect, Fault> {
    let mut connection = database.connection().await?;
    let looking = Seen::of(&mut connection, database.dialect(), wish);
    let seen = timeout(database.timeout(), looking).await;
    let Some(seen) = seen.unwrap_or_else(|_| Err(abandon(connection)))? else {
        return Ok(Prospect::Settled(Outcome::UnknownSale));
    };
    Ok(seen.verdict(wish).map_or(Prospect::Open { left: seen.available }, Prospect::Settled))
}

/// Makes one attempt, on one connection.
pub(crate) async fn attempt(
    database: &Database,
    wish: &Wish<'_>,
    strategy: Strategy,
) -> Result<Outcome, Fault> {
    let mut connection = database.connection().await?;
    let done = timeout(database.timeout(), attempt_on(&mut connection, database, wish, strategy)).await;
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

/// The result of the transaction.
enum Taken {
    /// The outcome: a piece, or none for a known reason.
    Known(Outcome),
    /// No piece: the state had changed since it was read.
    Missed,
}

/// Locks the sale, so that no other transaction changes it, and reads it.
async fn lock_and_look(
    work: &mut Work<'_>,
    dialect: Dialect,
    wish: &Wish<'_>,
) -> Result<Option<Seen>, Fault> {
    // A writing transaction of SQLite has locked the whole database already.
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
        // The same buyer made another request at the same time.
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

/// Takes a piece, if the state is still as it was read.
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

/// Returns the outcome. If nothing was taken, reads the reason; if a piece is left, another request was faster.
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

/// Reads, then writes: **oversells**.
///
/// Between the two, other requests read the same number. Each of them writes one less than that, and each has sold one.
/// No delay is added to provoke it. It proves that the tests would detect overselling.
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
        // The piece that was taken from the stock is lost.
        Err(fault) if fault.is_twice() => Ok(Outcome::Conflict { left }),
        Err(fault) => Err(fault),
    }
}
