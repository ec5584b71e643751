//! The shop as the harness sees it: its books, read from the database, and its links.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use harness::sale::{Books, Entry, Ledger, Line, Links, Tally};

use crate::database::{Database, Dialect, Fault, Statement};
use crate::link::Signer;
use crate::sale::NewSale;

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
