//! The gate: decides about requests by a policy and a store.
//!
//! ```text
//!   attributes -> rules with a fixed decision, in the order of the file
//!              -> enforced rules, of each group the first that applies, all or none
//!              -> if they allow: each shadow rule and each candidate on its own
//!                 if one alone denied: the candidates for that one
//! ```
//!
//! The policy in force is read without a lock. A replacement prepares everything that can fail beforehand and then
//! swaps one pointer, so a request is decided by the old policy or the new one and never by parts of both. Limits that
//! did not change keep their prepared form, and the states of their keys stay where they are.

mod adjust;
mod admission;
mod admit;
mod bans;
mod batch;
mod charges;
mod explain;
mod limits;
mod matched_rules;
mod meter;
mod overridden;
mod override_set;
mod override_warning;
mod overrides;
mod overriding;
mod penalty;
mod permits;
mod pinned;
mod rule_key;
mod store;
mod together;
mod unknown_attributes;
mod unsupported;
mod values;
mod wall_clock;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};
use tidegate_core::{
    Clock as _, CounterClock, PreparedPenalty, StoreError, StoreFailures, StoreFuture, StoreMeter, Timestamp,
    Zone,
};

pub use admission::{Admission, Binding, HeldPermit};
pub use bans::BannedKey;
pub use batch::{Batch, Stretch};
pub use charges::Charges;
pub use explain::{Explanation, LimitSource, Match, RuleExplained};
pub use meter::{RuleCounts, ShadowCounts};
pub use override_set::{OverrideId, OverrideSet};
pub use override_warning::{OverrideWarning, PutOverride};
pub use overrides::{IdleOverride, Instead, MAX_OVERRIDE_BYTES, MAX_OVERRIDES, Override, OverrideError};
pub use pinned::PinnedPolicy;
pub use rule_key::{RuleKey, RuleKeyError};
pub use store::GateStore;
pub use unsupported::{NoMemory, UnsupportedPolicy};
pub use wall_clock::{ManualCalendar, SystemCalendar, WallClock};

use crate::index::RuleId;
use crate::policy::Policy;
use crate::rule::Rule;
use crate::top::{DYNAMIC, HotKey, Top, TopOutcome as Asking};
use bans::Bans;
use limits::RuleLimit;
use meter::RuleMeter;
use overrides::Overrides;
use penalty::prepared_penalty;
use store::InStore;
use unknown_attributes::UnknownAttributes;
use values::Values;

/// A policy in force on a store; clones share it.
///
/// ```
/// use tidegate::Zone;
/// use tidegate::rules::{Attributes, Gate, Policy};
///
/// let policy = Policy::from_toml("[[rule]]\nname = 'site'\nkey = ['user']\nlimit = '1/h'")?;
/// let gate = Gate::new(policy, Zone::new(1 << 20))?;
/// let ana = Attributes::new().set("user", "ana");
/// // In an async function: gate.admit(&ana).await?. A store in memory needs no executor:
/// assert!(gate.admit(&ana).now()?.is_allowed());
/// let answer = gate.admit(&ana).now()?;
/// assert!(!answer.is_allowed() && answer.rule() == Some("site"));
/// gate.replace(Policy::from_toml("[[rule]]\nname = 'site'\nkey = ['user']\nlimit = '2/h'")?)?; // counts stay
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// All methods take `&self`, and a clone costs one reference count, so each thread or connection may have its own.
#[derive(Clone)]
#[doc(alias = "rate limiter")]
#[doc(alias = "policy engine")]
#[doc(alias = "quota")]
pub struct Gate {
    inner: Arc<Inner>,
}

struct Inner {
    force: ArcSwap<InForce>,
    replacing: Mutex<()>,
    overrides: Overrides,
    calendar: Arc<dyn WallClock>,
    clock: CounterClock,
    /// The most active keys of rules.
    top: Top,
    /// The same of limits that come with requests, apart: a flood of such keys takes no place of a rule's key.
    dynamic_top: Top,
    /// The keys that were seen to be banned.
    bans: Bans,
    /// The number of requests to which no rule applied.
    free: AtomicU64,
    /// The number of requests that were denied because no enforced rule applied.
    denied_unmatched: AtomicU64,
    unknown: UnknownAttributes,
    /// The names of rules of replaced policies whose limits dropped counts, until they are collected.
    dropped_counts: Mutex<BTreeSet<String>>,
}

impl Inner {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// A policy, its store, and the prepared limits and counters of each rule.
struct InForce {
    policy: Policy,
    store: InStore,
    limits: Box<[RuleLimit]>,
    /// The limits of single values.
    values: Values,
    penalties: Box<[Option<PreparedPenalty>]>,
    meters: Box<[Arc<RuleMeter>]>,
}

/// A policy that is ready to be put in force, with memory for all its zones.
#[derive(Debug)]
pub struct Prepared {
    gate: Gate,
    policy: Policy,
    store: InStore,
}

impl Prepared {
    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Puts the policy in force in place of the current one.
    pub fn put_in_force(self) {
        self.gate.put_in_force(self.policy, &self.store);
    }
}

/// A reference to the policy in force, for the duration of a decision.
enum Held {
    /// A short-lived guard. There are few of these, and each blocks a replacement of the policy.
    Shortly(Guard<Arc<InForce>>),
    /// A reference count, held while a remote store is awaited.
    Long(Arc<InForce>),
}

impl Deref for Held {
    type Target = InForce;

    fn deref(&self) -> &InForce {
        match self {
            Held::Shortly(force) => force,
            Held::Long(force) => force,
        }
    }
}

impl Held {
    /// Returns a reference count that can be held for any length of time.
    fn to_arc(&self) -> Arc<InForce> {
        match self {
            Held::Shortly(force) => Arc::clone(force),
            Held::Long(force) => Arc::clone(force),
        }
    }
}

/// A gate under construction; see [`Gate::builder`].
#[derive(Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct GateBuilder {
    policy: Policy,
    store: GateStore,
    calendar: Arc<dyn WallClock>,
}

impl GateBuilder {
    /// Sets the source of the date for schedules and overrides; [`SystemCalendar`] by default.
    pub fn calendar(self, calendar: Arc<dyn WallClock>) -> GateBuilder {
        GateBuilder { calendar, ..self }
    }

    /// Puts the policy in force, with memory for all of its zones.
    ///
    /// # Errors
    /// The store does not support the policy: [`UnsupportedPolicy`] names the rule and the remedy.
    pub fn build(self) -> Result<Gate, UnsupportedPolicy> {
        let GateBuilder { policy, store, calendar } = self;
        let store = InStore::new(&store, &policy)?;
        let meters = policy.rules().iter().map(|_| Arc::default()).collect();
        let limits = policy.rules().iter().map(|rule| RuleLimit::new(rule, None)).collect();
        let penalties = policy.rules().iter().map(|rule| prepared_penalty(rule, None)).collect();
        // The first policy has no predecessor; its limits of single values come into force with it.
        let values = Values::new(&policy, None, calendar.now());
        let inner = Inner {
            force: ArcSwap::from_pointee(InForce { policy, store, limits, values, penalties, meters }),
            replacing: Mutex::new(()),
            overrides: Overrides::default(),
            calendar,
            clock: CounterClock::new(),
            top: Top::new(),
            dynamic_top: Top::of_dynamic(),
            bans: Bans::default(),
            free: AtomicU64::new(0),
            denied_unmatched: AtomicU64::new(0),
            unknown: UnknownAttributes::default(),
            dropped_counts: Mutex::default(),
        };
        Ok(Gate { inner: Arc::new(inner) })
    }
}

impl Gate {
    /// Creates a gate with a policy in force on a store, by the date of this machine.
    ///
    /// # Errors
    /// The store does not support the policy: [`UnsupportedPolicy`] names the rule and the remedy.
    pub fn new(policy: Policy, store: impl Into<GateStore>) -> Result<Gate, UnsupportedPolicy> {
        Gate::builder(policy, store).build()
    }

    /// Creates a builder of a gate, for a gate that reads another calendar.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tidegate::Zone;
    /// use tidegate::rules::{Gate, ManualCalendar, Policy};
    ///
    /// let calendar = Arc::new(ManualCalendar::at(1_793_577_600));
    /// let gate = Gate::builder(Policy::default(), Zone::new(1 << 20)).calendar(calendar.clone()).build()?;
    /// calendar.set(1_793_577_601);
    /// assert_eq!(gate.date(), 1_793_577_601);
    /// # Ok::<(), tidegate::rules::UnsupportedPolicy>(())
    /// ```
    pub fn builder(policy: Policy, store: impl Into<GateStore>) -> GateBuilder {
        GateBuilder { policy, store: store.into(), calendar: Arc::new(SystemCalendar) }
    }

    /// Replaces the policy atomically: every request is decided by the old one or the new one. Rules that keep their
    /// name and algorithm keep the debt of their keys and their counts. On an error the old policy stays in force.
    ///
    /// Requests that are being decided finish under the old policy. A rule that was renamed, or has another algorithm,
    /// another key or another grouping, starts with full quotas.
    ///
    /// # Errors
    /// [`UnsupportedPolicy`], as for [`Gate::new`].
    #[doc(alias = "reload")]
    #[doc(alias = "hot reload")]
    pub fn replace(&self, policy: Policy) -> Result<(), UnsupportedPolicy> {
        self.prepare(policy).map(Prepared::put_in_force)
    }

    /// Prepares a replacement of the policy. This step may fail and changes nothing; [`Prepared::put_in_force`] cannot
    /// fail.
    ///
    /// Use it to put several things in force together, such as a policy and the settings of a server.
    ///
    /// ```
    /// use tidegate::Zone;
    /// use tidegate::rules::{Gate, Policy};
    ///
    /// let gate = Gate::new(Policy::default(), Zone::new(1 << 20))?;
    /// let prepared = gate.prepare(Policy::from_toml("[[rule]]\nname = 'site'\nlimit = '1/h'")?)?;
    /// assert_eq!(gate.with_policy(|policy| policy.rules().len()), 0); // nothing has changed yet
    /// prepared.put_in_force();
    /// assert_eq!(gate.with_policy(|policy| policy.rules().len()), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prepare(&self, policy: Policy) -> Result<Prepared, UnsupportedPolicy> {
        let store = self.inner.force.load().store.under(&policy)?;
        Ok(Prepared { gate: self.clone(), policy, store })
    }

    fn put_in_force(&self, policy: Policy, store: &InStore) {
        let _alone = self.inner.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.inner.force.load();
        let (mut limits, mut penalties, mut meters) = (Vec::new(), Vec::new(), Vec::new());
        for rule in policy.rules() {
            let known = old.policy.id_of(rule.name());
            let before = known.map(|id| (old.policy.rule(id), id));
            limits.push(RuleLimit::new(rule, before.map(|(before, id)| (before, old.limit(id)))));
            penalties.push(prepared_penalty(rule, before.map(|(before, id)| (before, old.penalty(id)))));
            meters.push(known.map_or_else(Arc::default, |id| Arc::clone(&old.meters[id as usize])));
        }
        let store = old.store.going_on_as(store);
        let (limits, penalties, meters) = (limits.into(), penalties.into(), meters.into());
        let now = self.inner.calendar.now();
        let values = Values::new(&policy, Some((&old.policy, &old.values)), now);
        let force = Arc::new(InForce { policy, store, limits, values, penalties, meters });
        let put_in_force = || self.inner.force.store(force.clone());
        self.inner.overrides.follow(&old.policy, &force, now, put_in_force);
        force.store.store().forget_refusals();
        let dropped = &self.inner.dropped_counts;
        dropped.lock().unwrap_or_else(PoisonError::into_inner).extend(old.take_dropped_counts());
    }

    /// Returns the policy in force, for one decision.
    ///
    /// An in-memory decision is short, so it holds a guard. A remote one may wait for seconds and takes a reference
    /// count.
    fn in_force(&self) -> Held {
        let force = self.inner.force.load();
        match force.store.is_in_memory() {
            true => Held::Shortly(force),
            false => Held::Long(Guard::into_inner(force)),
        }
    }

    /// Runs a future to its end if the store is in memory, which never waits. Otherwise boxes it, to be polled later.
    fn reply<'a, T>(
        &self,
        future: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        if !self.is_in_memory() {
            return StoreFuture::later(future);
        }
        match at_once(future) {
            Ok(reply) => StoreFuture::ready(reply),
            Err(error) => StoreFuture::failed(error),
        }
    }

    /// Calls a closure with the policy in force.
    ///
    /// The closure should be short: it holds a reference to the policy, which delays its release.
    pub fn with_policy<T>(&self, use_it: impl FnOnce(&Policy) -> T) -> T {
        use_it(&self.inner.force.load().policy)
    }

    /// Returns the zones that rules name, each with its name.
    ///
    /// A remote store has no zones here, so the list is empty.
    pub fn zones(&self) -> Vec<(String, Zone)> {
        self.inner.force.load().store.zones()
    }

    /// Returns the counts of each rule, in the order of the file.
    ///
    /// The counts of a rule survive a replacement of the policy as long as the rule keeps its name.
    ///
    /// ```
    /// use tidegate::Zone;
    /// use tidegate::rules::{Attributes, Gate, Policy};
    ///
    /// let gate = Gate::new(Policy::from_toml("[[rule]]\nname = 'site'\nlimit = '1/h'")?, Zone::new(1 << 20))?;
    /// for _ in 0..3 {
    ///     gate.admit(&Attributes::new()).now()?;
    /// }
    /// let (rule, counts) = &gate.counts()[0];
    /// assert_eq!((rule.name(), counts.allowed, counts.denied), ("site", 1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "metrics")]
    #[doc(alias = "statistics")]
    pub fn counts(&self) -> Vec<(Rule, RuleCounts)> {
        let force = self.inner.force.load();
        force.policy.rules().iter().cloned().zip(force.meters.iter().map(|meter| meter.counts())).collect()
    }

    /// Returns the rules that changed their limit more often than counts can be carried over. Each is reported once.
    pub fn take_dropped_counts(&self) -> Vec<String> {
        let dropped = &self.inner.dropped_counts;
        let mut dropped = std::mem::take(&mut *dropped.lock().unwrap_or_else(PoisonError::into_inner));
        dropped.extend(self.inner.force.load().take_dropped_counts());
        dropped.into_iter().collect()
    }

    /// Returns the number of requests that were allowed because no rule applied.
    pub fn unmatched(&self) -> u64 {
        self.inner.free.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that were denied because no enforced rule applied, under a policy whose
    /// [`unmatched`](Policy::unmatched) is a denial.
    pub fn denied_unmatched(&self) -> u64 {
        self.inner.denied_unmatched.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that had an attribute which no rule uses, and which is neither declared nor one
    /// that frontends provide, such as `path` and `header.NAME`.
    ///
    /// ```
    /// use tidegate::Zone;
    /// use tidegate::rules::{Attributes, Gate, Policy};
    ///
    /// let policy = Policy::from_toml("[[rule]]\nname = 'site'\nkey = ['usr']\nlimit = '5/h'")?;
    /// let gate = Gate::new(policy, Zone::new(1 << 20))?;
    /// gate.admit(&Attributes::new().set("user", "ana")).now()?; // counted with all that have no `usr`
    /// assert_eq!((gate.unknown_attributes(), gate.take_unknown_attributes()), (1, vec!["user".to_owned()]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unknown_attributes(&self) -> u64 {
        self.inner.unknown.requests()
    }

    /// Returns the names of these attributes. Each is returned once, and at most 64 in the life of a gate.
    pub fn take_unknown_attributes(&self) -> Vec<String> {
        self.with_policy(|policy| self.inner.unknown.take(policy))
    }

    /// Returns the failures of a remote store, and the decisions of its fallback. An in-memory store has none.
    pub fn store_failures(&self) -> StoreFailures {
        let force = self.inner.force.load();
        force.store.store().meter().map(StoreMeter::failures).unwrap_or_default()
    }

    /// Returns true if the store is in memory: it answers immediately and cannot fail.
    pub fn is_in_memory(&self) -> bool {
        self.inner.force.load().store.is_in_memory()
    }

    /// Returns the keys with the most denials in the last one to two minutes.
    ///
    /// The counts are estimates with a bounded error, from a sketch of constant size. `None` as the rule means all
    /// rules, and the keys of [dynamic limits](Gate::count_dynamic).
    #[doc(alias = "heavy hitters")]
    #[doc(alias = "top talkers")]
    #[doc(alias = "hot keys")]
    pub fn top(&self, rule: Option<&str>, at_most: usize) -> Vec<HotKey> {
        self.most(Asking::Denied, rule, at_most)
    }

    /// Returns the keys with the most requests in the last one to two minutes, in other respects like [`Gate::top`].
    #[doc(alias = "heavy hitters")]
    pub fn top_by_requests(&self, rule: Option<&str>, at_most: usize) -> Vec<HotKey> {
        self.most(Asking::Allowed, rule, at_most)
    }

    fn most(&self, by: Asking, rule: Option<&str>, at_most: usize) -> Vec<HotKey> {
        let Inner { top, dynamic_top, .. } = &*self.inner;
        let now = self.inner.now();
        let most = |top: &Top| {
            top.turn_to(now);
            top.most(by, rule, at_most)
        };
        match rule {
            Some(_) => most(top),
            None => HotKey::sorted([most(top), most(dynamic_top)].concat(), by, at_most),
        }
    }

    /// Counts a decision about a key of a limit that came with its request, for [`Gate::top`]. Such a key has no rule.
    ///
    /// It is for a server that decides under such limits beside those of the gate. The gate itself counts the keys of its
    /// rules.
    ///
    /// ```
    /// use tidegate::Zone;
    /// use tidegate::rules::{Gate, Policy};
    ///
    /// let gate = Gate::new(Policy::default(), Zone::new(1 << 20))?;
    /// gate.count_dynamic(b"user123", false);
    /// let top = gate.top(None, 10);
    /// assert_eq!((&top[0].rule, &top[0].key[..], top[0].denied), (&None, &["user123".to_owned()][..], 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn count_dynamic(&self, key: &[u8], is_allowed: bool) {
        let asking = if is_allowed { Asking::Allowed } else { Asking::Denied };
        self.inner.dynamic_top.note(|| self.inner.now(), DYNAMIC, key, asking);
    }

    /// Returns the date that schedules and overrides use, in seconds since 1970.
    pub fn date(&self) -> i64 {
        self.inner.calendar.now()
    }
}

impl InForce {
    /// Returns the rules whose limit in force dropped counts, each once.
    fn take_dropped_counts(&self) -> impl Iterator<Item = String> + '_ {
        let each = self.policy.rules().iter().zip(&self.limits);
        each.filter(|(_, limit)| limit.take_dropped_counts()).map(|(rule, _)| rule.name().to_owned())
    }

    fn limit(&self, id: RuleId) -> &RuleLimit {
        &self.limits[id as usize]
    }

    fn penalty(&self, id: RuleId) -> Option<&PreparedPenalty> {
        self.penalties[id as usize].as_ref()
    }

    fn meter(&self, id: RuleId) -> &RuleMeter {
        &self.meters[id as usize]
    }
}

/// Returns the result of a future that does not wait, as those of in-memory stores; otherwise an error.
fn at_once<T>(future: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    tidegate_support::at_once(future)
        .unwrap_or_else(|| Err(StoreError::unavailable("this store does not answer at once; await it")))
}

impl fmt::Debug for Gate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Gate")
            .field("rules", &self.with_policy(|policy| policy.rules().len()))
            .finish_non_exhaustive()
    }
}
