//! Many histories of one kind, several at the same time.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tidegate::{Clock, Timestamp};

use super::{Met, Versions, keep_their_promises};
use crate::random::Random;

thread_local! {
    static NOW: Cell<Timestamp> = const { Cell::new(Timestamp::EPOCH) };
}

/// The time of the history that a thread plays, for a store that all of them share.
#[derive(Clone, Copy, Debug)]
pub struct HistoryClock;

impl HistoryClock {
    /// Sets the time of this thread.
    pub fn set(now: Timestamp) {
        NOW.set(now);
    }
}

impl Clock for HistoryClock {
    fn now(&self) -> Timestamp {
        NOW.get()
    }
}

/// Histories of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Histories<'a> {
    /// The algorithm, or its variant.
    pub kind: &'a str,
    /// The number of histories; `TIDEGATE_TRACES` replaces it.
    pub count: u64,
    /// The number of operations in each.
    pub operations: u64,
    /// The number of threads that play them, so that one does not wait for the answers to another.
    pub at_once: usize,
}

impl Histories<'_> {
    /// Plays the histories, each on servers of its own by its number and its seed, and prints what they met.
    ///
    /// # Panics
    /// If a law is broken, or too few changes had counts to carry for the laws to say anything.
    pub fn play<V: Versions>(self, servers: impl Fn(u64, u64) -> V + Sync) -> Met {
        let Histories { kind, operations, .. } = self;
        let count = std::env::var("TIDEGATE_TRACES").ok().and_then(|traces| traces.parse().ok());
        let (count, seed) = (count.unwrap_or(self.count), Random::seed_from_environment());
        let next = AtomicU64::new(0);
        let play = || {
            let (mut met, mut name) = (Met::default(), "");
            loop {
                let history = next.fetch_add(1, Ordering::Relaxed);
                if history >= count {
                    return (met, name);
                }
                let history_seed = Random::new(seed.wrapping_add(history)).number();
                let arm = servers(history, history_seed);
                name = arm.name();
                match keep_their_promises(arm, kind, history_seed, operations) {
                    Ok(more) => met.add(more),
                    Err(broken) => panic!("{kind} ({name}), history {history} of seed {seed}: {broken}"),
                }
            }
        };
        let (mut met, mut on) = (Met::default(), "");
        thread::scope(|scope| {
            let players: Vec<_> = (0..self.at_once).map(|_| scope.spawn(play)).collect();
            for player in players {
                let (more, name) = player.join().expect("every law holds");
                met.add(more);
                on = if name.is_empty() { on } else { name };
            }
        });
        let Met { asks, denials, changes, carried, lagging, waits } = met;
        println!(
            "versions {kind} ({on}): {count} histories, {changes} changes, {carried} with counts to carry, {asks} asks, {denials} denied, {lagging} by old numbers, {waits} waits, 0 broken laws (seed {seed})"
        );
        assert!(carried > changes / 20, "only {carried} of {changes} changes had counts to carry");
        assert!(denials > asks / 10 && waits > denials / 20, "{met:?}");
        met
    }
}
