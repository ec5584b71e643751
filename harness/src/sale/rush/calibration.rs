//! How many pieces a database sells per second to a few clients, and what a limiter should let pass.
//!
//! Eight at a time keep a database busy. Half of what it sells to them passes the limiter: a buyer who reads the stock
//! while another takes from it loses the race, and at that rate buyers seldom meet.
//! An eighth of a second's worth may come at once, so that a small stock is not sold later than without limiter.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tidegate::{Algorithm, Limit, LimitBuilder};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::sale::{Client, Door, Wish};

/// So many buy at a time.
pub(super) const AT_A_TIME: u32 = 8;

/// Until connections and caches are there.
const WARMING: Duration = Duration::from_millis(500);

/// How long pieces are counted at a time.
const WINDOW: Duration = Duration::from_millis(500);

/// How often. The best counts: whatever else the machine does meanwhile only makes it less.
const WINDOWS: u32 = 5;

/// What part of that passes the limiter, in percent.
const PASSING: u64 = 50;

/// Pieces that a database sells per second.
pub(super) async fn measure(door: Door) -> Result<u64, String> {
    let counted = Arc::new(Counted {
        door,
        buyer: AtomicU32::new(0),
        sold: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    });
    let mut selling = JoinSet::new();
    for _ in 0..AT_A_TIME {
        let client =
            Client::connect(counted.door.shop).await.map_err(|error| super::buyers_failed(&error))?;
        selling.spawn(Arc::clone(&counted).buy(client));
    }
    sleep(WARMING).await;
    let mut best: f64 = 0.0;
    for _ in 0..WINDOWS {
        let (before, began) = (counted.sold.load(Ordering::Relaxed), Instant::now());
        sleep(WINDOW).await;
        let sold = counted.sold.load(Ordering::Relaxed) - before;
        best = best.max(sold as f64 / began.elapsed().as_secs_f64());
    }
    counted.is_over.store(true, Ordering::Relaxed);
    while let Some(ended) = selling.join_next().await {
        ended
            .map_err(|error| format!("buyers: {error}"))?
            .map_err(|said| format!("shop: it says {said} where it should sell"))?;
    }
    Ok(best as u64)
}

/// The limit that suits a database which sells so many per second.
pub(super) fn limit_for(per_second: u64) -> Result<Limit, String> {
    let rate = (per_second * PASSING / 100).max(1);
    let burst = (rate / 8).max(u64::from(AT_A_TIME));
    let draft = LimitBuilder::new(Algorithm::TokenBucket, rate, Duration::from_secs(1)).burst(burst);
    draft.build().map_err(|error| format!("rate: {error}"))
}

struct Counted {
    door: Door,
    buyer: AtomicU32,
    sold: AtomicU64,
    is_over: AtomicBool,
}

impl Counted {
    /// One buyer after the other.
    async fn buy(self: Arc<Counted>, mut client: Client) -> Result<(), String> {
        while !self.is_over.load(Ordering::Relaxed) {
            let buyer = self.buyer.fetch_add(1, Ordering::Relaxed);
            let user = format!("{:x}-{buyer}", self.door.opened_at);
            let wish =
                Wish { user: &user, key: &user, strategy: "pessimistic", limiter: "off", address: buyer + 1 };
            match client.ask(self.door.wish(&wish)).await {
                Ok(answer) if answer.is(201, "reserved") => self.sold.fetch_add(1, Ordering::Relaxed),
                answer => return Err(format!("{answer:?}")),
            };
        }
        Ok(())
    }
}
