//! Clients of the server that is killed, and what they were answered.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use conformance::random::Random;
use testbed::{Connection, Reply};
use tidegate::{Clock as _, SystemClock, Ticks, Timestamp};

use super::rules::{self, KEYS, LEASE, PERMITS, Rule};
use crate::stretches::DOUBT;

/// What all clients were answered.
#[derive(Debug)]
pub(super) struct Ledger {
    rules: Vec<Rule>,
    /// How often each key was admitted in this round.
    counts: Vec<AtomicU64>,
    /// The time before which each key has been denied, in ticks.
    denied_until: Vec<AtomicU64>,
    answers: AtomicU64,
    denials: AtomicU64,
    freed: Mutex<Vec<String>>,
}

impl Ledger {
    pub(super) fn new() -> Ledger {
        let zeros = || (0..rules::keys()).map(|_| AtomicU64::new(0)).collect();
        Ledger {
            rules: rules::all(),
            counts: zeros(),
            denied_until: zeros(),
            answers: AtomicU64::new(0),
            denials: AtomicU64::new(0),
            freed: Mutex::default(),
        }
    }

    /// The counts of this round; the next one begins with none.
    pub(super) fn take_counts(&self) -> Vec<u64> {
        self.counts.iter().map(|count| count.swap(0, Ordering::Relaxed)).collect()
    }

    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    pub(super) fn denials(&self) -> u64 {
        self.denials.load(Ordering::Relaxed)
    }

    /// Keys that were allowed too early after a denial.
    pub(super) fn freed(&self) -> Vec<String> {
        self.freed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn denied_until(&self, key: usize) -> Timestamp {
        Timestamp::from_ticks(self.denied_until[key].load(Ordering::Relaxed))
    }

    /// Enters an answer. The key was denied until then when it was asked about.
    fn enter(&self, key: usize, answer: &Answer, denied_until: Timestamp) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        match answer.retry_after {
            None => {
                self.counts[key].fetch_add(1, Ordering::Relaxed);
                if answer.after.saturating_add(doubt()) < denied_until {
                    let early = denied_until.since(answer.after).to_duration();
                    let rule = self.rules[key / KEYS];
                    let what = format!("key {key} at {}, {early:?} too early", rule.limit);
                    self.freed.lock().unwrap_or_else(PoisonError::into_inner).push(what);
                }
            }
            Some(wait) => {
                self.denials.fetch_add(1, Ordering::Relaxed);
                // A permit that is released frees its key earlier. Milliseconds are rounded up.
                if !self.rules[key / KEYS].gives_permits() {
                    let until = answer.before.saturating_add(millis(wait.saturating_sub(1)));
                    self.denied_until[key].fetch_max(until.ticks(), Ordering::Relaxed);
                }
            }
        }
    }
}

/// A permit that a client holds.
#[derive(Debug)]
struct Held {
    key: usize,
    permit: String,
    /// The time at which its lease ends at the earliest.
    until: Timestamp,
}

/// One client, which outlives the servers.
#[derive(Debug)]
pub(super) struct Client {
    number: u64,
    random: Random,
    held: Vec<Held>,
    /// How many permits it was given.
    pub(super) granted: u64,
    /// Renewals and releases that were answered while the lease had surely not ended.
    pub(super) checked: u64,
    /// Permits whose release was not answered.
    pub(super) unsure: u64,
    /// Leases that were lost.
    pub(super) lost: Vec<String>,
}

impl Client {
    pub(super) fn new(number: u64, seed: u64) -> Client {
        let random = Random::new(seed);
        Client { number, random, held: Vec::new(), granted: 0, checked: 0, unsure: 0, lost: Vec::new() }
    }

    /// Asks until the server is gone.
    pub(super) fn work(
        &mut self,
        address: SocketAddr,
        ledger: &Ledger,
        clock: &SystemClock,
        is_over: &AtomicBool,
    ) {
        let Ok(mut connection) = Connection::open(address) else { return };
        while !is_over.load(Ordering::Relaxed) {
            let is_answered = match self.random.between(0, 9) {
                0 | 1 if !self.held.is_empty() => self.give_back(&mut connection, clock),
                2 | 3 if !self.held.is_empty() => self.renew(&mut connection, clock),
                _ => self.ask(&mut connection, ledger, clock),
            };
            if is_answered.is_none() {
                return;
            }
        }
    }

    fn ask(&mut self, connection: &mut Connection, ledger: &Ledger, clock: &SystemClock) -> Option<()> {
        let rule = self.random.between(0, ledger.rules.len() as u64 - 1) as usize;
        let gives_permits = ledger.rules[rule].gives_permits();
        // Each client has permits of keys of its own, so that it knows all of them.
        let own = self.random.between(0, KEYS as u64 / super::CLIENTS - 1) * super::CLIENTS + self.number;
        let any = self.random.between(0, KEYS as u64 - 1);
        let key = rule * KEYS + if gives_permits { own } else { any } as usize;
        let denied_until = ledger.denied_until(key);
        let before = clock.now();
        let (rule, user) = (format!("rule-{rule}"), format!("user {key}"));
        let reply = connection.call(&["TG.ADMIT", "rule", &rule, "user", &user]).ok()?;
        let answer = Answer::read(&reply, before, clock.now());
        let Some(answer) = answer else {
            self.lost.push(format!("{rule}: {}", reply.text()));
            return None;
        };
        ledger.enter(key, &answer, denied_until);
        if let (true, Some(permit)) = (gives_permits, answer.permit) {
            self.granted += 1;
            self.held.push(Held { key, permit, until: before.saturating_add(lease()) });
            let sure = answer.after.saturating_add(doubt());
            let in_flight = self.held.iter().filter(|held| held.key == key && held.until > sure).count();
            if in_flight > PERMITS {
                self.lost.push(format!("key {key} holds {in_flight} permits"));
            }
        }
        Some(())
    }

    fn give_back(&mut self, connection: &mut Connection, clock: &SystemClock) -> Option<()> {
        let index = self.random.between(0, self.held.len() as u64 - 1) as usize;
        let held = self.held.swap_remove(index);
        let Ok(reply) = connection.call(&["TG.RELEASE", &held.permit]) else {
            self.unsure += 1;
            return None;
        };
        self.check(&held, &reply, "released", clock)
    }

    fn renew(&mut self, connection: &mut Connection, clock: &SystemClock) -> Option<()> {
        let index = self.random.between(0, self.held.len() as u64 - 1) as usize;
        let before = clock.now();
        // If the answer is cut off, the lease may have been renewed: it ends no earlier than it did.
        let reply = connection.call(&["TG.RENEW", &self.held[index].permit]).ok()?;
        let mut held = self.held.swap_remove(index);
        self.check(&held, &reply, "renewed", clock)?;
        if reply.number() == Some(1) {
            held.until = before.saturating_add(lease());
            self.held.push(held);
        }
        Some(())
    }

    /// A permit whose lease had not ended when the answer came was still held.
    fn check(&mut self, held: &Held, reply: &Reply, done: &str, clock: &SystemClock) -> Option<()> {
        let is_sure = clock.now().saturating_add(doubt()) < held.until;
        match reply.number() {
            Some(1) => self.checked += u64::from(is_sure),
            Some(0) if !is_sure => {}
            _ => self.lost.push(format!("key {} could not be {done}: {}", held.key, reply.text())),
        }
        Some(())
    }
}

/// The answer to a request, and when it was asked and answered.
#[derive(Debug)]
struct Answer {
    before: Timestamp,
    after: Timestamp,
    /// The wait in milliseconds, if it was denied.
    retry_after: Option<u64>,
    permit: Option<String>,
}

impl Answer {
    fn read(reply: &Reply, before: Timestamp, after: Timestamp) -> Option<Answer> {
        let field = |name: &str| {
            reply.parts().chunks_exact(2).find(|pair| pair[0].text() == name).map(|pair| &pair[1])
        };
        let is_allowed = field("allowed")?.number()? == 1;
        let wait = u64::try_from(field("retry_after")?.number()?).unwrap_or(0);
        let permit = field("permit").map(Reply::text);
        Some(Answer { before, after, retry_after: (!is_allowed).then_some(wait), permit })
    }
}

fn millis(milliseconds: u64) -> Ticks {
    Ticks::saturating_from(std::time::Duration::from_millis(milliseconds))
}

fn doubt() -> Ticks {
    Ticks::saturating_from(DOUBT)
}

fn lease() -> Ticks {
    Ticks::saturating_from(LEASE)
}
