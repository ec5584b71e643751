//! A sale as one buyer sees it: its stock, its times, and the buyer's own orders.

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::database::{Dialect, Fault, Statement};
use crate::outcome::{Outcome, Wish};

static LOOK: Statement = Statement::new(
    "SELECT s.available, s.version, s.opens_at, s.closes_at, s.pay_within, {now} AS now_at,
            o.id AS order_id, o.request_key AS order_key, o.state AS order_state, o.expires_at AS order_expires_at,
            k.sale_id AS key_sale, r.order_id AS returned,
            (SELECT count(*) FROM returns m WHERE m.sale_id = s.id AND m.user_id = ?) AS missed,
            (SELECT max(m.at) FROM returns m WHERE m.sale_id = s.id AND m.user_id = ?) AS missed_at
     FROM sales s
     LEFT JOIN orders o ON o.sale_id = s.id AND o.user_id = ?
     LEFT JOIN orders k ON k.user_id = ? AND k.request_key = ?
     LEFT JOIN returns r ON r.user_id = ? AND r.request_key = ?
     WHERE s.id = ?",
);

/// The maximum number of doublings, after which the shortest pause is longer than any sale.
const MOST_DOUBLINGS: u32 = 20;

/// The state of a sale for one purchase request.
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
    /// The number of reservations of this sale that the buyer let expire, and the time of the last return.
    missed: i64,
    missed_at: Option<i64>,
}

/// An order of this buyer.
#[derive(Debug)]
struct Mine {
    id: String,
    key: String,
    is_paid: bool,
    expires_at: i64,
}

impl Seen {
    /// Reads the state, and locks nothing.
    pub(super) async fn of(
        connection: &mut AnyConnection,
        dialect: Dialect,
        wish: &Wish<'_>,
    ) -> Result<Option<Seen>, Fault> {
        let row = sqlx::query(LOOK.text(dialect))
            .bind(wish.user)
            .bind(wish.user)
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
            missed: row.try_get("missed")?,
            missed_at: row.try_get("missed_at")?,
        })
    }

    /// Returns the outcome if no piece is to be taken; `None` if one may be taken.
    ///
    /// Earlier replies to this buyer come first, so that the same key gets the same reply even after all is sold.
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
        if self.available <= 0 {
            return Some(Outcome::SoldOut);
        }
        let wait = self.pause_until()? - self.now;
        (wait > 0).then_some(Outcome::Paused { wait })
    }

    /// Returns the time from which a buyer who let reservations expire may reserve again.
    ///
    /// The first pause is as long as the piece was reserved, and each further one twice as long. A buyer who was late
    /// once loses little, and a buyer who never pays blocks a piece for an ever smaller share of the time.
    fn pause_until(&self) -> Option<i64> {
        let doublings = u32::try_from(self.missed - 1).unwrap_or(0).min(MOST_DOUBLINGS);
        Some(self.missed_at?.saturating_add(self.pay_within.saturating_mul(1 << doublings)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_with_each_reservation_that_expired() {
        let seen = |missed, now| Seen {
            available: 5,
            version: 0,
            pay_within: 100,
            opens_at: 0,
            closes_at: i64::MAX,
            now,
            order: None,
            key_sale: None,
            is_returned: false,
            missed,
            missed_at: (missed > 0).then_some(1000),
        };
        let wish = Wish { sale: 1, user: "ana", key: "k" };
        let verdict = |missed, now| seen(missed, now).verdict(&wish);
        assert_eq!(verdict(0, 1000), None);
        for (missed, pause) in [(1, 100), (2, 200), (3, 400), (21, 100 << 20), (1_000_000, 100 << 20)] {
            assert_eq!(verdict(missed, 1000), Some(Outcome::Paused { wait: pause }), "{missed}");
            assert_eq!(verdict(missed, 999 + pause), Some(Outcome::Paused { wait: 1 }), "{missed}");
            assert_eq!(verdict(missed, 1000 + pause), None, "{missed}");
        }
        // The pause is longer than any sale, and no sum overflows.
        let endless = Seen { pay_within: i64::MAX, ..seen(9, 1000) };
        assert!(matches!(endless.verdict(&wish), Some(Outcome::Paused { .. })));
        let sold_out = Seen { available: 0, ..seen(1, 1000) };
        assert_eq!(sold_out.verdict(&wish), Some(Outcome::SoldOut));
    }
}
