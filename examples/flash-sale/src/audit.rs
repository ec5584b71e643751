//! The audit of the books: the invariants, as queries of the database.
//!
//! The queries share nothing with the code that sells. Each reads one moment, so they may run while the shop sells. For
//! the harness, the books are also read row by row.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use harness::sale::{Books, Entry, Ledger, Line, Links, Tally};
use serde::Serialize;

use crate::database::{Database, Dialect, Fault, Statement};
use crate::link::Signer;
use crate::sale::NewSale;

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

    /// Returns all users who have an order of a sale, or had one that expired.
    pub async fn buyers(&self, sale: i64) -> Result<Vec<String>, Fault> {
        Ok(BUYERS.column(self.dialect()).bind(sale).bind(sale).fetch_all(self.pool()).await?)
    }
}

static ORDERS: Statement = Statement::new(
    "SELECT o.id, o.user_id, o.request_key, o.state, p.cents
     FROM orders o LEFT JOIN payments p ON p.order_id = o.id WHERE o.sale_id = ?",
);

static RETURNS: Statement = Statement::new(
    "SELECT r.order_id AS id, r.user_id, r.request_key, 'returned' AS state, p.cents
     FROM returns r LEFT JOIN payments p ON p.order_id = r.order_id WHERE r.sale_id = ?",
);

static EXPIRES_AT: Statement = Statement::new("SELECT expires_at FROM orders WHERE id = ?");

static PAID_AT_THE_END: Statement = Statement::new(
    "SELECT count(*) AS paid FROM orders WHERE sale_id = ? AND state = 'paid' AND paid_at >= expires_at - ?",
);

impl Ledger for Database {
    async fn create_sale(&self, stock: i64, pay_within: Duration) -> Result<(i64, i64), String> {
        let sale =
            NewSale { pay_within, lasts: pay_within.max(NewSale::of(stock).lasts), ..NewSale::of(stock) };
        let id = self.create_sale(&sale).await.map_err(said)?;
        Ok((id, sale.price_cents))
    }

    async fn now(&self) -> Result<i64, String> {
        self.now().await.map_err(said)
    }

    async fn tally(&self, sale: i64) -> Result<Tally, String> {
        let tally = self.tally(sale).await.map_err(said)?;
        tally.ok_or_else(|| format!("sale {sale} is not in the books"))
    }

    async fn books(&self, sale: i64) -> Result<Books, String> {
        read(self, sale).await.map_err(said)
    }

    async fn audit(&self) -> Result<Vec<String>, String> {
        let findings = self.audit().await.map_err(said)?;
        Ok(findings
            .iter()
            .map(|finding| format!("audit: {} ({} rows)", finding.wrong, finding.rows))
            .collect())
    }

    async fn version(&self) -> Result<String, String> {
        let words = match self.dialect() {
            Dialect::Sqlite => "SELECT sqlite_version() AS version",
            Dialect::Postgres => "SELECT current_setting('server_version') AS version",
            Dialect::MariaDb => "SELECT CAST(version() AS CHAR) AS version",
        };
        let version: String = sqlx::query_scalar(words).fetch_one(self.pool()).await.map_err(said)?;
        Ok(format!("{} {version}", self.dialect()))
    }

    fn links(&self, secret: &str) -> Arc<dyn Links> {
        Arc::new(Signer::new(secret))
    }
}

impl Links for Signer {
    fn buy_url(&self, sale: i64, user: &str, until: i64) -> String {
        self.buy_url(sale, user, until)
    }

    fn pay_url(&self, order: &str, user: &str) -> String {
        self.pay_url(order, user)
    }
}

async fn read(database: &Database, sale: i64) -> Result<Books, Fault> {
    let found = database.sale(sale).await?;
    let found = found.ok_or_else(|| Fault::unfit(format!("sale {sale} is not in the books")))?;
    let mut lines = HashMap::new();
    for statement in [&ORDERS, &RETURNS] {
        let rows = statement.rows(database.dialect()).bind(sale).fetch_all(database.pool()).await?;
        for (order, user, key, state, cents) in rows {
            let entry = match (String::as_str(&state), cents) {
                ("reserved", None) => Entry::Reserved,
                ("paid", Some(cents)) => Entry::Paid { cents },
                ("returned", None) => Entry::Returned,
                _ => Entry::Wrong,
            };
            // An order in both tables is a finding of the audit.
            lines.insert(order, Line { user, key, entry });
        }
    }
    Ok(Books { stock: found.stock, available: found.available, price_cents: found.price_cents, lines })
}

fn said(fault: impl std::fmt::Display) -> String {
    fault.to_string()
}

/// Returns the end of a reservation, by the database's clock; `None` if there is no such order any more.
pub async fn expires_at(database: &Database, order: &str) -> Result<Option<i64>, Fault> {
    Ok(EXPIRES_AT.column(database.dialect()).bind(order).fetch_optional(database.pool()).await?)
}

/// Returns the number of orders of a sale that were paid within this many milliseconds before their end.
pub async fn paid_at_the_end(database: &Database, sale: i64, within: i64) -> Result<i64, Fault> {
    let paid = PAID_AT_THE_END.column(database.dialect()).bind(sale).bind(within);
    Ok(paid.fetch_one(database.pool()).await?)
}
