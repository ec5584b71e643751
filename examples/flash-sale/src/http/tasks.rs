//! Background tasks: read the sales, return expired reservations, correct the hint, and log faults.

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use tidegate::{DirectLimiter, Limit};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::app::App;
use crate::database::{Database, Fault};
use crate::hint::{Reconciler, Stock};

/// The interval of rounds: four times a second.
const EVERY: Duration = Duration::from_millis(250);

/// The timeout of a round: the next one may find a database that replies.
const LONGEST: Duration = Duration::from_secs(30);

/// Tasks that stop when this is dropped.
#[derive(Debug)]
pub(super) struct Tasks {
    handles: [JoinHandle<()>; 2],
    _reconciler: Option<Reconciler>,
}

impl Tasks {
    pub(super) fn start(app: &App) -> Tasks {
        let (seen, database) = (app.seen.clone(), app.shop.database.clone());
        let looking = tokio::spawn(repeat("looking at the sales", async move || seen.look(&database).await));
        let shop = app.shop.clone();
        let expiring = tokio::spawn(repeat("taking back reservations", async move || shop.expire().await));
        let database = app.shop.database.clone();
        let reconciler = app.shop.hint.clone().map(|hint| {
            Reconciler::start(hint, move || {
                let database = database.clone();
                async move { stocks(&database).await }
            })
        });
        Tasks { handles: [looking, expiring], _reconciler: reconciler }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.handles.iter().for_each(JoinHandle::abort);
    }
}

/// Repeats some work. Only the first failure and the recovery are logged.
async fn repeat<T>(what: &str, mut work: impl AsyncFnMut() -> Result<T, Fault>) {
    let mut rounds = interval(EVERY);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_failing = false;
    loop {
        rounds.tick().await;
        match timeout(LONGEST, work()).await.unwrap_or_else(|_| Err(Fault::silent())) {
            Ok(_) if is_failing => note(format_args!("{what}: works again")),
            Err(fault) if !is_failing => note(format_args!("{what}: {fault}; trying again")),
            Ok(_) | Err(_) => continue,
        }
        is_failing = !is_failing;
    }
}

/// Returns the remaining stock of the sales that are not over, and their buyers.
async fn stocks(database: &Database) -> Result<Vec<Stock>, Fault> {
    let mut stocks = Vec::new();
    for sale in database.latest_sales().await? {
        if sale.now < sale.closes_at {
            let buyers = database.buyers(sale.id).await?;
            stocks.push(Stock { sale: sale.id, left: sale.available, buyers });
        }
    }
    Ok(stocks)
}

/// The limit of log lines: when a database fails, thousands of requests fail, and one line a second is enough.
static LINES: LazyLock<DirectLimiter> = LazyLock::new(|| DirectLimiter::new(Limit::per_second(1)));

/// Logs a line.
pub(super) fn note(text: fmt::Arguments<'_>) {
    eprintln!("flash-sale: {text}");
}

/// Logs the fault of a request, unless another one was logged just before.
pub(super) fn failed(what: &str, fault: &Fault) {
    if LINES.admit().is_allowed() {
        note(format_args!("{what}: {fault}"));
    }
}
