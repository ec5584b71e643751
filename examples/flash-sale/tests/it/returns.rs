//! Reservations that end: paid once, or returned once.

use std::time::Duration;

use flash_sale::outcome::{Outcome, Wish};
use flash_sale::payment::Payment;
use flash_sale::sale::NewSale;
use flash_sale::shop::Shop;
use flash_sale::strategy::Strategy;

use testbed::AnyDatabase;

use crate::open::{sale_on, shop_on};

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
async fn what_is_not_paid_in_time_goes_back_once_and_is_sold_again() {
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
async fn who_pays_many_times_at_once_is_charged_once() {
    for running in AnyDatabase::all() {
        let (shop, sale) = sale_on(&running, &NewSale::of(5)).await;
        let order = reserve(&shop, sale, "ana").await;
        assert_eq!(shop.pay(&order, "bob").await.unwrap(), Payment::UnknownOrder, "it is not his");
        assert_eq!(shop.pay("nonsense", "ana").await.unwrap(), Payment::UnknownOrder);
        let paying: Vec<_> = (0..10)
            .map(|_| {
                let (shop, order) = (shop.clone(), order.clone());
                tokio::spawn(async move { shop.pay(&order, "ana").await.unwrap() })
            })
            .collect();
        let mut first = 0;
        for paid in paying {
            let Payment::Paid { cents: 999, again } = paid.await.unwrap() else { panic!("not paid") };
            first += usize::from(!again);
        }
        assert_eq!(first, 1);
        let tally = shop.database.tally(sale).await.unwrap().unwrap();
        assert_eq!((tally.paid, tally.available), (1, 4));
        assert_eq!(shop.expire().await.unwrap(), 0, "what is paid stays");
        assert_eq!(shop.database.audit().await.unwrap(), []);
    }
}
