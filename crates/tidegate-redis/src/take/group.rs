//! The bids of one slot, which one script decides.
//!
//! Where counts of previous limits may matter, the script replies that a key has no live state. It is then called again
//! with the initial state of the key.
//!
//! Without previous limits, one call is made. With them, the usual case is still one call, because most keys in use
//! have a live state. A key without one needs two more calls: one reads the previous states, one repeats the take.

use std::sync::Arc;

use tidegate_core::{Decision, OwnDecision, StoreError, Timestamp};
use tokio::time::Instant;

use super::request::Request;
use super::twins::Twins;
use super::{Outcome, TakenBid};
use crate::denial_cache::Lasting;
use crate::fault::Fault;
use crate::limits::{StatesBefore, StoredLimit, Turn};
use crate::script::{self, Begin, Bid, Decided, DecidedBid, TakeAsk, TakeReply};
use crate::store::{Inner, read};

/// The maximum number of calls with initial states. Before each repetition a live state has expired. It bounds a
/// request whose states expire as fast as they are read.
const MOST_TIMES: usize = 8;

/// The bids of a group, and the known states of their keys. The bids are shared with the request while none has an
/// initial state, and copied otherwise.
struct GroupBids<'r> {
    /// The bids as they are sent, with their initial states.
    bids: Arc<[Bid]>,
    /// True if a state has more than one bid.
    has_twins: bool,
    /// The indexes of the bids in the request.
    group: &'r [usize],
    /// The whole request.
    request: &'r Request<'r>,
    /// The states under the previous limits, as far as they were read. Each is read at most once per take.
    before: Vec<Option<StatesBefore>>,
    /// The deadline of the take.
    due: Instant,
}

/// The values of a decision that have to be exact while counts of previous limits matter. A take needs fewer of them
/// than a peek.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Figures {
    /// The waits of denials. One more call is made only if a wait would be too short without it.
    Waits,
    /// Also the time until a key is full.
    All,
}

impl<'r> GroupBids<'r> {
    /// Creates the bids of a group. Where counts of previous limits may matter, the initial state starts as unknown, so
    /// that the script reports a key without a live state.
    fn new(group: &'r [usize], request: &'r Request<'r>, due: Instant) -> GroupBids<'r> {
        let bid = |place: &usize| {
            let begin = request.limits[*place].carries().then(Begin::unknown);
            Bid { begin, ..request.bids[*place].clone() }
        };
        // The usual case shares the bids of the request without a copy.
        let is_whole =
            group.len() == request.bids.len() && request.limits.iter().all(|limit| !limit.carries());
        GroupBids {
            bids: if is_whole { request.bids.clone() } else { group.iter().map(bid).collect() },
            has_twins: request.has_twins,
            group,
            request,
            before: Vec::new(),
            due,
        }
    }

    /// Returns the limit of a bid, by its index in the group.
    fn limit(&self, place: usize) -> &'r StoredLimit {
        &self.request.limits[self.group[place]]
    }

    /// Returns the limits of all bids.
    fn limits(&self) -> impl Iterator<Item = &'r StoredLimit> {
        self.group.iter().map(|place| &*self.request.limits[*place])
    }

    /// Returns the known states under previous limits; those of an unused key if they were not read.
    fn before(&self, place: usize) -> StatesBefore {
        self.before.get(place).cloned().flatten().unwrap_or_default()
    }

    /// Returns the ask, which may be decided in one call with others.
    fn ask(&self) -> TakeAsk {
        let bids = self.bids.clone();
        if self.has_twins { TakeAsk::new(bids) } else { TakeAsk { bids, has_twins: false } }
    }

    /// Returns the names of the states whose initial state may be needed.
    fn carrying(&self) -> impl Iterator<Item = &[u8]> {
        self.bids.iter().filter(|bid| bid.begin.is_some()).map(|bid| &*bid.target.name)
    }

    /// Records the time of a reply, after which some limits may no longer need previous counts.
    fn saw(&self, now: Timestamp) {
        self.limits().for_each(|limit| limit.saw(now));
    }

    /// Reads those states under previous limits that are needed and not known. All are read in one call. The bids of a
    /// group share a slot, and so do their states under any limit.
    async fn read_before(
        &mut self,
        inner: &Inner,
        is_needed: impl Fn(usize) -> bool,
    ) -> Result<(), StoreError> {
        self.before.resize(self.bids.len(), None);
        let places: Vec<_> =
            (0..self.bids.len()).filter(|place| self.before[*place].is_none() && is_needed(*place)).collect();
        if places.is_empty() {
            return Ok(());
        }
        let asked = |place: &usize| (self.limit(*place), self.request.key(self.group[*place]));
        let asked: Vec<_> = places.iter().map(asked).collect();
        for (place, states) in places.iter().zip(inner.states_before(&asked, self.due).await?.1) {
            self.before[*place] = Some(states);
        }
        Ok(())
    }

    /// Computes the initial states of keys without a live state. Previous states are read only for limits whose counts
    /// still matter at the time of the reply. A bid without an initial state needs none: it was behind an ask that does.
    async fn learn(&mut self, inner: &Inner, is_live: &[bool], now: Timestamp) -> Result<(), StoreError> {
        let (request, group) = (self.request, self.group);
        let matters = |place: usize| request.limits[group[place]].matters_at(now);
        self.read_before(inner, |place| !is_live[place] && matters(place)).await?;
        let begins = |place: &usize| !is_live[*place] && self.bids[*place].begin.is_some();
        for place in (0..is_live.len()).filter(begins).collect::<Vec<_>>() {
            self.begin(place, now);
        }
        Ok(())
    }

    /// Sets the initial state of one bid from the known previous states.
    fn begin(&mut self, place: usize, now: Timestamp) {
        let begin = self.limit(place).begin(&self.before(place), now, self.bids[place].ask);
        Arc::make_mut(&mut self.bids)[place].begin = Some(begin);
    }

    /// Corrects decisions that counts of previous limits affect. Returns false if an initial state has expired since,
    /// so that the take has to be repeated. The script decides by the state under the current limit alone. The library
    /// adds what previous limits still contribute, as it does in memory.
    async fn correct(
        &mut self,
        inner: &Inner,
        decided: &mut Decided,
        figures: Figures,
    ) -> Result<bool, StoreError> {
        let now = decided.now;
        for (place, bid) in decided.bids.iter_mut().enumerate().filter(|(_, bid)| bid.is_begun) {
            match self.limit(place).peek_begun(&self.before(place), now, self.bids[place].ask) {
                Some(decision) => bid.decision = decision,
                // The key is unused, and previous limits contribute nothing.
                None if bid.state == tidegate_core::State::default() => {}
                None => {
                    self.begin(place, now);
                    return Ok(false);
                }
            }
        }
        // A denial may outlast the state under the current limit, by counts of previous ones.
        let follows = |(place, bid): (usize, &DecidedBid)| {
            let limit = self.limit(place);
            let is_wrong =
                figures == Figures::All || limit.denied_until_clear(&bid.state, &bid.decision, now).is_some();
            !bid.is_begun && is_wrong && limit.may_be_followed(&bid.state)
        };
        let follows: Vec<_> = decided.bids.iter().enumerate().map(follows).collect();
        self.read_before(inner, |place| follows[place]).await?;
        for (place, bid) in decided.bids.iter_mut().enumerate().filter(|(place, _)| follows[*place]) {
            let (state, ask) = (&bid.state, self.bids[place].ask);
            let own = OwnDecision::new(state, bid.decision, now, ask);
            bid.decision = self.limit(place).report(&self.before(place), own);
        }
        Ok(true)
    }

    /// Returns the scope in which a denial of a bid can be cached. A denial with twins is never cached: its wait is
    /// that of a sequence of asks.
    fn lasting(&self, place: usize, is_begun: bool) -> Lasting {
        match () {
            () if self.has_twins => Lasting::Never,
            // Another ask may be denied for as long as the state lasts, and then by counts of previous limits.
            () if is_begun || self.limit(place).carries() => Lasting::SameAsk,
            () => Lasting::AnyAsk,
        }
    }
}

impl Inner {
    /// Takes all of a group, or none. The steps of each repetition are:
    ///
    /// - send the take, possibly in one call with those of other requests;
    /// - if a key has no live state, wait for earlier takes of the key, read its previous states, and repeat;
    /// - if an earlier take of the same call is repeated and shares a state, repeat behind it;
    /// - correct the decisions by previous limits, and those of several asks for one state;
    /// - list limits whose table entry is missing or ends too early.
    ///
    /// Fails as busy if initial states expire again and again.
    pub(super) async fn take_group<'g>(
        &self,
        group: &'g [usize],
        request: &Request<'_>,
        is_tracked: bool,
        turn: Option<&Turn>,
        due: Instant,
    ) -> Result<Outcome<'g>, StoreError> {
        let mut asked = GroupBids::new(group, request, due);
        let may_go_back = is_tracked || group.len() < request.bids.len();
        for _ in 0..MOST_TIMES {
            // The identity is read before the call: if it changes during it, the take cannot be given back.
            let seat = may_go_back.then(|| self.seat(&asked.bids)).flatten();
            let reply = self.run_take(asked.ask(), turn, due).await;
            let reply = reply.inspect_err(|_| self.may_have_written(asked.limits()))?;
            let mut decided = match read(script::read_take(&reply, &asked.bids))? {
                TakeReply::Decided(decided) => decided,
                // The script did nothing. It is repeated with initial states, after earlier takes of the keys.
                TakeReply::Unknown { now, is_live } => {
                    asked.saw(now);
                    if let Some(turn) = turn {
                        turn.wait(asked.carrying()).await;
                    }
                    Box::pin(asked.learn(self, &is_live, now)).await?;
                    continue;
                }
            };
            let now = decided.now;
            asked.saw(now);
            self.server_time.saw(now);
            // An allowed take needs no correction: its initial states contained the previous counts.
            let is_spent = asked.bids.iter().zip(&decided.bids).all(|(bid, decided)| bid.is_spent(decided));
            if !is_spent && !Box::pin(asked.correct(self, &mut decided, Figures::Waits)).await? {
                continue;
            }
            if asked.has_twins {
                Box::pin(self.report_twins(&asked, &mut decided, is_spent)).await?;
            }
            // Pacers may have written longer debts than listed, and a flush may have removed the table.
            let taken = asked.limits().zip(&decided.bids);
            let taken = taken.filter_map(|(limit, bid)| Some((limit, bid.taken.as_ref()?)));
            self.note_taken(taken, now, due).await;
            let bids = decided.bids.into_iter().enumerate().map(|(place, bid)| {
                let lasting = asked.lasting(place, bid.is_begun);
                let role = asked.bids[place].role;
                TakenBid { decision: bid.decision, taken: bid.taken, lasting, role }
            });
            return Ok(Outcome { group, bids: bids.collect(), seat });
        }
        Err(Fault::Busy.into())
    }

    /// Adjusts the decisions about several asks for one state. For permits, a peek at the summed units finds the wait.
    async fn report_twins(
        &self,
        asked: &GroupBids<'_>,
        decided: &mut Decided,
        is_spent: bool,
    ) -> Result<(), StoreError> {
        let bids = &asked.bids;
        for twins in Twins::of(bids) {
            if is_spent {
                twins.report_allowed(bids, decided);
                continue;
            }
            let permits = match twins.permits(bids) {
                Some(all) => {
                    let seen = self.look_at_bids(std::slice::from_ref(&all), asked.due).await?;
                    seen.bids.first().map(|bid| bid.decision)
                }
                None => None,
            };
            twins.report_denied(bids, decided, permits);
        }
        Ok(())
    }

    /// Returns the decision about each bid of a group on its own, without spending. Previous states are read where they
    /// matter, so a peek reports what a take would.
    pub(super) async fn look_at(
        &self,
        group: &[usize],
        request: &Request<'_>,
        due: Instant,
    ) -> Result<Vec<Decision>, StoreError> {
        let mut asked = GroupBids::new(group, request, due);
        let mut decided = self.look_at_bids(&asked.bids, due).await?;
        asked.saw(decided.now);
        // A peek has no initial states, so missing states are found here.
        let is_live: Vec<_> = (0..asked.bids.len()).map(|place| asked.is_live(place, &decided)).collect();
        let is_all = is_live.iter().all(|is_live| *is_live) && asked.limits().all(|limit| !limit.carries());
        if !is_all {
            asked.learn(self, &is_live, decided.now).await?;
            for (bid, _) in decided.bids.iter_mut().zip(&is_live).filter(|(_, is_live)| !**is_live) {
                (bid.is_begun, bid.state) = (true, tidegate_core::State::default());
            }
            asked.correct(self, &mut decided, Figures::All).await?;
        }
        Ok(decided.bids.into_iter().map(|bid| bid.decision).collect())
    }

    /// Peeks at states as they are. One script reads all of them. The library makes the decisions.
    async fn look_at_bids(&self, bids: &[Bid], due: Instant) -> Result<Decided, StoreError> {
        let answer = self.run(script::peek(bids, self.time()), due).await?;
        let (now, states) = read(script::read_peek(answer, bids))?;
        self.server_time.saw(now);
        let each = bids.iter().zip(states).map(|(bid, state)| DecidedBid::seen(bid, state, now));
        Ok(Decided { now, bids: each.collect() })
    }
}

impl GroupBids<'_> {
    /// Returns false if a key has no live state and counts of previous limits matter. The debt of a live state is not
    /// repaid yet.
    fn is_live(&self, place: usize, decided: &Decided) -> bool {
        let limit = self.limit(place);
        !limit.matters_at(decided.now) || limit.limit().clear_at(&decided.bids[place].state) > decided.now
    }
}
