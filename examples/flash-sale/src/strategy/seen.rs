//! A sale as one buyer sees it: what is left, whether it is open, and what this buyer has of it already.

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::database::{Dialect, Fault, Statement};
use crate::outcome::{Outcome, Wish};

static LOOK: Statement = Statement::new(
    "SELECT s.available, s.version, s.opens_at, s.closes_at, s.pay_within, {now} AS now_at,
            o.id AS order_id, o.request_key AS order_key, o.state AS order_state, o.expires_at AS order_expires_at,
            k.sale_id AS key_sale, r.order_id AS returned
     FROM sales s
     LEFT JOIN orders o ON o.sale_id = s.id AND o.user_id = ?
     LEFT JOIN orders k ON k.user_id = ? AND k.request_key = ?
     LEFT JOIN returns r ON r.user_id = ? AND r.request_key = ?
     WHERE s.id = ?",
);

/// What was seen.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) available: i64,
    pub(super) version: i64,
    pub(super) pay_within: i64,
    opens_at: i64,
    closes_at: i64,
    now: i64,
    order: Option<Mine>,
    /// The sale for which this key was used.
    key_sale: Option<i64>,
    is_returned: bool,
}

/// An order that this buyer has.
#[derive(Debug)]
struct Mine {
    id: String,
    key: String,
    is_paid: bool,
    expires_at: i64,
}

impl Seen {
    /// Looks, and locks nothing.
    pub(super) async fn of(
        connection: &mut AnyConnection,
        dialect: Dialect,
        wish: &Wish<'_>,
    ) -> Result<Option<Seen>, Fault> {
        let row = sqlx::query(LOOK.text(dialect))
            .bind(wish.user)
            .bind(wish.user)
            .bind(wish.key)
            .bind(wish.user)
            .bind(wish.key)
            .bind(wish.sale)
            .fetch_optional(connection)
            .await?;
        row.as_ref().map(Seen::read).transpose()
    }

    fn read(row: &AnyRow) -> Result<Seen, Fault> {
        let order = match row.try_get::<Option<String>, _>("order_id")? {
            Some(id) => Some(Mine {
                id,
                key: row.try_get("order_key")?,
                is_paid: row.try_get::<String, _>("order_state")? == "paid",
                expires_at: row.try_get("order_expires_at")?,
            }),
            None => None,
        };
        Ok(Seen {
            available: row.try_get("available")?,
            version: row.try_get("version")?,
            pay_within: row.try_get("pay_within")?,
            opens_at: row.try_get("opens_at")?,
            closes_at: row.try_get("closes_at")?,
            now: row.try_get("now_at")?,
            order,
            key_sale: row.try_get("key_sale")?,
            is_returned: row.try_get::<Option<String>, _>("returned")?.is_some(),
        })
    }

    /// What can be said without taking anything; nothing if a piece may be taken.
    ///
    /// What this buyer was told before comes first, so that the same key gets the same answer also when all is sold.
    pub(super) fn verdict(&self, wish: &Wish<'_>) -> Option<Outcome> {
        if self.is_returned {
            return Some(Outcome::Expired);
        }
        if let Some(order) = &self.order {
            let pay_within = (order.expires_at - self.now).max(0);
            if order.key != wish.key {
                let pay_within = (!order.is_paid).then_some(pay_within);
                return Some(Outcome::AlreadyBought { order: order.id.clone(), pay_within });
            }
            return Some(Outcome::Reserved {
                order: order.id.clone(),
                pay_within,
                left: self.available,
                replayed: true,
            });
        }
        if let Some(sale) = self.key_sale.filter(|sale| *sale != wish.sale) {
            return Some(Outcome::KeyUsed { sale });
        }
        if self.now < self.opens_at {
            return Some(Outcome::NotOpen { opens_in: self.opens_at - self.now });
        }
        if self.now >= self.closes_at {
            return Some(Outcome::Over);
        }
        (self.available <= 0).then_some(Outcome::SoldOut)
    }
}
