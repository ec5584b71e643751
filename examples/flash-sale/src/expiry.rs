//! Expiry of reservations that were not paid in time: each piece is returned once.
//!
//! One transaction turns the order into a return and increments the stock. Several shops may do it at the same time on
//! one database: each skips the rows that another one has locked.

use sqlx::{AnyConnection, Row};
use tokio::time::timeout;

use crate::database::{Database, Dialect, Fault, Statement, Tries, abandon};

/// The maximum number of returns at a time: the row of the sale is locked meanwhile.
const AT_A_TIME: u16 = 100;

static SALES: Statement = Statement::new(
    "SELECT DISTINCT sale_id FROM orders WHERE state = 'reserved' AND expires_at <= {now} ORDER BY sale_id",
);

static OVER: Statement = Statement::new(
    "SELECT id FROM orders WHERE sale_id = ? AND state = 'reserved' AND expires_at <= {now}
     ORDER BY expires_at, id LIMIT ? {skip}",
);

static RETURN: Statement = Statement::new(
    "INSERT INTO returns (order_id, sale_id, user_id, request_key, at)
     SELECT id, sale_id, user_id, request_key, {now} FROM orders WHERE id = ? AND state = 'reserved'",
);

static REMOVE: Statement = Statement::new("DELETE FROM orders WHERE id = ? AND state = 'reserved'");

static PUT_BACK: Statement =
    Statement::new("UPDATE sales SET available = available + ?, version = version + 1 WHERE id = ?");

/// Puts expired reservations back into the stock, and returns their number. A sale with wrong books does not stop the
/// others.
pub(crate) async fn expire(database: &Database) -> Result<u64, Fault> {
    let rows = sqlx::query(SALES.text(database.dialect())).fetch_all(database.pool()).await?;
    let (mut all, mut failed) = (0, None);
    for row in rows {
        let sale = row.try_get("sale_id")?;
        match expire_of(database, sale).await {
            Ok(pieces) => all += pieces,
            Err(fault) => failed = Some(fault),
        }
    }
    failed.map_or(Ok(all), Err)
}

async fn expire_of(database: &Database, sale: i64) -> Result<u64, Fault> {
    let (mut all, mut tries) = (0, Tries::default());
    loop {
        let done = some_of(database, sale).await;
        if tries.again(&done).await {
            continue;
        }
        let returned = done?;
        all += returned as u64;
        if returned < usize::from(AT_A_TIME) {
            return Ok(all);
        }
        tries = Tries::default();
    }
}

async fn some_of(database: &Database, sale: i64) -> Result<usize, Fault> {
    let mut connection = database.connection().await?;
    let done = timeout(database.timeout(), some_on(&mut connection, database, sale)).await;
    done.unwrap_or_else(|_| Err(abandon(connection)))
}

async fn some_on(connection: &mut AnyConnection, database: &Database, sale: i64) -> Result<usize, Fault> {
    let dialect = database.dialect();
    let mut work = database.begin(connection).await?;
    let over = sqlx::query(OVER.text(dialect)).bind(sale).bind(i64::from(AT_A_TIME));
    let rows = over.fetch_all(work.connection()).await?;
    let mut pieces = 0_i64;
    for row in &rows {
        let order: String = row.try_get("id")?;
        pieces += i64::from(take_back(work.connection(), dialect, &order).await?);
    }
    if pieces > 0 {
        let put_back = sqlx::query(PUT_BACK.text(dialect)).bind(pieces).bind(sale);
        put_back.execute(work.connection()).await?;
    }
    work.commit().await?;
    Ok(rows.len())
}

async fn take_back(connection: &mut AnyConnection, dialect: Dialect, order: &str) -> Result<bool, Fault> {
    sqlx::query(RETURN.text(dialect)).bind(order).execute(&mut *connection).await?;
    let removed = sqlx::query(REMOVE.text(dialect)).bind(order).execute(connection).await?;
    Ok(removed.rows_affected() == 1)
}
