//! One ask of a script: a state, its limit, and the initial state of a key without a live state.

use std::collections::HashSet;
use std::sync::Arc;

use tidegate_core::{Algorithm, Ask, Limit, PermitId, PreparedLimit, State, Timestamp};

use super::TICKS;
use super::change::{NUMBER_BITS, permit_id};
use super::key::{LimitName, StateName};
use super::limits::{Unsupported, held, permit_name};
use super::pack::Pack;
use super::reply::DecidedBid;
use super::text::Kind;

/// A state on a server, with its limit.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The name of the state.
    pub(crate) name: StateName,
    /// The limit as a script applies it.
    pub(crate) limit: Limit,
    /// True if the holders are one set for all numbers of the limit: permits of a rule.
    pub(crate) is_one_set: bool,
}

impl Target {
    /// Returns the state of a key under a prepared limit.
    pub(crate) fn new(
        prefix: &[u8],
        limit: &PreparedLimit,
        key: &tidegate_core::Key,
    ) -> Result<Target, Unsupported> {
        let name = LimitName::of(limit).state(prefix, key);
        Ok(Target { name, limit: held(limit.limit())?, is_one_set: limit.is_one_set() })
    }
}

/// One of several asks that one script decides.
#[derive(Clone, Debug)]
pub(crate) struct Bid {
    /// The state, and its limit.
    pub(crate) target: Target,
    /// The cost and the longest accepted wait.
    pub(crate) ask: Ask,
    /// The initial state of a key without a live state, where counts of previous limits may matter.
    pub(crate) begin: Option<Begin>,
    /// The random bits of its permit, under a concurrency limit. It is chosen before the call, so the permit can be
    /// released even if the reply is lost.
    pub(crate) number: u64,
    /// Its part in the ask.
    pub(crate) role: Role,
}

/// The part of a bid in its ask.
///
/// A limit with a penalty has three bids, one behind the other: its own, then those of the ban and of the strikes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// A limit. The ask takes from all of them, or from none.
    #[default]
    Limit,
    /// A ban, which has to allow. Only the last strike writes it.
    Ban,
    /// Strikes, which do not decide. A denial by the limit adds one.
    Strikes,
}

impl Bid {
    /// Creates an ask under a limit without predecessors.
    pub(crate) fn new(target: Target, ask: Ask) -> Bid {
        let number = match target.limit.algorithm() {
            Algorithm::Concurrency => fastrand::u64(..1 << NUMBER_BITS),
            _ => 0,
        };
        Bid { target, ask, begin: None, number, role: Role::Limit }
    }

    /// Returns the bid with this part.
    pub(crate) fn in_role(self, role: Role) -> Bid {
        Bid { role, ..self }
    }

    /// Returns true if nothing of its ask is against a take: it is a limit that was taken from, a ban that is not in
    /// force, or strikes.
    pub(crate) fn is_spent(&self, decided: &DecidedBid) -> bool {
        match self.role {
            Role::Limit => decided.taken.is_some(),
            Role::Ban => decided.decision.is_allowed(),
            Role::Strikes => true,
        }
    }

    /// Returns true if it is the bid of a limit.
    pub(crate) fn is_limit(&self) -> bool {
        self.role == Role::Limit
    }

    /// Returns the permit that it gets if it is allowed, under a concurrency limit. `None` for other algorithms, and
    /// for a cost that no permit id can hold.
    pub(crate) fn permit(&self) -> Option<PermitId> {
        let units = (self.target.limit.algorithm() == Algorithm::Concurrency).then(|| self.units_held())?;
        permit_id(units, self.number)
    }

    /// Returns the name of that permit on the server.
    pub(super) fn permit_name(&self) -> String {
        permit_name(self.units_held(), self.number)
    }

    /// Returns the units that it asks for. A cost above the limit is capped at one more than the limit. So the number
    /// fits into a permit id, and the ask is denied regardless.
    pub(super) fn units_held(&self) -> u64 {
        let [most, ..] = self.target.limit.numbers();
        self.ask.cost.get().min(most + 1)
    }
}

/// An ask for all of its bids or none. Several asks can share one call.
#[derive(Clone, Debug)]
pub(crate) struct TakeAsk {
    /// The bids, at least one. All of them share a slot.
    pub(crate) bids: Arc<[Bid]>,
    /// True if a state has more than one bid. Such an ask is a call of its own: its states are copied before they are
    /// written.
    pub(crate) has_twins: bool,
}

impl TakeAsk {
    /// Creates an ask, and finds out if a state has more than one bid.
    pub(crate) fn new(bids: Arc<[Bid]>) -> TakeAsk {
        let has_twins = bids.len() > 1 && names(&bids).len() < bids.len();
        TakeAsk { bids, has_twins }
    }

    /// Returns true if the script may do nothing, because it needs the initial state of a key.
    pub(crate) fn may_repeat(&self) -> bool {
        self.bids.iter().any(|bid| bid.begin.is_some())
    }

    /// Returns the length of the names of its states. It bounds the size of a call.
    pub(crate) fn name_bytes(&self) -> usize {
        self.bids.iter().map(|bid| bid.target.name.len()).sum()
    }

    /// Returns the kind of states that it needs. Buckets have faster scripts, so they are distinguished from other
    /// algorithms.
    pub(crate) fn states(&self) -> States {
        let is_debt = |bid: &Bid| Kind::of(bid.target.limit.algorithm()) == Kind::Debt;
        match self.bids.iter().filter(|bid| is_debt(bid)).count() {
            0 => States::Others,
            // The script for buckets only supports neither copies, nor initial states, nor bans.
            all if all == self.bids.len()
                && !self.has_twins
                && self.bids.iter().all(|bid| bid.begin.is_none() && bid.is_limit()) =>
            {
                States::Debts
            }
            _ => States::Mixed,
        }
    }
}

/// The states of an ask, by the scripts that support them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum States {
    /// Buckets, which have a script of their own.
    Debts,
    /// No buckets.
    Others,
    /// Both, or buckets that need copies or initial states. The general script serves all.
    Mixed,
}

/// Returns the names of states, each once.
pub(super) fn names(bids: &[Bid]) -> HashSet<&StateName> {
    bids.iter().map(|bid| &bid.target.name).collect()
}

/// The initial state of a key without a live state, and the time until which it is valid.
#[derive(Clone, Debug)]
pub(crate) struct Begin {
    /// The state; empty for an unused key.
    pub(crate) state: State,
    /// The time until which it is valid. The epoch means unknown.
    pub(crate) until: Timestamp,
}

impl Begin {
    /// Creates an unknown initial state: a script that finds no live state reports that, and does nothing.
    pub(crate) fn unknown() -> Begin {
        Begin { state: State::default(), until: Timestamp::EPOCH }
    }

    /// Encodes the argument of a script. A state is written in its stored format; a log as base and entries.
    pub(super) fn argument(&self, limit: &Limit) -> Vec<u8> {
        // A script uses whole microseconds, so the end can be rounded up to the next one.
        let mut bytes = Pack::new(b'b').number(self.until.ticks().div_ceil(TICKS)).into_bytes();
        let words = self.state.words();
        let (whole, part) = (|ticks: u64| ticks / TICKS, |ticks: u64| ticks % TICKS);
        match (limit.algorithm(), &*words) {
            (_, []) => {}
            (Algorithm::TokenBucket | Algorithm::LeakyBucket, [clear_at]) => {
                bytes.extend(format!("{}:{}", whole(*clear_at), part(*clear_at)).bytes());
            }
            (Algorithm::FixedWindow | Algorithm::Calendar, [end, count]) => {
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

    /// Encodes the argument for an ask without an initial state.
    pub(super) fn none() -> Vec<u8> {
        vec![b'b']
    }
}

/// Encodes an array of numbers in `MessagePack`, as read by `cmsgpack`. Every number is a double, which the script
/// expects, and the length has 32 bits.
fn packed_array(numbers: Vec<u64>) -> Vec<u8> {
    let mut bytes = vec![0xdd];
    bytes.extend((numbers.len() as u32).to_be_bytes());
    for number in numbers {
        bytes.push(0xcb);
        bytes.extend((number as f64).to_be_bytes());
    }
    bytes
}
