//! The decisions about several asks that are allowed or denied together.

use std::time::Duration;

use crate::decision::{Decision, Verdict};
use crate::denied::Denied;
use crate::few::Few;
use crate::store::OpenReceipt;
use crate::time::Ticks;

/// The decisions about several asks at once: either all were allowed, or nothing was spent.
///
/// After a denial, each decision is the one of its own limit about its own ask.
///
/// It is the reply of [`admit_all`](crate::admit_all) and of every store. [`Decisions::verdict`] combines them;
/// [`Decisions::binding`] names the limit to report to the client.
#[doc(alias("multi-limit", "all-or-nothing"))]
#[derive(Debug)]
pub struct Decisions {
    each: Few<Decision>,
    by: DecidedBy,
    /// The decider of each ask; empty if `by` decided all of them.
    by_each: Vec<DecidedBy>,
    receipts: Vec<Option<OpenReceipt>>,
    is_remembered: bool,
}

/// The store or policy that made a decision.
///
/// [`DecidedBy::Local`], [`DecidedBy::Open`] and [`DecidedBy::Closed`] mean that the remote store failed and the
/// failure policy applied. Alert on them.
#[doc(alias("fail-open", "fail-closed", "degraded mode"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecidedBy {
    /// A store in memory; also used if no limit applied.
    Memory,
    /// The remote store.
    Remote,
    /// The local store, with this node's share of the limit, because the remote store failed.
    Local,
    /// No count: the remote store failed and the policy is fail-open. The decision is that of a key that has spent
    /// nothing.
    Open,
    /// No count: the remote store failed and the policy is fail-closed.
    Closed,
}

impl DecidedBy {
    /// Returns the word for it in replies, header fields and metrics; there the remote store is called `redis`.
    pub const fn as_str(self) -> &'static str {
        match self {
            DecidedBy::Memory => "memory",
            DecidedBy::Remote => "redis",
            DecidedBy::Local => "local",
            DecidedBy::Open => "open",
            DecidedBy::Closed => "closed",
        }
    }

    /// Returns true if the remote store failed and something else decided in its place.
    pub const fn is_fallback(self) -> bool {
        matches!(self, DecidedBy::Local | DecidedBy::Open | DecidedBy::Closed)
    }
}

impl Decisions {
    /// Creates the decisions of a store in memory.
    #[inline]
    pub(crate) fn new(each: impl Into<Few<Decision>>) -> Decisions {
        let (each, by) = (each.into(), DecidedBy::Memory);
        Decisions { each, by, by_each: Vec::new(), receipts: Vec::new(), is_remembered: false }
    }

    /// Creates decisions with one decider each.
    pub(crate) fn by_each(each: Vec<Decision>, by_each: Vec<DecidedBy>) -> Decisions {
        Decisions { by_each, ..Decisions::new(each) }
    }

    /// Returns the decisions with this decider.
    pub(crate) fn by(self, by: DecidedBy) -> Decisions {
        Decisions { by, ..self }
    }

    /// Adds a receipt for each ask that spent, in the order of the asks. A store calls this if an ask is
    /// [tracked](crate::Subject::tracked) and all asks were allowed.
    #[must_use]
    pub fn with_receipts(self, receipts: Vec<Option<OpenReceipt>>) -> Decisions {
        Decisions { receipts, ..self }
    }

    /// Takes the receipts out: one entry per ask, in order, or an empty vector if no ask was tracked or nothing was
    /// spent. An entry is `None` if nothing of its take can be refunded.
    pub fn take_receipts(&mut self) -> Vec<Option<OpenReceipt>> {
        std::mem::take(&mut self.receipts)
    }

    /// Returns the store or policy that decided about the ask at this index.
    pub fn decided_by(&self, place: usize) -> DecidedBy {
        self.by_each.get(place).copied().unwrap_or(self.by)
    }

    /// Returns true if the remote store failed and something else decided in its place.
    pub fn is_fallback(&self) -> bool {
        (0..self.each.len()).any(|place| self.decided_by(place).is_fallback())
    }

    /// Returns the decisions, in the order of the asks.
    pub fn each(&self) -> &[Decision] {
        &self.each
    }

    /// Removes the decisions from this index on, and returns them.
    pub(crate) fn split_off(&mut self, at: usize) -> Few<Decision> {
        let rest = self.each[at..].iter().copied().collect();
        self.each = self.each[..at].iter().copied().collect();
        self.receipts.truncate(at);
        rest
    }

    /// Replaces the decision at this index.
    pub(crate) fn replace(&mut self, place: usize, decision: Decision) {
        self.each[place] = decision;
    }

    /// Marks the decisions as taken from a cache: no store was asked.
    #[must_use]
    pub fn remembered(self) -> Decisions {
        Decisions { is_remembered: true, ..self }
    }

    /// Returns true if the decisions come from a cache, so that they are no evidence of a reachable store.
    pub fn is_remembered(&self) -> bool {
        self.is_remembered
    }

    /// Returns true if the action may happen, now or after [`Decisions::delay`]. An empty list is allowed.
    pub fn is_allowed(&self) -> bool {
        self.each.iter().all(Decision::is_allowed)
    }

    /// Returns the verdict about all asks together.
    ///
    /// Allowed with the longest delay of all limits, or the denial of the binding limit. If one of several denials is
    /// [`Verdict::Impossible`], so is the whole.
    pub fn verdict(&self) -> Verdict {
        match (self.delay(), self.binding()) {
            (None, Some(binding)) => self.each[binding].verdict(),
            (delay, _) => Verdict::Allowed { delay: delay.unwrap_or_default() },
        }
    }

    /// Returns the wait before an allowed action may happen: the longest delay of all limits; `None` if it was
    /// denied.
    pub fn delay(&self) -> Option<Duration> {
        self.is_allowed().then(|| self.each.iter().filter_map(Decision::delay).max().unwrap_or_default())
    }

    /// Returns the wait after which all asks are allowed, if no other caller spends meanwhile. `None` if they were
    /// allowed, or can never be allowed.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.verdict() {
            Verdict::Denied { retry_after } => Some(retry_after),
            _ => None,
        }
    }

    /// Returns the index of the binding ask. After a denial it is the ask with the longest wait, else the one whose
    /// limit has the smallest fraction remaining. `None` if there were no asks.
    ///
    /// A front reports this limit in header fields such as `RateLimit`: it is the first that the client will meet.
    pub fn binding(&self) -> Option<usize> {
        Decisions::binding_of(self.each.iter())
    }

    /// Returns the index of the binding decision among these, like [`Decisions::binding`].
    pub fn binding_of<'d>(decisions: impl Iterator<Item = &'d Decision>) -> Option<usize> {
        let mut longest: Option<(usize, Ticks)> = None;
        let mut smallest: Option<(usize, u64, u64)> = None;
        for (place, decision) in decisions.enumerate() {
            let wait = match decision.verdict_in_ticks() {
                Verdict::Allowed { .. } => {
                    let (left, whole) = (decision.remaining(), decision.limit().max(1));
                    if smallest.is_none_or(|(_, least, of)| part(left, of) < part(least, whole)) {
                        smallest = Some((place, left, whole));
                    }
                    continue;
                }
                Verdict::Denied { retry_after } => retry_after,
                Verdict::Impossible => Ticks::MAX,
            };
            if longest.is_none_or(|(_, known)| wait > known) {
                longest = Some((place, wait));
            }
        }
        longest.map(|(place, _)| place).or(smallest.map(|(place, ..)| place))
    }

    /// Returns the decisions if all were allowed, else the [`Denied`] of the binding ask, for `?`.
    pub fn into_result(self) -> Result<Decisions, Denied> {
        match self.binding() {
            Some(binding) if !self.is_allowed() => Err(Denied::of(self.each[binding])),
            _ => Ok(self),
        }
    }
}

/// Multiplies the remaining quota of one limit by the size of another: the smaller of two such products belongs to
/// the smaller fraction, without a division.
fn part(left: u64, other_whole: u64) -> u128 {
    u128::from(left) * u128::from(other_whole)
}

/// Creates the decisions of a remote store.
impl From<Vec<Decision>> for Decisions {
    fn from(each: Vec<Decision>) -> Decisions {
        Decisions::new(each).by(DecidedBy::Remote)
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::{Ask, Cost, Limit, MILLISECOND, SECOND, State, Timestamp};

    fn after(limit: Limit, spent: u64, asked: u64) -> Decision {
        let mut state = State::default();
        if spent > 0 {
            assert!(limit.decide(&mut state, Timestamp::EPOCH, Ask::new(Cost::of(spent))).is_allowed());
        }
        limit.decide(&mut state, Timestamp::EPOCH, Ask::new(Cost::of(asked)))
    }

    #[test]
    fn no_asks_at_all_are_allowed() {
        let none = Decisions::new(Vec::new());
        assert!(none.is_allowed());
        assert_eq!(none.verdict(), Verdict::Allowed { delay: Duration::ZERO });
        assert_eq!((none.binding(), none.delay()), (None, Some(Duration::ZERO)));
        assert!(none.into_result().is_ok());
    }

    #[test]
    fn the_longest_wait_binds_a_denial() {
        let ten = Limit::per_second(10);
        let one = Limit::per_second(1);
        let refused =
            Decisions::new(vec![after(ten, 0, 1), after(ten, 10, 1), after(one, 1, 1), after(ten, 10, 2)]);
        assert_eq!(refused.binding(), Some(2));
        assert_eq!(refused.retry_after(), Some(SECOND));
        assert_eq!(refused.delay(), None);
        assert_eq!(refused.verdict(), Verdict::Denied { retry_after: SECOND });
        assert_eq!(refused.into_result().unwrap_err().retry_after(), Some(SECOND));

        let never = Decisions::new(vec![after(one, 1, 1), after(ten, 0, 11), after(one, 1, 1)]);
        assert_eq!((never.binding(), never.verdict()), (Some(1), Verdict::Impossible));
        assert_eq!(never.retry_after(), None);
    }

    #[test]
    fn the_smallest_remaining_fraction_binds_when_allowed() {
        let small = after(Limit::per_second(4), 2, 1);
        let large = after(Limit::per_second(100), 70, 1);
        let allowed = Decisions::new(vec![large, small, large]);
        assert_eq!(allowed.binding(), Some(1), "a quarter is less than 29 in 100");
        assert_eq!(allowed.retry_after(), None);
        assert_eq!(allowed.each().len(), 3);
    }

    #[test]
    fn the_slowest_limit_sets_the_delay() {
        let queue = Limit::leaky_bucket(10, SECOND).queue(5);
        let mut state = State::default();
        let mut next = || queue.decide(&mut state, Timestamp::EPOCH, Ask::ONE.max_wait(SECOND));
        let decisions = Decisions::new(vec![next(), next(), next(), after(Limit::per_second(1), 0, 1)]);
        assert_eq!(decisions.delay(), Some(200 * MILLISECOND));
        assert_eq!(decisions.verdict(), Verdict::Allowed { delay: 200 * MILLISECOND });
    }
}
