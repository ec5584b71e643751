//! Takes all or none: in one script if one server has all the keys, otherwise by taking and giving back.
//!
//! ```text
//!   one script's worth, one slot   -> one script decides
//!   one script's worth, more slots -> a script for each slot, all at once; if one denies, the others are given back
//!   more than that                 -> all are looked at, script by script; only if all pass they are taken, one script
//!                                     after the other; if one denies after all, those before it are given back
//! ```
//!
//! The asks of a request are called bids here: each is an ask for one state. A group is what one script decides. Takes
//! given back by the second and third way are exact only where no other request came in between; see `give_back`.

mod group;
mod request;
mod several;
mod twins;

use tidegate_core::{
    Adjusted, Ask, Cost, Decision, Decisions, OpenReceipt, StoreError, StoreFuture, Subject,
};

use crate::denial_cache::{CacheEpoch, Lasting};
use crate::link::MemoryId;
use crate::returns::Unclaimed;
use crate::script::{self, Bid, Role, TakeRecord};
use crate::store::{Inner, read, unfit};
use request::Request;

/// The maximum number of limits in one script, and of limits given back at once. A script blocks all other clients
/// while it runs. Also the number of bids that one array of indexes can name.
const MOST_IN_SCRIPT: usize = 128;
/// The maximum number of limits of one request. A larger request fails without being sent.
pub(crate) const MOST_TOGETHER: usize = 4096;

/// Asks of one slot that one script decides, by their indexes among all.
type Group = Vec<usize>;

/// The indexes of a group that is the whole request.
static ALL_PLACES: [usize; MOST_IN_SCRIPT] = {
    let (mut places, mut place) = ([0; MOST_IN_SCRIPT], 0);
    while place < MOST_IN_SCRIPT {
        places[place] = place;
        place += 1;
    }
    places
};

/// The outcome of a group.
///
/// Allowed or denied, the outcome has one entry per bid.
struct Outcome<'g> {
    /// The bids of the group, by their indexes in the request.
    group: &'g [usize],
    /// The outcomes, in the order of the group.
    bids: Vec<TakenBid>,
    /// The identity of the memory that it was taken from.
    seat: Option<MemoryId>,
}

/// The outcome of one bid of a group.
struct TakenBid {
    /// The decision, as it is reported.
    decision: Decision,
    /// The data needed to give the take back, if units were spent.
    taken: Option<TakeRecord>,
    /// The scope in which a denial can be cached.
    lasting: Lasting,
    /// The part of the bid in its ask.
    role: Role,
}

impl Inner {
    /// Takes all asks, or none. The future is ready at once for an empty request and for a cached denial.
    ///
    /// The order is: map the asks to bids, look into the cache of denials, list new limits, call the server, cache a
    /// denial.
    pub(crate) fn take<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> StoreFuture<'a, Decisions> {
        if asks.is_empty() {
            return StoreFuture::ready(Vec::new().into());
        }
        if asks.len() > MOST_TOGETHER {
            let count = asks.len();
            return StoreFuture::later(async move {
                Err(StoreError::unfit(format!(
                    "{count} limits are too many for one request; ask for at most {MOST_TOGETHER} together"
                )))
            });
        }
        let request = match Request::new(self, asks) {
            Ok(request) => request,
            Err(error) => return StoreFuture::later(async move { Err(unfit(&error)) }),
        };
        let (refused, eras) = self.certain(&request);
        if let Some(refused) = refused {
            self.counts.cached.add();
            return StoreFuture::ready(refused.remembered());
        }
        let is_tracked = Subject::are_tracked(asks);
        StoreFuture::later(async move {
            let reported = self.take_there(&request, is_tracked).await?;
            self.remember(&request, &reported, &eras);
            let decisions = reported.bids.into_iter().map(|(decision, _)| decision).collect();
            let decisions = request.spread(decisions);
            for strikes in request.earlier_strikes(&decisions) {
                // The ban has begun, whatever becomes of this call.
                let _ = Box::pin(self.reset(strikes)).await;
            }
            let decisions: Decisions = decisions.into();
            if !is_tracked {
                return Ok(decisions);
            }
            let shares = request.shares(&reported.proofs, |proof| &mut proof.taken);
            let receipts = shares.into_iter().map(|share| {
                let (cost, proof) = share?;
                Some(OpenReceipt::remote(cost, proof))
            });
            Ok(decisions.with_receipts(receipts.collect()))
        })
    }

    /// Refunds units of one take, as far as they are still debt and the server that took them keeps its data. The
    /// receipt is reduced before the call, so a refund whose outcome is unknown is never repeated: a key may then get
    /// too little back, never too much.
    ///
    /// Returns `Capped` if less than `cost` was refunded.
    pub(crate) async fn refund(
        &self,
        subject: Subject<'_>,
        receipt: &mut OpenReceipt,
        cost: Cost,
    ) -> Result<Adjusted, StoreError> {
        let Some(units) = receipt.use_up(cost) else { return Ok(Adjusted::Capped) };
        let Some(proof) = receipt.proof_mut::<TakeProof>() else { return Ok(Adjusted::Capped) };
        let target = self.target(&subject)?;
        // Another server, or the same one after a restart or a flush, may not have the take, and would refund that of
        // another request.
        if proof.seat.is_none() || self.seat_of(&target.name) != proof.seat {
            return Ok(Adjusted::Capped);
        }
        let call = script::refund(&target, &proof.taken, units, self.time());
        proof.taken.use_up(&target.limit, units);
        let Some(call) = call else { return Ok(Adjusted::Capped) };
        // The cache entry is removed before the call too, in case the caller drops this future.
        self.forget(&target.name);
        let answer = self.run(call, self.due()?).await;
        self.forget(&target.name);
        let adjusted = read(script::read_adjust(answer?))?.unwrap_or(Adjusted::Capped);
        Ok(if units == cost { adjusted } else { Adjusted::Capped })
    }

    /// Returns the decision about each of a few asks on its own, without spending. A limit that is not in force yet is
    /// put in force first, because its counts may continue those of a previous limit.
    pub(crate) async fn look_at_asks(
        &self,
        asks: &[(Subject<'_>, Ask)],
    ) -> Result<Vec<Decision>, StoreError> {
        let request = Request::new(self, asks).map_err(|error| unfit(&error))?;
        let due = self.due()?;
        for limit in &request.limits {
            self.put_in_force(limit, due).await?;
        }
        let group: Group = (0..request.bids.len()).collect();
        Ok(request.spread(self.look_at(&group, &request, due).await?))
    }

    /// Returns a denial that needs no request to the server. About limits that would allow, nothing is known. All
    /// limits of the request need a cached denial that is still valid. Otherwise the request is recorded in the cache,
    /// so that only the last reply about a key is cached.
    fn certain(&self, request: &Request<'_>) -> (Option<Decisions>, Vec<CacheEpoch>) {
        let Some(refusals) = &self.refusals else { return (None, Vec::new()) };
        // Each denial under a limit with a penalty is a strike, and a ban may be lifted at any time.
        if request.has_penalties {
            return (None, Vec::new());
        }
        let mut eras = Vec::with_capacity(request.bids.len());
        let mut known = Some(Vec::new());
        for bid in &*request.bids {
            let seat = self.seat_of(&bid.target.name);
            let (refused, era) = refusals.certain(&bid.target.name, &bid.target.limit, bid.ask, seat);
            eras.push(era);
            known = known.zip(refused).map(|(mut known, refused)| {
                known.push(refused);
                known
            });
        }
        // Several asks for one state wait longer than each of them. A limit about which nothing is known may deny for
        // longer than the known ones.
        if let Some(decisions) = known.filter(|_| !request.has_twins) {
            return (Some(request.spread(decisions).into()), eras);
        }
        eras.iter_mut().for_each(|era| refusals.asks(era));
        (None, eras)
    }

    /// Caches the denials of a reply, each in its scope.
    fn remember(&self, request: &Request<'_>, reported: &Reported, eras: &[CacheEpoch]) {
        let Some(refusals) = &self.refusals else { return };
        for ((bid, (decision, lasting)), era) in request.bids.iter().zip(&reported.bids).zip(eras) {
            refusals.note(&bid.target.name, (&bid.target.limit, bid.ask), (decision, *era), *lasting);
        }
    }

    /// Decides on the server. Returns what each take can be given back with if `is_tracked`. Permits of the take are
    /// claimed only with a reply. If this future is dropped before that, or fails with an unknown outcome, they are
    /// released in the background.
    async fn take_there(&self, request: &Request<'_>, is_tracked: bool) -> Result<Reported, StoreError> {
        let due = self.due()?;
        let bids = request.bids.len();
        let is_one_group = bids == 1 || bids <= MOST_IN_SCRIPT && !self.has_slots();
        // Takes that may need several calls, and those behind them, have to keep their order.
        let is_ready = self.are_ready(&request.limits);
        let may_repeat = !is_ready || request.limits.iter().any(|limit| limit.carries());
        let names = request.bids.iter().map(|bid| &*bid.target.name);
        let turn = self.turns.enter(names, may_repeat, is_one_group);
        let turn = turn.as_ref();
        if !is_ready {
            self.make_all_ready(&request.limits, due).await?;
        }
        let groups = if is_one_group { Vec::new() } else { self.groups(&request.bids) };
        let mut unclaimed = Unclaimed::of(self, &request.bids);
        let reported = match &*groups {
            [] | [_] => {
                let outcome = self.take_group(&ALL_PLACES[..bids], request, is_tracked, turn, due).await;
                // After a retryable error of a single script nothing was done. With several scripts, some may have been
                // executed and not given back.
                if outcome.as_ref().is_err_and(StoreError::is_retryable) {
                    unclaimed.claim();
                }
                let outcome = outcome?;
                let proofs = if is_tracked { proofs(std::slice::from_ref(&outcome)) } else { Vec::new() };
                let bids = outcome.bids.into_iter().map(|bid| (bid.decision, bid.lasting)).collect();
                Reported { bids, proofs }
            }
            groups if bids <= MOST_IN_SCRIPT => {
                Box::pin(self.take_at_once(groups, request, turn, due)).await?
            }
            groups => Box::pin(self.take_in_turn(groups, request, turn)).await?,
        };
        unclaimed.claim();
        Ok(reported)
    }

    /// Returns the identity of the memory for these bids, which share a slot.
    fn seat(&self, bids: &[Bid]) -> Option<MemoryId> {
        self.seat_of(&bids.first()?.target.name)
    }

    /// Returns the identity of the memory for a state, if its server is connected.
    fn seat_of(&self, name: &[u8]) -> Option<MemoryId> {
        self.seat_in(if self.has_slots() { script::slot(name) } else { 0 })
    }
}

/// The decision about each bid, and the data needed to give its take back.
struct Reported {
    /// The decisions, in the order of the bids, each with the scope in which a denial can be cached.
    bids: Vec<(Decision, Lasting)>,
    /// The data for receipts, in the same order; empty if no take is tracked, or none was made.
    proofs: Vec<Option<TakeProof>>,
}

/// The data needed to refund a take: the position of its units, and the identity of the memory. It is stored in the
/// receipt of the caller, opaque to the library.
#[derive(Clone, Debug)]
struct TakeProof {
    taken: TakeRecord,
    seat: Option<MemoryId>,
}

/// Returns the proof of each take, in the order of the bids.
fn proofs(outcomes: &[Outcome<'_>]) -> Vec<Option<TakeProof>> {
    let each = outcomes.iter().flat_map(|outcome| {
        let proof = |bid: &TakenBid| Some(TakeProof { taken: bid.taken?, seat: outcome.seat });
        outcome.group.iter().copied().zip(outcome.bids.iter().map(proof))
    });
    each.collect::<std::collections::BTreeMap<_, _>>().into_values().collect()
}

impl Outcome<'_> {
    /// Returns true if every bid of the group was allowed, and therefore taken.
    fn is_allowed(&self) -> bool {
        self.bids.iter().all(|bid| bid.role == Role::Strikes || bid.decision.is_allowed())
    }
}
