//! Penalties: a key that a limit denies too often is denied for a time.
//!
//! ```text
//!   after 3 denials within 1m, banned for 10m
//!
//!      x  -    -  -                                              x       x = allowed   - = denied by the limit
//!   ------+----+--+=====================================+--------+--> time
//!              1  2  3rd strike: the ban                the ban ends, and strikes begin anew
//! ```
//!
//! Strikes and the ban are states of their own, in namespaces of their own: `RULE!strikes` and `RULE!ban`. Both are
//! sliding logs, so the third strike within any minute counts, and a ban ends exactly when its one entry leaves its
//! period. They are stored, carried over, expired and reset as any other state.
//!
//! A take looks at the ban beside its limits: all of them have to allow. If the limit denies and no ban is in force,
//! the denial is a strike. The last one begins the ban, clears the strikes, and reports the end of the ban. A denial
//! during a ban is no strike, and neither is one because a store was full or down.

use std::fmt;
use std::time::Duration;

use super::{PreparedLimit, Subject};
use crate::algorithm::Algorithm;
use crate::ask::Ask;
use crate::decision::{Ban, Decision, Verdict};
use crate::decisions::Decisions;
use crate::limit::{Limit, LimitBuilder, LimitError};
use crate::time::Ticks;

/// The most denials after which a ban can begin.
const MOST_STRIKES: u64 = 1000;

/// A penalty of a limit, prepared once for all takes under it.
///
/// ```
/// use std::time::Duration;
/// use tidegate::{Ask, Key, Limit, Map, MINUTE, PreparedLimit, PreparedPenalty};
///
/// let (map, ana) = (Map::new(), Key::new("ana"));
/// let limit = PreparedLimit::of_rule("login", Limit::per_second(1));
/// let penalty = PreparedPenalty::of_rule("login", 2, MINUTE, 10 * MINUTE)?;
/// let asks = [(limit.subject(&ana).penalty(Some(&penalty)), Ask::ONE)];
/// assert!(map.take_all(&asks).is_allowed());
/// assert!(map.take_all(&asks).retry_after().is_some_and(|wait| wait <= Duration::from_secs(1)));
/// assert_eq!(map.take_all(&asks).retry_after(), Some(10 * MINUTE)); // the second denial within a minute
/// # Ok::<(), tidegate::PenaltyError>(())
/// ```
#[doc(alias = "fail2ban")]
#[doc(alias = "three strikes")]
#[doc(alias = "ban")]
#[derive(Clone, Debug)]
pub struct PreparedPenalty {
    pub(super) strikes: PreparedLimit,
    pub(super) ban: PreparedLimit,
}

/// The reason why a penalty is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PenaltyError {
    /// The number of denials is zero, or above 1,000.
    After(u64),
    /// The span within which denials count is invalid as the period of a limit.
    Within(LimitError),
    /// The span of the ban is invalid as the period of a limit.
    For(LimitError),
}

impl fmt::Display for PenaltyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PenaltyError::After(after) => {
                write!(out, "after {after}: is out of range; write 1 to {MOST_STRIKES} denials, such as 3")
            }
            PenaltyError::Within(error) => write!(out, "within: {error}"),
            PenaltyError::For(error) => write!(out, "for: {error}"),
        }
    }
}

impl std::error::Error for PenaltyError {}

impl PreparedPenalty {
    /// Prepares the penalty of a rule: a key that is denied `after` times within `within` is banned for `lasts`.
    ///
    /// # Errors
    /// [`PenaltyError`] if a number or a span is out of range.
    pub fn of_rule(
        rule: &str,
        after: u64,
        within: Duration,
        lasts: Duration,
    ) -> Result<PreparedPenalty, PenaltyError> {
        if !(1..=MOST_STRIKES).contains(&after) {
            return Err(PenaltyError::After(after));
        }
        let log = |amount, period| LimitBuilder::new(Algorithm::SlidingLog, amount, period).build();
        let strikes = log(after, within).map_err(PenaltyError::Within)?;
        let ban = log(1, lasts).map_err(PenaltyError::For)?;
        Ok(PreparedPenalty {
            strikes: PreparedLimit::of_rule(&format!("{rule}!strikes"), strikes),
            ban: PreparedLimit::of_rule(&format!("{rule}!ban"), ban),
        })
    }

    /// Returns the limits of the ban and of the strikes.
    pub fn limits(&self) -> [&Limit; 2] {
        [self.ban.limit(), self.strikes.limit()]
    }

    /// Returns true if the other penalty has the same numbers under the same rule.
    pub fn is_same(&self, other: &PreparedPenalty) -> bool {
        let same = |one: &PreparedLimit, other: &PreparedLimit| {
            one.limit() == other.limit() && one.namespace() == other.namespace()
        };
        same(&self.ban, &other.ban) && same(&self.strikes, &other.strikes)
    }
}

impl Subject<'_> {
    /// Combines the decision of the limit with peeks at the ban and at the strikes, as they were before the ask. Without
    /// a penalty it is the decision of the limit.
    ///
    /// It is for stores that take, or strike, in one step. The result is also that of a peek, which equals that of the
    /// next take.
    #[must_use]
    pub fn penalized(&self, own: Decision, ban: &Decision, strikes: &Decision) -> Decision {
        let Some(penalty) = self.penalty else { return own };
        if let Some(span) = in_force(ban) {
            return own.banned_for(span, Ban::InForce);
        }
        let is_last = !strikes.is_allowed() || strikes.remaining() <= 1;
        if is_strike(&own) && is_last { own.banned_for(penalty.lasts(), Ban::Begun) } else { own }
    }
}

impl PreparedPenalty {
    /// Returns the length of a ban that begins now.
    fn lasts(&self) -> Ticks {
        Ticks::saturating_from(self.ban.limit().period().unwrap_or_default())
    }
}

/// Returns the rest of a ban, if one is in force.
fn in_force(ban: &Decision) -> Option<Ticks> {
    match ban.verdict_in_ticks() {
        Verdict::Denied { retry_after } => Some(retry_after),
        // An entry at the end of time never leaves.
        Verdict::Impossible => Some(Ticks::MAX),
        Verdict::Allowed { .. } => None,
    }
}

/// Returns true if a decision is a denial by the limit itself, and not by a store without room.
fn is_strike(own: &Decision) -> bool {
    !own.is_allowed() && !own.is_store_full()
}

/// The calls of a store in memory that strikes need.
pub(super) trait Strike {
    /// Decides, and spends if allowed.
    fn spend(&self, subject: Subject<'_>) -> Decision;

    /// Decides, and spends nothing.
    fn look(&self, subject: Subject<'_>) -> Decision;

    /// Removes the states of a key under this limit and under those before it, which would be carried over again.
    fn forget(&self, subject: Subject<'_>);
}

/// Adds bans to the decisions of a take, and strikes where a limit denied. The decisions about the bans, in the order
/// of the asks that have one, follow those about the asks.
pub(super) fn settle(asks: &[(Subject<'_>, Ask)], mut taken: Decisions, store: &impl Strike) -> Decisions {
    let bans = taken.split_off(asks.len());
    let mut bans = bans.iter();
    for (place, (subject, _)) in asks.iter().enumerate() {
        let Some([ban, strikes]) = subject.ban_and_strikes() else { continue };
        let (own, of_ban) = (taken.each()[place], bans.next().expect("every penalty has a peek at its ban"));
        let banned = match in_force(of_ban) {
            Some(span) => Some((span, Ban::InForce)),
            None if is_strike(&own) => strike(ban, strikes, store),
            None => None,
        };
        if let Some((span, ban)) = banned {
            taken.replace(place, own.banned_for(span, ban));
        }
    }
    taken
}

/// Records a strike. Returns the ban that is in force then, with its rest: the strike was the last one, or another thread
/// or an earlier ask of the request has begun the ban meanwhile.
fn strike(ban: Subject<'_>, strikes: Subject<'_>, store: &impl Strike) -> Option<(Ticks, Ban)> {
    let noted = store.spend(strikes);
    if noted.is_store_full() {
        // A store without room for the strike counts none, which its own counters report.
        return None;
    }
    let is_last = !noted.is_allowed() || noted.remaining() == 0;
    let decision = if is_last { store.spend(ban) } else { store.look(ban) };
    let banned = match in_force(&decision).filter(|_| !decision.is_store_full()) {
        Some(rest) => (rest, Ban::InForce),
        None if is_last && decision.is_allowed() => (decision.reset_after_in_ticks(), Ban::Begun),
        None => return None,
    };
    store.forget(strikes);
    Some(banned)
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Cost, Key, ManualClock, Map, SECOND, Store, Timestamp, Zone, Zones};

    /// Three denials within ten seconds, banned for a minute.
    fn penalty(rule: &str) -> PreparedPenalty {
        PreparedPenalty::of_rule(rule, 3, 10 * SECOND, 60 * SECOND).expect("a valid penalty")
    }

    fn limit(rule: &str, text: &str) -> PreparedLimit {
        PreparedLimit::of_rule(rule, text.parse().expect("a valid limit"))
    }

    /// Returns the stores in memory, each with its clock.
    fn stores() -> Vec<(Arc<ManualClock>, Arc<dyn Store>)> {
        let each = |make: fn(Arc<ManualClock>) -> Arc<dyn Store>| {
            let clock = Arc::new(ManualClock::new());
            (clock.clone(), make(clock))
        };
        vec![
            each(|clock| Arc::new(Map::with_clock(clock))),
            each(|clock| Arc::new(Zone::with_clock(1 << 16, clock))),
            each(|clock| Arc::new(Zones::new(&Zone::with_clock(1 << 16, clock)))),
        ]
    }

    fn take(store: &dyn Store, subject: Subject<'_>) -> Decision {
        store.take(&[(subject, Ask::ONE)]).now().expect("a store in memory").each()[0]
    }

    #[test]
    fn numbers_out_of_range_are_errors_that_name_the_field() {
        let of = |after, within, lasts| {
            PreparedPenalty::of_rule("a", after, within, lasts).map_err(|error| error.to_string())
        };
        assert_eq!(
            of(0, SECOND, SECOND).unwrap_err(),
            "after 0: is out of range; write 1 to 1000 denials, such as 3"
        );
        assert!(of(1001, SECOND, SECOND).is_err() && of(1000, SECOND, SECOND).is_ok());
        assert!(of(1, Duration::ZERO, SECOND).unwrap_err().starts_with("within: "));
        assert!(of(1, SECOND, Duration::MAX).unwrap_err().starts_with("for: "));
    }

    #[test]
    fn the_last_of_the_strikes_within_any_span_bans_and_the_ban_ends_to_the_tick() {
        for text in ["1/h", "1/h fixed-window align first-hit", "1/h sliding-log", "1/h concurrency"] {
            for (clock, store) in stores() {
                let (limit, penalty, ana) = (limit("login", text), penalty("login"), Key::new("ana"));
                let subject = limit.subject(&ana).penalty(Some(&penalty));
                assert!(take(&*store, subject).is_allowed());
                // Two denials, and a third after the first has left the span.
                for wait in [0, 4, 7] {
                    clock.advance(wait * SECOND);
                    assert_eq!(take(&*store, subject).ban(), None, "{text}");
                }
                let begun = take(&*store, subject);
                assert_eq!(begun.ban(), Some(Ban::Begun), "{text}");
                let wait = begun.retry_after().expect("it is denied");
                assert!(wait >= 60 * SECOND && begun.remaining() == 0, "{text}: {wait:?}");
                clock.advance(60 * SECOND - Duration::from_nanos(1));
                let last = store.peek(subject, Ask::ONE).now().unwrap();
                assert_eq!(last.ban(), Some(Ban::InForce), "{text}");
                clock.advance(Duration::from_nanos(1));
                let after = take(&*store, subject);
                assert!(!after.is_allowed() && after.ban().is_none(), "{text}: strikes begin anew");
            }
        }
    }

    #[test]
    fn a_banned_key_spends_nothing_of_any_limit() {
        for (_, store) in stores() {
            let (login, site, ana) = (limit("login", "1/h"), limit("site", "9/h"), Key::new("ana"));
            let penalty = penalty("login");
            let asks =
                [(login.subject(&ana).penalty(Some(&penalty)), Ask::ONE), (site.subject(&ana), Ask::ONE)];
            let bans: Vec<_> =
                (0..6).map(|_| store.take(&asks).now().expect("in memory").each()[0].ban()).collect();
            let (begun, in_force) = (Some(Ban::Begun), Some(Ban::InForce));
            assert_eq!(bans, [None, None, None, begun, in_force, in_force]);
            assert_eq!(store.peek(asks[1].0, Ask::ONE).now().unwrap().remaining(), 8);
            // The ban is that of one rule.
            assert!(store.take(&asks[1..]).now().unwrap().is_allowed());
        }
    }

    #[test]
    fn a_denial_by_another_limit_is_no_strike() {
        for (_, store) in stores() {
            let (login, site, ana) = (limit("login", "9/h"), limit("site", "1/h"), Key::new("ana"));
            let penalty = penalty("login");
            let asks =
                [(login.subject(&ana).penalty(Some(&penalty)), Ask::ONE), (site.subject(&ana), Ask::ONE)];
            let allowed = (0..9).filter(|_| store.take(&asks).now().unwrap().is_allowed()).count();
            assert_eq!((allowed, store.peek(asks[0].0, Ask::ONE).now().unwrap().remaining()), (1, 8));
            assert!(take(&*store, asks[0].0).is_allowed());
        }
    }

    #[test]
    fn a_peek_equals_the_next_take_also_where_that_begins_a_ban() {
        for (clock, store) in stores() {
            let (limit, penalty, ana) = (limit("login", "1/s"), penalty("login"), Key::new("ana"));
            let subject = limit.subject(&ana).penalty(Some(&penalty));
            for step in 0..60 {
                clock.advance(Duration::from_millis(step % 7 * 90));
                let seen = store.peek(subject, Ask::ONE).now().unwrap();
                let taken = take(&*store, subject);
                assert_eq!((seen.verdict_in_ticks(), seen.ban()), (taken.verdict_in_ticks(), taken.ban()));
            }
        }
    }

    #[test]
    fn a_reset_lifts_the_ban_and_forgets_the_strikes() {
        for (_, store) in stores() {
            let (limit, penalty, ana) = (limit("login", "1/h"), penalty("login"), Key::new("ana"));
            let subject = limit.subject(&ana).penalty(Some(&penalty));
            for strikes in [1, 2, 3, 5] {
                assert!(take(&*store, subject).is_allowed());
                let bans: Vec<_> = (0..strikes).map(|_| take(&*store, subject).ban()).collect();
                assert_eq!(bans[strikes - 1].is_some(), strikes >= 3);
                assert!(store.reset(subject).now().unwrap());
            }
            assert!(!store.reset(subject).now().unwrap(), "there is nothing left");
        }
    }

    #[test]
    fn changed_numbers_keep_strikes_and_the_beginning_of_a_ban() {
        for (clock, store) in stores() {
            let (limit, ana) = (limit("login", "1/h"), Key::new("ana"));
            let with = |after, lasts| {
                PreparedPenalty::of_rule("login", after, 10 * SECOND, SECOND * lasts).expect("a penalty")
            };
            let take = |penalty: &PreparedPenalty| take(&*store, limit.subject(&ana).penalty(Some(penalty)));
            let (three, two) = (with(3, 60), with(2, 60));
            assert!(take(&three).is_allowed() && take(&three).ban().is_none());
            clock.advance(SECOND);
            assert_eq!(take(&two).ban(), Some(Ban::Begun), "the first strike was under other numbers");
            clock.advance(20 * SECOND);
            let longer = take(&with(2, 90)).retry_after().expect("it is banned");
            assert!(longer > 40 * SECOND, "{longer:?}");
            clock.advance(40 * SECOND);
            assert_eq!(take(&with(2, 30)).ban(), None, "a shorter ban has ended by now");
        }
    }

    #[test]
    fn a_clock_that_steps_back_ends_no_ban_and_lengthens_none_beyond_its_span() {
        for (clock, store) in stores() {
            clock.set(Timestamp::after_epoch(100_000 * SECOND));
            let (limit, penalty, ana) = (limit("login", "1/h"), penalty("login"), Key::new("ana"));
            let subject = limit.subject(&ana).penalty(Some(&penalty));
            assert!((0..4).filter(|_| take(&*store, subject).is_allowed()).count() == 1);
            for back in [1, 50, 3600] {
                clock.set(Timestamp::after_epoch((100_000 - back) * SECOND));
                let denied = store.peek(subject, Ask::ONE).now().unwrap();
                assert_eq!(denied.ban(), Some(Ban::InForce));
            }
            // The denial writes the ban as of the new time, and the promised end is kept.
            let denied = take(&*store, subject);
            assert_eq!(denied.ban(), Some(Ban::InForce));
            clock.advance(60 * SECOND);
            assert_eq!(take(&*store, subject).ban(), None);
        }
    }

    #[test]
    fn tracked_takes_have_receipts_of_their_limits_alone() {
        for (_, store) in stores() {
            let (login, site, ana) = (limit("login", "2/h"), limit("site", "9/h"), Key::new("ana"));
            let penalty = penalty("login");
            let login = login.subject(&ana).penalty(Some(&penalty));
            let asks = [(login.tracked(), Ask::new(Cost::of(2))), (site.subject(&ana).tracked(), Ask::ONE)];
            let mut taken = store.take(&asks).now().unwrap();
            let mut receipts = taken.take_receipts();
            assert_eq!((taken.each().len(), receipts.len()), (2, 2));
            let first = receipts[0].as_mut().expect("a receipt");
            assert!(store.refund(login, first, Cost::of(1)).now().is_ok());
            assert!(take(&*store, login).is_allowed());
        }
    }

    #[test]
    fn a_map_without_room_for_strikes_bans_no_key() {
        let map = Map::new().max_keys(1);
        let (login, ana, penalty) = (limit("login", "1/h"), Key::new("ana"), penalty("login"));
        let subject = login.subject(&ana).penalty(Some(&penalty));
        assert!(take(&map, subject).is_allowed());
        for _ in 0..9 {
            let denied = take(&map, subject);
            assert!(!denied.is_allowed() && denied.ban().is_none() && !denied.is_store_full(), "{denied:?}");
        }
    }

    #[test]
    fn a_denial_by_a_full_map_is_no_strike_even_if_it_has_room_for_one() {
        let clock = Arc::new(ManualClock::new());
        let map = Map::with_clock(clock.clone()).max_bytes(1 << 18);
        let (login, ana, penalty) =
            (limit("login", "1000000/h sliding-log"), Key::new("ana"), penalty("login"));
        let subject = login.subject(&ana).penalty(Some(&penalty));
        // A log grows by doubling: there is room for other states when there is none for its next size.
        while take(&map, subject).is_allowed() {
            clock.advance(Duration::from_millis(1));
        }
        for _ in 0..9 {
            let denied = take(&map, subject);
            assert!(denied.is_store_full() && denied.ban().is_none(), "{denied:?}");
        }
        let other = limit("other", "1/h");
        assert!(take(&map, other.subject(&ana)).is_allowed());
    }
}
