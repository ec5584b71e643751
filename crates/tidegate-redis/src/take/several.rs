//! All or none across several scripts: completed takes are given back if another script denies.
//!
//! Between the take and its return, other requests may be denied by units that come back. So across scripts a request
//! may be denied too early, for about one round trip. It is never allowed too much.

use std::collections::BTreeMap;

use tidegate_core::{Ask, Decision, StoreError, Verdict};
use tidegate_support::join_all;
use tokio::time::Instant;

use super::request::Request;
use super::{Group, MOST_IN_SCRIPT, Outcome, Reported, TakenBid, proofs};
use crate::denial_cache::Lasting;
use crate::limits::Turn;
use crate::script::{self, Bid, Role, TakeRecord, Target};
use crate::store::Inner;

impl Inner {
    /// Groups the bids by script: of one slot, and limited in number. The groups are ordered by slot, and the bids
    /// within a group by their index.
    pub(super) fn groups(&self, bids: &[Bid]) -> Vec<Group> {
        let mut by_slot: BTreeMap<u16, Group> = BTreeMap::new();
        for (place, bid) in bids.iter().enumerate() {
            let slot = if self.has_slots() { script::slot(&bid.target.name) } else { 0 };
            by_slot.entry(slot).or_default().push(place);
        }
        by_slot.values().flat_map(|group| group.chunks(MOST_IN_SCRIPT)).map(<[usize]>::to_vec).collect()
    }

    /// Takes each group on its own, all concurrently. Unless all of them allow, the takes of those that did are given
    /// back. It takes one round trip if all allow, and two otherwise. If a group fails, the others are given back, and
    /// its error is returned.
    pub(super) async fn take_at_once(
        &self,
        groups: &[Group],
        request: &Request<'_>,
        turn: Option<&Turn>,
        due: Instant,
    ) -> Result<Reported, StoreError> {
        let taking = groups.iter().map(|group| Box::pin(self.take_group(group, request, true, turn, due)));
        let mut outcomes = Vec::with_capacity(groups.len());
        let mut failed: Option<StoreError> = None;
        for outcome in join_all(taking).await {
            match outcome {
                Ok(outcome) => outcomes.push(outcome),
                // An error after which units may have been spent takes precedence over one after which none were.
                Err(error) if failed.as_ref().is_none_or(StoreError::is_retryable) => failed = Some(error),
                Err(_) => {}
            }
        }
        let is_given_back = failed.is_some() || !outcomes.iter().all(Outcome::is_allowed);
        let came_back = !is_given_back || self.give_back_all(&outcomes, request).await;
        match failed {
            Some(error) => Err(failure(error, came_back)),
            None => {
                let proofs = if is_given_back { Vec::new() } else { proofs(&outcomes) };
                let bids = reported(outcomes, Vec::new(), &request.bids, is_given_back);
                Ok(Reported { bids, proofs })
            }
        }
    }

    /// Takes one group after the other, so that other clients run in between, after a peek found that all allow. A
    /// denial is found by the peek, so it spends nothing. Groups are given back only if other takes came in between.
    /// Each script has a deadline of its own, because a request for thousands of limits takes longer than one. On a
    /// denial, the groups that deny are taken nevertheless, and given back if they allow by then: such a limit may have
    /// to count denials.
    pub(super) async fn take_in_turn(
        &self,
        groups: &[Group],
        request: &Request<'_>,
        turn: Option<&Turn>,
    ) -> Result<Reported, StoreError> {
        let (mut seen, mut denying) = (Vec::with_capacity(request.bids.len()), Vec::new());
        for group in groups {
            let decisions = self.look_at(group, request, self.due()?).await?;
            let decides = |(place, _): &(&usize, &Decision)| request.bids[**place].role != Role::Strikes;
            let each = group.iter().zip(&decisions).filter(decides);
            if !each.map(|(_, decision)| decision).all(Decision::is_allowed) {
                denying.push(group.clone());
            }
            seen.extend(group.iter().copied().zip(decisions));
        }
        // A limit that denies has to receive the take: it may count denials.
        let is_denied = !denying.is_empty();
        let mut outcomes = Vec::new();
        let mut failed = None;
        for group in if is_denied { &*denying } else { groups } {
            match self.take_group(group, request, true, turn, self.due()?).await {
                Ok(outcome) => outcomes.push(outcome),
                // The result of the peek stands.
                Err(_) if is_denied => {}
                Err(error) => failed = Some(error),
            }
            let is_over = failed.is_some() || !outcomes.last().is_none_or(Outcome::is_allowed);
            if is_over && !is_denied {
                break;
            }
        }
        let is_given_back = is_denied || failed.is_some() || !outcomes.iter().all(Outcome::is_allowed);
        let came_back = !is_given_back || self.give_back_all(&outcomes, request).await;
        match failed {
            Some(error) => Err(failure(error, came_back)),
            None => {
                let proofs = if is_given_back { Vec::new() } else { proofs(&outcomes) };
                let bids = reported(outcomes, seen, &request.bids, is_given_back);
                Ok(Reported { bids, proofs })
            }
        }
    }

    /// Gives all takes back, as far as the server that took them keeps its data. Returns are sent in chunks, all of a
    /// chunk concurrently. A return is exact as long as the take is the last one of its key; see `script::give_back`.
    ///
    /// Returns false if a take may still be charged.
    async fn give_back_all(&self, outcomes: &[Outcome<'_>], request: &Request<'_>) -> bool {
        // Another server, or the same one after a restart or a flush, may not have the take, and would refund that of
        // another request.
        let is_there = |outcome: &Outcome<'_>| {
            let first = outcome.group.first().map(|place| &request.bids[*place].target.name);
            outcome.seat.is_some() && first.and_then(|name| self.seat_of(name)) == outcome.seat
        };
        let (there, gone): (Vec<_>, Vec<_>) =
            outcomes.iter().filter(|outcome| outcome.is_allowed()).partition(|outcome| is_there(outcome));
        let mut came_back = gone.is_empty();
        let takes = there.into_iter().flat_map(|outcome| outcome.group.iter().zip(&outcome.bids));
        let takes: Vec<_> = takes.filter_map(|(place, bid)| Some((*place, bid.taken.as_ref()?))).collect();
        // A take that cannot be given back stays spent: the key gets too little then, never too much.
        for some in takes.chunks(MOST_IN_SCRIPT) {
            let back = some
                .iter()
                .map(|(place, taken)| Box::pin(self.give_back(&request.bids[*place].target, taken)));
            came_back &= join_all(back).await.into_iter().all(|came_back| came_back);
        }
        came_back
    }

    /// Gives one take back. The script does nothing if units of the key were removed by a reset or a refund since.
    ///
    /// Returns false if the call failed: the key may then stay charged until the debt is repaid or its window ends.
    async fn give_back(&self, target: &Target, taken: &TakeRecord) -> bool {
        self.counts.given_back.add();
        let Ok(due) = self.due() else { return false };
        let given_back = self.run(script::give_back(target, taken, self.time()), due).await;
        // A denial of the key in the meantime was caused by this take.
        self.forget(&target.name);
        given_back.is_ok()
    }
}

/// Returns the error of a request of several scripts, of which one failed and the others were given back.
///
/// A retryable error promises that nothing was spent. Where a take did not come back, a retry would charge it again.
fn failure(error: StoreError, came_back: bool) -> StoreError {
    if came_back { error } else { StoreError::outcome_unknown(error) }
}

/// Returns the decision about each bid: as taken, otherwise as seen by the peek. A take that was given back is reported
/// without its cost.
///
/// See [`Inner::take_in_turn`] for the peek. The result has one decision per bid, in the order of the bids.
fn reported(
    outcomes: Vec<Outcome<'_>>,
    seen: Vec<(usize, Decision)>,
    bids: &[Bid],
    is_given_back: bool,
) -> Vec<(Decision, Lasting)> {
    let seen = seen.into_iter().map(|(place, decision)| (place, (decision, Lasting::SameAsk)));
    let mut placed: BTreeMap<usize, _> = seen.collect();
    for outcome in outcomes {
        let is_allowed = outcome.is_allowed();
        for (place, TakenBid { decision, lasting, .. }) in outcome.group.iter().copied().zip(outcome.bids) {
            // The peek saw this group deny, and that result stands even if the take allowed.
            if is_given_back && is_allowed && placed.contains_key(&place) {
                continue;
            }
            let decision = match decision.verdict_in_ticks() {
                Verdict::Allowed { .. } if is_given_back && is_allowed && bids[place].is_limit() => {
                    given_back(&decision, bids[place].ask)
                }
                _ => decision,
            };
            placed.insert(place, (decision, lasting));
        }
    }
    placed.into_values().collect()
}

/// Returns an allowing decision without the units that it took. It is the remaining quota after the return, unless
/// other requests came in between.
fn given_back(decision: &Decision, ask: Ask) -> Decision {
    let remaining = decision.remaining().saturating_add(ask.cost.get()).min(decision.limit());
    let (verdict, reset_after) = (decision.verdict_in_ticks(), decision.reset_after_in_ticks());
    Decision::from_remote(verdict, decision.limit(), remaining, reset_after)
}
