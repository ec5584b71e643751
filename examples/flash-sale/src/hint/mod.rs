//! A deduction in Redis before the one in the database: a hint, never a decision.
//!
//! ```text
//!   buyer --> take --> SoldOut: no piece for a new buyer, without the database
//!                 `--> Perhaps, Unknown: the database decides --> no order: give back
//! ```
//!
//! A sale has two keys in one slot: a counter of the remaining units, and the set of users for whom a unit was taken.
//! The counter expires after ten seconds, and the [`Reconciler`] renews it each second. A counter with a longer expiry,
//! or with none, is ignored. So whatever is in Redis, a wrong "sold out" lasts at most that long, even if Redis accepts
//! no writes. A user in the set always passes: a buyer with an order who asks again must get that order. If Redis has
//! lost the set, the reconciler writes the buyers again before it sets the counter. No call waits longer than 50 ms or
//! fails: without a result it returns [`Hinted::Unknown`].

mod link;
mod reconcile;

use std::sync::LazyLock;
use std::time::Duration;

use redis::{Script, ScriptInvocation};

use link::Link;

pub use reconcile::{Reconciler, Stock};

/// The timeout of a call to Redis.
const TIMEOUT: Duration = Duration::from_millis(50);

/// The time for which a counter is valid after it was set, in milliseconds.
const COUNTER_LIFE_MS: u64 = 10_000;

/// The time for which the set of users is stored after its last change, in seconds.
const USERS_LIFE_S: u64 = 24 * 60 * 60;

/// The number of buyers that are written at a time: a script blocks all other clients of Redis.
const AT_A_TIME: usize = 1000;

static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("take.lua")));
static GIVE_BACK: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("give_back.lua")));
static KNOW: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("know.lua")));
static SET: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("set.lua")));

/// The stock of sales as Redis has it; clones share one connection.
#[derive(Clone, Debug)]
pub struct Hint {
    link: Link,
}

impl Hint {
    /// Parses the URL of Redis, such as `redis://127.0.0.1:6379`; the first call connects.
    ///
    /// The error does not repeat the URL, which may contain a password.
    pub fn connect(url: &str) -> Result<Hint, String> {
        Hint::with_timeout(url, TIMEOUT)
    }

    /// Returns the same with another timeout of calls than 50 ms.
    pub fn with_timeout(url: &str, timeout: Duration) -> Result<Hint, String> {
        let client = redis::Client::open(url)
            .map_err(|error| format!("address of redis: {error}; write redis://host:port"))?;
        Ok(Hint { link: Link::new(client, timeout) })
    }

    /// Takes one unit for a user, if the counter has one; a user has at most one.
    pub async fn take(&self, sale: i64, user: &str) -> Hinted {
        let mut script = script_of(&TAKE, sale);
        script.arg(user).arg(COUNTER_LIFE_MS).arg(USERS_LIFE_S);
        match self.link.ask(&script).await {
            Some(1) => Hinted::Perhaps,
            Some(0) => Hinted::SoldOut,
            _ => Hinted::Unknown,
        }
    }

    /// Adds the unit that was taken for a user back to the counter; without one it does nothing.
    ///
    /// Call it only for users without an order according to the database: no piece was left, or a reservation has
    /// expired. Do not call it for users who had bought already, nor after a fault with an unknown result: a user with
    /// an order stays in the set.
    pub async fn give_back(&self, sale: i64, user: &str) {
        self.link.ask(script_of(&GIVE_BACK, sale).arg(user)).await;
    }

    /// Adds buyers to the set, so that they pass even if Redis has lost them.
    pub async fn know(&self, sale: i64, buyers: &[String]) {
        for some in buyers.chunks(AT_A_TIME) {
            self.link.ask(script_of(&KNOW, sale).arg(USERS_LIFE_S).arg(some)).await;
        }
    }

    /// Sets the number of remaining units, in place of the value in Redis.
    pub async fn set(&self, sale: i64, left: i64) {
        self.link.ask(script_of(&SET, sale).arg(left).arg(COUNTER_LIFE_MS).arg(USERS_LIFE_S)).await;
    }
}

/// The reply of Redis about a user who wants to buy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hinted {
    /// There seems to be a unit for this user: the database decides.
    Perhaps,
    /// There seems to be none for a new buyer. This is true, or is corrected within seconds.
    SoldOut,
    /// Redis does not reply, has no data, or has invalid data: the database decides.
    Unknown,
}

/// Returns a call of a script with the keys of a sale: its counter and its users. The braces put both into one slot of a
/// cluster.
fn script_of(script: &Script, sale: i64) -> ScriptInvocation<'_> {
    let mut script = script.key(format!("flash-sale:{{{sale}}}:left"));
    script.key(format!("flash-sale:{{{sale}}}:users"));
    script
}
