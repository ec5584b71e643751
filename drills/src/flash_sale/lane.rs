//! A database, an address for its shop, and rounds on them one after the other.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};

use flash_sale::database::{Database, Dialect};
use flash_sale::proof::Stage;
use testbed::Port;

use super::databases::Running;
use super::program;
use crate::progress::Progress;

/// Connections of those who look at the books.
const CONNECTIONS: u32 = 4;

/// Where rounds are.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) running: Running,
    pub(super) database: Database,
    pub(super) stage: Stage,
    _port: Port,
}

impl Lane {
    /// Starts a database, with a Redis for its shop if there is one.
    pub(super) async fn open(dialect: Dialect, redis: Option<String>) -> Result<Lane, String> {
        let running = tokio::task::spawn_blocking(move || Running::start(dialect)).await.map_err(said)?;
        let database = Database::open(running.url(), CONNECTIONS).await.map_err(said)?;
        let port = Port::free();
        let stage = Stage {
            program: program()?,
            database: running.url().to_owned(),
            redis,
            listen: port.address(),
            secret: "of this drill only".to_owned(),
            further: Vec::new(),
        };
        Ok(Lane { running, database, stage, _port: port })
    }
}

/// How many rounds of all lanes are over.
#[derive(Debug)]
pub(super) struct Rounds {
    progress: Progress,
    done: AtomicU64,
}

impl Rounds {
    pub(super) fn new(name: &str, total: u64) -> Rounds {
        Rounds { progress: Progress::new(name, total), done: AtomicU64::new(0) }
    }

    /// One more is over.
    pub(super) fn one_more(&self, detail: impl Display) {
        self.progress.at(self.done.fetch_add(1, Ordering::Relaxed) + 1, detail);
    }
}

/// An error as drills tell it.
pub(super) fn said(error: impl Display) -> String {
    error.to_string()
}

/// Which of these numbers belong to one of several lanes.
pub(super) fn share(count: u64, lane: usize, lanes: usize) -> impl Iterator<Item = u64> {
    (lane as u64..count).step_by(lanes)
}
