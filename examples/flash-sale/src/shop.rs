//! The shop: a database, perhaps a hint in front of it, and what was counted.

use std::sync::Arc;

use tokio::time::Instant;

use crate::database::{Database, Fault, Tries};
use crate::expiry;
use crate::hint::{Hint, Hinted};
use crate::meter::Meter;
use crate::outcome::{Outcome, Prospect, Wish};
use crate::payment::{self, Payment};
use crate::strategy::{self, Strategy};

/// Everything that buying needs. Clones share it.
#[derive(Clone, Debug)]
pub struct Shop {
    /// The truth.
    pub database: Database,
    /// What may be wrong, and saves questions if it is right.
    pub hint: Option<Hint>,
    /// What was counted.
    pub meter: Arc<Meter>,
}

impl Shop {
    /// A shop on a database, without a hint.
    pub fn new(database: Database) -> Shop {
        Shop { database, hint: None, meter: Arc::new(Meter::new()) }
    }

    /// The same, with a hint in front for [`Strategy::Redis`].
    #[must_use]
    pub fn with_hint(self, hint: Hint) -> Shop {
        Shop { hint: Some(hint), ..self }
    }

    /// Reserves a piece for somebody, by a strategy.
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
            // The hint has to let them pass when they ask again, also if it knows nothing of them yet.
            Ok(outcome) if outcome.is_of_this_buyer() => {
                if hinted == Hinted::Unknown {
                    hint.know(wish.sale, &[wish.user.to_owned()]).await;
                }
            }
            // What they were told, they are told again; and after a fault nobody knows what was done.
            Ok(Outcome::Expired | Outcome::Paused { .. }) | Err(_) => {}
            Ok(_) => hint.give_back(wish.sale, wish.user).await,
        }
        outcome
    }

    /// Looks what can be said to a wish without taking anything. Only a wish that is settled by it counts as an attempt.
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

    /// Returns reservations that are over to the stock, and says how many.
    pub async fn expire(&self) -> Result<u64, Fault> {
        expiry::expire(&self.database).await
    }

    async fn attempt(&self, wish: &Wish<'_>, strategy: Strategy) -> Result<Outcome, Fault> {
        let began = Instant::now();
        let mut tries = Tries::default();
        loop {
            let done = match strategy {
                Strategy::Naive => strategy::attempt_naively(&self.database, wish).await,
                _ => strategy::attempt(&self.database, wish, strategy).await,
            };
            // To try again after half of it was done would be wrong in another way than it is meant to be.
            if strategy == Strategy::Naive || !tries.again(&done).await {
                self.meter.attempted(began.elapsed(), &done);
                return done;
            }
        }
    }
}
