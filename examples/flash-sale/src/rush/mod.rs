//! A rush on the shop: every strategy with and without the limiter, by the same crowd, in numbers and pictures.
//!
//! ```text
//!   Plan --> calibration: what can this database do?
//!        `-> per combination: a fresh sale, a shop in a process of its own, a crowd of buyers --> Figures
//!                                                            Figures, ... --> table, picture, page
//! ```
//!
//! What buyers were told is compared with what is in the database: orders that are only in one of both are counted.

mod calibration;
mod client;
mod crowd;
mod door;
mod failure;
mod figures;
mod goals;
mod page;
mod picture;
mod plan;
mod process;
mod progress;
mod report;
mod shuffle;
mod surroundings;
mod table;

use std::sync::Arc;
use std::time::Duration;

use tidegate::Limit;
use tokio::time::Instant;

use crate::database::Database;
use crate::link::Signer;
use crate::order;
use crate::sale::NewSale;
use crate::strategy::Strategy;
use calibration::{AT_A_TIME, limit_for, measure};
use crowd::Crowd;
use door::Door;
use figures::Found;
use process::Process;

pub use failure::Failure;
pub use figures::Figures;
pub use goals::{Goal, goals};
pub use plan::{Combination, Limiter, Plan};
pub use progress::Progress;
pub use report::Report;
pub use surroundings::Surroundings;
pub use table::{markdown, text};

/// Connections of the generator itself: it asks little.
const CONNECTIONS: u32 = 2;

/// More pieces than can be sold while it is measured.
const PLENTY: i64 = 1_000_000_000;

/// A day: longer than any rush.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs every combination of a plan, one after the other, and says what happens meanwhile.
pub async fn run(plan: &Plan, mut on_progress: impl FnMut(Progress<'_>)) -> Result<Vec<Figures>, Failure> {
    let database = Database::open(&plan.database, CONNECTIONS).await?;
    for strategy in plan.skipped() {
        on_progress(Progress::Skipped(strategy));
    }
    let rush = Rush { plan, database: &database, secret: order::new_number() };
    let limit = rush.limit(&mut on_progress).await?;
    let mut all = Vec::new();
    for combination in plan.combinations() {
        on_progress(Progress::Started(combination));
        let figures = rush.on(combination, &limit, |tries| on_progress(Progress::Tried(tries))).await?;
        on_progress(Progress::Ended(&figures));
        all.push(figures);
    }
    database.close().await;
    Ok(all)
}

struct Rush<'p> {
    plan: &'p Plan,
    database: &'p Database,
    /// Signs the links of this rush.
    secret: String,
}

impl Rush<'_> {
    /// The limit of the plan, or one that suits the database.
    async fn limit(&self, on_progress: &mut impl FnMut(Progress<'_>)) -> Result<Limit, Failure> {
        match self.plan.limit {
            Some(limit) => Ok(limit),
            // Nobody asks the limiter.
            None if !self.plan.limiters.contains(&Limiter::On) => limit_for(1),
            None => {
                on_progress(Progress::Measuring);
                let per_second = self.measured().await?;
                let limit = limit_for(per_second)?;
                on_progress(Progress::Measured { per_second, clients: AT_A_TIME, limit: &limit });
                Ok(limit)
            }
        }
    }

    async fn measured(&self) -> Result<u64, Failure> {
        let combination = Combination { strategy: Strategy::Pessimistic, limiter: Limiter::Off };
        let (_shop, door) = self.open(combination, PLENTY, &limit_for(1)?).await?;
        measure(door).await
    }

    async fn on(
        &self,
        combination: Combination,
        limit: &Limit,
        progress: impl FnMut(u64),
    ) -> Result<Figures, Failure> {
        let Plan { stock, buyers, tries, clients, seed, .. } = *self.plan;
        let (shop, door) = self.open(combination, i64::from(stock), limit).await?;
        let door = Arc::new(door);
        let crowd = Crowd { buyers, tries, clients, seed };
        let waiting = crowd.gather(&door).await?;
        let began_at = self.database.now().await?;
        let began = Instant::now();
        let heard = crowd.rush(waiting, &door, progress).await?;
        let took = began.elapsed();
        let numbers = shop.numbers().await?;
        let tally = self.database.tally(door.sale).await?;
        let tally = tally.ok_or_else(|| Failure::of("database", "the sale is gone"))?;
        let orders = self.database.orders(door.sale).await?;
        let found =
            Found { combination, buyers, limit: *limit, began_at, took, heard, numbers, tally, orders };
        Ok(Figures::of(&found))
    }

    /// A shop with a fresh sale.
    async fn open(
        &self,
        combination: Combination,
        stock: i64,
        limit: &Limit,
    ) -> Result<(Process, Door), Failure> {
        // Nothing is paid for here, and nothing goes back meanwhile.
        let sale = NewSale { lasts: DAY, pay_within: DAY, ..NewSale::of(stock) };
        let sale = self.database.create_sale(&sale).await?;
        let shop = Process::start(self.plan, sale, limit, &self.secret).await?;
        let door = Door {
            shop: shop.address(),
            sale,
            combination,
            opened_at: self.database.now().await?,
            opened: Instant::now(),
            signer: Signer::new(&self.secret),
        };
        Ok((shop, door))
    }
}
