//! The bids of one slot, which one script decides.
//!
//! Where counts of limits before may matter, the script answers that a key has no live state, and is asked again with
//! what the key begins with.

use std::sync::Arc;

use tidegate::{Decision, OwnDecision, StoreError, Timestamp};
use tokio::time::Instant;

use super::request::Request;
use super::twins::Twins;
use super::{Group, Outcome};
use crate::fault::Fault;
use crate::limits::{StatesBefore, StoredLimit};
use crate::refusals::Lasting;
use crate::script::{self, Begin, Bid, Decided, TakeAsk, TakeReply};
use crate::store::{Inner, read};

/// How often a take is asked with what keys begin with. Each time a state has become clear meanwhile.
const MOST_TIMES: usize = 8;

/// The bids of a group, and what is known about their keys.
struct Asked<'r> {
    bids: Arc<[Bid]>,
    /// A state is asked for more than once.
    has_twins: bool,
    group: &'r [usize],
    request: &'r Request<'r>,
    /// The states under the limits before, as far as they were read.
    before: Vec<Option<StatesBefore>>,
    due: Instant,
}

/// The figures of decisions about live states that have to be exact while counts of the limits before matter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Figures {
    /// The waits of denials. One more call is made only if a wait is too short without it.
    Waits,
    /// Also the time until a key is full.
    All,
}

impl<'r> Asked<'r> {
    fn new(group: &'r [usize], request: &'r Request<'r>, due: Instant) -> Asked<'r> {
        let bid = |place: &usize| {
            let begin = request.limits[*place].carries().then(Begin::unknown);
            Bid { begin, ..request.bids[*place].clone() }
        };
        let is_whole =
            group.len() == request.bids.len() && request.limits.iter().all(|limit| !limit.carries());
        Asked {
            bids: if is_whole { request.bids.clone() } else { group.iter().map(bid).collect() },
            has_twins: request.has_twins,
            group,
            request,
            before: Vec::new(),
            due,
        }
    }

    fn limit(&self, place: usize) -> &'r StoredLimit {
        &self.request.limits[self.group[place]]
    }

    fn limits(&self) -> impl Iterator<Item = &'r StoredLimit> {
        self.group.iter().map(|place| &*self.request.limits[*place])
    }

    fn before(&self, place: usize) -> StatesBefore {
        self.before.get(place).cloned().flatten().unwrap_or_default()
    }

    /// The ask, to be decided together with others.
    fn ask(&self) -> TakeAsk {
        let bids = self.bids.clone();
        if self.has_twins { TakeAsk::new(bids) } else { TakeAsk { bids, has_twins: false } }
    }

    fn saw(&self, now: Timestamp) {
        self.limits().for_each(|limit| limit.saw(now));
    }

    /// Reads the states under the limits before, of those that are needed and not known.
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
        let asked = |place: &usize| (self.limit(*place), self.request.keys[self.group[*place]]);
        let asked: Vec<_> = places.iter().map(asked).collect();
        for (place, states) in places.iter().zip(inner.states_before(&asked, self.due).await?.1) {
            self.before[*place] = Some(states);
        }
        Ok(())
    }

    /// Learns what keys without a live state begin with.
    async fn learn(&mut self, inner: &Inner, is_live: &[bool], now: Timestamp) -> Result<(), StoreError> {
        let (request, group) = (self.request, self.group);
        let matters = |place: usize| request.limits[group[place]].matters_at(now);
        self.read_before(inner, |place| !is_live[place] && matters(place)).await?;
        for place in (0..is_live.len()).filter(|place| !is_live[*place]) {
            self.begin(place, now);
        }
        Ok(())
    }

    fn begin(&mut self, place: usize, now: Timestamp) {
        let begin = self.limit(place).begin(&self.before(place), now, self.bids[place].ask);
        Arc::make_mut(&mut self.bids)[place].begin = Some(begin);
    }

    /// Corrects decisions that counts of the limits before have a part in. Returns false if what a key began with has
    /// ended since, so that the take has to be asked again.
    async fn correct(
        &mut self,
        inner: &Inner,
        decided: &mut Decided,
        figures: Figures,
    ) -> Result<bool, StoreError> {
        let now = decided.now;
        for place in (0..self.bids.len()).filter(|place| decided.is_begun[*place]) {
            match self.limit(place).peek_begun(&self.before(place), now, self.bids[place].ask) {
                Some(decision) => decided.decisions[place] = decision,
                None if decided.states[place] == tidegate::State::default() => {}
                None => {
                    self.begin(place, now);
                    return Ok(false);
                }
            }
        }
        let follows: Vec<_> = (0..self.bids.len())
            .map(|place| {
                let (state, decision) = (&decided.states[place], &decided.decisions[place]);
                let limit = self.limit(place);
                let is_wrong =
                    figures == Figures::All || limit.denied_until_clear(state, decision, now).is_some();
                !decided.is_begun[place] && is_wrong && limit.may_be_followed(state)
            })
            .collect();
        self.read_before(inner, |place| follows[place]).await?;
        for place in (0..self.bids.len()).filter(|place| follows[*place]) {
            let (state, decision) = (&decided.states[place], decided.decisions[place]);
            let own = OwnDecision { state, decision, now, ask: self.bids[place].ask };
            decided.decisions[place] = self.limit(place).report(&self.before(place), own);
        }
        Ok(true)
    }

    /// How far a refusal of each bid can be remembered.
    fn lasting(&self, decided: &Decided) -> Vec<Lasting> {
        let lasting = |place: usize| match () {
            () if self.has_twins => Lasting::Never,
            // Another ask may be denied for as long as the state lasts, and then by counts of the limits before.
            () if decided.is_begun[place] || self.limit(place).carries() => Lasting::SameAsk,
            () => Lasting::AnyAsk,
        };
        (0..self.bids.len()).map(lasting).collect()
    }
}

impl Inner {
    /// Takes all of a group, or none.
    pub(super) async fn take_group(
        &self,
        group: Group,
        request: &Request<'_>,
        is_tracked: bool,
        due: Instant,
    ) -> Result<Outcome, StoreError> {
        let mut asked = Asked::new(&group, request, due);
        let may_go_back = is_tracked || group.len() < request.bids.len();
        let carrying = asked.bids.iter().filter(|bid| bid.begin.is_some());
        let turn = self.turns.enter(carrying.map(|bid| &*bid.target.name));
        for _ in 0..MOST_TIMES {
            let seat = may_go_back.then(|| self.seat(&asked.bids)).flatten();
            let reply = self.run_take(asked.ask(), due).await;
            let reply = reply.inspect_err(|_| self.may_have_written(asked.limits()))?;
            let mut decided = match read(script::read_take(&reply, &asked.bids))? {
                TakeReply::Decided(decided) => decided,
                TakeReply::Unknown { now, is_live } => {
                    asked.saw(now);
                    turn.wait().await;
                    Box::pin(asked.learn(self, &is_live, now)).await?;
                    continue;
                }
            };
            let now = decided.now;
            asked.saw(now);
            self.server_time.saw(now);
            let is_spent = decided.taken.iter().all(Option::is_some);
            if !is_spent && !Box::pin(asked.correct(self, &mut decided, Figures::Waits)).await? {
                continue;
            }
            if asked.has_twins {
                Box::pin(self.report_twins(&asked, &mut decided, is_spent)).await?;
            }
            let taken = asked.limits().zip(&decided.taken);
            let taken = taken.filter_map(|(limit, taken)| Some((limit, taken.as_ref()?)));
            self.note_taken(taken, now, due).await;
            let lasting = asked.lasting(&decided);
            return Ok(Outcome { group, decisions: decided.decisions, taken: decided.taken, lasting, seat });
        }
        Err(Fault::Busy.into())
    }

    async fn report_twins(
        &self,
        asked: &Asked<'_>,
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
                Some(all) => Some(self.look_at_bids(std::slice::from_ref(&all), asked.due).await?.1[0]),
                None => None,
            };
            twins.report_denied(bids, decided, permits);
        }
        Ok(())
    }

    /// The answer to each of a group by itself, without spending.
    pub(super) async fn look_at(
        &self,
        group: &[usize],
        request: &Request<'_>,
        due: Instant,
    ) -> Result<Vec<Decision>, StoreError> {
        let mut asked = Asked::new(group, request, due);
        let (mut decided, decisions) = self.look_at_bids(&asked.bids, due).await?;
        decided.decisions = decisions;
        asked.saw(decided.now);
        let is_live: Vec<_> = (0..asked.bids.len()).map(|place| asked.is_live(place, &decided)).collect();
        if is_live.iter().all(|is_live| *is_live) && asked.limits().all(|limit| !limit.carries()) {
            return Ok(decided.decisions);
        }
        asked.learn(self, &is_live, decided.now).await?;
        for place in (0..asked.bids.len()).filter(|place| !is_live[*place]) {
            decided.is_begun[place] = true;
            decided.states[place] = tidegate::State::default();
        }
        asked.correct(self, &mut decided, Figures::All).await?;
        Ok(decided.decisions)
    }

    /// Looks at states as they are.
    async fn look_at_bids(&self, bids: &[Bid], due: Instant) -> Result<(Decided, Vec<Decision>), StoreError> {
        let answer = self.run(script::peek(bids, self.time()), due).await?;
        let (now, states) = read(script::read_peek(answer, bids))?;
        self.server_time.saw(now);
        let each = bids.iter().zip(&states);
        let decisions = each.map(|(bid, state)| bid.target.limit.peek(state, now, bid.ask)).collect();
        let (taken, is_begun) = (vec![None; bids.len()], vec![false; bids.len()]);
        Ok((Decided { now, decisions: Vec::new(), taken, states, is_begun }, decisions))
    }
}

impl Asked<'_> {
    /// Returns false if a key has no live state and counts of the limits before matter.
    fn is_live(&self, place: usize, decided: &Decided) -> bool {
        let limit = self.limit(place);
        !limit.matters_at(decided.now) || limit.limit().clear_at(&decided.states[place]) > decided.now
    }
}
