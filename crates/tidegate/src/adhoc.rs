//! Limits that come with each ask.

use std::fmt;
use std::sync::Arc;

use crate::ask::{Adjusted, Adjustment, Ask};
use crate::decision::{Decision, PermitId};
use crate::decisions::Decisions;
use crate::key::IntoKey;
use crate::limit::Limit;
use crate::store::name::{Account, Name, Namespace};
use crate::store::together::{Bid, take_all};
use crate::store::zone::{Placed, Prefixes};
use crate::store::{Holder, Memory, WhenFull, Zone};
use crate::time::{RECENT, Timestamp};

/// How many are fetched together: more would push each other out of the nearest cache.
const TOGETHER: usize = 32;

/// Subjects on a store whose limit is given with each ask; clones share them.
///
/// This is what a server needs whose callers say the limit. A state belongs to (name, algorithm, key): other numbers
/// in the limit leave it where it is, cut to what the new limit can hold; another algorithm is another state.
///
/// ```
/// use tidegate::{AdHoc, Ask, Limit, Zone};
///
/// let adhoc = AdHoc::on(&Zone::new(1 << 20), "");
/// let limit: Limit = "2/60s".parse()?;
/// assert_eq!(adhoc.take("ana", &limit, Ask::ONE).remaining(), 1);
/// assert_eq!(adhoc.take("ana", &Limit::per_minute(3), Ask::ONE).limit(), 3);
/// # Ok::<(), tidegate::LimitError>(())
/// ```
#[derive(Clone)]
pub struct AdHoc {
    inner: Arc<Inner>,
}

struct Inner {
    memory: Memory,
    namespace: Namespace,
    /// What the names of its subjects begin with, for the zone that holds them.
    prefixes: Option<Prefixes>,
}

/// One ask of one subject under one limit, for [`AdHoc::take_each`] and [`AdHoc::take_all`].
#[derive(Clone, Copy, Debug)]
pub struct AdHocAsk<'l, K> {
    /// Who it is.
    pub key: K,
    /// What is promised.
    pub limit: &'l Limit,
    /// What is wanted.
    pub ask: Ask,
}

impl AdHoc {
    /// Subjects under this name on a store that others use, too.
    pub fn on(store: impl Into<Memory>, name: &str) -> AdHoc {
        let (memory, namespace) = (store.into(), Namespace::new(name));
        let prefixes = memory.zone().map(|zone| zone.prefixes(&namespace));
        AdHoc { inner: Arc::new(Inner { memory, namespace, prefixes }) }
    }

    /// Decides about one ask, and spends if allowed.
    #[must_use = "a decision that nobody reads limits nobody"]
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn take(&self, key: impl IntoKey, limit: &Limit, ask: Ask) -> Decision {
        match self.inner.straight_to(limit) {
            Some((zone, prefixes)) => zone.spend_on(prefixes, &key, (limit.terms(), WhenFull::Share), ask),
            None => self.take_by_name(&key, limit, ask),
        }
    }

    /// Decides about many asks, each by itself and in this order, and tells each decision; faster than one by one:
    /// the states of a few dozen are fetched together.
    ///
    /// All are decided as of one instant, so the answers are those of single asks at that instant. Only a call that
    /// takes longer than a twentieth of a second goes on to a later one.
    ///
    /// ```
    /// use tidegate::{AdHoc, AdHocAsk, Ask, Limit, Zone};
    ///
    /// let adhoc = AdHoc::on(&Zone::new(1 << 20), "");
    /// let limit = Limit::per_hour(1);
    /// let asks = ["ana", "bob", "ana"].map(|key| AdHocAsk { key, limit: &limit, ask: Ask::ONE });
    /// let mut allowed = Vec::new();
    /// adhoc.take_each(asks.iter().copied(), |decision| allowed.push(decision.is_allowed()));
    /// assert_eq!(allowed, [true, true, false]);
    /// ```
    pub fn take_each<'l, K: IntoKey>(
        &self,
        asks: impl Iterator<Item = AdHocAsk<'l, K>> + Clone,
        mut tell: impl FnMut(Decision),
    ) {
        let (mut rest, mut at) = (asks, None::<Timestamp>);
        loop {
            let mut places = [None; TOGETHER];
            let mut count = 0;
            for (place, asked) in places.iter_mut().zip(rest.clone()) {
                *place = self.inner.straight_to(asked.limit).map(|(zone, prefixes)| {
                    Placed::new(zone, prefixes, (asked.limit.terms(), &asked.key), asked.ask)
                });
                count += 1;
            }
            if count == 0 {
                return;
            }
            let now = self.inner.memory.clock().now();
            let at = at.insert(at.filter(|at| now.since(*at) < RECENT).unwrap_or(now));
            for (place, asked) in places[..count].iter().zip(&mut rest) {
                tell(match (self.inner.memory.zone(), place) {
                    (Some(zone), Some(placed)) => {
                        zone.spend_placed(at, placed, (asked.limit.terms(), WhenFull::Share))
                    }
                    _ => {
                        let account = self.inner.account(&asked.key, asked.limit);
                        self.inner.memory.ready_for(&account).spend_as_of(&account, asked.ask, at)
                    }
                });
            }
        }
    }

    /// Takes all or none: spends only if every ask passes.
    #[must_use = "a decision that nobody reads limits nobody"]
    pub fn take_all<K: IntoKey>(&self, asks: &[AdHocAsk<'_, K>]) -> Decisions {
        let accounts: Vec<_> = asks.iter().map(|asked| self.inner.account(&asked.key, asked.limit)).collect();
        let bids = accounts.iter().zip(asks).map(|(account, asked)| Bid {
            holder: self.inner.memory.ready_for(account),
            account,
            ask: asked.ask,
        });
        take_all(&bids.collect::<Vec<_>>())
    }

    /// What [`AdHoc::take`] would say, without spending.
    #[must_use = "a decision that nobody reads limits nobody"]
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn peek(&self, key: impl IntoKey, limit: &Limit, ask: Ask) -> Decision {
        let account = self.inner.account(&key, limit);
        self.inner.memory.holder(limit.terms()).look(&account, ask)
    }

    /// Charges what turned out to be more, or gives back what was not used.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn adjust(&self, key: impl IntoKey, limit: &Limit, adjustment: Adjustment) -> Adjusted {
        let account = self.inner.account(&key, limit);
        self.inner.memory.ready_for(&account).adjust_in(&account, adjustment)
    }

    /// Gives a place in flight back, under a concurrency limit. Whether the permit was still holding one.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn release(&self, key: impl IntoKey, limit: &Limit, permit: PermitId) -> bool {
        let account = self.inner.account(&key, limit);
        self.inner.memory.holder(limit.terms()).release_in(&account, permit)
    }

    /// Starts a permit's lease anew, under a concurrency limit. Whether it was still holding its place.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn renew(&self, key: impl IntoKey, limit: &Limit, permit: PermitId) -> bool {
        let account = self.inner.account(&key, limit);
        self.inner.memory.holder(limit.terms()).renew_in(&account, permit)
    }

    /// Forgets a subject, whatever the algorithm. Whether anything was remembered about it.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn reset(&self, key: impl IntoKey) -> bool {
        self.inner.memory.forget(&self.inner.account(&key, &ANY))
    }

    fn take_by_name(&self, key: &impl IntoKey, limit: &Limit, ask: Ask) -> Decision {
        let account = self.inner.account(key, limit);
        self.inner.memory.ready_for(&account).spend(&account, ask)
    }
}

/// A limit for a name that is forgotten under all of them.
const ANY: Limit = Limit::per_second(1);

impl Inner {
    /// The zone, if it holds the states of this limit; it is told how deep they can go.
    #[inline]
    fn straight_to(&self, limit: &Limit) -> Option<(&Zone, &Prefixes)> {
        match (self.memory.holder(limit.terms()), &self.prefixes) {
            (Holder::Zone(zone), Some(prefixes)) => {
                zone.expect(limit.terms());
                Some((zone, prefixes))
            }
            _ => None,
        }
    }

    fn account(&self, key: &impl IntoKey, limit: &Limit) -> Account {
        Name::new(&self.namespace, key).under(*limit.terms())
    }
}

impl fmt::Debug for AdHoc {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AdHoc").field("store", &self.inner.memory).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::{Cost, Map};

    type Owned = (&'static str, Limit, Ask);

    fn asked(key: &'static str, limit: &str, units: u64) -> Owned {
        (key, limit.parse().expect("a limit"), Ask::new(Cost::of(units)))
    }

    fn each(asks: &[Owned]) -> impl Iterator<Item = AdHocAsk<'_, &'static str>> + Clone {
        asks.iter().map(|(key, limit, ask)| AdHocAsk { key: *key, limit, ask: *ask })
    }

    fn mixed() -> Vec<Owned> {
        let limits =
            ["3/h", "5/h burst 2", "2/h sliding-log", "4/h fixed-window", "2/h leaky-bucket queue 1"];
        (0..200).map(|at| asked(["ana", "bob", "eve"][at % 3], limits[at % 5], 1 + at as u64 % 2)).collect()
    }

    fn all_at_once(adhoc: &AdHoc) -> Vec<Decision> {
        let (asks, mut told) = (mixed(), Vec::new());
        adhoc.take_each(each(&asks), |decision| told.push(decision));
        told
    }

    #[test]
    fn many_at_once_are_decided_as_one_by_one_also_by_a_map() {
        let clock = Arc::new(crate::ManualClock::new());
        let zone = || Zone::with_clock(1 << 16, clock.clone());
        let one_by_one = AdHoc::on(&zone(), "x");
        let expected: Vec<_> =
            mixed().iter().map(|(key, limit, ask)| one_by_one.take(key, limit, *ask)).collect();
        assert_eq!(all_at_once(&AdHoc::on(&zone(), "x")), expected);
        assert_eq!(all_at_once(&AdHoc::on(&Map::with_clock(clock), "x")), expected);
        assert!(expected.iter().any(Decision::is_allowed) && !expected.iter().all(Decision::is_allowed));
    }

    #[test]
    fn a_state_is_that_of_a_limiter_with_the_same_name() {
        let zone = Zone::new(1 << 16);
        let (adhoc, limiter) =
            (AdHoc::on(&zone, "user"), crate::Limiter::on(&zone, "user", Limit::per_hour(3)));
        assert!(adhoc.take("ana", &Limit::per_hour(3), Ask::ONE).is_allowed());
        assert_eq!(limiter.peek("ana").remaining(), 2);
        assert!(adhoc.reset("ana") && !adhoc.reset("ana"));
        assert_eq!(limiter.peek("ana").remaining(), 3);
        assert!(adhoc.take("ana", &Limit::sliding_log(3, crate::SECOND), Ask::ONE).is_allowed());
        assert!(adhoc.reset("ana") && !adhoc.reset("ana") && !adhoc.reset("bob"));
    }

    #[test]
    fn all_or_none_charges_nobody_when_one_is_refused() {
        let adhoc = AdHoc::on(&Zone::new(1 << 16), "");
        let both = [asked("ana", "3/h", 2), asked("site", "1/h", 1)];
        let take_both = || adhoc.take_all(&each(&both).collect::<Vec<_>>()).is_allowed();
        assert!(take_both() && !take_both());
        assert_eq!(adhoc.peek("ana", &both[0].1, Ask::ONE).remaining(), 1);
    }

    #[test]
    fn permits_come_back() {
        let adhoc = AdHoc::on(&Zone::new(1 << 16), "");
        let limit = Limit::concurrency(1, crate::SECOND);
        let permit = adhoc.take("ana", &limit, Ask::ONE).permit().expect("the first is allowed");
        assert!(!adhoc.take("ana", &limit, Ask::ONE).is_allowed());
        assert!(adhoc.renew("ana", &limit, permit) && adhoc.release("ana", &limit, permit));
        assert!(!adhoc.release("ana", &limit, permit));
        assert!(adhoc.take("ana", &limit, Ask::ONE).is_allowed());
    }
}
