//! That the proof would see what it looks for.

use std::sync::Arc;

use flash_sale::outcome::{Outcome, Wish};
use flash_sale::sale::NewSale;
use flash_sale::strategy::Strategy;
use harness::sale::{Ledger, WishResult, Word};
use testbed::AnyDatabase;

use crate::shop_on;

/// How often it is tried to oversell at most.
const SALES: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn books_show_it_when_a_shop_oversells() {
    let running = AnyDatabase::postgres();
    let shop = Arc::new(shop_on(&running).await);
    for _ in 0..SALES {
        let sale = shop.database.create_sale(&NewSale::of(10)).await.unwrap();
        let buying: Vec<_> = (0..40)
            .map(|number| {
                let shop = Arc::clone(&shop);
                tokio::spawn(async move {
                    let user = format!("{sale}-{number}");
                    shop.buy(&Wish { sale, user: &user, key: &user }, Strategy::Naive).await
                })
            })
            .collect();
        for bought in buying {
            // What it has broken for itself does not matter here.
            let _ = bought.await.unwrap();
        }
        let books = Ledger::books(&shop.database, sale).await.unwrap();
        if books.findings().iter().any(|finding| finding.starts_with("G-1")) {
            return;
        }
    }
    panic!("the naive strategy has not oversold in {SALES} sales, or the verifier has not seen it");
}

#[tokio::test]
async fn a_reply_that_contradicts_the_books_is_found() {
    let running = AnyDatabase::sqlite();
    let shop = shop_on(&running).await;
    let sale = shop.database.create_sale(&NewSale::of(2)).await.unwrap();
    let wish = Wish { sale, user: "ana", key: "one" };
    let Outcome::Reserved { order, .. } = shop.buy(&wish, Strategy::Conditional).await.unwrap() else {
        panic!("there are two");
    };
    let result_of =
        |heard: Word, is_paid| WishResult { user: "ana".to_owned(), key: "one".to_owned(), heard, is_paid };
    let reserved = |order: &str, is_paid| result_of(Word::Reserved(order.to_owned()), is_paid);
    let cases = [
        (reserved("another", None), "G-4"),
        (reserved(&order, None), "G-5"),
        (reserved(&order, Some(true)), "G-5"),
        (reserved(&order, Some(false)), "G-5"),
        (result_of(Word::SoldOut, None), "G-3"),
        (result_of(Word::Expired, None), "G-3"),
    ];
    let books = Ledger::books(&shop.database, sale).await.unwrap();
    for (result, broken) in cases {
        let found = result.contradictions(&books);
        assert!(matches!(found.as_slice(), [one] if one.contains(broken)), "{result:?}: {found:?}");
    }
    shop.pay(&order, "ana").await.unwrap();
    let books = Ledger::books(&shop.database, sale).await.unwrap();
    assert_eq!(reserved(&order, Some(true)).contradictions(&books), Vec::<String>::new());
    assert_eq!(reserved(&order, Some(false)).contradictions(&books).len(), 1);
    assert_eq!(books.findings(), Vec::<String>::new());
}
