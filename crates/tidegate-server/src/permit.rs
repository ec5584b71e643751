//! Permits as text that contains everything needed to release or renew them.
//!
//! ```text
//!   1f.8/30s_concurrency.616e61.uploads
//!   |  |                 |      the rule it was taken under, if it was one
//!   |  |                 the key, in hexadecimal
//!   |  the limit it was taken under
//!   the number of the permit; behind an "l", that of one that this server holds by itself, as the store failed
//! ```
//!
//! One request may take permits under several rules: their texts are joined by a plus.
//!
//! The server keeps no table of the permits that it has handed out: the text is the handle. Any server of a
//! deployment can release a permit of the shared store.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use tidegate::{Algorithm, DecidedBy, Key, Limit, PermitId, StoreError};
use tidegate_rules::{Admission, HeldPermit};

use crate::engine::{Decided, Engine};
use crate::settings::MAX_KEY_BYTES;

/// The longest text of the permits of one request, in bytes.
pub(crate) const MAX_PERMIT_BYTES: usize = 2 * MAX_KEY_BYTES + 512;
/// The maximum number of permits of one request. Few rules of a policy are concurrency limits.
const MAX_JOINED: usize = 64;
/// The prefix of a permit that only this server holds. It is not a hexadecimal digit.
const LOCAL: &str = "l";

/// One permit: its key, its limit and its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    /// The key, and what it was counted under.
    pub(crate) holder: Holder,
    /// The limit at the time of the take. A later change of the rule does not change it.
    pub(crate) limit: Limit,
    /// The number of the permit in the store.
    pub(crate) id: PermitId,
    /// True if this server holds the permit in its local store, because the remote store was down.
    pub(crate) is_local: bool,
}

/// The limit or rule that counts the permit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A limit that came with the request, for this key.
    AdHoc(Vec<u8>),
    /// A rule, for this key.
    Rule(Arc<str>, Key),
}

/// An operation on the lease of a permit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lease {
    /// Releases the permit.
    Release,
    /// Renews the lease.
    Renew,
}

/// All permits of one request.
///
/// The text form is one word of visible ASCII, so it fits into JSON, RESP and a shell without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permits(Vec<Permit>);

impl Permits {
    /// Returns the permit of a decision about one key, if it has one.
    ///
    /// Only a concurrency limit has permits.
    pub(crate) fn of_key(key: &[u8], limit: &Limit, decided: &Decided) -> Option<Permits> {
        let is_local = decided.by == DecidedBy::Local;
        let permit = |id| Permit { holder: Holder::AdHoc(key.to_vec()), limit: *limit, id, is_local };
        decided.decision.permit().map(|id| Permits(vec![permit(id)]))
    }

    /// Returns the permits that an allowed request took under rules. Returns `None` for a denied request: its caller
    /// would not release them.
    pub(crate) fn of(admission: &Admission) -> Option<Permits> {
        Permits::held(admission.permits()).filter(|_| admission.is_allowed())
    }

    /// Returns these permits, or `None` if there are none.
    fn held(held: &[HeldPermit]) -> Option<Permits> {
        let permits = held.iter().map(|held| Permit {
            holder: Holder::Rule(held.rule.clone(), held.key.clone()),
            limit: held.limit,
            id: held.id,
            is_local: held.is_local,
        });
        (!held.is_empty()).then(|| Permits(permits.collect()))
    }

    /// Parses the text of permits. Returns `None` if it is invalid or too long.
    pub(crate) fn parse(text: &[u8]) -> Option<Permits> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= MAX_PERMIT_BYTES)?;
        let permits: Option<Vec<_>> = text.split('+').take(MAX_JOINED + 1).map(Permit::parse).collect();
        permits.filter(|permits| permits.len() <= MAX_JOINED).map(Permits)
    }

    /// Releases or renews all permits. Returns true if every one was still in flight.
    ///
    /// Costs one store request per permit. If some of them fail, the first error is returned after all of them were
    /// processed.
    pub(crate) async fn change(&self, lease: Lease, engine: &Engine) -> Result<bool, StoreError> {
        // Every permit is processed, even after one that was lost or failed.
        let mut all = Ok(true);
        for permit in &self.0 {
            all = match (all, permit.change(lease, engine).await) {
                (Ok(all), Ok(one)) => Ok(all && one),
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
        }
        all
    }

    /// Releases all permits without waiting for the reply, because the caller is gone.
    pub(crate) fn release_later(&self, engine: &Engine) {
        self.0.iter().for_each(|permit| permit.release_later(engine));
    }
}

impl Permit {
    /// Parses one permit. Returns `None` unless its limit is a concurrency limit, and its key is valid for its
    /// holder.
    fn parse(text: &str) -> Option<Permit> {
        let (id, rest) = text.split_once('.')?;
        let (limit, rest) = rest.split_once('.')?;
        let (key, rule) = rest.split_once('.').map_or((rest, None), |(key, rule)| (key, Some(rule)));
        let limit: Limit = limit.replace('_', " ").parse().ok()?;
        let (id, is_local) = id.strip_prefix(LOCAL).map_or((id, false), |id| (id, true));
        let id = PermitId::from_number(u64::from_str_radix(id, 16).ok()?)?;
        let key = bytes(key)?;
        let holder = match rule {
            None if key.len() <= MAX_KEY_BYTES => Holder::AdHoc(key),
            None => return None,
            Some(rule) => Holder::Rule(rule.into(), Key::from_bytes(&key)?),
        };
        (limit.algorithm() == Algorithm::Concurrency).then_some(Permit { holder, limit, id, is_local })
    }

    /// Releases or renews this permit, in the store that holds it.
    async fn change(&self, lease: Lease, engine: &Engine) -> Result<bool, StoreError> {
        let limit = engine.accept(self.limit).map_err(StoreError::unfit)?;
        match &self.holder {
            Holder::Rule(rule, key) => {
                let held = self.held(rule, key);
                match lease {
                    Lease::Release => engine.gate().release(&held).await,
                    Lease::Renew => engine.gate().renew(&held).await,
                }
            }
            Holder::AdHoc(key) => {
                let key = Key::new(key);
                let subject = limit.subject(&key).in_local_store(self.is_local);
                match lease {
                    Lease::Release => engine.release(subject, self.id).await,
                    Lease::Renew => engine.renew(subject, self.id).await,
                }
            }
        }
    }

    /// Releases this permit in the background. A limit that the store does not support has no permit to release.
    fn release_later(&self, engine: &Engine) {
        match (&self.holder, engine.accept(self.limit)) {
            (Holder::Rule(rule, key), _) => engine.gate().release_later(&[self.held(rule, key)]),
            (Holder::AdHoc(key), Ok(limit)) => {
                let key = Key::new(key);
                engine.release_later(limit.subject(&key).in_local_store(self.is_local), self.id);
            }
            (Holder::AdHoc(_), Err(_)) => {}
        }
    }

    /// Returns the permit in the form that the gate takes.
    fn held(&self, rule: &Arc<str>, key: &Key) -> HeldPermit {
        let Permit { limit, id, is_local, .. } = *self;
        HeldPermit::new(rule.clone(), key.clone(), limit, id).in_local_store(is_local)
    }
}

impl fmt::Display for Permits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, permit) in self.0.iter().enumerate() {
            write!(out, "{}{permit}", if index > 0 { "+" } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Permit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{:x}.", if self.is_local { LOCAL } else { "" }, self.id.number())?;
        for letter in self.limit.to_string().chars() {
            out.write_char(if letter == ' ' { '_' } else { letter })?;
        }
        out.write_char('.')?;
        let (key, rule) = match &self.holder {
            Holder::AdHoc(key) => (&key[..], None),
            Holder::Rule(rule, key) => (key.as_bytes(), Some(rule)),
        };
        key.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
        rule.map_or(Ok(()), |rule| write!(out, ".{rule}"))
    }
}

/// Parses hexadecimal bytes.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<_>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

#[cfg(test)]
mod tests {
    use tidegate::{Ask, State, Timestamp};

    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let id = PermitId::from_number(0x1f).unwrap();
        for (key, limit) in
            [("ana", "8/30s concurrency"), ("", "1/1m30s concurrency"), ("a.b\n", "2/7d concurrency")]
        {
            let limit: Limit = limit.parse().unwrap();
            let decision = limit.peek(&State::default(), Timestamp::EPOCH, Ask::ONE).with_permit(id);
            for by in [DecidedBy::Memory, DecidedBy::Local] {
                let permits = Permits::of_key(key.as_bytes(), &limit, &Decided { decision, by }).unwrap();
                assert_eq!(permits.to_string().starts_with(LOCAL), by == DecidedBy::Local);
                assert_eq!(Permits::parse(permits.to_string().as_bytes()), Some(permits));
            }
            let held = |rule: &str, is_local| {
                let (rule, key) = (rule.into(), Key::new((key, "x")));
                HeldPermit::new(rule, key, limit, id).in_local_store(is_local)
            };
            let permits = Permits::held(&[held("uploads", false), held("a.b/c", true)]).unwrap();
            assert_eq!(Permits::parse(permits.to_string().as_bytes()), Some(permits));
        }
        assert_eq!(Permits::held(&[]), None);
    }

    #[test]
    fn anything_else_is_no_permit() {
        for text in [
            "",
            ".",
            "..",
            "1..",
            "1.8/30s_concurrency",
            "0.8/30s_concurrency.61",
            "1.8/30s_concurrency.6",
            "1.8/30s_concurrency.6g",
            "1.8/30s.61",
            "x.8/30s_concurrency.61",
            "l.8/30s_concurrency.61",
            "ll1.8/30s_concurrency.61",
            "-1.8/30s_concurrency.61",
            "+1.8/30s_concurrency.61",
            "1.8/30s_concurrency.61+",
            "1.8/30s_concurrency.61.rule",
            "1.8/30s_concurrency.0261.rule",
        ] {
            assert_eq!(Permits::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Permits::parse(b"1.8/30s_concurrency.\xff"), None);
        assert_eq!(Permits::parse(&vec![b'1'; MAX_PERMIT_BYTES + 1]), None);
        let many = vec!["1.8/30s_concurrency.61"; MAX_JOINED + 1];
        assert!(Permits::parse(many[1..].join("+").as_bytes()).is_some());
        assert_eq!(Permits::parse(many.join("+").as_bytes()), None);
    }
}
