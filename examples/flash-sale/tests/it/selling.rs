//! Crowds: every safe strategy sells exactly the stock. `drills` proves that the naive one is seen to oversell.

use flash_sale::database::Database;
use flash_sale::outcome::{Outcome, Wish};
use flash_sale::sale::NewSale;
use flash_sale::shop::Shop;
use flash_sale::strategy::Strategy;
use harness::sale::Ledger;

use testbed::AnyDatabase;

use crate::open::{at_once, shop_on};

const BUYERS: usize = 100;
const TRIES: usize = 5;
/// The number of buyers at the same time.
const CLIENTS: usize = 64;

/// Runs buyers, each with retries; returns the orders that they got, with their buyers. A buyer who loses against a
/// faster one retries as long as pieces are left.
async fn crowd(shop: &Shop, sale: i64, strategy: fn(usize) -> Strategy) -> Vec<(String, String)> {
    let clients = at_once(CLIENTS, |client| {
        let shop = shop.clone();
        async move {
            let mut got = Vec::new();
            for number in (client..BUYERS * TRIES).step_by(CLIENTS) {
                let user = format!("buyer {}", number % BUYERS);
                let wish = Wish { sale, user: &user, key: &format!("{user} of {sale}") };
                let mut outcome = shop.buy(&wish, strategy(number)).await.unwrap();
                while let Outcome::Conflict { left } = outcome {
                    assert!(left > 0);
                    outcome = shop.buy(&wish, strategy(number)).await.unwrap();
                }
                match outcome {
                    Outcome::Reserved { order, .. } => got.push((order, user)),
                    Outcome::SoldOut => {}
                    other => panic!("{other:?}"),
                }
            }
            got
        }
    });
    clients.await.concat()
}

/// Sells to a crowd, and checks the books.
async fn sells_exactly(shop: &Shop, strategy: fn(usize) -> Strategy) {
    let sale = shop.database.create_sale(&NewSale::of(20)).await.unwrap();
    let mut got = crowd(shop, sale, strategy).await;
    got.sort();
    got.dedup();
    let books = shop.database.books(sale).await.unwrap();
    let mut orders: Vec<_> = books.lines.into_iter().map(|(order, line)| (order, line.user)).collect();
    orders.sort();
    assert_eq!(got, orders, "the orders that buyers got are those in the database");
    let tally = shop.database.tally(sale).await.unwrap().unwrap();
    assert_eq!((tally.live, tally.available, tally.duplicates), (20, 0, 0));
    assert_eq!(shop.database.audit().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_safe_strategy_sells_exactly_the_stock_on_every_database() {
    for running in AnyDatabase::all() {
        let shop = shop_on(&running).await;
        let strategies: [fn(usize) -> Strategy; 6] = [
            |_| Strategy::Value,
            |_| Strategy::Version,
            |_| Strategy::Conditional,
            |_| Strategy::Pessimistic,
            |_| Strategy::Redis,
            // All of them in one sale.
            |number| Strategy::ALL[1 + number % 5],
        ];
        for strategy in strategies {
            sells_exactly(&shop, strategy).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_that_fail_for_each_other_s_sake_are_tried_again() {
    let running = AnyDatabase::postgres();
    for isolation in ["repeatable%5C%20read", "serializable"] {
        let url = format!("{}?options=-c%20default_transaction_isolation%3D{isolation}", running.url());
        let shop = Shop::new(Database::open(&url, 20).await.unwrap());
        for strategy in [|_| Strategy::Conditional, |_| Strategy::Pessimistic, |_| Strategy::Version]
            as [fn(usize) -> Strategy; 3]
        {
            sells_exactly(&shop, strategy).await;
        }
        shop.database.close().await;
    }
}
