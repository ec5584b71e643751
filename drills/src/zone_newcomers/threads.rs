//! Eight threads of one process, released on each key at once.
//!
//! They wait for the number of the round, not in the kernel, and then for a moment that comes soon after: a thread that
//! runs when the round begins is there within nanoseconds. There may be fewer processors than threads, so waiting
//! gives way to others after a while. The last thread to have asked begins the next round.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use conformance::random::Random;
use harness::{Progress, Stopwatch};
use tidegate::{Limiter, Zone};

use super::meeting::{Meetings, Neighbours, share};
use super::{ASKS, Found, LIMIT, zone_bytes};
use crate::waiting::wait_until;

const THREADS: u64 = 8;
/// From the beginning of a round until all ask who are there.
const GATHERING: Duration = Duration::from_micros(2);

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// For all keys; strangers stay until their cells expire.
    Wide,
    /// For a few dozen. Keys are reset after their round, and strangers leave at once: a thread that looks for a cell
    /// sees others than it would a moment later.
    Narrow,
}

impl Room {
    fn bytes(self, keys: u64) -> usize {
        match self {
            Room::Wide => zone_bytes(keys),
            Room::Narrow => 1024,
        }
    }
}

/// Where the threads meet.
struct Rounds {
    keys: u64,
    room: Room,
    /// The key to be asked for, from one on.
    round: AtomicU64,
    /// When, in nanoseconds of the watch.
    due: AtomicU64,
    arrived: AtomicU64,
    shares: AtomicU64,
    meetings: Mutex<Meetings>,
    watch: Stopwatch,
    progress: Progress,
}

pub(super) fn run(keys: u64, room: Room, drill: &str) -> Found {
    let zone = Zone::new(room.bytes(keys));
    let limiter = Limiter::on(&zone, "newcomers", LIMIT.limit());
    let rounds = Rounds {
        keys,
        room,
        round: AtomicU64::new(1),
        due: AtomicU64::new(0),
        arrived: AtomicU64::new(0),
        shares: AtomicU64::new(0),
        meetings: Mutex::new(Meetings::new(LIMIT.burst())),
        watch: Stopwatch::start(),
        progress: Progress::new(format!("{drill} threads"), keys),
    };
    let strangers = thread::scope(|scope| {
        let asking = |thread| {
            let neighbours = Neighbours::new(&zone, thread, THREADS);
            let (limiter, rounds) = (&limiter, &rounds);
            scope.spawn(move || rounds.ask_each(limiter, neighbours, Random::new(thread)))
        };
        let threads: Vec<_> = (0..THREADS).map(asking).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).sum()
    });
    let took = rounds.watch.elapsed();
    let meetings = rounds.meetings.into_inner().unwrap_or_else(PoisonError::into_inner);
    let counts = zone.counts();
    let met = (counts.retries, "exchanges lost to another");
    Found { meetings, asks: THREADS * ASKS, strangers, counts, met, took }
}

impl Rounds {
    /// Asks for each key with all others. How many strangers came with this thread.
    fn ask_each(&self, limiter: &Limiter, mut neighbours: Neighbours, mut random: Random) -> u64 {
        for round in 1..=self.keys {
            wait_until(|| self.round.load(Ordering::SeqCst) >= round);
            while self.now() < self.due.load(Ordering::Relaxed) {
                spin_loop();
            }
            if self.room == Room::Narrow {
                neighbours.visit(random.between(0, 2));
            }
            let name = round.to_le_bytes();
            let admitted = (0..ASKS).filter(|_| limiter.admit(&name[..]).is_allowed()).count();
            self.shares.fetch_add(share(admitted as u64), Ordering::SeqCst);
            if self.room == Room::Wide {
                neighbours.come(1);
            }
            if self.arrived.fetch_add(1, Ordering::SeqCst) + 1 == round * THREADS {
                self.begin(round + 1, limiter);
            }
        }
        neighbours.came()
    }

    /// Enters what came of the round before, and begins the next.
    fn begin(&self, round: u64, limiter: &Limiter) {
        let shares = self.shares.swap(0, Ordering::SeqCst);
        self.meetings.lock().unwrap_or_else(PoisonError::into_inner).enter(shares);
        self.progress.at(round - 1, "");
        if self.room == Room::Narrow {
            limiter.reset(&(round - 1).to_le_bytes()[..]);
        }
        self.due.store(self.now() + GATHERING.as_nanos() as u64, Ordering::Relaxed);
        self.round.store(round, Ordering::SeqCst);
    }

    fn now(&self) -> u64 {
        self.watch.elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_keys_are_admitted_their_burst() {
        for room in [Room::Wide, Room::Narrow] {
            let found = run(50, room, "test");
            assert_eq!((found.meetings.keys(), found.meetings.wrong()), (50, 0), "{room:?}");
            assert!(found.strangers > 100, "{room:?}");
        }
    }
}
