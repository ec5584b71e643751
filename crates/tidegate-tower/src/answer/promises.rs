//! What is said about limits that come and go, remembered while they are asked for.

use std::sync::{Arc, Mutex, PoisonError};

use tidegate::Limit;

use super::promise::Promise;

/// How many limits are remembered; most programs have fewer.
const MOST: usize = 64;

/// What was said about limits lately.
#[derive(Debug, Default)]
pub(crate) struct Promises(Mutex<Lately>);

#[derive(Debug, Default)]
struct Lately {
    known: Vec<Known>,
    /// Whose place the next one gets when there is no other.
    oldest: usize,
}

/// A limit and its name as it was given, which may be told otherwise.
#[derive(Debug)]
struct Known {
    limit: Limit,
    name: Box<str>,
    promise: Arc<Promise>,
}

impl Promises {
    /// What is said about a limit of this name.
    pub(crate) fn of(&self, name: &str, limit: &Limit) -> Arc<Promise> {
        let mut lately = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lately.known.iter().find(|known| known.limit == *limit && *known.name == *name) {
            return Arc::clone(&known.promise);
        }
        let promise = Arc::new(Promise::new(name, limit));
        let entry = Known { limit: *limit, name: name.into(), promise: Arc::clone(&promise) };
        let oldest = lately.oldest;
        match lately.known.get_mut(oldest) {
            Some(place) if oldest < MOST => *place = entry,
            _ => lately.known.push(entry),
        }
        lately.oldest = (oldest + 1) % MOST;
        promise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_may_be_are_remembered_and_each_is_its_own() {
        let promises = Promises::default();
        for _ in 0..2 {
            for amount in 1..=3 * MOST as u64 {
                let promise = promises.of(&format!("{}", amount % 2), &Limit::per_second(amount));
                assert_eq!(promise.name(), (amount % 2).to_string());
                let limit = Limit::per_second(amount);
                assert!(format!("{promise:?}").contains(&format!("q={amount};")), "{limit}");
                assert!(Arc::ptr_eq(&promise, &promises.of(promise.name(), &limit)));
            }
        }
        assert_eq!(promises.0.lock().unwrap().known.len(), MOST);
    }

    #[test]
    fn a_name_that_is_told_otherwise_is_found_again_and_two_told_alike_are_two() {
        let (promises, limit) = (Promises::default(), Limit::per_second(1));
        let first = promises.of("k\u{e4}se", &limit);
        assert_eq!(first.name(), "k_se");
        assert!(Arc::ptr_eq(&first, &promises.of("k\u{e4}se", &limit)));
        promises.of("k_se", &limit);
        assert_eq!(promises.0.lock().unwrap().known.len(), 2);
    }
}
