//! One rule: for whom it is, and what it says.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Algorithm, Ask, Cost, Limit, OnStoreFailure, State, Timestamp, WhenFull};

use crate::attributes::Attributes;
use crate::condition::{Condition, Reading};
use crate::index::RuleId;
use crate::key::{Grouping, KeyParts, OnMissing, OnRepeated};
use crate::schedule::Timetable;

/// Name, condition, and what is said to whom it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub(crate) name: Arc<str>,
    pub(crate) conditions: Box<[Condition]>,
    pub(crate) action: Action,
    pub(crate) mode: Mode,
}

/// What a rule does with those it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Always the same.
    Decide(Fixed),
    /// Counts them.
    Limit(Box<Limited>),
}

/// What is decided without counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// No limit applies.
    Allow,
    /// It may not happen at all.
    Deny,
}

/// Whether a rule is obeyed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// What it refuses does not happen.
    #[default]
    Enforce,
    /// It decides and counts, and refuses nobody.
    Shadow,
}

/// A rule that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limited {
    pub(crate) key: KeyParts,
    pub(crate) usual: Terms,
    pub(crate) schedule: Schedule,
    pub(crate) candidate_for: Option<RuleId>,
    /// The rules that would replace this one.
    pub(crate) candidates: Vec<RuleId>,
    pub(crate) on_store_failure: OnStoreFailure,
    pub(crate) when_full: WhenFull,
    pub(crate) zone: Option<Box<str>>,
    /// Parts of the key that somebody has checked before us.
    pub(crate) trusted: Box<[Box<str>]>,
}

/// What a rule says at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) limit: Limit,
    /// What each unit of a request's cost weighs under this rule.
    pub(crate) cost: u64,
    pub(crate) patience: Option<Duration>,
    pub(crate) mode: Mode,
}

/// Times at which a rule says something else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) timetable: Timetable,
    /// What is said in each window of the timetable.
    pub(crate) terms: Vec<Terms>,
}

/// What a rule says in one window of its schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduled<'a> {
    /// The window, as people read it.
    pub window: String,
    /// The limit.
    pub limit: &'a Limit,
    /// Whether it is obeyed.
    pub mode: Mode,
    /// What each unit of a request's cost weighs.
    pub cost: u64,
    /// The longest delay that it gives; none if whoever asks has to say.
    pub patience: Option<Duration>,
}

impl Rule {
    /// Its name, by which its counts are kept.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What has to hold for it to apply, all of it.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Whether it is obeyed, outside of its schedule.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What it always says, if it counts nothing.
    pub fn decision(&self) -> Option<Fixed> {
        match self.action {
            Action::Decide(fixed) => Some(fixed),
            Action::Limit(_) => None,
        }
    }

    /// The place in the file of the rule that it would replace, if it is a candidate.
    pub fn candidate_for(&self) -> Option<usize> {
        self.limited().and_then(|limited| limited.candidate_for).map(|base| base as usize)
    }

    /// The limit outside of its schedule, if it has one.
    pub fn limit(&self) -> Option<&Limit> {
        self.limited().map(|limited| &limited.usual.limit)
    }

    /// The attributes that its key is made of.
    pub fn key(&self) -> impl Iterator<Item = &str> {
        self.limited().into_iter().flat_map(|limited| limited.key.parts.iter().map(|part| &*part.name))
    }

    /// How many bits of an address tell who it is.
    pub fn grouping(&self) -> Grouping {
        self.limited().map_or_else(Grouping::default, |limited| limited.key.grouping)
    }

    /// What happens when a part of its key is missing.
    pub fn on_missing(&self) -> OnMissing {
        self.limited().map_or_else(OnMissing::default, |limited| limited.key.on_missing)
    }

    /// What happens when a request has several values of a part of its key.
    pub fn on_repeated(&self) -> OnRepeated {
        self.limited().map_or_else(OnRepeated::default, |limited| limited.key.on_repeated)
    }

    /// What happens when the store cannot answer.
    pub fn on_store_failure(&self) -> OnStoreFailure {
        self.limited().map_or_else(OnStoreFailure::default, |limited| limited.on_store_failure)
    }

    /// What becomes of its keys when a zone has no cell for them. A store without cells forgets no key.
    pub fn when_full(&self) -> WhenFull {
        self.limited().map_or_else(WhenFull::default, |limited| limited.when_full)
    }

    /// The zone that it names.
    pub fn zone(&self) -> Option<&str> {
        self.limited().and_then(|limited| limited.zone.as_deref())
    }

    /// What each unit of a request's cost weighs, outside of its schedule.
    pub fn cost(&self) -> u64 {
        self.limited().map_or(1, |limited| limited.usual.cost)
    }

    /// The longest delay that it gives, outside of its schedule; none if whoever asks has to say.
    pub fn patience(&self) -> Option<Duration> {
        self.limited().and_then(|limited| limited.usual.patience)
    }

    /// The windows of its schedule, and what it says in each.
    pub fn schedule(&self) -> impl Iterator<Item = Scheduled<'_>> {
        self.limited().into_iter().flat_map(|limited| {
            let windows = limited.schedule.timetable.windows().iter().zip(&limited.schedule.terms);
            windows.map(|(window, terms)| Scheduled {
                window: window.to_string(),
                limit: &terms.limit,
                mode: terms.mode,
                cost: terms.cost,
                patience: terms.patience,
            })
        })
    }

    /// In which spelling of a request its conditions have to hold. Nobody gets past a limit by one that something
    /// behind us reads otherwise, and nobody gets an exception by it.
    pub(crate) fn reading(&self) -> Reading {
        match self.action {
            Action::Decide(Fixed::Allow) => Reading::All,
            Action::Decide(Fixed::Deny) | Action::Limit(_) => Reading::Any,
        }
    }

    pub(crate) fn limited(&self) -> Option<&Limited> {
        match &self.action {
            Action::Limit(limited) => Some(limited),
            Action::Decide(_) => None,
        }
    }

    /// Whether everything that the other rule is for is also for this one.
    pub(crate) fn covers(&self, other: &Rule) -> bool {
        self.conditions.iter().all(|wide| other.conditions.iter().any(|narrow| wide.covers(narrow)))
    }
}

impl Limited {
    /// What holds now; the wall clock is read only if that matters. Also which window of the schedule it is.
    pub(crate) fn now(&self, wall: impl FnOnce() -> i64) -> (&Terms, Option<usize>) {
        if self.schedule.terms.is_empty() {
            return (&self.usual, None);
        }
        match self.schedule.timetable.at(wall()) {
            Some(window) => (&self.schedule.terms[window], Some(window)),
            None => (&self.usual, None),
        }
    }

    /// Whether it is enforced at any time; a candidate never is.
    pub(crate) fn is_always_enforced(&self) -> bool {
        self.candidate_for.is_none() && self.all_terms().all(|terms| terms.mode == Mode::Enforce)
    }

    /// All that it may say.
    pub(crate) fn all_terms(&self) -> impl Iterator<Item = &Terms> {
        [&self.usual].into_iter().chain(&self.schedule.terms)
    }
}

impl Terms {
    /// How much a request weighs under this limit, and how long it may be delayed: as long as the rule says, else the
    /// whole queue of a leaky bucket, else not at all; and never longer than whoever asks accepts.
    pub(crate) fn ask(&self, limit: &Limit, attributes: &Attributes<'_>) -> Ask {
        let queue = || (limit.algorithm() == Algorithm::LeakyBucket).then_some(Duration::MAX);
        let rule = self.patience.or_else(queue).unwrap_or_default();
        let cost = attributes.cost.get().saturating_mul(self.cost);
        let ask = Ask::new(Cost::new(cost).unwrap_or(Cost::ONE));
        ask.patience(attributes.patience.map_or(rule, |asked| rule.min(asked)))
    }

    /// The largest cost that can ever pass.
    pub(crate) fn capacity(&self) -> u64 {
        capacity(&self.limit)
    }
}

/// The limits that fit a cell of a zone, for where this one stands, which does not.
pub(crate) fn fitting_a_cell(limit: &Limit) -> &'static str {
    match limit.algorithm() {
        Algorithm::FixedWindow => {
            "a token-bucket, or a fixed-window that is aligned to the epoch, of at least 3ms and less than 16777216 units"
        }
        _ => "a token-bucket, leaky-bucket or fixed-window",
    }
}

/// The most that can pass at one instant.
pub(crate) fn capacity(limit: &Limit) -> u64 {
    match limit.algorithm() {
        // It grants any cost, and the next one pays.
        Algorithm::Pacer => u64::MAX,
        _ => limit.peek(&State::default(), Timestamp::EPOCH, Ask::ONE).limit(),
    }
}
