//! Trouble in the middle of a sale: shops and databases that are killed, a Redis that forgets, lies and dies.
//!
//! The drill does the same a hundred times.

use std::time::Duration;

use flash_sale::database::Database;
use harness::sale::{Figures, Round, Scene, Serving, Stage};
use testbed::{Flavour, Folder, MariaDb, Port, Postgres, Redis, until};
use tokio::time::sleep;

/// How long to wait for what comes in a second or so, on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// Opens a shop for a small sale.
async fn open(url: &str, redis: Option<&Redis>, port: &Port, strategies: &[&'static str]) -> Round<Database> {
    let stage = Stage {
        program: env!("CARGO_BIN_EXE_shop").into(),
        database: url.to_owned(),
        redis: redis.map(Redis::url),
        listen: port.address(),
        secret: "of this test only".to_owned(),
        further: Vec::new(),
    };
    let scene = Scene {
        stock: 10,
        buyers: 25,
        come_within: Duration::from_millis(800),
        pay_within: Duration::from_millis(500),
        strategies: strategies.to_vec(),
        seed: 9,
    };
    Round::open(&stage, &Database::open(url, 4).await.unwrap(), scene).await.unwrap()
}

/// A sale with a kill of the shop and one of its database in the middle of it.
async fn sale_with_kills(url: &str, kill_database: impl AsyncFn()) -> Figures {
    let port = Port::free();
    let mut round = open(url, None, &port, &["value", "version", "conditional", "pessimistic"]).await;
    let kills = async |serving: &mut Serving| {
        sleep(Duration::from_millis(250)).await;
        serving.restart().await.map_err(|error| error.to_string())?;
        sleep(Duration::from_millis(150)).await;
        kill_database().await;
        Ok(())
    };
    round.run(kills).await.unwrap();
    round.settle().await.unwrap();
    round.sell_the_rest().await.unwrap();
    round.close().await.unwrap()
}

/// A sale with trouble of its Redis in the middle of it; the same trouble once more before the rest is sold.
async fn sale_with(trouble: impl Fn(&Redis, &str)) -> Figures {
    let (folder, redis, port) = (Folder::new("hinted"), Redis::start(Flavour::Redis7), Port::free());
    let url = format!("sqlite:{}", folder.file("shop.db").display());
    let mut round = open(&url, Some(&redis), &port, &["redis"]).await;
    let counter = format!("flash-sale:{{{}}}:left", round.sale());
    let in_the_middle = async |_: &mut Serving| {
        sleep(Duration::from_millis(300)).await;
        trouble(&redis, &counter);
        Ok(())
    };
    round.run(in_the_middle).await.unwrap();
    round.settle().await.unwrap();
    trouble(&redis, &counter);
    round.sell_the_rest().await.unwrap();
    if !redis.is_alive() {
        redis.restart();
    }
    tokio::task::block_in_place(|| {
        until("a counter that is true", SOON, || (redis.command(&["GET", &counter]) == "0").then_some(()));
    });
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_forgets_everything_changes_nothing() {
    let forget = |redis: &Redis, _: &str| drop(redis.command(&["FLUSHALL"]));
    assert_all_is_sold_once(&sale_with(forget).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_says_sold_out_is_believed_only_for_seconds() {
    let lie = |redis: &Redis, counter: &str| drop(redis.command(&["SET", counter, "0", "PX", "9900"]));
    assert_all_is_sold_once(&sale_with(lie).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_dies_changes_nothing() {
    assert_all_is_sold_once(&sale_with(|redis, _| redis.kill()).await);
}
