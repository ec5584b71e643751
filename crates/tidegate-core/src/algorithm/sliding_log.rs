//! Sliding log: every trailing period, exactly, with an entry for each action.
//!
//! ```text
//!   limit 3 per W            |<---------- W ---------->|
//!        x    x         x    :     x              x  x :
//!   -----+----+---------+----+-----+--------------+--+-+---> time
//!       these have left      :    three within W:    now
//!                            :    a fourth passes when the oldest leaves
//! ```
//!
//! An action at x counts until x + W: never more than `limit` in any (x, x + W]. The cost is memory, up to `limit`
//! entries per key. `sliding-window` gives the same guarantee in constant memory, and denies slightly longer instead.
//!
//! Actions at one instant share an entry with their number, without any loss. Entries contain the running total. So the
//! count within the period, and the time at which enough entries will have left, are binary searches: a flood of denied
//! asks does not walk the log.
//!
//! With `count_denied` a denial is logged like an action: a caller that retries without pause stays denied. Then only
//! the newest `limit` entries are kept, because older ones can no longer change any verdict.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::state::StateFootprint;
use super::{Decide, Words};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::{Decision, Remaining, Verdict};
use crate::limit::Problem;
use crate::receipt::Receipt;
use crate::time::{OUT_OF_ORDER, Ticks, Timestamp};

/// The largest number of entries in the log of one key.
pub(crate) const MAX_ENTRIES: u64 = 1 << 20;

/// The numbers of a sliding log.
#[doc(alias("sliding window log", "exact"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingLog {
    amount: u64,
    period: Ticks,
    count_denied: bool,
}

/// The actions of one key, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    entries: VecDeque<Entry>,
    /// The running total before the oldest entry.
    forgotten: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    at: Timestamp,
    /// The running total up to and including this entry. It wraps; differences are exact.
    total: u64,
}

impl SlidingLog {
    pub(crate) const fn new(amount: u64, period: Ticks, count_denied: bool) -> Result<SlidingLog, Problem> {
        if amount > MAX_ENTRIES {
            return Err(Problem::LogTooLong);
        }
        Ok(SlidingLog { amount, period, count_denied })
    }

    /// Returns the most units that pass within a closed interval: the whole limit at its first instant, and again each
    /// time those have left, exactly a period later.
    pub(crate) fn worst_case(&self, span: Ticks) -> u128 {
        u128::from(self.amount) * (u128::from(span.get() / self.period.get()) + 1)
    }

    /// Returns true if the clock is so far behind the log that its entries must be moved to now.
    fn is_far_behind(&self, log: &Log, now: Timestamp) -> bool {
        log.newest().is_some_and(|newest| newest.since(now) > self.period.max(OUT_OF_ORDER))
    }

    /// Returns the number of actions that have left the period, and the number that still count.
    fn live(&self, log: &Log, now: Timestamp) -> Live {
        let seen = log.newest().map_or(now, |newest| newest.max(now));
        let left = match seen.checked_sub(self.period) {
            Some(leaving) => log.count_up_to(leaving),
            None => 0,
        };
        Live { left, count: log.count() - left }
    }

    /// Returns the verdict. A denied ask passes when enough of the oldest actions have left the period.
    fn judge(&self, log: &Log, now: Timestamp, ask: Ask) -> Verdict<Ticks> {
        let live = self.live(log, now);
        let remaining = self.amount.saturating_sub(live.count);
        Verdict::by_count(ask.units(), self.amount, remaining, || {
            let leaving = live.count + ask.units() - self.amount;
            let last = log.entries.get(log.entry_of(live.left + leaving))?;
            Some(last.at.checked_add(self.period)?.since(now))
        })
    }

    /// Builds the decision from the log as it is after the verdict.
    fn report(&self, verdict: Verdict<Ticks>, log: &Log, now: Timestamp) -> Decision {
        let live = self.live(log, now);
        let reset_after = self.clear_at(log).since(now);
        let room = Remaining::of_units(self.amount.saturating_sub(live.count));
        Decision::new(verdict, self.amount, room, reset_after)
    }

    /// Logs more actions, and removes those that have left the period or can no longer matter.
    fn record(&self, log: &mut Log, now: Timestamp, units: u64) {
        let live = self.live(log, now);
        let surplus = live.count.saturating_add(units).saturating_sub(self.amount);
        log.forget_oldest(live.left + surplus.min(live.count));
        log.push(now, units);
        log.shrink();
    }
}

impl StateFootprint for SlidingLog {
    fn pack(&self) -> Words {
        [self.amount, self.period.get(), u64::from(self.count_denied), 0, 0]
    }

    /// Returns the actions up to the change that the old limit still counts, at their own times. Of these, the newest
    /// that can matter here are kept. Later ones belong to servers that still decide by the old numbers.
    ///
    /// Under a longer period, only the entries that the old log still has are known.
    fn carry(&self, old: &SlidingLog, log: &Log, changed_at: Timestamp) -> Option<Log> {
        let counts = |at: Timestamp, period: Ticks| at.saturating_add(period) > changed_at;
        let mut carried = Log::default();
        let mut before = 0;
        for entry in &log.entries {
            let cumulative = log.count_through(entry);
            let units = cumulative.saturating_sub(before).min(self.amount);
            before = cumulative;
            if entry.at <= changed_at && counts(entry.at, old.period.min(self.period)) && units > 0 {
                self.record(&mut carried, entry.at, units);
            }
        }
        (!carried.entries.is_empty()).then_some(carried)
    }

    fn longest_carried(&self) -> Ticks {
        self.period
    }

    fn growth(&self, log: Option<&Log>) -> usize {
        log.map_or_else(|| Log::default().growth(), Log::growth)
    }

    fn most_held(&self) -> usize {
        Log::most_held(self.amount as usize)
    }

    fn words_after(&self, words: usize) -> usize {
        words.max(1) + 2
    }

    fn most_words(&self) -> usize {
        1 + 2 * (self.amount as usize + 1)
    }
}

impl Decide for SlidingLog {
    type State = Log;

    fn decide(&self, log: &mut Log, now: Timestamp, ask: Ask) -> Decision {
        if self.is_far_behind(log, now) {
            log.bring_to(now);
        }
        let mut verdict = self.judge(log, now, ask);
        match verdict {
            Verdict::Allowed { .. } => self.record(log, now, ask.units()),
            Verdict::Denied { .. } if self.count_denied => {
                self.record(log, now, ask.units());
                verdict = self.judge(log, now, ask);
            }
            _ => {}
        }
        self.report(verdict, log, now)
    }

    fn peek(&self, log: &Log, now: Timestamp, ask: Ask) -> Decision {
        let mut log = Cow::Borrowed(log);
        if self.is_far_behind(&log, now) {
            log.to_mut().bring_to(now);
        }
        self.report(self.judge(&log, now, ask), &log, now)
    }

    fn adjust(&self, log: &mut Log, now: Timestamp, adjustment: Adjustment) -> Adjusted {
        if self.is_far_behind(log, now) {
            log.bring_to(now);
        }
        match adjustment {
            Adjustment::Charge(cost) => {
                let room = self.amount.saturating_sub(self.live(log, now).count);
                self.record(log, now, cost.get().min(self.amount));
                Adjusted::whole_if(cost.get() <= room)
            }
            Adjustment::Refund(cost) => {
                let refunded = cost.get().min(self.live(log, now).count);
                log.drop_newest(refunded);
                Adjusted::whole_if(refunded == cost.get())
            }
        }
    }

    fn clear_at(&self, log: &Log) -> Timestamp {
        log.newest().map_or(Timestamp::EPOCH, |newest| newest.saturating_add(self.period))
    }

    fn receipt(&self, log: &Log, now: Timestamp, cost: Cost) -> Receipt {
        Receipt::new(cost, log.newest().unwrap_or(now), self.clear_at(log))
    }

    fn give_back(&self, log: &mut Log, now: Timestamp, receipt: Receipt) -> Adjusted {
        if now >= receipt.clear_at {
            return Adjusted::Capped;
        }
        let taken = log.take_off(receipt.at, receipt.cost.get());
        Adjusted::whole_if(taken == receipt.cost.get())
    }
}

/// The actions of a log at one instant.
struct Live {
    /// Actions that have left the period, and can be removed.
    left: u64,
    /// Actions that still count.
    count: u64,
}

impl Log {
    /// Restores a log from the total before the oldest entry, then time and total of each. Returns `None` unless times
    /// and totals increase.
    pub(super) fn from_words(words: &[u64]) -> Option<Log> {
        let [forgotten, entries @ ..] = words else { return None };
        let (mut last, mut kept) = ((None, *forgotten), VecDeque::with_capacity(entries.len() / 2));
        for entry in entries.chunks(2) {
            let [at, total] = *entry else { return None };
            if last.0 >= Some(at) || last.1 >= total {
                return None;
            }
            last = (Some(at), total);
            kept.push_back(Entry { at: Timestamp::from_ticks(at), total });
        }
        Some(Log { entries: kept, forgotten: *forgotten })
    }

    #[inline]
    pub(super) fn each_word(&self, put: &mut impl FnMut(u64)) {
        put(self.forgotten);
        for entry in &self.entries {
            put(entry.at.ticks());
            put(entry.total);
        }
    }

    /// Returns the number of entries.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the time of an entry and the running total up to it. Index 0 is the oldest.
    #[inline]
    pub(crate) fn entry(&self, index: usize) -> Option<[u64; 2]> {
        self.entries.get(index).map(|entry| [entry.at.ticks(), entry.total])
    }

    /// Returns the running total before the oldest entry.
    #[inline]
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Returns the heap memory, in bytes.
    pub(super) fn bytes_held(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// Returns the largest growth of [`Log::bytes_held`] by one more entry: a full queue doubles.
    pub(super) fn growth(&self) -> usize {
        let capacity = self.entries.capacity();
        if self.entries.len() < capacity { 0 } else { capacity.max(4) * size_of::<Entry>() }
    }

    /// Returns the largest [`Log::bytes_held`] with so many entries, including the reserved growth.
    fn most_held(entries: usize) -> usize {
        (2 * entries).max(4) * size_of::<Entry>()
    }

    /// Returns the time of the newest entry.
    fn newest(&self) -> Option<Timestamp> {
        self.entries.back().map(|entry| entry.at)
    }

    /// Returns the number of actions in all entries.
    fn count(&self) -> u64 {
        self.entries.back().map_or(0, |newest| self.count_through(newest))
    }

    /// Returns the number of actions up to and including this entry.
    fn count_through(&self, entry: &Entry) -> u64 {
        entry.total.wrapping_sub(self.forgotten)
    }

    /// Returns the number of actions up to and including this instant.
    fn count_up_to(&self, instant: Timestamp) -> u64 {
        let later = self.entries.partition_point(|entry| entry.at <= instant);
        later.checked_sub(1).map_or(0, |last| self.count_through(&self.entries[last]))
    }

    /// Returns the index of the entry that contains the `nth` oldest action.
    fn entry_of(&self, nth: u64) -> usize {
        self.entries.partition_point(|entry| self.count_through(entry) < nth)
    }

    /// Adds actions. A clock reading older than the newest entry joins that entry, so times never decrease.
    fn push(&mut self, now: Timestamp, units: u64) {
        let total = self.forgotten.wrapping_add(self.count()).wrapping_add(units);
        match self.entries.back_mut() {
            Some(newest) if newest.at >= now => newest.total = total,
            _ => self.entries.push_back(Entry { at: now, total }),
        }
    }

    /// Removes the oldest actions. An entry of which some remain keeps its time.
    fn forget_oldest(&mut self, units: u64) {
        self.entries.drain(..self.entry_of(units + 1));
        self.forgotten = self.forgotten.wrapping_add(units);
    }

    /// Removes the newest actions, for a refund.
    fn drop_newest(&mut self, units: u64) {
        let kept = self.count() - units;
        let total = self.forgotten.wrapping_add(kept);
        self.entries.truncate(self.entry_of(kept) + 1);
        match self.entries.back_mut() {
            Some(newest) if kept > 0 => newest.total = total,
            _ => self.entries.clear(),
        }
    }

    /// Takes units off the entry of this instant, if it exists. Returns the number taken off.
    fn take_off(&mut self, at: Timestamp, units: u64) -> u64 {
        let index = self.entries.partition_point(|entry| entry.at < at);
        let before = index.checked_sub(1).map_or(0, |last| self.count_through(&self.entries[last]));
        let Some(entry) = self.entries.get(index).filter(|entry| entry.at == at) else { return 0 };
        let taken = units.min(self.count_through(entry) - before);
        for entry in self.entries.range_mut(index..) {
            entry.total = entry.total.wrapping_sub(taken);
        }
        let is_empty = self.count_through(&self.entries[index]) == before;
        if is_empty {
            self.entries.remove(index);
        }
        taken
    }

    /// Moves all actions to now, for a clock so far behind that none of them is in the past.
    fn bring_to(&mut self, now: Timestamp) {
        let total = self.forgotten.wrapping_add(self.count());
        self.entries.clear();
        self.entries.push_back(Entry { at: now, total });
    }

    /// Releases memory that a less active key no longer needs.
    fn shrink(&mut self) {
        if self.entries.capacity() > 4 * self.entries.len() + 16 {
            self.entries.shrink_to(2 * self.entries.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Ticks = Ticks::new(1000);

    fn at(ticks: u64) -> Timestamp {
        Timestamp::from_ticks(ticks)
    }

    fn limit(amount: u64) -> SlidingLog {
        SlidingLog::new(amount, PERIOD, false).unwrap()
    }

    #[test]
    fn the_running_total_may_wrap() {
        let limit = limit(3);
        let mut log = Log { entries: VecDeque::new(), forgotten: u64::MAX - 1 };
        for (now, allowed) in
            [(0, true), (100, true), (200, true), (300, false), (1000, true), (1050, false), (1100, true)]
        {
            assert_eq!(limit.decide(&mut log, at(now), Ask::ONE).is_allowed(), allowed, "at {now}");
        }
        let wait = limit.peek(&log, at(1150), Ask::new(Cost::of(2))).verdict_in_ticks();
        assert_eq!(wait, Verdict::Denied { retry_after: Ticks::new(850) });
    }

    #[test]
    fn entries_that_have_left_take_no_memory() {
        let limit = limit(5);
        let mut log = Log::default();
        for now in 0..1000 {
            let _ = limit.decide(&mut log, at(now * 300), Ask::ONE);
            assert!(log.entries.len() <= 4, "{} entries", log.entries.len());
        }
        assert_eq!(log.bytes_held(), log.entries.capacity() * 16);
    }

    #[test]
    fn a_log_gives_its_memory_back_when_the_subject_calms_down() {
        let limit = limit(1000);
        let mut log = Log::default();
        for now in 0..1000 {
            assert!(limit.decide(&mut log, at(now), Ask::ONE).is_allowed());
        }
        let full = log.bytes_held();
        limit.adjust(&mut log, at(999), Adjustment::Charge(Cost::of(1000)));
        assert!(log.bytes_held() <= full, "a charge needs no more room than the limit");
        for now in 0..3 {
            assert!(limit.decide(&mut log, at(5000 + now * 600), Ask::ONE).is_allowed());
        }
        assert!(log.bytes_held() <= 16 * 32, "{} bytes for two entries", log.bytes_held());
    }

    #[test]
    fn memory_is_given_back_in_large_steps_only() {
        let capacity_with = |length: u64| {
            let mut entries = VecDeque::with_capacity(100);
            entries.extend((1..=length).map(|nth| Entry { at: at(nth), total: nth }));
            let mut log = Log { entries, forgotten: 0 };
            log.shrink();
            log.entries.capacity()
        };
        assert_eq!((capacity_with(21), capacity_with(20), capacity_with(3)), (100, 40, 6));
    }

    #[test]
    fn a_take_is_given_back_from_its_own_entry() {
        let limit = limit(5);
        let mut log = Log::default();
        let _ = limit.decide(&mut log, at(10), Ask::new(Cost::of(2)));
        let first = limit.receipt(&log, at(10), Cost::of(2));
        let _ = limit.decide(&mut log, at(20), Ask::new(Cost::of(3)));
        assert_eq!(limit.give_back(&mut log, at(30), first), Adjusted::Whole);
        assert_eq!((log.count(), log.entries.len()), (3, 1));
        assert_eq!(
            limit.peek(&log, at(30), Ask::new(Cost::of(3))).verdict_in_ticks(),
            Verdict::Denied { retry_after: Ticks::new(990) }
        );
        let gone = Receipt::new(Cost::ONE, at(15), at(1015));
        assert_eq!(limit.give_back(&mut log, at(30), gone), Adjusted::Capped);
        let _ = limit.decide(&mut log, at(40), Ask::ONE);
        let too_much = Receipt { cost: Cost::of(4), ..limit.receipt(&log, at(40), Cost::ONE) };
        assert_eq!(limit.give_back(&mut log, at(40), too_much), Adjusted::Capped);
        assert_eq!(log.count(), 3, "an entry gives no more than it holds");
        let late = Receipt::new(Cost::ONE, at(20), at(1020));
        assert_eq!(limit.give_back(&mut log, at(1020), late), Adjusted::Capped);
        assert_eq!(log.count(), 3);
    }

    #[test]
    fn actions_of_one_instant_share_an_entry_and_are_counted_one_by_one() {
        let limit = limit(5);
        let mut log = Log::default();
        for _ in 0..5 {
            assert!(limit.decide(&mut log, at(7), Ask::ONE).is_allowed());
        }
        assert_eq!((log.entries.len(), log.count()), (1, 5));
        assert!(!limit.decide(&mut log, at(7), Ask::ONE).is_allowed());
    }

    #[test]
    fn an_action_at_the_end_of_time_never_leaves() {
        let limit = limit(1);
        let mut log = Log::default();
        assert!(limit.decide(&mut log, at(u64::MAX - 500), Ask::ONE).is_allowed());
        assert_eq!(
            limit.decide(&mut log, at(u64::MAX - 400), Ask::ONE).verdict_in_ticks(),
            Verdict::Impossible
        );
        assert_eq!(limit.clear_at(&log), Timestamp::LAST);
    }

    #[test]
    fn a_log_is_kept_until_its_newest_action_has_left() {
        let limit = limit(2);
        let mut log = Log::default();
        assert_eq!(limit.clear_at(&log), Timestamp::EPOCH);
        let _ = limit.decide(&mut log, at(10), Ask::ONE);
        let _ = limit.decide(&mut log, at(20), Ask::ONE);
        assert_eq!(limit.clear_at(&log), at(1020));
    }

    #[test]
    fn dropping_the_newest_goes_back_as_far_as_it_must() {
        let mut log = Log::default();
        for (now, units) in [(10, 2), (20, 3), (30, 1)] {
            log.push(at(now), units);
        }
        log.drop_newest(2);
        assert_eq!((log.count(), log.newest()), (4, Some(at(20))));
        log.drop_newest(2);
        assert_eq!((log.count(), log.newest()), (2, Some(at(10))));
        log.drop_newest(2);
        assert_eq!((log.count(), log.newest()), (0, None));
    }
}
