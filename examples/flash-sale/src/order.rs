//! An order: a piece reserved for a buyer, or sold.

use ring::rand::{SecureRandom, SystemRandom};
use sqlx::AnyConnection;

use crate::database::{Dialect, Fault, Statement};
use crate::outcome::Wish;
use crate::strategy::Strategy;

static INSERT: Statement = Statement::new(
    "INSERT INTO orders (id, sale_id, user_id, request_key, state, strategy, reserved_at, expires_at)
     VALUES (?, ?, ?, ?, 'reserved', ?, {now}, {now} + ?)",
);

/// Returns an unpredictable, unique number.
pub(crate) fn new_number() -> String {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).expect("the system has random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Inserts an order.
pub(crate) async fn insert(
    connection: &mut AnyConnection,
    dialect: Dialect,
    (wish, strategy): (&Wish<'_>, Strategy),
    (order, pay_within): (&str, i64),
) -> Result<(), Fault> {
    sqlx::query(INSERT.text(dialect))
        .bind(order)
        .bind(wish.sale)
        .bind(wish.user)
        .bind(wish.key)
        .bind(strategy.name())
        .bind(pay_within)
        .execute(connection)
        .await?;
    Ok(())
}
