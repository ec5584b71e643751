//! A key with an override, and the limits that decide about it.
//!
//! ```text
//!   rule's limit | limit of the override | rule's limit, with counts of the override for one refill | rule's limit
//!   -------------+-----------------------+----------------------------------------------------------+----------> time
//!          first request               end                                                   forgotten
//! ```
//!
//! Each of these changes is a change of the rule's numbers for this key alone. Counts are carried over at each.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tidegate_core::{History, Limit, Predecessor, PreparedLimit, Timestamp};

use super::limits::LimitInUse;
use super::overrides::{Instead, Override};

/// The maximum number of consecutive changes of one key's limit. Counts from older limits are not carried over.
const MAX_CHANGES: usize = 64;

/// An override, and the limit that last decided about its key.
#[derive(Debug)]
pub(crate) struct Overridden {
    one: Override,
    /// The time at which it ends, or was removed.
    end: i64,
    /// The limit of the key's last decision under this override; `None` before its first request.
    last_used: ArcSwapOption<PreparedLimit>,
}

impl Overridden {
    /// Creates an override that follows the last one of its key.
    pub(super) fn new(one: Override, last: Option<&Overridden>) -> Overridden {
        let last_used = last.and_then(|last| last.last_used.load_full());
        Overridden { end: one.until.unwrap_or(i64::MAX), one, last_used: ArcSwapOption::new(last_used) }
    }

    /// Returns the override as removed at this time.
    pub(super) fn ended_at(&self, now: i64) -> Overridden {
        Overridden { end: now, ..Overridden::new(self.one.clone(), Some(self)) }
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
        let Some(last_used) = self.last_used.load_full() else { return false };
        let limit = match &self.one.instead {
            Instead::Limit(limit) => limit,
            Instead::Allow | Instead::Deny => last_used.limit(),
        };
        let since_end = Duration::from_secs(now.saturating_sub(self.end).cast_unsigned());
        let ended = Predecessor::new(limit, Timestamp::EPOCH);
        History::new(Timestamp::EPOCH, vec![ended]).matters_at(limit, Timestamp::after_epoch(since_end))
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
    /// carried over from the previous limit.
    fn limit<'p>(&self, limit: &Limit, of_rule: LimitInUse<'p>, now: i64) -> LimitInUse<'p> {
        let last = self.last_used.load_full();
        match last {
            Some(last) if last.limit() == limit => LimitInUse::Changing(last),
            // The override has decided nothing, or has changed too often.
            _ if self.has_ended(now) && last.as_ref().is_none_or(|last| changes(last) >= MAX_CHANGES) => {
                of_rule
            }
            last => LimitInUse::Changing(self.change(last.as_ref(), (limit, &of_rule), now)),
        }
    }

    /// Prepares another limit. Of several concurrent requests, one prepares it for all.
    #[cold]
    fn change(
        &self,
        last: Option<&Arc<PreparedLimit>>,
        (limit, of_rule): (&Limit, &PreparedLimit),
        now: i64,
    ) -> Arc<PreparedLimit> {
        let before = last.filter(|last| changes(last) < MAX_CHANGES).map_or(of_rule, |last| last);
        let next = if self.has_ended(now) { before.back_to(of_rule) } else { before.instead(*limit) };
        let next = Arc::new(next);
        let found = self.last_used.compare_and_swap(&last.cloned(), Some(Arc::clone(&next)));
        match &*found {
            Some(found) if found.limit() == limit => Arc::clone(found),
            _ => next,
        }
    }
}

/// Returns the length of the chain of previous limits.
fn changes(limit: &PreparedLimit) -> usize {
    std::iter::successors(limit.before(), |limit| limit.before()).count()
}
