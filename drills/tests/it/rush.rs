//! A small rush on real shops: every strategy, every database, and the command.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use flash_sale::database::Database;
use flash_sale::strategy::Strategy;
use harness::sale::rush::{Figures, Limiter, Plan, run};
use resvg::usvg::{Options, Tree};
use testbed::{AnyDatabase, Flavour, Folder, Redis};

const PROGRAM: &str = env!("CARGO_BIN_EXE_shop");

/// How often the naive strategy may get away with it.
const SALES: usize = 30;

fn small(url: &str) -> Plan {
    let limit = Some("2000/s burst 20".parse().unwrap());
    Plan {
        stock: 10,
        buyers: 60,
        clients: 30,
        connections: 8,
        limit,
        ..Plan::new(PROGRAM, url, &Strategy::ALL.map(Strategy::name))
    }
}

async fn rushed(plan: &Plan) -> Vec<Figures> {
    let database = Database::open(&plan.database, 2).await.unwrap();
    let figures = run(plan, &database, |_| {}).await.unwrap();
    database.close().await;
    figures
}

async fn is_exact_on(database: &AnyDatabase) {
    let redis = Redis::start(Flavour::Redis7);
    let strategies =
        Strategy::ALL.into_iter().filter(|strategy| strategy.is_safe()).map(Strategy::name).collect();
    let plan = Plan { redis: Some(redis.url()), strategies, ..small(&database.url()) };
    let all = rushed(&plan).await;
    assert_eq!(all.len(), 10);
    for figures in all {
        assert!(figures.is_exact() && figures.unreported == 0, "{figures:?}");
        assert!(figures.odd_answers.is_empty() && figures.unanswered == 0, "{figures:?}");
        assert!(figures.requests >= 60 && figures.attempts >= 10, "{figures:?}");
        assert!(figures.sold_out_after_ms.is_some(), "{figures:?}");
        match (figures.limiter, figures.most_attempts) {
            (Limiter::On, Some(most)) => assert!(figures.attempts <= most, "{figures:?}"),
            (limiter, most) => assert_eq!((limiter, most), (Limiter::Off, None)),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_safe_strategy_is_exact_on_sqlite() {
    is_exact_on(&AnyDatabase::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_safe_strategy_is_exact_on_postgres() {
    is_exact_on(&AnyDatabase::postgres()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_safe_strategy_is_exact_on_mariadb() {
    is_exact_on(&AnyDatabase::mariadb()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_naive_strategy_is_seen_to_oversell_on_postgres() {
    let database = AnyDatabase::postgres();
    let plan = Plan {
        strategies: vec![Strategy::Naive.name()],
        limiters: vec![Limiter::Off],
        ..small(&database.url())
    };
    for _ in 0..SALES {
        let figures = rushed(&plan).await;
        if figures[0].oversold > 0 {
            assert!(!figures[0].is_exact() && figures[0].sold > 10, "{figures:?}");
            return;
        }
    }
    panic!("{SALES} sales, and nothing was oversold");
}

fn rush(folder: &Folder, words: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("rush").args(words).args(["--out", "report"]).current_dir(folder.path());
    command.env_remove("DATABASE_URL").env_remove("REDIS_URL").output().unwrap()
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

fn is_picture(file: &Path) -> bool {
    let svg = fs::read_to_string(file).unwrap();
    svg.contains(">pessimistic</text>") && Tree::from_str(&svg, &Options::default()).is_ok()
}

#[test]
fn the_command_measures_compares_and_leaves_a_report() {
    let folder = Folder::new("rush");
    let words = ["--stock", "5", "--buyers", "20", "--tries", "2", "--clients", "10"];
    let output = rush(&folder, &[&words[..], &["--strategy", "pessimistic,redis"]].concat());
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    for words in
        ["redis: skipped, no --redis URL", "this database sells ", "sold out within 1.5 ×", "requests/s"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    let report = folder.file("report");
    assert!(is_picture(&report.join("comparison.svg")));
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(report.join("rush.json")).unwrap()).unwrap();
    for figures in json["figures"].as_array().unwrap() {
        assert_eq!((figures["sold"].as_u64(), figures["lost"].as_u64()), (Some(5), Some(0)), "{said}");
    }
    for file in ["comparison.png", "report.html", "table.md"] {
        assert!(fs::metadata(report.join(file)).unwrap().len() > 100, "{file}");
    }
}

#[test]
fn a_crowd_too_small_to_buy_everything_is_said_to_be() {
    let folder = Folder::new("rush");
    let words = ["--stock", "9", "--buyers", "4", "--strategy", "conditional", "--limiter", "off"];
    let output = rush(&folder, &words);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("4 buyers for 9 pieces: some will be left"), "{}", said(&output));
}

#[test]
fn bad_arguments_are_named_and_nothing_is_run() {
    let wrong: [(&[&str], &str); 9] = [
        (&["--stock", "0"], "'--stock <STOCK>': 0 is not in 1..="),
        (&["--buyers", "-3"], "'--buyers <BUYERS>': -3 is not in 1..="),
        (&["--tries", "0"], "'--tries <TRIES>': 0 is not in 1..="),
        (&["--strategy", "hope"], "strategy \"hope\": there is none of this name"),
        (&["--strategy", ""], "strategy \"\": there is none of this name"),
        (&["--limiter", "maybe"], "[possible values: both, on, off]"),
        (&["--rate", "fast"], "fast"),
        (&["--rate", "10/s sliding-log"], "is no token bucket"),
        (&["--database", "oracle://shop"], "address of kind \"oracle\": write sqlite:FILE"),
    ];
    for (words, part) in wrong {
        let folder = Folder::new("rush");
        let output = rush(&folder, words);
        assert!(!output.status.success(), "{words:?}");
        assert!(said(&output).contains(part), "{words:?}: {}", said(&output));
        assert!(!folder.file("report").exists(), "{words:?}");
    }
}
