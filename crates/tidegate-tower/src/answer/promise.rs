//! What is said about a limit in every answer, made once.

use bytes::Bytes;
use http::HeaderValue;
use tidegate::{Algorithm, Ask, Decision, Limit, State, Timestamp};

use super::fields::{MAX_INTEGER, Promised, Spoken, put_parts};
use super::paper::{Line, Paper};
use super::problem;

/// The longest name.
const MAX_NAME: usize = 128;

/// A limit as callers are told about it.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    name: Box<str>,
    policy: HeaderValue,
    /// The problem of one who has to wait.
    pub(super) exceeded: Bytes,
    /// The problem of one who asked for more than there can be.
    pub(super) too_much: Bytes,
}

impl Promise {
    pub(crate) fn new(name: &str, limit: &Limit) -> Promise {
        let name = plain(name);
        let policy = policy_value(&name, limit);
        let (exceeded, too_much) = (problem::exceeded(&name), problem::too_much(&name, most(limit)));
        Promise { name: name.into(), policy, exceeded, too_much }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    pub(crate) fn spoken<'a>(&'a self, decision: &'a Decision) -> Spoken<'a> {
        Spoken { name: &self.name, policy: Promised::Made(&self.policy), decision }
    }
}

/// The value of `RateLimit-Policy`, such as `"api";q=15;w=30`: how much there is, of what if not requests, and in how
/// many whole seconds it is regained.
pub fn policy_value(name: &str, limit: &Limit) -> HeaderValue {
    policy_value_on(&mut Line::new(), name, limit)
}

/// The same for whoever has a buffer for it.
pub(super) fn policy_value_on(paper: &mut impl Paper, name: &str, limit: &Limit) -> HeaderValue {
    paper.put(b"\"");
    paper.put(name.as_bytes());
    put_parts(paper, [("\";q=", most(limit).min(MAX_INTEGER))]);
    if limit.algorithm() == Algorithm::Concurrency {
        paper.put(b";qu=\"concurrent-requests\"");
    }
    put_parts(paper, [(";w=", regained_in_seconds(limit))]);
    paper.value()
}

/// The whole seconds in which everything is regained, at least one.
pub(super) fn regained_in_seconds(limit: &Limit) -> u64 {
    let regained = limit.regained_in();
    (regained.as_secs() + u64::from(regained.subsec_nanos() > 0)).max(1)
}

/// The most that can pass at one instant.
fn most(limit: &Limit) -> u64 {
    limit.peek(&State::default(), Timestamp::EPOCH, Ask::ONE).limit()
}

/// A name that may stand within quotes anywhere.
fn plain(name: &str) -> String {
    let is_plain = |letter: char| matches!(letter, ' '..='~') && letter != '"' && letter != '\\';
    name.chars().take(MAX_NAME).map(|letter| if is_plain(letter) { letter } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy_of(text: &str) -> String {
        policy_value("api", &text.parse().unwrap()).to_str().unwrap().to_owned()
    }

    #[test]
    fn a_limit_says_its_amount_and_in_how_many_seconds_it_is_regained() {
        assert_eq!(policy_of("30/60s burst 15"), "\"api\";q=15;w=30");
        assert_eq!(policy_of("10/s burst 15"), "\"api\";q=15;w=2");
        assert_eq!(policy_of("10/s burst 1"), "\"api\";q=1;w=1");
        assert_eq!(policy_of("8/30s concurrency"), "\"api\";q=8;qu=\"concurrent-requests\";w=30");
        assert_eq!(policy_of("unlimited pacer"), "\"api\";q=999999999999999;w=1");
    }

    #[test]
    fn a_name_is_made_plain_and_not_too_long() {
        let name = |name: &str| Promise::new(name, &Limit::per_second(1)).name().to_owned();
        assert_eq!(name("a\"b\\c\u{e4}\r\nd e~"), "a_b_c___d e~");
        assert_eq!(name(&"x".repeat(1000)).len(), MAX_NAME);
    }
}
