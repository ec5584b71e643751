//! A small world of random events, applied to both a server and the library: few keys, few limits, a clock that is
//! moved manually.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tidegate_core::{
    Adjusted, Adjustment, Algorithm, Ask, Clock as _, Cost, Decision, Key, Limit, ManualClock, Map, PermitId,
    Receipt, State, Subject, Ticks, Timestamp,
};

use super::limits::LIMITS;
use super::{bids, target};
use crate::script::limits::held;
use crate::script::{self, Call, TICKS, TakeAsk, TakeRecord, Time};

/// A random event.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// Independent asks in one call, each of all of its limits or none.
    Take(Vec<Vec<(Who, Ask)>>),
    Peek(Who, Ask),
    Adjust(Who, Adjustment),
    GiveBack(Who, usize),
    Release(Who, PermitId, PermitId),
    Renew(Who, PermitId, PermitId),
}

impl Event {
    /// Returns the keys and limits of the event.
    pub(super) fn subjects(&self) -> Vec<Who> {
        match self {
            Event::Take(asks) => asks.iter().flatten().map(|(who, _)| *who).collect(),
            Event::Peek(who, _) | Event::Adjust(who, _) | Event::GiveBack(who, _) => vec![*who],
            Event::Release(who, ..) | Event::Renew(who, ..) => vec![*who],
        }
    }
}

/// A key under a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) key: usize,
    pub(super) limit: Limit,
}

/// The answer of the library.
#[derive(Debug)]
pub(super) enum Answer {
    Decided(Vec<Decision>),
    Adjusted(Adjusted),
    Was(bool),
}

/// A take that can be given back.
pub(super) struct Given {
    who: Who,
    at: Timestamp,
    /// The number of removals of units without a receipt before it.
    refunds_before: usize,
    receipt: Option<Receipt>,
    taken: Option<TakeRecord>,
}

impl Given {
    fn is_complete(&self) -> bool {
        self.receipt.is_some() && self.taken.is_some()
    }
}

pub(super) struct World {
    pub(super) random: Rng,
    pub(super) clock: Arc<ManualClock>,
    pub(super) map: Map,
    /// The latest time that the clock has shown.
    furthest: Timestamp,
    keys: Vec<Key>,
    limits: Vec<Limit>,
    /// The permits in flight, with the ids of the server and of the library.
    pub(super) permits: Vec<(Who, PermitId, PermitId)>,
    pub(super) given: Vec<Given>,
    /// The removals of units without a receipt, with their times, in order.
    refunded: Vec<(Who, Timestamp)>,
}

impl World {
    pub(super) fn new(seed: u64, start: Timestamp) -> World {
        let clock = Arc::new(ManualClock::new());
        clock.set(start);
        let limits = LIMITS.into_iter().map(|text| held(&text.parse().expect(text)).expect(text)).collect();
        let world = World {
            random: Rng::with_seed(seed),
            map: Map::with_clock(clock.clone()),
            clock,
            furthest: start,
            keys: ["ana", "bob", "cy", "dan"].map(Key::new).to_vec(),
            limits,
            permits: Vec::new(),
            given: Vec::new(),
            refunded: Vec::new(),
        };
        // Announces each limit, so that the map keeps everything that the longest of them still counts.
        for limit in &world.limits {
            let _ = world.map.take(world.subject(&Who { key: 3, limit: *limit }), Ask::ONE);
        }
        world
    }

    pub(super) fn subject<'a>(&'a self, who: &'a Who) -> Subject<'a> {
        Subject::new("user", &self.keys[who.key], &who.limit)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns every combination of key and limit, each once.
    pub(super) fn everybody(&self) -> Vec<Who> {
        let of_key = |key| self.limits.iter().map(move |limit| Who { key, limit: *limit });
        (0..self.keys.len()).flat_map(of_key).collect()
    }

    /// Moves the clock by whole microseconds. Returns true if it stepped back.
    pub(super) fn pass_time(&mut self) -> bool {
        let micros = |micros: u64| Ticks::saturating_from(Duration::from_micros(micros));
        let (now, random) = (self.now(), &mut self.random);
        let then = match random.u32(..100) {
            0..40 => now,
            40..60 => now.saturating_add(micros(random.u64(..2_000))),
            60..80 => now.saturating_add(micros(random.u64(..300_000))),
            80..90 => now.saturating_add(micros(random.u64(..8_000_000))),
            90..92 => now.saturating_add(micros(random.u64(..100_000_000_000))),
            92..97 => now.saturating_sub(micros(random.u64(..99_999))),
            97..99 => now.saturating_sub(micros(random.u64(..9_000_000))),
            _ => now.saturating_sub(micros(random.u64(..50_000_000_000))),
        };
        let then = then.ticks().min(u64::MAX / TICKS * TICKS);
        self.clock.set(Timestamp::from_ticks(then));
        self.furthest = self.furthest.max(self.now());
        then < now.ticks()
    }

    /// Returns true if the clock stepped back and has not caught up since.
    pub(super) fn is_behind(&self) -> bool {
        self.now() < self.furthest
    }

    fn who(&mut self) -> Who {
        let limit = self.limits[self.random.usize(..self.limits.len())];
        Who { key: self.random.usize(..self.keys.len() - 1), limit }
    }

    /// Returns true if a take would leave an empty state of a key without one. A map keeps it if it was one of several
    /// asks, and not if it was the only one. A server never does. Both are valid.
    fn leaves_nothing(&self, who: &Who) -> bool {
        let is_unlimited = who.limit.algorithm() == Algorithm::Pacer && who.limit.numbers()[0] == 0;
        is_unlimited && self.map.state(self.subject(who)) == State::default()
    }

    fn cost(&mut self, limit: &Limit) -> Cost {
        let all = limit.peek(&State::default(), Timestamp::EPOCH, Ask::ONE).limit();
        let units = match self.random.u32(..100) {
            0..60 => 1,
            60..80 => self.random.u64(1..=5),
            80..95 => self.random.u64(1..=all.clamp(1, 1 << 40)),
            95..97 => all.saturating_add(1),
            97..99 => self.random.u64(..) >> self.random.u32(..64),
            _ => u64::MAX,
        };
        Cost::new(units.max(1)).expect("at least 1")
    }

    fn ask(&mut self, limit: &Limit) -> Ask {
        let max_wait = match self.random.u32(..10) {
            0..5 => 0,
            5..8 => self.random.u64(..16_000_000_000),
            8 => self.random.u64(..1 << 50),
            _ => u64::MAX,
        };
        Ask::new(self.cost(limit)).max_wait_in_ticks(conformance::ticks(max_wait))
    }

    /// Returns the bids of one ask.
    fn bids(&mut self, only_debts: bool) -> Vec<(Who, Ask)> {
        let size = match self.random.u32(..10) {
            0..6 => 1,
            6..9 => self.random.usize(2..4),
            _ => self.random.usize(2..8),
        };
        let mut bids: Vec<(Who, Ask)> = Vec::new();
        while bids.len() < size {
            let who = self.who();
            let is_debt = matches!(who.limit.algorithm(), Algorithm::TokenBucket | Algorithm::LeakyBucket);
            // A state with two bids in one ask is handled by the store.
            let is_known = bids.iter().any(|(known, _)| known.key == who.key && known.limit == who.limit);
            if (is_debt || !only_debts) && (size == 1 || !(is_known || self.leaves_nothing(&who))) {
                bids.push((who, self.ask(&who.limit)));
            }
        }
        bids
    }

    pub(super) fn event(&mut self) -> Event {
        match self.random.u32(..100) {
            0..62 => {
                // While the clock is behind, a map drops states without debt between two asks, which a server keeps.
                let is_alone = self.random.bool() || self.is_behind();
                let asks = if is_alone { 1 } else { self.random.usize(2..8) };
                let only_debts = self.random.u32(..3) == 0;
                Event::Take((0..asks).map(|_| self.bids(only_debts)).collect())
            }
            62..72 => {
                let who = self.who();
                Event::Peek(who, self.ask(&who.limit))
            }
            72..86 => {
                let who = self.who();
                let cost = self.cost(&who.limit);
                let refunds = self.random.bool();
                Event::Adjust(who, if refunds { Adjustment::Refund(cost) } else { Adjustment::Charge(cost) })
            }
            86..93 if self.given.iter().any(Given::is_complete) => {
                let complete: Vec<_> =
                    (0..self.given.len()).filter(|place| self.given[*place].is_complete()).collect();
                let place = complete[complete.len() - 1 - self.random.usize(..complete.len().min(6))];
                let mut who = self.given[place].who;
                if self.random.u32(..4) == 0 {
                    let same = |limit: &&Limit| limit.algorithm() == who.limit.algorithm();
                    let others: Vec<_> = self.limits.iter().filter(same).copied().collect();
                    who.limit = others[self.random.usize(..others.len())];
                }
                // A server gives back more of a bucket than a map, which gives back only the last take.
                let state = self.map.state(self.subject(&who));
                let is_last =
                    self.given[place].taken.is_some_and(|taken| taken.clear_at == who.limit.clear_at(&state));
                let is_debt =
                    matches!(who.limit.algorithm(), Algorithm::TokenBucket | Algorithm::LeakyBucket);
                if self.is_good_for(&who, place) && (is_last || !is_debt) {
                    Event::GiveBack(who, place)
                } else {
                    Event::Take(vec![vec![(who, Ask::ONE)]])
                }
            }
            _ if !self.permits.is_empty() => {
                let place = self.random.usize(..self.permits.len());
                let (who, there, here) = self.permits[place];
                if self.random.bool() {
                    self.permits.swap_remove(place);
                    Event::Release(who, there, here)
                } else {
                    Event::Renew(who, there, here)
                }
            }
            _ => Event::Take(vec![vec![(self.who(), Ask::ONE)]]),
        }
    }

    /// Returns false if a server may report that nothing of the take is left, although the plain receipt of a map is
    /// valid. That happens if units were removed without a receipt since, or if the clock stepped back.
    fn is_good_for(&self, who: &Who, place: usize) -> bool {
        let (at, out_of_order) = (self.given[place].at, Ticks::saturating_from(Duration::from_millis(100)));
        let is_behind = self.now().saturating_add(out_of_order) < at;
        // A server determines the order by its clock, the library by the sequence of calls.
        let is_since = |nth: usize, when: Timestamp| at <= when || nth >= self.given[place].refunds_before;
        let mut since = self.refunded.iter().enumerate().filter(|(nth, (_, when))| is_since(*nth, *when));
        !is_behind && !since.any(|(_, (whose, _))| whose == who)
    }

    /// Builds the call to the server.
    pub(super) fn call(&self, event: &Event) -> Call {
        let time = Time::Given(self.now());
        match event {
            Event::Take(asks) => {
                let bids_of = |ask: &Vec<(Who, Ask)>| bids(&self.subjects(ask)).into();
                let asks: Vec<_> = asks.iter().map(|ask| TakeAsk::new(bids_of(ask))).collect();
                script::take(&asks, time)
            }
            Event::Peek(who, ask) => script::peek(&bids(&[(self.subject(who), *ask)]), time),
            Event::Adjust(who, adjustment) => {
                script::adjust(&target(&self.subject(who)), *adjustment, None, time)
            }
            Event::GiveBack(who, place) => {
                let taken = self.given[*place].taken.as_ref().expect("it was taken there too");
                script::give_back(&target(&self.subject(who)), taken, time)
            }
            Event::Release(who, there, _) => script::release(&target(&self.subject(who)), *there, time),
            Event::Renew(who, there, _) => script::renew(&target(&self.subject(who)), *there, time),
        }
    }

    /// Returns the keys of an ask, with their asks.
    pub(super) fn subjects<'a>(&'a self, ask: &'a [(Who, Ask)]) -> Vec<(Subject<'a>, Ask)> {
        ask.iter().map(|(who, ask)| (self.subject(who), *ask)).collect()
    }

    fn take(&mut self, ask: &[(Who, Ask)]) -> Vec<Decision> {
        let [(who, ask)] = *ask else { return self.map.take_all(&self.subjects(ask)).each().to_vec() };
        let (decision, receipt) = self.map.take(self.subject(&who), ask);
        if let Some(receipt) = receipt {
            let (at, refunds_before) = (self.now(), self.refunded.len());
            let receipt = Some(receipt);
            self.given.push(Given { who, at, refunds_before, receipt, taken: None });
        }
        vec![decision]
    }

    /// Returns the answer of the library.
    pub(super) fn answer(&mut self, event: &Event) -> Answer {
        match event {
            Event::Take(asks) => Answer::Decided(asks.iter().flat_map(|ask| self.take(ask)).collect()),
            Event::Peek(who, ask) => Answer::Decided(vec![self.map.peek(self.subject(who), *ask)]),
            Event::Adjust(who, adjustment) => {
                if matches!(adjustment, Adjustment::Refund(_)) {
                    self.refunded.push((*who, self.now()));
                }
                Answer::Adjusted(self.map.adjust(self.subject(who), *adjustment))
            }
            Event::GiveBack(who, place) => {
                let receipt = self.given[*place].receipt.take();
                match receipt {
                    Some(receipt) => Answer::Adjusted(self.map.give_back(self.subject(who), receipt)),
                    None => Answer::Adjusted(Adjusted::Capped),
                }
            }
            Event::Release(who, _, here) => Answer::Was(self.map.release(self.subject(who), *here)),
            Event::Renew(who, _, here) => Answer::Was(self.map.renew(self.subject(who), *here)),
        }
    }

    /// Records the server's results for takes that the library has allowed.
    pub(super) fn note(
        &mut self,
        asks: &[(Who, Ask)],
        here: &[Decision],
        there: (&[Decision], &[Option<TakeRecord>]),
    ) {
        for (((who, _), here), (there, taken)) in asks.iter().zip(here).zip(there.0.iter().zip(there.1)) {
            if let (Some(here), Some(there)) = (here.permit(), there.permit()) {
                self.permits.push((*who, there, here));
            }
            let waiting = self.given.iter_mut().find(|given| given.taken.is_none());
            if let (1, Some(taken), Some(waiting)) = (asks.len(), taken, waiting) {
                waiting.taken = Some(*taken);
            }
        }
    }

    /// Drops used and expired receipts.
    pub(super) fn tidy(&mut self) {
        self.given.retain(|given| given.receipt.is_some());
        let old = self.given.len().saturating_sub(20);
        self.given.drain(..old);
        let old = self.permits.len().saturating_sub(60);
        self.permits.drain(..old);
    }
}
