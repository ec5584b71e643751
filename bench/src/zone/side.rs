//! One of those that are compared: it decides about keys, given as numbers.

use tidegate::Limiter;

use super::key::Key;

/// How many keys are met at a time for the first time.
const MET_TOGETHER: u32 = 1000;

/// Where keys are when they are asked about.
#[derive(Clone, Copy)]
pub(super) enum Keys<'a> {
    /// All of them are at hand.
    Ready(&'a [String]),
    /// Each is written before it is asked about.
    Written,
}

/// How many of these it allows.
type Decide<'a> = Box<dyn Fn(&[u32]) -> u64 + Sync + 'a>;

/// A name, and how it decides.
pub(super) struct Side<'a> {
    pub(super) name: &'static str,
    decide: Decide<'a>,
}

impl<'a> Side<'a> {
    /// Decides one by one.
    pub(super) fn new(
        name: &'static str,
        keys: Keys<'a>,
        decide: impl Fn(&String) -> bool + Sync + 'a,
    ) -> Side<'a> {
        let decide: Decide<'a> = match keys {
            Keys::Ready(keys) => Box::new(move |numbers| {
                numbers.iter().map(|number| u64::from(decide(&keys[*number as usize]))).sum()
            }),
            Keys::Written => Box::new(move |numbers| {
                let mut key = Key::new();
                numbers.iter().map(|number| u64::from(decide(key.write(*number)))).sum()
            }),
        };
        Side { name, decide }
    }

    /// Writes so many keys, then decides about all of them.
    pub(super) fn in_batches(name: &'static str, size: usize, limiter: Limiter) -> Side<'a> {
        let decide = move |numbers: &[u32]| {
            let mut keys: Vec<_> = (0..size).map(|_| Key::new()).collect();
            let allowed = numbers.chunks(size).map(|batch| {
                for (key, number) in keys.iter_mut().zip(batch) {
                    key.write(*number);
                }
                let asked = keys[..batch.len()].iter().map(Key::text);
                limiter.admit_each(asked).filter(|decision| decision.is_allowed()).count() as u64
            });
            allowed.sum()
        };
        Side { name, decide: Box::new(decide) }
    }

    /// Decides about each of so many keys once, so that it knows them.
    pub(super) fn meet(self, keys: u32) -> Side<'a> {
        for from in (0..keys).step_by(MET_TOGETHER as usize) {
            let numbers: Vec<_> = (from..keys.min(from + MET_TOGETHER)).collect();
            self.decide(&numbers);
        }
        self
    }

    pub(super) fn decide(&self, numbers: &[u32]) -> u64 {
        (self.decide)(numbers)
    }
}

#[cfg(test)]
mod tests {
    use tidegate::{Limit, Zone};

    use super::*;

    fn three_each() -> Limiter {
        Limiter::on(&Zone::new(1 << 16), "user", Limit::per_hour(3))
    }

    #[test]
    fn one_by_one_and_in_batches_the_same_is_decided() {
        let numbers: Vec<_> = (0..100).map(|visit| visit % 7).collect();
        let (one_by_one, in_batches) = (three_each(), three_each());
        let keys = super::super::key::first(7);
        let ready = Side::new("", Keys::Ready(&keys), |key| one_by_one.admit(key).is_allowed());

        assert_eq!(ready.decide(&numbers), 21);
        assert_eq!(Side::in_batches("", 16, in_batches).decide(&numbers), 21);
        let written = Side::new("", Keys::Written, |key| one_by_one.admit(key).is_allowed());
        assert_eq!(written.decide(&numbers), 0, "they are the same keys");
    }

    #[test]
    fn who_meets_keys_decides_about_each_once() {
        let limiter = three_each();
        let side = Side::new("", Keys::Written, |key| limiter.admit(key).is_allowed()).meet(1001);
        assert_eq!(side.decide(&[0, 1000, 1001]), 3);
        assert_eq!(limiter.peek("user:000001000").remaining(), 1);
        assert_eq!(limiter.peek("user:000001001").remaining(), 2);
    }
}
