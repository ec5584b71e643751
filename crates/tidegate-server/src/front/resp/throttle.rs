//! `CL.THROTTLE`, compatible with redis-cell.
//!
//! Its `max_burst` does not count the first request, so the burst here is one more. The errors of redis-cell are not
//! copied: waits are rounded up, nothing overflows, and invalid numbers are rejected.

use tidegate::{Ask, Cost, Key};

use super::fields::looked_at;
use super::parse::{Words, integer};
use super::pending::CommandOrder;
use super::reply::echo;
use super::session::{Call, CommandResult};
use super::takes::{Style, ThrottleNumbers};
use crate::settings::MAX_KEY_BYTES;

/// The error of redis-cell about a wrong number of words.
const USAGE: &str =
    "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]";

/// `CL.THROTTLE key max_burst count period [quantity]`
///
/// The reply has five integers: limited (0 or 1), limit, remaining, seconds until a retry (-1 if allowed), and
/// seconds until the quota is full.
#[inline]
pub(super) fn throttle(call: &mut Call<'_, '_>) -> CommandResult {
    let words = call.words;
    let Some(key) = words.get(1).filter(|_| (5..=6).contains(&words.len())) else {
        return Err(USAGE.to_owned());
    };
    let quantity = words.get(5).map_or(Ok(1), number)?;
    if key.len() > MAX_KEY_BYTES {
        return Err(too_long(key));
    }
    call.takes.limit_of_numbers(words.from(2), &call.worker.engine, numbers)?;
    match Cost::new(quantity) {
        Ok(cost) => call.take(1, Ask::new(cost), Style::Throttle),
        Err(_) => look(call, key)?,
    }
    Ok(())
}

/// Peeks: a quantity of 0 spends nothing.
#[cold]
fn look(call: &mut Call<'_, '_>, key: &[u8]) -> CommandResult {
    call.settle();
    let limit = call.takes.limit_of_numbers(call.words.from(2), &call.worker.engine, numbers)?.clone();
    let key = Key::new(key);
    call.ask(
        CommandOrder::Together,
        |worker| async move { worker.engine.peek(&key, &limit, Ask::ONE).await },
        |replies, looked| {
            looked_at(replies, &looked.decision);
            None
        },
    );
    Ok(())
}

/// Parses the numbers of a limit: burst, count, and period in seconds.
fn numbers(words: Words<'_>) -> Result<ThrottleNumbers, String> {
    let word = |index: usize| number(words.get(index).unwrap_or_default());
    let (burst, count, period) = (word(0)?, word(1)?, word(2)?);
    if count == 0 || period == 0 {
        return Err("Cell error: Store error: Zero rates are not supported".to_owned());
    }
    Ok([burst + 1, count, period])
}

/// Returns the error about a key that is too long.
pub(super) fn too_long(key: &[u8]) -> String {
    format!("ERR a key has at most {MAX_KEY_BYTES} bytes, this one has {}; hash it", key.len())
}

/// Parses a number that is not negative.
#[inline]
fn number(word: &[u8]) -> Result<u64, String> {
    match integer(word) {
        Some(number) => u64::try_from(number)
            .map_err(|_| format!("ERR {number} is negative; numbers of CL.THROTTLE are 0 or more")),
        None => Err(format!("Cell error: Store error: Couldn't parse as integer: {}", echo(word))),
    }
}
