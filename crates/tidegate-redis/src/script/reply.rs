//! Parsing of replies, and the decisions derived from them.
//!
//! A reply has one of three forms:
//!
//! ```text
//!   "1700000000 5 123 456"              time and debts on one line: buckets, no errors
//!   [debt, debt, ..., seconds, micros]  the same with an error in the place of an ask
//!   [seconds, micros, [spent, state, ...], ...]   any algorithm: an array or an error for each ask
//! ```
//!
//! Every value is validated, because another program may have written the keys. A reply that contradicts the library is
//! an error, never a decision.

use redis::{ServerError, Value};
use tidegate_core::{Adjusted, Algorithm, Decision, PermitId, State, Timestamp};

use super::bid::{Bid, Role};
use super::change::{TakeRecord, permit_of};
use super::words::{debt, digits, numbers_of, words_of_holders, words_of_numbers, words_of_text};
use super::{EPOCH, TICKS, Unreadable};

/// The part of the reply to [`take`](super::take) about one ask. It keeps the states as they were sent, until the
/// decision needs them.
#[derive(Debug)]
pub(crate) struct AskReply {
    /// The server's time, the same for all asks of a call.
    now: Timestamp,
    /// The result of this ask.
    spent: Spent,
    /// The state of each bid before the take.
    states: Vec<StateReply>,
}

/// The state of one bid before the take.
#[derive(Debug)]
enum StateReply {
    /// The time at which a debt is repaid (the TAT), in ticks; `None` if there is no debt.
    Debt(Option<u64>),
    /// A state of another algorithm, as it was sent.
    Other(Value),
}

/// The result of a script: units spent or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spent {
    /// The units of all bids were spent.
    All,
    /// A bid was denied, so nothing was spent.
    None,
    /// The reply does not contain it: for buckets it follows from the state.
    Untold,
    /// The script did nothing, because it needs the initial state of a key.
    Unknown,
}

/// The outcome of one ask.
#[derive(Debug)]
pub(crate) enum TakeReply {
    /// The ask was allowed or denied.
    Decided(Decided),
    /// Nothing was done: the initial state of a key without a live state is unknown or has expired.
    Unknown {
        now: Timestamp,
        /// For each bid, true if it has a live state, or no other initial state.
        is_live: Vec<bool>,
    },
}

/// The decisions about all bids.
#[derive(Debug)]
pub(crate) struct Decided {
    /// The server's time.
    pub(crate) now: Timestamp,
    /// The decisions, in the order of the bids.
    pub(crate) bids: Vec<DecidedBid>,
}

/// The decision about one bid.
#[derive(Debug)]
pub(crate) struct DecidedBid {
    /// The library's decision on the state before the take.
    pub(crate) decision: Decision,
    /// The data needed to give the take back, if units were spent.
    pub(crate) taken: Option<TakeRecord>,
    /// The state before the take.
    pub(crate) state: State,
    /// True if the decision used the initial state of the key, because it had no live state.
    pub(crate) is_begun: bool,
    /// The permit that the server reported.
    permit: Option<PermitId>,
}

impl DecidedBid {
    /// Creates the decision about a bid that was only peeked at. The library decides on the state, without a change to
    /// it.
    pub(crate) fn seen(bid: &Bid, state: State, now: Timestamp) -> DecidedBid {
        let decision = bid.target.limit.peek(&state, now, bid.ask);
        DecidedBid { decision, taken: None, state, is_begun: false, permit: None }
    }
}

/// Splits the reply to [`take`](super::take) by its asks, which have these numbers of bids. An error in the place of an
/// ask is returned for that ask. Any other unexpected value makes the whole reply unreadable, because the states
/// cannot be assigned to asks then.
pub(crate) fn read_takes(
    reply: Value,
    sizes: impl ExactSizeIterator<Item = usize> + Clone,
) -> Result<Vec<Result<AskReply, ServerError>>, Unreadable> {
    match reply {
        Value::BulkString(line) => {
            let (now, debts) = read_line(&line).ok_or_else(|| Unreadable::new("no time", &line))?;
            let mut debts = debts.split(|byte| *byte == b' ').map(StateReply::of_debt);
            let asks = sizes.map(|size| {
                let mut states = Vec::with_capacity(size);
                for _ in 0..size {
                    states.push(debts.next()??);
                }
                Some(Ok(AskReply { now, spent: Spent::Untold, states }))
            });
            let asks = asks.collect::<Option<_>>().filter(|_| debts.next().is_none());
            asks.ok_or_else(|| Unreadable::new("no decision", &line))
        }
        // The time follows the debts if one of them is an error.
        Value::Array(mut parts)
            if parts.len() == sizes.clone().sum::<usize>() + 2 && ends_with_time(&parts) =>
        {
            let now = time_of_parts(&parts.split_off(parts.len() - 2))?;
            let mut states = parts.into_iter();
            sizes.map(|size| AskReply::of_debts(now, states.by_ref().take(size))).collect()
        }
        Value::Array(mut parts) if parts.len() == sizes.len() + 2 => {
            let asks = parts.split_off(2);
            let now = time_of_parts(&parts)?;
            asks.into_iter().zip(sizes).map(|(ask, size)| AskReply::of_ask(now, ask, size)).collect()
        }
        other => Err(Unreadable::new("no decision", &other)),
    }
}

/// Returns true for debts followed by the time. Other replies end with an array or an error.
fn ends_with_time(parts: &[Value]) -> bool {
    matches!(parts.last(), Some(Value::BulkString(_)))
}

/// Parses a line: seconds, microseconds, then the debts, separated by spaces. Only a missing debt is empty.
fn read_line(line: &[u8]) -> Option<(Timestamp, &[u8])> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let now = time_of(words.next()?, words.next()?)?;
    Some((now, words.next()?))
}

impl StateReply {
    /// Parses a debt of a line. An empty one is missing.
    fn of_debt(word: &[u8]) -> Option<StateReply> {
        if word.is_empty() { Some(StateReply::Debt(None)) } else { Some(StateReply::Debt(Some(debt(word)?))) }
    }
}

impl AskReply {
    /// Parses the debts of one ask. An error replaces the first.
    fn of_debts(
        now: Timestamp,
        states: impl Iterator<Item = Value>,
    ) -> Result<Result<AskReply, ServerError>, Unreadable> {
        let mut debts = Vec::new();
        let mut failed = None;
        for state in states {
            match state {
                Value::ServerError(error) => failed = Some(error),
                Value::BulkString(text) => debts.extend(StateReply::of_debt(&text)),
                // States behind an error were not read.
                Value::Nil => {}
                other => return Err(Unreadable::new("no debt", &other)),
            }
        }
        Ok(failed.map_or_else(|| Ok(AskReply { now, spent: Spent::Untold, states: debts }), Err))
    }

    /// Parses whether an ask was spent, and its states.
    fn of_ask(now: Timestamp, ask: Value, size: usize) -> Result<Result<AskReply, ServerError>, Unreadable> {
        let mut parts = match ask {
            Value::ServerError(error) => return Ok(Err(error)),
            Value::Array(parts) if parts.len() == size + 1 => parts,
            other => return Err(Unreadable::new("no decision", &other)),
        };
        let states = parts.split_off(1).into_iter().map(StateReply::Other).collect();
        let spent = match parts.pop() {
            Some(Value::Int(0)) => Spent::None,
            Some(Value::Int(1)) => Spent::All,
            Some(Value::Int(2)) => Spent::Unknown,
            other => return Err(Unreadable::new("neither that it spent nor that it did not", &other)),
        };
        Ok(Ok(AskReply { now, spent, states }))
    }

    /// Returns each bid with its state. Fails if the number of states is another, or a state is malformed.
    fn seen_states<'r>(
        &'r self,
        bids: &'r [Bid],
    ) -> Result<impl Iterator<Item = Result<(&'r Bid, SeenState), Unreadable>>, Unreadable> {
        if self.states.len() != bids.len() {
            return Err(Unreadable::new("no state", &self.states));
        }
        Ok(bids.iter().zip(&self.states).map(|(bid, state)| {
            let seen = read_state(state, bid.target.limit.algorithm());
            Ok((bid, seen.ok_or_else(|| Unreadable::new("no state", state))?))
        }))
    }
}

/// Derives the outcome of one ask. The library repeats each decision. A verdict of the script that differs is an error,
/// because it means another version of a script or of the library.
pub(crate) fn read_take(reply: &AskReply, bids: &[Bid]) -> Result<TakeReply, Unreadable> {
    let now = reply.now;
    let mut decided = Vec::with_capacity(bids.len());
    for seen in reply.seen_states(bids)? {
        let (bid, SeenState { mut state, is_missing, permit }) = seen?;
        if let Some(begin) = bid.begin.as_ref().filter(|_| is_missing) {
            state = begin.state.clone();
        }
        let is_begun = bid.begin.is_some() && is_missing;
        decided.push(DecidedBid { is_begun, permit, ..DecidedBid::seen(bid, state, now) });
    }
    let is_spent = match reply.spent {
        Spent::All => true,
        Spent::None => false,
        // Buckets have no strikes among them.
        Spent::Untold => decided.iter().all(|bid| bid.decision.is_allowed()),
        Spent::Unknown => {
            let is_live = decided.iter().map(|bid| !bid.is_begun).collect();
            return Ok(TakeReply::Unknown { now, is_live });
        }
    };
    if is_spent {
        for (bid, decided) in bids.iter().zip(&mut decided).filter(|(bid, _)| bid.is_limit()) {
            let (decision, taken) = spent(bid, decided, now)?;
            (decided.decision, decided.taken) = (decision, Some(taken));
        }
    } else if deciding(bids, &decided).all(|bid| bid.decision.is_allowed()) {
        return Err(Unreadable::new("that it has denied what the library allows", &decided));
    }
    Ok(TakeReply::Decided(Decided { now, bids: decided }))
}

/// Returns the decisions that an ask depends on: those of its limits and of bans, not of strikes.
fn deciding<'d>(bids: &'d [Bid], decided: &'d [DecidedBid]) -> impl Iterator<Item = &'d DecidedBid> {
    let each = bids.iter().zip(decided);
    each.filter(|(bid, _)| bid.role != Role::Strikes).map(|(_, decided)| decided)
}

/// Returns the decision about a bid whose units were spent, and the data needed to give it back. It fails if the
/// library would deny this take.
fn spent(bid: &Bid, seen: &DecidedBid, now: Timestamp) -> Result<(Decision, TakeRecord), Unreadable> {
    let (limit, mut state) = (&bid.target.limit, seen.state.clone());
    let mut decision = limit.decide(&mut state, now, bid.ask);
    if !decision.is_allowed() {
        return Err(Unreadable::new("that it has spent on what the library denies", &(limit, state)));
    }
    if let (Algorithm::Concurrency, Some(permit)) = (limit.algorithm(), seen.permit) {
        decision = decision.with_permit(permit);
    }
    let taken = TakeRecord::new(limit, &state, bid.ask.cost, now, &decision);
    Ok((decision, taken))
}

/// Parses the reply to [`peek`](super::peek): the time, and the state of each bid.
pub(crate) fn read_peek(reply: Value, bids: &[Bid]) -> Result<(Timestamp, Vec<State>), Unreadable> {
    let seen = read_takes(reply, std::iter::once(bids.len()))?.pop();
    let Some(Ok(seen)) = seen else { return Err(Unreadable::new("no state", &seen)) };
    let states: Result<_, Unreadable> = seen.seen_states(bids)?.map(|seen| Ok(seen?.1.state)).collect();
    Ok((seen.now, states?))
}

/// Parses the reply to [`adjust`](super::adjust) and [`give_back`](super::give_back). `None` if nothing was done,
/// because the initial state of a key without a live state is unknown. The result `Capped` means that only a part was
/// applied.
pub(crate) fn read_adjust(reply: Value) -> Result<Option<Adjusted>, Unreadable> {
    match reply {
        Value::Int(1) => Ok(Some(Adjusted::Whole)),
        Value::Int(0) => Ok(Some(Adjusted::Capped)),
        Value::Int(2) => Ok(Some(Adjusted::NeedsPermit)),
        Value::Int(3) => Ok(None),
        other => Err(Unreadable::new("no adjustment", &other)),
    }
}

/// Parses the reply to [`release`](super::release) and [`renew`](super::renew). A permit is no longer held after its
/// release, and after its lease.
pub(crate) fn read_whether(reply: Value) -> Result<bool, Unreadable> {
    match reply {
        Value::Int(answer @ (0 | 1)) => Ok(answer == 1),
        other => Err(Unreadable::new("neither yes nor no", &other)),
    }
}

/// The state behind a decision. For a log or for holders, the part that the decision needs.
struct SeenState {
    /// The state in the words of the library.
    state: State,
    /// True if the key has no state.
    is_missing: bool,
    /// The permit in the reply, under a concurrency limit.
    permit: Option<PermitId>,
}

/// Parses the two parts of the time in a reply.
pub(super) fn time_of_parts(time: &[Value]) -> Result<Timestamp, Unreadable> {
    let now = match time {
        [Value::BulkString(seconds), Value::BulkString(micros)] => time_of(seconds, micros),
        _ => None,
    };
    now.ok_or_else(|| Unreadable::new("no time", &time))
}

/// Returns a part of a reply as text.
pub(super) fn text_of(value: &Value) -> Option<&str> {
    let Value::BulkString(text) = value else { return None };
    std::str::from_utf8(text).ok()
}

/// Converts seconds and microseconds since 1970 to a time since 2024. An earlier time is the epoch.
fn time_of(seconds: &[u8], micros: &[u8]) -> Option<Timestamp> {
    let (seconds, micros) = (digits(seconds)?, digits(micros)?);
    let micros = seconds.checked_mul(1_000_000)?.checked_add(micros)?.saturating_sub(EPOCH * 1_000_000);
    Some(Timestamp::from_ticks(micros.checked_mul(TICKS)?))
}

/// Converts one state. Returns `None` if it is malformed for its algorithm.
fn read_state(state: &StateReply, algorithm: Algorithm) -> Option<SeenState> {
    let mut permit = None;
    let value = match state {
        StateReply::Debt(clear_at) => {
            let state = State::from_words(algorithm, clear_at.as_slice())?;
            return Some(SeenState { state, is_missing: clear_at.is_none(), permit });
        }
        StateReply::Other(value) => value,
    };
    let words = match (value, algorithm) {
        (Value::Nil, _) => Vec::new(),
        (Value::BulkString(text), _) => words_of_text(text, algorithm)?,
        (Value::Array(parts), Algorithm::Concurrency) => {
            let (name, numbers) = parts.split_first()?;
            let Value::BulkString(name) = name else { return None };
            permit = permit_of(std::str::from_utf8(name).ok()?);
            words_of_holders(&numbers_of(numbers)?)?
        }
        (Value::Array(parts), _) => words_of_numbers(&numbers_of(parts)?, algorithm)?,
        _ => return None,
    };
    let is_missing = matches!(value, Value::Nil);
    Some(SeenState { state: State::from_words(algorithm, &words)?, is_missing, permit })
}
