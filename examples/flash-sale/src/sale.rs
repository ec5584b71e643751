//! A sale: a number of pieces of one product, for a limited time.

use std::time::Duration;

use clap::{Args, value_parser};
use sqlx::FromRow;

use crate::command::values;
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
     FROM sales ORDER BY id DESC LIMIT 64",
);

/// A sale to be created.
#[derive(Args, Clone, Debug)]
pub struct NewSale {
    /// The number of pieces of the new sale.
    #[arg(long, default_value_t = 100, allow_negative_numbers = true, value_parser = value_parser!(i64).range(0..=1_000_000_000))]
    pub stock: i64,
    /// The name of the product.
    #[arg(long, default_value = "A thing that everybody wants", value_parser = values::name)]
    pub name: String,
    /// The price of a piece.
    #[arg(long = "price", default_value = "9.99", value_parser = values::cents, value_name = "PRICE")]
    pub price_cents: i64,
    /// The time until the sale opens.
    #[arg(long, default_value = "10s", value_parser = values::time, value_name = "TIME")]
    pub opens_in: Duration,
    /// The time from the opening to the end.
    #[arg(long, default_value = "15m", value_parser = values::some_time, value_name = "TIME")]
    pub lasts: Duration,
    /// The time for which a piece is reserved until it is paid for.
    #[arg(long, default_value = "2m", value_parser = values::some_time, value_name = "TIME")]
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
#[derive(Clone, Debug, FromRow, PartialEq, Eq)]
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
    #[sqlx(rename = "now_at")]
    pub now: i64,
}

impl Database {
    /// Creates a sale, and returns its number.
    pub async fn create_sale(&self, sale: &NewSale) -> Result<i64, Fault> {
        let opens_in = milliseconds(sale.opens_in);
        let creating = CREATE
            .column(self.dialect())
            .bind(&sale.name)
            .bind(sale.price_cents)
            .bind(sale.stock)
            .bind(sale.stock)
            .bind(opens_in)
            .bind(opens_in.saturating_add(milliseconds(sale.lasts)))
            .bind(milliseconds(sale.pay_within).max(1))
            .fetch_one(self.pool());
        Ok(creating.await?)
    }

    /// Returns a sale by its number.
    pub async fn sale(&self, id: i64) -> Result<Option<Sale>, Fault> {
        Ok(ONE.rows(self.dialect()).bind(id).fetch_optional(self.pool()).await?)
    }

    /// Returns the latest 64 sales, the latest first.
    pub async fn latest_sales(&self) -> Result<Vec<Sale>, Fault> {
        Ok(LATEST.rows(self.dialect()).fetch_all(self.pool()).await?)
    }
}

fn milliseconds(span: Duration) -> i64 {
    // A hundred years are enough for any sale, and sums of two do not overflow.
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX).min(100 * 365 * 24 * 3_600_000)
}
