//! How many of a key's asks were admitted, and to how many of those who met over it.

use tidegate::{Limiter, MILLISECOND, Zone};

use crate::account::Bucket;

/// What one of those who met over a key was admitted, to be added up in one word.
pub(super) fn share(admitted: u64) -> u64 {
    (u64::from(admitted > 0) << 32) | admitted
}

/// The sum of the shares of each key.
#[derive(Debug)]
pub(super) struct Meetings {
    burst: u64,
    keys: u64,
    /// How many keys were shared by one, by two and so on.
    parties: Vec<u64>,
    wrong: u64,
    first_wrong: Option<(u64, u64)>,
}

impl Meetings {
    pub(super) fn new(burst: u64) -> Meetings {
        Meetings { burst, keys: 0, parties: vec![0; burst as usize], wrong: 0, first_wrong: None }
    }

    /// Enters the sum of all shares of the next key.
    pub(super) fn enter(&mut self, shares: u64) {
        let (parties, admitted) = (shares >> 32, shares & u64::from(u32::MAX));
        if admitted != self.burst {
            self.wrong += 1;
            self.first_wrong.get_or_insert((self.keys, admitted));
        }
        if let Some(count) = self.parties.get_mut((parties as usize).wrapping_sub(1)) {
            *count += 1;
        }
        self.keys += 1;
    }

    pub(super) fn keys(&self) -> u64 {
        self.keys
    }

    pub(super) fn parties(&self) -> &[u64] {
        &self.parties
    }

    /// Keys whose burst went to more than one.
    pub(super) fn shared(&self) -> u64 {
        self.parties.iter().skip(1).sum()
    }

    /// Keys of which more or less than the burst was admitted.
    pub(super) fn wrong(&self) -> u64 {
        self.wrong
    }

    pub(super) fn first_wrong(&self) -> String {
        match self.first_wrong {
            None => "no exception".to_owned(),
            Some((key, admitted)) => {
                format!("{} exceptions, the first: key {key} was admitted {admitted}", self.wrong)
            }
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_burst_or_are_seen() {
        let mut meetings = Meetings::new(3);
        meetings.enter(share(2) + share(0) + share(1));
        meetings.enter(share(2) + share(2));
        meetings.enter(share(2));
        assert_eq!((meetings.keys(), meetings.wrong(), meetings.shared()), (3, 2, 2));
        assert_eq!(meetings.parties(), [1, 2, 0]);
        assert_eq!(meetings.first_wrong(), "2 exceptions, the first: key 1 was admitted 4");
    }
}
