//! A database, an address for its shop, and rounds on every database at the same time.

use std::fmt::Display;
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use conformance::random::Random;
use flash_sale::database::{Database, Dialect};
use harness::sale::{Figures, Scene, Stage};
use harness::{Options, Progress, Report, beside, thousands};
use testbed::{AnyDatabase, Flavour, Port, Redis};

use super::claim_no_findings;

/// The databases that everything is proved on.
pub(super) const ALL: [Dialect; 3] = [Dialect::Sqlite, Dialect::Postgres, Dialect::MariaDb];

/// Connections of those who look at the books.
const CONNECTIONS: u32 = 4;

/// The milliseconds for which a piece is reserved.
const PAY_WITHIN: (u64, u64) = (300, 1500);

/// Where rounds are.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) running: Arc<AnyDatabase>,
    pub(super) database: Database,
    pub(super) stage: Stage,
    _port: Port,
}

impl Lane {
    /// Starts a database, with a Redis for its shop if there is one.
    pub(super) async fn open(dialect: Dialect, redis: Option<String>) -> Result<Lane, String> {
        let running = start(dialect).await?;
        let database = Database::open(&running.url(), CONNECTIONS).await.map_err(said)?;
        let port = Port::free();
        let stage = Stage {
            program: beside("shop", "drills")?,
            database: running.url(),
            redis,
            listen: port.address(),
            secret: "of this drill only".to_owned(),
            further: Vec::new(),
        };
        Ok(Lane { running, database, stage, _port: port })
    }
}

/// Starts a database.
pub(super) async fn start(dialect: Dialect) -> Result<Arc<AnyDatabase>, String> {
    let start = match dialect {
        Dialect::Sqlite => AnyDatabase::sqlite,
        Dialect::Postgres => AnyDatabase::postgres,
        Dialect::MariaDb => AnyDatabase::mariadb,
    };
    tokio::task::spawn_blocking(start).await.map(Arc::new).map_err(said)
}

/// One round of several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Its number on its own database.
    pub(super) number: u64,
    pub(super) seed: u64,
}

/// A sale of thirty pieces to sixty buyers, by these strategies.
pub(super) fn scene(seed: u64, strategies: Vec<&'static str>, random: &mut Random) -> Scene {
    let pay_within = Duration::from_millis(random.between(PAY_WITHIN.0, PAY_WITHIN.1));
    Scene { stock: 30, buyers: 60, come_within: Duration::from_millis(1500), pay_within, strategies, seed }
}

/// Does rounds on every database at the same time, each by a shop and with a Redis of its own, and claims that all was
/// sold once. Returns the figures, and what else was counted.
pub(super) async fn rounds<T: AddAssign + Default + std::fmt::Debug>(
    name: &str,
    at_scale_1: u64,
    options: &Options,
    report: &mut Report,
    round: impl AsyncFn(&Lane, &Redis, Turn) -> Result<(Figures, T), String>,
) -> Result<(Figures, T), String> {
    let rounds = options.counted(at_scale_1);
    let (progress, over) = (Progress::new(name, rounds), AtomicU64::new(0));
    let on = async |place: usize| -> Result<(Figures, T), String> {
        let redis = Redis::start(Flavour::Redis7);
        let lane = Lane::open(ALL[place], Some(redis.url())).await?;
        let (mut all, mut counted) = (Figures::default(), T::default());
        for number in (place as u64..rounds).step_by(ALL.len()) {
            let turn = Turn { number: number / ALL.len() as u64, seed: options.seed.wrapping_add(number) };
            let named = |what: String| format!("round {number}, {}, seed {}: {what}", ALL[place], turn.seed);
            let (mut figures, more) = round(&lane, &redis, turn).await.map_err(named)?;
            figures.findings = figures.findings.into_iter().map(named).collect();
            all += figures;
            counted += more;
            let done = over.fetch_add(1, Ordering::Relaxed) + 1;
            progress.at(done, format!("{} findings on {}", all.findings.len(), ALL[place]));
        }
        Ok((all, counted))
    };
    let (sqlite, postgres, mariadb) = tokio::join!(on(0), on(1), on(2));
    let (mut figures, mut counted) = (Figures::default(), T::default());
    for (dialect, lane) in ALL.iter().zip([sqlite, postgres, mariadb]) {
        let (of_lane, more) = lane?;
        report.fact(format!("{dialect}: {} of {} sold; {more:?}", of_lane.paid, of_lane.stock));
        figures += of_lane;
        counted += more;
    }
    report.fact(format!(
        "{rounds} rounds: {} wishes, {} questions asked again, {} reservations went back, {} audits",
        thousands(figures.wishes),
        thousands(figures.repeated),
        thousands(figures.returned),
        thousands(figures.audits),
    ));
    claim_no_findings(report, &format!("{name}: G-1 to G-5 hold after every round"), &figures.findings);
    report.claim(
        figures.paid == figures.stock,
        &format!("{name}: everything is sold in the end"),
        format!("{} of {}", thousands(figures.paid), thousands(figures.stock)),
    );
    Ok((figures, counted))
}

/// An error as drills report it.
pub(super) fn said(error: impl Display) -> String {
    error.to_string()
}
