//! Conversion of states from the server into the words of the library.
//!
//! The library represents every state as a list of 64-bit words. The server stores doubles in microseconds, with ticks
//! apart where they matter. Conversions are checked: a number that overflows makes the state unreadable.

use redis::Value;
use tidegate_core::Algorithm;

use super::TICKS;

/// The last representable microsecond. A lease beyond it never ends.
const LAST_MICRO: u64 = u64::MAX / TICKS;

/// The maximum number of fields in a state that is stored as text: those of a pacer.
const MOST_IN_TEXT: usize = 6;

/// Parses a whole number that consists of digits only.
pub(super) fn digits(text: &[u8]) -> Option<u64> {
    let is_number = text.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

/// Converts an array of integers. Returns `None` if one is negative or no integer.
pub(super) fn numbers_of(parts: &[Value]) -> Option<Vec<u64>> {
    let number =
        |part: &Value| if let Value::Int(number) = part { u64::try_from(*number).ok() } else { None };
    parts.iter().map(number).collect()
}

/// Parses a debt, a window or a pace, which are stored as numbers separated by colons.
pub(super) fn words_of_text(text: &[u8], algorithm: Algorithm) -> Option<Vec<u64>> {
    if matches!(algorithm, Algorithm::TokenBucket | Algorithm::LeakyBucket) {
        return Some(vec![debt(text)?]);
    }
    let (mut numbers, mut count) = ([0; MOST_IN_TEXT], 0);
    for part in text.split(|byte| *byte == b':') {
        *numbers.get_mut(count)? = digits(part)?;
        count += 1;
    }
    match (algorithm, &numbers[..count]) {
        (Algorithm::FixedWindow | Algorithm::Calendar, [end, count]) => Some(vec![pair(*end, 0)?, *count]),
        (Algorithm::Pacer, [at, owed, owed_ticks, saved, saved_ticks, scale]) => {
            Some(vec![pair(*at, 0)?, pair(*owed, *owed_ticks)?, pair(*saved, *saved_ticks)?, *scale])
        }
        _ => None,
    }
}

/// Parses the time at which a debt is repaid, in ticks. A leading minus concerns only the expiry of its key.
pub(super) fn debt(text: &[u8]) -> Option<u64> {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    match text.iter().position(|byte| *byte == b':') {
        Some(colon) => pair(digits(&text[..colon])?, digits(&text[colon + 1..])?),
        None => pair(digits(text)?, 0),
    }
}

/// Converts whole microseconds and ticks to ticks.
fn pair(whole: u64, ticks: u64) -> Option<u64> {
    whole.checked_mul(TICKS)?.checked_add(ticks)
}

/// Converts a log or slots from the numbers of a reply.
///
/// Of a log the reply has three numbers, or five if a denial has to wait for an entry: the total before the log, that
/// entry, and the newest.
pub(super) fn words_of_numbers(numbers: &[u64], algorithm: Algorithm) -> Option<Vec<u64>> {
    let ticks = |micros: u64| micros.checked_mul(TICKS);
    match (algorithm, numbers) {
        (Algorithm::SlidingLog, [left, _, total]) if left == total => Some(vec![]),
        (Algorithm::SlidingLog, [left, at, total]) => Some(vec![*left, ticks(*at)?, *total]),
        // The entry that has to expire, unless it shares its instant with the newest.
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

/// Returns the lease that has to end, if it was found, and the last one for all the others. Their permits are not used,
/// so any two distinct numbers suffice.
pub(super) fn words_of_holders(numbers: &[u64]) -> Option<Vec<u64>> {
    let (places, last, freed, until, longest) = match *numbers {
        [places, last, freed, until] => (places, last, freed, until, 0),
        [places, last, freed, until, longest] => (places, last, freed, until, longest),
        _ => return None,
    };
    let end = |micros: u64| if micros > LAST_MICRO { u64::MAX } else { micros * TICKS };
    if places == 0 && freed == 0 {
        return Some(vec![]);
    }
    let leases = [[end(until), freed, 1], [end(last), places.checked_sub(freed)?, 2]];
    let held = leases.into_iter().filter(|[_, units, _]| *units > 0).flatten();
    Some([3, longest.saturating_mul(TICKS)].into_iter().chain(held).collect())
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
