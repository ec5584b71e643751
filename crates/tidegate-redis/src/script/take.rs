//! Calls that take from limits, or peek at them.
//!
//! Buckets are the usual case and have scripts of their own, which are shorter and need one packed argument.

use super::bid::{Begin, Bid, Role, States, TakeAsk, names};
use super::limits::pack_take;
use super::text::{Job, Kind, Kinds};
use super::{Call, StateName, Time};

/// The letter before the sizes of several asks, and the one for asks that may share a state.
const SIZES: u8 = b'a';
/// The letter for asks that may share a state: the script then records what it has written.
const SIZES_WITH_TWINS: u8 = b'w';

/// Builds a call that takes each of these asks on its own, in order, with all bids of an ask or none.
/// [`read_takes`](super::read_takes) parses the reply.
///
/// If there are several asks, each has at most 255 bids and no state twice.
pub(crate) fn take(asks: &[TakeAsk], time: Time) -> Call {
    let bids = || asks.iter().flat_map(|ask| &*ask.bids);
    let mut keys: Vec<_> = bids().map(|bid| bid.target.name.clone()).collect();
    let kinds: Kinds = bids().flat_map(kinds_of).collect();
    let is_plain = asks.iter().all(|ask| ask.states() == States::Debts);
    let job = match asks {
        [ask] if is_plain && ask.bids.len() == 1 => Job::TakeDebt,
        [_] if is_plain => Job::TakeDebts,
        _ if is_plain => Job::TakeDebtsEach,
        _ => Job::Take(kinds),
    };
    let mut arguments = Vec::with_capacity(bids().count() + 3);
    match job {
        Job::Take(_) => arguments.extend(bids().map(|bid| pack_bid(bid, time))),
        // Every argument has a cost on the server.
        _ => arguments.push(bids().fold(Vec::new(), |packs, bid| pack_take(bid, time, packs))),
    }
    if bids().any(|bid| bid.begin.is_some()) {
        let begin = |bid: &Bid| {
            bid.begin.as_ref().map_or_else(Begin::none, |begin| begin.argument(&bid.target.limit))
        };
        arguments.extend(bids().map(begin));
    }
    match asks {
        [ask] if ask.has_twins => keys.extend(copies(&ask.bids)),
        [_] => {}
        _ => {
            let sizes = asks.iter().map(|ask| u8::try_from(ask.bids.len()).unwrap_or(u8::MAX));
            let letter = if may_share_states(&keys) { SIZES_WITH_TWINS } else { SIZES };
            arguments.push(std::iter::once(letter).chain(sizes).collect());
        }
    }
    arguments.extend(time.arguments());
    Call { script: job.script(), keys, arguments }
}

/// Builds a call that peeks at each bid on its own. [`read_peek`](super::read_peek) parses the reply.
pub(crate) fn peek(bids: &[Bid], time: Time) -> Call {
    let keys = bids.iter().map(|bid| bid.target.name.clone()).collect();
    let mut arguments: Vec<_> = bids.iter().map(|bid| pack_take(bid, time, Vec::new())).collect();
    arguments.extend(time.arguments());
    Call { script: Job::Peek(bids.iter().map(kind_of).collect()).script(), keys, arguments }
}

/// Returns the kind of state of a bid.
fn kind_of(bid: &Bid) -> Kind {
    Kind::of(bid.target.limit.algorithm())
}

/// Returns the kinds that the script of a take needs for a bid.
fn kinds_of(bid: &Bid) -> impl Iterator<Item = Kind> {
    std::iter::once(kind_of(bid)).chain((!bid.is_limit()).then_some(Kind::Penalty))
}

/// Encodes a bid of a take: its pack, behind a letter if it is that of a ban or of strikes.
fn pack_bid(bid: &Bid, time: Time) -> Vec<u8> {
    let pack = pack_take(bid, time, Vec::new());
    match bid.role {
        Role::Limit => pack,
        Role::Ban => [b"q", &*pack].concat(),
        Role::Strikes => [b"x", &*pack].concat(),
    }
}

/// Returns the keys for copies of states with more than one bid. Their presence selects this mode in the script.
fn copies(bids: &[Bid]) -> impl Iterator<Item = StateName> {
    names(bids).into_iter().map(|name| [name, &b"~"[..]].concat().into())
}

/// Returns true if a name occurs twice. False positives are very rare.
fn may_share_states(names: &[StateName]) -> bool {
    let mut fingerprints: Vec<_> = names.iter().map(|name| fingerprint(name)).collect();
    fingerprints.sort_unstable();
    fingerprints.windows(2).any(|two| two[0] == two[1])
}

/// Returns a fast hash of a name. A collision only selects the slower variant of the script.
fn fingerprint(name: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let words = name.chunks(8).map(|part| part.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    words.fold(name.len() as u64, mix)
}
