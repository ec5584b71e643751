//! A database that does not answer any more, and says nothing about it.

use std::time::Duration;

use flash_sale::database::Database;
use flash_sale::outcome::{Outcome, Wish};
use flash_sale::sale::NewSale;
use flash_sale::shop::Shop;
use flash_sale::strategy::Strategy;
use testbed::{MariaDb, Postgres};

/// Longer than a statement takes on a busy machine, and short enough to be waited for.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Stops the database in the middle of a sale, and lets it go on.
async fn stops_and_goes_on(url: &str, stop: impl Fn(), resume: impl Fn()) {
    let database = Database::open(url, 4).await.unwrap().with_timeout(TIMEOUT);
    let shop = Shop::new(database);
    let short = NewSale { pay_within: Duration::from_millis(50), ..NewSale::of(1) };
    let sale = shop.database.create_sale(&short).await.unwrap();
    let wish = Wish { sale, user: "ana", key: "k" };
    let first = shop.buy(&wish, Strategy::Conditional).await.unwrap();
    let Outcome::Reserved { order, .. } = first else { panic!("{first:?}") };

    stop();
    for strategy in [Strategy::Conditional, Strategy::Pessimistic] {
        let fault = shop.buy(&wish, strategy).await.unwrap_err();
        assert!(fault.is_unreachable(), "{fault}");
    }
    assert!(shop.pay(&order, "ana").await.unwrap_err().is_unreachable());
    resume();

    // An expiry or a purchase whose reply came too late has been made all the same, so only the order counts.
    let next = Wish { sale, user: "bob", key: "k" };
    loop {
        let _ = shop.expire().await;
        if let Ok(Outcome::Reserved { .. }) = shop.buy(&next, Strategy::Conditional).await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(shop.database.audit().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_that_is_stopped_delays_no_request_and_is_found_again() {
    let server = Postgres::start();
    stops_and_goes_on(&server.url(), || server.stop(), || server.resume()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mariadb_that_is_stopped_delays_no_request_and_is_found_again() {
    let server = MariaDb::start();
    stops_and_goes_on(&server.url(), || server.stop(), || server.resume()).await;
}
