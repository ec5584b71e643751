//! A key with an override, and the limits that decide about it.
//!
//! ```text
//!   rule's limit | limit of the override | rule's limit, with counts of the override for one refill | rule's limit
//!   -------------+-----------------------+----------------------------------------------------------+----------> time
//!          first request               end                                                   forgotten
//! ```
//!
//! Each of these changes is a change of the rule's numbers for this key alone. Counts are carried over at each.
//!
//! Several gates can count in one store, and a gate can be restarted. So a limit that has decided nothing in this gate is
//! a link of the chain like any other: the states in the store are the truth about the counts under it.

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tidegate_core::{History, Limit, MAX_PREDECESSORS, Predecessor, PreparedLimit, Timestamp};

use super::limits::LimitInUse;
use super::overrides::{Instead, Override};

/// The maximum number of consecutive changes of one key's limit in one chain. A longer one begins anew with the last
/// limits, from which counts are carried over.
const MAX_CHANGES: usize = 64;

/// An override, and the limit that last decided about its key.
#[derive(Debug)]
pub(crate) struct Overridden {
    one: Override,
    /// The time at which it ends, or was removed.
    end: i64,
    /// The limits of earlier overrides that have decided nothing in this gate since `inherited`, oldest first.
    unused: Vec<Limit>,
    /// The value of `last_used` at the creation of this override.
    inherited: Option<Arc<Chain>>,
    /// The limit of the key's last decision, under this override or an earlier one; `None` before the first one.
    last_used: ArcSwapOption<Chain>,
}

/// A prepared limit, and the limits before it from which counts are carried over.
#[derive(Clone, Debug)]
struct Chain {
    limit: Arc<PreparedLimit>,
    /// Newest first, at most [`MAX_PREDECESSORS`].
    before: Vec<Replaced>,
}

/// A limit that was replaced at a time.
#[derive(Clone, Debug)]
struct Replaced {
    limit: Limit,
    at: i64,
}

impl Overridden {
    /// Creates an override that follows the last one of its key.
    pub(super) fn new(one: Override, last: Option<&Overridden>) -> Overridden {
        let (inherited, unused) = last.map(Overridden::so_far).unwrap_or_default();
        let last_used = ArcSwapOption::new(inherited.clone());
        Overridden { end: one.until.unwrap_or(i64::MAX), one, unused, inherited, last_used }
    }

    /// Returns the override as removed at this time.
    pub(super) fn ended_at(&self, now: i64) -> Overridden {
        let end = now.min(self.end);
        let (inherited, unused) = (self.inherited.clone(), self.unused.clone());
        let last_used = ArcSwapOption::new(self.last_used.load_full());
        Overridden { one: self.one.clone(), end, unused, inherited, last_used }
    }

    /// Returns the limit of the last decision, and the limits in force since, oldest first.
    fn so_far(&self) -> (Option<Arc<Chain>>, Vec<Limit>) {
        let last = self.last_used.load_full();
        if self.has_decided_by(last.as_ref()) {
            return (last, Vec::new());
        }
        let mut unused: Vec<_> = self.unused.iter().chain(self.own()).copied().collect();
        unused.dedup();
        unused.drain(..unused.len().saturating_sub(MAX_PREDECESSORS));
        (last, unused)
    }

    /// Returns the limit of the override, if it has one.
    fn own(&self) -> Option<&Limit> {
        match &self.one.instead {
            Instead::Limit(limit) => Some(limit),
            Instead::Allow | Instead::Deny => None,
        }
    }

    /// Returns true if this limit of the last decision is not one of an earlier override.
    fn has_decided_by(&self, last: Option<&Arc<Chain>>) -> bool {
        last.map(Arc::as_ptr) != self.inherited.as_ref().map(Arc::as_ptr)
    }

    /// Returns true if a request was decided under this override, or after its end.
    pub(super) fn has_decided(&self) -> bool {
        self.has_decided_by(self.last_used.load().as_ref())
    }

    /// Returns the override.
    pub(super) fn one(&self) -> &Override {
        &self.one
    }

    pub(super) fn has_ended(&self, now: i64) -> bool {
        self.end <= now
    }

    /// Returns true until its end, and after that as long as there may be debt under its limit.
    pub(super) fn matters_at(&self, now: i64) -> bool {
        if !self.has_ended(now) {
            return true;
        }
        if let Some(limit) = self.own() {
            return may_owe(limit, self.end, now);
        }
        let (last, unused) = self.so_far();
        let newest = unused.last().or_else(|| last.as_ref().map(|last| last.limit.limit()));
        newest.is_some_and(|limit| may_owe(limit, self.end, now))
    }

    /// Returns the limit or decision of the override, unless it has ended.
    pub(super) fn instead(&self, now: i64) -> Option<Instead> {
        (!self.has_ended(now)).then_some(self.one.instead)
    }

    /// Returns the limit in force: that of the override or, after its end, the one that it replaced.
    pub(super) fn in_place_of<'p>(&self, usual: LimitInUse<'p>, now: i64) -> LimitInUse<'p> {
        let limit = match self.instead(now) {
            Some(Instead::Limit(limit)) => limit,
            Some(Instead::Allow | Instead::Deny) | None => *usual.limit(),
        };
        self.limit(&limit, usual, now)
    }

    /// Returns the prepared form of this limit: that of the override or, after its end, that of the rule. Counts are
    /// carried over from the previous limits.
    fn limit<'p>(&self, limit: &Limit, of_rule: LimitInUse<'p>, now: i64) -> LimitInUse<'p> {
        let last = self.last_used.load_full();
        let is_last = last.as_ref().map_or(of_rule.limit(), |last| last.limit.limit()) == limit;
        if !is_last || self.earlier(last.as_ref(), now).any(|earlier| earlier != limit) {
            return LimitInUse::Changing(self.change(last.as_ref(), (limit, &of_rule), now));
        }
        last.map_or(of_rule, |last| LimitInUse::Changing(Arc::clone(&last.limit)))
    }

    /// Returns the limits that were in force since the last decision, oldest first, without the one in force now.
    fn earlier(&self, last: Option<&Arc<Chain>>, now: i64) -> impl Iterator<Item = &Limit> {
        let is_used = self.has_decided_by(last);
        let own = self.own().filter(|_| self.has_ended(now));
        self.unused.iter().chain(own).filter(move |_| !is_used)
    }

    /// Prepares another limit. Of several concurrent requests, one prepares it for all.
    #[cold]
    fn change(
        &self,
        last: Option<&Arc<Chain>>,
        (limit, of_rule): (&Limit, &PreparedLimit),
        now: i64,
    ) -> Arc<PreparedLimit> {
        let mut chain = last.map_or_else(|| Chain::of(of_rule), |last| last.shortened(of_rule));
        let mut earlier: Vec<_> = self.earlier(last, now).collect();
        while earlier.pop_if(|earlier| *earlier == limit).is_some() {}
        for earlier in earlier {
            if chain.limit.limit() != earlier {
                chain = chain.followed_by(chain.limit.instead(*earlier), of_rule, now);
            }
        }
        let is_over = self.has_ended(now);
        let next = if is_over { chain.limit.back_to(of_rule) } else { chain.limit.instead(*limit) };
        let next = Arc::new(chain.followed_by(next, of_rule, now));
        let found = self.last_used.compare_and_swap(&last.cloned(), Some(Arc::clone(&next)));
        match &*found {
            Some(found) if self.has_decided_by(Some(found)) && found.limit.limit() == limit => {
                Arc::clone(&found.limit)
            }
            _ => Arc::clone(&next.limit),
        }
    }
}

impl Chain {
    /// Creates the chain that begins with the limit of a rule.
    fn of(rule: &PreparedLimit) -> Chain {
        Chain { limit: Arc::new(rule.clone()), before: Vec::new() }
    }

    /// Returns the chain with the next limit. If counts of a limit are no longer carried over, the rule is flagged.
    fn followed_by(&self, next: PreparedLimit, of_rule: &PreparedLimit, now: i64) -> Chain {
        let newest = *self.limit.limit();
        let is_other = |before: &&Replaced| before.limit != newest && before.limit != *next.limit();
        let older = self.before.iter().filter(is_other).cloned();
        let mut before: Vec<_> = iter::once(Replaced { limit: newest, at: now }).chain(older).collect();
        let algorithm = next.limit().algorithm();
        let has_counts =
            |old: &Replaced| old.limit.algorithm() == algorithm && may_owe(&old.limit, old.at, now);
        if before.iter().skip(MAX_PREDECESSORS).any(has_counts) {
            of_rule.dropped_counts().note();
        }
        before.truncate(MAX_PREDECESSORS);
        Chain { limit: Arc::new(next), before }
    }

    /// Returns the chain or, if it has become too long, one that begins anew with the limits from which counts are
    /// carried over.
    fn shortened(&self, of_rule: &PreparedLimit) -> Chain {
        let length = iter::successors(self.limit.before(), |limit| limit.before()).count();
        if length < MAX_CHANGES {
            return self.clone();
        }
        let mut limit = of_rule.clone();
        for before in self.before.iter().rev().map(|before| &before.limit).chain([self.limit.limit()]) {
            if limit.limit() != before {
                limit = limit.instead(*before);
            }
        }
        Chain { limit: Arc::new(limit), before: self.before.clone() }
    }
}

/// Returns true while there may be debt under a limit that was replaced at `since`.
fn may_owe(limit: &Limit, since: i64, now: i64) -> bool {
    let for_so_long = Duration::from_secs(now.saturating_sub(since).max(0).cast_unsigned());
    let replaced = Predecessor::new(limit, Timestamp::EPOCH);
    History::new(Timestamp::EPOCH, vec![replaced]).matters_at(limit, Timestamp::after_epoch(for_so_long))
}
