//! The laws of a change: what was used is what is missing right after it.

use tidegate::{Ask, Cost, Decision, Ticks, Verdict};

use super::{History, Stored, Versions};
use crate::oracle::Admitted;
use crate::promise::{Promise, interval};

impl<V: Versions> History<V> {
    /// I-13: another limit comes into force on server 0, and perhaps on others.
    pub(super) fn change(&mut self) -> Result<(), String> {
        let promise = self.other_promise();
        let (from, to) = (self.in_force, self.version(promise));
        if from == to {
            return Ok(());
        }
        let before = self.stored();
        let is_known = self.comes_from_known(to, &before);
        let (old, recent) = (self.arm.peek(0, Ask::ONE), self.recently_admitted(from, to));
        let (is_live, is_own) = (before.is_live(to), before.is_live(from));
        let is_exact = self.comes_from_newest(from, to, &before);
        self.sources = self.order.iter().copied().filter(|known| before.is_live(*known)).collect();
        let has_ended = self.sources.is_empty();
        self.put_in_force(to, is_live);
        if !is_known || !is_exact {
            // It may begin with anything, also with more than the limit before.
            self.versions[to].exceeded = true;
            self.span.interrupt();
        }
        if self.stored() != before {
            return Err(format!("I-15: the change from version {from} to {to} wrote"));
        }
        self.met.changes += 1;
        let new = self.arm.peek(0, Ask::ONE);
        self.figures_are_exact(0)?;
        let (was, is) = (self.versions[from].promise, self.versions[to].promise);
        if let Promise::Concurrency { max, .. } = is {
            self.met.carried += u64::from(new.remaining() < max);
            return self.holders_stay(max, new);
        }
        if is_live || !is_known {
            return Ok(());
        }
        if has_ended {
            return is_full(new).map_err(|what| format!("I-13: {what}: {old:?} became {new:?}"));
        }
        self.met.carried += u64::from(new.reset_after_in_ticks() > Ticks::ZERO);
        // The older window of an estimate may hold too much without a sign of it.
        let estimates = self.kind == "sliding-window-estimate";
        let exceeded = self.versions[from].exceeded && (estimates || old.remaining() == 0);
        let used = old.limit() - old.remaining().min(old.limit());
        // Of two windows an estimate counts a part: the older one may hold more than a lower limit allows, and in one of
        // another length both may lie whole.
        let of_two = estimates && (period_of(&was) != period_of(&is) || new.limit() < old.limit());
        self.versions[to].exceeded |= exceeded || used > new.limit() || of_two;
        let used = Used { recent, exceeded, is_own, is_exact };
        used_is_missing((&was, &is), old, new, used)
            .map_err(|what| format!("I-13: {what}: {old:?} under {was:?} became {new:?} under {is:?}"))?;
        let is_known = is_exact && (is_own || old.remaining() > 0);
        if is_known { self.wait_is_short(&was, &is, old) } else { Ok(()) }
    }

    /// Returns true if no state under an older limit can owe more than that under the limit in force, which counts it.
    ///
    /// Servers with old numbers may have admitted more since. A limit that comes into force again may have a live
    /// state, to which nothing is carried, and counts of older ones are not carried through it a second time.
    fn comes_from_newest(&self, from: usize, to: usize, stored: &Stored) -> bool {
        let older = self.order.iter().enumerate().filter(|(_, known)| **known != from && **known != to);
        let mut live = older.filter(|(_, known)| stored.is_live(**known));
        let is_counted = |newer: &usize| *newer != to && !self.versions[*newer].resumed;
        let is_known = |(place, known): (usize, &usize)| {
            !self.versions[*known].lagged && self.order[..place].iter().all(is_counted)
        };
        live.all(|older| is_known(older) && !self.versions[from].lagged)
    }

    fn put_in_force(&mut self, to: usize, is_live: bool) {
        let version = &mut self.versions[to];
        version.since = self.now;
        version.lagged = false;
        version.resumed = is_live;
        version.untouched = !is_live;
        self.span.change(&version.promise, self.now, is_live);
        let limit = version.limit;
        self.in_force = to;
        self.order.retain(|known| *known != to);
        self.order.insert(0, to);
        for server in 0..self.on.len() {
            self.behind[server] = server > 0 && self.random.percent(50);
            if !self.behind[server] {
                self.on[server] = to;
                self.arm.announce(server, &limit);
            }
        }
    }

    /// Returns true if a change to this version knows all limits through which the counts in force have come: up to
    /// four are looked back at, and one that comes into force again is not its own predecessor.
    fn comes_from_known(&self, to: usize, stored: &Stored) -> bool {
        let mut live = self.order.iter().enumerate().filter(|(_, index)| stored.is_live(**index));
        let is_dropped = live.clone().any(|(place, _)| place >= 4);
        !is_dropped && live.next().is_none_or(|(place, _)| !self.order[..=place].contains(&to))
    }

    /// I-15: what is in flight is one set, whatever the numbers.
    fn holders_stay(&self, max: u64, new: Decision) -> Result<(), String> {
        let held = |ask: &&Admitted| i128::from(self.now) < ask.departs;
        let held: i128 = self.versions[self.in_force].admitted.iter().filter(held).map(|ask| ask.units).sum();
        let free = i128::from(max).saturating_sub(held).max(0);
        if i128::from(new.remaining()) == free {
            return Ok(());
        }
        Err(format!("I-15: {held} are in flight, and {} of {max} are free", new.remaining()))
    }

    /// The units that a version has admitted so recently that both it and another one count them.
    fn recently_admitted(&self, from: usize, to: usize) -> u64 {
        let now = i128::from(self.now);
        let counts = |asked: i128| match (self.versions[from].promise, self.versions[to].promise) {
            (Promise::SlidingLog { period, .. }, Promise::SlidingLog { period: new, .. })
            | (Promise::SlidingWindow { period, .. }, Promise::SlidingWindow { period: new, .. }) => {
                now - asked < i128::from(period.min(new))
            }
            // The older one of two windows has a weight, which differs.
            (Promise::Estimate { period, .. }, _) => {
                asked.div_euclid(period.into()) == now.div_euclid(period.into())
            }
            _ => false,
        };
        let admitted = self.versions[from].admitted.iter().filter(|ask| counts(ask.asked));
        u64::try_from(admitted.map(|ask| ask.units).sum::<i128>()).unwrap_or(u64::MAX)
    }

    /// I-4: a debt that takes have made is one that takes could have made under the new limit: each unit waits for one
    /// interval at most.
    fn wait_is_short(&self, was: &Promise, is: &Promise, old: Decision) -> Result<(), String> {
        let (
            Promise::TokenBucket { .. },
            Promise::TokenBucket { amount: new_amount, period: new_period, burst: new_burst, .. },
        ) = (*was, *is)
        else {
            return Ok(());
        };
        if owes_more_than_burst(was, old) {
            return Ok(());
        }
        for units in [1, new_burst] {
            let decision = self.arm.peek(0, Ask::new(Cost::of(units)));
            let longest = units * interval(new_amount, new_period);
            if let Verdict::Denied { retry_after } = decision.verdict_in_ticks() {
                if retry_after.get() > longest {
                    return Err(format!(
                        "I-4: after a change {units} wait {retry_after:?}, more than {longest}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The facts about the counts before a change, beside the reply.
#[derive(Clone, Copy)]
struct Used {
    /// Units that both limits count, whatever else they count.
    recent: u64,
    /// The old limit began with more than it allows itself, and nothing says how much.
    exceeded: bool,
    /// The counts are of the old limit itself. Waits of carried ones end with the state that they come from, so they do
    /// not say how much is owed.
    is_own: bool,
    /// No older state can owe more.
    is_exact: bool,
}

/// A change after the old state was clear leaves nothing to carry.
fn is_full(new: Decision) -> Result<(), &'static str> {
    let full = new.reset_after_in_ticks() == Ticks::ZERO && new.remaining() == new.limit();
    if full { Ok(()) } else { Err("counts that had ended are carried") }
}

/// The properties that replies before and after a change must have in common.
fn used_is_missing(
    (was, is): (&Promise, &Promise),
    old: Decision,
    new: Decision,
    Used { recent, exceeded, is_own, is_exact }: Used,
) -> Result<(), &'static str> {
    if !is_exact {
        // The strictest state decides, and nothing is known of those before.
        return Ok(());
    }
    let used = old.limit() - old.remaining().min(old.limit());
    let expected = new.limit().saturating_sub(used);
    let least = if exceeded { 0 } else { expected };
    let without_recent = new.limit().saturating_sub(recent.min(old.limit()));
    let (least, most) = match (*was, *is) {
        (Promise::Steady { .. }, Promise::Steady { .. }) => {
            return savings_keep_their_share(was, is, old, new);
        }
        (Promise::WarmUp { .. }, Promise::WarmUp { .. }) => return debt_stays(old, new),
        // Beyond its burst it owes more units than it can lack.
        (Promise::TokenBucket { .. } | Promise::LeakyBucket { .. }, _)
            if owes_more_than_burst(was, old) || (!is_own && old.remaining() == 0) =>
        {
            (0, expected)
        }
        (Promise::TokenBucket { .. } | Promise::LeakyBucket { .. }, _) => (expected, expected),
        // A log holds no more than its limit allows.
        (Promise::SlidingLog { period, .. }, Promise::SlidingLog { period: new_period, .. }) => {
            (expected, if new_period < period { without_recent } else { expected })
        }
        (Promise::SlidingWindow { period, .. }, Promise::SlidingWindow { period: new_period, .. })
            if new_period < period =>
        {
            (least, without_recent)
        }
        // Two windows of the old limit, counted whole.
        (Promise::Estimate { period, .. }, Promise::Estimate { period: new_period, .. })
            if new_period != period =>
        {
            (least.min(new.limit().saturating_sub(2 * old.limit())), without_recent)
        }
        // The older window is clamped before it is weighed.
        (Promise::Estimate { .. }, Promise::Estimate { .. }) if exceeded || new.limit() < old.limit() => {
            (least, without_recent)
        }
        _ => (least, expected),
    };
    let fits = (least..=most).contains(&new.remaining());
    if fits { Ok(()) } else { Err("units used are not units missing") }
}

fn period_of(promise: &Promise) -> u64 {
    if let Promise::Estimate { period, .. } = *promise { period } else { 0 }
}

/// Returns true if reservations or late charges have made a debt that takes alone cannot make.
fn owes_more_than_burst(promise: &Promise, decision: Decision) -> bool {
    let capacity = match *promise {
        Promise::TokenBucket { amount, period, burst, .. } => burst * interval(amount, period),
        Promise::LeakyBucket { amount, period, queue, .. } => (queue + 1) * interval(amount, period),
        _ => return false,
    };
    decision.reset_after_in_ticks().get() > capacity
}

/// Guava: a waiting debt stays when the rate changes.
fn debt_stays(old: Decision, new: Decision) -> Result<(), &'static str> {
    let stays = old.reset_after_in_ticks() == new.reset_after_in_ticks();
    if stays { Ok(()) } else { Err("the debt of a pacer did not stay") }
}

/// Guava: stored permits are scaled by the new maximum over the old one. What is reported is rounded down.
fn savings_keep_their_share(
    was: &Promise,
    is: &Promise,
    old: Decision,
    new: Decision,
) -> Result<(), &'static str> {
    debt_stays(old, new)?;
    let numbers = |promise: &Promise| match *promise {
        Promise::Steady { amount, period, savings, .. } => {
            (u128::from(interval(amount, period)), u128::from(savings))
        }
        _ => (1, 0),
    };
    let ((interval, most), (new_interval, new_most)) = (numbers(was), numbers(is));
    if most == 0 {
        return if new.remaining() == 0 { Ok(()) } else { Err("savings came from nowhere") };
    }
    let share = |permits: u128| (permits * interval).min(most) * new_most / most / new_interval;
    let (least, largest) = (share(old.remaining().into()), share(u128::from(old.remaining()) + 1));
    let fits = (least..=largest).contains(&u128::from(new.remaining()));
    if fits { Ok(()) } else { Err("savings did not keep their share") }
}
