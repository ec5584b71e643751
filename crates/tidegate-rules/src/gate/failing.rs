//! What is decided while the store fails: each rule goes on as it says in `on_store_failure`.
//!
//! ```text
//!   one that is closed -> refused, and nothing is spent
//!   else               -> those that are local, all or none, by this node's share of their limits
//!                         those that are open let it pass
//! ```
//!
//! Nothing is measured meanwhile: shadows and candidates would count what no other node counts.

use std::num::NonZeroU64;
use std::time::Duration;

use tidegate::{Ask, Decision, Decisions, Limit, State, Ticks, Timestamp, Verdict};

use super::admission::{Admission, DecidedBy, HeldPermit, Outcome};
use super::admit::{hold, limited};
use super::bill::Entry;
use super::elsewhere::Elsewhere;
use super::together::Together;
use super::visit::{Asked, Visit};
use super::{Gate, InForce};
use crate::rule::{Mode, OnStoreFailure};

/// When to try again after a refusal that no limit has decided: by then the store may answer again, and will be asked.
const RETRY_AFTER: Ticks = Ticks::saturating_from(Duration::from_secs(1));

/// What is said about one rule of a request.
#[derive(Clone, Copy, Debug)]
struct Said {
    /// What was decided; nothing if the rule lets everybody pass.
    decision: Option<Decision>,
    by: DecidedBy,
    /// By which limit.
    limit: Limit,
}

impl Said {
    fn is_allowed(&self) -> bool {
        self.decision.is_none_or(|decision| decision.is_allowed())
    }

    /// What this node took from its own share.
    fn taken(&self, asked: &Asked<'_>) -> Option<Entry> {
        let decision = self.decision.filter(|_| self.by == DecidedBy::Local)?;
        Some(Entry { is_local: true, ..Entry::of(asked, &decision)? })
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
        let said = elsewhere.say(visits);
        let is_refused = said.iter().any(|said| !said.is_allowed());
        let mut rest = &*said;
        let mut admissions = Vec::with_capacity(visits.len());
        for visit in visits {
            let (own, others) = rest.split_at(visit.enforced.len());
            rest = others;
            if let (Some(bill), false) = (&mut *bill, is_refused) {
                bill.extend(visit.enforced.iter().zip(own).filter_map(|(asked, said)| said.taken(asked)));
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
                let permit = said.decision.and_then(|decision| hold(asked, &decision));
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
        match (said.by, &said.decision) {
            (DecidedBy::Local, Some(decision)) => self.count(force, asked, decision),
            // Nobody was asked, so it is nobody's doing: nothing is noted about the key.
            (_, Some(decision)) => meter.decided(asked.mode, decision),
            (_, None) => meter.fixed(asked.mode, true),
        }
    }
}

impl Elsewhere {
    /// What is said about each rule of each request.
    fn say(&self, visits: &[Visit<'_>]) -> Vec<Said> {
        let policies = || visits.iter().flat_map(|visit| &visit.enforced).map(Asked::on_store_failure);
        let shares: Vec<_> = visits.iter().map(|visit| local_part(visit, self.nodes)).collect();
        let together = Together::of(&shares);
        let each: Vec<_> = if policies().any(|policy| policy == OnStoreFailure::Closed) {
            together.asks.iter().map(|(subject, ask)| self.local.peek(*subject, *ask)).collect()
        } else {
            self.local.take_all(&together.asks).each().to_vec()
        };
        let told = together.told(&each);
        let mut local = shares.iter().flat_map(|visit| &visit.enforced).zip(told);
        let asked = visits.iter().flat_map(|visit| &visit.enforced);
        let said = asked.filter_map(|asked| {
            Some(match asked.on_store_failure() {
                OnStoreFailure::Open => Said { decision: None, by: DecidedBy::Open, limit: asked.limit },
                OnStoreFailure::Closed => closed(asked),
                OnStoreFailure::Local => by_share(asked, local.next()?),
            })
        });
        said.collect()
    }
}

/// What a request asks of this node alone: the rules that are local, by their shares.
fn local_part<'p>(visit: &Visit<'p>, nodes: NonZeroU64) -> Visit<'p> {
    let is_local = |asked: &&Asked<'p>| asked.on_store_failure() == OnStoreFailure::Local;
    let of_share = |asked: &Asked<'p>| Asked { limit: asked.limit.shared_among(nodes), ..asked.clone() };
    Visit { enforced: visit.enforced.iter().filter(is_local).map(of_share).collect(), ..Visit::default() }
}

fn closed(asked: &Asked<'_>) -> Said {
    Said {
        decision: Some(at_rest(&asked.limit, asked.ask).put_off(RETRY_AFTER)),
        by: DecidedBy::Closed,
        limit: asked.limit,
    }
}

fn by_share(asked: &Asked<'_>, (share, decision): (&Asked<'_>, Decision)) -> Said {
    let never = |decision: &Decision| decision.verdict_in_ticks() == Verdict::Impossible;
    // What is too much for one node passes when the store is back, unless it is too much for all of them.
    let waits_for_store = never(&decision) && !never(&at_rest(&asked.limit, asked.ask));
    let decision =
        if waits_for_store { at_rest(&share.limit, Ask::ONE).put_off(RETRY_AFTER) } else { decision };
    Said { decision: Some(decision), by: DecidedBy::Local, limit: share.limit }
}

/// What a limit says to somebody who has never asked.
fn at_rest(limit: &Limit, ask: Ask) -> Decision {
    limit.peek(&State::default(), Timestamp::EPOCH, ask)
}

/// The rule that an answer speaks of, and who decided about it: one that lets everybody pass only if there is no other.
fn binding(visit: &Visit<'_>, own: &[Said]) -> (Outcome, DecidedBy) {
    let decided = visit.enforced.iter().zip(own).filter_map(|pair| Some((pair, pair.1.decision?)));
    let (told, decisions): (Vec<_>, Vec<_>) = decided.unzip();
    match Decisions::binding_of(&decisions) {
        Some(place) => {
            let (asked, said) = told[place];
            let asked = Asked { limit: said.limit, ..asked.clone() };
            (limited(&asked, place, &decisions), said.by)
        }
        None => (Outcome::Open { rule: visit.enforced[0].rule.name.clone() }, DecidedBy::Open),
    }
}
