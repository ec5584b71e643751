//! The ends of a reservation: a payment in time, or its expiry; each happens once.
//!
//! Of a payment and the expiry of the same order exactly one succeeds. A payment requires that the reservation has not
//! ended, an expiry that it has, both by the database's clock, and both need the row of the order.

use sqlx::AnyConnection;
use tokio::time::timeout;

use crate::database::{Database, Fault, Statement, abandon, retry};

/// The clock is read twice and advances in between: a payment in time is recorded as in time.
static PAY: Statement = Statement::new(
    "UPDATE orders SET state = 'paid', paid_at = {least}({now}, expires_at - 1)
     WHERE id = ? AND user_id = ? AND state = 'reserved' AND {now} < expires_at",
);

static CHARGE: Statement = Statement::new(
    "INSERT INTO payments (order_id, cents, at)
     SELECT o.id, s.price_cents, o.paid_at FROM orders o JOIN sales s ON s.id = o.sale_id WHERE o.id = ?",
);

static CHARGED: Statement = Statement::new(
    "SELECT p.cents FROM payments p JOIN orders o ON o.id = p.order_id WHERE o.id = ? AND o.user_id = ?",
);

static KNOWN: Statement = Statement::new(
    "SELECT 1 AS one FROM orders WHERE id = ? AND user_id = ?
     UNION SELECT 1 AS one FROM returns WHERE order_id = ? AND user_id = ?",
);

/// The outcome of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payment {
    /// The piece is sold.
    Paid {
        /// The amount charged.
        cents: i64,
        /// True if it was paid before.
        again: bool,
    },
    /// The reservation is over, and the piece is or will be returned.
    Expired,
    /// This user has no such order.
    UnknownOrder,
}

/// Pays for an order of this user, unless it is paid already or expired.
pub(crate) async fn pay(database: &Database, order: &str, user: &str) -> Result<Payment, Fault> {
    retry(|| pay_once(database, order, user)).await
}

async fn pay_once(database: &Database, order: &str, user: &str) -> Result<Payment, Fault> {
    let mut connection = database.connection().await?;
    let done = timeout(database.timeout(), pay_on(&mut connection, database, order, user)).await;
    done.unwrap_or_else(|_| Err(abandon(connection)))
}

async fn pay_on(
    connection: &mut AnyConnection,
    database: &Database,
    order: &str,
    user: &str,
) -> Result<Payment, Fault> {
    // A repeated payment costs one query, and locks nothing.
    if let Some(cents) = charged(connection, order, user).await? {
        return Ok(Payment::Paid { cents, again: true });
    }
    let dialect = database.dialect();
    let mut work = database.begin(connection).await?;
    let paid = PAY.query(dialect).bind(order).bind(user).execute(work.connection()).await?;
    let is_paid = paid.rows_affected() == 1;
    if is_paid {
        CHARGE.query(dialect).bind(order).execute(work.connection()).await?;
    }
    if let Some(cents) = charged(work.connection(), order, user).await? {
        work.commit().await?;
        return Ok(Payment::Paid { cents, again: !is_paid });
    }
    let known = KNOWN.query(dialect).bind(order).bind(user).bind(order).bind(user);
    let known = known.fetch_optional(work.connection()).await?;
    work.give_up().await;
    Ok(if known.is_some() { Payment::Expired } else { Payment::UnknownOrder })
}

/// Returns the amount charged for an order of this user, if it is paid.
async fn charged(connection: &mut AnyConnection, order: &str, user: &str) -> Result<Option<i64>, Fault> {
    Ok(CHARGED.column(&*connection).bind(order).bind(user).fetch_optional(connection).await?)
}

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
///
/// One transaction turns orders into returns and increments the stock. Several shops may do it at the same time on one
/// database: each skips the rows that another one has locked.
pub(crate) async fn expire(database: &Database) -> Result<u64, Fault> {
    let sales: Vec<i64> = SALES.column(database.dialect()).fetch_all(database.pool()).await?;
    let (mut all, mut failed) = (0, None);
    for sale in sales {
        match expire_of(database, sale).await {
            Ok(pieces) => all += pieces,
            Err(fault) => failed = Some(fault),
        }
    }
    failed.map_or(Ok(all), Err)
}

async fn expire_of(database: &Database, sale: i64) -> Result<u64, Fault> {
    let mut all = 0;
    loop {
        let returned = retry(|| some_of(database, sale)).await?;
        all += returned as u64;
        if returned < usize::from(AT_A_TIME) {
            return Ok(all);
        }
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
    let over = OVER.column(dialect).bind(sale).bind(i64::from(AT_A_TIME));
    let over: Vec<String> = over.fetch_all(work.connection()).await?;
    let mut pieces = 0_i64;
    for order in &over {
        RETURN.query(dialect).bind(order).execute(work.connection()).await?;
        let removed = REMOVE.query(dialect).bind(order).execute(work.connection()).await?;
        pieces += i64::from(removed.rows_affected() == 1);
    }
    if pieces > 0 {
        PUT_BACK.query(dialect).bind(pieces).bind(sale).execute(work.connection()).await?;
    }
    work.commit().await?;
    Ok(over.len())
}
