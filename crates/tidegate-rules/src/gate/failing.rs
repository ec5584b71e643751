//! What is decided while the store fails: each rule goes on as it says in `on_store_failure`.
//!
//! ```text
//!   one that is closed, or open and too small for the cost -> denied, and nothing is spent
//!   else -> those that are local, all or none, by this node's share of their limits; those that are open allow
//! ```
//!
//! [`fallback`] has the decisions. Nothing is measured meanwhile: shadows and candidates would count what no other node counts.

use tidegate::{Ask, Decision, Decisions, Limit, OpenReceipt, Subject, Ticks, TrackedDecisions, Verdict};

use super::admission::{Admission, DecidedBy, HeldPermit, Outcome};
use super::admit::{hold, limited};
use super::bill::Entry;
use super::elsewhere::Elsewhere;
use super::together::Together;
use super::visit::{Asked, Visit};
use super::{Gate, InForce};
use crate::fallback;
use crate::rule::{Mode, OnStoreFailure};

/// What a take can be refunded by, if by anything.
type Receipt = Option<OpenReceipt>;

/// What is said about one rule of a request.
#[derive(Clone, Copy, Debug)]
struct Said {
    decision: Decision,
    by: DecidedBy,
    /// By which limit.
    limit: Limit,
}

impl Said {
    fn is_allowed(&self) -> bool {
        self.decision.is_allowed()
    }

    /// Whether a limit allows that counts nothing.
    fn is_uncounted(&self) -> bool {
        self.by == DecidedBy::Open && self.is_allowed()
    }

    /// What this node took from its own share, each with the next receipt.
    fn taken(&self, asked: &Asked<'_>, receipts: &mut impl Iterator<Item = Receipt>) -> Option<Entry> {
        let receipt = if self.by == DecidedBy::Local { receipts.next()? } else { return None };
        Some(Entry { is_local: true, ..Entry::of(asked, &self.decision, receipt)? })
    }
}

impl Gate {
    /// The answers to several requests that stand or fall together, without the store.
    pub(super) fn admit_without_store(
        &self,
        force: &InForce,
        visits: &[Visit<'_>],
        elsewhere: &Elsewhere,
        bill: &mut Option<Vec<Entry>>,
    ) -> Vec<Admission> {
        let (said, receipts) = elsewhere.say(visits, bill.is_some());
        let mut receipts = receipts.into_iter();
        let is_refused = said.iter().any(|said| !said.is_allowed());
        let mut rest = &*said;
        let mut admissions = Vec::with_capacity(visits.len());
        for visit in visits {
            let (own, others) = rest.split_at(visit.enforced.len());
            rest = others;
            if let (Some(bill), false) = (&mut *bill, is_refused) {
                let taken = |(asked, said): (&Asked<'_>, &Said)| said.taken(asked, &mut receipts);
                bill.extend(visit.enforced.iter().zip(own).filter_map(taken));
            }
            admissions.push(self.conclude_without_store(force, visit, own, is_refused));
        }
        admissions
    }

    /// Counts what was said, and makes the answer.
    fn conclude_without_store(
        &self,
        force: &InForce,
        visit: &Visit<'_>,
        own: &[Said],
        is_refused: bool,
    ) -> Admission {
        let mut permits = Vec::new();
        for (asked, said) in visit.enforced.iter().zip(own) {
            if !is_refused || !said.is_allowed() {
                self.count_said(force, asked, said);
                let permit = hold(asked, &said.decision);
                permits.extend(permit.map(|permit| HeldPermit { is_local: true, ..permit }));
            }
        }
        if !is_refused {
            force.leave_unmeasured(visit);
            visit.refused_in_shadow.iter().for_each(|id| force.meter(*id).fixed(Mode::Shadow, false));
        }
        if own.is_empty() {
            return self.without_limits(force, visit, is_refused);
        }
        let (outcome, decided_by) = binding(visit, own);
        let admission = Admission { outcome, decided_by, permits };
        if !is_refused || !admission.is_allowed() {
            self.inner.failures.decided.decided(decided_by, admission.is_allowed());
        }
        admission
    }

    fn count_said(&self, force: &InForce, asked: &Asked<'_>, said: &Said) {
        let meter = force.meter(asked.id);
        meter.decided_without_store(said.by, said.is_allowed());
        match said.by {
            DecidedBy::Local => self.count(force, asked, &said.decision),
            // No limit has counted, so nothing is noted about the key, nor how near the limit is.
            _ if said.is_uncounted() => meter.fixed(asked.mode, true),
            _ => meter.decided(asked.mode, &said.decision),
        }
    }
}

impl Elsewhere {
    /// What is said about each rule of each request; with the receipts of what this node took, if they are wanted.
    fn say(&self, visits: &[Visit<'_>], is_tracked: bool) -> (Vec<Said>, Vec<Receipt>) {
        let asked: Vec<_> = visits.iter().flat_map(|visit| &visit.enforced).collect();
        // Requests of one key under one rule are one ask of what both weigh, also where no store counts them.
        let asks = Together::of(visits, Asked::subject).asks_of_each();
        let said: Vec<_> = asked.iter().zip(&asks).map(|(asked, ask)| without_count(asked, *ask)).collect();
        let is_denied = said.iter().flatten().any(|said| !said.is_allowed());
        let (shares, receipts) = self.decide_by_shares(visits, (is_denied, is_tracked));
        let mut shares = shares.into_iter();
        let mut by_share = |asked: &Asked<'_>, ask: Ask| {
            let (share, decision) =
                shares.next().unwrap_or_else(|| unreachable!("every local rule has a share"));
            let decision = fallback::local((asked.limit(), ask), (&share, decision));
            Said { decision, by: DecidedBy::Local, limit: share }
        };
        let each = said.into_iter().zip(asked.iter().zip(asks));
        let each = each.map(|(said, (asked, ask))| said.unwrap_or_else(|| by_share(asked, ask)));
        (each.collect(), receipts)
    }

    /// The share of each local rule of each request, and its decision; nothing is spent if another rule denies.
    fn decide_by_shares(
        &self,
        visits: &[Visit<'_>],
        (is_denied, is_tracked): (bool, bool),
    ) -> (Vec<(Limit, Decision)>, Vec<Receipt>) {
        let parts: Vec<_> = visits.iter().map(local_part).collect();
        let together = Together::of(&parts, |asked| asked.subject_of_share(self.nodes));
        let (decisions, receipts) = if is_denied {
            let peek = |(subject, ask): &(Subject<'_>, Ask)| self.local.peek(*subject, *ask);
            (together.asks.iter().map(peek).collect(), Vec::new())
        } else if is_tracked {
            let TrackedDecisions { decisions, receipts } = self.local.take_tracked(&together.asks);
            (decisions.each().to_vec(), receipts)
        } else {
            (self.local.take_all(&together.asks).each().to_vec(), Vec::new())
        };
        let each = parts.iter().flat_map(|visit| &visit.enforced);
        let limits = each.map(|asked| *asked.limit.share(self.nodes).limit());
        (limits.zip(together.told(&decisions)).collect(), receipts)
    }
}

/// What is said about a rule that counts nothing while the store fails; nothing if it is local.
fn without_count(asked: &Asked<'_>, ask: Ask) -> Option<Said> {
    let (by, decision) = match asked.on_store_failure() {
        OnStoreFailure::Open => (DecidedBy::Open, fallback::open(asked.limit(), ask)),
        OnStoreFailure::Closed => (DecidedBy::Closed, fallback::closed(asked.limit(), ask)),
        OnStoreFailure::Local => return None,
    };
    Some(Said { decision, by, limit: *asked.limit() })
}

/// What a request asks of this node alone: the rules that are local.
fn local_part<'p>(visit: &Visit<'p>) -> Visit<'p> {
    let is_local = |asked: &&Asked<'p>| asked.on_store_failure() == OnStoreFailure::Local;
    Visit { enforced: visit.enforced.iter().filter(is_local).cloned().collect(), ..Visit::default() }
}

/// The rule that an answer speaks of, and who decided about it: one that counts nothing only if there is no other.
fn binding(visit: &Visit<'_>, own: &[Said]) -> (Outcome, DecidedBy) {
    let decisions: Vec<_> = own.iter().map(|said| said.decision).collect();
    let places: Vec<_> = (0..own.len()).filter(|place| !own[*place].is_uncounted()).collect();
    let counted: Vec<_> = places.iter().map(|place| decisions[*place]).collect();
    match Decisions::binding_of(&counted) {
        Some(among) => {
            let place = places[among];
            (limited((&visit.enforced[place], &own[place].limit), place, &decisions), own[place].by)
        }
        None => {
            let delays = decisions.iter().map(|decision| match decision.verdict_in_ticks() {
                Verdict::Allowed { delay } => delay,
                _ => Ticks::ZERO,
            });
            let delay = delays.max().unwrap_or(Ticks::ZERO);
            (Outcome::Open { rule: visit.enforced[0].rule.name.clone(), delay }, DecidedBy::Open)
        }
    }
}
