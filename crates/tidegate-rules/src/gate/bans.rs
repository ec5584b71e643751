//! The keys that this gate has seen banned, for a support desk.
//!
//! A zone keeps no names, so bans are noted here when they deny. The store has the truth: each noted key is peeked at
//! before it is listed, so a ban that was lifted on another server is not. A ban that has denied no request here is not
//! listed either.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_core::{Ask, Decision, Key, StoreError, StoreFuture, Timestamp, Verdict};
use tidegate_support::join_all;

use super::{Gate, InForce};
use crate::rule::Mode;
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
            let (force, date) = (self.inner.force.load_full(), self.date());
            let listed = self.inner.bans.list(rule, self.inner.now());
            let mut banned = Vec::new();
            // Some of the noted bans may be lifted, so more of them are looked at until there are enough.
            for some in listed.chunks(at_most.max(1)) {
                let rests =
                    join_all(some.iter().map(|(rule, key)| Box::pin(rest(&force, date, rule, key)))).await;
                for ((rule, key), rest) in some.iter().zip(rests) {
                    if let Some(ends_in) = rest? {
                        let key = parts_of_key(key.as_bytes());
                        banned.push(BannedKey { rule: rule.clone(), key, ends_in });
                    }
                }
                if banned.len() >= at_most {
                    break;
                }
            }
            // What was noted may be the wait for a limit, or the end of a ban whose length has changed.
            let by_end = |ban: &BannedKey| (Reverse(ban.ends_in), ban.rule.clone(), ban.key.clone());
            banned.sort_by_cached_key(by_end);
            banned.truncate(at_most);
            Ok(banned)
        })
    }
}

/// Returns the rest of a key's ban, if it is in force.
async fn rest(force: &InForce, date: i64, rule: &str, key: &Key) -> Result<Option<Duration>, StoreError> {
    let Some(id) = force.policy.id_of(rule) else { return Ok(None) };
    let Some(limited) = force.policy.rule(id).limited() else { return Ok(None) };
    if limited.now(|| date).0.mode == Mode::Shadow {
        return Ok(None);
    }
    // Any limit of the rule leads to the ban. To look must not end a window of the schedule.
    let Some(limit) = force.limit(id).last_used() else { return Ok(None) };
    let subject = limit.subject(key).in_zone(limited.zone.as_deref()).penalty(force.penalty(id));
    let Some([ban, _]) = subject.ban_and_strikes() else { return Ok(None) };
    let decision = force.store.store().peek(ban, Ask::ONE).await?;
    Ok(match decision.verdict() {
        Verdict::Denied { retry_after } => Some(retry_after),
        Verdict::Allowed { .. } | Verdict::Impossible => None,
    })
}

#[cfg(test)]
mod tests {
    use tidegate_core::{HOUR, ManualClock, Zone};

    use super::*;
    use crate::{Attributes, ManualCalendar, Policy};

    fn policy(more: &str) -> Policy {
        Policy::from_toml(&format!("[[rule]]\nname = 'login'\nkey = ['user']\nlimit = '1/h'\n{more}"))
            .unwrap()
    }

    /// Returns a gate whose only key is banned, and its clock.
    fn banned(more: &str) -> (Gate, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new());
        let zone = Zone::with_clock(1 << 16, clock.clone());
        let calendar = Arc::new(ManualCalendar::at(0));
        let gate = Gate::builder(policy(more), zone).calendar(calendar).build().expect("it fits a zone");
        for _ in 0..3 {
            gate.admit(&Attributes::new().set("user", "ana")).now().unwrap();
        }
        assert_eq!(ends(&gate), [10 * HOUR]);
        (gate, clock)
    }

    fn ends(gate: &Gate) -> Vec<Duration> {
        gate.bans(None, 9).now().unwrap().iter().map(|ban| ban.ends_in).collect()
    }

    const PENALTY: &str = "penalty = { after = 2, within = '1h', for = '10h' }";

    #[test]
    fn a_list_does_not_end_a_window_of_the_schedule() {
        let window = "{ from = '00:00', to = '24:00', timezone = 'UTC', limit = '1/2h' }";
        let (gate, _) = banned(&format!("{PENALTY}\nschedule = [{window}]"));
        let in_use = || gate.inner.force.load().limit(0).last_used().map(|limit| limit.limit().to_string());
        assert_eq!(in_use().as_deref(), Some("1/2h"));
        assert_eq!(ends(&gate), [10 * HOUR]);
        assert_eq!(in_use().as_deref(), Some("1/2h"));
    }

    #[test]
    fn a_shorter_penalty_counts_from_the_beginning_of_a_ban_and_a_longer_one_is_for_later_bans() {
        let (gate, clock) = banned(PENALTY);
        clock.advance(HOUR);
        for (lasts, ends_in) in [("20h", Some(9 * HOUR)), ("5h", Some(4 * HOUR)), ("30m", None)] {
            let text = PENALTY.replace("10h", lasts);
            gate.replace(policy(&text)).expect("it fits a zone");
            assert_eq!(ends(&gate), ends_in.into_iter().collect::<Vec<_>>(), "{lasts}");
        }
    }

    #[test]
    fn a_ban_under_a_rule_that_denies_nothing_any_more_is_not_listed() {
        let (gate, _) = banned(PENALTY);
        for gone in ["", &format!("{PENALTY}\nmode = 'shadow'"), "on_missing = 'skip'"] {
            gate.replace(policy(gone)).expect("it fits a zone");
            assert_eq!(ends(&gate), [], "{gone}");
            gate.replace(policy(PENALTY)).expect("it fits a zone");
            assert_eq!(ends(&gate), [10 * HOUR], "the ban is in force again");
        }
    }
}
