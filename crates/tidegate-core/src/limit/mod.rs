//! Limits: an algorithm and its numbers, valid by construction.

mod accessors;
mod builder;
mod display;
mod params;
mod problem;
mod rate;
mod share;
mod text;
mod worst_case;

pub use builder::{Alignment, DelayAfter, LimitBuilder, Pay, WindowMode};
pub(crate) use params::AlgorithmParams;
pub use problem::LimitError;
pub(crate) use problem::Problem;
pub use rate::Rate;
pub use text::{TIME_UNITS, distance, parse_span};
pub use worst_case::WorstCase;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::time::Duration;

use crate::algorithm::carry::carry;
use crate::algorithm::debt::Metered as _;
use crate::algorithm::{Algorithm, State};
use crate::algorithm::{
    Calendar, Concurrency, FixedWindow, LeakyBucket, PacerParams, SlidingLog, SlidingWindow, TokenBucket,
};
use crate::ask::{Adjusted, Adjustment, Ask};
use crate::decision::{Decision, PermitId};
use crate::receipt::Receipt;
use crate::time::{CalendarPeriods, TimeZone, Timestamp};

/// An algorithm and its numbers.
///
/// There are three ways to construct one, for three kinds of numbers:
///
/// ```
/// use tidegate::{Algorithm, LimitBuilder, Limit, SECOND};
///
/// // A literal: a bad one in a constant does not compile.
/// const API: Limit = Limit::per_second(10).burst(20);
///
/// // Text from outside (see below): the error points at the character and gives a remedy.
/// let text: Limit = "10/s burst 20".parse()?;
/// assert_eq!(text, API);
/// let error = "60/min".parse::<Limit>().unwrap_err();
/// assert_eq!(error.to_string(), r#"limit "60/min": unknown unit "min"; write "60/m" or "60/60s""#);
///
/// // Numbers from outside: a draft, and an error if it is invalid.
/// let numbers = LimitBuilder::new(Algorithm::TokenBucket, 10, SECOND).burst(20).build()?;
/// assert_eq!(numbers, API);
/// # Ok::<(), tidegate::LimitError>(())
/// ```
///
/// A limit is a small `Copy` value without state: share it freely, and give each key its own [`State`] or use a
/// [`Limiter`](crate::Limiter).
///
/// # Text of a limit
///
/// ```text
/// RATE [burst N] [queue N] [delay-after N|all] [slots N] [mode strict|estimate] [align epoch|first-hit]
///      [warm-up TIME] [cold-factor N] [pay next|self] [max-debt N] [count-denied] [ALGORITHM]
/// AMOUNT/hour|day|week|month|year calendar [ZONE] [from DAY] [max-debt N]
/// ```
///
/// `RATE` comes first. The other words follow in any order, each at most once, separated by white space.
///
/// - `RATE` is an amount per period: `10/s`, `30/60s`, `1/1m30s`. For `concurrency` it is the maximum in flight per
///   lease. `unlimited` is the rate of a pacer for which no request waits.
/// - A period, and every other `TIME`, consists of numbers with units, which are added: `90s` or `1m30s`. The units are
///   `us`, `ms`, `s`, `m` (minute), `h`, `d` and `w`. In a rate, a unit alone means one of it.
/// - All numbers are whole and written in digits.
/// - Without an algorithm, the limit is a `token-bucket`.
/// - A `calendar` counts per hour, day, week, month or year of the wall clock of a `ZONE`; of UTC without one. `DAY` is
///   the first day: of a week its name, of a month its number, of a year month and day, as in `from 04-06`. Months that
///   are too short begin with their last day.
///
/// | algorithm | example | meaning |
/// |---|---|---|
/// | `token-bucket` | `10/s burst 20` | 10 per second; from rest, 20 at one instant |
/// | `leaky-bucket` | `100/s queue 50 leaky-bucket` | one every 10 ms; up to 50 wait |
/// | `fixed-window` | `1000/d fixed-window` | 1000 in each window of a day |
/// | `sliding-log` | `5/60s sliding-log` | 5 in any 60 seconds, exactly |
/// | `sliding-window` | `1000000/60s sliding-window` | 1,000,000 in any 60 seconds, in constant memory |
/// | `pacer` | `2/s warm-up 4s pacer` | one every 500 ms; slower after idle time, for a warm-up of 4 seconds |
/// | `concurrency` | `8/30s concurrency` | 8 in flight, each for at most 30 seconds |
/// | `calendar` | `1000/month calendar from 15` | 1000 from each 15th to the next, in UTC |
///
/// | option | algorithms | default | sets |
/// |---|---|---|---|
/// | `burst N` | token-bucket | the amount of the rate | the units that pass at one instant from rest |
/// | `burst N`, `burst TIME` | pacer without `warm-up` | `1s` | the savings, as permits or as idle time; `0s`: none |
/// | `queue N` | leaky-bucket | 0 | the units that may wait |
/// | `delay-after N`, `delay-after all` | leaky-bucket | 0 | the units that pass before it delays |
/// | `slots N` | sliding-window, `mode strict` | 16 | the slots per period, 1 to 1,024 |
/// | `mode strict`, `mode estimate` | sliding-window | `strict` | the [counting](WindowMode) of the oldest slot |
/// | `align epoch`, `align first-hit` | fixed-window | `epoch` | the [start](Alignment) of windows |
/// | `warm-up TIME` | pacer | none | the length of the warm-up |
/// | `cold-factor N` | pacer with `warm-up` | 3 | the factor by which a cold pacer is slower, 1 to 100 |
/// | `pay next`, `pay self` | pacer | `next` | the request that [waits](Pay) for the cost of a grant |
/// | `max-debt N` | token-bucket | the burst | the largest debt of late charges, in units |
/// | `max-debt N` | leaky-bucket | the queue + 1 | the same |
/// | `max-debt N` | fixed-window, sliding-window, calendar | the amount of the rate | the same |
/// | `from DAY` | calendar per week, month or year | `monday`, `1`, `01-01` | the first day of a period |
/// | `count-denied` | sliding-log | off | the counting of denials |
///
/// `Display` prints the canonical text, which parses to the same limit. It prints the options that were given, in the
/// order above, also if they have the value of the default. It prints each time in the largest unit that divides it,
/// and omits `token-bucket`, the zone `UTC` and the usual first day of a calendar. `FromStr` and `TryFrom` parse the text; so do functions such as
/// [`Limiter::try_new`](crate::Limiter::try_new).
///
/// ```
/// use tidegate::{Algorithm, Limit};
///
/// for (text, algorithm, canonical) in [
///     ("10/s burst 20", Algorithm::TokenBucket, "10/s burst 20"),
///     ("30/60s", Algorithm::TokenBucket, "30/m"),
///     ("100/s leaky-bucket queue 50", Algorithm::LeakyBucket, "100/s queue 50 leaky-bucket"),
///     ("1000/24h fixed-window", Algorithm::FixedWindow, "1000/d fixed-window"),
///     ("5/1m30s sliding-log", Algorithm::SlidingLog, "5/90s sliding-log"),
///     ("1000000/60s sliding-window", Algorithm::SlidingWindow, "1000000/m sliding-window"),
///     ("2/s warm-up 4000ms pacer", Algorithm::Pacer, "2/s warm-up 4s pacer"),
///     ("8/30s concurrency", Algorithm::Concurrency, "8/30s concurrency"),
///     ("9/week calendar from Sun", Algorithm::Calendar, "9/week calendar from sunday"),
/// ] {
///     let limit: Limit = text.parse()?;
///     assert_eq!((limit.algorithm(), limit.to_string().as_str()), (algorithm, canonical));
///     assert_eq!(canonical.parse(), Ok(limit));
/// }
/// # Ok::<(), tidegate::LimitError>(())
/// ```
///
/// A [`LimitError`] contains the place, the fault and a remedy. With `{:#}` it prints carets under the place:
///
/// ```
/// let error = "10/s busrt 20".parse::<tidegate::Limit>().unwrap_err();
/// let printed = r#"
/// limit "10/s busrt 20": unknown word "busrt"; did you mean "burst"?
///   10/s busrt 20
///        ^^^^^
/// "#;
/// assert_eq!(format!("{error:#}"), printed.trim());
/// ```
#[doc(alias("rate limit", "quota", "policy", "GCRA", "token bucket"))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    terms: AlgorithmParams,
    draft: LimitBuilder,
}

// The draft determines the terms, so only the draft is hashed.
impl Hash for Limit {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.draft.hash(hasher);
    }
}

/// Constructors of limits from literals. Each one panics on invalid numbers, which in a constant is a compile error.
/// For runtime numbers, use [`LimitBuilder`].
///
/// ```compile_fail
/// const MISPLACED: tidegate::Limit = tidegate::Limit::per_second(10).queue(5);
/// # let _ = MISPLACED;
/// ```
/// ```compile_fail
/// const NOTHING: tidegate::Limit = tidegate::Limit::per_second(0);
/// # let _ = NOTHING;
/// ```
impl Limit {
    /// Creates a token bucket of so many per second.
    #[doc(alias("rps", "qps", "requests per second"))]
    pub const fn per_second(amount: u64) -> Limit {
        Limit::token_bucket(amount, Duration::from_secs(1))
    }

    /// Creates a token bucket of so many per minute.
    #[doc(alias("rpm"))]
    pub const fn per_minute(amount: u64) -> Limit {
        Limit::token_bucket(amount, Duration::from_secs(60))
    }

    /// Creates a token bucket of so many per hour.
    pub const fn per_hour(amount: u64) -> Limit {
        Limit::token_bucket(amount, Duration::from_secs(3600))
    }

    /// Creates a token bucket of so many per day.
    pub const fn per_day(amount: u64) -> Limit {
        Limit::token_bucket(amount, Duration::from_secs(24 * 3600))
    }

    /// Creates a token bucket: bursts from saved tokens, then the rate. The burst is the amount unless set.
    #[doc(alias("GCRA", "leaky bucket as a meter"))]
    pub const fn token_bucket(amount: u64, period: Duration) -> Limit {
        LimitBuilder::new(Algorithm::TokenBucket, amount, period).literal()
    }

    /// Creates a leaky bucket: a queue that drains at the rate. Its length is 0 unless set.
    ///
    /// An ask that would be delayed for longer than its max wait (0 unless set) is denied, and so is one whose cost has
    /// no room in the queue. `retry_after` is then the time until there is room and the delay is short enough. A
    /// [`Shaper`](crate::Shaper) queues callers instead.
    ///
    /// For the leaky bucket as a meter, which never delays, use [`Limit::token_bucket`] or [`DelayAfter::All`].
    #[doc(alias("traffic shaping", "limit_req"))]
    pub const fn leaky_bucket(amount: u64, period: Duration) -> Limit {
        LimitBuilder::new(Algorithm::LeakyBucket, amount, period).literal()
    }

    /// Creates a fixed window: a counter per window of this length.
    ///
    /// Up to twice the amount can pass within one period, around a boundary.
    #[doc(alias("window counter"))]
    pub const fn fixed_window(amount: u64, period: Duration) -> Limit {
        LimitBuilder::new(Algorithm::FixedWindow, amount, period).literal()
    }

    /// Creates a sliding log: every trailing period, exactly, with an entry for each action.
    ///
    /// The log of a key takes 16 bytes per action. For large amounts, use [`Limit::sliding_window`].
    ///
    /// A `Duration` cannot be multiplied in a constant: use [`MINUTE`](crate::MINUTE) and the like alone, or a
    /// constructor of `Duration`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{Limit, MINUTE};
    ///
    /// const LOGIN: Limit = Limit::sliding_log(5, MINUTE);
    /// const RESET: Limit = Limit::sliding_log(5, Duration::from_secs(10 * 60)); // `10 * MINUTE` does not compile here
    /// assert_eq!(Limit::sliding_log(5, 10 * MINUTE), RESET);
    /// assert_eq!("5/10m sliding-log".parse(), Ok(RESET));
    /// # let _ = LOGIN;
    /// ```
    pub const fn sliding_log(amount: u64, period: Duration) -> Limit {
        LimitBuilder::new(Algorithm::SlidingLog, amount, period).literal()
    }

    /// Creates a sliding window: every trailing period, in constant memory.
    ///
    /// It denies too long by at most one slot, a sixteenth of the period unless [`Limit::slots`] sets another number.
    #[doc(alias("sliding window counter"))]
    pub const fn sliding_window(amount: u64, period: Duration) -> Limit {
        LimitBuilder::new(Algorithm::SlidingWindow, amount, period).literal()
    }

    /// Creates a pacer: permits spaced out at this rate, as in Guava's `RateLimiter`.
    ///
    /// It saves up to one second of idle time, after which it grants a burst; see [`Pacer`](crate::Pacer).
    /// [`Limit::burst_span`] sets another span, and zero saves nothing.
    #[doc(alias("Guava", "SmoothBursty"))]
    pub const fn pacer(amount: u64, period: Duration) -> Limit {
        LimitBuilder::new(Algorithm::Pacer, amount, period).literal()
    }

    /// Creates a calendar limit: a counter per hour, day, week, month or year of a time zone's wall clock.
    ///
    /// Up to twice the amount can pass around a boundary. A text with the name of a zone needs a database of time zones:
    /// see [`Limit::parse_with`].
    ///
    /// ```
    /// use tidegate::{CalendarPeriods, CalendarUnit, Limit};
    ///
    /// const QUOTA: Limit = Limit::calendar(10_000, CalendarPeriods::new(CalendarUnit::Month));
    /// assert_eq!("10000/month calendar".parse(), Ok(QUOTA));
    /// ```
    #[doc(alias("quota", "billing period", "midnight"))]
    pub const fn calendar(amount: u64, periods: CalendarPeriods) -> Limit {
        LimitBuilder::calendar(amount, periods).literal()
    }

    /// Creates a concurrency limit: a maximum number in flight, each for at most this lease.
    #[doc(alias("semaphore", "bulkhead", "max in flight"))]
    pub const fn concurrency(max: u64, lease: Duration) -> Limit {
        LimitBuilder::new(Algorithm::Concurrency, max, lease).literal()
    }
}

impl Limit {
    /// Parses the [text of a limit](Limit#text-of-a-limit) as `FromStr` does, with the time zones that `time_zone`
    /// finds by name. Its error follows the name in the message: `is no time zone; write "Europe/Berlin"`.
    ///
    /// This library has no database of time zones: `FromStr` knows UTC, and the zones that [`TimeZone::new`] has created.
    /// `tidegate_rules::parse_limit` (`tidegate::rules::parse_limit` with the feature `rules`) knows all.
    ///
    /// ```
    /// use tidegate::{Limit, TimeZone};
    ///
    /// let fixed = |name: &str| match name {
    ///     "Asia/Kolkata" => Ok(TimeZone::new(name, 19_800, []).expect("offsets of less than a day")),
    ///     _ => Err("is no time zone here; write \"Asia/Kolkata\"".to_owned()),
    /// };
    /// let limit = Limit::parse_with("1000/day calendar Asia/Kolkata", fixed)?;
    /// assert_eq!(limit.to_string(), "1000/day calendar Asia/Kolkata");
    /// # Ok::<(), tidegate::LimitError>(())
    /// ```
    pub fn parse_with(
        text: &str,
        time_zone: impl Fn(&str) -> Result<TimeZone, String>,
    ) -> Result<Limit, LimitError> {
        text::parse(text, |reader| reader.limit(&time_zone))
    }

    /// Returns the periods of a calendar limit. `None` for other algorithms.
    pub const fn periods(&self) -> Option<CalendarPeriods> {
        match self.draft.rate {
            builder::WrittenRate::Calendar { periods, .. } => Some(periods),
            _ => None,
        }
    }
}

/// Decisions, for stores and callers that keep the states themselves.
impl Limit {
    /// Returns the algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.draft.algorithm()
    }

    /// Returns the draft of this limit, to be changed and built again.
    pub const fn draft(&self) -> LimitBuilder {
        self.draft
    }

    /// Returns true if denials are counted like allowed asks. Then a denial changes the state too.
    pub const fn counts_denied(&self) -> bool {
        self.draft.count_denied
    }

    /// Returns the time in which a key that has used everything regains all of it. That is the time of the whole burst
    /// or queue, a period (a sliding window may take a slot longer), a lease, or the time that fills the savings of a
    /// pacer. A month counts as 31 days, a year as 366.
    ///
    /// ```
    /// use tidegate::{Limit, SECOND};
    ///
    /// assert_eq!(Limit::per_second(10).burst(20).time_to_full(), 2 * SECOND);
    /// ```
    pub fn time_to_full(&self) -> Duration {
        match (&self.terms, self.draft.rate) {
            (AlgorithmParams::TokenBucket(bucket), _) => bucket.debt().capacity().to_duration(),
            (AlgorithmParams::LeakyBucket(bucket), _) => bucket.debt().capacity().to_duration(),
            (AlgorithmParams::Pacer(pacer), _) => pacer.memory().to_duration(),
            (_, builder::WrittenRate::Per { period, .. }) => period,
            (_, builder::WrittenRate::Calendar { periods, .. }) => periods.nominal().to_duration(),
            // Only a pacer can be unlimited.
            (_, builder::WrittenRate::Unlimited) => Duration::ZERO,
        }
    }

    /// Decides about one ask of one key, and spends the cost if the ask is allowed.
    #[must_use = "a decision that is not read limits nothing"]
    #[inline]
    pub fn decide(&self, state: &mut State, now: Timestamp, ask: Ask) -> Decision {
        self.terms.decide(state, now, ask, 0)
    }

    /// Decides like [`Limit::decide`]. The number of a permit also depends on this nonce.
    ///
    /// A permit is as hard to guess as its nonce: pass 64 random bits, fresh for every ask. The stores do so. Without a
    /// nonce permits are numbered consecutively, and a holder can derive the next permit. The same state, time, ask and
    /// nonce yield the same permit.
    ///
    /// ```
    /// use tidegate::{Ask, Limit, SECOND, State, Timestamp};
    ///
    /// let (limit, now) = (Limit::concurrency(2, 30 * SECOND), Timestamp::EPOCH);
    /// let (mut tenant, mut replayed) = (State::default(), State::default());
    /// let nonce = 0x9e37_79b9_7f4a_7c15; // random in a program
    /// let permit = limit.decide_with_nonce(&mut tenant, now, Ask::ONE, nonce).permit();
    /// assert_eq!(limit.decide_with_nonce(&mut replayed, now, Ask::ONE, nonce).permit(), permit);
    /// assert_ne!(limit.decide_with_nonce(&mut tenant, now, Ask::ONE, nonce).permit(), permit);
    /// ```
    #[must_use = "a decision that is not read limits nothing"]
    pub fn decide_with_nonce(&self, state: &mut State, now: Timestamp, ask: Ask, nonce: u64) -> Decision {
        self.terms.decide(state, now, ask, nonce)
    }

    /// Returns the decision that [`Limit::decide`] would make, without spending.
    #[must_use = "a decision that is not read limits nothing"]
    pub fn peek(&self, state: &State, now: Timestamp, ask: Ask) -> Decision {
        self.terms.peek(state, now, ask)
    }

    /// Charges additional cost, or refunds unused cost. Amounts beyond the limit's bounds are capped.
    pub fn adjust(&self, state: &mut State, now: Timestamp, adjustment: Adjustment) -> Adjusted {
        self.terms.adjust(state, now, adjustment)
    }

    /// Returns the time from which the state equals that of a key never seen, and may be dropped.
    pub fn clear_at(&self, state: &State) -> Timestamp {
        self.terms.clear_at(state)
    }

    /// Returns the receipt of the take that produced this state, or `None` if the ask was denied.
    pub fn receipt(&self, state: &State, now: Timestamp, ask: Ask, decision: &Decision) -> Option<Receipt> {
        self.terms.receipt(state, now, ask, decision)
    }

    /// Refunds one take, as far as it is certainly still owed. Debt that time has repaid, or that later takes depend
    /// on, is not refunded.
    pub fn give_back(&self, state: &mut State, now: Timestamp, receipt: Receipt) -> Adjusted {
        self.terms.give_back(state, now, receipt)
    }

    /// Releases a permit. Returns true if it was still held.
    pub fn release(&self, state: &mut State, now: Timestamp, permit: PermitId) -> bool {
        self.terms.release(state, now, permit)
    }

    /// Restarts the lease of a permit. Returns true if it was still held; an ended lease stays ended.
    pub fn renew(&self, state: &mut State, now: Timestamp, permit: PermitId) -> bool {
        self.terms.renew(state, now, permit)
    }

    /// Returns the numbers that the limit decides by, for a store that decides outside this process. Spans are in
    /// ticks.
    ///
    /// | algorithm | numbers |
    /// |---|---|
    /// | token-bucket | burst, interval, capacity, max debt |
    /// | leaky-bucket | queue + 1, interval, capacity, max debt, the debt up to which requests are not delayed |
    /// | fixed-window | amount, period, 1 if windows open with the first hit, the largest count |
    /// | sliding-log | amount, period, 1 if denials count |
    /// | sliding-window | amount, length of a slot, slots, 1 for estimate, the largest count |
    /// | pacer | interval (0: unlimited), 1 if each grant pays for itself, the maximum savings, warm-up, cold factor (0: steady) |
    /// | concurrency | the maximum in flight, lease |
    /// | calendar | amount, unit and first day, the zone as a digest (0: UTC), the largest count |
    ///
    /// ```
    /// use tidegate::{Limit, SECOND, Ticks};
    ///
    /// let second = Ticks::saturating_from(SECOND).get();
    /// assert_eq!(Limit::per_second(10).burst(20).numbers(), [20, second / 10, 2 * second, 2 * second, 0]);
    /// ```
    pub fn numbers(&self) -> [u64; 5] {
        self.terms.numbers()
    }

    /// Returns the state with which a key starts under this limit when it replaces `old`, under which the key has
    /// `state`.
    ///
    /// The usage at `changed_at` is carried in units, rounded up, and clamped to the largest debt of this limit at that
    /// time. A raised limit makes its difference available at once; a lowered one denies for at most one full refill of
    /// its own. The old state is not modified. Nothing is carried between different algorithms. Holders of permits stay
    /// the same set across changes of the numbers.
    ///
    /// | algorithm | carried |
    /// |---|---|
    /// | token-bucket, leaky-bucket | the debt in units, a partly repaid unit as a whole one; the debt of takes up to the new burst or queue, the debt of late charges beyond it |
    /// | fixed-window | the count, in the new window that contains `changed_at`; a window of the first hit opens then |
    /// | calendar | the count, in the new period that contains `changed_at` |
    /// | sliding-log | the actions up to `changed_at` that the old limit still counts, at their own times; the newest, as many as the new limit allows |
    /// | sliding-window | the counts that the old limit still has, in the new slots in which the old ones ended |
    /// | pacer | the debt, as a time; the savings, as their share of the maximum. After an unlimited rate it is full, or warm |
    ///
    /// ```
    /// use tidegate::{Ask, Cost, Limit, State, Timestamp};
    ///
    /// let (old, new) = (Limit::per_hour(5), Limit::per_hour(100));
    /// let (mut state, now) = (State::default(), Timestamp::EPOCH);
    /// assert!(old.decide(&mut state, now, Ask::new(Cost::of(5))).is_allowed());
    /// let carried = new.carry(&old, &state, now);
    /// assert_eq!(new.peek(&carried, now, Ask::ONE).remaining(), 95);
    /// ```
    #[must_use]
    pub fn carry(&self, old: &Limit, state: &State, changed_at: Timestamp) -> State {
        carry(&old.terms, state, changed_at, &self.terms)
    }

    pub(crate) const fn terms(&self) -> &AlgorithmParams {
        &self.terms
    }
}

/// Converts a limit into the numbers of one algorithm, for code that keeps only states of that algorithm.
macro_rules! params_of_limit {
    ($($variant:ident: $terms:ident)+) => {$(
        impl TryFrom<Limit> for $terms {
            type Error = Limit;

            /// Fails with the unchanged limit if it is of another algorithm.
            fn try_from(limit: Limit) -> Result<$terms, Limit> {
                if let AlgorithmParams::$variant(terms) = limit.terms { Ok(terms) } else { Err(limit) }
            }
        }
    )+};
}

params_of_limit! {
    TokenBucket: TokenBucket
    LeakyBucket: LeakyBucket
    FixedWindow: FixedWindow
    SlidingLog: SlidingLog
    SlidingWindow: SlidingWindow
    Pacer: PacerParams
    Concurrency: Concurrency
    Calendar: Calendar
}

/// Parses the [text of a limit](Limit#text-of-a-limit); the reverse of its `Display`.
impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Limit, LimitError> {
        Limit::parse_with(text, text::created_zone)
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Limit({self})")
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::{Cost, MILLISECOND, SECOND};

    fn limit(text: &str) -> Limit {
        text.parse().expect(text)
    }

    #[test]
    fn a_fully_used_limit_is_full_after_time_to_full() {
        for (text, expected) in [
            ("30/60s", 60 * SECOND),
            ("30/60s burst 15", 30 * SECOND),
            ("10/s queue 9 leaky-bucket", SECOND),
            ("10/s leaky-bucket", 100 * MILLISECOND),
            ("7/60s fixed-window", 60 * SECOND),
            ("7/60s sliding-log", 60 * SECOND),
            ("7/60s sliding-window", 60 * SECOND),
            ("5/s pacer", SECOND),
            ("5/s pacer burst 3s", 3 * SECOND),
            ("5/s pacer burst 0s", Duration::ZERO),
            ("5/s pacer warm-up 4s", 4 * SECOND),
            ("unlimited pacer", SECOND),
            ("8/30s concurrency", 30 * SECOND),
            ("8/day calendar", 24 * 3600 * SECOND),
            ("8/month calendar from 15", 31 * 24 * 3600 * SECOND),
        ] {
            assert_eq!(limit(text).time_to_full(), expected, "{text}");
        }
    }

    #[test]
    fn it_is_the_reset_time_after_the_whole_limit_was_spent() {
        for text in ["30/60s burst 15", "3/s", "10/s queue 9 delay-after 9 leaky-bucket", "7/60s sliding-log"]
        {
            let limit = limit(text);
            let mut state = State::default();
            let all = Ask::new(Cost::of(limit.peek(&state, Timestamp::EPOCH, Ask::ONE).limit()));
            let all = Ask { max_wait: crate::Ticks::MAX, ..all };
            assert!(limit.decide(&mut state, Timestamp::EPOCH, all).is_allowed(), "{text}");
            assert_eq!(
                limit.peek(&state, Timestamp::EPOCH, all).reset_after(),
                limit.time_to_full(),
                "{text}"
            );
        }
    }
}
