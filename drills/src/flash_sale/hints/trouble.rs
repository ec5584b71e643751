//! What happens to a Redis in the middle of a sale.

use std::time::Duration;

use conformance::random::Random;
use testbed::{Redis, Reply};
use tokio::time::sleep;

/// The milliseconds before it happens, and between two things that happen.
const QUIET: (u64, u64) = (50, 900);
/// The milliseconds for which it is stopped.
const STOPPED: (u64, u64) = (200, 2500);
/// As long as a counter lives that is believed.
const LIFE: &str = "9900";
/// What a counter may say that is not so.
const LIES: [&str; 6] = ["0", "-5", "1000000000", "abc", "", "1e3"];

/// The keys of a sale.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) counter: String,
    users: String,
}

impl Keys {
    pub(super) fn of(sale: i64) -> Keys {
        Keys { counter: format!("flash-sale:{{{sale}}}:left"), users: format!("flash-sale:{{{sale}}}:users") }
    }
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Everything is forgotten.
    Flushed,
    /// What was is restored over what is.
    Stale,
    /// The counter says something else.
    Lying,
    /// The keys are of another kind.
    Foreign,
    /// It is dead until the crowd has gone.
    Killed,
    /// It does not answer for a while, and then goes on.
    Stopped,
    /// It dies, and an empty one takes its place.
    Replaced,
}

impl Trouble {
    pub(super) const ALL: [Trouble; 7] = [
        Trouble::Flushed,
        Trouble::Stale,
        Trouble::Lying,
        Trouble::Foreign,
        Trouble::Killed,
        Trouble::Stopped,
        Trouble::Replaced,
    ];

    /// Lets it happen, at a moment that is random.
    pub(super) async fn happen(self, redis: &Redis, keys: &Keys, random: &mut Random) {
        nap(random, QUIET).await;
        match self {
            Trouble::Flushed => {
                redis.command(&["FLUSHALL"]);
            }
            Trouble::Stale => {
                let kept = [&keys.counter, &keys.users].map(|key| (key, dump(redis, key)));
                nap(random, QUIET).await;
                kept.iter().for_each(|(key, kept)| restore(redis, key, kept));
            }
            Trouble::Lying => {
                for _ in 0..3 {
                    redis.command(&["SET", &keys.counter, random.pick(&LIES), "PX", LIFE]);
                    nap(random, QUIET).await;
                }
                redis.command(&["SET", &keys.counter, random.pick(&LIES)]);
            }
            Trouble::Foreign => {
                let key = if random.percent(50) { &keys.counter } else { &keys.users };
                redis.command(&["DEL", key]);
                redis.command(&["HSET", key, "left", "7"]);
            }
            Trouble::Killed => redis.kill(),
            Trouble::Stopped => {
                redis.stop();
                nap(random, STOPPED).await;
                redis.resume();
            }
            Trouble::Replaced => redis.restart(),
        }
    }

    /// Says "sold out" to everybody new, as well as it can.
    pub(super) fn lie_once_more(self, redis: &Redis, keys: &Keys) {
        if self != Trouble::Killed {
            redis.command(&["SET", &keys.counter, "0", "PX", LIFE]);
        }
    }
}

async fn nap(random: &mut Random, (least, most): (u64, u64)) {
    sleep(Duration::from_millis(random.between(least, most))).await;
}

/// What a key holds; nothing if there is none.
fn dump(redis: &Redis, key: &str) -> Option<Vec<u8>> {
    match redis.connection().call(&["DUMP", key]) {
        Ok(Reply::Bulk(bytes)) => Some(bytes),
        _ => None,
    }
}

fn restore(redis: &Redis, key: &str, kept: &Option<Vec<u8>>) {
    let Some(bytes) = kept else { return };
    let words: [&[u8]; 5] = [b"RESTORE", key.as_bytes(), LIFE.as_bytes(), bytes, b"REPLACE"];
    let reply = redis.connection().call_bytes(&words);
    assert!(matches!(reply, Ok(Reply::Simple(_))), "RESTORE {key}: {reply:?}");
}
