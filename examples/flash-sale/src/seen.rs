//! The sales as they were last read, in memory.
//!
//! One task reads them four times a second, so that page views cost the database nothing. It decides nothing: the
//! database decides what is sold.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::database::{Database, Fault};
use crate::sale::Sale;

/// The sales as they were last read. Clones share them.
#[derive(Clone, Debug)]
pub struct Seen {
    shelf: Arc<RwLock<Arc<Shelf>>>,
    /// The number of the featured sale; `None` for the newest.
    front: Option<i64>,
}

#[derive(Debug)]
struct Shelf {
    sales: BTreeMap<i64, Sale>,
    /// The time of the database's clock, and the instant at which it was read.
    now: i64,
    at: Instant,
}

impl Seen {
    /// Reads the sales for the first time. The featured sale is that of this number, or else the newest.
    pub async fn first(database: &Database, front: Option<i64>) -> Result<Seen, Fault> {
        let shelf = Shelf::look(database, front).await?;
        Ok(Seen { shelf: Arc::new(RwLock::new(Arc::new(shelf))), front })
    }

    /// Reads the sales again.
    pub async fn look(&self, database: &Database) -> Result<(), Fault> {
        let shelf = Arc::new(Shelf::look(database, self.front).await?);
        *self.shelf.write().unwrap_or_else(PoisonError::into_inner) = shelf;
        Ok(())
    }

    /// Returns the featured sale, as it was last read.
    pub fn in_front(&self) -> Option<View> {
        let shelf = self.shelf();
        let sale = match self.front {
            Some(id) => shelf.sales.get(&id),
            None => shelf.sales.values().next_back(),
        };
        sale.map(|sale| shelf.view(sale))
    }

    /// Returns a sale, as it was last read.
    pub fn sale(&self, id: i64) -> Option<View> {
        let shelf = self.shelf();
        shelf.sales.get(&id).map(|sale| shelf.view(sale))
    }

    /// Returns the number of remaining pieces of a sale.
    pub fn left(&self, id: i64) -> Option<i64> {
        self.shelf().sales.get(&id).map(|sale| sale.available)
    }

    /// Returns an estimate of the database's time that is never ahead of it.
    pub fn now(&self) -> i64 {
        self.shelf().now()
    }

    fn shelf(&self) -> Arc<Shelf> {
        Arc::clone(&self.shelf.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shelf {
    async fn look(database: &Database, front: Option<i64>) -> Result<Shelf, Fault> {
        let latest = database.latest_sales().await?;
        let mut sales: BTreeMap<_, _> = latest.into_iter().map(|sale| (sale.id, sale)).collect();
        if let Some(id) = front.filter(|id| !sales.contains_key(id)) {
            sales.extend(database.sale(id).await?.map(|sale| (id, sale)));
        }
        let now = match sales.values().next_back() {
            Some(sale) => sale.now,
            None => database.now().await?,
        };
        Ok(Shelf { sales, now, at: Instant::now() })
    }

    fn view(&self, sale: &Sale) -> View {
        View { sale: sale.clone(), now: self.now() }
    }

    fn now(&self) -> i64 {
        self.now.saturating_add(i64::try_from(self.at.elapsed().as_millis()).unwrap_or(i64::MAX))
    }
}

/// A sale as it was last read, and the current time.
#[derive(Clone, Debug)]
pub struct View {
    /// The sale.
    pub sale: Sale,
    /// The time of the database's clock.
    pub now: i64,
}

impl View {
    /// Returns the time from which no reservation can be paid for.
    pub fn settled_at(&self) -> i64 {
        self.sale.closes_at.saturating_add(self.sale.pay_within)
    }

    /// Returns true if all pieces are finally sold or returned.
    pub fn is_settled(&self) -> bool {
        self.settled_at() <= self.now
    }

    /// Returns the milliseconds to the opening, or zero.
    pub fn opens_in(&self) -> i64 {
        (self.sale.opens_at - self.now).max(0)
    }

    /// Returns the public data of the sale.
    pub fn to_json(&self) -> Value {
        // The state depends on the clock alone, not on the stock.
        let state = match self.now {
            now if now < self.sale.opens_at => "before",
            now if now < self.sale.closes_at => "open",
            _ => "over",
        };
        json!({
            "id": self.sale.id,
            "name": self.sale.name,
            "price_cents": self.sale.price_cents,
            "stock": self.sale.stock,
            "left": self.sale.available,
            "state": state,
            "opens_in_ms": self.opens_in(),
            "closes_in_ms": (self.sale.closes_at - self.now).max(0),
            "pay_within_ms": self.sale.pay_within,
        })
    }
}
