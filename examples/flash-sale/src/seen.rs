//! The sales as they were last seen, in memory.
//!
//! One task looks four times a second, so that whoever looks at a page costs the database nothing, however many they
//! are. It decides nothing: what is sold is between a buyer and the database.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::database::{Database, Fault};
use crate::sale::Sale;

/// How many sales are seen, the newest first.
const SALES: i64 = 64;

/// What was last seen. Clones share it.
#[derive(Clone, Debug)]
pub struct Seen {
    shelf: Arc<RwLock<Arc<Shelf>>>,
    /// The sale that is in front; the newest, if none is.
    front: Option<i64>,
}

#[derive(Debug)]
struct Shelf {
    sales: BTreeMap<i64, Sale>,
    /// The database's clock, and when it was read.
    now: i64,
    at: Instant,
}

impl Seen {
    /// Looks for the first time; in front is the sale of this number, or else the newest.
    pub async fn first(database: &Database, front: Option<i64>) -> Result<Seen, Fault> {
        let shelf = Shelf::look(database, front).await?;
        Ok(Seen { shelf: Arc::new(RwLock::new(Arc::new(shelf))), front })
    }

    /// Looks again.
    pub async fn look(&self, database: &Database) -> Result<(), Fault> {
        let shelf = Arc::new(Shelf::look(database, self.front).await?);
        *self.shelf.write().unwrap_or_else(PoisonError::into_inner) = shelf;
        Ok(())
    }

    /// The sale in front, as it was last seen.
    pub fn in_front(&self) -> Option<View> {
        let shelf = self.shelf();
        let sale = match self.front {
            Some(id) => shelf.sales.get(&id),
            None => shelf.sales.values().next_back(),
        };
        sale.map(|sale| View { sale: sale.clone(), now: shelf.now() })
    }

    /// A sale, as it was last seen.
    pub fn sale(&self, id: i64) -> Option<View> {
        let shelf = self.shelf();
        shelf.sales.get(&id).map(|sale| View { sale: sale.clone(), now: shelf.now() })
    }

    /// How many pieces of a sale were left.
    pub fn left(&self, id: i64) -> Option<i64> {
        self.shelf().sales.get(&id).map(|sale| sale.available)
    }

    /// The time of the database, as far as it is known here: never ahead of it.
    pub fn now(&self) -> i64 {
        self.shelf().now()
    }

    fn shelf(&self) -> Arc<Shelf> {
        Arc::clone(&self.shelf.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shelf {
    async fn look(database: &Database, front: Option<i64>) -> Result<Shelf, Fault> {
        let mut sales: BTreeMap<_, _> =
            database.latest_sales(SALES).await?.into_iter().map(|sale| (sale.id, sale)).collect();
        if let Some(id) = front.filter(|id| !sales.contains_key(id)) {
            sales.extend(database.sale(id).await?.map(|sale| (id, sale)));
        }
        let now = match sales.values().next_back() {
            Some(sale) => sale.now,
            None => database.now().await?,
        };
        Ok(Shelf { sales, now, at: Instant::now() })
    }

    fn now(&self) -> i64 {
        self.now.saturating_add(i64::try_from(self.at.elapsed().as_millis()).unwrap_or(i64::MAX))
    }
}

/// A sale as it was last seen, and what time it is.
#[derive(Clone, Debug)]
pub struct View {
    /// The sale.
    pub sale: Sale,
    /// The time of the database.
    pub now: i64,
}

impl View {
    /// From when on nothing that was reserved can be paid for any more.
    pub fn settled_at(&self) -> i64 {
        self.sale.closes_at.saturating_add(self.sale.pay_within)
    }

    /// Whether all is sold, or went back, for good.
    pub fn is_settled(&self) -> bool {
        self.settled_at() <= self.now
    }

    /// Milliseconds until the opening, or none.
    pub fn opens_in(&self) -> i64 {
        (self.sale.opens_at - self.now).max(0)
    }

    /// What everybody may know about it.
    pub fn to_json(&self) -> Value {
        // By the clock; pieces may be left or not.
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
