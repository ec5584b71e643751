//! The audit of the books: the invariants, as queries of the database.
//!
//! The queries share nothing with the code that sells. Each reads one moment, so they may run while the shop sells.

use harness::sale::Tally;
use serde::Serialize;

use crate::database::{Database, Fault, Statement};

/// The invariants, and for each a query that must return no rows. The databases understand the same text.
const QUESTIONS: [(&str, &str); 10] = [
    (
        "pieces sold, reserved and available are not the stock",
        "SELECT s.id AS about FROM sales s WHERE s.stock <>
         s.available + (SELECT count(*) FROM orders o WHERE o.sale_id = s.id)",
    ),
    (
        "less than nothing or more than the stock is available",
        "SELECT id AS about FROM sales WHERE available < 0 OR available > stock",
    ),
    (
        "a buyer has two orders of one sale",
        "SELECT max(sale_id) AS about FROM orders GROUP BY sale_id, user_id HAVING count(*) > 1",
    ),
    (
        "an order belongs to no sale",
        "SELECT o.sale_id AS about FROM orders o LEFT JOIN sales s ON s.id = o.sale_id WHERE s.id IS NULL",
    ),
    (
        "an order was returned and is there as well",
        "SELECT o.sale_id AS about FROM orders o JOIN returns r ON r.order_id = o.id",
    ),
    (
        "a key has an order, and one that was returned",
        "SELECT o.sale_id AS about FROM orders o
         JOIN returns r ON r.user_id = o.user_id AND r.request_key = o.request_key",
    ),
    (
        "an order is paid without a payment of its price",
        "SELECT o.sale_id AS about FROM orders o JOIN sales s ON s.id = o.sale_id
         LEFT JOIN payments p ON p.order_id = o.id
         WHERE o.state = 'paid' AND (p.cents IS NULL OR p.cents <> s.price_cents)",
    ),
    (
        "a payment belongs to no order that is paid",
        "SELECT p.cents AS about FROM payments p LEFT JOIN orders o ON o.id = p.order_id
         WHERE o.state IS NULL OR o.state <> 'paid'",
    ),
    (
        "an order was made while the sale was not open",
        "SELECT o.sale_id AS about FROM orders o JOIN sales s ON s.id = o.sale_id
         WHERE o.reserved_at < s.opens_at OR o.reserved_at >= s.closes_at",
    ),
    (
        "an order was paid after its time",
        "SELECT sale_id AS about FROM orders WHERE state = 'paid' AND (paid_at IS NULL OR paid_at >= expires_at)",
    ),
];

static TALLY: Statement = Statement::new(
    "SELECT s.stock, s.available,
            (SELECT count(*) FROM orders o WHERE o.sale_id = s.id) AS live,
            (SELECT count(*) FROM orders o WHERE o.sale_id = s.id AND o.state = 'paid') AS paid,
            (SELECT count(*) FROM returns r WHERE r.sale_id = s.id) AS returned,
            (SELECT count(*) FROM orders o WHERE o.sale_id = s.id)
                - (SELECT count(DISTINCT o.user_id) FROM orders o WHERE o.sale_id = s.id) AS duplicates,
            (SELECT max(o.reserved_at) FROM orders o WHERE o.sale_id = s.id) AS last_at
     FROM sales s WHERE s.id = ?",
);

static ORDERS: Statement = Statement::new("SELECT id, user_id FROM orders WHERE sale_id = ?");

static BUYERS: Statement = Statement::new(
    "SELECT user_id FROM orders WHERE sale_id = ? UNION SELECT user_id FROM returns WHERE sale_id = ?",
);

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The violation.
    pub wrong: &'static str,
    /// The number of rows that violate it.
    pub rows: usize,
}

impl Database {
    /// Returns all violated invariants of all sales; none if the books are correct.
    pub async fn audit(&self) -> Result<Vec<Finding>, Fault> {
        let mut findings = Vec::new();
        for (wrong, question) in QUESTIONS {
            let rows = sqlx::query(question).fetch_all(self.pool()).await?.len();
            if rows > 0 {
                findings.push(Finding { wrong, rows });
            }
        }
        Ok(findings)
    }

    /// Returns the distribution of a sale's stock; `None` if there is no such sale.
    pub async fn tally(&self, sale: i64) -> Result<Option<Tally>, Fault> {
        let row = TALLY.rows(self.dialect()).bind(sale).fetch_optional(self.pool()).await?;
        let Some((stock, available, live, paid, returned, duplicates, last_at)) = row else {
            return Ok(None);
        };
        Ok(Some(Tally { stock, available, live, paid, returned, duplicates, last_at }))
    }

    /// Returns the orders of a sale, each with its buyer.
    pub async fn orders(&self, sale: i64) -> Result<Vec<(String, String)>, Fault> {
        Ok(ORDERS.rows(self.dialect()).bind(sale).fetch_all(self.pool()).await?)
    }

    /// Returns all users who have an order of a sale, or had one that expired.
    pub async fn buyers(&self, sale: i64) -> Result<Vec<String>, Fault> {
        Ok(BUYERS.column(self.dialect()).bind(sale).bind(sale).fetch_all(self.pool()).await?)
    }
}
