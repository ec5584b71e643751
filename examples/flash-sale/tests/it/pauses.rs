//! Buyers who let a reservation expire have to pause, so that others come first.

use std::time::Duration;

use flash_sale::outcome::{Outcome, Wish};
use flash_sale::sale::NewSale;
use flash_sale::shop::Shop;
use flash_sale::strategy::Strategy;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor};

use crate::open::{Open, generous, shop_on};
use testbed::AnyDatabase;

const HOUR_MS: i64 = 3_600_000;

/// Returns a sale in which nothing expires by itself while a test runs.
fn sale() -> NewSale {
    NewSale { pay_within: Duration::from_secs(3600), lasts: Duration::from_secs(1_000_000), ..NewSale::of(5) }
}

/// Writes a state into the books that would take hours to arise.
async fn write(running: &AnyDatabase, statement: &str) {
    let mut books = AnyConnection::connect(&running.url()).await.unwrap();
    books.execute(AssertSqlSafe(statement.to_owned())).await.unwrap();
    books.close().await.unwrap();
}

/// Lets all reservations expire now.
async fn expire(running: &AnyDatabase, shop: &Shop) {
    write(running, "UPDATE orders SET expires_at = reserved_at").await;
    assert_eq!(shop.expire().await.unwrap(), 1);
}

/// Returns the outcome of a new purchase request of ana.
async fn said(shop: &Shop, (sale, key): (i64, &str), strategy: Strategy) -> Outcome {
    shop.buy(&Wish { sale, user: "ana", key }, strategy).await.unwrap()
}

fn is_paused(outcome: &Outcome, hours: i64) {
    let Outcome::Paused { wait } = outcome else { panic!("{outcome:?}") };
    assert!((HOUR_MS * (hours - 1) + 1..=HOUR_MS * hours).contains(wait), "{outcome:?}, not {hours} h");
}

#[tokio::test]
async fn after_an_expired_reservation_a_buyer_pauses_and_twice_as_long_each_time() {
    for running in AnyDatabase::all() {
        let shop = shop_on(&running).await;
        let id = shop.database.create_sale(&sale()).await.unwrap();
        let first = said(&shop, (id, "1"), Strategy::Conditional).await;
        assert!(matches!(first, Outcome::Reserved { .. }), "{first:?}");
        expire(&running, &shop).await;
        for strategy in Strategy::ALL {
            is_paused(&said(&shop, (id, "2"), strategy).await, 1);
        }
        assert_eq!(said(&shop, (id, "1"), Strategy::Conditional).await, Outcome::Expired, "as before");
        // No other buyer has to pause, and neither does she in another sale.
        let bob = Wish { sale: id, user: "bob", key: "1" };
        let bob = shop.buy(&bob, Strategy::Conditional).await.unwrap();
        let Outcome::Reserved { order, .. } = bob else { panic!("{bob:?}") };
        shop.pay(&order, "bob").await.unwrap();
        let other = shop.database.create_sale(&sale()).await.unwrap();
        let elsewhere = said(&shop, (other, "3"), Strategy::Conditional).await;
        let Outcome::Reserved { order, .. } = elsewhere else { panic!("{elsewhere:?}") };
        shop.pay(&order, "ana").await.unwrap();

        write(&running, &format!("UPDATE returns SET at = at - {HOUR_MS}")).await;
        let second = said(&shop, (id, "2"), Strategy::Conditional).await;
        assert!(matches!(second, Outcome::Reserved { .. }), "{second:?}");
        write(&running, "UPDATE orders SET expires_at = reserved_at WHERE state = 'reserved'").await;
        assert_eq!(shop.expire().await.unwrap(), 1);
        is_paused(&said(&shop, (id, "4"), Strategy::Conditional).await, 2);
        assert_eq!(shop.database.audit().await.unwrap(), []);
    }
}

#[tokio::test]
async fn who_pauses_is_told_for_how_long() {
    let running = AnyDatabase::sqlite();
    let shop = Open::on(&running, &sale(), generous()).await;
    assert_eq!(shop.buy("ana", "1").await.status, 201);
    write(&running, "UPDATE orders SET expires_at = reserved_at").await;
    crate::open::eventually("the piece of ana", async || shop.tally().await.returned == 1).await;
    let paused = shop.buy("ana", "2").await;
    assert_eq!(paused.said(), (429, "paused"), "{paused:?}");
    let wait: u64 = paused.field("retry-after").parse().unwrap();
    assert_eq!(wait, paused["retry_after_ms"].as_u64().unwrap().div_ceil(1000));
    let message = paused.text_of("message").to_owned();
    assert!(message.ends_with(&format!("others come first; try again in {wait} s")), "{message}");
}
