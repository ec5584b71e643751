//! A crowd: every buyer tries once, then all without an order try again, on this many connections.
//!
//! A wish keeps its key over all tries, as a browser would: a reservation whose answer was lost is reported again.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::door::{Answer, Client, Door, Wish};

/// The longest wait before the next try, whatever the shop says.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Between two reports of progress.
const TICK: Duration = Duration::from_millis(100);

/// Who come, and what they ask for.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// How many buyers there are.
    pub buyers: u32,
    /// How often each of them tries at most.
    pub tries: u32,
    /// The connections on which they come.
    pub clients: u32,
    /// The seed of their order.
    pub seed: u64,
    /// The name of the strategy that they ask for.
    pub strategy: &'static str,
    /// The limiter that they ask for.
    pub limiter: &'static str,
}

/// A buyer without an order.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u32,
    /// When the next try is due.
    next: Instant,
}

/// An answer, as far as a crowd has to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    /// This order is yours.
    Yours(String),
    /// Not now, or not any more: come back after this.
    Again(Duration),
    /// No answer at all.
    Nothing,
    /// Something that ends the wish.
    Other(String),
}

/// The replies to the crowd.
#[derive(Debug, Default)]
pub struct Heard {
    /// The order of each buyer who has one, with the buyer.
    pub orders: Vec<(String, String)>,
    /// Answers that end a wish without an order, and how often they came.
    pub odd: BTreeMap<String, u64>,
    /// Requests without an answer.
    pub unanswered: u64,
    /// Requests that were sent.
    pub sent: u64,
}

impl Crowd {
    /// Opens the connections on which they come.
    pub async fn gather(&self, door: &Door) -> io::Result<Vec<Client>> {
        let mut clients = Vec::new();
        for _ in 0..self.clients.min(self.buyers) {
            clients.push(Client::connect(door.shop).await?);
        }
        Ok(clients)
    }

    /// Lets them all try. Reports now and then how many tries of all there may be are over.
    pub async fn rush(
        &self,
        mut clients: Vec<Client>,
        door: &Arc<Door>,
        mut progress: impl FnMut(u64),
    ) -> io::Result<Heard> {
        let started = Instant::now();
        let mut wanting: Vec<_> = (0..self.buyers).map(|number| Waiting { number, next: started }).collect();
        fastrand::Rng::with_seed(self.seed).shuffle(&mut wanting);
        let mut heard = Heard::default();
        for round in 0..self.tries {
            let over = u64::from(round) * u64::from(self.buyers);
            let content = u64::from(self.buyers) - wanting.len() as u64;
            let tried = Arc::new(AtomicU64::new(over + content));
            let tell = || progress(tried.load(Ordering::Relaxed));
            let round = Round {
                crowd: *self,
                buyers: wanting,
                next: AtomicUsize::new(0),
                door: Arc::clone(door),
                tried: Arc::clone(&tried),
            };
            let results = every(Arc::new(round), &mut clients, tell).await?;
            wanting = results.into_iter().filter_map(|(buyer, said)| heard.note(door, buyer, said)).collect();
            // The first to come back is the first.
            wanting.sort_by_key(|buyer| buyer.next);
            if wanting.is_empty() {
                break;
            }
        }
        progress(u64::from(self.buyers) * u64::from(self.tries));
        Ok(heard)
    }
}

/// The name of a buyer: a part of it is the moment of the opening, so that nothing is remembered of another rush.
fn user(door: &Door, number: u32) -> String {
    format!("{:x}-{number}", door.opened_at)
}

impl Heard {
    /// Records the reply to a buyer. Returns the buyer if it tries again.
    fn note(&mut self, door: &Door, buyer: Waiting, said: Said) -> Option<Waiting> {
        self.sent += 1;
        match said {
            Said::Yours(order) => {
                self.orders.push((order, user(door, buyer.number)));
                return None;
            }
            Said::Other(name) => {
                *self.odd.entry(name).or_default() += 1;
                return None;
            }
            Said::Nothing => self.unanswered += 1,
            Said::Again(_) => {}
        }
        Some(buyer)
    }
}

impl Said {
    /// Without an answer the wish may have been granted.
    fn of(answer: io::Result<Answer>) -> Said {
        let Ok(answer) = answer else { return Said::Nothing };
        match (answer.result(), answer.order()) {
            ("reserved" | "already_bought", Some(order)) => Said::Yours(order.to_owned()),
            ("conflict" | "sold_out" | "unavailable", _) => Said::Again(Duration::ZERO),
            ("limited", _) => {
                Said::Again(Duration::from_millis(answer.body["retry_after_ms"].as_u64().unwrap_or(1000)))
            }
            ("", _) => Said::Other(format!("status {}", answer.status)),
            (result, _) => Said::Other(result.to_owned()),
        }
    }
}

/// One try of every buyer who wants to.
struct Round {
    crowd: Crowd,
    buyers: Vec<Waiting>,
    /// The place of the next.
    next: AtomicUsize,
    door: Arc<Door>,
    tried: Arc<AtomicU64>,
}

impl Round {
    /// Lets buyers try on one connection, as long as there are any.
    async fn serve(self: Arc<Round>, mut client: Client) -> (Client, Vec<(Waiting, Said)>) {
        let mut results = Vec::new();
        while let Some(&buyer) = self.buyers.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            sleep_until(buyer.next).await;
            let user = user(&self.door, buyer.number);
            let key = format!("{}-{user}", self.door.sale);
            let Crowd { strategy, limiter, .. } = self.crowd;
            // Each buyer has an address; the shop believes it, because it comes from this machine.
            let wish = Wish { user: &user, key: &key, strategy, limiter, address: buyer.number + 1 };
            let said = Said::of(client.ask(self.door.wish(&wish)).await);
            self.tried.fetch_add(1, Ordering::Relaxed);
            let wait = if let Said::Again(wait) = said { wait.min(LONGEST_WAIT) } else { Duration::ZERO };
            results.push((Waiting { next: Instant::now() + wait, ..buyer }, said));
        }
        (client, results)
    }
}

async fn every(
    round: Arc<Round>,
    clients: &mut Vec<Client>,
    mut tell: impl FnMut(),
) -> io::Result<Vec<(Waiting, Said)>> {
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
            Ok(Some(Err(error))) => return Err(io::Error::other(error)),
            Ok(None) => return Ok(results),
            Err(_) => tell(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: u16, body: &str) -> Said {
        Said::of(Ok(Answer {
            status,
            body: serde_json::from_str(body).unwrap_or_default(),
            is_replayed: false,
        }))
    }

    #[test]
    fn answers_are_known_by_their_result() {
        let (order, again) = (|| "a".to_owned(), Said::Again(Duration::ZERO));
        assert_eq!(said(201, r#"{"result":"reserved","order":"a","left":3}"#), Said::Yours(order()));
        assert_eq!(said(409, r#"{"result":"already_bought","order":"a"}"#), Said::Yours(order()));
        for (status, result) in [(409, "conflict"), (410, "sold_out"), (503, "unavailable")] {
            assert_eq!(said(status, &format!(r#"{{"result":"{result}"}}"#)), again);
        }
        let limited = said(429, r#"{"result":"limited","retry_after_ms":250}"#);
        assert_eq!(limited, Said::Again(Duration::from_millis(250)));
        assert_eq!(Said::of(Err(io::Error::other("lost"))), Said::Nothing);
    }

    #[test]
    fn what_is_not_understood_is_kept_by_its_name() {
        assert_eq!(said(403, r#"{"result":"bad_link"}"#), Said::Other("bad_link".to_owned()));
        assert_eq!(said(502, "<html>"), Said::Other("status 502".to_owned()));
        assert_eq!(said(201, r#"{"result":"reserved"}"#), Said::Other("reserved".to_owned()));
    }
}
