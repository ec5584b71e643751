//! A sale: so many pieces of one thing, for a while.

use std::time::Duration;

use sqlx::Row;
use sqlx::any::AnyRow;

use crate::database::{Database, Fault, Statement};

static CREATE: Statement = Statement::new(
    "INSERT INTO sales (name, price_cents, stock, available, opens_at, closes_at, pay_within)
     VALUES (?, ?, ?, ?, {now} + ?, {now} + ?, ?) RETURNING id",
);

static ONE: Statement = Statement::new(
    "SELECT id, name, price_cents, stock, available, opens_at, closes_at, pay_within, {now} AS now_at
     FROM sales WHERE id = ?",
);

static LATEST: Statement = Statement::new(
    "SELECT id, name, price_cents, stock, available, opens_at, closes_at, pay_within, {now} AS now_at
     FROM sales ORDER BY id DESC LIMIT ?",
);

/// A sale that is to be.
#[derive(Clone, Debug)]
pub struct NewSale {
    /// What is sold.
    pub name: String,
    /// What one piece costs.
    pub price_cents: i64,
    /// How many pieces there are.
    pub stock: i64,
    /// From now on.
    pub opens_in: Duration,
    /// From the opening on.
    pub lasts: Duration,
    /// How long a piece is reserved.
    pub pay_within: Duration,
}

impl NewSale {
    /// So many pieces, open at once and for an hour, to be paid within two minutes.
    pub fn of(stock: i64) -> NewSale {
        NewSale {
            name: "A thing that everybody wants".to_owned(),
            price_cents: 999,
            stock,
            opens_in: Duration::ZERO,
            lasts: Duration::from_secs(3600),
            pay_within: Duration::from_secs(120),
        }
    }
}

/// A sale as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sale {
    /// Its number.
    pub id: i64,
    /// What is sold.
    pub name: String,
    /// What one piece costs.
    pub price_cents: i64,
    /// How many pieces there were at first.
    pub stock: i64,
    /// How many are neither reserved nor sold.
    pub available: i64,
    /// When it opens, in milliseconds of the database's clock.
    pub opens_at: i64,
    /// From when on nothing is sold any more.
    pub closes_at: i64,
    /// For how many milliseconds a piece is reserved.
    pub pay_within: i64,
    /// When it was seen.
    pub now: i64,
}

impl Sale {
    fn read(row: &AnyRow) -> Result<Sale, Fault> {
        Ok(Sale {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            price_cents: row.try_get("price_cents")?,
            stock: row.try_get("stock")?,
            available: row.try_get("available")?,
            opens_at: row.try_get("opens_at")?,
            closes_at: row.try_get("closes_at")?,
            pay_within: row.try_get("pay_within")?,
            now: row.try_get("now_at")?,
        })
    }
}

impl Database {
    /// Makes a sale, and gives its number.
    pub async fn create_sale(&self, sale: &NewSale) -> Result<i64, Fault> {
        let opens_in = milliseconds(sale.opens_in);
        let row = sqlx::query(CREATE.text(self.dialect()))
            .bind(&sale.name)
            .bind(sale.price_cents)
            .bind(sale.stock)
            .bind(sale.stock)
            .bind(opens_in)
            .bind(opens_in.saturating_add(milliseconds(sale.lasts)))
            .bind(milliseconds(sale.pay_within).max(1))
            .fetch_one(self.pool())
            .await?;
        Ok(row.try_get(0)?)
    }

    /// A sale by its number.
    pub async fn sale(&self, id: i64) -> Result<Option<Sale>, Fault> {
        let row = sqlx::query(ONE.text(self.dialect())).bind(id).fetch_optional(self.pool()).await?;
        row.as_ref().map(Sale::read).transpose()
    }

    /// The sales that were made last, so many at most, the last one first.
    pub async fn latest_sales(&self, at_most: i64) -> Result<Vec<Sale>, Fault> {
        let rows = sqlx::query(LATEST.text(self.dialect())).bind(at_most).fetch_all(self.pool()).await?;
        rows.iter().map(Sale::read).collect()
    }
}

fn milliseconds(span: Duration) -> i64 {
    // A hundred years are enough for any sale, and leave room for sums.
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX).min(100 * 365 * 24 * 3_600_000)
}
