//! Tests of threads that race for the first ask of a key.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tidegate::{Limit, Limiter, MILLISECOND, Zone};

const THREADS: usize = 8;

/// Returns the number of allowed asks per key; all threads start each key together.
fn meet(limiter: &Limiter, keys: u64, asks: u64, mut between: impl FnMut()) -> Vec<u64> {
    let barrier = Barrier::new(THREADS + 1);
    let passed = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for key in 0..keys {
                    barrier.wait();
                    let mine = (0..asks).filter(|_| limiter.admit(key).is_allowed()).count();
                    passed.fetch_add(mine as u64, Ordering::Relaxed);
                    barrier.wait();
                }
            });
        }
        let mut each = Vec::new();
        for _ in 0..keys {
            barrier.wait();
            barrier.wait();
            each.push(passed.swap(0, Ordering::Relaxed));
            between();
        }
        each
    })
}

#[test]
fn a_newcomer_gets_one_cell_however_many_bring_it() {
    let keys = crate::traces(20_000) / 10;
    // Neighbours are replaced all the time: a cell belongs to one for a tenth of a second.
    let strangers = Limit::token_bucket(1, MILLISECOND);
    let zone = Zone::new(1 << 18);
    let neighbours = Limiter::on(&zone, "neighbours", strangers);
    let limiter = Limiter::on(&zone, "", "3/h burst 3".parse::<Limit>().unwrap());
    let mut stranger = 0_u64;
    let passed = meet(&limiter, keys, 2, || {
        for _ in 0..4 {
            stranger += 1;
            let _ = neighbours.admit(stranger);
        }
    });
    let counts = zone.counts();
    println!("newcomers: {keys} keys, {counts:?}");
    let wrong: Vec<_> = passed.iter().enumerate().filter(|(_, passed)| **passed != 3).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
