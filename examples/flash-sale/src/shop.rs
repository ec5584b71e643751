//! The shop: a database, an optional hint in front of it, and counters.

use std::sync::Arc;

use tokio::time::Instant;

use crate::database::{Database, Fault};
use crate::hint::{Hint, Hinted};
use crate::meter::Meter;
use crate::outcome::{Outcome, Prospect, Wish};
use crate::payment::{self, Payment};
use crate::strategy::{self, Strategy};

/// The shop. Clones share its parts.
#[derive(Clone, Debug)]
pub struct Shop {
    /// The database, which decides.
    pub database: Database,
    /// The hint, which may be wrong, and saves queries if it is right.
    pub hint: Option<Hint>,
    /// The counters.
    pub meter: Arc<Meter>,
}

impl Shop {
    /// Returns a shop on a database, without a hint.
    pub fn new(database: Database) -> Shop {
        Shop { database, hint: None, meter: Arc::default() }
    }

    /// Returns the same shop with a hint for [`Strategy::Redis`].
    #[must_use]
    pub fn with_hint(self, hint: Hint) -> Shop {
        Shop { hint: Some(hint), ..self }
    }

    /// Reserves a piece for a user, by a strategy.
    pub async fn buy(&self, wish: &Wish<'_>, strategy: Strategy) -> Result<Outcome, Fault> {
        let Some(hint) = self.hint.as_ref().filter(|_| strategy == Strategy::Redis) else {
            return self.attempt(wish, strategy).await;
        };
        let hinted = hint.take(wish.sale, wish.user).await;
        if hinted == Hinted::SoldOut {
            self.meter.hinted_sold_out();
            return Ok(Outcome::SoldOut);
        }
        let outcome = self.attempt(wish, strategy).await;
        match &outcome {
            // The hint has to allow this buyer's next request, even if it does not have the buyer yet.
            Ok(outcome) if outcome.is_of_this_buyer() => {
                if hinted == Hinted::Unknown {
                    hint.know(wish.sale, &[wish.user.to_owned()]).await;
                }
            }
            // A repeated request gets the same reply; after a fault the result is unknown.
            Ok(Outcome::Expired | Outcome::Paused { .. }) | Err(_) => {}
            Ok(_) => hint.give_back(wish.sale, wish.user).await,
        }
        outcome
    }

    /// Reads the outcome of a purchase request as far as possible without taking a piece. It counts as an attempt only
    /// if the outcome is known.
    pub async fn look(&self, wish: &Wish<'_>) -> Result<Prospect, Fault> {
        let began = Instant::now();
        let settled = match strategy::look(&self.database, wish).await {
            Ok(Prospect::Open { left }) => return Ok(Prospect::Open { left }),
            Ok(Prospect::Settled(outcome)) => Ok(outcome),
            Err(fault) => Err(fault),
        };
        self.meter.attempted(began.elapsed(), &settled);
        settled.map(Prospect::Settled)
    }

    /// Pays for an order of this user.
    pub async fn pay(&self, order: &str, user: &str) -> Result<Payment, Fault> {
        payment::pay(&self.database, order, user).await
    }

    /// Puts expired reservations back into the stock, and returns their number.
    pub async fn expire(&self) -> Result<u64, Fault> {
        payment::expire(&self.database).await
    }

    async fn attempt(&self, wish: &Wish<'_>, strategy: Strategy) -> Result<Outcome, Fault> {
        let began = Instant::now();
        let done = strategy::attempt(&self.database, wish, strategy).await;
        self.meter.attempted(began.elapsed(), &done);
        done
    }
}
