//! The shop of the examples under kills, crowds, a Redis that is wrong, and in a real browser.
//!
//! The drill `flash-sale` does the same a hundred times. All of it is for tests only and says so, because then also the
//! helpers may unwrap.

#![cfg(test)]

mod browser;
mod hint;
mod proved;
mod rush;
mod silent;
mod troubled;

use flash_sale::database::Database;
use flash_sale::shop::Shop;
use testbed::AnyDatabase;

/// Opens a shop on a database.
async fn shop_on(database: &AnyDatabase) -> Shop {
    Shop::new(Database::open(&database.url(), 20).await.unwrap())
}
