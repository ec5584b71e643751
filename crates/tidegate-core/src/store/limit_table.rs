//! The table of the limits that the namespaces of a store have had, and of the time since which a limit is in force.
//!
//! ```text
//!   a record: nine words
//!   +-----------------------+-------+-------+-------+------------------------------+
//!   | namespace, algorithm  | order | since | until | five numbers                 |
//!   +-----------------------+-------+-------+-------+------------------------------+
//!                             |       |       no state under this limit is worth anything from then on
//!                             |       since when a rule has it
//!                             its place among the limits that the rule has had; zero if it comes with each request
//! ```
//!
//! No decision reads the table. A limit is noted before the first state is written under it, and again when a state
//! would outlast the record. The table is therefore written once in about two refills. It is read to reset a key under
//! every limit of its namespace, and when another limit of a rule comes into force.
//!
//! The records are in memory, or in the file of a zone, where other processes use them as well. A record becomes valid
//! with its last word, `until`, so a process that is killed in between leaves a free record.
//!
//! A table has at most 2,048 records, 1,024 for limits of rules and 1,024 for dynamic limits. A record is reused once
//! no state under its limit can be live. While a limit cannot be listed, decisions by it go on, and a reset by key
//! returns an error.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
// Not the atomics of models: the records are read and written under a lock.
use std::sync::atomic::{AtomicU64, Ordering};

use super::zone::memory::{MappedPart, ZoneFile, fresh_seed};
use super::zone::sip::Sip;
use crate::algorithm::Algorithm;
use crate::history::{History, MAX_PREDECESSORS, Predecessor};
use crate::sync::{Mutex, MutexGuard};
use crate::time::{SECOND, Ticks, Timestamp};

/// The most limits of rules that a table lists, and the most dynamic limits: each has its own space.
pub(crate) const MAX_LIMITS: usize = 1024;
/// The number of records of a table.
pub(crate) const RECORDS: usize = 2 * MAX_LIMITS;
/// The number of words of a record.
pub(crate) const RECORD_WORDS: usize = 9;

/// The bits of the algorithm's number, the lowest ones of a record's first word.
const ALGORITHM_BITS: u32 = 4;
/// The shortest time for which a limit is noted, so that one with short debts is not noted all the time.
const SHORTEST_NOTE: Ticks = Ticks::saturating_from(SECOND.saturating_mul(60));

/// The most attempts of a decision to lock the file; the thread yields between them.
const ATTEMPTS_TO_NOTE: usize = 64;
/// The most such attempts of a rule that comes into force, and of a reset.
const ATTEMPTS: usize = 1 << 14;

/// The algorithm and the numbers that identify a state. The numbers are zero for permits of a rule, which are one set
/// whatever the numbers.
pub(crate) type StateLimit = [u64; 6];

/// The table of one store.
pub(crate) struct LimitTable {
    /// The seed of the hashes of the store; in a file it is the seed of the file.
    seed: [u64; 2],
    /// The records, behind a lock of this process.
    records: Mutex<TableWords>,
    /// The time, in ticks, until which there may be live states under unlisted limits, which a reset by key may miss. A
    /// table in a file keeps it in the file, for all processes that use it.
    unlisted_until: AtomicU64,
    /// The file of the table, whose lock excludes other processes.
    file: Option<Arc<ZoneFile>>,
}

/// The words of the records.
enum TableWords {
    /// The records in use.
    Memory(Vec<AtomicU64>),
    /// All possible records, which other processes use as well.
    File(MappedPart<AtomicU64>),
}

impl Deref for TableWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        match self {
            TableWords::Memory(words) => words,
            TableWords::File(words) => words,
        }
    }
}

/// One record: a limit of a namespace, and the times between which it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LimitRecord {
    /// The namespace and the algorithm.
    owner: u64,
    order: u64,
    since: u64,
    until: u64,
    numbers: [u64; 5],
}

/// A limit of a rule that came into force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Announced {
    /// The limits before it whose counts are carried, and the time at which it came into force.
    pub(crate) history: History,
    /// True if there are live states under limits that are older than those of the history.
    pub(crate) drops_counts: bool,
}

/// The error that some limits are not listed, because the table is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unlisted;

impl LimitTable {
    /// Creates an empty table in memory.
    pub(crate) fn new() -> LimitTable {
        LimitTable::over(fresh_seed(), TableWords::Memory(Vec::new()), None)
    }

    /// Returns the table in the file of a zone.
    pub(crate) fn in_file(file: &Arc<ZoneFile>) -> LimitTable {
        LimitTable::over(file.seed(), TableWords::File(file.record_words()), Some(Arc::clone(file)))
    }

    fn over(seed: [u64; 2], words: TableWords, file: Option<Arc<ZoneFile>>) -> LimitTable {
        LimitTable { seed, records: Mutex::new(words), unlisted_until: AtomicU64::new(0), file }
    }

    /// Returns the seed of the hashes by which its store finds states.
    pub(crate) fn seed(&self) -> [u64; 2] {
        self.seed
    }

    /// Lists a limit before a state is written under it that is live until `clear_at`. Returns the time until which no
    /// state has to be noted again. `since` is the time at which the limit came into force, if it is the limit of a
    /// rule.
    pub(crate) fn note(
        &self,
        namespace: &str,
        limit: &StateLimit,
        since: Option<Timestamp>,
        clear_at: Timestamp,
        now: Timestamp,
    ) -> Timestamp {
        let ahead = clear_at.since(now).max(SHORTEST_NOTE);
        let until = clear_at.saturating_add(ahead);
        let record = LimitRecord { until: until.ticks(), ..self.record(namespace, limit) };
        let is_listed =
            self.open(ATTEMPTS_TO_NOTE).is_some_and(|mut open| match (open.place_of(&record), since) {
                (Some(place), _) => {
                    open.prolong(place, record.until);
                    true
                }
                // Its record was used for another limit meanwhile.
                (None, Some(since)) if open.of_rule(record.owner).is_empty() => {
                    open.enter(LimitRecord { order: 1, since: since.ticks(), ..record }, now)
                }
                (None, _) => open.enter(record, now),
            });
        if !is_listed {
            self.unlisted_until().fetch_max(record.until, Ordering::Relaxed);
        }
        until
    }

    /// Puts the limit of a rule in force, unless it is already, and returns the limits before it. A limit that cannot
    /// be listed has no history.
    pub(crate) fn announce(&self, namespace: &str, limit: &StateLimit, now: Timestamp) -> Announced {
        let record = self.record(namespace, limit);
        let Some(mut open) = self.open(ATTEMPTS) else {
            return Announced { history: History::new(now, Vec::new()), drops_counts: false };
        };
        let known = open.of_rule(record.owner);
        let newest = known.first().copied().unwrap_or_default();
        let is_newest = newest.is(&record);
        let since = if is_newest { newest.since } else { now.ticks() };
        if !is_newest {
            let (order, until) = (newest.order.saturating_add(1), now.saturating_add(SHORTEST_NOTE).ticks());
            match open.place_of(&record) {
                Some(place) => {
                    open.prolong(place, until);
                    open.put_in_force(place, order, since);
                }
                None => {
                    open.enter(LimitRecord { order, since, until, ..record }, now);
                }
            }
        }
        let mut older = known.iter().filter(|known| !known.is(&record)).skip(MAX_PREDECESSORS);
        let drops_counts = older.any(|known| known.owner == record.owner && !known.is_over(now));
        let before = mattering(known, now);
        let before = before.iter().filter(|known| !known.is(&record)).filter_map(LimitRecord::predecessor);
        let history = History::new(Timestamp::from_ticks(since), before.collect());
        Announced { history, drops_counts }
    }

    /// Returns the limits under which a key of this namespace may have a state.
    ///
    /// # Errors
    /// While states under unlisted limits may be live, or if another process holds the lock of the file for too long.
    pub(crate) fn listed(&self, namespace: &str, now: Timestamp) -> Result<Vec<StateLimit>, Unlisted> {
        if self.unlisted_until().load(Ordering::Relaxed) > now.ticks() {
            return Err(Unlisted);
        }
        let owner = self.namespace_id(namespace);
        let Some(open) = self.open(ATTEMPTS) else { return Err(Unlisted) };
        let of_namespace = |record: &LimitRecord| record.owner >> ALGORITHM_BITS == owner;
        let listed = open.all().into_iter().filter(of_namespace).map(|record| record.limit());
        Ok(listed.collect())
    }

    /// Returns the record of a limit without its times.
    fn record(&self, namespace: &str, limit: &StateLimit) -> LimitRecord {
        let [algorithm, numbers @ ..] = *limit;
        let owner = self.namespace_id(namespace) << ALGORITHM_BITS | (algorithm + 1);
        LimitRecord { owner, numbers, ..LimitRecord::default() }
    }

    /// Returns the number of a namespace in records, which is never zero.
    fn namespace_id(&self, namespace: &str) -> u64 {
        let mut sip = Sip::new(self.seed);
        sip.write(namespace.as_bytes());
        sip.finish()[0] >> ALGORITHM_BITS | 1
    }

    /// Returns the time of the table, or the time in its file.
    fn unlisted_until(&self) -> &AtomicU64 {
        self.file.as_ref().map_or(&self.unlisted_until, |file| file.unlisted_until())
    }

    /// Locks the records. Returns `None` if another process holds the lock for too long, so that a decision does not
    /// wait for a stopped process.
    fn open(&self, attempts: usize) -> Option<Open<'_>> {
        let (words, file) = (self.records.lock(), self.file.as_deref());
        let try_lock = |file: &ZoneFile| {
            (0..attempts).any(|attempt| {
                if attempt > 0 {
                    std::thread::yield_now();
                }
                file.try_lock()
            })
        };
        file.is_none_or(try_lock).then(|| Open { words, file })
    }
}

impl fmt::Debug for LimitTable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("LimitTable")
    }
}

/// The locked records.
struct Open<'a> {
    words: MutexGuard<'a, TableWords>,
    file: Option<&'a ZoneFile>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.file {
            file.unlock();
        }
    }
}

impl Open<'_> {
    /// Returns the number of records, free ones included.
    fn count(&self) -> usize {
        self.words.len() / RECORD_WORDS
    }

    fn word(&self, place: usize, index: usize) -> &AtomicU64 {
        &self.words[place * RECORD_WORDS + index]
    }

    fn get(&self, place: usize) -> LimitRecord {
        LimitRecord::from_words(std::array::from_fn(|index| self.word(place, index).load(Ordering::Acquire)))
    }

    fn all(&self) -> Vec<LimitRecord> {
        (0..self.count()).map(|place| self.get(place)).collect()
    }

    /// Returns the index of the record of this limit, free or not.
    fn place_of(&self, record: &LimitRecord) -> Option<usize> {
        (0..self.count()).find(|place| self.get(*place).is(record))
    }

    /// Returns the limits that a rule has had, newest first.
    fn of_rule(&self, owner: u64) -> Vec<LimitRecord> {
        let namespace = owner >> ALGORITHM_BITS;
        let is_of_rule =
            |record: &LimitRecord| record.owner >> ALGORITHM_BITS == namespace && record.order > 0;
        let mut known: Vec<_> = self.all().into_iter().filter(is_of_rule).collect();
        known.sort_by_key(|known| std::cmp::Reverse(known.order));
        known
    }

    /// Returns true if a record may be used for another limit.
    fn is_free(&self, place: usize, now: Timestamp) -> bool {
        let record = self.get(place);
        record.is_over(now)
            && !mattering(self.of_rule(record.owner), now).iter().any(|known| known.is(&record))
    }

    /// Lists a limit in a free record. Returns false if there is none.
    fn enter(&mut self, record: LimitRecord, now: Timestamp) -> bool {
        let is_like = |place: &usize| {
            let known = self.get(*place);
            !known.is_over(now) && (known.order > 0) == (record.order > 0)
        };
        if (0..self.count()).filter(is_like).count() >= MAX_LIMITS {
            return false;
        }
        // The limit in force of a rule stays as long as there is a free record: it may come into use again.
        let place = self.free(now).find(|place| !self.is_in_force(*place));
        if place.is_none() && self.push(record) {
            return true;
        }
        let Some(place) = place.or_else(|| self.free(now).next()) else { return false };
        self.replace(place, record);
        true
    }

    /// Appends a record in memory. Returns false in a file, which already has all records, or if the table is full.
    fn push(&mut self, record: LimitRecord) -> bool {
        match &mut *self.words {
            TableWords::Memory(words) if words.len() < RECORDS * RECORD_WORDS => {
                words.extend(record.to_words().map(AtomicU64::new));
                true
            }
            _ => false,
        }
    }

    /// Returns the places of records that may be used for another limit.
    fn free(&self, now: Timestamp) -> impl Iterator<Item = usize> + '_ {
        (0..self.count()).filter(move |place| self.is_free(*place, now))
    }

    /// Returns true if a record is the newest of a rule.
    fn is_in_force(&self, place: usize) -> bool {
        let record = self.get(place);
        record.order > 0 && self.of_rule(record.owner).first().is_some_and(|newest| newest.is(&record))
    }

    /// Writes a record to a free place. It stays free until its last word is written, wherever this process ends.
    fn replace(&mut self, place: usize, record: LimitRecord) {
        self.word(place, UNTIL_WORD).store(0, Ordering::Release);
        let words = record.to_words();
        for (index, word) in words.into_iter().enumerate().filter(|(index, _)| *index != UNTIL_WORD) {
            self.word(place, index).store(word, Ordering::Release);
        }
        self.word(place, UNTIL_WORD).store(words[UNTIL_WORD], Ordering::Release);
    }

    /// Puts a limit in force that is already listed. Its record stays valid, wherever this process ends.
    fn put_in_force(&mut self, place: usize, order: u64, since: u64) {
        self.word(place, SINCE_WORD).store(since, Ordering::Release);
        self.word(place, ORDER_WORD).store(order, Ordering::Release);
    }

    /// Extends the time until which the limit is listed; a shorter time changes nothing.
    fn prolong(&mut self, place: usize, until: u64) {
        self.word(place, UNTIL_WORD).fetch_max(until, Ordering::AcqRel);
    }
}

/// The index of `order` in a record.
const ORDER_WORD: usize = 1;
/// The index of `since` in a record.
const SINCE_WORD: usize = 2;
/// The index of `until` in a record, which is written last.
const UNTIL_WORD: usize = 3;

/// Returns the limits of a rule that still matter: the oldest with live states whose counts are carried, and all after
/// it, through which they are carried.
fn mattering(mut known: Vec<LimitRecord>, now: Timestamp) -> Vec<LimitRecord> {
    known.truncate(MAX_PREDECESSORS + 1);
    let oldest = known.iter().rposition(|known| !known.is_over(now));
    known.truncate(oldest.map_or(0, |oldest| oldest + 1));
    known
}

impl LimitRecord {
    fn from_words([owner, order, since, until, numbers @ ..]: [u64; RECORD_WORDS]) -> LimitRecord {
        LimitRecord { owner, order, since, until, numbers }
    }

    fn to_words(self) -> [u64; RECORD_WORDS] {
        let [a, b, c, d, e] = self.numbers;
        [self.owner, self.order, self.since, self.until, a, b, c, d, e]
    }

    /// Returns true if both are of one namespace and one limit.
    fn is(&self, other: &LimitRecord) -> bool {
        self.owner == other.owner && self.numbers == other.numbers
    }

    /// Returns true if no state under this limit is live.
    fn is_over(&self, now: Timestamp) -> bool {
        self.until <= now.ticks()
    }

    fn limit(&self) -> StateLimit {
        let [a, b, c, d, e] = self.numbers;
        [(self.owner & ((1 << ALGORITHM_BITS) - 1)).wrapping_sub(1), a, b, c, d, e]
    }

    /// Returns the limit as a predecessor; `None` if no limit has these numbers.
    fn predecessor(&self) -> Option<Predecessor> {
        let [algorithm, numbers @ ..] = self.limit();
        let algorithm = Algorithm::ALL.into_iter().find(|known| *known as u64 == algorithm)?;
        // Permits of a rule are one set whatever the numbers, which are not stored; nothing is carried from it.
        let numbers = if numbers == [0; 5] { [1, 1, 0, 0, 0] } else { numbers };
        Predecessor::from_numbers(algorithm, numbers, Timestamp::from_ticks(self.since))
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests;
