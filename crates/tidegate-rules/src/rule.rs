//! One rule of a policy: its conditions and its action.
//!
//! Rules are created by the reader of a policy file or by [`Rule::builder`], and are immutable. A rule with a decision
//! allows or denies without counting. A rule with a limit counts by its key; its parameters may change by a schedule.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Algorithm, Ask, Cost, Limit, OnStoreFailure, State, Timestamp, WhenFull};

use crate::attributes::Attributes;
use crate::condition::{Condition, Spellings};
use crate::index::RuleId;
use crate::key::{Grouping, KeyParts, OnMissing, OnRepeated};
use crate::normalized::NormalizedRequest;
use crate::schedule::Timetable;

/// A rule: a name, its conditions, and the action for requests that match all of them.
///
/// Rules with the same [group](Rule::group) are tried in the order of the file, and the first that applies decides alone.
///
/// All numbers are those outside the schedule unless the name of a method says otherwise.
///
/// ```
/// use tidegate::rules::{Mode, Policy};
///
/// let policy = Policy::from_toml("[[rule]]\nname = 'api'\nkey = ['user']\nlimit = '10/s'\nmode = 'shadow'\n")?;
/// let rule = &policy.rules()[0];
/// assert_eq!((rule.name(), rule.mode(), rule.decision()), ("api", Mode::Shadow, None));
/// assert_eq!(rule.key().collect::<Vec<_>>(), ["user"]);
/// # Ok::<(), tidegate::rules::PolicyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub(crate) name: Arc<str>,
    pub(crate) conditions: Box<[Condition]>,
    /// The rule does not apply to requests that meet all of these, if there are any.
    pub(crate) unless: Box<[Condition]>,
    /// Attributes of the key and of conditions that were verified before the request reached Tidegate.
    pub(crate) trusted: Box<[Box<str>]>,
    pub(crate) action: Action,
    pub(crate) mode: Mode,
}

/// The number of a group in its policy.
pub(crate) type GroupId = u32;

/// A group of rules, of which at most one decides about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: Arc<str>,
    pub(crate) id: GroupId,
}

/// The action of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The same decision for every matching request, without counting.
    Decide(StaticVerdict),
    /// A limit that counts the matching requests.
    Limit(Box<Limited>),
}

/// A decision that a rule makes without counting.
///
/// Of the rules with a decision the first one in the file that applies decides, before any limit is evaluated. In
/// shadow mode a denial is only counted, and an exemption has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "allow list")]
#[doc(alias = "deny list")]
#[doc(alias = "blocklist")]
pub enum StaticVerdict {
    /// Allows the request; no limit applies.
    Allow,
    /// Denies the request.
    Deny,
}

/// The mode of a rule: enforced or shadow (dry run).
///
/// A shadow rule is evaluated only for requests that all enforced rules allow, as it would be if it were enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(alias = "dry run")]
#[doc(alias = "report only")]
pub enum Mode {
    /// A denial by the rule denies the request.
    #[default]
    Enforce,
    /// The rule decides and counts, but never denies a request.
    Shadow,
}

/// The parameters of a rule with a limit.
///
/// The limits, costs and modes of all times are in `usual` and `schedule`; the rest never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limited {
    pub(crate) key: KeyParts,
    pub(crate) usual: RuleParams,
    pub(crate) schedule: Schedule,
    pub(crate) limit_for: LimitFor,
    pub(crate) penalty: Option<Penalty>,
    pub(crate) candidate_for: Option<RuleId>,
    /// The candidates: rules in the policy that would replace this one.
    pub(crate) candidates: Vec<RuleId>,
    pub(crate) on_store_failure: OnStoreFailure,
    pub(crate) when_full: WhenFull,
    pub(crate) zone: Option<Box<str>>,
    pub(crate) group: Option<Group>,
}

/// The parameters of a rule at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuleParams {
    pub(crate) limit: Limit,
    /// The weight of each unit of a request's cost under this rule.
    pub(crate) cost: u64,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) mode: Mode,
}

/// The time windows in which a rule uses other parameters.
///
/// The first window that covers the current time is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) timetable: Timetable,
    /// The parameters of each window of the timetable.
    pub(crate) terms: Vec<RuleParams>,
}

/// The limits of single values of a key of one part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitFor {
    /// The values, in the spelling in which the rule counts.
    pub(crate) values: Vec<Box<str>>,
    /// The parameters of each: the limit, and the others of the rule outside its schedule.
    pub(crate) terms: Vec<RuleParams>,
}

/// The penalty of a rule: a key that it denies too often is denied for a time.
///
/// A denial by the rule's own limit is a strike. The strike after which `after` of them are `within` a span begins a ban
/// of that key under that rule. A denial during a ban is no strike, and neither is one because the store failed or was
/// full. A rule in shadow mode counts strikes and bans, and denies nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "fail2ban")]
#[doc(alias = "three strikes")]
pub struct Penalty {
    /// The number of denials that begin a ban.
    pub after: u64,
    /// The span within which they count.
    pub within: Duration,
    /// The length of the ban.
    pub lasts: Duration,
}

/// The parameters of a rule in one window of its schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scheduled<'a> {
    /// The window as human-readable text.
    pub window: String,
    /// The limit.
    pub limit: &'a Limit,
    /// The mode in this window.
    pub mode: Mode,
    /// The weight of each unit of a request's cost.
    pub cost: u64,
    /// The longest delay that the rule grants. `None` if the rule leaves the max wait to the caller.
    pub max_wait: Option<Duration>,
}

impl Rule {
    /// Returns the name of the rule. Counts are stored under this name.
    ///
    /// A rule that is renamed starts with full quotas.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the conditions. The rule applies if all of them match.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Returns the conditions of `unless`. The rule does not apply to a request that meets all of them, if there are
    /// any.
    #[doc(alias = "not")]
    #[doc(alias = "except")]
    pub fn unless(&self) -> &[Condition] {
        &self.unless
    }

    /// Returns the name of the group of the rule, if it is in one.
    ///
    /// Of the enforced members of a group the first in the file that applies is chosen, and the others do not apply.
    /// Members in shadow mode are measured whenever their own conditions match, and are never chosen.
    #[doc(alias = "first match")]
    pub fn group(&self) -> Option<&str> {
        self.limited().and_then(|limited| limited.group.as_ref()).map(|group| &*group.name)
    }

    /// Returns the mode outside the schedule.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the fixed decision, or `None` if the rule has a limit.
    pub fn decision(&self) -> Option<StaticVerdict> {
        match self.action {
            Action::Decide(fixed) => Some(fixed),
            Action::Limit(_) => None,
        }
    }

    /// Returns the index in the file of the rule that this candidate would replace, or `None` if it is no candidate.
    ///
    /// It is measured beside that rule, for requests that the rule decides, and denies no request.
    pub fn candidate_for(&self) -> Option<usize> {
        self.limited().and_then(|limited| limited.candidate_for).map(|base| base as usize)
    }

    /// Returns the limit outside the schedule, or `None` if the rule has no limit.
    pub fn limit(&self) -> Option<&Limit> {
        self.limited().map(|limited| &limited.usual.limit)
    }

    /// Returns the names of the attributes that form the key, in order.
    pub fn key(&self) -> impl Iterator<Item = &str> {
        self.limited().into_iter().flat_map(|limited| limited.key.parts.iter().map(|part| &*part.name))
    }

    /// Returns the prefix lengths by which addresses are grouped in the key.
    pub fn grouping(&self) -> Grouping {
        self.limited().map_or_else(Grouping::default, |limited| limited.key.grouping)
    }

    /// Returns the behavior for requests in which a part of the key is missing.
    pub fn on_missing(&self) -> OnMissing {
        self.limited().map_or_else(OnMissing::default, |limited| limited.key.on_missing)
    }

    /// Returns the behavior for requests that have several values for a part of the key.
    pub fn on_repeated(&self) -> OnRepeated {
        self.limited().map_or_else(OnRepeated::default, |limited| limited.key.on_repeated)
    }

    /// Returns the behavior while the store fails.
    pub fn on_store_failure(&self) -> OnStoreFailure {
        self.limited().map_or_else(OnStoreFailure::default, |limited| limited.on_store_failure)
    }

    /// Returns the behavior for keys that find no free cell in a zone. A store without cells forgets no key.
    pub fn when_full(&self) -> WhenFull {
        self.limited().map_or_else(WhenFull::default, |limited| limited.when_full)
    }

    /// Returns the name of the zone in the rule, if any.
    pub fn zone(&self) -> Option<&str> {
        self.limited().and_then(|limited| limited.zone.as_deref())
    }

    /// Returns the weight of each unit of a request's cost, outside the schedule; 1 for a rule without a limit.
    pub fn cost(&self) -> u64 {
        self.limited().map_or(1, |limited| limited.usual.cost)
    }

    /// Returns the longest delay that the rule grants outside its schedule. `None` leaves the max wait to the caller.
    pub fn max_wait(&self) -> Option<Duration> {
        self.limited().and_then(|limited| limited.usual.max_wait)
    }

    /// Returns the windows of the schedule with the parameters of each.
    pub fn schedule(&self) -> impl Iterator<Item = Scheduled<'_>> {
        self.limited().into_iter().flat_map(|limited| {
            let windows = limited.schedule.timetable.windows().iter().zip(&limited.schedule.terms);
            windows.map(|(window, terms)| Scheduled {
                window: window.to_string(),
                limit: &terms.limit,
                mode: terms.mode,
                cost: terms.cost,
                max_wait: terms.max_wait,
            })
        })
    }

    /// Returns the values of its key that have a limit of their own, in the spelling in which the rule counts.
    pub fn limit_for(&self) -> impl Iterator<Item = (&str, &Limit)> {
        self.limited().into_iter().flat_map(|limited| {
            let LimitFor { values, terms } = &limited.limit_for;
            values.iter().map(|value| &**value).zip(terms.iter().map(|terms| &terms.limit))
        })
    }

    /// Returns the penalty of the rule, if it has one.
    pub fn penalty(&self) -> Option<Penalty> {
        self.limited().and_then(|limited| limited.penalty)
    }

    /// Returns all limits of the rule: that outside its schedule, then those of the windows and of single values.
    pub fn limits(&self) -> impl Iterator<Item = &Limit> {
        self.limited().into_iter().flat_map(|limited| limited.all_terms().map(|terms| &terms.limit))
    }

    /// Returns which spellings of a request have to match the conditions. A limit or a denial applies if any spelling
    /// matches, so an ambiguous spelling cannot bypass it. An exemption requires all spellings to match.
    pub(crate) fn reading(&self) -> Spellings {
        match self.action {
            Action::Decide(StaticVerdict::Allow) => Spellings::All,
            Action::Decide(StaticVerdict::Deny) | Action::Limit(_) => Spellings::Any,
        }
    }

    /// Returns the number of the group of the rule, if it is in one.
    pub(crate) fn group_id(&self) -> Option<GroupId> {
        self.limited().and_then(|limited| limited.group.as_ref()).map(|group| group.id)
    }

    /// Returns true if the request meets all conditions of `unless`. An exception from a limit requires all spellings
    /// to match, and an exception from an exemption any.
    pub(crate) fn is_excepted(&self, seen: &NormalizedRequest<'_>) -> bool {
        let reading = self.reading().opposite();
        !self.unless.is_empty() && self.unless.iter().all(|condition| condition.holds(seen, reading))
    }

    /// Returns true if the rule applies whichever reading of the request is right. A limit that applies by one reading
    /// alone is no reason to leave another limit out, or to admit the request.
    pub(crate) fn is_certain(&self, seen: &NormalizedRequest<'_>) -> bool {
        let holds = |conditions: &[Condition], reading| {
            conditions.iter().all(|condition| condition.holds(seen, reading))
        };
        holds(&self.conditions, Spellings::All)
            && (self.unless.is_empty() || !holds(&self.unless, Spellings::Any))
    }

    /// Returns the parameters of a rule with a limit; `None` if it has a fixed decision.
    pub(crate) fn limited(&self) -> Option<&Limited> {
        match &self.action {
            Action::Limit(limited) => Some(limited),
            Action::Decide(_) => None,
        }
    }

    /// Returns true if it is certain that this rule applies to every request to which the other rule applies. Groups are
    /// not taken into account.
    pub(crate) fn covers(&self, other: &Rule) -> bool {
        let is_within = |wide: &[Condition], narrow: &[Condition]| {
            wide.iter().all(|wide| narrow.iter().any(|narrow| wide.covers(narrow)))
        };
        let excepts_no_more = || {
            let is_apart = |exception: &Condition| {
                other.conditions.iter().any(|condition| exception.is_apart_from(condition))
            };
            self.unless.is_empty()
                || (!other.unless.is_empty() && is_within(&other.unless, &self.unless))
                || self.unless.iter().any(is_apart)
        };
        is_within(&self.conditions, &other.conditions) && excepts_no_more()
    }

    /// Returns true if it is certain that `unless` excepts every request that `when` matches.
    pub(crate) fn excepts_all(&self) -> bool {
        let is_met =
            |exception: &Condition| self.conditions.iter().any(|condition| exception.covers(condition));
        !self.unless.is_empty() && self.unless.iter().all(is_met)
    }
}

impl Limited {
    /// Returns the parameters in force now, and the index of the schedule window, if any. Reads the wall clock only if
    /// the rule has a schedule.
    pub(crate) fn now(&self, wall: impl FnOnce() -> i64) -> (&RuleParams, Option<usize>) {
        if self.schedule.terms.is_empty() {
            return (&self.usual, None);
        }
        match self.schedule.timetable.at(wall()) {
            Some(window) => (&self.schedule.terms[window], Some(window)),
            None => (&self.usual, None),
        }
    }

    /// Returns true if the rule is enforced at all times. A candidate never is.
    pub(crate) fn is_always_enforced(&self) -> bool {
        self.candidate_for.is_none() && self.all_terms().all(|terms| terms.mode == Mode::Enforce)
    }

    /// Returns every limit of which a store holds states: those of all parameters, and those of the penalty.
    pub(crate) fn stored_limits(&self) -> impl Iterator<Item = Limit> {
        let penalty = self.penalty.and_then(|penalty| penalty.prepare("").ok());
        let of_penalty = penalty.map(|penalty| penalty.limits().map(|limit| *limit));
        self.all_terms().map(|terms| terms.limit).chain(of_penalty.into_iter().flatten())
    }

    /// Returns the parameters outside the schedule, then those of each window, then those of each single value.
    pub(crate) fn all_terms(&self) -> impl Iterator<Item = &RuleParams> {
        [&self.usual].into_iter().chain(&self.schedule.terms).chain(&self.limit_for.terms)
    }
}

impl RuleParams {
    /// Returns the ask of a request under this limit: its weighted cost and its max wait. The rule's max wait comes
    /// first, then the whole queue of a leaky bucket, then no delay. The max wait of the caller is an upper bound.
    pub(crate) fn ask(&self, limit: &Limit, attributes: &Attributes<'_>) -> Ask {
        let queue = || (limit.algorithm() == Algorithm::LeakyBucket).then_some(Duration::MAX);
        let rule = self.max_wait.or_else(queue).unwrap_or_default();
        let cost = attributes.cost.get().saturating_mul(self.cost);
        let ask = Ask::new(Cost::new(cost).unwrap_or(Cost::ONE));
        ask.max_wait(attributes.max_wait.map_or(rule, |asked| rule.min(asked)))
    }

    /// Returns the largest cost that the limit can ever allow.
    pub(crate) fn capacity(&self) -> u64 {
        capacity(&self.limit)
    }
}

/// Describes the limits that fit a cell of a zone, for an error about this limit, which does not fit.
pub(crate) fn fitting_a_cell(limit: &Limit) -> &'static str {
    match limit.algorithm() {
        Algorithm::FixedWindow => {
            "a token-bucket, or a fixed-window that is aligned to the epoch, of at least 3ms and less than 16777216 units"
        }
        Algorithm::Calendar => "a token-bucket, or a calendar of less than 8388608 units",
        _ => "a token-bucket, leaky-bucket or fixed-window",
    }
}

/// Returns the largest cost that the limit can allow at one instant.
pub(crate) fn capacity(limit: &Limit) -> u64 {
    match limit.algorithm() {
        // A pacer allows any cost; the next request is delayed for it.
        Algorithm::Pacer => u64::MAX,
        _ => limit.peek(&State::default(), Timestamp::EPOCH, Ask::ONE).limit(),
    }
}
