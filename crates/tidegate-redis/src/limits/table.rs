//! Lists limits in the table of their namespace before states are written under them.
//!
//! Listed entries are cached, so the table is written once in about two refills, and no decision reads it. The cache
//! entry belongs to one identity of the server's memory. After a new connection, and after a reported flush, a limit is
//! listed again before the next state is written under it. If the flush came in between, the reply to the take waits
//! until the limit is listed again.

use std::sync::Arc;

use redis::Value;
use tidegate_core::{Limit, PreparedLimit, SECOND, Scope, StoreError, Ticks, Timestamp};
use tidegate_support::join_all;
use tokio::time::Instant;

use super::listing::Listed;
use super::{LimitHistory, StoredLimit, longest_use};
use crate::exchange::Question;
use crate::fault::Fault;
use crate::link::MemoryId;
use crate::script::{self, Announced, Call, InForce, LimitName, ListedEntry, TakeRecord, Time};
use crate::store::{Inner, read};

/// The minimum time for which a limit is listed, so that a limit with short debts is not listed too often.
const SHORTEST_NOTE: Ticks = Ticks::saturating_from(SECOND.saturating_mul(60));

/// The reply to a call that has written a table.
struct TableAnswer {
    /// The reply.
    value: Value,
    /// The server's time in it.
    now: Timestamp,
    /// The memory that the table was written to.
    seat: MemoryId,
}

impl StoredLimit {
    /// Returns true if the table in this memory lists the limit until this time.
    fn is_listed(&self, seat: Option<MemoryId>, until: Timestamp) -> bool {
        self.listing.covers(seat, self.force(), until)
    }

    /// Returns the time for which a limit is listed ahead, so that the table is written once in about two refills. A
    /// key in use is listed far enough ahead that its states never outlast the entry.
    fn ahead(&self, extra: Ticks) -> Ticks {
        let longest = longest_use(&self.limit, extra);
        let slack = longest.max(SHORTEST_NOTE);
        longest.saturating_add(slack).saturating_add(slack)
    }

    /// Returns the position among the limits of its rule, if it is one of them.
    fn force(&self) -> InForce {
        self.history.get().map_or_else(InForce::default, |known| known.force)
    }
}

impl Inner {
    /// Returns true if a state can be written now without a call about its limit. It reads cached data
    /// only.
    fn is_ready(&self, limit: &StoredLimit, extra: Ticks) -> bool {
        let until = self.reckoned_now().saturating_add(longest_use(&limit.limit, extra));
        limit.history.get().is_some() && limit.is_listed(self.seat_in(limit.listing.slot), until)
    }

    /// Puts a limit in force and lists it, unless both are done. States under it may then be written.
    ///
    /// `extra` is the additional time for which a state can matter beyond that of takes. Predecessors are put in force
    /// first, because the table records the order. Concurrent requests for one limit wait for the first of them.
    pub(crate) async fn make_ready(
        &self,
        limit: &StoredLimit,
        extra: Ticks,
        due: Instant,
    ) -> Result<(), StoreError> {
        if self.is_ready(limit, extra) {
            return Ok(());
        }
        let before = match &limit.prepared_scope {
            _ if limit.history.get().is_some() => None,
            Scope::InsteadOf(before) => Some(self.limit_before(before, due).await?),
            Scope::BackTo { rule, before } => {
                self.limit_before(rule, due).await?;
                Some(self.limit_before(before, due).await?)
            }
            Scope::Rule | Scope::Dynamic | Scope::Release => None,
        };
        let _turn = limit.listing.turns.lock().await;
        if self.is_ready(limit, extra) {
            return Ok(());
        }
        if limit.history.get().is_none() && before.is_none() {
            return self.announce(limit, limit.ahead(extra), due).await;
        }
        let now = self.note(limit, limit.ahead(extra), due).await?;
        if let Some(LimitBefore { limit: newest, name, history: older, names }) = before {
            let history = older.followed_by(&newest, &limit.limit, now);
            let kept =
                older.before().iter().zip(names).filter(|(old, _)| history.before()[1..].contains(old));
            let names = std::iter::once(name).chain(kept.map(|(_, name)| name)).collect();
            limit.came_into_force(LimitHistory { force: InForce::default(), history, names }, now);
        }
        Ok(())
    }

    /// Returns true if states under these limits can be written now without a call about any of them.
    pub(crate) fn are_ready(&self, limits: &[Arc<StoredLimit>]) -> bool {
        limits.iter().all(|limit| self.is_ready(limit, Ticks::ZERO))
    }

    /// Puts several limits in force and lists them.
    ///
    /// The limits are independent, so their calls are sent concurrently.
    pub(crate) async fn make_all_ready(
        &self,
        limits: &[Arc<StoredLimit>],
        due: Instant,
    ) -> Result<(), StoreError> {
        let ready = limits.iter().map(|limit| Box::pin(self.make_ready(limit, Ticks::ZERO, due)));
        join_all(ready).await.into_iter().collect()
    }

    /// Puts a limit in force, unless it is. States under it may then be read.
    pub(crate) async fn put_in_force(&self, limit: &StoredLimit, due: Instant) -> Result<(), StoreError> {
        if limit.history.get().is_some() { Ok(()) } else { self.make_ready(limit, Ticks::ZERO, due).await }
    }

    /// Puts the predecessor of a limit in force. The future is boxed, because predecessors have predecessors of their
    /// own.
    async fn limit_before(&self, before: &PreparedLimit, due: Instant) -> Result<LimitBefore, StoreError> {
        let stored = self.stored_limit(before).map_err(|error| StoreError::unfit(error.to_string()))?;
        Box::pin(self.put_in_force(&stored, due)).await?;
        let LimitHistory { history, names, .. } = stored.history.get().cloned().unwrap_or_default();
        Ok(LimitBefore { limit: stored.limit, name: stored.name.clone(), history, names })
    }

    /// Lists limits under which states were written although they are not listed, or not for long enough. That happens
    /// after a flush, and with pacers, whose debt may last longer than expected.
    ///
    /// The takes stand even if this fails; the next take lists the limit again.
    pub(crate) async fn note_taken<'a>(
        &self,
        taken: impl Iterator<Item = (&'a StoredLimit, &'a TakeRecord)>,
        now: Timestamp,
        due: Instant,
    ) {
        let mut unlisted = Vec::new();
        for (limit, taken) in taken {
            self.wrote(limit);
            if !limit.is_listed(self.seat_in(limit.listing.slot), taken.clear_at()) {
                let left = taken.clear_at().since(now);
                let ahead = left.saturating_add(left).saturating_add(SHORTEST_NOTE);
                unlisted.push((limit, ahead.max(limit.ahead(Ticks::ZERO))));
            }
        }
        if !unlisted.is_empty() {
            join_all(unlisted.iter().map(|(limit, ahead)| Box::pin(self.note(limit, *ahead, due)))).await;
        }
    }

    /// Lists a limit after a state was adjusted. A failure is ignored: the adjustment was made, and the next take lists
    /// the limit.
    pub(crate) async fn note_adjusted(&self, limit: &StoredLimit, extra: Ticks, due: Instant) {
        self.wrote(limit);
        let _ = self.make_ready(limit, extra, due).await;
    }

    /// Records that a take under these limits has failed, but may have been executed.
    pub(crate) fn may_have_written<'a>(&self, limits: impl Iterator<Item = &'a StoredLimit>) {
        limits.for_each(|limit| self.wrote(limit));
    }

    /// Schedules a read of the limit's table within a second. With a given time nothing is scheduled, because that time
    /// does not advance on its own.
    fn wrote(&self, limit: &StoredLimit) {
        if let Time::Server = self.time() {
            self.listings.wrote(&limit.listing);
        }
    }

    /// Puts the limit of a rule in force, and lists it. The reply contains the previous limits of the rule, as listed
    /// by any process.
    async fn announce(&self, limit: &StoredLimit, ahead: Ticks, due: Instant) -> Result<(), StoreError> {
        let answer = self.write_table(limit.listing.entry.announce(ahead, self.time()), due).await?;
        let Announced { force, history, names, drops_counts } =
            read(script::read_history(&answer.value, &limit.namespace))?;
        if drops_counts {
            limit.dropped_counts.note();
        }
        answer.note(limit, force, ahead);
        limit.came_into_force(LimitHistory { force, history, names }, answer.now);
        Ok(())
    }

    /// Lists a limit for a time. Returns the time of the entry.
    async fn note(&self, limit: &StoredLimit, ahead: Ticks, due: Instant) -> Result<Timestamp, StoreError> {
        let force = limit.force();
        let answer = self.write_table(limit.listing.entry.note(ahead, force, self.time()), due).await?;
        answer.note(limit, force, ahead);
        Ok(answer.now)
    }

    /// Writes a table. The reply begins with the time.
    async fn write_table(&self, call: Call, due: Instant) -> Result<TableAnswer, StoreError> {
        let answered = self.ask(Question::Run(Arc::new(call)), due).await?;
        let now = read(script::read_time(&answered.value))?;
        self.server_time.saw(now);
        Ok(TableAnswer { value: answered.value, now, seat: answered.seat })
    }

    /// Returns the names of all limits under which a key of this namespace may have a state. Fails if the table has
    /// overflowed, because a reset would then miss states.
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

impl TableAnswer {
    /// Records that a limit is listed.
    fn note(&self, limit: &StoredLimit, force: InForce, ahead: Ticks) {
        let entry = ListedEntry { force, until: self.now.saturating_add(ahead) };
        limit.listing.note(Listed { seat: self.seat, entry });
    }
}

/// A predecessor of a limit, with its own predecessors.
struct LimitBefore {
    /// The predecessor itself.
    limit: Limit,
    /// Its name.
    name: LimitName,
    /// Its own predecessors.
    history: tidegate_core::History,
    /// The names of those.
    names: Vec<LimitName>,
}
