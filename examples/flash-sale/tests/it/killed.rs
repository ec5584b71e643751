//! Shops and databases that are killed in the middle of a sale. The drill does the same a hundred times.

use std::time::Duration;

use flash_sale::database::Database;
use flash_sale::proof::{Figures, Round, Scene, Serving, Stage};
use flash_sale::strategy::Strategy;
use testbed::{Folder, MariaDb, Port, Postgres};
use tokio::time::sleep;

const STRATEGIES: [Strategy; 4] =
    [Strategy::Value, Strategy::Version, Strategy::Conditional, Strategy::Pessimistic];

fn stage(url: &str, port: &Port) -> Stage {
    Stage {
        program: env!("CARGO_BIN_EXE_flash-sale").into(),
        database: url.to_owned(),
        redis: None,
        listen: port.address(),
        secret: "of this test only".to_owned(),
        further: Vec::new(),
    }
}

/// A sale with a kill of the shop and one of its database in the middle of it.
async fn sale_with_kills(url: &str, kill_database: impl AsyncFn()) -> Figures {
    let database = Database::open(url, 4).await.unwrap();
    let port = Port::free();
    let scene = Scene {
        stock: 10,
        buyers: 25,
        come_within: Duration::from_millis(800),
        pay_within: Duration::from_millis(500),
        strategies: STRATEGIES.to_vec(),
        seed: 9,
    };
    let mut round = Round::open(&stage(url, &port), &database, scene).await.unwrap();
    let kills = async |serving: &mut Serving| {
        sleep(Duration::from_millis(250)).await;
        serving.kill().await?;
        serving.restart().await?;
        sleep(Duration::from_millis(150)).await;
        kill_database().await;
        Ok(())
    };
    round.run(kills).await.unwrap();
    round.settle().await.unwrap();
    round.sell_the_rest().await.unwrap();
    round.close().await.unwrap()
}

fn assert_all_is_sold_once(figures: &Figures) {
    assert_eq!(figures.findings, Vec::<String>::new());
    assert_eq!((figures.stock, figures.paid), (10, 10));
    assert!(figures.audits > 1, "{figures:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_shop_on_sqlite_has_sold_everything_once_in_the_end() {
    let folder = Folder::new("killed");
    let url = format!("sqlite:{}", folder.file("shop.db").display());
    assert_all_is_sold_once(&sale_with_kills(&url, async || {}).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_shop_on_a_killed_postgresql_has_sold_everything_once_in_the_end() {
    let server = Postgres::start();
    let kill = async || tokio::task::block_in_place(|| server.restart());
    assert_all_is_sold_once(&sale_with_kills(&server.url(), kill).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_shop_on_a_killed_mariadb_has_sold_everything_once_in_the_end() {
    let server = MariaDb::start();
    let kill = async || tokio::task::block_in_place(|| server.restart());
    assert_all_is_sold_once(&sale_with_kills(&server.url(), kill).await);
}
