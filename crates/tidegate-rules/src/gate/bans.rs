//! The keys that this gate has seen banned, for a support desk.
//!
//! A zone keeps no names, so bans are noted here when they deny. The store has the truth: each noted key is peeked at
//! before it is listed, so a ban that was lifted on another server is not. A ban that has denied no request here is not
//! listed either.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_core::{Ask, Decision, Key, StoreError, StoreFuture, Timestamp, Verdict};
use tidegate_support::join_all;

use super::{Gate, InForce};
use crate::top::shown::parts_of_key;

/// The maximum number of noted bans. Beyond it, the one that ends first is dropped.
const MOST: usize = 4096;
/// The maximum length of a noted key, which bounds their memory.
const LONGEST: usize = 1024;

/// A key that a penalty bans.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BannedKey {
    /// The rule.
    pub rule: Arc<str>,
    /// The values of the parts of the key.
    pub key: Vec<String>,
    /// The time until the ban ends.
    pub ends_in: Duration,
}

/// The noted bans, by rule and key, with their ends.
#[derive(Debug, Default)]
pub(super) struct Bans(Mutex<HashMap<(Arc<str>, Key), Timestamp>>);

impl Bans {
    /// Notes the ban of a decision. A wait for the limit may be longer than the ban; the list then shows the ban's.
    pub(super) fn note(&self, rule: &Arc<str>, key: &Key, decision: &Decision, now: Timestamp) {
        if key.as_bytes().len() > LONGEST {
            return;
        }
        let wait = match decision.verdict_in_ticks() {
            Verdict::Denied { retry_after } => retry_after,
            Verdict::Allowed { .. } | Verdict::Impossible => decision.reset_after_in_ticks(),
        };
        let until = now.saturating_add(wait);
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = noted.len() < MOST;
        match noted.entry((Arc::clone(rule), key.clone())) {
            Entry::Occupied(mut known) => drop(known.insert(until)),
            Entry::Vacant(free) if room => drop(free.insert(until)),
            Entry::Vacant(_) => {
                noted.retain(|_, until| *until > now);
                let first = noted.iter().min_by_key(|(_, until)| **until).map(|(key, _)| key.clone());
                if let Some(first) = first.filter(|_| noted.len() >= MOST) {
                    noted.remove(&first);
                }
                noted.insert((Arc::clone(rule), key.clone()), until);
            }
        }
    }

    /// Returns the noted bans that have not ended, the longest first.
    fn list(&self, rule: Option<&str>, now: Timestamp) -> Vec<(Arc<str>, Key)> {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.retain(|_, until| *until > now);
        let of_rule = noted.iter().filter(|((of, _), _)| rule.is_none_or(|rule| **of == *rule));
        let mut list: Vec<_> = of_rule.map(|(key, until)| (*until, key.clone())).collect();
        list.sort_by(|(one, first), (other, second)| {
            (other, &first.0, first.1.as_bytes()).cmp(&(one, &second.0, second.1.as_bytes()))
        });
        list.into_iter().map(|(_, key)| key).collect()
    }
}

impl Gate {
    /// Returns the keys that are banned by the penalty of a rule, or of any rule: those that this gate has denied for it,
    /// the longest bans first. At most 4,096 are noted, with keys of at most 1 KiB.
    ///
    /// # Errors
    /// The error of a remote store, which is asked if each ban is still in force.
    ///
    /// ```
    /// use tidegate::Zone;
    /// use tidegate::rules::{Attributes, Gate, Policy};
    ///
    /// let text = "[[rule]]\nname = 'login'\nkey = ['user']\nlimit = '1/h'
    /// penalty = { after = 2, within = '1m', for = '10m' }";
    /// let gate = Gate::new(Policy::from_toml(text)?, Zone::new(1 << 20))?;
    /// let ana = Attributes::new().set("user", "ana");
    /// for _ in 0..3 {
    ///     gate.admit(&ana).now()?;
    /// }
    /// let bans = gate.bans(None, 10).now()?;
    /// assert_eq!((&*bans[0].rule, &bans[0].key[..]), ("login", &["ana".to_owned()][..]));
    /// gate.rule_key("login", &ana)?.reset().now()?; // lifts the ban
    /// assert!(gate.bans(None, 10).now()?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "penalty")]
    #[doc(alias = "blocklist")]
    pub fn bans<'a>(&'a self, rule: Option<&'a str>, at_most: usize) -> StoreFuture<'a, Vec<BannedKey>> {
        self.reply(async move {
            let force = self.inner.force.load_full();
            let mut listed = self.inner.bans.list(rule, self.inner.now());
            listed.truncate(at_most);
            let rests = join_all(listed.iter().map(|(rule, key)| Box::pin(rest(&force, rule, key)))).await;
            let mut banned = Vec::new();
            for ((rule, key), rest) in listed.iter().zip(rests) {
                if let Some(ends_in) = rest? {
                    banned.push(BannedKey { rule: rule.clone(), key: parts_of_key(key.as_bytes()), ends_in });
                }
            }
            Ok(banned)
        })
    }
}

/// Returns the rest of a key's ban, if it is in force.
async fn rest(force: &InForce, rule: &str, key: &Key) -> Result<Option<Duration>, StoreError> {
    let Some(id) = force.policy.id_of(rule) else { return Ok(None) };
    let (Some(limit), Some(limited)) = (force.policy.rule(id).limit(), force.policy.rule(id).limited())
    else {
        return Ok(None);
    };
    let Some(limit) = force.limit(id).now(limit) else { return Ok(None) };
    let subject = limit.subject(key).in_zone(limited.zone.as_deref()).penalty(force.penalty(id));
    let Some([ban, _]) = subject.ban_and_strikes() else { return Ok(None) };
    let decision = force.store.store().peek(ban, Ask::ONE).await?;
    Ok(match decision.verdict() {
        Verdict::Denied { retry_after } => Some(retry_after),
        Verdict::Allowed { .. } | Verdict::Impossible => None,
    })
}
