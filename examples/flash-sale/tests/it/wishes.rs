//! Purchase requests of one buyer: the same one again, another one, too early, too late.

use std::time::Duration;

use flash_sale::outcome::{Outcome, Wish};
use flash_sale::sale::NewSale;
use flash_sale::strategy::Strategy;

use testbed::AnyDatabase;

use crate::open::{at_once, shop_on};

const SAFE: [Strategy; 4] =
    [Strategy::Value, Strategy::Version, Strategy::Conditional, Strategy::Pessimistic];

fn order_of(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Reserved { order, .. } | Outcome::AlreadyBought { order, .. } => order,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_same_key_gets_the_same_order_also_when_all_is_sold() {
    for running in AnyDatabase::all() {
        let shop = shop_on(&running).await;
        for strategy in SAFE {
            let sale = shop.database.create_sale(&NewSale::of(1)).await.unwrap();
            let key = format!("{strategy}");
            let wish = Wish { sale, user: "ana", key: &key };
            let first = shop.buy(&wish, strategy).await.unwrap();
            assert!(matches!(first, Outcome::Reserved { replayed: false, left: 0, .. }), "{first:?}");
            for again in SAFE {
                let outcome = shop.buy(&wish, again).await.unwrap();
                assert!(matches!(outcome, Outcome::Reserved { replayed: true, .. }), "{outcome:?}");
                assert_eq!(order_of(&outcome), order_of(&first));
            }
            let another = shop.buy(&Wish { key: "another", ..wish }, strategy).await.unwrap();
            let Outcome::AlreadyBought { order, pay_within: Some(1..) } = &another else {
                panic!("{another:?}")
            };
            assert_eq!(order, order_of(&first));
            shop.pay(order, "ana").await.unwrap();
            let paid = shop.buy(&Wish { key: "another", ..wish }, strategy).await.unwrap();
            assert_eq!(paid, Outcome::AlreadyBought { order: order.clone(), pay_within: None });
            let late = Wish { user: "bob", ..wish };
            assert_eq!(shop.buy(&late, strategy).await.unwrap(), Outcome::SoldOut);
        }
        assert_eq!(shop.database.audit().await.unwrap(), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_wish_sent_many_times_at_once_is_one_order() {
    for running in AnyDatabase::all() {
        let shop = shop_on(&running).await;
        for strategy in SAFE {
            let sale = shop.database.create_sale(&NewSale::of(10)).await.unwrap();
            let asked = at_once(20, |_| {
                let shop = shop.clone();
                async move {
                    let wish = Wish { sale, user: "ana", key: &format!("key {sale}") };
                    // The faster request may be of the same buyer; the next try shows that.
                    loop {
                        let outcome = shop.buy(&wish, strategy).await.unwrap();
                        if !matches!(outcome, Outcome::Conflict { .. }) {
                            return order_of(&outcome).to_owned();
                        }
                    }
                }
            });
            let mut orders = asked.await;
            orders.dedup();
            assert_eq!(orders.len(), 1);
            let tally = shop.database.tally(sale).await.unwrap().unwrap();
            assert_eq!((tally.live, tally.available), (1, 9));
        }
    }
}

#[tokio::test]
async fn a_key_belongs_to_one_sale() {
    for running in AnyDatabase::all() {
        let shop = shop_on(&running).await;
        let one = shop.database.create_sale(&NewSale::of(5)).await.unwrap();
        let other = shop.database.create_sale(&NewSale::of(5)).await.unwrap();
        let wish = Wish { sale: one, user: "ana", key: "k" };
        shop.buy(&wish, Strategy::Conditional).await.unwrap();
        for strategy in SAFE {
            let outcome = shop.buy(&Wish { sale: other, ..wish }, strategy).await.unwrap();
            assert_eq!(outcome, Outcome::KeyUsed { sale: one });
        }
        let of_another = shop.buy(&Wish { user: "bob", ..wish }, Strategy::Conditional).await.unwrap();
        assert!(matches!(of_another, Outcome::Reserved { replayed: false, .. }), "keys are a buyer's own");
        assert_eq!(shop.database.tally(other).await.unwrap().unwrap().live, 0);
    }
}

#[tokio::test]
async fn nothing_is_sold_before_the_opening_after_the_end_or_of_an_unknown_sale() {
    for running in AnyDatabase::all() {
        let shop = shop_on(&running).await;
        let hour = Duration::from_secs(3600);
        let early = NewSale { opens_in: hour, ..NewSale::of(5) };
        let early = shop.database.create_sale(&early).await.unwrap();
        let late = NewSale { lasts: Duration::ZERO, ..NewSale::of(5) };
        let late = shop.database.create_sale(&late).await.unwrap();
        for strategy in Strategy::ALL {
            let wish = |sale| Wish { sale, user: "ana", key: "k" };
            let outcome = shop.buy(&wish(early), strategy).await.unwrap();
            let Outcome::NotOpen { opens_in } = outcome else { panic!("{outcome:?}") };
            assert!((1..=3_600_000).contains(&opens_in), "{opens_in}");
            assert_eq!(shop.buy(&wish(late), strategy).await.unwrap(), Outcome::Over);
            assert_eq!(shop.buy(&wish(987_654), strategy).await.unwrap(), Outcome::UnknownSale);
        }
        for sale in [early, late] {
            let tally = shop.database.tally(sale).await.unwrap().unwrap();
            assert_eq!((tally.live, tally.available), (0, 5));
        }
    }
}
