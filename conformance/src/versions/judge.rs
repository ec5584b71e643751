//! The laws of one ask.

use tidegate::{Ask, Cost, Decision, Ticks, Verdict};

use super::{History, Stored, Version, Versions};
use crate::oracle::Admitted;
use crate::promise::{Promise, interval};

impl<V: Versions> History<V> {
    /// Takes, and checks that the answer is that of a peek, that a denial leaves everything as it was, that the states
    /// of other limits are left alone, and that the limit keeps its own promise.
    pub(super) fn take(&mut self, server: usize, ask: Ask) -> Result<Decision, String> {
        let index = self.on[server];
        let before = self.stored_before();
        self.counts_may_have_ended(index, &before);
        let peeked = self.arm.peek(server, ask);
        if self.looks_again() && self.stored() != before {
            return Err(format!("I-6: a peek of {ask:?} wrote"));
        }
        let decision = self.arm.take(server, ask);
        let counts_denied = self.versions[index].limit.counts_denied();
        if peeked.verdict_in_ticks() != decision.verdict_in_ticks() && !counts_denied {
            return Err(format!("I-6: peek answered {peeked:?}, take {decision:?}"));
        }
        if !decision.is_allowed() && !counts_denied {
            if self.looks_again() {
                self.denial_is_free(server, ask, decision, &before)?;
            }
        } else {
            self.others_are_left_alone(index, &before)?;
        }
        self.note(server, ask, decision)?;
        Ok(decision)
    }

    /// Returns true if what costs more calls is checked, too: on a remote store after some asks only.
    pub(super) fn looks_again(&mut self) -> bool {
        !self.arm.is_remote() || self.random.percent(20)
    }

    /// Counts that are carried end when the state that they come from is clear under its own limit. From then on each
    /// limit is judged by itself.
    fn counts_may_have_ended(&mut self, index: usize, stored: &Stored) {
        let has_ended = self.sources.iter().any(|source| !stored.is_live(*source));
        if index == self.in_force && !stored.is_live(index) && has_ended {
            self.span.interrupt();
        }
    }

    /// I-15: an ask under one limit changes no state of another.
    fn others_are_left_alone(&mut self, index: usize, before: &Stored) -> Result<(), String> {
        let after = self.stored();
        // Holders of permits are one set whatever the numbers.
        if self.kind == "concurrency" {
            return Ok(());
        }
        let is_touched = |other: &usize| *other != index && before.0[*other] != after.0[*other];
        let touched = (0..before.0.len()).find(is_touched);
        match touched {
            Some(other) => Err(format!("I-15: an ask under version {index} changed the state of {other}")),
            None => Ok(()),
        }
    }

    /// I-3: a denial writes nothing, and the same ask gets the same answer.
    fn denial_is_free(
        &mut self,
        server: usize,
        ask: Ask,
        denied: Decision,
        before: &Stored,
    ) -> Result<(), String> {
        let again = self.arm.take(server, ask);
        if again != denied {
            return Err(format!("I-3: {denied:?}, and at the same instant {again:?}"));
        }
        if self.stored() != *before {
            return Err(format!("I-3: a denial of {ask:?} wrote"));
        }
        Ok(())
    }

    /// I-1: the promise of each limit about the asks that it decided, and that of a change about those of both.
    fn note(&mut self, server: usize, ask: Ask, decision: Decision) -> Result<(), String> {
        let index = self.on[server];
        let (now, units) = (i128::from(self.now), i128::from(ask.cost.get()));
        let delay = match decision.verdict_in_ticks() {
            Verdict::Allowed { delay } => i128::from(delay.get()),
            Verdict::Denied { .. } if self.versions[index].oracle.counts_refusals() => {
                self.versions[index].untouched = false;
                self.versions[index].admitted.push(Admitted { asked: now, departs: now, units });
                if self.behind[server] {
                    self.versions[index].lagged = true;
                    self.span.interrupt();
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.keeps_own_promise(index, ask)?;
        let departs = match self.versions[index].promise {
            Promise::Concurrency { lease, .. } => now + i128::from(lease),
            _ => now + delay,
        };
        let admitted = Admitted { asked: now, departs, units };
        if self.kind == "concurrency" {
            self.versions.iter_mut().for_each(|version| version.admitted.push(admitted));
        } else {
            self.versions[index].admitted.push(admitted);
        }
        self.versions[index].untouched = false;
        self.paces(index)?;
        if !self.behind[server] {
            return self.span.admit(admitted);
        }
        // What old numbers admit after the change is carried too, and is more than they allowed at the change.
        self.versions[index].lagged = true;
        self.versions.iter_mut().for_each(|version| version.exceeded = true);
        self.span.interrupt();
        Ok(())
    }

    fn keeps_own_promise(&self, index: usize, ask: Ask) -> Result<(), String> {
        let version = &self.versions[index];
        let (now, units) = (i128::from(self.now), i128::from(ask.cost.get()));
        let promised = match version.promise {
            // The change may have opened it, not a hit that this limit has admitted.
            Promise::FixedWindow { amount, period, first_hit: true, .. } => {
                fits_first_hits(&version.admitted, amount.into(), period.into(), now, units)
            }
            // One that comes from other numbers may be warmer than one never seen.
            Promise::WarmUp { .. } => true,
            _ => version.oracle.allows(&version.admitted, now, units, ask.max_wait.get().into()),
        };
        if promised {
            return Ok(());
        }
        Err(format!("I-1: version {index} admitted {units}, and its own promise forbids it"))
    }

    /// A warming pacer is never faster than its stable rate: of grants in a row all but one are paid for in between.
    fn paces(&self, index: usize) -> Result<(), String> {
        let Version { promise, admitted, .. } = &self.versions[index];
        let Promise::WarmUp { amount, period, own, .. } = *promise else { return Ok(()) };
        let Some((last, earlier)) = admitted.split_last() else { return Ok(()) };
        let interval = i128::from(interval(amount, period));
        let mut units = 0;
        for first in earlier.iter().rev() {
            // What one costs is paid by the next, or by its own wait.
            units += if own { 0 } else { first.units };
            let paid = units + if own { last.units } else { 0 };
            if paid * interval > last.departs - first.departs {
                return Err(format!(
                    "I-1: version {index} granted {paid} within less than as many intervals"
                ));
            }
            units += if own { first.units } else { 0 };
        }
        Ok(())
    }

    /// I-5: `remaining` passes and one more does not.
    pub(super) fn figures_are_exact(&self, server: usize) -> Result<(), String> {
        let max_wait = match self.kind {
            "pacer" | "pacer-warm-up" => return Ok(()),
            "leaky-bucket" => Ticks::MAX,
            _ => Ticks::ZERO,
        };
        let passes = |units: u64| {
            let ask = Ask::new(Cost::of(units)).max_wait_in_ticks(max_wait);
            self.arm.peek(server, ask).is_allowed()
        };
        let remaining = self.arm.peek(server, Ask::ONE).remaining();
        if (remaining > 0 && !passes(remaining)) || passes(remaining + 1) {
            return Err(format!("I-5: remaining {remaining} is not what passes"));
        }
        Ok(())
    }

    /// I-13: from one full refill after the change on, a key that was not admitted since has all of the limit.
    pub(super) fn nothing_is_left_after_a_refill(&self) -> Result<(), String> {
        for server in 0..self.on.len() {
            let version = &self.versions[self.on[server]];
            let Some(refill) = full_refill(&version.promise) else { continue };
            if !version.untouched || self.now - version.since < refill {
                continue;
            }
            let decision = self.arm.peek(server, Ask::ONE);
            let most = version.promise.most_at_once();
            if decision.remaining() != most || decision.reset_after_in_ticks() != Ticks::ZERO {
                return Err(format!("I-13: a refill after the change {decision:?} is left of {most}"));
            }
        }
        Ok(())
    }
}

/// Windows that open with a hit: over any time t at most the limit for each window that it reaches, and one more.
fn fits_first_hits(admitted: &[Admitted], amount: i128, period: i128, now: i128, units: i128) -> bool {
    let mut passed = units;
    units <= amount
        && admitted.iter().rev().all(|first| {
            passed += first.units;
            let span = now - first.asked;
            passed <= amount * ((span + period - 1) / period + 1)
        })
}

/// The longest time for which a key can owe anything under this promise; none where no refill is promised.
pub(super) fn full_refill(promise: &Promise) -> Option<u64> {
    match *promise {
        Promise::TokenBucket { amount, period, burst, max_debt } => {
            Some((burst + max_debt) * interval(amount, period))
        }
        Promise::LeakyBucket { amount, period, queue, max_debt, .. } => {
            Some((queue + 1 + max_debt) * interval(amount, period))
        }
        Promise::FixedWindow { period, .. } | Promise::SlidingLog { period, .. } => Some(period),
        Promise::SlidingWindow { period, slots, .. } => Some(period + 2 * (period / slots + 1)),
        Promise::Estimate { period, .. } => Some(2 * period),
        Promise::Calendar { calendar, .. } => Some(calendar.longest()),
        // A debt of a pacer stays as it is, and holders stay as long as their lease.
        Promise::Steady { .. } | Promise::WarmUp { .. } | Promise::Concurrency { .. } => None,
    }
}
