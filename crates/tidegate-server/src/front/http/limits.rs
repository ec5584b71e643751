//! Limits that were read lately: most callers say one of a few, again and again.

use std::array;
use std::cell::RefCell;

use hyper::header::HeaderValue;
use tidegate::{Limit, LimitError};
use tidegate_tower::answer::policy_value;

use super::problem::Problem;

/// The name of a limit that came with the request.
pub(super) const ADHOC: &str = "adhoc";

/// How many limits a thread remembers.
const SLOTS: usize = 64;

/// A limit that was read, and what is said about it in every answer.
#[derive(Debug)]
pub(super) struct Known {
    text: Box<str>,
    pub(super) limit: Limit,
    /// The value of `RateLimit-Policy`.
    pub(super) policy: HeaderValue,
}

thread_local! {
    static KNOWN: RefCell<[Option<Known>; SLOTS]> = RefCell::new(array::from_fn(|_| None));
}

/// Uses the limit that this text says.
#[inline]
pub(super) fn with<T>(text: &str, use_it: impl FnOnce(&Known) -> Result<T, Problem>) -> Result<T, Problem> {
    KNOWN.with_borrow_mut(|known| {
        let slot = &mut known[slot_of(text)];
        match slot {
            Some(known) if *known.text == *text => use_it(known),
            _ => use_it(slot.insert(Known::read(text)?)),
        }
    })
}

/// Where a text would be remembered.
#[inline]
fn slot_of(text: &str) -> usize {
    let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let hash = text.as_bytes().iter().take(32).fold(text.len() as u32, mix);
    (hash ^ (hash >> 16)) as usize % SLOTS
}

impl Known {
    #[cold]
    fn read(text: &str) -> Result<Known, Problem> {
        let limit = parsed(text)?;
        Ok(Known { text: text.into(), limit, policy: policy_value(ADHOC, &limit) })
    }
}

/// The limit that this text says.
pub(super) fn parsed(text: &str) -> Result<Limit, Problem> {
    text.parse().map_err(|error: LimitError| {
        Problem::bad_request(format!("{error} (at character {})", error.column()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_about_a_limit_goes_by_its_name() {
        for _ in 0..2 {
            let policy = with("30/60s burst 15", |known| Ok(known.policy.clone())).unwrap();
            assert_eq!(policy, "\"adhoc\";q=15;w=30");
        }
    }

    #[test]
    fn every_text_is_its_own_limit_whatever_slot_it_is_in() {
        for _ in 0..2 {
            for amount in 1..500 {
                let same = with(&format!("{amount}/s"), |known| Ok(known.limit == Limit::per_second(amount)));
                assert!(same.unwrap(), "{amount}");
            }
        }
    }

    #[test]
    fn a_text_that_is_no_limit_is_pointed_into_and_not_remembered() {
        for _ in 0..2 {
            let problem = with("60/min", |_| Ok(())).unwrap_err();
            let said = r#"unknown unit \"min\"; write \"60/m\" or \"60/60s\" (at character 4)"#;
            assert!(format!("{problem:?}").contains(said), "{problem:?}");
        }
    }
}
