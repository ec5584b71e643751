//! What the shop does by itself: it looks at its shelves, takes back what nobody pays for, corrects the hint, and says
//! to the person who runs it what goes wrong.

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use tidegate::{Limit, Single};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::app::App;
use crate::database::{Database, Fault};
use crate::hint::{Reconciler, Stock};

/// Four times a second.
const EVERY: Duration = Duration::from_millis(250);

/// A round that takes longer hangs: the next one may find a database that answers.
const LONGEST: Duration = Duration::from_secs(30);

/// How many sales the hint is told about, the newest first.
const SALES: i64 = 64;

/// Tasks that end when this is dropped.
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

/// Does something again and again. Only when it begins to fail, and when that is over, somebody is told.
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

/// What is left of the sales that are not over, and who has the rest.
async fn stocks(database: &Database) -> Result<Vec<Stock>, Fault> {
    let mut stocks = Vec::new();
    for sale in database.latest_sales(SALES).await? {
        if sale.now < sale.closes_at {
            let buyers = database.buyers(sale.id).await?;
            stocks.push(Stock { sale: sale.id, left: sale.available, buyers });
        }
    }
    Ok(stocks)
}

/// Requests fail by the thousand when a database does: one line a second is enough.
static LINES: LazyLock<Single> = LazyLock::new(|| Single::new(Limit::per_second(1)));

/// Says something that is worth a line of its own.
pub(super) fn note(text: fmt::Arguments<'_>) {
    eprintln!("flash-sale: {text}");
}

/// Says why a request failed, unless another has just done so.
pub(super) fn failed(what: &str, fault: &Fault) {
    if LINES.admit().is_allowed() {
        note(format_args!("{what}: {fault}"));
    }
}
