//! One ask of a script: the state that it is about, the limit of that, and what a key without a live state begins with.

use std::collections::HashSet;
use std::sync::Arc;

use tidegate::{Algorithm, Ask, Limit, PermitId, PreparedLimit, State, Timestamp};

use super::TICKS;
use super::change::{NUMBER_BITS, permit_id};
use super::key::{LimitName, StateName};
use super::limits::{Unsupported, held, permit_name};
use super::pack::Pack;
use super::text::Kind;

/// A state in a server, and the limit that it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The name of the state.
    pub(crate) name: StateName,
    /// The limit, as a script holds it.
    pub(crate) limit: Limit,
    /// Holders are one set whatever the numbers: permits of a rule.
    pub(crate) is_one_set: bool,
}

impl Target {
    /// The state of a key under a limit that was prepared.
    pub(crate) fn new(
        prefix: &[u8],
        limit: &PreparedLimit,
        key: &tidegate::Key,
    ) -> Result<Target, Unsupported> {
        let name = LimitName::of(limit).state(prefix, key);
        Ok(Target { name, limit: held(limit.limit())?, is_one_set: limit.is_one_set() })
    }
}

/// One of several asks that one script decides.
#[derive(Clone, Debug)]
pub(crate) struct Bid {
    pub(crate) target: Target,
    pub(crate) ask: Ask,
    /// Where counts of limits before this one may matter: what a key without a live state begins with.
    pub(crate) begin: Option<Begin>,
    /// The random bits of the permit that it gets, under a concurrency limit.
    pub(crate) number: u64,
}

impl Bid {
    /// An ask under a limit without predecessors.
    pub(crate) fn new(target: Target, ask: Ask) -> Bid {
        let number = match target.limit.algorithm() {
            Algorithm::Concurrency => fastrand::u64(..1 << NUMBER_BITS),
            _ => 0,
        };
        Bid { target, ask, begin: None, number }
    }

    /// The permit that it gets if it is allowed, under a concurrency limit.
    pub(crate) fn permit(&self) -> Option<PermitId> {
        let units = (self.target.limit.algorithm() == Algorithm::Concurrency).then(|| self.units_held())?;
        permit_id(units, self.number)
    }

    /// The name of that permit in the server.
    pub(super) fn permit_name(&self) -> String {
        permit_name(self.units_held(), self.number)
    }

    /// How many places it asks for; what is more than all, is too much.
    pub(super) fn units_held(&self) -> u64 {
        let [most, ..] = self.target.limit.numbers();
        self.ask.cost.get().min(most + 1)
    }
}

/// One ask for all of its bids or none, of which several go in one call.
#[derive(Clone, Debug)]
pub(crate) struct TakeAsk {
    pub(crate) bids: Arc<[Bid]>,
    /// A state is asked for more than once. Such an ask is a call of its own: its states are copied before they are written.
    pub(crate) has_twins: bool,
}

impl TakeAsk {
    pub(crate) fn new(bids: Arc<[Bid]>) -> TakeAsk {
        let has_twins = bids.len() > 1 && names(&bids).len() < bids.len();
        TakeAsk { bids, has_twins }
    }

    /// The length of the names of its states.
    pub(crate) fn name_bytes(&self) -> usize {
        self.bids.iter().map(|bid| bid.target.name.len()).sum()
    }

    /// The states that it asks for.
    pub(crate) fn states(&self) -> States {
        let is_debt = |bid: &Bid| Kind::of(bid.target.limit.algorithm()) == Kind::Debt;
        match self.bids.iter().filter(|bid| is_debt(bid)).count() {
            0 => States::Others,
            // The script that only knows buckets knows neither copies nor what a key begins with.
            all if all == self.bids.len()
                && !self.has_twins
                && self.bids.iter().all(|bid| bid.begin.is_none()) =>
            {
                States::Debts
            }
            _ => States::Mixed,
        }
    }
}

/// The states of an ask, by the scripts that know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum States {
    /// Buckets, which have a script of their own.
    Debts,
    /// No buckets.
    Others,
    Mixed,
}

/// The names of states, each once.
pub(super) fn names(bids: &[Bid]) -> HashSet<&StateName> {
    bids.iter().map(|bid| &bid.target.name).collect()
}

/// The state that a key without a live one begins with, and the time until which that is known.
#[derive(Clone, Debug)]
pub(crate) struct Begin {
    pub(crate) state: State,
    pub(crate) until: Timestamp,
}

impl Begin {
    /// Nothing is known: a script that finds no live state answers so, and does nothing.
    pub(crate) fn unknown() -> Begin {
        Begin { state: State::default(), until: Timestamp::EPOCH }
    }

    /// The argument of a script. A state is written as the server would keep it; a log, as base and entries.
    pub(super) fn argument(&self, limit: &Limit) -> Vec<u8> {
        // A script knows whole microseconds only, and none of them lies between a time and the next of those.
        let mut bytes = Pack::new(b'b').number(self.until.ticks().div_ceil(TICKS)).into_bytes();
        let words = self.state.words();
        let (whole, part) = (|ticks: u64| ticks / TICKS, |ticks: u64| ticks % TICKS);
        match (limit.algorithm(), &*words) {
            (_, []) => {}
            (Algorithm::TokenBucket | Algorithm::LeakyBucket, [clear_at]) => {
                bytes.extend(format!("{}:{}", whole(*clear_at), part(*clear_at)).bytes());
            }
            (Algorithm::FixedWindow, [end, count]) => {
                bytes.extend(format!("{}:{count}", whole(*end)).bytes());
            }
            (Algorithm::Pacer, [at, owed, saved, scale]) => {
                let (at, owed, owed_ticks) = (whole(*at), whole(*owed), part(*owed));
                let (saved, saved_ticks) = (whole(*saved), part(*saved));
                bytes.extend(format!("{at}:{owed}:{owed_ticks}:{saved}:{saved_ticks}:{scale}").bytes());
            }
            (Algorithm::SlidingLog, [base, entries @ ..]) => {
                let numbers = entries.chunks_exact(2).flat_map(|entry| [whole(entry[0]), entry[1]]);
                let numbers = std::iter::once(*base).chain(numbers);
                bytes.extend(numbers.flat_map(|number| (number as f64).to_le_bytes()));
            }
            (_, [newest, width, counts @ ..]) => {
                let numbers = [*newest, whole(*width)].into_iter().chain(counts.iter().copied());
                bytes.extend(packed_array(numbers.collect()));
            }
            _ => {}
        }
        bytes
    }

    /// The argument for an ask that begins with nothing else than its own state.
    pub(super) fn none() -> Vec<u8> {
        vec![b'b']
    }
}

/// An array of numbers in `MessagePack`, as `cmsgpack` reads it.
fn packed_array(numbers: Vec<u64>) -> Vec<u8> {
    let mut bytes = vec![0xdd];
    bytes.extend((numbers.len() as u32).to_be_bytes());
    for number in numbers {
        bytes.push(0xcb);
        bytes.extend((number as f64).to_be_bytes());
    }
    bytes
}
