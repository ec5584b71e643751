//! Payments for reservations: in time, and once.
//!
//! Of a payment and the expiry of the same order exactly one succeeds. A payment requires that the reservation has not
//! ended, an expiry that it has, both by the database's clock, and both need the row of the order.

use sqlx::{AnyConnection, Row};
use tokio::time::timeout;

use crate::database::{Database, Dialect, Fault, Statement, Tries, abandon};

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
    let mut tries = Tries::default();
    loop {
        let done = pay_once(database, order, user).await;
        if !tries.again(&done).await {
            return done;
        }
    }
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
    let dialect = database.dialect();
    // A repeated payment costs one query, and locks nothing.
    if let Some(cents) = charged(connection, dialect, order, user).await? {
        return Ok(Payment::Paid { cents, again: true });
    }
    let mut work = database.begin(connection).await?;
    let paid = sqlx::query(PAY.text(dialect)).bind(order).bind(user).execute(work.connection()).await?;
    let is_paid = paid.rows_affected() == 1;
    if is_paid {
        sqlx::query(CHARGE.text(dialect)).bind(order).execute(work.connection()).await?;
    }
    if let Some(cents) = charged(work.connection(), dialect, order, user).await? {
        work.commit().await?;
        return Ok(Payment::Paid { cents, again: !is_paid });
    }
    let known = sqlx::query(KNOWN.text(dialect)).bind(order).bind(user).bind(order).bind(user);
    let known = known.fetch_optional(work.connection()).await?;
    work.give_up().await;
    Ok(if known.is_some() { Payment::Expired } else { Payment::UnknownOrder })
}

/// Returns the amount charged for an order of this user, if it is paid.
async fn charged(
    connection: &mut AnyConnection,
    dialect: Dialect,
    order: &str,
    user: &str,
) -> Result<Option<i64>, Fault> {
    let row = sqlx::query(CHARGED.text(dialect)).bind(order).bind(user).fetch_optional(connection).await?;
    Ok(row.map(|row| row.try_get("cents")).transpose()?)
}
