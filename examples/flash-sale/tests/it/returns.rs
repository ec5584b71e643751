//! Reservations that end: paid once, or returned once. A buyer who let one expire has to pause, so that others come
//! first.

use std::time::Duration;

use flash_sale::outcome::{Outcome, Wish};
use flash_sale::payment::Payment;
use flash_sale::sale::NewSale;
use flash_sale::shop::Shop;
use flash_sale::strategy::Strategy;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor};

use testbed::AnyDatabase;

use crate::open::{Open, at_once, eventually, generous, sale_on, shop_on};

async fn reserve(shop: &Shop, sale: i64, user: &str) -> String {
    let wish = Wish { sale, user, key: user };
    match shop.buy(&wish, Strategy::Conditional).await.unwrap() {
        Outcome::Reserved { order, .. } => order,
        other => panic!("{other:?}"),
    }
}

/// Waits until this many reservations have expired.
async fn expire_all(shop: &Shop, pieces: u64) {
    let mut returned = 0;
    while returned < pieces {
        returned += shop.expire().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(returned, pieces);
}

#[tokio::test]
async fn an_unpaid_reservation_goes_back_once_and_is_sold_again() {
    for running in AnyDatabase::all() {
        let short = NewSale { pay_within: Duration::from_millis(20), ..NewSale::of(1) };
        let (shop, sale) = sale_on(&running, &short).await;
        let order = reserve(&shop, sale, "ana").await;
        expire_all(&shop, 1).await;
        assert_eq!(shop.expire().await.unwrap(), 0, "once");
        assert_eq!(shop.pay(&order, "ana").await.unwrap(), Payment::Expired);
        let same = Wish { sale, user: "ana", key: "ana" };
        for strategy in [Strategy::Conditional, Strategy::Pessimistic] {
            let outcome = shop.buy(&same, strategy).await.unwrap();
            assert_eq!(outcome, Outcome::Expired, "the same key, the same wish");
        }
        reserve(&shop, sale, "bob").await;
        let anew = shop.buy(&Wish { key: "anew", ..same }, Strategy::Conditional).await.unwrap();
        assert_eq!(anew, Outcome::SoldOut);
        expire_all(&shop, 1).await;
        let anew = shop.buy(&Wish { key: "anew", ..same }, Strategy::Conditional).await.unwrap();
        assert!(matches!(anew, Outcome::Reserved { replayed: false, .. }), "{anew:?}");
        assert_eq!(shop.buy(&same, Strategy::Conditional).await.unwrap(), Outcome::Expired, "also now");
        assert_eq!(shop.database.audit().await.unwrap(), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_shops_return_each_piece_once() {
    for running in AnyDatabase::all() {
        let short = NewSale { pay_within: Duration::from_millis(1), ..NewSale::of(250) };
        let (shop, sale) = sale_on(&running, &short).await;
        for number in 0..250 {
            reserve(&shop, sale, &format!("buyer {number}")).await;
        }
        let others = [shop_on(&running).await, shop_on(&running).await, shop_on(&running).await];
        let sweeping = others.map(|shop| tokio::spawn(async move { shop.expire().await.unwrap() }));
        let mut returned = shop.expire().await.unwrap();
        for swept in sweeping {
            returned += swept.await.unwrap();
        }
        expire_all(&shop, 250 - returned).await;
        let tally = shop.database.tally(sale).await.unwrap().unwrap();
        assert_eq!((tally.available, tally.returned, tally.live), (250, 250, 0));
        assert_eq!(shop.database.audit().await.unwrap(), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_payments_are_charged_once() {
    for running in AnyDatabase::all() {
        let (shop, sale) = sale_on(&running, &NewSale::of(5)).await;
        let order = reserve(&shop, sale, "ana").await;
        assert_eq!(shop.pay(&order, "bob").await.unwrap(), Payment::UnknownOrder, "it is not his");
        assert_eq!(shop.pay("nonsense", "ana").await.unwrap(), Payment::UnknownOrder);
        let paying = at_once(10, |_| {
            let (shop, order) = (shop.clone(), order.clone());
            async move { shop.pay(&order, "ana").await.unwrap() }
        });
        let mut first = 0;
        for paid in paying.await {
            let Payment::Paid { cents: 999, again } = paid else { panic!("not paid") };
            first += usize::from(!again);
        }
        assert_eq!(first, 1);
        let tally = shop.database.tally(sale).await.unwrap().unwrap();
        assert_eq!((tally.paid, tally.available), (1, 4));
        assert_eq!(shop.expire().await.unwrap(), 0, "what is paid stays");
        assert_eq!(shop.database.audit().await.unwrap(), []);
    }
}

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
    write(running, "UPDATE orders SET expires_at = reserved_at WHERE state = 'reserved'").await;
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
        let (shop, id) = sale_on(&running, &sale()).await;
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
        let third = said(&shop, (other, "3"), Strategy::Conditional).await;
        let Outcome::Reserved { order, .. } = third else { panic!("{third:?}") };
        shop.pay(&order, "ana").await.unwrap();

        write(&running, &format!("UPDATE returns SET at = at - {HOUR_MS}")).await;
        let second = said(&shop, (id, "2"), Strategy::Conditional).await;
        assert!(matches!(second, Outcome::Reserved { .. }), "{second:?}");
        expire(&running, &shop).await;
        is_paused(&said(&shop, (id, "4"), Strategy::Conditional).await, 2);
        assert_eq!(shop.database.audit().await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_pause_is_reported_with_its_length() {
    let running = AnyDatabase::sqlite();
    let shop = Open::on(&running, &sale(), generous()).await;
    assert_eq!(shop.buy("ana", "1").await.status, 201);
    write(&running, "UPDATE orders SET expires_at = reserved_at").await;
    eventually("the piece of ana", async || shop.tally().await.returned == 1).await;
    let paused = shop.buy("ana", "2").await;
    assert_eq!(paused.said(), (429, "paused"), "{paused:?}");
    let wait: u64 = paused.field("retry-after").parse().unwrap();
    assert_eq!(wait, paused["retry_after_ms"].as_u64().unwrap().div_ceil(1000));
    let message = paused.text_of("message").to_owned();
    assert!(message.ends_with(&format!("others come first; try again in {wait} s")), "{message}");
}
