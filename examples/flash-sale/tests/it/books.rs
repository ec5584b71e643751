//! Constraints of the database, and findings of the audit without them.

use flash_sale::outcome::Wish;
use flash_sale::sale::NewSale;
use flash_sale::strategy::Strategy;
use sqlx::{AnyPool, AssertSqlSafe};

use testbed::AnyDatabase;

use crate::open::{sale_on, shop_on};

#[tokio::test]
async fn the_database_itself_refuses_less_than_nothing_two_orders_and_twice_a_key() {
    for running in AnyDatabase::all() {
        let (shop, sale) = sale_on(&running, &NewSale::of(1)).await;
        shop.buy(&Wish { sale, user: "ana", key: "k" }, Strategy::Conditional).await.unwrap();
        let raw = AnyPool::connect(&running.url()).await.unwrap();
        let order = |id: &str, sale: i64, user: &str, key: &str| {
            format!(
                "INSERT INTO orders (id, sale_id, user_id, request_key, state, strategy, reserved_at, expires_at)
                 VALUES ('{id}', {sale}, '{user}', '{key}', 'reserved', 'hand', 1, 2)"
            )
        };
        let refused = [
            "UPDATE sales SET available = available - 1".to_owned(),
            "UPDATE sales SET available = stock + 1".to_owned(),
            order("x", sale, "ana", "another"),
            order("x", sale + 1, "ana", "k"),
            "UPDATE orders SET state = 'lent'".to_owned(),
        ];
        for words in refused {
            let done = sqlx::query(AssertSqlSafe(words.clone())).execute(&raw).await;
            assert!(done.is_err(), "{words} on {}", shop.database.dialect());
        }
        assert_eq!(shop.database.audit().await.unwrap(), []);
        raw.close().await;
    }
}

#[tokio::test]
async fn the_audit_finds_what_may_never_be() {
    let planted = [
        ("UPDATE sales SET available = available - 1", "are not the stock"),
        ("UPDATE orders SET sale_id = 12345", "belongs to no sale"),
        (
            "INSERT INTO returns SELECT id, sale_id, user_id, request_key, 1 FROM orders",
            "returned and is there as well",
        ),
        ("UPDATE orders SET state = 'paid', paid_at = reserved_at", "without a payment"),
        ("INSERT INTO payments SELECT id, 999, 1 FROM orders", "belongs to no order that is paid"),
        ("UPDATE orders SET reserved_at = 1", "while the sale was not open"),
        ("UPDATE orders SET state = 'paid', paid_at = expires_at", "paid after its time"),
    ];
    for running in AnyDatabase::all() {
        let shop = shop_on(&running).await;
        let raw = AnyPool::connect(&running.url()).await.unwrap();
        for (words, expected) in planted {
            for table in ["orders", "returns", "payments", "sales"] {
                sqlx::query(AssertSqlSafe(format!("DELETE FROM {table}"))).execute(&raw).await.unwrap();
            }
            let sale = shop.database.create_sale(&NewSale::of(5)).await.unwrap();
            shop.buy(&Wish { sale, user: "ana", key: "k" }, Strategy::Conditional).await.unwrap();
            assert_eq!(shop.database.audit().await.unwrap(), []);
            sqlx::query(words).execute(&raw).await.unwrap();
            let findings = shop.database.audit().await.unwrap();
            assert!(findings.iter().any(|finding| finding.wrong.contains(expected)), "{words}: {findings:?}");
        }
        raw.close().await;
    }
}
