//! The upkeep of tables: reads them after states were written, and lists missing limits again.
//!
//! ```text
//!   take, answered  ->  within a second: the fields of all limits that were written under, one call for each table
//!                                        ->  all are there: nothing
//!                                        ->  some are not: they are listed again, with their place and their time
//! ```
//!
//! The server reports a flush, and a new connection is noticed. This covers the remaining cases. A table may be
//! deleted, evicted or swapped on its own. A server may not report flushes. A cluster node may report a flush on
//! another connection than the one that decides. No decision waits for this.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Ticks, Timestamp};
use tidegate_support::join_all;
use tokio::time::sleep;

use super::ServerTime;
use super::listing::{Listed, Listing, Listings};
use crate::exchange::{Exchange, Question};
use crate::link::Answered;
use crate::script::{self, ListedEntry, StateName, TableEntry, Time, whole_micros_at};

/// The interval between reads. Each table is read at most once in this time.
const BETWEEN_READS: Duration = Duration::from_secs(1);
/// The maximum number of fields in one call.
const FIELDS_AT_ONCE: usize = 128;
/// The maximum number of tables that are read concurrently.
const TABLES_AT_ONCE: usize = 64;

/// The upkeep task of one store.
#[derive(Debug)]
pub(crate) struct Upkeep {
    pub(crate) listings: Arc<Listings>,
    pub(crate) server_time: Arc<ServerTime>,
    pub(crate) exchange: Arc<Exchange>,
}

impl Upkeep {
    /// Runs until the connection thread ends.
    pub(crate) async fn run(self: Arc<Upkeep>) {
        loop {
            self.listings.written().await;
            sleep(BETWEEN_READS).await;
            let tables = by_table(self.listings.take_written());
            for some in tables.chunks(TABLES_AT_ONCE) {
                join_all(some.iter().map(|listings| Box::pin(self.look_after(listings)))).await;
            }
        }
    }

    /// Checks the limits of one table.
    async fn look_after(&self, listings: &[Arc<Listing>]) {
        let fields = TableEntry::fields(listings.iter().map(|listing| &listing.entry));
        let answer = self.exchange.ask_beside(&Question::ReadFields(Arc::new(fields))).await;
        let found = answer.ok().and_then(|answer| script::read_fields(&answer.value).ok());
        let Some((others, found)) = found.as_deref().and_then(<[_]>::split_last) else {
            // The server does not answer, so the table is read again in a second.
            return listings.iter().for_each(|listing| self.listings.wrote(listing));
        };
        // A full table has no room for missing limits.
        let now = self.server_time.now();
        if others.is_some_and(|others| others.until > now) {
            return;
        }
        for (listing, found) in listings.iter().zip(found) {
            if let Some(listed) = listing.listed().filter(|listed| is_lost(listed, found.as_ref(), now)) {
                self.list_again(listing, listed.entry, now).await;
            }
        }
    }

    /// Restores an entry, with its position and its end. A failure schedules another read.
    async fn list_again(&self, listing: &Arc<Listing>, entry: ListedEntry, now: Timestamp) {
        // The time is extrapolated, so a margin is added: an entry that ends too early would be rewritten every second.
        let ahead = entry.until.since(now).saturating_add(Ticks::saturating_from(BETWEEN_READS));
        let call = listing.entry.note(ahead, entry.force, Time::Server);
        let question = Question::Run(Arc::new(call));
        match self.exchange.ask_beside(&question).await {
            Ok(Answered { seat, .. }) => listing.note(Listed { seat, entry }),
            Err(_) => self.listings.wrote(listing),
        }
    }
}

/// Returns true if an entry that was written, and still matters, is missing or older.
fn is_lost(listed: &Listed, found: Option<&ListedEntry>, now: Timestamp) -> bool {
    let ListedEntry { force, until } = listed.entry;
    let is_there =
        |found: &ListedEntry| found.until >= whole_micros_at(until) && found.force.order >= force.order;
    until > now && !found.is_some_and(is_there)
}

/// Groups the listings by table, in chunks.
fn by_table(listings: Vec<Arc<Listing>>) -> Vec<Vec<Arc<Listing>>> {
    let mut tables: HashMap<StateName, Vec<_>> = HashMap::new();
    for listing in listings {
        tables.entry(listing.entry.table().clone()).or_default().push(listing);
    }
    tables
        .into_values()
        .flat_map(|of_table| of_table.chunks(FIELDS_AT_ONCE).map(<[_]>::to_vec).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::MemoryId;
    use crate::script::InForce;

    fn entry(order: u64, until: u64) -> ListedEntry {
        let force = InForce { order, since: Timestamp::EPOCH };
        ListedEntry { force, until: Timestamp::from_ticks(until) }
    }

    #[test]
    fn an_entry_is_lost_if_it_is_missing_shorter_or_without_its_place() {
        let is_lost = |written, found: Option<ListedEntry>, now| {
            let listed = Listed { seat: MemoryId::for_tests(1, 0), entry: written };
            is_lost(&listed, found.as_ref(), Timestamp::from_ticks(now))
        };
        assert!(is_lost(entry(0, 64_000), None, 0));
        assert!(!is_lost(entry(0, 64_000), None, 64_000), "no state under it matters");
        assert!(!is_lost(entry(2, 64_001), Some(entry(2, 64_000)), 0), "a table knows whole microseconds");
        assert!(is_lost(entry(2, 64_000), Some(entry(2, 48_000)), 0));
        assert!(is_lost(entry(2, 64_000), Some(entry(0, 64_000)), 0));
        assert!(!is_lost(entry(2, 64_000), Some(entry(3, 96_000)), 0), "it came back, and stays for longer");
        let endless = entry(0, u64::MAX);
        assert!(!is_lost(endless, Some(entry(0, u64::MAX / 16_000 * 16_000)), 0));
    }
}
