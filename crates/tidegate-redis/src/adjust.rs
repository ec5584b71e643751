//! Operations on one key: peek and adjust.

use tidegate_core::{
    Adjusted, Adjustment, Algorithm, Ask, Decision, Limit, SECOND, StoreError, Subject, Ticks, Timestamp,
};

use crate::fault::Fault;
use crate::script::{self, Begin, span};
use crate::store::{Inner, read, unfit};

/// The maximum number of attempts of an adjustment with an initial state.
const MOST_TIMES: usize = 8;

/// The longest debt of a pacer.
const LONGEST_PACE: Ticks = Ticks::saturating_from(SECOND.saturating_mul(10 * 365 * 86_400));

impl Inner {
    /// Returns the decision about an ask, without spending. It costs one call, and reads previous states where they
    /// matter.
    pub(crate) async fn peek(&self, subject: Subject<'_>, ask: Ask) -> Result<Decision, StoreError> {
        let decisions = self.look_at_asks(&[(subject, ask)]).await?;
        decisions.first().copied().ok_or_else(|| Fault::Unreadable("no decision".to_owned()).into())
    }

    /// Charges additional units, or refunds unused ones. A charge is capped at the largest debt of the limit, a refund
    /// at the units in use; `Capped` reports either. Permits cannot be adjusted: `NeedsPermit`.
    ///
    /// A refund of counts that are carried from previous limits is not made if no debt would be left: a clear state is
    /// not kept, so the same counts would be carried again.
    ///
    /// Fails as busy if the key has no live state and its initial state expires again and again.
    pub(crate) async fn adjust(
        &self,
        subject: Subject<'_>,
        adjustment: Adjustment,
    ) -> Result<Adjusted, StoreError> {
        let limit = self.stored(&subject).map_err(|error| unfit(&error))?;
        let due = self.due()?;
        let extra = charged_time(limit.limit(), adjustment);
        self.make_ready(&limit, extra, due).await?;
        let target = limit.target(self.prefix(), subject.key());
        let mut begin = limit.carries().then(Begin::unknown);
        // The cache entry is removed before the call too, in case the caller drops this future.
        self.forget(&target.name);
        for _ in 0..MOST_TIMES {
            let call = script::adjust(&target, adjustment, begin.as_ref(), self.time());
            let answer =
                self.run(call, due).await.inspect_err(|_| self.may_have_written(std::iter::once(&*limit)));
            self.forget(&target.name);
            if let Some(adjusted) = read(script::read_adjust(answer?))? {
                self.note_adjusted(&limit, extra, due).await;
                return Ok(adjusted);
            }
            let (now, mut before) = self.states_before(&[(&limit, subject.key())], due).await?;
            limit.saw(now);
            begin = before.pop().map(|before| limit.begin(&before, now, Ask::ONE));
            if begin.as_ref().is_some_and(|begin| is_not_kept(limit.limit(), begin, now, adjustment)) {
                return Ok(Adjusted::Capped);
            }
        }
        Err(Fault::Busy.into())
    }
}

/// Returns true if an adjustment of carried counts would leave a clear state.
fn is_not_kept(limit: &Limit, begin: &Begin, now: Timestamp, adjustment: Adjustment) -> bool {
    let mut state = begin.state.clone();
    if limit.clear_at(&state) <= now {
        return false;
    }
    limit.adjust(&mut state, now, adjustment);
    limit.clear_at(&state) <= now
}

/// Returns the debt of a pacer after a charge. For other algorithms a charge adds no more than takes can. A charge to a
/// pacer can last longer than any take, because takes are bounded by the longest wait. The table entry has to cover it.
fn charged_time(limit: &Limit, adjustment: Adjustment) -> Ticks {
    match (limit.algorithm(), adjustment) {
        (Algorithm::Pacer, Adjustment::Charge(cost)) => {
            let [interval, _, _, _, cold_factor] = limit.numbers();
            let price = interval.saturating_mul(cold_factor.max(1)).saturating_mul(cost.get());
            span(price).min(LONGEST_PACE)
        }
        _ => Ticks::ZERO,
    }
}
