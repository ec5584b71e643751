//! The reconciler brings Redis back to what the database has.

use flash_sale::database::Fault;
use flash_sale::outcome::{Outcome, Wish};
use flash_sale::sale::NewSale;
use flash_sale::strategy::Strategy;

use testbed::AnyDatabase;

use super::*;
use crate::shop_on;

#[tokio::test]
async fn the_reconciler_repairs_whatever_is_wrong() {
    let redis = redis();
    let hint = hint(&redis.url());
    let stock = Arc::new(AtomicI64::new(5));
    let _reconciler = Reconciler::start(hint.clone(), reading(&stock));
    eventually("a missing counter is set", async || counter(&redis) == "5").await;
    for wrong in ["0", "6", "many"] {
        redis.command(&["SET", LEFT, wrong]);
        eventually(&format!("{wrong:?} is repaired"), async || counter(&redis) == "5").await;
    }
    redis.command(&["FLUSHALL"]);
    eventually("an emptied redis is filled", async || counter(&redis) == "5").await;
    redis.command(&["DEL", LEFT]);
    redis.command(&["RPUSH", LEFT, "1"]);
    let text = || redis.try_command(&["GET", LEFT]).unwrap();
    eventually("a list is replaced", async || text() == Reply::Bulk(b"5".to_vec())).await;
    assert_eq!(hint.take(SALE, "ana").await, Perhaps);
}

#[tokio::test]
async fn returned_stock_can_be_taken_within_a_round() {
    let redis = redis();
    let hint = hint(&redis.url());
    let stock = Arc::new(AtomicI64::new(0));
    let _reconciler = Reconciler::start(hint.clone(), reading(&stock));
    eventually("it is sold out", async || hint.take(SALE, "ana").await == SoldOut).await;
    stock.store(1, Ordering::SeqCst);
    eventually("it is not", async || hint.take(SALE, "ana").await == Perhaps).await;
}

#[tokio::test]
async fn who_has_bought_is_never_sold_out_by_a_correction() {
    let redis = redis();
    let hint = hint_of(&redis, 1).await;
    assert_eq!(hint.take(SALE, "ana").await, Perhaps);
    for left in [3, 0, 1, 0] {
        hint.set(SALE, left).await;
    }
    assert_eq!(hint.take(SALE, "ben").await, SoldOut);
    assert_eq!(hint.take(SALE, "ana").await, Perhaps);
}

#[tokio::test]
async fn without_the_database_no_counter_is_touched() {
    let redis = redis();
    let hint = hint_of(&redis, 4).await;
    let rounds = Arc::new(AtomicI64::new(0));
    let counted = rounds.clone();
    let _reconciler = Reconciler::start(hint.clone(), move || {
        counted.fetch_add(1, Ordering::SeqCst);
        ready(Err("the database is gone"))
    });
    eventually("a second round", async || rounds.load(Ordering::SeqCst) >= 2).await;
    assert_eq!(counter(&redis), "4");
}

#[tokio::test]
async fn a_reconciler_ends_with_its_value() {
    let redis = redis();
    let hint = hint(&redis.url());
    let stock = Arc::new(AtomicI64::new(5));
    let reconciler = Reconciler::start(hint, reading(&stock));
    eventually("the first round", async || counter(&redis) == "5").await;
    assert_eq!(Arc::strong_count(&stock), 2);
    drop(reconciler);
    eventually("the task is gone", async || Arc::strong_count(&stock) == 1).await;
}

#[tokio::test]
async fn a_second_purchase_is_a_conflict_also_after_redis_has_lost_everything() {
    let redis = redis();
    let running = AnyDatabase::sqlite();
    let shop = shop_on(&running).await.with_hint(hint(&redis.url()));
    let sale = shop.database.create_sale(&NewSale::of(1)).await.unwrap();
    let wish = Wish { sale, user: "ana", key: "k" };
    let first = shop.buy(&wish, Strategy::Redis).await.unwrap();
    assert!(first.is_of_this_buyer(), "{first:?}");
    redis.command(&["FLUSHALL"]);

    let hint = shop.hint.clone().unwrap();
    let database = shop.database.clone();
    let _reconciler = Reconciler::start(hint.clone(), move || {
        let database = database.clone();
        async move {
            let left = database.sale(sale).await?.map_or(0, |sale| sale.available);
            Ok::<_, Fault>(vec![Stock { sale, left, buyers: database.buyers(sale).await? }])
        }
    });
    eventually("it is sold out", async || hint.take(sale, "ben").await == SoldOut).await;
    let again = shop.buy(&wish, Strategy::Redis).await.unwrap();
    assert!(matches!(again, Outcome::Reserved { replayed: true, .. }), "{again:?}");
}
