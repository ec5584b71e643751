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
                write!(out, "after: {after} is out of range; write 1 to {MOST_STRIKES} denials, such as 3")
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

    /// Removes the state of a key under this limit.
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
            None if is_strike(&own) => strike(ban, strikes, store).map(|span| (span, Ban::Begun)),
            None => None,
        };
        if let Some((span, ban)) = banned {
            taken.replace(place, own.banned_for(span, ban));
        }
    }
    taken
}

/// Records a strike. Returns the length of the ban if it was the last one.
fn strike(ban: Subject<'_>, strikes: Subject<'_>, store: &impl Strike) -> Option<Ticks> {
    let noted = store.spend(strikes);
    // A store without room for the strike counts none, which its own counters report.
    let is_last = !noted.is_store_full() && (!noted.is_allowed() || noted.remaining() == 0);
    if !is_last {
        return None;
    }
    let begun = store.spend(ban);
    store.forget(strikes);
    match begun.verdict_in_ticks() {
        Verdict::Allowed { .. } => Some(begun.reset_after_in_ticks()),
        _ if begun.is_store_full() => None,
        // Another thread has begun it.
        _ => in_force(&begun),
    }
}
