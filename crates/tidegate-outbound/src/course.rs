//! When the next call to one place may leave: pure, with the time as an argument.
//!
//! Three things hold a call back, and it leaves when none of them does: the pace that this program has set itself,
//! a hold that a server has asked for, and quotas, of each of which so many are left until a time. When a hold is over,
//! or a quota that was used up, calls leave a few at a time at first ([`Opening`]).
//!
//! The pace is charged twice: when a call is let go, so that others wait for it, and when it leaves, which may be later.
//!
//! Answers overlap, so that one may be older than what is known already. Only the answer to a call that left after
//! something was learned is surely newer than that; of two that overlap the stricter counts. A server may or may not
//! have counted the calls that are on their way while it answers: all are taken off from what it says is left, but for
//! those that have been on their way for so long that it has counted them or never will.

use std::time::Duration;

use tidegate::{Ask, Limit, Receipt, State, Ticks, Timestamp, Verdict};

use super::held::Reason;
use super::opening::Opening;
use super::told::{MAX_POLICIES, Told, Went};

/// Late by so little is how programs run; to take it off the pace would make it slower than it was set.
const A_LITTLE_LATE: Ticks = Ticks::saturating_from(Duration::from_millis(10));

/// What all courses of a layer have in common.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) pace: Option<Limit>,
    pub(super) longest_hold: Duration,
    /// By how many hundredths of itself a wait may become longer.
    pub(super) jitter: u8,
}

impl Terms {
    /// What a wait that a server asks for becomes: never longer than allowed, plus a share that chance decides.
    fn wait(&self, asked: Duration, chance: u64) -> Ticks {
        let wait = asked.min(self.longest_hold);
        // Nanoseconds of a duration have fewer than 94 bits, so neither product overflows.
        let most = wait.as_nanos().min(u128::from(u64::MAX)) * u128::from(self.jitter) / 100;
        let more = most.min(u128::from(u64::MAX)) * u128::from(chance) / u128::from(u64::MAX);
        let more = Duration::from_nanos(u64::try_from(more).unwrap_or(u64::MAX));
        Ticks::saturating_from(wait.saturating_add(more))
    }

    /// Longer than this nothing that was ever learned can hold.
    fn longest(&self) -> Ticks {
        self.wait(self.longest_hold, u64::MAX)
    }
}

/// What is known about one place.
#[derive(Clone, Debug, Default)]
pub(super) struct Course {
    hold: Option<Timestamp>,
    quotas: Vec<Quota>,
    /// Of those that were let go.
    pace: State,
    /// Of those that have left.
    left: State,
    opening: Option<Opening>,
    /// How many openings there were.
    openings: u64,
    /// Whether it is only thought of, with answers that come at once.
    is_foreseen: bool,
}

#[derive(Clone, Debug)]
struct Quota {
    policy: Box<[u8]>,
    /// Below nothing if more are on their way than the server has left.
    left: i128,
    until: Timestamp,
    /// The moment of the line at which this was learned.
    learned: u64,
}

/// Whether a call may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Clear,
    Wait {
        until: Timestamp,
        reason: Reason,
    },
    /// At the latest then; or sooner, when another is answered.
    Perhaps {
        until: Timestamp,
    },
}

/// Proof that a call was let go.
#[derive(Debug)]
pub(super) struct LetGo {
    at: Timestamp,
    receipt: Option<Receipt>,
    opening: Option<u64>,
}

/// An answer, as the line sees it.
pub(super) struct Answer<'a> {
    pub(super) told: &'a Told,
    /// The moment of the line at which its call left.
    pub(super) left_at: u64,
    /// The moment of the line at which it came.
    pub(super) learned: u64,
    /// Calls that are on their way besides.
    pub(super) others: u64,
    /// A random number, for the jitter.
    pub(super) chance: u64,
}

impl Course {
    /// Whether a call may leave now, or when that is worth asking again.
    pub(super) fn look(&mut self, terms: &Terms, now: Timestamp) -> Look {
        self.forget(terms, now);
        let used_up = self.quotas.iter().filter(|quota| quota.left <= 0).map(|quota| quota.until);
        if let Some(until) = self.hold.into_iter().chain(used_up).max() {
            return Look::Wait { until, reason: Reason::Told };
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

    /// A call is let go, because [`Course::look`] was clear.
    pub(super) fn let_go(&mut self, terms: &Terms, now: Timestamp) -> LetGo {
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
        LetGo { at: now, receipt, opening: self.opening.as_ref().map(Opening::number) }
    }

    /// A call that was let go leaves now, unless so many others have left meanwhile that the pace forbids it.
    pub(super) fn leave(&mut self, terms: &Terms, now: Timestamp, let_go: &LetGo) -> bool {
        let Some(limit) = &terms.pace else { return true };
        let is_late = now.since(let_go.at) > A_LITTLE_LATE;
        let at = if is_late { now } else { let_go.at };
        limit.decide(&mut self.left, at, Ask::ONE).is_allowed()
    }

    /// A call has not left after all.
    pub(super) fn give_back(&mut self, terms: &Terms, now: Timestamp, let_go: LetGo) {
        // Also what was learned since has taken it off, as one on its way.
        for quota in &mut self.quotas {
            quota.left += 1;
        }
        self.ended(&let_go, Went::Unanswered);
        if let (Some(limit), Some(receipt)) = (&terms.pace, let_go.receipt) {
            limit.give_back(&mut self.pace, now, receipt);
        }
    }

    /// A call has ended.
    pub(super) fn ended(&mut self, let_go: &LetGo, went: Went) {
        if let Some(opening) =
            self.opening.as_mut().filter(|opening| let_go.opening == Some(opening.number()))
        {
            opening.ended(went);
        }
    }

    /// The same, if all answers came at once and told nothing.
    pub(super) fn foreseen(&self) -> Course {
        Course { opening: None, is_foreseen: true, ..self.clone() }
    }

    /// An answer has come.
    pub(super) fn learn(&mut self, terms: &Terms, now: Timestamp, answer: &Answer<'_>) {
        self.forget(terms, now);
        if let Some(hold) = answer.told.hold {
            let until = now.saturating_add(terms.wait(hold, answer.chance));
            self.hold = self.hold.max(Some(until));
        }
        for told in &answer.told.quotas {
            let quota = Quota {
                policy: told.policy.clone(),
                left: i128::from(told.left) - i128::from(answer.others),
                until: now.saturating_add(terms.wait(told.lasts, answer.chance)),
                learned: answer.learned,
            };
            self.note(quota, answer.left_at);
        }
    }

    fn note(&mut self, quota: Quota, left_at: u64) {
        self.opening = self.opening.take().filter(|opening| !opening.is_of(&quota.policy));
        let Some(known) = self.quotas.iter_mut().find(|known| known.policy == quota.policy) else {
            if self.quotas.len() >= MAX_POLICIES {
                // The one that will hold nobody back for longest.
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

    /// Drops what is over, and bounds what a clock that runs wild has made too long.
    fn forget(&mut self, terms: &Terms, now: Timestamp) {
        let latest = now.saturating_add(terms.longest());
        self.hold = self.hold.map(|until| until.min(latest));
        // Since when calls may pass, and what they might not pass before.
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
            self.opening = Some(Opening::new(self.openings, policy, since));
        }
    }

    /// The clock has stepped back by so much: what holds, holds for as long as it would have.
    pub(super) fn step_back(&mut self, by: Ticks) {
        self.hold = self.hold.map(|until| until.saturating_sub(by));
        for quota in &mut self.quotas {
            quota.until = quota.until.saturating_sub(by);
        }
        if let Some(opening) = &mut self.opening {
            opening.step_back(by);
        }
    }

    /// How many may leave before anything holds them back; nothing if something does already.
    pub(super) fn looseness(&mut self, terms: &Terms, now: Timestamp) -> Option<i128> {
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

/// When the pace lets one more leave, if not now.
fn wait_of(limit: &Limit, state: &State, now: Timestamp) -> Option<Timestamp> {
    match limit.peek(state, now, Ask::ONE).verdict_in_ticks() {
        Verdict::Allowed { .. } => None,
        Verdict::Denied { retry_after } => Some(now.saturating_add(retry_after)),
        Verdict::Impossible => Some(Timestamp::LAST),
    }
}

#[cfg(test)]
mod tests;
