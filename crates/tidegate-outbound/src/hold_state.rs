//! The decision when the next call to one server may leave: pure, with the time as an argument.
//!
//! A call leaves if none of three things holds it back: the pace of this program, a hold that a server has asked for,
//! and quotas, each with a remaining number until a time. After a hold or a used-up quota is over, calls leave by slow
//! start ([`SlowStart`]).
//!
//! The pace is charged twice: when a call is released, so that others wait for it, and when it leaves, which may be
//! later.
//!
//! Responses overlap, so one may be older than the current state. Only the response to a call that left after the last
//! update is certainly newer; of two that overlap the stricter applies. A server may or may not have counted the calls
//! in flight when it responds. All of them are subtracted from the remaining quota. The exception is a call in
//! flight for so long that the server has counted it or never will.

use std::time::Duration;

use tidegate_core::{Ask, Limit, Receipt, State, Ticks, Timestamp, Verdict};

use super::hints::{CallResult, MAX_POLICIES, ServerHints};
use super::slow_start::SlowStart;
use super::throttled::Reason;

/// The delay of a call that is normal scheduling. Charging it to the pace would make the pace slower than it was set.
const A_LITTLE_LATE: Ticks = Ticks::saturating_from(Duration::from_millis(10));

/// The settings that all servers of a layer share.
#[derive(Clone, Debug)]
pub(super) struct PaceConfig {
    /// The rate at which calls leave; `None` if only servers limit them.
    pub(super) pace: Option<Limit>,
    /// The upper bound of every hold and reset, before the jitter.
    pub(super) longest_hold: Duration,
    /// The maximum extension of a wait, in percent.
    pub(super) jitter: u8,
}

impl PaceConfig {
    /// Returns the wait after a request of a server: at most `longest_hold`, plus a random share.
    fn wait(&self, asked: Duration, chance: u64) -> Ticks {
        let wait = asked.min(self.longest_hold);
        // Nanoseconds of a duration have fewer than 94 bits, so neither product overflows.
        let most = wait.as_nanos().min(u128::from(u64::MAX)) * u128::from(self.jitter) / 100;
        let more = most.min(u128::from(u64::MAX)) * u128::from(chance) / u128::from(u64::MAX);
        let more = Duration::from_nanos(u64::try_from(more).unwrap_or(u64::MAX));
        Ticks::saturating_from(wait.saturating_add(more))
    }

    /// Returns the upper bound of every hold.
    fn longest(&self) -> Ticks {
        self.wait(self.longest_hold, u64::MAX)
    }
}

/// The state of one server.
#[derive(Clone, Debug, Default)]
pub(super) struct HoldState {
    /// The time until which no call leaves.
    hold: Option<Timestamp>,
    /// The quotas that the server has reported, at most [`MAX_POLICIES`].
    quotas: Vec<Quota>,
    /// The pace, charged for calls that were released.
    pace: State,
    /// The pace, charged for calls that have left.
    left: State,
    /// The slow start after a hold or a used-up quota.
    opening: Option<SlowStart>,
    /// The number of slow starts so far.
    openings: u64,
    /// True if this is a simulation, in which responses come at once.
    is_foreseen: bool,
}

/// A quota of the server, as it is after the calls that were released since it was reported.
#[derive(Clone, Debug)]
struct Quota {
    /// The name of the quota, by which later reports replace it.
    policy: Box<[u8]>,
    /// Negative if more calls are in flight than the server has quota for.
    left: i128,
    /// The time at which the server refills it.
    until: Timestamp,
    /// The moment of the queue at which this was learned.
    learned: u64,
}

/// The decision about the departure of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It may leave now.
    Clear,
    /// Not before this time.
    Wait { until: Timestamp, reason: Reason },
    /// At the latest then; or sooner, when another call gets its response.
    Perhaps { until: Timestamp },
}

/// A receipt of a released call.
#[derive(Debug)]
pub(super) struct ReleaseReceipt {
    /// The time of the release.
    at: Timestamp,
    /// The receipt of the pace, to give it back.
    receipt: Option<Receipt>,
    /// The number of the slow start in which it was released.
    opening: Option<u64>,
}

/// A response, with its place in the order of events.
pub(super) struct Answer<'a> {
    pub(super) hints: &'a ServerHints,
    /// The moment of the queue at which its call left.
    pub(super) left_at: u64,
    /// The moment of the queue at which it arrived.
    pub(super) learned: u64,
    /// The number of other calls in flight.
    pub(super) others: u64,
    /// A random number, for the jitter.
    pub(super) chance: u64,
}

impl HoldState {
    /// Returns whether a call may leave now, or the time to ask again.
    pub(super) fn look(&mut self, terms: &PaceConfig, now: Timestamp) -> Look {
        self.forget(terms, now);
        let used_up = self.quotas.iter().filter(|quota| quota.left <= 0).map(|quota| quota.until);
        if let Some(until) = self.hold.into_iter().chain(used_up).max() {
            return Look::Wait { until, reason: Reason::Reported };
        }
        let paced = terms.pace.as_ref().and_then(|limit| {
            let waits = [&self.pace, &self.left].map(|state| wait_of(limit, state, now));
            waits.into_iter().flatten().max()
        });
        match (self.opening.as_ref().and_then(|opening| opening.wait(now)), paced) {
            (Some(until), paced) => Look::Perhaps { until: until.max(paced.unwrap_or(until)) },
            (None, Some(until)) => Look::Wait { until, reason: Reason::Paced },
            (None, None) => Look::Clear,
        }
    }

    /// Releases a call, after [`HoldState::look`] was clear.
    pub(super) fn let_go(&mut self, terms: &PaceConfig, now: Timestamp) -> ReleaseReceipt {
        for quota in &mut self.quotas {
            quota.left -= 1;
        }
        if let Some(opening) = &mut self.opening {
            opening.leave(now);
        }
        let receipt = terms.pace.as_ref().and_then(|limit| {
            let decision = limit.decide(&mut self.pace, now, Ask::ONE);
            limit.receipt(&self.pace, now, Ask::ONE, &decision)
        });
        ReleaseReceipt { at: now, receipt, opening: self.opening.as_ref().map(SlowStart::number) }
    }

    /// Returns true if a released call leaves now, and charges the pace; false if other calls have used up the pace
    /// meanwhile.
    pub(super) fn leave(&mut self, terms: &PaceConfig, now: Timestamp, let_go: &ReleaseReceipt) -> bool {
        let Some(limit) = &terms.pace else { return true };
        let is_late = now.since(let_go.at) > A_LITTLE_LATE;
        let at = if is_late { now } else { let_go.at };
        limit.decide(&mut self.left, at, Ask::ONE).is_allowed()
    }

    /// Takes back the release of a call that has not left.
    pub(super) fn give_back(&mut self, terms: &PaceConfig, now: Timestamp, let_go: ReleaseReceipt) {
        // A quota that was learned since has subtracted it, too, as a call in flight.
        for quota in &mut self.quotas {
            quota.left += 1;
        }
        self.ended(&let_go, CallResult::Unanswered);
        if let (Some(limit), Some(receipt)) = (&terms.pace, let_go.receipt) {
            limit.give_back(&mut self.pace, now, receipt);
        }
    }

    /// Records the end of a call.
    pub(super) fn ended(&mut self, let_go: &ReleaseReceipt, went: CallResult) {
        if let Some(opening) =
            self.opening.as_mut().filter(|opening| let_go.opening == Some(opening.number()))
        {
            opening.ended(went);
        }
    }

    /// Returns the state for a simulation in which all responses come at once and report nothing.
    pub(super) fn foreseen(&self) -> HoldState {
        HoldState { opening: None, is_foreseen: true, ..self.clone() }
    }

    /// Updates the state from a response.
    pub(super) fn learn(&mut self, terms: &PaceConfig, now: Timestamp, answer: &Answer<'_>) {
        self.forget(terms, now);
        if let Some(hold) = answer.hints.hold {
            let until = now.saturating_add(terms.wait(hold, answer.chance));
            self.hold = self.hold.max(Some(until));
        }
        for reported in &answer.hints.quotas {
            let quota = Quota {
                policy: reported.policy.clone(),
                left: i128::from(reported.left) - i128::from(answer.others),
                until: now.saturating_add(terms.wait(reported.lasts, answer.chance)),
                learned: answer.learned,
            };
            self.note(quota, answer.left_at);
        }
    }

    /// Stores a quota. If the call left after the last report, the new one replaces it; if the two overlap, the
    /// stricter stays.
    fn note(&mut self, quota: Quota, left_at: u64) {
        self.opening = self.opening.take().filter(|opening| !opening.is_of(&quota.policy));
        let Some(known) = self.quotas.iter_mut().find(|known| known.policy == quota.policy) else {
            if self.quotas.len() >= MAX_POLICIES {
                // The quota that will hold calls back last.
                let loosest = self.quotas.iter().enumerate().max_by_key(|(_, known)| known.left);
                let Some((place, loosest)) = loosest else { return };
                if loosest.left <= quota.left {
                    return;
                }
                self.quotas.swap_remove(place);
            }
            self.quotas.push(quota);
            return;
        };
        if left_at > known.learned {
            *known = quota;
        } else if (quota.left, known.until) < (known.left, quota.until) {
            *known = Quota { until: quota.until.max(known.until), ..quota };
        }
    }

    /// Removes state that is over, and bounds times that a faulty clock has made too long.
    fn forget(&mut self, terms: &PaceConfig, now: Timestamp) {
        let latest = now.saturating_add(terms.longest());
        self.hold = self.hold.map(|until| until.min(latest));
        // The time since which calls may pass, and the quota that held them back before.
        let mut opened = self.hold.take_if(|until| *until <= now).map(|since| (since, None));
        self.quotas.retain_mut(|quota| {
            quota.until = quota.until.min(latest);
            let is_over = quota.until <= now;
            if is_over && quota.left <= 0 && opened.is_none() {
                opened = Some((quota.until, Some(std::mem::take(&mut quota.policy))));
            }
            !is_over
        });
        self.opening = self.opening.take().filter(|opening| !opening.is_over(now));
        if let Some((since, policy)) = opened.filter(|_| !self.is_foreseen) {
            self.openings += 1;
            self.opening = Some(SlowStart::new(self.openings, policy, since));
        }
    }

    /// Moves all times after the clock stepped back by this much, so that holds keep their length.
    pub(super) fn step_back(&mut self, by: Ticks) {
        self.hold = self.hold.map(|until| until.saturating_sub(by));
        for quota in &mut self.quotas {
            quota.until = quota.until.saturating_sub(by);
        }
        if let Some(opening) = &mut self.opening {
            opening.step_back(by);
        }
    }

    /// Returns the number of calls that may leave before something holds them back; `None` if something does already.
    pub(super) fn looseness(&mut self, terms: &PaceConfig, now: Timestamp) -> Option<i128> {
        self.forget(terms, now);
        let is_paced = terms
            .pace
            .as_ref()
            .is_some_and(|limit| limit.clear_at(&self.pace) > now || limit.clear_at(&self.left) > now);
        let left = self.quotas.iter().map(|quota| quota.left).min().unwrap_or(i128::MAX);
        let is_open = self.opening.as_ref().is_none_or(|opening| opening.is_over(now));
        let is_free = self.hold.is_none() && is_open && !is_paced && left > 0;
        is_free.then_some(left)
    }
}

/// Returns the time at which the pace allows one more call; `None` if it does now.
fn wait_of(limit: &Limit, state: &State, now: Timestamp) -> Option<Timestamp> {
    match limit.peek(state, now, Ask::ONE).verdict_in_ticks() {
        Verdict::Allowed { .. } => None,
        Verdict::Denied { retry_after } => Some(now.saturating_add(retry_after)),
        Verdict::Impossible => Some(Timestamp::LAST),
    }
}

#[cfg(test)]
mod tests;
