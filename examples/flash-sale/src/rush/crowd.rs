//! The crowd: everybody tries once, then everybody who has nothing tries again, on so many connections.
//!
//! A wish keeps its key over all tries, as a browser would: a reservation whose answer was lost is told again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::client::{Client, Said};
use super::door::Door;
use super::failure::Failure;
use super::shuffle::shuffle;

/// How long a buyer waits at most before the next try, whatever the shop says.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// How often progress is told.
const TICK: Duration = Duration::from_millis(100);

/// Who come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowd {
    pub(super) buyers: u32,
    pub(super) tries: u32,
    pub(super) clients: u32,
    pub(super) seed: u64,
}

/// Somebody who has nothing yet.
#[derive(Clone, Copy, Debug)]
struct Buyer {
    number: u32,
    /// When the next try is due.
    next: Instant,
}

/// What the crowd was told.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The order of each buyer who has one, with the buyer.
    pub(super) orders: Vec<(String, String)>,
    /// Answers that end a wish without an order, and how often they came.
    pub(super) odd: BTreeMap<String, u64>,
    /// Requests without an answer.
    pub(super) unanswered: u64,
    /// Requests that were sent.
    pub(super) sent: u64,
}

impl Crowd {
    /// Opens the connections on which they come.
    pub(super) async fn gather(&self, door: &Door) -> Result<Vec<Client>, Failure> {
        let mut clients = Vec::new();
        for _ in 0..self.clients.min(self.buyers) {
            clients.push(Client::connect(door.shop).await.map_err(|error| Failure::buyers(&error))?);
        }
        Ok(clients)
    }

    /// Lets them all try. Says every now and then how many tries of all there may be are over.
    pub(super) async fn rush(
        &self,
        mut clients: Vec<Client>,
        door: &Arc<Door>,
        mut progress: impl FnMut(u64),
    ) -> Result<Heard, Failure> {
        let started = Instant::now();
        let mut wanting: Vec<Buyer> =
            (0..self.buyers).map(|number| Buyer { number, next: started }).collect();
        shuffle(&mut wanting, self.seed);
        let mut heard = Heard::default();
        for round in 0..self.tries {
            let over = u64::from(round) * u64::from(self.buyers);
            let content = u64::from(self.buyers) - wanting.len() as u64;
            let tried = Arc::new(AtomicU64::new(over + content));
            let tell = || progress(tried.load(Ordering::Relaxed));
            let results = every(Round::new(wanting, door, &tried), &mut clients, tell).await?;
            wanting = results.into_iter().filter_map(|result| heard.note(door, result)).collect();
            // Whoever comes back first, is first.
            wanting.sort_by_key(|buyer| buyer.next);
            if wanting.is_empty() {
                break;
            }
        }
        progress(u64::from(self.buyers) * u64::from(self.tries));
        Ok(heard)
    }
}

impl Heard {
    /// Keeps what a buyer was told; gives back who wants to try again.
    fn note(&mut self, door: &Door, (buyer, said): (Buyer, Said)) -> Option<Buyer> {
        self.sent += 1;
        match said {
            Said::Yours(order) => {
                self.orders.push((order, door.user(buyer.number)));
                return None;
            }
            Said::Other(name) => {
                *self.odd.entry(name).or_default() += 1;
                return None;
            }
            Said::Nothing => self.unanswered += 1,
            Said::Conflict | Said::SoldOut | Said::Limited(_) | Said::Unavailable => {}
        }
        Some(buyer)
    }
}

/// One try of everybody who wants to.
struct Round {
    buyers: Vec<Buyer>,
    /// Who is next.
    next: AtomicUsize,
    door: Arc<Door>,
    tried: Arc<AtomicU64>,
}

impl Round {
    fn new(buyers: Vec<Buyer>, door: &Arc<Door>, tried: &Arc<AtomicU64>) -> Arc<Round> {
        Arc::new(Round {
            buyers,
            next: AtomicUsize::new(0),
            door: Arc::clone(door),
            tried: Arc::clone(tried),
        })
    }

    /// Lets buyers try on one connection, as long as there are any.
    async fn serve(self: Arc<Round>, mut client: Client) -> (Client, Vec<(Buyer, Said)>) {
        let mut results = Vec::new();
        while let Some(&buyer) = self.buyers.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            sleep_until(buyer.next).await;
            let said = client.wish(self.door.wish(buyer.number)).await;
            self.tried.fetch_add(1, Ordering::Relaxed);
            let wait = match said {
                Said::Limited(wait) => wait.min(LONGEST_WAIT),
                _ => Duration::ZERO,
            };
            results.push((Buyer { next: Instant::now() + wait, ..buyer }, said));
        }
        (client, results)
    }
}

async fn every(
    round: Arc<Round>,
    clients: &mut Vec<Client>,
    mut tell: impl FnMut(),
) -> Result<Vec<(Buyer, Said)>, Failure> {
    let mut serving = JoinSet::new();
    for client in clients.drain(..) {
        serving.spawn(Arc::clone(&round).serve(client));
    }
    let mut results = Vec::new();
    loop {
        match timeout(TICK, serving.join_next()).await {
            Ok(Some(Ok((client, some)))) => {
                clients.push(client);
                results.extend(some);
            }
            Ok(Some(Err(error))) => return Err(Failure::of("buyers", error)),
            Ok(None) => return Ok(results),
            Err(_) => tell(),
        }
    }
}
