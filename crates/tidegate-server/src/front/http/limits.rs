//! A cache of parsed limits: most callers repeat a few texts.
//!
//! Parsing a limit takes longer than deciding under it. The cache is bounded, per thread, and keyed by the exact
//! text, so two spellings of one limit have two entries and one state.

use std::cell::RefCell;

use hyper::header::HeaderValue;
use tidegate::{Limit, LimitError, PreparedLimit};
use tidegate_rules::parse_limit;
use tidegate_support::{RecentCache, policy_value};

use super::problem::Problem;
use crate::engine::Engine;

/// The name of a limit that came with the request.
pub(super) const ADHOC: &str = "adhoc";

/// A parsed limit, and the header field of every response about it.
#[derive(Clone, Debug)]
pub(super) struct KnownLimit {
    /// The limit, prepared for the engine.
    pub(super) limit: PreparedLimit,
    /// The value of `RateLimit-Policy`.
    pub(super) policy: HeaderValue,
}

thread_local! {
    static KNOWN: RefCell<RecentCache<(Box<str>, KnownLimit)>> = RefCell::default();
}

/// Returns the limit of this text, prepared for this engine. A thread serves one engine, so the cache is per thread.
///
/// Fails if the text is invalid or the engine does not support the limit. Errors are not cached.
#[inline]
pub(super) fn known(engine: &Engine, text: &str) -> Result<KnownLimit, Problem> {
    KNOWN.with_borrow_mut(|known| {
        let make = || {
            let limit = parsed(text)?;
            let accepted = engine.accept(limit).map_err(Problem::bad_request)?;
            Ok((text.into(), KnownLimit { limit: accepted, policy: policy_value(ADHOC, &limit) }))
        };
        known.get_or_make(text, |known| *known.0 == *text, make).map(|known| known.1.clone())
    })
}

/// Parses a limit. The error contains the column.
///
/// The column counts characters from 1.
pub(super) fn parsed(text: &str) -> Result<Limit, Problem> {
    parse_limit(text).map_err(|error: LimitError| {
        Problem::bad_request(format!("{error} (at character {})", error.column()))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate::Zone;

    use super::*;
    use crate::settings::Settings;

    fn engine() -> Arc<Engine> {
        Engine::new(Settings::default(), Zone::new(1 << 16), None).expect("there is memory")
    }

    #[test]
    fn what_is_said_about_a_limit_goes_by_its_name() {
        let engine = engine();
        for _ in 0..2 {
            let policy = known(&engine, "30/60s burst 15").unwrap().policy;
            assert_eq!(policy, "\"adhoc\";q=15;w=30");
        }
    }

    #[test]
    fn a_text_that_is_no_limit_is_pointed_into_and_not_remembered() {
        let engine = engine();
        for _ in 0..2 {
            let problem = known(&engine, "60/min").unwrap_err();
            let said = r#"unknown unit \"min\"; write \"60/m\" or \"60/60s\" (at character 4)"#;
            assert!(format!("{problem:?}").contains(said), "{problem:?}");
        }
    }
}
