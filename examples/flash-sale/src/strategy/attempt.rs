//! One attempt by a strategy: an order and a piece of the stock, both or neither.

use sqlx::AnyConnection;
use tokio::time::timeout;

use super::Strategy;
use super::seen::Seen;
use crate::database::{Database, Dialect, Fault, Statement, Work, abandon, retry};
use crate::link::new_number;
use crate::outcome::{Outcome, Prospect, Wish};

static LOCK: Statement = Statement::new("SELECT id FROM sales WHERE id = ? FOR UPDATE");

static INSERT: Statement = Statement::new(
    "INSERT INTO orders (id, sale_id, user_id, request_key, state, strategy, reserved_at, expires_at)
     VALUES (?, ?, ?, ?, 'reserved', ?, {now}, {now} + ?)",
);

static WRITE: Statement =
    Statement::new("UPDATE sales SET available = ?, version = version + 1 WHERE id = ?");

/// Reads the outcome of a purchase request as far as possible without taking a piece, and locks nothing.
pub(crate) async fn look(database: &Database, wish: &Wish<'_>) -> Result<Prospect, Fault> {
    let mut connection = database.connection().await?;
    let seen = timeout(database.timeout(), Seen::of(&mut connection, wish)).await;
    let Some(seen) = seen.unwrap_or_else(|_| Err(abandon(connection)))? else {
        return Ok(Prospect::Settled(Outcome::UnknownSale));
    };
    Ok(seen.verdict(wish).map_or(Prospect::Open { left: seen.available }, Prospect::Settled))
}

/// Takes a piece for a purchase request.
pub(crate) async fn attempt(
    database: &Database,
    wish: &Wish<'_>,
    strategy: Strategy,
) -> Result<Outcome, Fault> {
    if strategy == Strategy::Naive {
        // A retry after half of the attempt would be wrong in another way than intended.
        return attempt_naively(&mut *database.connection().await?, wish).await;
    }
    retry(|| attempt_once(database, wish, strategy)).await
}

async fn attempt_once(database: &Database, wish: &Wish<'_>, strategy: Strategy) -> Result<Outcome, Fault> {
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
    let (work, seen) = if strategy == Strategy::Pessimistic {
        let mut work = database.begin(connection).await?;
        let Some(seen) = lock_and_look(&mut work, wish).await? else { return Ok(Outcome::UnknownSale) };
        (work, seen)
    } else {
        let Some(seen) = Seen::of(connection, wish).await? else { return Ok(Outcome::UnknownSale) };
        if let Some(outcome) = seen.verdict(wish) {
            return Ok(outcome);
        }
        (database.begin(connection).await?, seen)
    };
    if let Some(outcome) = take(work, wish, strategy, &seen).await? {
        return Ok(outcome);
    }
    // The state had changed since it was read. If a piece is still left, another request was faster.
    let Some(seen) = Seen::of(connection, wish).await? else { return Ok(Outcome::UnknownSale) };
    Ok(seen.verdict(wish).unwrap_or(Outcome::Conflict { left: seen.available }))
}

/// Locks the sale, so that no other transaction changes it, and reads it.
async fn lock_and_look(work: &mut Work<'_>, wish: &Wish<'_>) -> Result<Option<Seen>, Fault> {
    let dialect = Dialect::from(&*work.connection());
    // A writing transaction of SQLite has locked the whole database already.
    if dialect != Dialect::Sqlite {
        LOCK.query(dialect).bind(wish.sale).fetch_optional(work.connection()).await?;
    }
    Seen::of(work.connection(), wish).await
}

/// Returns the outcome: a piece, or none for a known reason; `None` if the state is not as it was read.
async fn take(
    mut work: Work<'_>,
    wish: &Wish<'_>,
    strategy: Strategy,
    seen: &Seen,
) -> Result<Option<Outcome>, Fault> {
    if let Some(outcome) = seen.verdict(wish) {
        work.give_up().await;
        return Ok(Some(outcome));
    }
    let (order, pay_within) = (new_number(), seen.pay_within);
    let is_taken = match insert(work.connection(), wish, strategy, (&order, pay_within)).await {
        Ok(()) => deduct(work.connection(), wish, strategy, seen).await,
        // The same buyer made another request at the same time.
        Err(fault) if fault.is_twice() => Ok(false),
        Err(fault) => Err(fault),
    };
    if let Ok(true) = is_taken {
        work.commit().await?;
        let left = (seen.available - 1).max(0);
        return Ok(Some(Outcome::Reserved { order, pay_within, left, replayed: false }));
    }
    work.give_up().await;
    is_taken.map(|_| None)
}

/// Inserts an order with this number and this time to pay.
async fn insert(
    connection: &mut AnyConnection,
    wish: &Wish<'_>,
    strategy: Strategy,
    (order, pay_within): (&str, i64),
) -> Result<(), Fault> {
    let order = INSERT.query(&*connection).bind(order).bind(wish.sale).bind(wish.user).bind(wish.key);
    order.bind(strategy.name()).bind(pay_within).execute(connection).await?;
    Ok(())
}

/// Takes a piece, if the state is still as it was read.
async fn deduct(
    connection: &mut AnyConnection,
    wish: &Wish<'_>,
    strategy: Strategy,
    seen: &Seen,
) -> Result<bool, Fault> {
    let taking = strategy.taking().query(&*connection).bind(wish.sale);
    let taking = match strategy {
        Strategy::Value => taking.bind(seen.available),
        Strategy::Version => taking.bind(seen.version),
        _ => taking,
    };
    let taken = taking.bind(wish.user).bind(wish.key).execute(connection).await?;
    Ok(taken.rows_affected() == 1)
}

/// Reads, then writes: **oversells**.
///
/// Between the two, other requests read the same number. Each of them writes one less than that, and each has sold one.
/// No delay is added to provoke it. It proves that the tests would detect overselling.
async fn attempt_naively(connection: &mut AnyConnection, wish: &Wish<'_>) -> Result<Outcome, Fault> {
    let Some(seen) = Seen::of(connection, wish).await? else { return Ok(Outcome::UnknownSale) };
    if let Some(outcome) = seen.verdict(wish) {
        return Ok(outcome);
    }
    let left = seen.available - 1;
    WRITE.query(&*connection).bind(left).bind(wish.sale).execute(&mut *connection).await?;
    let (order, pay_within) = (new_number(), seen.pay_within);
    match insert(connection, wish, Strategy::Naive, (&order, pay_within)).await {
        Ok(()) => Ok(Outcome::Reserved { order, pay_within, left, replayed: false }),
        // The piece that was taken from the stock is lost.
        Err(fault) if fault.is_twice() => Ok(Outcome::Conflict { left }),
        Err(fault) => Err(fault),
    }
}
