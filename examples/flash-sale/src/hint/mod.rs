//! A deduction in Redis before the one in the database: a hint, and never more.
//!
//! ```text
//!   buyer --> take --> SoldOut: nothing for a newcomer, the database is spared
//!                 `--> Perhaps, Unknown: the database decides --> no order: give back
//! ```
//!
//! Two keys of a sale, in one slot: a counter of what is left, and the set of users for whom a unit was taken.
//! The counter lives ten seconds and is renewed each second by the [`Reconciler`]; one that lives longer, or for ever, is not believed.
//! So whatever is in Redis, nobody is told "sold out" wrongly for longer than that, even if Redis takes no writes.
//! A user of the set always passes: whoever holds an order and asks again must hear of that order.
//! Where Redis has lost the set, the reconciler tells it the buyers again, before it tells it what is left.
//! No call waits longer than 50 ms or fails: what is not known is [`Hinted::Unknown`].

mod link;
mod reconcile;

use std::sync::LazyLock;
use std::time::Duration;

use redis::Script;

use link::Link;

pub use reconcile::{Reconciler, Stock};

/// How long a call waits for Redis.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long a counter is believed after it was set.
const COUNTER_LIFE: Duration = Duration::from_secs(10);

/// How long users are remembered after the last of them.
const USERS_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// How many buyers Redis is told of at a time: a script holds up everybody else.
const AT_A_TIME: usize = 1000;

static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("take.lua")));
static GIVE_BACK: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("give_back.lua")));
static KNOW: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("know.lua")));
static SET: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("set.lua")));

/// What Redis says about the stock of sales; clones share one connection.
#[derive(Clone, Debug)]
pub struct Hint {
    link: Link,
}

impl Hint {
    /// Reads where Redis is, such as `redis://127.0.0.1:6379`; the first call connects.
    ///
    /// The error does not repeat the address, which may hold a password.
    pub fn connect(url: &str) -> Result<Hint, String> {
        Hint::with_patience(url, PATIENCE)
    }

    /// The same with calls that wait this long instead of 50 ms.
    pub fn with_patience(url: &str, patience: Duration) -> Result<Hint, String> {
        let client = redis::Client::open(url)
            .map_err(|error| format!("address of redis: {error}; write redis://host:port"))?;
        Ok(Hint { link: Link::new(client, patience) })
    }

    /// Takes one unit for a user, if there seems to be one; a user has at most one.
    pub async fn take(&self, sale: i64, user: &str) -> Hinted {
        let (counter, users) = keys(sale);
        let mut script = TAKE.key(counter);
        script.key(users).arg(user).arg(millis(COUNTER_LIFE)).arg(USERS_LIFE.as_secs());
        match self.link.ask(&script).await {
            Some(1) => Hinted::Perhaps,
            Some(0) => Hinted::SoldOut,
            _ => Hinted::Unknown,
        }
    }

    /// Gives back what was taken for a user; if nothing was, nothing happens.
    ///
    /// Only for users of whom the database has said that they hold no order: it had nothing left, or a reservation has expired.
    /// Not for those who had bought already, nor after a fault that leaves open what was done: a holder stays in the set.
    pub async fn give_back(&self, sale: i64, user: &str) {
        let (counter, users) = keys(sale);
        let mut script = GIVE_BACK.key(counter);
        script.key(users).arg(user);
        self.link.ask(&script).await;
    }

    /// Says who has bought: they pass, also where Redis has lost what it knew of them.
    pub async fn know(&self, sale: i64, buyers: &[String]) {
        let (counter, users) = keys(sale);
        for some in buyers.chunks(AT_A_TIME) {
            let mut script = KNOW.key(&counter);
            script.key(&users).arg(USERS_LIFE.as_secs()).arg(some);
            self.link.ask(&script).await;
        }
    }

    /// Says how many units are left, in place of whatever Redis has.
    pub async fn set(&self, sale: i64, left: i64) {
        let (counter, users) = keys(sale);
        let mut script = SET.key(counter);
        script.key(users).arg(left).arg(millis(COUNTER_LIFE)).arg(USERS_LIFE.as_secs());
        self.link.ask(&script).await;
    }
}

/// What Redis says to a user who wants to buy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hinted {
    /// There seems to be a unit for this user: ask the database.
    Perhaps,
    /// There seems to be none for a newcomer; it is true or will be corrected within seconds.
    SoldOut,
    /// Redis does not answer, knows nothing or holds nonsense: ask the database.
    Unknown,
}

/// The counter and the users of a sale; the braces put both in one slot of a cluster.
fn keys(sale: i64) -> (String, String) {
    (format!("flash-sale:{{{sale}}}:left"), format!("flash-sale:{{{sale}}}:users"))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
