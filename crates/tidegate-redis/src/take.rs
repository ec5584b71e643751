//! Takes all or none: in one script where one server has all the keys, else by taking and giving back.
//!
//! ```text
//!   one script's worth, one slot   -> one script decides
//!   one script's worth, more slots -> a script for each slot, all at once; if one denies, the others are given back
//!   more than that                 -> all are looked at, script by script; only if all pass they are taken, one script
//!                                     after the other; if one denies after all, those before it are given back
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate::{
    Adjusted, Answer, Ask, Cost, Decision, Decisions, OpenReceipt, State, StoreError, Subject, Timestamp,
    TrackedDecisions, Verdict,
};

use crate::exchange::Question;
use crate::fault::Fault;
use crate::refusals::Era;
use crate::script::{self, Taken};
use crate::store::Inner;
use crate::topology::Seat;

/// How many limits one script decides, and how many are given back at once: a script stops everybody else while it runs.
const MOST_IN_SCRIPT: usize = 128;
/// How many limits may be asked for together.
pub(crate) const MOST_TOGETHER: usize = 4096;

/// Asks of one slot that one script decides, by their places among all.
type Group = Vec<usize>;

/// What became of a group, and what each of its takes has to be given back with.
struct Outcome {
    group: Group,
    decisions: Vec<Decision>,
    taken: Vec<Option<Taken>>,
    /// By which connection it was asked.
    seat: Option<Seat>,
}

impl Inner {
    pub(crate) fn take<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> Answer<'a, Decisions> {
        if asks.is_empty() {
            return Answer::ready(Vec::new().into());
        }
        if asks.len() > MOST_TOGETHER {
            let count = asks.len();
            return Answer::later(async move {
                Err(StoreError::unfit(format!(
                    "{count} limits are too many for one request; ask for at most {MOST_TOGETHER} together"
                )))
            });
        }
        let (refused, eras) = self.certain(asks);
        if let Some(refused) = refused {
            self.counts.cached.add();
            return Answer::ready(refused.remembered());
        }
        Answer::later(async move {
            let (decisions, _) = self.take_there(asks, false).await?;
            self.remember(asks, &decisions, &eras);
            Ok(decisions.into())
        })
    }

    /// Takes like [`Inner::take`], with a receipt for each take.
    pub(crate) fn take_tracked<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> Answer<'a, TrackedDecisions> {
        let (refused, eras) = self.certain(asks);
        if asks.is_empty() || asks.len() > MOST_TOGETHER || refused.is_some() {
            let taken = self.take(asks);
            return Answer::later(async move { taken.await.map(TrackedDecisions::without_receipts) });
        }
        Answer::later(async move {
            let (decisions, proofs) = self.take_there(asks, true).await?;
            self.remember(asks, &decisions, &eras);
            let proofs = proofs.into_iter().zip(asks);
            let receipts = proofs.map(|(proof, (_, ask))| Some(OpenReceipt::remote(ask.cost, proof?)));
            Ok(TrackedDecisions { decisions: decisions.into(), receipts: receipts.collect() })
        })
    }

    /// Gives units of one take back, as far as they are still owed and the server that took them is still there.
    pub(crate) async fn refund(
        &self,
        subject: Subject<'_>,
        receipt: &mut OpenReceipt,
        cost: Cost,
    ) -> Result<Adjusted, StoreError> {
        let Some(units) = receipt.use_up(cost) else { return Ok(Adjusted::Capped) };
        let Some(proof) = receipt.proof_mut::<TakeProof>() else { return Ok(Adjusted::Capped) };
        // Another server, or the same one after a restart, may not remember the take, and would forgive that of another.
        if proof.seat.is_none() || self.seat(&[(subject, Ask::ONE)]) != proof.seat {
            return Ok(Adjusted::Capped);
        }
        let call = script::refund(subject, (&proof.taken, units), self.prefix(), self.time());
        let call = call.map_err(|unsupported| StoreError::unfit(unsupported.to_string()))?;
        proof.taken.use_up(subject.limit, units);
        let Some(call) = call else { return Ok(Adjusted::Capped) };
        // Before it too: a caller that drops this does not come behind it.
        self.forget(&subject);
        let answer = self.ask(Question::Run(Arc::new(call))).await;
        self.forget(&subject);
        let adjusted = script::read_adjust(answer?).map_err(|error| Fault::Unreadable(error.to_string()))?;
        Ok(if units == cost { adjusted } else { Adjusted::Capped })
    }

    /// A refusal that needs nobody to be asked. Of those who would not refuse, nothing is known.
    fn certain(&self, asks: &[(Subject<'_>, Ask)]) -> (Option<Decisions>, Vec<(Vec<u8>, Era)>) {
        let Some(refusals) = &self.refusals else { return (None, Vec::new()) };
        let mut is_refused = false;
        let mut eras = Vec::with_capacity(asks.len());
        let known: Vec<_> = asks
            .iter()
            .map(|(subject, ask)| {
                let name = script::state_key(self.prefix(), subject);
                let (refused, era) = refusals.certain(&name, subject.limit, *ask);
                is_refused |= refused.is_some();
                eras.push((name, era));
                refused
            })
            .collect();
        let untouched = |(subject, ask): &(Subject<'_>, Ask)| {
            subject.limit.peek(&State::default(), Timestamp::EPOCH, *ask)
        };
        let decisions = || known.iter().zip(asks).map(|(known, ask)| known.unwrap_or_else(|| untouched(ask)));
        (is_refused.then(|| decisions().collect::<Vec<_>>().into()), eras)
    }

    fn remember(&self, asks: &[(Subject<'_>, Ask)], decisions: &[Decision], eras: &[(Vec<u8>, Era)]) {
        let Some(refusals) = &self.refusals else { return };
        for (((subject, ask), decision), (name, era)) in asks.iter().zip(decisions).zip(eras) {
            refusals.note(name, (subject.limit, *ask), (decision, *era));
        }
    }

    /// What is decided there, and what each take can be given back with if that `is_tracked`.
    async fn take_there(&self, asks: &[(Subject<'_>, Ask)], is_tracked: bool) -> Result<Told, StoreError> {
        match &*self.groups(asks)? {
            [] | [_] => {
                let outcome = self.take_group((0..asks.len()).collect(), (asks, is_tracked)).await?;
                let proofs = if is_tracked { proofs(std::slice::from_ref(&outcome)) } else { Vec::new() };
                Ok((outcome.decisions, proofs))
            }
            groups if asks.len() <= MOST_IN_SCRIPT => self.take_at_once(groups, asks).await,
            groups => self.take_in_turn(groups, asks).await,
        }
    }

    /// The asks of each script: of one slot, and not too many.
    fn groups(&self, asks: &[(Subject<'_>, Ask)]) -> Result<Vec<Group>, Fault> {
        let mut by_slot: BTreeMap<u16, Group> = BTreeMap::new();
        if asks.len() < 2 || !self.running()?.exchange.topology.has_slots() {
            by_slot.insert(0, (0..asks.len()).collect());
        } else {
            for (place, (subject, _)) in asks.iter().enumerate() {
                let slot = script::slot(&script::state_key(self.prefix(), subject));
                by_slot.entry(slot).or_default().push(place);
            }
        }
        Ok(by_slot.values().flat_map(|group| group.chunks(MOST_IN_SCRIPT)).map(<[usize]>::to_vec).collect())
    }

    async fn take_group(
        &self,
        group: Group,
        (asks, is_tracked): (&[(Subject<'_>, Ask)], bool),
    ) -> Result<Outcome, StoreError> {
        let own: Vec<_> = group.iter().map(|place| asks[*place]).collect();
        let call = script::take(&own, self.prefix(), self.time());
        let call = call.map_err(|unsupported| StoreError::unfit(unsupported.to_string()))?;
        let may_go_back = is_tracked || group.len() < asks.len();
        let seat = may_go_back.then(|| self.seat(&own)).flatten();
        let answer = self.ask(Question::Run(Arc::new(call))).await?;
        let (decisions, taken) =
            script::read_take(answer, &own).map_err(|error| Fault::Unreadable(error.to_string()))?;
        Ok(Outcome { group, decisions, taken, seat })
    }

    /// What each of a group would say by itself.
    async fn look_at(&self, group: &Group, asks: &[(Subject<'_>, Ask)]) -> Result<Vec<Decision>, StoreError> {
        let own: Vec<_> = group.iter().map(|place| asks[*place]).collect();
        let call = script::peek(&own, self.prefix(), self.time());
        let call = call.map_err(|unsupported| StoreError::unfit(unsupported.to_string()))?;
        let answer = self.ask(Question::Run(Arc::new(call))).await?;
        Ok(script::read_peek(answer, &own).map_err(|error| Fault::Unreadable(error.to_string()))?)
    }

    /// Takes each group by itself, all at once. Unless all of them let pass, those who did get back what they gave.
    async fn take_at_once(&self, groups: &[Group], asks: &[(Subject<'_>, Ask)]) -> Result<Told, StoreError> {
        let taking = groups.iter().map(|group| self.take_group(group.clone(), (asks, true)));
        let mut outcomes = Vec::with_capacity(groups.len());
        let mut failed: Option<StoreError> = None;
        for outcome in crate::join::join_all(taking).await {
            match outcome {
                Ok(outcome) => outcomes.push(outcome),
                // That something may have been spent weighs more than that something was not.
                Err(error) if failed.as_ref().is_none_or(StoreError::is_retryable) => failed = Some(error),
                Err(_) => {}
            }
        }
        let is_given_back = failed.is_some() || !outcomes.iter().all(Outcome::is_allowed);
        if is_given_back {
            self.give_back_all(&outcomes, asks).await;
        }
        match failed {
            Some(error) => Err(error),
            None => {
                let proofs = if is_given_back { Vec::new() } else { proofs(&outcomes) };
                Ok((told(outcomes, Vec::new(), (asks, is_given_back)), proofs))
            }
        }
    }

    /// Takes one group after the other, so that others are asked in between, once all were seen to pass. A denial is
    /// found by looking, so it spends nothing; only if others come in between, groups before it are given back.
    async fn take_in_turn(&self, groups: &[Group], asks: &[(Subject<'_>, Ask)]) -> Result<Told, StoreError> {
        let (mut seen, mut denying) = (Vec::with_capacity(asks.len()), Vec::new());
        for group in groups {
            let decisions = self.look_at(group, asks).await?;
            if !decisions.iter().all(Decision::is_allowed) {
                denying.push(group.clone());
            }
            seen.extend(group.iter().copied().zip(decisions));
        }
        // A limit that denies has to see it: it may count denials.
        let is_denied = !denying.is_empty();
        let mut outcomes = Vec::new();
        let mut failed = None;
        for group in if is_denied { &*denying } else { groups } {
            match self.take_group(group.clone(), (asks, true)).await {
                Ok(outcome) => outcomes.push(outcome),
                // What was seen stands.
                Err(_) if is_denied => {}
                Err(error) => failed = Some(error),
            }
            let is_over = failed.is_some() || !outcomes.last().is_none_or(Outcome::is_allowed);
            if is_over && !is_denied {
                break;
            }
        }
        let is_given_back = is_denied || failed.is_some() || !outcomes.iter().all(Outcome::is_allowed);
        if is_given_back {
            self.give_back_all(&outcomes, asks).await;
        }
        match failed {
            Some(error) => Err(error),
            None => {
                let proofs = if is_given_back { Vec::new() } else { proofs(&outcomes) };
                Ok((told(outcomes, seen, (asks, is_given_back)), proofs))
            }
        }
    }

    /// Gives back what was taken, as far as the server that took it is still there.
    async fn give_back_all(&self, outcomes: &[Outcome], asks: &[(Subject<'_>, Ask)]) {
        // Another server, or the same one after a restart, may not remember the take, and would forgive somebody else's.
        let is_there = |outcome: &Outcome| {
            let own: Vec<_> = outcome.group.iter().map(|place| asks[*place]).collect();
            outcome.seat.is_some() && self.seat(&own) == outcome.seat
        };
        let spent = outcomes.iter().filter(|outcome| outcome.is_allowed() && is_there(outcome));
        let takes = spent.flat_map(|outcome| outcome.group.iter().zip(&outcome.taken));
        let takes: Vec<_> = takes.filter_map(|(place, taken)| Some((*place, taken.as_ref()?))).collect();
        // What cannot be given back stays spent: that is too little for somebody, never too much.
        for some in takes.chunks(MOST_IN_SCRIPT) {
            let back = some.iter().map(|(place, taken)| self.give_back(asks[*place].0, taken));
            crate::join::join_all(back).await;
        }
    }

    /// The connection by which these asks, which share a slot, would be asked now.
    fn seat(&self, asks: &[(Subject<'_>, Ask)]) -> Option<Seat> {
        let (subject, _) = asks.first()?;
        let slot = script::slot(&script::state_key(self.prefix(), subject));
        self.running().ok()?.exchange.topology.seat(slot)
    }

    async fn give_back(&self, subject: Subject<'_>, taken: &Taken) {
        self.counts.given_back.add();
        if let Ok(call) = script::give_back(subject, taken, self.prefix(), self.time()) {
            // There is nobody to tell, and nothing else to be done.
            let _ = self.ask(Question::Run(Arc::new(call))).await;
            // Whoever was refused meanwhile was so because of this.
            self.forget(&subject);
        }
    }
}

/// What is decided about each ask, and what its take can be given back with.
type Told = (Vec<Decision>, Vec<Option<TakeProof>>);

/// What a take can be refunded with: where its units are, and by which connection it was asked.
#[derive(Debug)]
struct TakeProof {
    taken: Taken,
    seat: Option<Seat>,
}

/// The proof of each take, in the order of the asks.
fn proofs(outcomes: &[Outcome]) -> Vec<Option<TakeProof>> {
    let each = outcomes.iter().flat_map(|outcome| {
        let proof = |taken: &Option<Taken>| Some(TakeProof { taken: (*taken)?, seat: outcome.seat.clone() });
        outcome.group.iter().copied().zip(outcome.taken.iter().map(proof))
    });
    each.collect::<BTreeMap<_, _>>().into_values().collect()
}

impl Outcome {
    fn is_allowed(&self) -> bool {
        self.decisions.iter().all(Decision::is_allowed)
    }
}

/// What is decided about each: as it was taken, else as it was seen. What was given back is told without what it took.
fn told(
    outcomes: Vec<Outcome>,
    seen: Vec<(usize, Decision)>,
    (asks, is_given_back): (&[(Subject<'_>, Ask)], bool),
) -> Vec<Decision> {
    let mut placed: BTreeMap<usize, Decision> = seen.into_iter().collect();
    for outcome in outcomes {
        let is_allowed = outcome.is_allowed();
        for (place, decision) in outcome.group.into_iter().zip(outcome.decisions) {
            // A group that passes after all was seen to deny, and that is what stands.
            if is_given_back && is_allowed && placed.contains_key(&place) {
                continue;
            }
            let decision = match decision.verdict_in_ticks() {
                Verdict::Allowed { .. } if is_given_back && is_allowed => {
                    given_back(&decision, asks[place].1)
                }
                _ => decision,
            };
            placed.insert(place, decision);
        }
    }
    placed.into_values().collect()
}

/// A decision to let pass, without what it took.
fn given_back(decision: &Decision, ask: Ask) -> Decision {
    let remaining = decision.remaining().saturating_add(ask.cost.get()).min(decision.limit());
    let (verdict, reset_after) = (decision.verdict_in_ticks(), decision.reset_after_in_ticks());
    Decision::elsewhere(verdict, decision.limit(), remaining, reset_after)
}
