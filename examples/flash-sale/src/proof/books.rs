//! A sale's books, row by row, read when nobody writes in them.

use std::collections::{HashMap, HashSet};

use sqlx::Row;

use crate::database::{Database, Fault, Statement};
use crate::sale::Sale;

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

/// What became of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It waits for its payment.
    Reserved,
    /// It is sold.
    Paid {
        /// For this.
        cents: i64,
    },
    /// It went back.
    Returned,
    /// What may never be: a payment without a sale, or a sale without a payment.
    Wrong,
}

#[derive(Clone, Debug)]
struct Line {
    user: String,
    key: String,
    entry: Entry,
}

/// All orders that a sale ever had.
#[derive(Clone, Debug)]
pub struct Books {
    sale: Sale,
    lines: HashMap<String, Line>,
}

impl Books {
    /// Reads them.
    pub async fn read(database: &Database, sale: i64) -> Result<Books, Fault> {
        let found = database.sale(sale).await?;
        let found = found.ok_or_else(|| Fault::unfit(format!("sale {sale} is not in the books")))?;
        let mut lines = HashMap::new();
        for statement in [&ORDERS, &RETURNS] {
            let asked = sqlx::query(statement.text(database.dialect())).bind(sale);
            for row in asked.fetch_all(database.pool()).await? {
                let (state, cents): (String, Option<i64>) = (row.try_get("state")?, row.try_get("cents")?);
                let entry = match (state.as_str(), cents) {
                    ("reserved", None) => Entry::Reserved,
                    ("paid", Some(cents)) => Entry::Paid { cents },
                    ("returned", None) => Entry::Returned,
                    _ => Entry::Wrong,
                };
                let line = Line { user: row.try_get("user_id")?, key: row.try_get("request_key")?, entry };
                // An order that is in both tables is seen by the audit.
                lines.insert(row.try_get("id")?, line);
            }
        }
        Ok(Books { sale: found, lines })
    }

    /// What one piece costs.
    pub fn price_cents(&self) -> i64 {
        self.sale.price_cents
    }

    /// What became of an order of this buyer, by this key.
    pub fn entry(&self, order: &str, user: &str, key: &str) -> Option<Entry> {
        self.lines.get(order).filter(|line| line.user == user && line.key == key).map(|line| line.entry)
    }

    /// The order that a key came to.
    pub fn of_key(&self, user: &str, key: &str) -> Option<(&str, Entry)> {
        let found = self.lines.iter().find(|(_, line)| line.user == user && line.key == key);
        found.map(|(order, line)| (order.as_str(), line.entry))
    }

    /// How many orders are as this says.
    pub fn count(&self, is_so: impl Fn(Entry) -> bool) -> u64 {
        self.lines.values().filter(|line| is_so(line.entry)).count() as u64
    }

    /// How many are paid.
    pub fn paid(&self) -> u64 {
        self.count(|entry| matches!(entry, Entry::Paid { .. }))
    }

    /// How many went back.
    pub fn returned(&self) -> u64 {
        self.count(|entry| entry == Entry::Returned)
    }

    /// What is wrong with them, whatever buyers were told.
    pub fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        let live: Vec<_> = self.lines.values().filter(|line| line.entry != Entry::Returned).collect();
        let Sale { stock, available, price_cents, .. } = self.sale;
        let (sold, paid) = (live.len() as i64, self.paid() as i64);
        if available < 0 || available + sold != stock {
            findings.push(format!("G-1: {sold} of {stock} are sold or reserved, and {available} available"));
        }
        let users: HashSet<_> = live.iter().map(|line| &line.user).collect();
        if users.len() != live.len() {
            findings.push(format!("G-3: {} orders belong to {} buyers", live.len(), users.len()));
        }
        let keys: HashSet<_> = self.lines.values().map(|line| (&line.user, &line.key)).collect();
        if keys.len() != self.lines.len() {
            findings.push(format!("G-3: {} orders were made by {} keys", self.lines.len(), keys.len()));
        }
        let wrong = self.count(|entry| entry == Entry::Wrong);
        if wrong > 0 {
            findings.push(format!("G-5: of {wrong} orders, state and payment contradict each other"));
        }
        let money: i64 = self.lines.values().map(|line| line.entry.cents()).sum();
        if money != paid * price_cents {
            findings.push(format!("G-5: {money} cents were charged for {paid} pieces of {price_cents}"));
        }
        findings
    }
}

impl Entry {
    fn cents(self) -> i64 {
        if let Entry::Paid { cents } = self { cents } else { 0 }
    }
}

/// When a reservation ends, by the database's clock; nothing if there is no such order any more.
pub async fn expires_at(database: &Database, order: &str) -> Result<Option<i64>, Fault> {
    let asked = sqlx::query(EXPIRES_AT.text(database.dialect())).bind(order);
    let row = asked.fetch_optional(database.pool()).await?;
    Ok(row.map(|row| row.try_get("expires_at")).transpose()?)
}

/// How many orders of a sale were paid in the last so many milliseconds of their time.
pub async fn paid_at_the_end(database: &Database, sale: i64, within: i64) -> Result<i64, Fault> {
    let asked = sqlx::query(PAID_AT_THE_END.text(database.dialect())).bind(sale).bind(within);
    Ok(asked.fetch_one(database.pool()).await?.try_get("paid")?)
}
