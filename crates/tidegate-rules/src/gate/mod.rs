//! Asks a policy and a store about requests.
//!
//! ```text
//!   attributes -> rules that always say the same, in the order of the file
//!              -> rules that are obeyed, all or none
//!              -> if they allow: each shadow and each candidate by itself
//!                 if one refused alone: the candidates for that one
//! ```

mod admission;
mod calendar;
mod explain;
mod meter;
mod overrides;
mod overriding;
mod permits;
mod store;
mod together;
mod visit;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use tidegate::{Clock as _, CounterClock, Decision, Decisions, StoreError, Ticks, Verdict, Zone};

pub use admission::{Admission, Binding, HeldPermit};
pub use calendar::{Calendar, ManualCalendar, SystemCalendar};
pub use explain::{Explanation, Match, RuleExplained};
pub use meter::{RuleCounts, ShadowCounts};
pub use overrides::{Instead, MAX_OVERRIDES, Override, OverrideError};
pub use store::{GateStore, NoMemory};

use crate::attributes::Attributes;
use crate::policy::Policy;
use crate::rule::{Fixed, Mode, Rule};
use crate::top::{Heavy, Outcome as Asking, Top};
use admission::Outcome;
use meter::RuleMeter;
use overrides::Overrides;
use store::InStore;
use together::Together;
use visit::{Asked, Circumstances, Visit};

/// A policy in force on a store; clones share it.
///
/// ```
/// use tidegate::Zone;
/// use tidegate_rules::{Attributes, Gate, Policy};
///
/// let policy = Policy::from_toml("[[rule]]\nname = 'site'\nkey = ['user']\nlimit = '1/h'")?;
/// let gate = Gate::new(policy, Zone::new(1 << 20));
/// let ana = Attributes::new().set("user", "ana");
/// assert!(gate.admit_now(&ana).is_ok_and(|answer| answer.is_allowed()));
/// assert_eq!(gate.admit_now(&ana).map(|answer| answer.rule() == Some("site")).ok(), Some(true));
/// gate.replace(Policy::from_toml("[[rule]]\nname = 'site'\nkey = ['user']\nlimit = '2/h'")?)?; // counts stay
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Gate {
    inner: Arc<Inner>,
}

struct Inner {
    force: ArcSwap<InForce>,
    replacing: Mutex<()>,
    overrides: Overrides,
    calendar: Arc<dyn Calendar>,
    clock: CounterClock,
    top: Top,
    /// Requests to which no rule applied.
    free: AtomicU64,
}

/// A policy, where its counts are, and what was counted for each rule.
struct InForce {
    policy: Policy,
    store: InStore,
    meters: Box<[Arc<RuleMeter>]>,
}

/// A policy that can be put in force, with memory for all its zones.
#[derive(Debug)]
pub struct Prepared {
    gate: Gate,
    policy: Policy,
    store: InStore,
}

impl Prepared {
    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Puts it in force in place of whatever is by now.
    pub fn put_in_force(self) {
        self.gate.put_in_force(self.policy, &self.store);
    }
}

/// What is asked, and the date by which it is answered.
#[derive(Clone, Copy)]
struct Request<'a> {
    attributes: &'a Attributes<'a>,
    now: &'a (dyn Fn() -> i64 + Sync),
}

impl Gate {
    /// A policy in force on a store.
    ///
    /// # Panics
    /// If the system has no memory for a zone of the policy.
    pub fn new(policy: Policy, store: impl Into<GateStore>) -> Gate {
        Gate::with_calendar(policy, store, Arc::new(SystemCalendar))
    }

    /// The same with another calendar for schedules and overrides.
    ///
    /// # Panics
    /// If the system has no memory for a zone of the policy.
    pub fn with_calendar(policy: Policy, store: impl Into<GateStore>, calendar: Arc<dyn Calendar>) -> Gate {
        Gate::try_new(policy, store, calendar).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same, or an error if the system has no memory for a zone of the policy.
    pub fn try_new(
        policy: Policy,
        store: impl Into<GateStore>,
        calendar: Arc<dyn Calendar>,
    ) -> Result<Gate, NoMemory> {
        let store = InStore::new(&store.into(), &policy)?;
        let meters = policy.rules().iter().map(|_| Arc::default()).collect();
        let inner = Inner {
            force: ArcSwap::from_pointee(InForce { policy, store, meters }),
            replacing: Mutex::new(()),
            overrides: Overrides::default(),
            calendar,
            clock: CounterClock::new(),
            top: Top::new(),
            free: AtomicU64::new(0),
        };
        Ok(Gate { inner: Arc::new(inner) })
    }

    /// Puts another policy in force, whole: every request is decided by one or the other. Rules that keep their name
    /// and algorithm keep what their keys owe, and what was counted for them. If the system has no memory for one of
    /// its zones, the old one stays in force.
    pub fn replace(&self, policy: Policy) -> Result<(), NoMemory> {
        self.prepare(policy).map(Prepared::put_in_force)
    }

    /// The same in two steps: this one may fail and changes nothing, and putting it in force cannot fail.
    pub fn prepare(&self, policy: Policy) -> Result<Prepared, NoMemory> {
        let store = self.inner.force.load().store.under(&policy)?;
        Ok(Prepared { gate: self.clone(), policy, store })
    }

    fn put_in_force(&self, policy: Policy, store: &InStore) {
        let _alone = self.inner.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.inner.force.load();
        let known: std::collections::HashMap<_, _> =
            old.policy.rules().iter().map(Rule::name).zip(&old.meters).collect();
        let meters = policy
            .rules()
            .iter()
            .map(|rule| known.get(rule.name()).map_or_else(Arc::default, |meter| Arc::clone(meter)));
        let (meters, store) = (meters.collect(), old.store.going_on_as(store));
        self.inner.overrides.keep_those_of(&policy, self.inner.calendar.now());
        self.inner.force.store(Arc::new(InForce { policy, store, meters }));
    }

    /// Uses the policy in force.
    pub fn with_policy<T>(&self, use_it: impl FnOnce(&Policy) -> T) -> T {
        use_it(&self.inner.force.load().policy)
    }

    /// The zones that rules name, each with its name.
    pub fn zones(&self) -> Vec<(String, Zone)> {
        self.inner.force.load().store.zones()
    }

    /// Decides about a request, and spends if it is allowed.
    pub async fn admit(&self, attributes: &Attributes<'_>) -> Result<Admission, StoreError> {
        let mut admissions = self.admit_all(std::slice::from_ref(attributes)).await?;
        Ok(admissions.pop().unwrap_or(Admission { outcome: Outcome::Free, permits: Vec::new() }))
    }

    /// Decides about several requests that stand or fall together: all are allowed, or nothing was spent. After a
    /// refusal each answer says what its own rules thought of its own request; where one is forbidden, no limit was
    /// asked.
    pub async fn admit_all(&self, requests: &[Attributes<'_>]) -> Result<Vec<Admission>, StoreError> {
        let force = self.inner.force.load();
        // One date for all rules, also if it changes meanwhile.
        let date = OnceLock::new();
        let now = || *date.get_or_init(|| self.inner.calendar.now());
        let around = Circumstances { overrides: &self.inner.overrides, now: &now };
        let visits: Vec<_> =
            requests.iter().map(|request| Visit::new(&force.policy, request, &around)).collect();
        let is_forbidden = |visit: &Visit<'_>| matches!(visit.fixed, Some((_, Fixed::Deny)));
        if visits.iter().any(is_forbidden) {
            return Ok(visits.iter().map(|visit| force.without_limits(visit, is_forbidden(visit))).collect());
        }
        let together = Together::of(&visits);
        let decided = match &*together.asks {
            [] => None,
            asks => Some(force.store.store().take(asks).await?),
        };
        let each = decided.as_ref().map_or(&[][..], Decisions::each);
        let refused = each.iter().filter(|decision| !decision.is_allowed()).count();
        let each = together.told(each);
        let mut rest = &*each;
        let mut admissions = Vec::with_capacity(requests.len());
        for (visit, request) in visits.iter().zip(requests) {
            let (own, others) = rest.split_at(visit.enforced.len());
            rest = others;
            let request = Request { attributes: request, now: &now };
            admissions.push(self.conclude(&force, visit, (request, own, refused)).await);
        }
        Ok(admissions)
    }

    /// [`Gate::admit`] for a store that answers at once, as those in memory do.
    pub fn admit_now(&self, attributes: &Attributes<'_>) -> Result<Admission, StoreError> {
        at_once(self.admit(attributes))
    }

    /// [`Gate::admit_all`] for a store that answers at once, as those in memory do.
    pub fn admit_all_now(&self, requests: &[Attributes<'_>]) -> Result<Vec<Admission>, StoreError> {
        at_once(self.admit_all(requests))
    }

    /// Counts what was decided, asks those who are not obeyed, and makes the answer.
    async fn conclude(
        &self,
        force: &InForce,
        visit: &Visit<'_>,
        (request, own, refused): (Request<'_>, &[Decision], usize),
    ) -> Admission {
        let mut permits = Vec::new();
        for (asked, decision) in visit.enforced.iter().zip(own) {
            if refused == 0 || !decision.is_allowed() {
                self.count(force, asked, decision);
                hold(&mut permits, asked, decision);
            }
            let is_only = !decision.is_allowed() && refused == 1;
            if refused == 0 || is_only {
                self.ask_candidates(force, asked, (request, decision.is_allowed()), &mut permits).await;
            }
        }
        if refused == 0 {
            for asked in &visit.shadows {
                let Some(decision) = self.ask_alone(force, asked, &mut permits).await else { continue };
                self.ask_candidates(force, asked, (request, decision.is_allowed()), &mut permits).await;
            }
            visit.refused_in_shadow.iter().for_each(|id| force.meter(*id).fixed(Mode::Shadow, false));
        }
        if own.is_empty() {
            let answer = force.without_limits(visit, refused == 0);
            let is_measured = !visit.shadows.is_empty() || !visit.refused_in_shadow.is_empty();
            if refused == 0 && !is_measured && matches!(answer.outcome, Outcome::Free) {
                self.inner.free.fetch_add(1, Ordering::Relaxed);
            }
            return Admission { permits, ..answer };
        }
        Admission { outcome: binding(visit, own), permits }
    }

    /// What a rule that is not obeyed says to a request.
    async fn ask_alone(
        &self,
        force: &InForce,
        asked: &Asked<'_>,
        permits: &mut Vec<HeldPermit>,
    ) -> Option<Decision> {
        let ask = [asked.subject()];
        // Whoever is only measured stops nobody, not even by failing.
        let decision = *force.store.store().take(&ask).await.ok()?.each().first()?;
        self.count(force, asked, &decision);
        hold(permits, asked, &decision);
        Some(decision)
    }

    async fn ask_candidates(
        &self,
        force: &InForce,
        asked: &Asked<'_>,
        (request, is_allowed): (Request<'_>, bool),
        permits: &mut Vec<HeldPermit>,
    ) {
        for id in &asked.limited.candidates {
            let Request { attributes, now } = request;
            let Some(candidate) = asked.of_candidate(&force.policy, *id, attributes, now) else { continue };
            if let Some(decision) = self.ask_alone(force, &candidate, permits).await {
                force.meter(*id).compared(decision.is_allowed(), is_allowed);
            }
        }
    }

    fn count(&self, force: &InForce, asked: &Asked<'_>, decision: &Decision) {
        force.meter(asked.id).decided(asked.mode, decision);
        let asking = if decision.is_allowed() { Asking::Allowed } else { Asking::Refused };
        self.inner.top.note(|| self.inner.clock.now(), &asked.rule.name, &asked.key, asking);
    }

    /// What was counted for each rule, in the order of the file.
    pub fn counts(&self) -> Vec<(Rule, RuleCounts)> {
        let force = self.inner.force.load();
        force.policy.rules().iter().cloned().zip(force.meters.iter().map(|meter| meter.counts())).collect()
    }

    /// Requests to which no rule applied.
    pub fn unmatched(&self) -> u64 {
        self.inner.free.load(Ordering::Relaxed)
    }

    /// The keys with the most refusals lately.
    pub fn top(&self, rule: Option<&str>, at_most: usize) -> Vec<Heavy> {
        self.inner.top.turn_to(self.inner.clock.now());
        self.inner.top.most(Asking::Refused, rule, at_most)
    }

    /// The date by which schedules and overrides go, in seconds since 1970.
    pub fn date(&self) -> i64 {
        self.inner.calendar.now()
    }
}

impl InForce {
    fn meter(&self, id: crate::index::RuleId) -> &RuleMeter {
        &self.meters[id as usize]
    }

    /// The answer to a request that no limit was asked about.
    fn without_limits(&self, visit: &Visit<'_>, is_counted: bool) -> Admission {
        let outcome = match visit.fixed {
            Some((id, fixed)) => {
                let is_allowed = fixed == Fixed::Allow;
                if is_counted {
                    self.meter(id).fixed(Mode::Enforce, is_allowed);
                }
                Outcome::Fixed { rule: self.policy.rule(id).name.clone(), is_allowed }
            }
            None => Outcome::Free,
        };
        Admission { outcome, permits: Vec::new() }
    }
}

/// The limit that an answer speaks of.
fn binding(visit: &Visit<'_>, own: &[Decision]) -> Outcome {
    let place = Decisions::binding_of(own).unwrap_or(0);
    let (asked, decision) = (&visit.enforced[place], own[place]);
    let delays = own.iter().map(|decision| match decision.verdict_in_ticks() {
        Verdict::Allowed { delay } => delay,
        _ => Ticks::ZERO,
    });
    Outcome::Limited(Binding {
        rule: asked.rule.name.clone(),
        limit: asked.limit,
        cost: asked.ask.cost.get(),
        decision,
        delay: delays.max().unwrap_or(Ticks::ZERO),
        is_allowed: own.iter().all(Decision::is_allowed),
    })
}

fn hold(permits: &mut Vec<HeldPermit>, asked: &Asked<'_>, decision: &Decision) {
    permits.extend(decision.permit().map(|id| HeldPermit {
        rule: asked.rule.name.clone(),
        key: asked.key.clone(),
        limit: asked.limit,
        id,
    }));
}

/// The answer of something that does not wait.
fn at_once<T>(future: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(answer) => answer,
        std::task::Poll::Pending => {
            Err(StoreError::unavailable("this store does not answer at once; await it"))
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Gate")
            .field("rules", &self.with_policy(|policy| policy.rules().len()))
            .finish_non_exhaustive()
    }
}
