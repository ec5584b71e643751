//! Asks on both sides of one change, judged together.
//!
//! Where every server follows the change at once, the change itself admits nothing: together the two limits admit no
//! more than the larger burst and what each rate earns in its own time.

use crate::oracle::Admitted;
use crate::promise::{Promise, interval};

/// The asks admitted under the limit in force and the one before it.
pub(super) struct Span {
    /// The limit before, and the time of the change.
    before: Option<(Promise, i128)>,
    in_force: Promise,
    admitted: Vec<Admitted>,
    /// The number of these that came before the change.
    old: usize,
    /// Servers with old numbers asked, or a stored state was taken up again: then each limit is judged by itself.
    interrupted: bool,
}

impl Span {
    pub(super) fn new(promise: &Promise) -> Span {
        Span { before: None, in_force: *promise, admitted: Vec::new(), old: 0, interrupted: false }
    }

    /// Another limit comes into force; what came before the last change is no longer looked at.
    pub(super) fn change(&mut self, promise: &Promise, now: u64, is_live: bool) {
        self.admitted.drain(..self.old);
        self.old = self.admitted.len();
        self.before = Some((self.in_force, now.into()));
        self.in_force = *promise;
        self.interrupted = is_live;
    }

    /// An ask was decided by old numbers.
    pub(super) fn interrupt(&mut self) {
        self.interrupted = true;
    }

    pub(super) fn admit(&mut self, admitted: Admitted) -> Result<(), String> {
        self.admitted.push(admitted);
        if self.interrupted { Ok(()) } else { self.check(admitted.asked) }
    }

    fn check(&self, now: i128) -> Result<(), String> {
        let Some((old, changed_at)) = self.before else { return Ok(()) };
        let mut passed = 0;
        for &Admitted { asked: start, departs, units } in self.admitted.iter().rev() {
            // A reservation acts later than it is asked for; a leaky bucket promises what it accepts.
            if departs > start && !matches!(old, Promise::LeakyBucket { .. }) {
                return Ok(());
            }
            passed += units;
            let before = (changed_at - start).max(0);
            if !fits(&old, &self.in_force, passed, before, now - start - before) {
                let span = now - start;
                return Err(format!(
                    "I-13: {passed} passed within {span} ticks around a change from {old:?}"
                ));
            }
        }
        Ok(())
    }
}

/// Returns true if so many may pass in a time of which one part lies before the change and the other after it.
fn fits(old: &Promise, new: &Promise, passed: i128, before: i128, after: i128) -> bool {
    let most = i128::from(old.most_at_once().max(new.most_at_once()));
    match (*old, *new) {
        (
            Promise::TokenBucket { amount, period, .. } | Promise::LeakyBucket { amount, period, .. },
            Promise::TokenBucket { amount: new_amount, period: new_period, .. }
            | Promise::LeakyBucket { amount: new_amount, period: new_period, .. },
        ) => {
            let (old, new) =
                (i128::from(interval(amount, period)), i128::from(interval(new_amount, new_period)));
            (passed - most) * old * new <= before * new + after * old
        }
        (
            Promise::SlidingLog { period, .. } | Promise::SlidingWindow { period, .. },
            Promise::SlidingLog { period: new_period, .. }
            | Promise::SlidingWindow { period: new_period, .. },
        ) => before + after >= period.min(new_period).into() || passed <= most,
        _ => true,
    }
}
