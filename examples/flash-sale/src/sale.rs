//! A sale: a number of pieces of one product, for a limited time.

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

/// A sale to be created.
#[derive(Clone, Debug)]
pub struct NewSale {
    /// The name of the product.
    pub name: String,
    /// The price of one piece.
    pub price_cents: i64,
    /// The number of pieces.
    pub stock: i64,
    /// The time from now to the opening.
    pub opens_in: Duration,
    /// The time from the opening to the end.
    pub lasts: Duration,
    /// The time for which a piece is reserved.
    pub pay_within: Duration,
}

impl NewSale {
    /// Returns a sale of this stock that opens at once, lasts an hour, and has a time to pay of two minutes.
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

/// A sale as it was last read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sale {
    /// Its number.
    pub id: i64,
    /// The name of the product.
    pub name: String,
    /// The price of one piece.
    pub price_cents: i64,
    /// The number of pieces at the start.
    pub stock: i64,
    /// The number of pieces that are neither reserved nor sold.
    pub available: i64,
    /// The time of the opening, in milliseconds of the database's clock.
    pub opens_at: i64,
    /// The time of the end, from which nothing is sold.
    pub closes_at: i64,
    /// The time for which a piece is reserved, in milliseconds.
    pub pay_within: i64,
    /// The time at which it was read.
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
    /// Creates a sale, and returns its number.
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

    /// Returns a sale by its number.
    pub async fn sale(&self, id: i64) -> Result<Option<Sale>, Fault> {
        let row = sqlx::query(ONE.text(self.dialect())).bind(id).fetch_optional(self.pool()).await?;
        row.as_ref().map(Sale::read).transpose()
    }

    /// Returns the latest sales, at most so many, the latest first.
    pub async fn latest_sales(&self, at_most: i64) -> Result<Vec<Sale>, Fault> {
        let rows = sqlx::query(LATEST.text(self.dialect())).bind(at_most).fetch_all(self.pool()).await?;
        rows.iter().map(Sale::read).collect()
    }
}

fn milliseconds(span: Duration) -> i64 {
    // A hundred years are enough for any sale, and sums of two do not overflow.
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX).min(100 * 365 * 24 * 3_600_000)
}
