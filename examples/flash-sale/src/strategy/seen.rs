//! A sale as one buyer sees it: its stock, its times, and the buyer's own orders.

use sqlx::{AnyConnection, FromRow};

use crate::database::{Fault, Statement};
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
#[derive(Debug, Default, FromRow)]
pub(super) struct Seen {
    pub(super) available: i64,
    pub(super) version: i64,
    pub(super) pay_within: i64,
    opens_at: i64,
    closes_at: i64,
    now_at: i64,
    /// The order of this buyer; none of its columns is null if it is there.
    order_id: Option<String>,
    order_key: Option<String>,
    order_state: Option<String>,
    order_expires_at: Option<i64>,
    /// The sale for which this key was used.
    key_sale: Option<i64>,
    /// The order of this key that expired.
    returned: Option<String>,
    /// The number of reservations of this sale that the buyer let expire, and the time of the last return.
    missed: i64,
    missed_at: Option<i64>,
}

impl Seen {
    /// Reads the state, and locks nothing.
    pub(super) async fn of(
        connection: &mut AnyConnection,
        Wish { sale, user, key }: &Wish<'_>,
    ) -> Result<Option<Seen>, Fault> {
        let look = LOOK.rows(&*connection).bind(*user).bind(*user).bind(*user).bind(*user).bind(*key);
        Ok(look.bind(*user).bind(*key).bind(*sale).fetch_optional(connection).await?)
    }

    /// Returns the outcome if no piece is to be taken; `None` if one may be taken.
    ///
    /// Earlier replies to this buyer come first, so that the same key gets the same reply even after all is sold.
    pub(super) fn verdict(&self, wish: &Wish<'_>) -> Option<Outcome> {
        if self.returned.is_some() {
            return Some(Outcome::Expired);
        }
        if let Some(order) = self.order_id.clone() {
            let pay_within = (self.order_expires_at? - self.now_at).max(0);
            if self.order_key.as_deref() == Some(wish.key) {
                return Some(Outcome::Reserved { order, pay_within, left: self.available, replayed: true });
            }
            let is_paid = self.order_state.as_deref() == Some("paid");
            return Some(Outcome::AlreadyBought { order, pay_within: (!is_paid).then_some(pay_within) });
        }
        if let Some(sale) = self.key_sale.filter(|sale| *sale != wish.sale) {
            return Some(Outcome::KeyUsed { sale });
        }
        if self.now_at < self.opens_at {
            return Some(Outcome::NotOpen { opens_in: self.opens_at - self.now_at });
        }
        if self.now_at >= self.closes_at {
            return Some(Outcome::Over);
        }
        if self.available <= 0 {
            return Some(Outcome::SoldOut);
        }
        let wait = self.pause_until()? - self.now_at;
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
            pay_within: 100,
            closes_at: i64::MAX,
            now_at: now,
            missed,
            missed_at: (missed > 0).then_some(1000),
            ..Seen::default()
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
