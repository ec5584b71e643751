//! Reading what a server answers, and deciding about it.

use redis::Value;
use tidegate::{Adjusted, Algorithm, Ask, Decision, Limit, State, Subject, Timestamp};

use super::change::{Taken, permit_of};
use super::limits::held;
use super::{EPOCH, TICKS, Unreadable};

/// The last whole microsecond there is. Who would outlast it has no end.
const LAST_MICRO: u64 = u64::MAX / TICKS;

/// Reads the answer to [`take`](super::take): what was decided and, if it was spent, what each is given back with.
pub(crate) fn read_take(
    reply: Value,
    asks: &[(Subject<'_>, Ask)],
) -> Result<(Vec<Decision>, Vec<Option<Taken>>), Unreadable> {
    let seen = Seen::read(reply, asks)?;
    let (mut decisions, mut taken) = (Vec::with_capacity(asks.len()), Vec::with_capacity(asks.len()));
    let is_spent = match seen.is_spent {
        Some(is_spent) => is_spent,
        None => asks
            .iter()
            .zip(&seen.states)
            .all(|((subject, ask), state)| subject.limit.peek(&state.state, seen.now, *ask).is_allowed()),
    };
    for ((subject, ask), seen_state) in asks.iter().zip(seen.states) {
        let limit = held(subject.limit).unwrap_or(*subject.limit);
        let mut state = seen_state.state;
        if !is_spent {
            decisions.push(limit.peek(&state, seen.now, *ask));
            taken.push(None);
            continue;
        }
        let mut decision = limit.decide(&mut state, seen.now, *ask);
        if !decision.is_allowed() {
            return Err(Unreadable::new("that it has spent on what the library refuses", &(limit, state)));
        }
        if let (Algorithm::Concurrency, Some(permit)) = (limit.algorithm(), seen_state.permit) {
            decision = decision.with_permit(permit);
        }
        taken.push(Some(Taken::new(&limit, &state, (ask.cost, seen.now), &decision)));
        decisions.push(decision);
    }
    if !is_spent && decisions.iter().all(Decision::is_allowed) {
        return Err(Unreadable::new("that it has refused what the library allows", &decisions));
    }
    Ok((decisions, taken))
}

/// Reads the answer to [`peek`](super::peek): a decision for each ask.
pub(crate) fn read_peek(reply: Value, asks: &[(Subject<'_>, Ask)]) -> Result<Vec<Decision>, Unreadable> {
    let seen = Seen::read(reply, asks)?;
    if seen.states.len() != asks.len() {
        return Err(Unreadable::new("too little to look at", &seen.now));
    }
    let each = asks.iter().zip(&seen.states);
    Ok(each
        .map(|((subject, ask), seen_state)| {
            let limit = held(subject.limit).unwrap_or(*subject.limit);
            limit.peek(&seen_state.state, seen.now, *ask)
        })
        .collect())
}

/// Reads the answer to [`adjust`](super::adjust) and [`give_back`](super::give_back).
pub(crate) fn read_adjust(reply: Value) -> Result<Adjusted, Unreadable> {
    match reply {
        Value::Int(1) => Ok(Adjusted::Whole),
        Value::Int(0) => Ok(Adjusted::Capped),
        Value::Int(2) => Ok(Adjusted::NeedsPermit),
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

/// What a script saw.
struct Seen {
    now: Timestamp,
    /// Whether it has spent, where it says so: about buckets there is no doubt.
    is_spent: Option<bool>,
    states: Vec<SeenState>,
}

/// The state that a decision was about; of a log or of holders, as much of it as the decision needs.
struct SeenState {
    state: State,
    permit: Option<tidegate::PermitId>,
}

impl Seen {
    fn read(reply: Value, asks: &[(Subject<'_>, Ask)]) -> Result<Seen, Unreadable> {
        let limits = asks.iter().map(|(subject, _)| subject.limit);
        match reply {
            Value::BulkString(line) => Seen::of_line(&line, limits),
            Value::Array(mut parts) if parts.len() == asks.len() + 2 => {
                let time = parts.split_off(asks.len());
                Seen::of_parts(&time, None, (parts, limits))
            }
            Value::Array(mut parts) if parts.len() == asks.len() + 3 => {
                let states = parts.split_off(3);
                let is_spent = match parts.pop() {
                    Some(Value::Int(answer @ (0 | 1))) => answer == 1,
                    other => {
                        return Err(Unreadable::new("neither that it spent nor that it did not", &other));
                    }
                };
                Seen::of_parts(&parts, Some(is_spent), (states, limits))
            }
            other => Err(Unreadable::new("no decision", &other)),
        }
    }

    /// The seconds, the microseconds and what is owed, in one line.
    fn of_line<'a>(line: &[u8], limits: impl Iterator<Item = &'a Limit>) -> Result<Seen, Unreadable> {
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let (Some(seconds), Some(micros), Some(owed)) = (words.next(), words.next(), words.next()) else {
            return Err(Unreadable::new("no time", &line));
        };
        let text = |word: &[u8]| Value::BulkString(word.to_vec());
        let owed = if owed.is_empty() { Value::Nil } else { text(owed) };
        Seen::of_parts(&[text(seconds), text(micros)], None, (vec![owed], limits))
    }

    fn of_parts<'a>(
        time: &[Value],
        is_spent: Option<bool>,
        (states, limits): (Vec<Value>, impl Iterator<Item = &'a Limit>),
    ) -> Result<Seen, Unreadable> {
        let now = match time {
            [Value::BulkString(seconds), Value::BulkString(micros)] => time_of(seconds, micros),
            _ => None,
        };
        let now = now.ok_or_else(|| Unreadable::new("no time", &time))?;
        let states = states.into_iter().zip(limits);
        let states = states.map(|(value, limit)| read_state(&value, limit.algorithm()).ok_or(value));
        let states: Result<Vec<_>, _> = states.collect();
        let states = states.map_err(|value| Unreadable::new("no state", &value))?;
        Ok(Seen { now, is_spent, states })
    }
}

fn time_of(seconds: &[u8], micros: &[u8]) -> Option<Timestamp> {
    let (seconds, micros) = (digits(seconds)?, digits(micros)?);
    let micros = seconds.checked_mul(1_000_000)?.checked_add(micros)?.saturating_sub(EPOCH * 1_000_000);
    Some(Timestamp::from_ticks(micros.checked_mul(TICKS)?))
}

/// A whole number, and nothing else.
fn digits(text: &[u8]) -> Option<u64> {
    let is_number = text.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

fn read_state(value: &Value, algorithm: Algorithm) -> Option<SeenState> {
    let mut permit = None;
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
    Some(SeenState { state: State::from_words(algorithm, &words)?, permit })
}

fn numbers_of(parts: &[Value]) -> Option<Vec<u64>> {
    let number =
        |part: &Value| if let Value::Int(number) = part { u64::try_from(*number).ok() } else { None };
    parts.iter().map(number).collect()
}

/// Debts, windows and paces are kept as numbers with colons between them.
fn words_of_text(text: &[u8], algorithm: Algorithm) -> Option<Vec<u64>> {
    let numbers: Option<Vec<_>> = text.split(|byte| *byte == b':').map(digits).collect();
    let pair = |whole: u64, ticks: u64| whole.checked_mul(TICKS)?.checked_add(ticks);
    match (algorithm, &*numbers?) {
        (Algorithm::TokenBucket | Algorithm::LeakyBucket, [whole]) => Some(vec![pair(*whole, 0)?]),
        (Algorithm::TokenBucket | Algorithm::LeakyBucket, [whole, ticks]) => {
            Some(vec![pair(*whole, *ticks)?])
        }
        (Algorithm::FixedWindow, [end, count]) => Some(vec![pair(*end, 0)?, *count]),
        (Algorithm::Pacer, [at, owed, owed_ticks, saved, saved_ticks, scale]) => {
            Some(vec![pair(*at, 0)?, pair(*owed, *owed_ticks)?, pair(*saved, *saved_ticks)?, *scale])
        }
        _ => None,
    }
}

fn words_of_numbers(numbers: &[u64], algorithm: Algorithm) -> Option<Vec<u64>> {
    let ticks = |micros: u64| micros.checked_mul(TICKS);
    match (algorithm, numbers) {
        (Algorithm::SlidingLog, [left, _, total]) if left == total => Some(vec![]),
        (Algorithm::SlidingLog, [left, at, total]) => Some(vec![*left, ticks(*at)?, *total]),
        // The entry that has to leave, unless it shares its instant with the newest.
        (Algorithm::SlidingLog, [left, nth, _, at, total]) if nth == at => {
            Some(vec![*left, ticks(*at)?, *total])
        }
        (Algorithm::SlidingLog, [left, nth, until_nth, at, total]) => {
            Some(vec![*left, ticks(*nth)?, *until_nth, ticks(*at)?, *total])
        }
        (Algorithm::SlidingWindow, [newest, width, counts @ ..]) => {
            Some([&[*newest, ticks(*width)?], counts].concat())
        }
        _ => None,
    }
}

/// The lease that has to end, if it was found, and the last one for all the others. Their permits are not looked at:
/// any two numbers will do.
fn words_of_holders(numbers: &[u64]) -> Option<Vec<u64>> {
    let [places, last, freed, until] = *numbers else { return None };
    let end = |micros: u64| if micros > LAST_MICRO { u64::MAX } else { micros * TICKS };
    if places == 0 && freed == 0 {
        return Some(vec![]);
    }
    let leases = [[end(until), freed, 1], [end(last), places.checked_sub(freed)?, 2]];
    let held = leases.into_iter().filter(|[_, units, _]| *units > 0).flatten();
    Some(std::iter::once(3).chain(held).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_numbers_are_numbers() {
        assert_eq!(digits(b"1704067200"), Some(1_704_067_200));
        for bad in [&b""[..], b"+1", b"-1", b"1.5", b"0x1", b" 1", b"99999999999999999999"] {
            assert_eq!(digits(bad), None, "{bad:?}");
        }
    }
}
