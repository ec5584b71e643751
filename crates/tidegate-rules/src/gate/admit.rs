//! Decides about requests: whoever is obeyed first, then those who are only measured.

use std::sync::atomic::Ordering;

#[cfg(doc)]
use tidegate::Store;
use tidegate::{
    Ask, Decision, Decisions, Limit, OpenReceipt, StoreError, Subject, Ticks, Timestamp, TrackedDecisions,
    Verdict,
};

use super::admission::{Admission, Binding, DecidedBy, HeldPermit, Outcome};
use super::batch::Moment;
use super::bill::Entry;
use super::together::Together;
use super::visit::{Asked, Circumstances, Visit};
use super::{Gate, InForce, at_once};
use crate::attributes::Attributes;
use crate::rule::{Fixed, Mode};
use crate::top::Outcome as Asking;

/// What is asked, and the date by which it is answered.
#[derive(Clone, Copy)]
struct Request<'a> {
    attributes: &'a Attributes<'a>,
    now: &'a (dyn Fn() -> i64 + Sync),
    at: Option<Timestamp>,
}

/// What comes of those who are only measured.
pub(super) struct Measured<'g> {
    gate: &'g Gate,
    permits: Vec<HeldPermit>,
    /// The places that were given so far. Whoever drops a request before it is answered does not hear of them, so they
    /// are given back.
    unclaimed: Vec<HeldPermit>,
    /// The store has failed: nobody waits for it again only to measure.
    has_failed: bool,
    /// What was taken, of those who are obeyed as well, if anybody wants to know.
    pub(super) bill: Option<Vec<Entry>>,
    /// The receipts of those who are obeyed, in their order.
    receipts: std::vec::IntoIter<Option<OpenReceipt>>,
}

impl<'g> Measured<'g> {
    pub(super) fn new(gate: &'g Gate) -> Measured<'g> {
        let (permits, unclaimed) = (Vec::new(), Vec::new());
        Measured { gate, permits, unclaimed, has_failed: false, bill: None, receipts: Vec::new().into_iter() }
    }

    /// With a bill of what is taken.
    pub(super) fn billed(gate: &'g Gate) -> Measured<'g> {
        let mut measured = Measured::new(gate);
        measured.bill = Some(Vec::new());
        measured
    }

    fn note(&mut self, asked: &Asked<'_>, decision: &Decision, (mode, receipt): (Mode, Option<OpenReceipt>)) {
        if let Some(bill) = &mut self.bill {
            bill.extend(Entry::of(asked, decision, receipt).map(|entry| Entry { mode, ..entry }));
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
    /// If the store fails, or more limits apply than it decides together ([`Store::most_together`]), each rule goes on
    /// as it says in `on_store_failure`, and [`Admission::decided_by`] tells so. An error is only that a remote store
    /// does not answer at once where that was asked for.
    /// Whoever drops this before it is answered may have spent, once; places in flight are given back.
    pub async fn admit(&self, attributes: &Attributes<'_>) -> Result<Admission, StoreError> {
        let (force, request) = (self.in_force(), std::slice::from_ref(attributes));
        // One request reads the clock as it goes: nothing else has to be decided at its instant.
        self.decide(&force, request, &mut Measured::new(self), &Moment::default()).await.map(only)
    }

    /// Decides about several requests that stand or fall together: all are allowed, or nothing was spent. After a
    /// refusal each answer says what its own rules thought of its own request; where one is forbidden, no limit was
    /// asked. A store in memory decides about all of them at one instant.
    pub async fn admit_all(&self, requests: &[Attributes<'_>]) -> Result<Vec<Admission>, StoreError> {
        let force = self.in_force();
        let moment = Moment::of(&force);
        self.decide(&force, requests, &mut Measured::new(self), &moment).await
    }

    pub(super) async fn decide(
        &self,
        force: &InForce,
        requests: &[Attributes<'_>],
        measured: &mut Measured<'_>,
        moment: &Moment,
    ) -> Result<Vec<Admission>, StoreError> {
        // One date for all rules, also if it changes meanwhile.
        let now = || moment.date(self);
        let around = Circumstances { overrides: &self.inner.overrides, now: &now };
        let visits: Vec<_> = requests.iter().map(|request| Visit::new(force, request, &around)).collect();
        let is_forbidden = |visit: &Visit<'_>| matches!(visit.fixed, Some((_, Fixed::Deny)));
        if visits.iter().any(is_forbidden) {
            return Ok(visits.iter().map(|visit| force.unasked(visit, is_forbidden(visit))).collect());
        }
        let together = Together::of(&visits, Asked::subject);
        let decided = match &*together.asks {
            [] => None,
            asks => match (self.take(force, asks, moment.at, measured).await, force.store.elsewhere()) {
                (Ok(TrackedDecisions { decisions, receipts }), _) => {
                    measured.receipts = receipts.into_iter();
                    Some(decisions)
                }
                (Err(_), Some(elsewhere)) => {
                    return Ok(self.admit_without_store(force, &visits, elsewhere, &mut measured.bill));
                }
                (Err(error), None) => return Err(error),
            },
        };
        let each = decided.as_ref().map_or(&[][..], Decisions::each);
        let refused = each.iter().filter(|decision| !decision.is_allowed()).count();
        let each = together.told(each);
        let asked = visits.iter().flat_map(|visit| &visit.enforced);
        measured.unclaimed.extend(asked.zip(&each).filter_map(|(asked, decision)| hold(asked, decision)));
        let mut rest = &*each;
        let mut admissions = Vec::with_capacity(requests.len());
        for (visit, request) in visits.iter().zip(requests) {
            let (own, others) = rest.split_at(visit.enforced.len());
            rest = others;
            let request = Request { attributes: request, now: &now, at: moment.at };
            admissions.push(self.conclude(force, visit, (request, own, refused), measured).await);
        }
        measured.unclaimed.clear();
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

    /// What the store says, with receipts if there is a bill; whether it answers is noted. A store that has not decided
    /// about each ask has not answered.
    async fn take(
        &self,
        force: &InForce,
        asks: &[(Subject<'_>, Ask)],
        at: Option<Timestamp>,
        measured: &Measured<'_>,
    ) -> Result<TrackedDecisions, StoreError> {
        let answer = match measured.bill {
            Some(_) => force.store.store().take_tracked(asks).await,
            None => force.store.take(asks, at).await.map(TrackedDecisions::without_receipts),
        };
        let answer = answer.and_then(|taken| {
            let (decided, asked) = (taken.decisions.each().len(), asks.len());
            let missing = || format!("the store decided about {decided} of {asked} limits");
            if decided == asked { Ok(taken) } else { Err(StoreError::outcome_unknown(missing())) }
        });
        match &answer {
            Ok(taken) if taken.decisions.is_remembered() => {}
            Ok(_) => self.inner.failures.ended(),
            Err(error) => self.inner.failures.note(error, self.inner.calendar.now()),
        }
        answer
    }

    /// Counts what was decided, asks those who are not obeyed, and makes the answer.
    async fn conclude(
        &self,
        force: &InForce,
        visit: &Visit<'_>,
        (request, own, refused): (Request<'_>, &[Decision], usize),
        measured: &mut Measured<'_>,
    ) -> Admission {
        for (asked, decision) in visit.enforced.iter().zip(own) {
            if refused == 0 || !decision.is_allowed() {
                self.count(force, asked, decision);
                measured.permits.extend(hold(asked, decision));
            }
            if refused == 0 {
                let receipt = measured.receipts.next().flatten();
                measured.note(asked, decision, (Mode::Enforce, receipt));
            }
            let is_only = !decision.is_allowed() && refused == 1;
            if refused == 0 || is_only {
                self.ask_candidates(force, asked, (request, decision.is_allowed()), measured).await;
            }
        }
        if refused == 0 {
            for asked in &visit.shadows {
                match self.ask_alone(force, (asked, request.at), measured).await {
                    Some(decision) => {
                        let said = (request, decision.is_allowed());
                        self.ask_candidates(force, asked, said, measured).await;
                    }
                    None => force.leave_candidates_unmeasured(asked),
                }
            }
            visit.refused_in_shadow.iter().for_each(|id| force.meter(*id).fixed(Mode::Shadow, false));
        }
        let permits = std::mem::take(&mut measured.permits);
        if own.is_empty() {
            return Admission { permits, ..self.without_limits(force, visit, refused > 0) };
        }
        let place = Decisions::binding_of(own).unwrap_or(0);
        let asked = &visit.enforced[place];
        let outcome = limited((asked, asked.limit()), place, own);
        Admission { outcome, decided_by: force.store.decided_by(), permits }
    }

    /// The answer to a request that no limit had to be asked about, though others may have refused one beside it.
    pub(super) fn without_limits(&self, force: &InForce, visit: &Visit<'_>, is_refused: bool) -> Admission {
        let answer = force.unasked(visit, !is_refused);
        let is_measured = !visit.shadows.is_empty() || !visit.refused_in_shadow.is_empty();
        if !is_refused && !is_measured && matches!(answer.outcome, Outcome::Free) {
            self.inner.free.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    /// What a rule that is not obeyed says to a request.
    async fn ask_alone(
        &self,
        force: &InForce,
        (asked, at): (&Asked<'_>, Option<Timestamp>),
        measured: &mut Measured<'_>,
    ) -> Option<Decision> {
        let ask = [asked.subject()];
        let answer =
            if measured.has_failed { None } else { Some(self.take(force, &ask, at, measured).await) };
        let Some(Ok(TrackedDecisions { decisions, mut receipts })) = answer else {
            // Whoever is only measured stops nobody, not even by failing.
            measured.has_failed = true;
            force.meter(asked.id).unmeasured();
            return None;
        };
        let decision = *decisions.each().first()?;
        self.count(force, asked, &decision);
        measured.permits.extend(hold(asked, &decision));
        measured.unclaimed.extend(hold(asked, &decision));
        measured.note(asked, &decision, (Mode::Shadow, receipts.pop().flatten()));
        Some(decision)
    }

    async fn ask_candidates(
        &self,
        force: &InForce,
        asked: &Asked<'_>,
        (request, is_allowed): (Request<'_>, bool),
        measured: &mut Measured<'_>,
    ) {
        for id in &asked.limited.candidates {
            let Request { attributes, now, at } = request;
            let Some(candidate) = asked.of_candidate(force, *id, attributes, now) else { continue };
            if let Some(decision) = self.ask_alone(force, (&candidate, at), measured).await {
                force.meter(*id).compared(decision.is_allowed(), is_allowed);
            }
        }
    }

    pub(super) fn count(&self, force: &InForce, asked: &Asked<'_>, decision: &Decision) {
        force.meter(asked.id).decided(asked.mode, decision);
        let asking = if decision.is_allowed() { Asking::Allowed } else { Asking::Refused };
        self.inner.top.note(|| self.inner.now(), &asked.rule.name, &asked.key, asking);
    }
}

impl InForce {
    /// The answer to a request that no limit was asked about.
    fn unasked(&self, visit: &Visit<'_>, is_counted: bool) -> Admission {
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
        Admission::without_limits(outcome)
    }

    /// Nobody asks whoever is only measured about this request.
    pub(super) fn leave_unmeasured(&self, visit: &Visit<'_>) {
        visit.shadows.iter().for_each(|asked| self.meter(asked.id).unmeasured());
        visit.enforced.iter().chain(&visit.shadows).for_each(|asked| self.leave_candidates_unmeasured(asked));
    }

    fn leave_candidates_unmeasured(&self, asked: &Asked<'_>) {
        asked.limited.candidates.iter().for_each(|id| self.meter(*id).unmeasured());
    }
}

/// The answer to the only request there was.
pub(super) fn only(mut admissions: Vec<Admission>) -> Admission {
    // Whatever stood here in its place would allow or deny by accident.
    admissions.pop().unwrap_or_else(|| unreachable!("every request that is decided about has an answer"))
}

impl Admission {
    pub(super) fn without_limits(outcome: Outcome) -> Admission {
        Admission { outcome, decided_by: DecidedBy::Memory, permits: Vec::new() }
    }
}

/// The answer that speaks of one limit, of all nodes or of this one: that at this place among all that decided.
pub(super) fn limited((asked, limit): (&Asked<'_>, &Limit), place: usize, own: &[Decision]) -> Outcome {
    let delays = own.iter().map(|decision| match decision.verdict_in_ticks() {
        Verdict::Allowed { delay } => delay,
        _ => Ticks::ZERO,
    });
    Outcome::Limited(Binding {
        rule: asked.rule.name.clone(),
        limit: *limit,
        cost: asked.ask.cost.get(),
        decision: own[place],
        delay: delays.max().unwrap_or(Ticks::ZERO),
        is_allowed: own.iter().all(Decision::is_allowed),
    })
}

/// The place in flight that was taken, if it was one.
pub(super) fn hold(asked: &Asked<'_>, decision: &Decision) -> Option<HeldPermit> {
    decision.permit().map(|id| HeldPermit {
        rule: asked.rule.name.clone(),
        key: asked.key.clone(),
        limit: *asked.limit(),
        id,
        is_local: false,
    })
}
