//! Strangers whose cells are worth something for a tenth of a second or two, or for a moment only.

use tidegate::{Limiter, MILLISECOND, Zone};

use crate::account::Bucket;

const SHORT: Bucket = Bucket::new(1, MILLISECOND.saturating_mul(20), 1);
const LESS_SHORT: Bucket = Bucket::new(2, MILLISECOND.saturating_mul(100), 2);

/// Two limits whose subjects come once and never again.
#[derive(Debug)]
pub(super) struct Neighbours {
    limiters: [Limiter; 2],
    next: u64,
    step: u64,
}

impl Neighbours {
    /// Strangers numbered from `first` in steps of `step`, so that others may bring other ones.
    pub(super) fn new(zone: &Zone, first: u64, step: u64) -> Neighbours {
        let limiters = [("short", SHORT), ("less short", LESS_SHORT)];
        let limiters = limiters.map(|(name, bucket)| Limiter::on(zone, name, bucket.limit()));
        Neighbours { limiters, next: first, step }
    }

    /// So many strangers of each limit come.
    pub(super) fn come(&mut self, many: u64) {
        for _ in 0..many {
            for limiter in &self.limiters {
                let _ = limiter.admit(&self.next.to_le_bytes()[..]);
            }
            self.next += self.step;
        }
    }

    /// So many strangers of each limit come, and leave at once.
    pub(super) fn visit(&mut self, many: u64) {
        for _ in 0..many {
            let name = self.next.to_le_bytes();
            for limiter in &self.limiters {
                let _ = limiter.admit(&name[..]);
                limiter.reset(&name[..]);
            }
            self.next += self.step;
        }
    }

    /// How many have come.
    pub(super) fn came(&self) -> u64 {
        self.next / self.step * self.limiters.len() as u64
    }
}
