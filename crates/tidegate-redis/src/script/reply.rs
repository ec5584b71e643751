//! Reading what a server answers, and deciding about it.

use redis::{ServerError, Value};
use tidegate::{Adjusted, Algorithm, Decision, State, Timestamp};

use super::bid::Bid;
use super::change::{Taken, permit_of};
use super::words::{debt, digits, numbers_of, words_of_holders, words_of_numbers, words_of_text};
use super::{EPOCH, TICKS, Unreadable};

/// The part of the reply to [`take`](super::take) that is about one ask.
#[derive(Debug)]
pub(crate) struct AskReply {
    now: Timestamp,
    spent: Spent,
    states: Vec<StateReply>,
}

/// The state of one bid, as it was.
#[derive(Debug)]
enum StateReply {
    /// The time at which a debt is repaid, in ticks; nothing if there is none.
    Debt(Option<u64>),
    Other(Value),
}

/// Whether a script has spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spent {
    All,
    None,
    /// It does not say so: about buckets there is no doubt.
    Untold,
    /// It did nothing, for it has to know more.
    Unknown,
}

/// The outcome of one ask.
#[derive(Debug)]
pub(crate) enum TakeReply {
    Decided(Decided),
    /// Nothing was done: a key without a live state begins with something that is not known, or not any more.
    Unknown {
        now: Timestamp,
        /// For each bid, whether it has a live state, or begins with nothing else.
        is_live: Vec<bool>,
    },
}

/// The decisions about all bids.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) now: Timestamp,
    pub(crate) decisions: Vec<Decision>,
    /// If it was spent, what each take is given back with.
    pub(crate) taken: Vec<Option<Taken>>,
    /// The states before.
    pub(crate) states: Vec<State>,
    /// For each bid, whether it was decided by what its key begins with, as it had no live state.
    pub(crate) is_begun: Vec<bool>,
}

/// Splits the reply to [`take`](super::take) by its asks, which have so many bids each.
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
        // The time stands behind debts, one of which is an error.
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

fn ends_with_time(parts: &[Value]) -> bool {
    matches!(parts.last(), Some(Value::BulkString(_)))
}

/// The time, and the debts behind it: seconds, microseconds and one debt after the other, none of them empty but those
/// that are missing.
fn read_line(line: &[u8]) -> Option<(Timestamp, &[u8])> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let now = time_of(words.next()?, words.next()?)?;
    Some((now, words.next()?))
}

impl StateReply {
    /// A debt as it stands in a line; one that is missing is empty.
    fn of_debt(word: &[u8]) -> Option<StateReply> {
        if word.is_empty() { Some(StateReply::Debt(None)) } else { Some(StateReply::Debt(Some(debt(word)?))) }
    }
}

impl AskReply {
    /// The debts of one ask; its error stands in the place of the first.
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
                // What is behind an error was not looked at.
                Value::Nil => {}
                other => return Err(Unreadable::new("no debt", &other)),
            }
        }
        Ok(failed.map_or_else(|| Ok(AskReply { now, spent: Spent::Untold, states: debts }), Err))
    }

    /// Whether an ask was spent, and its states.
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

    fn seen_states(&self, bids: &[Bid]) -> Result<Vec<SeenState>, Unreadable> {
        if self.states.len() != bids.len() {
            return Err(Unreadable::new("no state", &self.states));
        }
        let each = bids.iter().zip(&self.states);
        let seen = each.map(|(bid, state)| {
            let seen = read_state(state, bid.target.limit.algorithm());
            seen.ok_or_else(|| Unreadable::new("no state", state))
        });
        seen.collect()
    }
}

/// Reads the outcome of one ask.
pub(crate) fn read_take(reply: &AskReply, bids: &[Bid]) -> Result<TakeReply, Unreadable> {
    let (now, mut seen_states) = (reply.now, reply.seen_states(bids)?);
    let is_begun: Vec<_> =
        bids.iter().zip(&seen_states).map(|(bid, seen)| bid.begin.is_some() && seen.is_missing).collect();
    if reply.spent == Spent::Unknown {
        return Ok(TakeReply::Unknown { now, is_live: is_begun.iter().map(|is_begun| !is_begun).collect() });
    }
    for (bid, seen) in bids.iter().zip(&mut seen_states).filter(|(_, seen)| seen.is_missing) {
        seen.state = bid.begin.as_ref().map(|begin| begin.state.clone()).unwrap_or_default();
    }
    let passes =
        |(bid, seen): (&Bid, &SeenState)| bid.target.limit.peek(&seen.state, now, bid.ask).is_allowed();
    let is_spent = match reply.spent {
        Spent::All => true,
        Spent::None | Spent::Unknown => false,
        Spent::Untold => bids.iter().zip(&seen_states).all(passes),
    };
    let empty = |count| (Vec::with_capacity(count), Vec::with_capacity(count));
    let (mut decisions, mut taken) = empty(bids.len());
    for (bid, seen) in bids.iter().zip(&seen_states) {
        if is_spent {
            let (decision, take) = spent(bid, seen, now)?;
            decisions.push(decision);
            taken.push(Some(take));
        } else {
            decisions.push(bid.target.limit.peek(&seen.state, now, bid.ask));
            taken.push(None);
        }
    }
    let states = seen_states.into_iter().map(|seen| seen.state).collect();
    let decided = Decided { now, decisions, taken, states, is_begun };
    if !is_spent && decided.decisions.iter().all(Decision::is_allowed) {
        return Err(Unreadable::new("that it has refused what the library allows", &decided.decisions));
    }
    Ok(TakeReply::Decided(decided))
}

/// The decision about a bid that was spent on, and what it is given back with.
fn spent(bid: &Bid, seen: &SeenState, now: Timestamp) -> Result<(Decision, Taken), Unreadable> {
    let (limit, mut state) = (&bid.target.limit, seen.state.clone());
    let mut decision = limit.decide(&mut state, now, bid.ask);
    if !decision.is_allowed() {
        return Err(Unreadable::new("that it has spent on what the library refuses", &(limit, state)));
    }
    if let (Algorithm::Concurrency, Some(permit)) = (limit.algorithm(), seen.permit) {
        decision = decision.with_permit(permit);
    }
    let taken = Taken::new(limit, &state, bid.ask.cost, now, &decision);
    Ok((decision, taken))
}

/// Reads the answer to [`peek`](super::peek): the time, and the state of each.
pub(crate) fn read_peek(reply: Value, bids: &[Bid]) -> Result<(Timestamp, Vec<State>), Unreadable> {
    let seen = read_takes(reply, std::iter::once(bids.len()))?.pop();
    let Some(Ok(seen)) = seen else { return Err(Unreadable::new("no state", &seen)) };
    let states = seen.seen_states(bids)?.into_iter().map(|seen| seen.state).collect();
    Ok((seen.now, states))
}

/// Reads the answer to [`adjust`](super::adjust) and [`give_back`](super::give_back); `None` if nothing was done, as a
/// key without a live state begins with something that is not known.
pub(crate) fn read_adjust(reply: Value) -> Result<Option<Adjusted>, Unreadable> {
    match reply {
        Value::Int(1) => Ok(Some(Adjusted::Whole)),
        Value::Int(0) => Ok(Some(Adjusted::Capped)),
        Value::Int(2) => Ok(Some(Adjusted::NeedsPermit)),
        Value::Int(3) => Ok(None),
        other => Err(Unreadable::new("no adjustment", &other)),
    }
}

/// Reads the answer to [`release`](super::release) and [`renew`](super::renew).
pub(crate) fn read_whether(reply: Value) -> Result<bool, Unreadable> {
    match reply {
        Value::Int(answer @ (0 | 1)) => Ok(answer == 1),
        other => Err(Unreadable::new("neither yes nor no", &other)),
    }
}

/// The state that a decision was about; of a log or of holders, as much of it as the decision needs.
struct SeenState {
    state: State,
    is_missing: bool,
    permit: Option<tidegate::PermitId>,
}

/// The time in the two parts with which a script tells it.
pub(super) fn time_of_parts(time: &[Value]) -> Result<Timestamp, Unreadable> {
    let now = match time {
        [Value::BulkString(seconds), Value::BulkString(micros)] => time_of(seconds, micros),
        _ => None,
    };
    now.ok_or_else(|| Unreadable::new("no time", &time))
}

/// The text in a part of an answer.
pub(super) fn text_of(value: &Value) -> Option<&str> {
    let Value::BulkString(text) = value else { return None };
    std::str::from_utf8(text).ok()
}

fn time_of(seconds: &[u8], micros: &[u8]) -> Option<Timestamp> {
    let (seconds, micros) = (digits(seconds)?, digits(micros)?);
    let micros = seconds.checked_mul(1_000_000)?.checked_add(micros)?.saturating_sub(EPOCH * 1_000_000);
    Some(Timestamp::from_ticks(micros.checked_mul(TICKS)?))
}

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
