//! Decides about requests: enforced rules first, then shadow rules and candidates.
//!
//! ```text
//!   store in memory   decide_now: match, take, count, measure; no future; up to two limits, no allocation
//!   remote store      decide: match, take (one round trip for all limits), count, measure (one for each shadow rule)
//! ```
//!
//! A take is all or none: a denial by one rule leaves the states of the others unchanged. Shadow rules and candidates
//! are evaluated afterwards, one by one, so that they cannot change the decision. If the store fails in between, they
//! are counted as not measured; the request does not wait for the store a second time.

use std::sync::atomic::Ordering;

#[cfg(doc)]
use tidegate_core::Store;
use tidegate_core::{
    DecidedBy, Decision, Decisions, OpenReceipt, StoreError, StoreFuture, Ticks, Timestamp, Verdict,
};

use super::admission::{Admission, Binding, HeldPermit, Outcome};
use super::batch::BatchInstant;
use super::charges::Entry;
use super::matched_rules::{Asked, Circumstances, FixedVerdict, MatchedRules};
use super::together::{Asks, Decided, OwnDecisions, Together};
use super::{Gate, InForce, Inner, at_once};
use crate::attributes::Attributes;
use crate::rule::{Mode, StaticVerdict};
use crate::top::TopOutcome as Asking;

/// One request, the rules that apply to it, their decisions, and the date of the decision.
///
/// It is copied into every step of the evaluation, so that the steps share no mutable state but [`Measured`].
#[derive(Clone, Copy)]
struct Request<'a, 'p> {
    attributes: &'a Attributes<'a>,
    visit: &'a MatchedRules<'p>,
    own: &'a [Decided<'a>],
    /// The number of denials of all requests that are decided as a unit.
    denied: usize,
    now: &'a (dyn Fn() -> i64 + Sync),
    at: Option<Timestamp>,
}

/// The results of shadow rules and candidates.
///
/// None of its lists is allocated for a request without permits, shadow rules and a bill.
pub(super) struct Measured<'g> {
    gate: &'g Gate,
    permits: Vec<HeldPermit>,
    /// The permits acquired so far. If the caller drops the future before the decision is returned, these permits are
    /// released.
    unclaimed: Vec<HeldPermit>,
    /// True once the store has failed. The gate then does not wait for it again only to measure.
    has_failed: bool,
    /// The units taken, those of enforced rules included, if the caller asked for a bill.
    pub(super) bill: Option<Vec<Entry>>,
    /// The receipts of the enforced rules, in their order.
    receipts: std::vec::IntoIter<Option<OpenReceipt>>,
}

impl<'g> Measured<'g> {
    /// Creates results that record permits only.
    pub(super) fn new(gate: &'g Gate) -> Measured<'g> {
        let (permits, unclaimed) = (Vec::new(), Vec::new());
        Measured { gate, permits, unclaimed, has_failed: false, bill: None, receipts: Vec::new().into_iter() }
    }

    /// Creates results that record a bill.
    pub(super) fn tracked(gate: &'g Gate) -> Measured<'g> {
        let mut measured = Measured::new(gate);
        measured.bill = Some(Vec::new());
        measured
    }

    /// Records the units of a decision on the bill, if the caller asked for one.
    fn note(&mut self, asked: &Asked<'_>, decided: Decided<'_>, mode: Mode, receipt: Option<OpenReceipt>) {
        if let Some(bill) = &mut self.bill {
            bill.extend(Entry::of(asked, decided, receipt).map(|entry| Entry { mode, ..entry }));
        }
    }
}

impl Drop for Measured<'_> {
    fn drop(&mut self) {
        if !self.unclaimed.is_empty() {
            self.gate.release_later(&self.unclaimed);
        }
    }
}

impl Gate {
    /// Decides about a request, and spends if it is allowed.
    ///
    /// An in-memory store has decided before this returns, without an allocation: [`StoreFuture::now`] returns the
    /// admission without an executor. A remote store is asked when the future is polled.
    ///
    /// If the store fails, or if more limits apply than it decides together ([`Store::most_together`]), each rule
    /// follows its `on_store_failure`. [`Admission::decided_by`] reports the fallback. The only error is that of a
    /// remote store which cannot answer immediately where an immediate answer was required.
    ///
    /// Cancellation: if the future of a remote store is dropped before it completes, the request may have been charged
    /// once; its permits are released.
    ///
    /// ```
    /// use tidegate::{Verdict, Zone};
    /// use tidegate::rules::{Attributes, Gate, Policy};
    ///
    /// let policy = Policy::from_toml("[[rule]]\nname = 'site'\nkey = ['user']\nlimit = '1/h'")?;
    /// let gate = Gate::new(policy, Zone::new(1 << 20))?;
    /// let ana = Attributes::new().set("user", "ana");
    /// for expected in [true, false] {
    ///     let answer = gate.admit(&ana).now()?; // .await? with any store
    ///     match answer.verdict() {
    ///         Verdict::Allowed { delay } => assert!(expected && delay.is_zero()),
    ///         Verdict::Denied { retry_after } => assert!(!expected && retry_after.as_secs() > 3500),
    ///         Verdict::Impossible => unreachable!("the cost is 1"),
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[doc(alias = "check")]
    #[doc(alias = "acquire")]
    #[doc(alias = "rate limit")]
    #[doc(alias = "throttle")]
    pub fn admit<'a>(&'a self, attributes: &'a Attributes<'_>) -> StoreFuture<'a, Admission> {
        // A single request reads the clock as it goes: no other request has to share its instant.
        let moment = BatchInstant::default();
        match self.decide_now(&self.in_force(), attributes, &mut Measured::new(self), &moment) {
            Some(admission) => StoreFuture::ready(admission),
            None => StoreFuture::later(async move {
                let (force, moment) = (self.in_force(), BatchInstant::default());
                self.decide_one(&force, attributes, &mut Measured::new(self), &moment).await
            }),
        }
    }

    /// [`Gate::admit`] under a policy that is held.
    #[inline]
    pub(super) fn admit_under<'a>(
        &'a self,
        force: &'a InForce,
        attributes: &'a Attributes<'_>,
    ) -> StoreFuture<'a, Admission> {
        match self.decide_now(force, attributes, &mut Measured::new(self), &BatchInstant::default()) {
            Some(admission) => StoreFuture::ready(admission),
            None => StoreFuture::later(async move {
                self.decide_one(force, attributes, &mut Measured::new(self), &BatchInstant::default()).await
            }),
        }
    }

    /// Decides about several requests as a unit: either all are allowed, or no request spends. After a denial each
    /// answer reports the decision of its own rules about its own request. If one request is forbidden, no limit is
    /// evaluated. An in-memory store decides about all of them at one instant.
    ///
    /// Requests with the same key under one rule are one ask with the sum of their costs, except for concurrency
    /// permits, of which each request gets its own. Shadow rules are evaluated for each request of an allowed unit.
    ///
    /// ```
    /// use tidegate::Zone;
    /// use tidegate::rules::{Attributes, Gate, Policy};
    ///
    /// let gate = Gate::new(Policy::from_toml("[[rule]]\nname = 'site'\nlimit = '3/h'")?, Zone::new(1 << 20))?;
    /// let requests = [Attributes::new(), Attributes::new()];
    /// assert!(gate.admit_all(&requests).now()?.iter().all(|answer| answer.is_allowed()));
    /// assert!(gate.admit_all(&requests).now()?.iter().all(|answer| !answer.is_allowed())); // only one remains
    /// assert!(gate.admit(&requests[0]).now()?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "batch")]
    #[doc(alias = "transaction")]
    pub fn admit_all<'a>(&'a self, requests: &'a [Attributes<'_>]) -> StoreFuture<'a, Vec<Admission>> {
        self.reply(async move {
            let force = self.in_force();
            let moment = BatchInstant::of(&force);
            self.decide(&force, requests, &mut Measured::new(self), &moment).await
        })
    }

    /// Decides about one request on a remote store.
    ///
    /// The caller has checked that the store does not decide immediately.
    pub(super) async fn decide_one(
        &self,
        force: &InForce,
        attributes: &Attributes<'_>,
        measured: &mut Measured<'_>,
        moment: &BatchInstant,
    ) -> Result<Admission, StoreError> {
        self.decide(force, std::slice::from_ref(attributes), measured, moment).await.map(only)
    }

    /// Decides immediately. Returns `None`, and decides nothing, if the store is remote.
    #[inline]
    pub(super) fn decide_now(
        &self,
        force: &InForce,
        attributes: &Attributes<'_>,
        measured: &mut Measured<'_>,
        moment: &BatchInstant,
    ) -> Option<Admission> {
        let zones = force.store.memory()?;
        let now = || moment.date(self);
        let around = self.circumstances(&now);
        let mut visit = MatchedRules::default();
        visit.match_rules(force, attributes, &around);
        if visit.is_forbidden() {
            return Some(self.unasked(force, &visit, true));
        }
        let mut asks = Asks::new();
        visit.put_asks(measured.bill.is_some(), &mut asks);
        let mut decisions = match moment.at {
            Some(at) => zones.take_all_as_of(at, &asks),
            None => zones.take_all(&asks),
        };
        if measured.bill.is_some() {
            measured.receipts = decisions.take_receipts().into_iter();
        }
        let (mut own, mut denied) = (OwnDecisions::new(), 0);
        for decision in decisions.each() {
            own.push(Decided { decision, by: DecidedBy::Memory, is_repeated: false });
            denied += usize::from(!decision.is_allowed());
        }
        let request = Request { attributes, visit: &visit, own: &own, denied, now: &now, at: moment.at };
        self.count_enforced(force, request, measured);
        if visit.is_measured() {
            at_once(async {
                self.measure(force, request, measured).await;
                Ok(())
            })
            .ok()?;
            measured.unclaimed.clear();
        }
        Some(self.answer(force, request, measured))
    }

    /// Decides about several requests on any store. The permits of a take are recorded before the first wait after it,
    /// so that they are released if the caller drops the future.
    pub(super) async fn decide(
        &self,
        force: &InForce,
        requests: &[Attributes<'_>],
        measured: &mut Measured<'_>,
        moment: &BatchInstant,
    ) -> Result<Vec<Admission>, StoreError> {
        // All rules use one date, even if the date changes meanwhile.
        let now = || moment.date(self);
        let around = self.circumstances(&now);
        let visits: Vec<_> =
            requests.iter().map(|request| MatchedRules::new(force, request, &around)).collect();
        if visits.iter().any(MatchedRules::is_forbidden) {
            let unasked = visits.iter().map(|visit| self.unasked(force, visit, visit.is_forbidden()));
            return Ok(unasked.collect());
        }
        let together = Together::of(&visits, measured.bill.is_some());
        let mut decisions = Decisions::from(Vec::new());
        if !together.asks.is_empty() {
            decisions = force.store.take(&together.asks, moment.at).await?;
            measured.has_failed = decisions.is_fallback();
            measured.receipts = decisions.take_receipts().into_iter();
        }
        let denied = decisions.each().iter().filter(|decision| !decision.is_allowed()).count();
        let asked = visits.iter().flat_map(|visit| &visit.enforced);
        let all = together.own(&decisions, 0..asked.clone().count());
        measured.unclaimed.extend(asked.zip(all).filter_map(|(asked, decided)| hold(asked, decided)));
        let (mut first, mut admissions) = (0, Vec::with_capacity(requests.len()));
        for (visit, attributes) in visits.iter().zip(requests) {
            let rules = first..first + visit.enforced.len();
            first = rules.end;
            let own = together.own(&decisions, rules);
            let request = Request { attributes, visit, own: &own, denied, now: &now, at: moment.at };
            self.count_enforced(force, request, measured);
            self.measure(force, request, measured).await;
            admissions.push(self.answer(force, request, measured));
        }
        measured.unclaimed.clear();
        Ok(admissions)
    }

    /// Counts the decisions of enforced rules, and collects the permits and receipts of their takes.
    fn count_enforced(&self, force: &InForce, request: Request<'_, '_>, measured: &mut Measured<'_>) {
        let happens = request.denied == 0;
        for (asked, decided) in request.visit.enforced.iter().zip(request.own.iter().copied()) {
            if happens || !decided.is_allowed() {
                self.count(force, asked, decided);
                if let Some(permit) = hold(asked, decided) {
                    measured.permits.push(permit);
                }
            }
            if happens && measured.bill.is_some() {
                let receipt = measured.receipts.next().flatten();
                measured.note(asked, decided, Mode::Enforce, receipt);
            }
        }
    }

    /// Evaluates the candidates and the shadow rules.
    ///
    /// A candidate is evaluated if its rule allowed, or if its rule alone denied: otherwise the request would have
    /// ended at another rule, and the candidate would never have seen it.
    async fn measure(&self, force: &InForce, request: Request<'_, '_>, measured: &mut Measured<'_>) {
        let (visit, happens) = (request.visit, request.denied == 0);
        for (asked, decided) in visit.enforced.iter().zip(request.own) {
            let is_only = !decided.is_allowed() && request.denied == 1 && !measured.has_failed;
            if happens || is_only {
                self.ask_candidates(force, asked, request, decided.is_allowed(), measured).await;
            }
        }
        if happens {
            for asked in &visit.shadows {
                let decided = self.ask_alone(force, asked, request.at, measured).await;
                // Candidates of a rule that could not be evaluated are not evaluated either, and count as unmeasured.
                let is_allowed = decided.is_some_and(|decision| decision.is_allowed());
                self.ask_candidates(force, asked, request, is_allowed, measured).await;
            }
            visit.refused_in_shadow.iter().for_each(|id| force.meter(*id).fixed(Mode::Shadow, false));
        }
    }

    /// Builds the admission of a request whose decisions are counted.
    #[inline]
    fn answer(&self, force: &InForce, request: Request<'_, '_>, measured: &mut Measured<'_>) -> Admission {
        let Request { visit, own, .. } = request;
        let happens = request.denied == 0;
        if own.is_empty() {
            let permits = std::mem::take(&mut measured.permits);
            return Admission { permits, ..self.without_limits(force, visit, !happens) };
        }
        let (binding, delay) = binding(visit, own);
        let decided_by = binding.map_or(DecidedBy::Open, |(decided, _)| decided.by);
        let is_allowed = own.iter().all(Decided::is_allowed);
        let report = |decided: Decided<'_>, asked: &Asked<'_>| report(decided, asked, delay, is_allowed);
        let others = match binding {
            Some((_, binding)) if request.attributes.all_limits => others(visit, own, binding, report),
            _ => Vec::new(),
        };
        // An allowed request of a denied unit does not count as a decision of the fallback.
        let is_counted = happens || !is_allowed || !decided_by.is_fallback();
        if let Some(meter) = force.store.store().meter().filter(|_| is_counted) {
            meter.decided.count(decided_by, is_allowed);
        }
        Admission {
            outcome: match binding {
                None => Outcome::Open { rule: visit.enforced[0].rule.name.clone(), delay },
                Some((decided, asked)) => Outcome::Limited(report(decided, asked)),
            },
            decided_by,
            permits: std::mem::take(&mut measured.permits),
            others,
        }
    }

    /// Builds the admission of a request without limits. Another request of the unit may have been denied.
    fn without_limits(&self, force: &InForce, visit: &MatchedRules<'_>, is_refused: bool) -> Admission {
        let answer = self.unasked(force, visit, !is_refused);
        let is_measured = !visit.shadows.is_empty() || !visit.refused_in_shadow.is_empty();
        if !is_refused && !is_measured && matches!(answer.outcome, Outcome::Free) {
            self.inner.free.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    /// Builds the admission of a request for which no limit was evaluated.
    fn unasked(&self, force: &InForce, visit: &MatchedRules<'_>, is_counted: bool) -> Admission {
        let outcome = match visit.fixed {
            Some(FixedVerdict::Rule(id, fixed)) => {
                let is_allowed = fixed == StaticVerdict::Allow;
                if is_counted {
                    force.meter(id).fixed(Mode::Enforce, is_allowed);
                }
                let rule = force.policy.rule(id).name.clone();
                Outcome::Fixed { rule, is_allowed, is_overridden: false }
            }
            Some(FixedVerdict::Override(id)) => {
                if is_counted {
                    force.meter(id).fixed(Mode::Enforce, false);
                }
                let rule = force.policy.rule(id).name.clone();
                Outcome::Fixed { rule, is_allowed: false, is_overridden: true }
            }
            Some(FixedVerdict::Unmatched) => {
                if is_counted {
                    self.inner.denied_unmatched.fetch_add(1, Ordering::Relaxed);
                }
                Outcome::Unmatched
            }
            None => Outcome::Free,
        };
        Admission::without_limits(outcome)
    }

    /// Returns the inputs of a decision apart from the policy and the request.
    pub(super) fn circumstances<'a>(&'a self, now: &'a (dyn Fn() -> i64 + Sync)) -> Circumstances<'a> {
        let Inner { overrides, unknown, .. } = &*self.inner;
        Circumstances { overrides, unknown, now }
    }

    /// Returns the decision of a shadow rule or candidate about a request. `None` if the store fails.
    async fn ask_alone(
        &self,
        force: &InForce,
        asked: &Asked<'_>,
        at: Option<Timestamp>,
        measured: &mut Measured<'_>,
    ) -> Option<Decision> {
        let ask = [(asked.subject(measured.bill.is_some()).without_fallback(), asked.ask)];
        let answer = if measured.has_failed { None } else { Some(force.store.take(&ask, at).await) };
        let Some(Ok(mut decisions)) = answer else {
            // A rule that is only measured denies nothing, not even by failing.
            measured.has_failed = true;
            force.meter(asked.id).unmeasured();
            return None;
        };
        let receipt = decisions.take_receipts().pop().flatten();
        let decided = Decided::at(0, &decisions);
        self.count(force, asked, decided);
        measured.permits.extend(hold(asked, decided));
        measured.unclaimed.extend(hold(asked, decided));
        measured.note(asked, decided, Mode::Shadow, receipt);
        Some(*decided.decision)
    }

    /// Evaluates each candidate of a rule, and counts where its decision differs from that of the rule.
    async fn ask_candidates(
        &self,
        force: &InForce,
        asked: &Asked<'_>,
        request: Request<'_, '_>,
        is_allowed: bool,
        measured: &mut Measured<'_>,
    ) {
        for id in &asked.limited.candidates {
            let Request { attributes, now, at, .. } = request;
            let Some(candidate) = asked.of_candidate(force, *id, attributes, now) else { continue };
            if let Some(decision) = self.ask_alone(force, &candidate, at, measured).await {
                force.meter(*id).compared(decision.is_allowed(), is_allowed);
            }
        }
    }

    /// Counts a decision in the meters of the rule, and its key in the report of hot keys.
    fn count(&self, force: &InForce, asked: &Asked<'_>, decided: Decided<'_>) {
        let meter = force.meter(asked.id);
        meter.by.count(decided.by, decided.is_allowed());
        if decided.is_uncounted() {
            // No limit has counted the request, so neither the key nor the remaining quota is recorded.
            return meter.fixed(asked.mode, true);
        }
        meter.decided(asked.mode, decided.decision, decided.is_repeated);
        if matches!(decided.by, DecidedBy::Open | DecidedBy::Closed) {
            return;
        }
        if decided.decision.ban().is_some()
            && asked.mode == Mode::Enforce
            && asked.limited.candidate_for.is_none()
        {
            self.inner.bans.note(&asked.rule.name, &asked.key, decided.decision, self.inner.now());
        }
        let asking = if decided.is_allowed() { Asking::Allowed } else { Asking::Denied };
        self.inner.top.note(|| self.inner.now(), &asked.rule.name, asked.key.as_bytes(), asking);
    }
}

/// Returns the admission of the only request.
fn only(mut admissions: Vec<Admission>) -> Admission {
    // A default in place of the panic could allow or deny by accident.
    admissions.pop().unwrap_or_else(|| unreachable!("every request that is decided about has an answer"))
}

impl Admission {
    /// Creates an admission without permits that no store has decided.
    pub(super) fn without_limits(outcome: Outcome) -> Admission {
        Admission { outcome, decided_by: DecidedBy::Memory, permits: Vec::new(), others: Vec::new() }
    }
}

/// Returns the reported rule with its decision, and the longest delay of all rules. Rules that count nothing are
/// skipped; the result is `None` if there is no other rule.
///
/// Of a denial it is the rule with the longest wait, of an allowed request the one with the smallest fraction
/// remaining.
#[inline]
fn binding<'v, 'p, 'd>(
    visit: &'v MatchedRules<'p>,
    own: &[Decided<'d>],
) -> (Option<(Decided<'d>, &'v Asked<'p>)>, Ticks) {
    let delays = own.iter().map(|decided| match decided.decision.verdict_in_ticks() {
        Verdict::Allowed { delay } => delay,
        _ => Ticks::ZERO,
    });
    let counted = || own.iter().zip(&visit.enforced).filter(|(decided, _)| !decided.is_uncounted());
    let binding = Decisions::binding_of(counted().map(|(decided, _)| decided.decision));
    let binding = binding.and_then(|place| counted().nth(place)).map(|(decided, asked)| (*decided, asked));
    (binding, delays.max().unwrap_or(Ticks::ZERO))
}

/// Returns the limit of a rule with its decision, as an admission reports it.
#[inline]
fn report(
    Decided { decision, by, .. }: Decided<'_>,
    asked: &Asked<'_>,
    delay: Ticks,
    is_allowed: bool,
) -> Binding {
    Binding {
        rule: asked.rule.name.clone(),
        limit: *asked.limit.limit_of(by),
        cost: asked.ask.cost.get(),
        decision: *decision,
        delay,
        is_allowed,
    }
}

/// Returns the limits beside the binding one, without those that counted nothing.
#[cold]
fn others<'d>(
    visit: &MatchedRules<'_>,
    own: &[Decided<'d>],
    binding: &Asked<'_>,
    report: impl Fn(Decided<'d>, &Asked<'_>) -> Binding,
) -> Vec<Binding> {
    let each = own.iter().zip(&visit.enforced);
    each.filter(|(decided, asked)| !decided.is_uncounted() && !std::ptr::eq(*asked, binding))
        .map(|(decided, asked)| report(*decided, asked))
        .collect()
}

/// Returns the concurrency permit that was acquired, if any.
///
/// A permit names its rule, its key and its limit, so that it can be released under another policy.
#[inline]
fn hold(asked: &Asked<'_>, decided: Decided<'_>) -> Option<HeldPermit> {
    decided.decision.permit().map(|id| HeldPermit {
        rule: asked.rule.name.clone(),
        key: asked.key.clone(),
        limit: *asked.limit(),
        id,
        is_local: decided.by == DecidedBy::Local,
    })
}
