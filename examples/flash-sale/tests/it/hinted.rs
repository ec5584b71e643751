//! A Redis that forgets, lies and dies in the middle of a sale. The drill does the same fifty times.

use std::time::Duration;

use flash_sale::database::Database;
use flash_sale::proof::{Figures, Round, Scene, Serving, Stage};
use flash_sale::strategy::Strategy;
use testbed::{Flavour, Folder, Port, Redis, until};
use tokio::time::sleep;

/// How long to wait for what comes in a second or so, on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// A sale with trouble in the middle of it; the same trouble once more before the rest is sold.
async fn sale_with(trouble: impl Fn(&Redis, &str)) -> Figures {
    let (folder, redis, port) = (Folder::new("hinted"), Redis::start(Flavour::Redis7), Port::free());
    let url = format!("sqlite:{}", folder.file("shop.db").display());
    let database = Database::open(&url, 4).await.unwrap();
    let stage = Stage {
        program: env!("CARGO_BIN_EXE_flash-sale").into(),
        database: url,
        redis: Some(redis.url()),
        listen: port.address(),
        secret: "of this test only".to_owned(),
        further: Vec::new(),
    };
    let scene = Scene {
        stock: 10,
        buyers: 25,
        come_within: Duration::from_millis(800),
        pay_within: Duration::from_millis(500),
        strategies: vec![Strategy::Redis],
        seed: 7,
    };
    let mut round = Round::open(&stage, &database, scene).await.unwrap();
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
