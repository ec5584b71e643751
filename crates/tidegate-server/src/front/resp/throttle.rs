//! `CL.THROTTLE`, compatible with redis-cell, and `THROTTLE`, compatible with throttlecrab.
//!
//! Both take from a token bucket whose numbers come with the request. The `max_burst` of redis-cell does not count the
//! first request, so the burst here is one more; that of throttlecrab is the burst. Equal limits are one state,
//! whichever command names them. The errors of both in arithmetic are not copied: waits are rounded up, nothing
//! overflows, and invalid numbers are rejected.

use tidegate::{Ask, Cost, Key};

use super::fields::looked_at;
use super::parse::{Words, integer};
use super::pending::CommandOrder;
use super::reply::echo;
use super::session::{Call, CommandResult};
use super::takes::{Style, ThrottleNumbers};
use crate::settings::MAX_KEY_BYTES;

/// The arguments of `THROTTLE`.
pub(super) const USAGE: &str = "key max_burst count_per_period period [quantity]";

/// The command of a request: the meaning of its numbers, its reply and its errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThrottleDialect {
    /// `CL.THROTTLE`.
    RedisCell,
    /// `THROTTLE`.
    Throttlecrab,
}

impl ThrottleDialect {
    /// Returns the name of the command.
    const fn name(self) -> &'static str {
        match self {
            ThrottleDialect::RedisCell => "CL.THROTTLE",
            ThrottleDialect::Throttlecrab => "THROTTLE",
        }
    }

    /// Returns the error about a wrong number of words.
    fn wrong_number(self) -> String {
        match self {
            ThrottleDialect::RedisCell => "Cell error: Store error: Usage: \
                cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
                .to_owned(),
            ThrottleDialect::Throttlecrab => {
                format!("ERR wrong number of arguments for 'throttle' command; usage: THROTTLE {USAGE}")
            }
        }
    }

    /// Returns the burst that a `max_burst` means.
    fn burst(self, max_burst: u64) -> Result<u64, String> {
        match self {
            // A word is at most `i64::MAX`, so this cannot overflow.
            ThrottleDialect::RedisCell => Ok(max_burst + 1),
            ThrottleDialect::Throttlecrab if max_burst == 0 => {
                Err("ERR max_burst 0 never allows a request; write 1 or more".to_owned())
            }
            ThrottleDialect::Throttlecrab => Ok(max_burst),
        }
    }

    /// Returns the error about a rate of zero.
    fn zero_rate(self) -> String {
        match self {
            ThrottleDialect::RedisCell => "Cell error: Store error: Zero rates are not supported".to_owned(),
            ThrottleDialect::Throttlecrab => {
                "ERR count_per_period and period are 1 or more, as in THROTTLE user123 10 100 60".to_owned()
            }
        }
    }

    /// Parses a number that is not negative.
    #[inline]
    fn number(self, word: &[u8]) -> Result<u64, String> {
        match (integer(word), self) {
            (Some(number), _) => u64::try_from(number)
                .map_err(|_| format!("ERR {number} is negative; numbers of {} are 0 or more", self.name())),
            (None, ThrottleDialect::RedisCell) => {
                Err(format!("Cell error: Store error: Couldn't parse as integer: {}", echo(word)))
            }
            (None, ThrottleDialect::Throttlecrab) => {
                Err(format!("ERR '{}' is not an integer; usage: THROTTLE {USAGE}", echo(word)))
            }
        }
    }

    /// Parses the numbers of a limit: burst, count, and period in seconds.
    fn numbers(self, words: Words<'_>) -> Result<ThrottleNumbers, String> {
        let word = |index: usize| self.number(words.get(index).unwrap_or_default());
        let (max_burst, count, period) = (word(0)?, word(1)?, word(2)?);
        if count == 0 || period == 0 {
            return Err(self.zero_rate());
        }
        Ok([self.burst(max_burst)?, count, period])
    }
}

/// `CL.THROTTLE key max_burst count period [quantity]`, or `THROTTLE` with the same words.
///
/// The reply has five integers. In the dialect of redis-cell: limited (0 or 1), limit, remaining, seconds until a retry
/// (-1 if allowed), and seconds until the quota is full. In that of throttlecrab: allowed (1 or 0), limit, remaining,
/// seconds until the quota is full, and seconds until a retry (0 if allowed).
#[inline]
pub(super) fn throttle(call: &mut Call<'_, '_>, dialect: ThrottleDialect) -> CommandResult {
    let words = call.words;
    let Some(key) = words.get(1).filter(|_| (5..=6).contains(&words.len())) else {
        return Err(dialect.wrong_number());
    };
    let quantity = words.get(5).map_or(Ok(1), |word| dialect.number(word))?;
    if key.len() > MAX_KEY_BYTES {
        return Err(too_long(key));
    }
    call.takes
        .limit_of_numbers(words.from(2), dialect, &call.worker.engine, |words| dialect.numbers(words))?;
    match Cost::new(quantity) {
        Ok(cost) => call.take(1, Ask::new(cost), Style::Throttle(dialect)),
        Err(_) => look(call, key, dialect)?,
    }
    Ok(())
}

/// Peeks: a quantity of 0 spends nothing.
#[cold]
fn look(call: &mut Call<'_, '_>, key: &[u8], dialect: ThrottleDialect) -> CommandResult {
    call.settle();
    let numbers = |words: Words<'_>| dialect.numbers(words);
    let limit =
        call.takes.limit_of_numbers(call.words.from(2), dialect, &call.worker.engine, numbers)?.clone();
    let key = Key::new(key);
    call.ask(
        CommandOrder::Together,
        |worker| async move { worker.engine.peek(&key, &limit, Ask::ONE).await },
        move |replies, looked| {
            looked_at(replies, &looked, dialect);
            None
        },
    );
    Ok(())
}

/// Returns the error about a key that is too long.
pub(super) fn too_long(key: &[u8]) -> String {
    format!("ERR a key has at most {MAX_KEY_BYTES} bytes, this one has {}; hash it", key.len())
}
