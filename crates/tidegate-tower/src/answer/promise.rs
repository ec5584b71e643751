//! The parts of a reply that depend on the limit alone, made once.
//!
//! Formatting a policy and a problem document at each request would cost more than the decision. Both depend on the
//! limit and its name alone, so a layer makes them when it is built, and a gate when a rule first decides.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use tidegate_core::{Ask, Decision, Limit, State, Timestamp};
use tidegate_support::{LimitStatus, PolicyHeader, Problem, ProblemKind, RecentCache, policy_value};

/// The maximum length of a name.
const MAX_NAME: usize = 128;

/// The parts of a reply that depend on a limit and its name: the policy header field and the problem documents.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    name: Box<str>,
    policy: HeaderValue,
    /// The problem document of a denial that passes later.
    pub(super) exceeded: Bytes,
    /// The problem document of a denial that never passes.
    pub(super) too_much: Bytes,
}

impl Promise {
    /// Formats all parts; the name is made valid in header fields, see [`plain`].
    pub(crate) fn new(name: &str, limit: &Limit) -> Promise {
        let name = plain(name);
        let policy = policy_value(&name, limit);
        let (exceeded, too_much) = (exceeded(&name), too_much(&name, limit));
        Promise { name: name.into(), policy, exceeded, too_much }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns a decision as header fields report it, with the policy that is already formatted.
    #[inline]
    pub(crate) fn status<'a>(&'a self, decision: &'a Decision) -> LimitStatus<'a> {
        LimitStatus { name: &self.name, policy: PolicyHeader::Made(&self.policy), decision }
    }
}

/// A cache of [`Promise`]s. Rules are added and removed, and overrides have limits of their own.
#[derive(Debug, Default)]
pub(crate) struct Promises(Mutex<RecentCache<KnownPromise>>);

/// A limit and its name as it was given. Replies may contain it in another form, see [`plain`].
#[derive(Debug)]
struct KnownPromise {
    limit: Limit,
    name: Box<str>,
    promise: Arc<Promise>,
}

impl Promises {
    /// Returns the promise of a limit of this name.
    pub(crate) fn of(&self, name: &str, limit: &Limit) -> Arc<Promise> {
        find(&mut self.lock(), name, limit)
    }

    /// Returns the promises of several limits, each with its name.
    pub(crate) fn of_each<'l>(
        &self,
        limits: impl Iterator<Item = (&'l str, &'l Limit)>,
    ) -> Vec<Arc<Promise>> {
        let mut recent = self.lock();
        limits.map(|(name, limit)| find(&mut recent, name, limit)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, RecentCache<KnownPromise>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a promise from the cache, or makes it.
fn find(recent: &mut RecentCache<KnownPromise>, name: &str, limit: &Limit) -> Arc<Promise> {
    let is_it = |known: &KnownPromise| known.limit == *limit && *known.name == *name;
    let make = || {
        let promise = Arc::new(Promise::new(name, limit));
        Ok::<_, Infallible>(KnownPromise { limit: *limit, name: name.into(), promise })
    };
    let Ok(known) = recent.get_or_make((name, limit), is_it, make);
    Arc::clone(&known.promise)
}

/// Returns the problem document of a limit. The time is only in `Retry-After`, so the document is made once.
fn quota_exceeded(name: &str, detail: fmt::Arguments<'_>) -> Bytes {
    let problem = Problem { kind: ProblemKind::QuotaExceeded, status: StatusCode::TOO_MANY_REQUESTS, detail };
    problem.document(Some(name)).into()
}

/// Returns the problem document of a request that has to wait for this limit.
fn exceeded(name: &str) -> Bytes {
    quota_exceeded(
        name,
        format_args!("Denied by \"{name}\"; Retry-After says in how many seconds the same request passes."),
    )
}

/// Returns the problem document of a request whose cost is more than this limit can hold.
fn too_much(name: &str, limit: &Limit) -> Bytes {
    let most = limit.peek(&State::default(), Timestamp::EPOCH, Ask::ONE).limit();
    quota_exceeded(
        name,
        format_args!("This request can never pass: \"{name}\" holds at most {most}; ask for less."),
    )
}

/// Returns the name in a form that is valid within quotes: other characters become `_`.
fn plain(name: &str) -> String {
    let is_plain = |letter: char| matches!(letter, ' '..='~') && letter != '"' && letter != '\\';
    name.chars().take(MAX_NAME).map(|letter| if is_plain(letter) { letter } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_plain_and_not_too_long() {
        let name = |name: &str| Promise::new(name, &Limit::per_second(1)).name().to_owned();
        assert_eq!(name("a\"b\\c\u{e4}\r\nd e~"), "a_b_c___d e~");
        assert_eq!(name(&"x".repeat(1000)).len(), MAX_NAME);
    }

    #[test]
    fn each_limit_has_its_own_promise_and_the_last_ones_are_kept() {
        let promises = Promises::default();
        for _ in 0..2 {
            for amount in 1..=200 {
                let promise = promises.of(&format!("{}", amount % 2), &Limit::per_second(amount));
                assert_eq!(promise.name(), (amount % 2).to_string());
                let limit = Limit::per_second(amount);
                assert!(format!("{promise:?}").contains(&format!("q={amount};")), "{limit}");
                assert!(Arc::ptr_eq(&promise, &promises.of(promise.name(), &limit)));
            }
        }
        assert!(promises.0.lock().unwrap().entries().count() <= RecentCache::<KnownPromise>::ENTRIES);
    }

    #[test]
    fn a_name_that_is_made_plain_is_found_again_and_two_that_look_alike_are_two() {
        let (promises, limit) = (Promises::default(), Limit::per_second(1));
        let first = promises.of("k\u{e4}se", &limit);
        assert_eq!(first.name(), "k_se");
        assert!(Arc::ptr_eq(&first, &promises.of("k\u{e4}se", &limit)));
        promises.of("k_se", &limit);
        assert_eq!(promises.0.lock().unwrap().entries().count(), 2);
    }
}
