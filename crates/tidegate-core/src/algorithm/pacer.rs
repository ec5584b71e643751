//! Pacer: spaces permits out, as Guava's `RateLimiter` does.
//!
//! A grant waits only for the debt of earlier grants. Its own cost is paid by the next grant (`pay next`), or by its
//! own wait (`pay self`). Idle time is saved, up to a maximum.
//!
//! *Steady*: saved permits are free, fresh ones cost one interval each.
//!
//! *Warm-up*: saved permits measure how cold the protected resource is, and cost more the colder it is.
//!
//! ```text
//!   wait per permit
//!     cold |                     /|     cold = interval * cold_factor
//!          |                   /  |
//!          |                 /    |     the area under the line is the time
//!          |               /      |     it takes to spend what is saved
//!   stable |-------------/        |
//!          |    W/2      |   W    |
//!          +-------------+--------+---> saved permits
//!          0         threshold   maximum
//! ```
//!
//! Savings are kept as *idle time* rather than as permits: a whole warm-up W of idling fills them, at any rate. With a
//! cold factor f the savings are counted in units of 1/(5 + f) tick, because then everything is a whole number: full is
//! W(5 + f), the threshold W(1 + f), and a permit 2(1 + f) intervals. None of these depends on the rate, so a changed
//! rate rescales the saved permits without further work, as Guava does explicitly. Steady mode counts plain ticks; its
//! maximum is a span too, Guava's burst seconds.
//!
//! The debt is kept as a span, beside the time of the last update. When the clock steps back, the debt stays the same,
//! neither forgiven nor lengthened. Clock readings that are merely out of order are not a step: the debt is then owed
//! as of the later time.

use std::num::NonZeroU64;

use super::refund::{Claim, DebtQueue, TakenOff, Waiting, still_owed};
use super::state::StateFootprint;
use super::{Decide, Words};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::{Decision, Remaining, Verdict};
use crate::limit::{Pay, Problem};
use crate::receipt::Receipt;
use crate::time::{OUT_OF_ORDER, Ticks, Timestamp};

/// The longest warm-up: 30 days.
pub(crate) const MAX_WARM_UP: Ticks = Ticks::new(30 * 24 * 3600 * 16_000_000_000);
/// The largest cold factor.
pub(crate) const MAX_COLD_FACTOR: u64 = 100;

/// The numbers of a pacer.
#[doc(alias("RateLimiter", "Guava", "SmoothBursty", "SmoothWarmingUp"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacerParams {
    /// The time from one permit to the next; `None` at an unlimited rate.
    interval: Option<NonZeroU64>,
    savings: Savings,
    pay: Pay,
}

/// The value of idle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Savings {
    Steady { most: Ticks },
    WarmUp { length: Ticks, cold_factor: u64 },
}

/// The savings and the debt of one key. A key never seen has been idle since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace(Option<Reckoning>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reckoning {
    at: Timestamp,
    owed: Ticks,
    saved: u64,
    /// The units of `saved` per tick of idling.
    scale: NonZeroU64,
}

impl PacerParams {
    /// Creates a pacer whose saved permits are free, up to this span of idle time.
    pub(crate) const fn steady(
        interval: Option<NonZeroU64>,
        most: Ticks,
        pay: Pay,
    ) -> Result<PacerParams, Problem> {
        if most.get() > Ticks::TEN_YEARS.get() {
            return Err(Problem::BurstTooLong);
        }
        Ok(PacerParams { interval, savings: Savings::Steady { most }, pay })
    }

    /// Creates a pacer that is slower after idle time, by up to the cold factor.
    pub(crate) const fn warming_up(
        interval: Option<NonZeroU64>,
        length: Ticks,
        cold_factor: u64,
        pay: Pay,
    ) -> Result<PacerParams, Problem> {
        if length.get() == 0 || length.get() > MAX_WARM_UP.get() {
            return Err(Problem::WarmUpOutOfRange);
        }
        if cold_factor == 0 || cold_factor > MAX_COLD_FACTOR {
            return Err(Problem::ColdFactorOutOfRange);
        }
        if let Some(interval) = interval {
            if interval.get().checked_mul(2 * (1 + cold_factor)).is_none() {
                return Err(Problem::TooSlowToWarmUp);
            }
        }
        Ok(PacerParams { interval, savings: Savings::WarmUp { length, cold_factor }, pay })
    }

    /// Returns the state as of now.
    fn reckon(&self, state: &Pace, now: Timestamp) -> Reckoning {
        let scale = self.scale();
        let last = state.0.unwrap_or_else(|| self.first_reckoning(Timestamp::EPOCH));
        let at = if last.at.since(now) > OUT_OF_ORDER { now } else { now.max(last.at) };
        let passed = at.since(last.at);
        let idle = passed.saturating_sub(last.owed).get();
        let saved = match self.interval {
            Some(_) => last.saved_in(scale).saturating_add(idle.saturating_mul(scale.get())).min(self.full()),
            None => self.saved_when_unlimited(),
        };
        Reckoning { at, owed: last.owed.saturating_sub(passed), saved, scale }
    }

    /// Returns a state that begins now: a steady pacer has no savings, a warming one is cold. (A key never seen has
    /// been idle since the epoch.)
    pub(crate) fn begun_at(&self, now: Timestamp) -> Pace {
        Pace(Some(self.first_reckoning(now)))
    }

    /// Returns the reckoning of a key that begins at this time without debt.
    fn first_reckoning(&self, at: Timestamp) -> Reckoning {
        Reckoning { at, owed: Ticks::ZERO, saved: self.saved_at_first(), scale: self.scale() }
    }

    /// Returns true if savings make permits dearer, not free.
    pub(crate) const fn warms_up(&self) -> bool {
        matches!(self.savings, Savings::WarmUp { .. })
    }

    /// Returns true if a grant waits for its own cost.
    pub(crate) fn pays_own(&self) -> bool {
        self.pay == Pay::Own
    }

    /// Returns the longest time in which an idle pacer without debt becomes full.
    pub(crate) fn memory(&self) -> Ticks {
        Ticks::new(self.full().div_ceil(self.scale().get()))
    }

    /// Returns the most units that act within a closed interval beside one grant of any size, or `None` at an unlimited
    /// rate.
    ///
    /// Of the grants in the interval, the last one may be paid for after it (`pay next`), or the first one before it
    /// (`pay self`). The others are paid for within it, or from savings. A grant that pays for itself from savings is
    /// no exception, and one unit less acts beside it. A warm-up makes no permit cheaper than the interval.
    pub(crate) fn most_beside_one(&self, span: Ticks) -> Option<u128> {
        let (span, interval) = (u128::from(span.get()), u128::from(self.interval?.get()));
        let saved = match self.savings {
            Savings::Steady { most } => u128::from(most.get()),
            Savings::WarmUp { .. } => return Some(span / interval),
        };
        let with_savings = (saved + span) / interval;
        Some(match self.pay {
            Pay::Next => with_savings,
            Pay::Own => with_savings.saturating_sub(1).max(span / interval),
        })
    }

    /// Returns the savings at the epoch: a steady pacer has none, and a warming one is cold.
    fn saved_at_first(&self) -> u64 {
        if self.warms_up() { self.full() } else { 0 }
    }

    /// Returns savings of the same share of the maximum here as these are of the maximum under `old`. If `old` could
    /// save nothing, they begin as at the epoch.
    fn share_of(&self, saved: u64, old: &PacerParams) -> u64 {
        let share = u128::from(saved.min(old.full())) * u128::from(self.full());
        let share =
            share.checked_div(old.full().into()).map(|share| u64::try_from(share).unwrap_or(u64::MAX));
        share.unwrap_or_else(|| self.saved_at_first())
    }

    /// Returns the savings after an unlimited rate: a steady pacer is full, and a warming one is warm.
    fn saved_when_unlimited(&self) -> u64 {
        if self.warms_up() { 0 } else { self.full() }
    }

    /// Returns the maximum savings.
    fn full(&self) -> u64 {
        match self.savings {
            Savings::Steady { most } => most.get(),
            Savings::WarmUp { length, .. } => length.get() * self.scale().get(),
        }
    }

    /// Returns the savings per tick of idling.
    fn scale(&self) -> NonZeroU64 {
        match self.savings {
            Savings::Steady { .. } => NonZeroU64::MIN,
            Savings::WarmUp { cold_factor, .. } => NonZeroU64::MIN.saturating_add(4 + cold_factor),
        }
    }

    /// Returns the savings that one permit costs, or `None` at an unlimited rate.
    fn permit(&self) -> Option<NonZeroU64> {
        let intervals = match self.savings {
            Savings::Steady { .. } => 1,
            Savings::WarmUp { cold_factor, .. } => 2 * (1 + cold_factor),
        };
        NonZeroU64::new(self.interval?.get() * intervals)
    }

    /// Returns the savings that so many permits cost.
    fn price(&self, permits: u64) -> u128 {
        self.permit().map_or(0, |permit| u128::from(permit.get()) * u128::from(permits))
    }

    /// Returns the price of so many permits for a receipt. A price that exceeds 64 bits is zero and is not refunded.
    pub(crate) fn price_in_ticks(&self, permits: Cost) -> Ticks {
        Ticks::new(u64::try_from(self.price(permits.get())).unwrap_or(0))
    }

    /// Returns the time that a price costs, and the savings that it leaves.
    fn spend(&self, saved: u64, price: u128) -> Option<(Ticks, u64)> {
        let left = u128::from(saved).saturating_sub(price) as u64;
        let time = match self.savings {
            Savings::Steady { .. } => price.saturating_sub(u128::from(saved)),
            Savings::WarmUp { length, cold_factor } => {
                warm_up_time(u128::from(length.get()), u128::from(cold_factor), u128::from(saved), price)?
            }
        };
        u64::try_from(time).ok().map(|time| (Ticks::new(time), left))
    }

    /// Returns the verdict, and the reckoning that an allowed ask leaves.
    fn judge(&self, reckoning: Reckoning, now: Timestamp, ask: Ask) -> (Verdict<Ticks>, Reckoning) {
        let price = self.price(ask.units());
        let Some((time, saved)) = self.spend(reckoning.saved, price) else {
            return (Verdict::Impossible, reckoning);
        };
        let owed = reckoning.owed.saturating_add(time);
        let least_time = self.least_time(price, time);
        if owed > reckoning.at.left() || least_time > Ticks::TEN_YEARS {
            return (Verdict::Impossible, reckoning);
        }
        let after = Reckoning { owed, saved, ..reckoning };
        let (delay, least_delay) = match self.pay {
            Pay::Next => (reckoning.wait(now), Ticks::ZERO),
            Pay::Own => (after.wait(now), least_time),
        };
        let max_wait = ask.max_wait;
        let retry_after = delay.saturating_sub(max_wait).max(owed.saturating_sub(Ticks::TEN_YEARS));
        let verdict = if retry_after == Ticks::ZERO {
            Verdict::Allowed { delay }
        } else if least_delay > max_wait {
            Verdict::Impossible
        } else {
            Verdict::Denied { retry_after }
        };
        (verdict, after)
    }

    /// Returns the least time that a price can cost after any wait. At this instant it costs `now`.
    fn least_time(&self, price: u128, now: Ticks) -> Ticks {
        match self.savings {
            Savings::Steady { .. } => self.spend(self.full(), price).map_or(now, |(time, _)| time),
            // Waiting only makes a warming pacer colder.
            Savings::WarmUp { .. } => now,
        }
    }

    /// Builds the decision. At an unlimited rate everything remains.
    fn report(&self, verdict: Verdict<Ticks>, reckoning: Reckoning, now: Timestamp) -> Decision {
        let (limit, room) = match self.permit() {
            Some(permit) => (self.full() / permit, Remaining::of_amount(reckoning.saved, permit)),
            None => (u64::MAX, Remaining::of_units(u64::MAX)),
        };
        Decision::new(verdict, limit, room, reckoning.wait(now))
    }

    /// Adds the cost of permits to the debt, up to ten years.
    fn charge(&self, reckoning: Reckoning, permits: u64) -> (Reckoning, Adjusted) {
        let spent = self.spend(reckoning.saved, self.price(permits));
        let (time, saved) = spent.unwrap_or((Ticks::MAX, 0));
        let owed = reckoning.owed.saturating_add(time);
        let most = Ticks::TEN_YEARS.min(reckoning.at.left());
        (Reckoning { owed: owed.min(most), saved, ..reckoning }, Adjusted::whole_if(owed <= most))
    }

    /// Refunds a price. If a warming pacer has no savings, the permits count as fresh ones.
    fn refund(&self, reckoning: Reckoning, price: u128) -> (Reckoning, Adjusted) {
        let price = u64::try_from(price).unwrap_or(u64::MAX);
        let (time, saved) = match self.savings {
            // The debt is repaid first; the rest is saved again.
            Savings::Steady { .. } => {
                let time = price.min(reckoning.owed.get());
                (Ticks::new(time), reckoning.saved.saturating_add(price - time))
            }
            Savings::WarmUp { .. } => {
                let saved = if reckoning.saved == 0 { 0 } else { reckoning.saved.saturating_add(price) };
                let spent = self.spend(saved.min(self.full()), price.into());
                (spent.map_or(Ticks::MAX, |(time, _)| time), saved)
            }
        };
        let whole = time <= reckoning.owed && saved <= self.full();
        let owed = reckoning.owed.saturating_sub(time);
        (Reckoning { owed, saved: saved.min(self.full()), ..reckoning }, Adjusted::whole_if(whole))
    }

    /// Returns true if a grant that left these savings may have used an unknown number of fresh permits.
    fn used_up(&self, reckoning: &Reckoning) -> bool {
        self.warms_up() && reckoning.saved == 0
    }
}

impl StateFootprint for PacerParams {
    fn pack(&self) -> Words {
        let interval = self.interval.map_or(0, NonZeroU64::get);
        let pays_own = u64::from(self.pay == Pay::Own);
        match self.savings {
            Savings::Steady { most } => [interval, pays_own, most.get(), 0, 0],
            Savings::WarmUp { length, cold_factor } => [interval, pays_own, 0, length.get(), cold_factor],
        }
    }

    /// Returns the state settled at the old rate and scaled as Guava's `setRate` does. Savings keep their share of the
    /// maximum. The debt stays the same span of time, because the next caller was promised it.
    ///
    /// At an unlimited rate nothing is scarce. After it a steady pacer is full and a warming one is warm, however long
    /// it ran and whether or not any request was made.
    fn carry(&self, old: &PacerParams, state: &Pace, changed_at: Timestamp) -> Option<Pace> {
        let settled = old.reckon(state, changed_at);
        let owed = settled.wait(changed_at).min(Ticks::TEN_YEARS).min(changed_at.left());
        let saved = match old.interval {
            Some(_) => self.share_of(settled.saved, old),
            None => self.saved_when_unlimited(),
        };
        let carried = Reckoning { at: changed_at, owed, saved, scale: self.scale() };
        (carried != self.reckon(&Pace::default(), changed_at)).then_some(Pace(Some(carried)))
    }

    fn longest_carried(&self) -> Ticks {
        Ticks::TEN_YEARS.saturating_add(self.memory())
    }

    fn words_after(&self, _: usize) -> usize {
        4
    }
}

impl Decide for PacerParams {
    type State = Pace;

    fn decide(&self, state: &mut Pace, now: Timestamp, ask: Ask) -> Decision {
        let before = self.reckon(state, now);
        let (verdict, after) = self.judge(before, now, ask);
        if verdict.is_allowed() {
            state.0 = Some(after);
            return self.report(verdict, after, now);
        }
        // After the clock stepped back, the debt counts from now, not from a time in the future.
        if let Some(last) = &mut state.0 {
            last.at = last.at.min(before.at);
        }
        self.report(verdict, before, now)
    }

    fn peek(&self, state: &Pace, now: Timestamp, ask: Ask) -> Decision {
        let reckoning = self.reckon(state, now);
        self.report(self.judge(reckoning, now, ask).0, reckoning, now)
    }

    fn adjust(&self, state: &mut Pace, now: Timestamp, adjustment: Adjustment) -> Adjusted {
        let reckoning = self.reckon(state, now);
        let (after, adjusted) = match adjustment {
            Adjustment::Charge(cost) => self.charge(reckoning, cost.get()),
            Adjustment::Refund(cost) => self.refund(reckoning, self.price(cost.get())),
        };
        state.0 = Some(after);
        adjusted
    }

    /// Returns the time at which the debt is repaid and the savings are full, as for a key never seen.
    fn clear_at(&self, state: &Pace) -> Timestamp {
        state.0.map_or(Timestamp::EPOCH, |last| {
            let missing =
                self.full().saturating_sub(last.saved_in(self.scale())).div_ceil(self.scale().get());
            let rested_at = last.at.saturating_add(last.owed).saturating_add(Ticks::new(missing));
            // A steady pacer never seen is full only after the time in which it could have saved that much.
            rested_at.max(Timestamp::from_ticks(self.full() - self.saved_at_first()))
        })
    }

    fn receipt(&self, state: &Pace, now: Timestamp, cost: Cost) -> Receipt {
        Receipt { paid: self.price_in_ticks(cost), ..Receipt::new(cost, now, self.clear_at(state)) }
    }

    /// Refunds only the last grant: the next ones were promised to wait for it.
    fn give_back(&self, state: &mut Pace, now: Timestamp, receipt: Receipt) -> Adjusted {
        let reckoning = self.reckon(state, now);
        if self.clear_at(state) != receipt.clear_at || now >= receipt.clear_at || self.used_up(&reckoning) {
            return Adjusted::Capped;
        }
        let (after, adjusted) = self.refund(reckoning, receipt.paid.get().into());
        state.0 = Some(after);
        adjusted
    }
}

impl DebtQueue for PacerParams {
    /// Takes units off a grant. Its interval ends when the pacer is full again (see [`Decide::clear_at`]), because the
    /// savings that it took are part of its debt. A warming pacer refunds only the last grant, because its price
    /// depends on the grants before it.
    fn take_off(&self, state: &mut Pace, now: Timestamp, claim: &Claim, units: Cost) -> Option<TakenOff> {
        let (clear_at, reckoning) = (self.clear_at(state), self.reckon(state, now));
        let price = self.price_in_ticks(units).get();
        let (price_back, is_whole) = match self.savings {
            Savings::Steady { .. } => {
                let undelayed =
                    if self.pay == Pay::Next { self.interval.map_or(0, NonZeroU64::get) } else { 0 };
                let waiting = if reckoning.owed.get() > undelayed {
                    Waiting::Perhaps { acts_at_begin: self.pay == Pay::Next }
                } else {
                    Waiting::None
                };
                let back = still_owed(claim, clear_at, now, Ticks::new(price), waiting)?.get();
                (back, back == price)
            }
            Savings::WarmUp { .. } => {
                still_owed(claim, clear_at, now, Ticks::ZERO, Waiting::None)?;
                let is_last = matches!(claim, Claim::Queued { own, .. } if own.end == clear_at);
                if !is_last || now >= clear_at || self.used_up(&reckoning) {
                    return Some(TakenOff::NOTHING);
                }
                (price, true)
            }
        };
        let (after, adjusted) = self.refund(reckoning, price_back.into());
        if price_back > 0 {
            state.0 = Some(after);
        }
        let back = clear_at.since(self.clear_at(state));
        let is_whole = is_whole && adjusted == Adjusted::Whole;
        Some(TakenOff { back, adjusted: Adjusted::whole_if(is_whole) })
    }
}

impl Pace {
    pub(super) fn from_words(words: &[u64]) -> Option<Pace> {
        let [at, owed, saved, scale] = *words else { return None };
        let scale = NonZeroU64::new(scale)?;
        Some(Pace(Some(Reckoning { at: Timestamp::from_ticks(at), owed: Ticks::new(owed), saved, scale })))
    }

    /// Returns the words, or `None` for a key never seen.
    #[inline]
    pub(super) fn words(&self) -> Option<[u64; 4]> {
        self.0.map(|last| [last.at.ticks(), last.owed.get(), last.saved, last.scale.get()])
    }
}

impl Reckoning {
    /// Returns the time until the debt is repaid.
    fn wait(&self, now: Timestamp) -> Ticks {
        if self.owed == Ticks::ZERO { Ticks::ZERO } else { self.owed.saturating_add(self.at.since(now)) }
    }

    /// Returns the savings in other units. The idle time stays the same, whatever its value.
    fn saved_in(&self, scale: NonZeroU64) -> u64 {
        if self.scale == scale { self.saved } else { (self.saved / self.scale).saturating_mul(scale.get()) }
    }
}

/// Returns the area under the line: the time that it takes to spend `price` of the savings.
///
/// With Y the savings above the threshold, a permit costs `interval * (1 + (f - 1) Y / 4W)`; integrated from
/// Y1 down to Y0, and with the rest at the stable price, that is
/// `(8W * price + (f - 1)(Y1 + Y0)(Y1 - Y0)) / 16W(1 + f)`, rounded up to a tick.
fn warm_up_time(length: u128, cold_factor: u128, saved: u128, price: u128) -> Option<u128> {
    let threshold = length * (1 + cold_factor);
    let above = saved.saturating_sub(threshold);
    let slope = above.min(price);
    let dear = (cold_factor - 1) * (2 * above - slope) * slope;
    let area = price.checked_mul(8 * length)?.checked_add(dear)?;
    Some(area.div_ceil(16 * length * (1 + cold_factor)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Option<NonZeroU64> = NonZeroU64::new(1000);

    fn steady(pay: Pay) -> PacerParams {
        PacerParams::steady(INTERVAL, Ticks::new(5000), pay).unwrap()
    }

    fn patient(units: u64) -> Ask {
        Ask { cost: Cost::of(units), max_wait: Ticks::MAX }
    }

    #[test]
    fn a_debt_is_at_most_ten_years_and_ends_before_the_end_of_time() {
        let pacer = PacerParams::steady(NonZeroU64::new(Ticks::TEN_YEARS.get() / 10), Ticks::ZERO, Pay::Next)
            .unwrap();
        let mut state = Pace::default();
        assert!(pacer.decide(&mut state, Timestamp::EPOCH, patient(10)).is_allowed());
        let year = Ticks::new(Ticks::TEN_YEARS.get() / 10);
        let refused = pacer.decide(&mut state, Timestamp::EPOCH, patient(1));
        assert_eq!(refused.verdict_in_ticks(), Verdict::Denied { retry_after: year });
        assert_eq!(
            pacer.decide(&mut state, Timestamp::EPOCH, patient(11)).verdict_in_ticks(),
            Verdict::Impossible
        );

        let mut state = Pace::default();
        let near_the_end = Timestamp::from_ticks(u64::MAX - year.get());
        assert!(pacer.decide(&mut state, near_the_end, patient(1)).is_allowed());
        assert_eq!(
            pacer.decide(&mut state, near_the_end, patient(1)).verdict_in_ticks(),
            Verdict::Impossible
        );
    }

    #[test]
    fn a_charge_beyond_ten_years_is_capped_there() {
        let pacer = steady(Pay::Next);
        let mut state = Pace::default();
        let charge = |units: u64| Adjustment::Charge(Cost::of(units));
        let all = pacer.adjust(&mut Pace::default(), Timestamp::EPOCH, charge(u64::MAX));
        assert_eq!(all, Adjusted::Capped);
        assert_eq!(pacer.adjust(&mut state, Timestamp::EPOCH, charge(7)), Adjusted::Whole);
        assert_eq!(pacer.peek(&state, Timestamp::EPOCH, Ask::ONE).reset_after_in_ticks(), Ticks::new(7000));
        assert_eq!(pacer.adjust(&mut state, Timestamp::EPOCH, charge(u64::MAX)), Adjusted::Capped);
        assert_eq!(pacer.peek(&state, Timestamp::EPOCH, Ask::ONE).reset_after_in_ticks(), Ticks::TEN_YEARS);
    }

    #[test]
    fn a_rested_pacer_is_like_one_never_seen() {
        let pacer = steady(Pay::Next);
        let mut state = Pace::default();
        assert_eq!(pacer.clear_at(&state), Timestamp::EPOCH);
        let _ = pacer.decide(&mut state, Timestamp::from_ticks(1 << 40), patient(7));
        assert_eq!(pacer.clear_at(&state), Timestamp::from_ticks((1 << 40) + 2000 + 5000));
        let _ = pacer.decide(&mut state, Timestamp::EPOCH, patient(1));
        assert_eq!(pacer.clear_at(&state), Timestamp::from_ticks(3000 + 5000));

        let warming = PacerParams::warming_up(INTERVAL, Ticks::new(8000), 3, Pay::Next).unwrap();
        let mut state = Pace::default();
        let _ = warming.decide(&mut state, Timestamp::EPOCH, patient(1));
        let rested = warming.clear_at(&state);
        assert_eq!(warming.peek(&state, rested, Ask::ONE), warming.peek(&Pace::default(), rested, Ask::ONE));
        let earlier = Timestamp::from_ticks(rested.ticks() - 1);
        assert_ne!(
            warming.peek(&state, earlier, patient(9)),
            warming.peek(&Pace::default(), earlier, patient(9))
        );
    }

    #[test]
    fn a_warming_pacer_takes_back_saved_permits_at_their_price() {
        let warming = PacerParams::warming_up(INTERVAL, Ticks::new(8000), 3, Pay::Next).unwrap();
        let mut state = Pace::default();
        let cold = warming.peek(&state, Timestamp::EPOCH, Ask::ONE);
        let _ = warming.decide(&mut state, Timestamp::EPOCH, patient(2));
        let spent = warming.peek(&state, Timestamp::EPOCH, Ask::ONE);
        assert!(spent.reset_after_in_ticks() > Ticks::new(4000), "two cold permits cost more than 2 each");
        assert_eq!(
            warming.adjust(&mut state, Timestamp::EPOCH, Adjustment::Refund(Cost::of(2))),
            Adjusted::Whole
        );
        assert_eq!(warming.peek(&state, Timestamp::EPOCH, Ask::ONE), cold);
        assert_eq!(
            warming.adjust(&mut state, Timestamp::EPOCH, Adjustment::Refund(Cost::ONE)),
            Adjusted::Capped
        );
        assert_eq!(warming.peek(&state, Timestamp::EPOCH, Ask::ONE), cold);
    }

    #[test]
    fn a_warm_pacer_takes_back_fresh_permits_at_the_stable_price() {
        let warming = PacerParams::warming_up(INTERVAL, Ticks::new(8000), 3, Pay::Next).unwrap();
        let mut state = Pace::default();
        let _ = warming.decide(&mut state, Timestamp::EPOCH, patient(10));
        let owed =
            |state: &Pace| warming.peek(state, Timestamp::EPOCH, Ask::ONE).reset_after_in_ticks().get();
        let before = owed(&state);
        assert_eq!(
            warming.adjust(&mut state, Timestamp::EPOCH, Adjustment::Refund(Cost::of(2))),
            Adjusted::Whole
        );
        assert_eq!(owed(&state), before - 2000);
        assert_eq!(
            warming.adjust(&mut state, Timestamp::EPOCH, Adjustment::Refund(Cost::of(99))),
            Adjusted::Capped
        );
        assert_eq!(owed(&state), 0);
    }

    #[test]
    fn an_unlimited_pacer_has_nothing_to_count_and_nothing_to_give_back() {
        let pacer = PacerParams::steady(None, Ticks::new(5000), Pay::Own).unwrap();
        let mut state = Pace::default();
        let decision = pacer.decide(&mut state, Timestamp::EPOCH, Ask::new(Cost::of(u64::MAX)));
        assert_eq!(
            (decision.verdict_in_ticks(), decision.limit(), decision.remaining()),
            (Verdict::NOW, u64::MAX, u64::MAX)
        );
        assert_eq!(
            pacer.adjust(&mut state, Timestamp::EPOCH, Adjustment::Refund(Cost::ONE)),
            Adjusted::Whole
        );
    }

    #[test]
    fn a_pacer_that_pays_for_itself_reports_asks_that_no_wait_can_satisfy() {
        let pacer = steady(Pay::Own);
        let rested = Timestamp::from_ticks(1 << 40);
        let verdict = |units: u64, max_wait: u64| {
            let ask = Ask { cost: Cost::of(units), max_wait: Ticks::new(max_wait) };
            pacer.peek(&Pace::default(), rested, ask).verdict_in_ticks()
        };
        assert_eq!(verdict(5, 0), Verdict::NOW);
        assert_eq!(verdict(6, 999), Verdict::Impossible);
        assert_eq!(verdict(6, 1000), Verdict::Allowed { delay: Ticks::new(1000) });
    }

    #[test]
    fn savings_are_idle_time_in_every_mode() {
        let steady = steady(Pay::Next);
        let warming = PacerParams::warming_up(INTERVAL, Ticks::new(8000), 3, Pay::Next).unwrap();
        let mut state = Pace::default();
        let rested = Timestamp::from_ticks(1 << 40);
        let _ = warming.decide(&mut state, rested, patient(2));
        let saved = |pacer: &PacerParams, state: &Pace| pacer.peek(state, rested, Ask::ONE).remaining();
        assert_eq!((saved(&warming, &state), saved(&steady, &state)), (6, 5));
        let _ = steady.decide(&mut state, rested, patient(3));
        assert_eq!((saved(&steady, &state), saved(&warming, &state)), (2, 2));
    }

    #[test]
    fn readings_out_of_order_forgive_nothing() {
        let pacer = PacerParams::steady(NonZeroU64::new(16_000_000), Ticks::ZERO, Pay::Next).unwrap();
        let mut state = Pace::default();
        let now = 1 << 40;
        let mut passed = 0;
        for call in 0..2000_u64 {
            let stale = if call % 2 == 0 { 0 } else { OUT_OF_ORDER.get() };
            let ask = Ask::ONE;
            passed +=
                u64::from(pacer.decide(&mut state, Timestamp::from_ticks(now - stale), ask).is_allowed());
        }
        assert_eq!(passed, 1);
        let waits = [0, OUT_OF_ORDER.get(), 0].map(|stale| {
            let at = Timestamp::from_ticks(now - stale);
            pacer.decide(&mut state, at, patient(1)).delay().unwrap().as_millis()
        });
        assert_eq!(waits, [1, 102, 3], "a call with an older time waits from that time");
    }

    #[test]
    fn only_the_last_grant_comes_back() {
        let pacer = steady(Pay::Next);
        let at = Timestamp::from_ticks(100_000);
        let mut state = Pace::default();
        let grant = |state: &mut Pace| {
            let _ = pacer.decide(state, at, patient(7));
            pacer.receipt(state, at, Cost::of(7))
        };
        let rested = pacer.peek(&state, at, Ask::ONE);
        let (first, second) = (grant(&mut state), grant(&mut state));
        let owed = |state: &Pace| pacer.peek(state, at, Ask::ONE).reset_after_in_ticks().get();
        assert_eq!(pacer.give_back(&mut state, at, first), Adjusted::Capped);
        assert_eq!(owed(&state), 9000);
        assert_eq!(pacer.give_back(&mut state, at, second), Adjusted::Whole);
        assert_eq!(owed(&state), 2000);
        let mut alone = Pace::default();
        let only = grant(&mut alone);
        assert_eq!(pacer.give_back(&mut alone, at, only), Adjusted::Whole);
        assert_eq!(pacer.peek(&alone, at, Ask::ONE), rested);
        let late = grant(&mut alone);
        let then = pacer.clear_at(&alone);
        assert_eq!(pacer.give_back(&mut alone, then, late), Adjusted::Capped);
    }

    #[test]
    fn a_grant_of_more_than_ten_years_may_take_less_after_saving() {
        let year = Ticks::TEN_YEARS.get() / 10;
        let pacer = PacerParams::steady(NonZeroU64::new(year), Ticks::TEN_YEARS, Pay::Next).unwrap();
        let outcome =
            |units: u64| pacer.peek(&Pace::default(), Timestamp::EPOCH, patient(units)).verdict_in_ticks();
        assert_eq!(outcome(11), Verdict::Denied { retry_after: Ticks::new(year) });
        assert_eq!(outcome(20), Verdict::Denied { retry_after: Ticks::TEN_YEARS });
        assert_eq!(outcome(21), Verdict::Impossible);
    }

    #[test]
    fn a_grant_is_given_back_at_the_price_that_was_paid() {
        let (fast, slow) = (
            steady(Pay::Next),
            PacerParams::steady(NonZeroU64::new(10_000), Ticks::new(5000), Pay::Next).unwrap(),
        );
        let at = Timestamp::from_ticks(1 << 40);
        let mut state = Pace::default();
        let _ = fast.decide(&mut state, at, patient(20));
        let without = state;
        let _ = fast.decide(&mut state, at, patient(10));
        let receipt = fast.receipt(&state, at, Cost::of(10));
        assert_eq!(slow.give_back(&mut state, at, receipt), Adjusted::Whole);
        assert_eq!(slow.peek(&state, at, Ask::ONE), slow.peek(&without, at, Ask::ONE));

        let warming = PacerParams::warming_up(INTERVAL, Ticks::new(8000), 3, Pay::Next).unwrap();
        for (permits, comes_back) in [(3, Adjusted::Whole), (8, Adjusted::Capped)] {
            let mut state = Pace::default();
            let _ = warming.decide(&mut state, at, patient(permits));
            let receipt = warming.receipt(&state, at, Cost::of(permits));
            assert_eq!(warming.give_back(&mut state, at, receipt), comes_back, "{permits} permits");
        }
    }

    #[test]
    fn numbers_beyond_the_bounds_make_no_pacer() {
        let beyond = Ticks::new(Ticks::TEN_YEARS.get() + 1);
        assert_eq!(PacerParams::steady(INTERVAL, beyond, Pay::Next), Err(Problem::BurstTooLong));
        assert!(PacerParams::steady(INTERVAL, Ticks::TEN_YEARS, Pay::Next).is_ok());
        let warming = |length: u64, factor: u64| {
            PacerParams::warming_up(INTERVAL, Ticks::new(length), factor, Pay::Next)
        };
        assert_eq!(warming(0, 3), Err(Problem::WarmUpOutOfRange));
        assert!(warming(1, 1).is_ok() && warming(MAX_WARM_UP.get(), MAX_COLD_FACTOR).is_ok());
        assert_eq!(warming(MAX_WARM_UP.get() + 1, 3), Err(Problem::WarmUpOutOfRange));
        assert_eq!(
            (warming(1, 0), warming(1, 101)),
            (Err(Problem::ColdFactorOutOfRange), Err(Problem::ColdFactorOutOfRange))
        );
        let slowest =
            |ticks: u64| PacerParams::warming_up(NonZeroU64::new(ticks), Ticks::new(1), 3, Pay::Next);
        assert!(slowest(u64::MAX / 8).is_ok());
        assert_eq!(slowest(u64::MAX / 8 + 1), Err(Problem::TooSlowToWarmUp));
    }
}
