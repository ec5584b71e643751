//! Ten thousand buyers of five tries each, by every strategy, with the limiter and without, on every database.
//!
//! The naive strategy comes along on PostgreSQL: it has to oversell, else this would not see it.

use flash_sale::database::{Database, Dialect};
use flash_sale::strategy::Strategy;
use harness::sale::rush::{self, Figures, Limiter, Plan};
use harness::{Options, Progress, Report, beside, thousands};
use testbed::{Flavour, Redis};

use super::lane::{ALL, said, start};
use crate::Outcome;

const STOCK: u32 = 100;
const BUYERS: u64 = 10_000;

pub(super) async fn run(options: &Options, report: &mut Report) -> Outcome {
    for dialect in ALL {
        let all = on(dialect, options).await.map_err(|problem| format!("{dialect}: {problem}"))?;
        for figures in &all {
            claim(report, dialect, figures);
        }
        if dialect == Dialect::Postgres {
            let oversold = all.iter().filter(|figures| !figures.is_safe()).map(|figures| figures.oversold);
            let oversold: u64 = oversold.sum();
            report.claim(oversold > 0, "the naive strategy oversells on PostgreSQL", thousands(oversold));
        }
    }
    Ok(())
}

async fn on(dialect: Dialect, options: &Options) -> Result<Vec<Figures>, String> {
    let running = start(dialect).await?;
    let redis = Redis::start(Flavour::Redis7);
    let is_tried = |strategy: &Strategy| strategy.is_safe() || dialect == Dialect::Postgres;
    let strategies: Vec<&str> = Strategy::ALL.into_iter().filter(is_tried).map(Strategy::name).collect();
    let plan = Plan {
        redis: Some(redis.url()),
        stock: STOCK,
        buyers: u32::try_from(options.scaled(BUYERS)).map_err(said)?,
        seed: options.seed,
        ..Plan::new(beside("shop", "drills")?, running.url(), &strategies)
    };
    let combinations = plan.combinations().len() as u64;
    let progress = Progress::new(format!("sales on {dialect}"), combinations);
    let mut ended = 0;
    let on_progress = |step: rush::Progress<'_>| match step {
        rush::Progress::Ended(figures) => {
            ended += 1;
            progress.say(ended, format!("{} in {:.1} s", named(figures), figures.seconds));
        }
        rush::Progress::Tried(tries) => progress.at(ended, format!("{} tries", thousands(tries))),
        _ => {}
    };
    let database = Database::open(&running.url(), 2).await.map_err(said)?;
    let figures = rush::run(&plan, &database, on_progress).await;
    database.close().await;
    figures
}

fn claim(report: &mut Report, dialect: Dialect, figures: &Figures) {
    let counts = format!(
        "sold {}, oversold {}, duplicates {}, lost {}, conflicts {}, attempts {}, p99 {:.1} ms",
        figures.sold,
        figures.oversold,
        figures.duplicates,
        figures.lost,
        thousands(figures.conflicts),
        thousands(figures.attempts),
        figures.p99_ms,
    );
    if !figures.is_safe() {
        return report.fact(format!("{dialect}, {}: {counts}", named(figures)));
    }
    let is_exact = figures.sold == u64::from(STOCK).min(figures.buyers) && figures.is_exact();
    report.claim(is_exact, &format!("{dialect}, {}", named(figures)), counts);
}

fn named(figures: &Figures) -> String {
    let with = if figures.limiter == Limiter::On { "with" } else { "without" };
    format!("{} {with} limiter", figures.strategy)
}
