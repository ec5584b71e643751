//! Reading of complete states: those of a key under previous limits.
//!
//! A decision needs a part of a state only; see `reply`. Here all of it is read, because counts are carried over by the
//! library.

use redis::Value;
use tidegate_core::{Algorithm, State};

use super::key::{StateName, letter};
use super::text::Job;
use super::words::{digits, numbers_of, words_of_numbers, words_of_text};
use super::{Call, TICKS, Time, Unreadable};

/// Builds a read of these states, which share a slot. [`read_states`] parses the reply. The reply has the time and one
/// state per name. States of several algorithms can be mixed.
pub(crate) fn states(names: Vec<StateName>, algorithms: &[Algorithm], time: Time) -> Call {
    let letters = algorithms.iter().map(|algorithm| letter(*algorithm));
    let mut arguments = vec![std::iter::once(b'n').chain(letters).collect()];
    arguments.extend(time.arguments());
    Call { script: Job::ReadStates.script(), keys: names, arguments }
}

/// Parses the reply to [`states`]. A missing state is that of an unused key.
pub(crate) fn read_states(reply: &Value, algorithms: &[Algorithm]) -> Result<Vec<State>, Unreadable> {
    let states = match reply {
        Value::Array(parts) if parts.len() == algorithms.len() + 2 => &parts[2..],
        other => return Err(Unreadable::new("no states", other)),
    };
    let read = states.iter().zip(algorithms).map(|(value, algorithm)| {
        let words = words(value, *algorithm);
        let state = words.and_then(|words| State::from_words(*algorithm, &words));
        state.ok_or_else(|| Unreadable::new("no state", value))
    });
    read.collect()
}

/// Converts one state to the words of the library.
fn words(value: &Value, algorithm: Algorithm) -> Option<Vec<u64>> {
    match (value, algorithm) {
        (Value::Nil, _) => Some(Vec::new()),
        (Value::Array(entries), Algorithm::SlidingLog) => words_of_entries(entries),
        (Value::Array(parts), _) => words_of_numbers(&numbers_of(parts)?, algorithm),
        (Value::BulkString(text), _) => words_of_text(text, algorithm),
        _ => None,
    }
}

/// Converts totals with their times; the first is the total before the oldest entry. The library merges entries of one
/// instant. Entries of one instant have equal scores, and the last total is the one that counts.
fn words_of_entries(entries: &[Value]) -> Option<Vec<u64>> {
    let number = |value: &Value| if let Value::BulkString(text) = value { digits(text) } else { None };
    let numbers: Option<Vec<_>> = entries.iter().map(number).collect();
    let numbers = numbers?;
    let Some(([base, _], entries)) = numbers.split_first_chunk() else { return Some(Vec::new()) };
    let mut words = vec![*base];
    for entry in entries.chunks_exact(2) {
        let (total, at) = (entry[0], entry[1].checked_mul(TICKS)?);
        if words.len() > 1 && words[words.len() - 2] == at {
            words.truncate(words.len() - 2);
        }
        words.extend([at, total]);
    }
    Some(if words.len() > 1 { words } else { Vec::new() })
}
