//! Limits that were read lately: most callers say one of a few, again and again.

use std::array;
use std::cell::RefCell;

use bytes::BytesMut;
use hyper::header::HeaderValue;
use tidegate::{Algorithm, Ask, Limit, LimitError, State, Timestamp};

use super::problem::Problem;
use super::{digits, headers};

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
        let policy = policy(&mut BytesMut::new(), headers::ADHOC, &limit);
        Ok(Known { text: text.into(), limit, policy })
    }
}

/// The limit that this text says.
pub(super) fn parsed(text: &str) -> Result<Limit, Problem> {
    text.parse().map_err(|error: LimitError| {
        Problem::bad_request(format!("{error} (at character {})", error.column()))
    })
}

/// `"adhoc";q=15;w=30`: how much there is, of what if not requests, and in how many whole seconds it is regained.
pub(super) fn policy(out: &mut BytesMut, name: &str, limit: &Limit) -> HeaderValue {
    let most = limit.peek(&State::default(), Timestamp::EPOCH, Ask::ONE).limit();
    let regained = limit.regained_in();
    let seconds = regained.as_secs() + u64::from(regained.subsec_nanos() > 0);
    out.extend_from_slice(b"\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\";q=");
    digits::put(out, most.min(headers::MAX_INTEGER));
    if limit.algorithm() == Algorithm::Concurrency {
        out.extend_from_slice(b";qu=\"concurrent-requests\"");
    }
    out.extend_from_slice(b";w=");
    digits::put(out, seconds.max(1));
    headers::value(out.split().freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy_of(text: &str) -> String {
        with(text, |known| Ok(known.policy.to_str().unwrap().to_owned())).unwrap()
    }

    #[test]
    fn a_limit_says_its_amount_and_in_how_many_seconds_it_is_regained() {
        for _ in 0..2 {
            assert_eq!(policy_of("30/60s burst 15"), "\"adhoc\";q=15;w=30");
            assert_eq!(policy_of("10/s burst 15"), "\"adhoc\";q=15;w=2");
            assert_eq!(policy_of("10/s burst 1"), "\"adhoc\";q=1;w=1");
            assert_eq!(policy_of("8/30s concurrency"), "\"adhoc\";q=8;qu=\"concurrent-requests\";w=30");
            assert_eq!(policy_of("unlimited pacer"), "\"adhoc\";q=999999999999999;w=1");
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
