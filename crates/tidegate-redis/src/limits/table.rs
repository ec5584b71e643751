//! Lists limits in the table of their namespace before states are written under them.
//!
//! What was listed is remembered, so the table is written once in about two refills, and no decision reads it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use redis::Value;
use tidegate::{Limit, PreparedLimit, SECOND, Scope, StoreError, Ticks, Timestamp};
use tokio::time::Instant;

use super::{LimitHistory, StoredLimit, longest_use};
use crate::fault::Fault;
use crate::script::{self, Announced, InForce, LimitName, Taken};
use crate::store::{Inner, read};

/// The most limits of which is remembered that they are listed.
const MAX_LISTINGS: usize = 8192;
/// A limit is listed for at least this long, so that one with short debts is not listed all the time.
const SHORTEST_NOTE: Ticks = Ticks::saturating_from(SECOND.saturating_mul(60));

/// The limits that this process has listed.
#[derive(Debug, Default)]
pub(crate) struct Listings(Mutex<HashMap<LimitName, Arc<Listing>>>);

/// A limit that this process has listed.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// No state that matters until then has to be listed; in ticks of the server's time.
    until: AtomicU64,
    /// Requests that wait for it to be listed, in their order.
    turns: tokio::sync::Mutex<()>,
}

impl Listings {
    pub(super) fn of(&self, name: &LimitName) -> Arc<Listing> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listing) = known.get(name) {
            return Arc::clone(listing);
        }
        if known.len() >= MAX_LISTINGS {
            // Those that come back are listed once more.
            known.clear();
        }
        Arc::clone(known.entry(name.clone()).or_default())
    }
}

impl Listing {
    fn covers(&self, time: Timestamp) -> bool {
        time.ticks() <= self.until.load(Ordering::Relaxed)
    }
}

impl StoredLimit {
    /// Returns true if a state can be written now without a call about its limit.
    fn is_ready(&self, now: Timestamp, extra: Ticks) -> bool {
        let until = now.saturating_add(longest_use(&self.limit, extra));
        self.history.get().is_some() && self.listing.covers(until)
    }

    /// The time that is listed ahead, so that the table is written once in about two refills.
    fn ahead(&self, extra: Ticks) -> Ticks {
        let longest = longest_use(&self.limit, extra);
        let slack = longest.max(SHORTEST_NOTE);
        longest.saturating_add(slack).saturating_add(slack)
    }

    /// Its place among the limits of its rule, if it is one of them.
    fn force(&self) -> InForce {
        self.history.get().map_or_else(InForce::default, |known| known.force)
    }
}

impl Inner {
    /// Puts a limit in force and lists it, unless that was done. States under it may then be written.
    ///
    /// `extra` is the time for which a state can matter beyond what takes leave.
    pub(crate) async fn make_ready(
        &self,
        limit: &StoredLimit,
        extra: Ticks,
        due: Instant,
    ) -> Result<(), StoreError> {
        if limit.is_ready(self.reckoned_now(), extra) {
            return Ok(());
        }
        let rule = match &limit.prepared_scope {
            Scope::InsteadOf(rule) if limit.history.get().is_none() => Some(self.rule_of(rule, due).await?),
            _ => None,
        };
        let _turn = limit.listing.turns.lock().await;
        if limit.is_ready(self.reckoned_now(), extra) {
            return Ok(());
        }
        let is_announced = limit.history.get().is_none() && rule.is_none();
        if is_announced {
            let answer = self.list(limit, (limit.ahead(extra), true), due).await?;
            let Announced { force, history, names } = read(script::read_history(&answer, &limit.namespace))?;
            limit.came_into_force(LimitHistory { force, history, names }, read(script::read_time(&answer))?);
            return Ok(());
        }
        let now = read(script::read_time(&self.list(limit, (limit.ahead(extra), false), due).await?))?;
        if let Some((rule_limit, rule)) = rule {
            let history = rule.history.followed_by(&rule_limit, now);
            let mut names = vec![rule.name];
            names.extend(rule.names);
            names.truncate(history.before().len());
            limit.came_into_force(LimitHistory { force: InForce::default(), history, names }, now);
        }
        Ok(())
    }

    /// The same for takes under several limits.
    pub(crate) async fn make_all_ready(
        &self,
        limits: &[Arc<StoredLimit>],
        due: Instant,
    ) -> Result<(), StoreError> {
        let now = self.reckoned_now();
        if limits.iter().all(|limit| limit.is_ready(now, Ticks::ZERO)) {
            return Ok(());
        }
        let ready = limits.iter().map(|limit| self.make_ready(limit, Ticks::ZERO, due));
        crate::join::join_all(ready).await.into_iter().collect()
    }

    /// Puts a limit in force, unless that was done. States under it may then be read.
    pub(crate) async fn put_in_force(&self, limit: &StoredLimit, due: Instant) -> Result<(), StoreError> {
        if limit.history.get().is_some() { Ok(()) } else { self.make_ready(limit, Ticks::ZERO, due).await }
    }

    /// The limit of a rule, and the limits before it.
    async fn rule_of(&self, rule: &PreparedLimit, due: Instant) -> Result<(Limit, RuleHistory), StoreError> {
        let stored = self.stored_limit(rule).map_err(|error| StoreError::unfit(error.to_string()))?;
        Box::pin(self.put_in_force(&stored, due)).await?;
        let LimitHistory { history, names, .. } = stored.history.get().cloned().unwrap_or_default();
        Ok((stored.limit, RuleHistory { name: stored.name.clone(), history, names }))
    }

    /// Lists limits under which states were written that matter for longer than was foreseen: those of pacers.
    ///
    /// The takes stand, whether this succeeds or not; the next one lists the limit again.
    pub(crate) async fn note_taken<'a>(
        &self,
        taken: impl Iterator<Item = (&'a StoredLimit, &'a Taken)>,
        (now, due): (Timestamp, Instant),
    ) {
        for (limit, taken) in taken.filter(|(limit, taken)| !limit.listing.covers(taken.clear_at())) {
            let left = taken.clear_at().since(now);
            let _ =
                self.list(limit, (left.saturating_add(left).saturating_add(SHORTEST_NOTE), false), due).await;
        }
    }

    /// Writes the table. The answer begins with the time.
    async fn list(
        &self,
        limit: &StoredLimit,
        (ahead, is_announced): (Ticks, bool),
        due: Instant,
    ) -> Result<Value, StoreError> {
        let call = match is_announced {
            true => limit.entry.announce(ahead, self.time()),
            false => limit.entry.note(ahead, limit.force(), self.time()),
        };
        let answer = self.run(call, due).await?;
        let now = read(script::read_time(&answer))?;
        self.server_time.saw(now);
        limit.listing.until.fetch_max(now.saturating_add(ahead).ticks(), Ordering::Relaxed);
        Ok(answer)
    }

    /// The names of all states that a key of this namespace may have.
    pub(crate) async fn listed_names(
        &self,
        namespace: &str,
        due: Instant,
    ) -> Result<Vec<LimitName>, StoreError> {
        let answer = self.run(script::list_limits(self.prefix(), namespace, self.time()), due).await?;
        let listed = script::read_listed(&answer, namespace);
        let listed = listed.map_err(|error| Fault::Unreadable(error.to_string()))?;
        if listed.has_others {
            return Err(StoreError::unfit(format!(
                "namespace \"{namespace}\" has more limits than the 1024 that are listed; name the limit to reset"
            )));
        }
        Ok(listed.names)
    }
}

/// The name of a rule's limit, and the limits before it.
struct RuleHistory {
    name: LimitName,
    history: tidegate::History,
    names: Vec<LimitName>,
}
