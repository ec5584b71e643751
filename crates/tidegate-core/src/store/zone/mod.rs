//! A store of fixed memory for any number of keys.
//!
//! A key is found by its hash in one of two buckets, where a cell of sixteen bytes holds its whole state. Nothing is
//! allocated, locked or cleaned up. The effect of a flood of new keys on other keys is bounded: see
//! [`core`](self::core).

#[cfg(all(test, not(tidegate_models)))]
mod adversary;
mod atomic;
mod batch;
mod carry;
mod cell;
mod cell_takes;
mod cells;
mod change;
mod core;
mod counters;
mod files;
mod memo;
pub(crate) mod memory;
pub(crate) mod sip;
mod subjects;
mod table;
#[cfg(all(test, not(tidegate_models)))]
mod tests;

pub(crate) use batch::Placed;
pub(crate) use cell_takes::{CellTakes, MAX_CELL_TAKES};
pub use counters::ZoneCounts;
pub use files::StateCounts;
pub use memory::ZoneError;
pub(crate) use subjects::StatePrefix;

use std::sync::{Arc, OnceLock};
use std::{fmt, io};

use self::core::Core;
use super::Map;
use super::limit_table::LimitTable;
use super::receipts::Receipts;
use crate::limit::Limit;
use crate::time::{Clock, Source, WallAlignment};
use cells::Cells;
use files::Files;
use memory::states::StateFile;
use table::{BUCKET_BYTES, Table};

/// The most buckets that are sampled to estimate the fill level of a zone.
const SAMPLED_BUCKETS: usize = 4096;

/// An in-memory store of a fixed size; clones share it.
///
/// It holds about one key with debt per 24 bytes, and never evicts a key before its debt is repaid. When there is no
/// cell left for a new key, the key shares a cell with other keys. It may be denied early, and no key is admitted too
/// much. States that need more than one word (logs, sliding windows, pacers, permits) are stored in a [`Map`] beside
/// it. For a zone in a file they are also stored in a state file.
///
/// ```
/// use tidegate::{Limit, Limiter, Zone, admit_all};
///
/// let zone = Zone::new(64 << 20);
/// let per_user = Limiter::on(&zone, "user", Limit::per_second(10).burst(20));
/// let per_ip = Limiter::on(&zone, "ip", Limit::per_minute(600));
/// assert!(admit_all([per_user.ask("ana"), per_ip.ask("192.0.2.7")]).is_allowed());
/// ```
#[doc(alias = "limit_req_zone")]
#[doc(alias = "shared memory")]
#[doc(alias = "mmap")]
#[doc(alias = "cuckoo hashing")]
#[doc(alias = "lock-free")]
#[derive(Clone)]
pub struct Zone {
    inner: Arc<Inner>,
}

struct Inner {
    name: Box<str>,
    core: Core,
    /// The limits that its namespaces have had, and the seed of the hash that finds states.
    limits: Arc<LimitTable>,
    map: OnceLock<Map>,
    receipts: Receipts,
    /// The most bytes of the map; `None` for the default size of a map.
    map_bytes: Option<usize>,
    /// The files of the zone, if it is in a file.
    files: Option<Files>,
}

/// The treatment of a rule's keys when a zone has no cell for them.
#[doc(alias = "eviction")]
#[doc(alias = "LRU")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The key shares a cell with other keys without one: it may be denied early, and is never admitted too much.
    #[default]
    Share,
    /// The key is forgotten, or not stored: it may be admitted too much, and is never denied early. Counted in
    /// [`ZoneCounts::forgotten`]. Keys of a limit that does not [fit a cell](Limit::fits_cell), and keys in a store
    /// without cells, are never forgotten.
    Forget,
}

impl Zone {
    /// Creates an empty zone of `bytes` bytes, in memory that is released with the process.
    ///
    /// A zone has at least two buckets of 128 bytes.
    ///
    /// # Panics
    /// If `bytes` is more than a program can address. If the system has less memory, the process ends as after every
    /// failed allocation.
    pub fn new(bytes: usize) -> Zone {
        Zone::on(Cells::anonymous(Table::buckets_in(bytes)), Source::default())
    }

    /// Creates an empty zone like [`Zone::new`], with another clock.
    pub fn with_clock(bytes: usize, clock: Arc<dyn Clock>) -> Zone {
        Zone::on(Cells::anonymous(Table::buckets_in(bytes)), Source::Given(clock))
    }

    /// Creates an empty zone like [`Zone::new`], or returns an error if the system provides no memory.
    ///
    /// ```
    /// assert!(tidegate::Zone::try_new(1 << 20).is_ok());
    /// assert!(tidegate::Zone::try_new(1 << 60).is_err());
    /// ```
    pub fn try_new(bytes: usize) -> io::Result<Zone> {
        Zone::try_on_clock(bytes, Source::default())
    }

    /// Creates an empty zone that uses the clock of another store.
    pub(crate) fn try_on_clock(bytes: usize, clock: Source) -> io::Result<Zone> {
        Ok(Zone::on(Cells::try_anonymous(Table::buckets_in(bytes))?, clock))
    }

    /// Sets the most bytes of the map beside the zone. The zone must not be in use yet.
    pub(crate) fn beside(mut self, map_bytes: usize) -> Zone {
        let inner = Arc::get_mut(&mut self.inner).expect("a zone is bounded before it is used");
        inner.map_bytes = Some(map_bytes);
        self
    }

    /// Sets the name by which an operator identifies the zone.
    ///
    /// # Panics
    /// If the zone is already in use.
    #[must_use]
    pub fn named(mut self, name: &str) -> Zone {
        let inner = Arc::get_mut(&mut self.inner).expect("a zone is named before it is used");
        inner.name = name.into();
        self
    }

    /// Writes the time into the zone's file, if it is in one: the current time, and the wall clock's time if it was set
    /// since the zone was opened.
    ///
    /// Decisions do this about once per second, and [`Zone::flush`] and dropping the zone do it too. Only a program
    /// that leaves its zone idle for long needs to call it now and then. Otherwise, suppose the wall clock was wrong
    /// when the zone was opened, is set later, and the machine restarts before the next decision. Then the time that
    /// the machine was off is overestimated, and keys have less debt than they should. The cost is about two readings
    /// of the clock.
    pub fn keep_time(&self) {
        self.inner.core.clock.leave_mark();
    }

    /// Returns whether days begin at midnight UTC in this zone, for a log. They do not if the wall clock was wrong when
    /// the process started, or when the file was created.
    pub fn wall_alignment(&self) -> WallAlignment {
        WallAlignment::of(&self.inner.core.clock)
    }

    /// Waits until all decisions so far are on disk, if the zone is in a file. Decisions that are not yet on disk
    /// survive the process, but not a power failure of the machine.
    pub fn flush(&self) -> io::Result<()> {
        self.keep_time();
        self.inner.core.table.cells.flush()?;
        self.inner.map.get().and_then(Map::states).map_or(Ok(()), StateFile::flush)
    }

    fn on(cells: Cells, clock: Source) -> Zone {
        Zone::with_files(cells, Arc::new(LimitTable::new()), clock, "", None)
    }

    fn with_files(
        cells: Cells,
        limits: Arc<LimitTable>,
        clock: Source,
        name: &str,
        files: Option<Files>,
    ) -> Zone {
        let first_attempt = memory::fresh_seed()[0] as u32;
        let receipts = if cells.is_in_file() { Receipts::of_shared() } else { Receipts::new() };
        let core = Core::new(Table::new(cells), clock, first_attempt);
        let map = OnceLock::new();
        let inner = Inner { name: name.into(), core, limits, map, receipts, map_bytes: None, files };
        Zone { inner: Arc::new(inner) }
    }

    /// Returns the name by which an operator identifies this zone: the name of its file, unless it was named.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the bytes of the zone's cells, which never change. The map beside the zone is not included.
    pub fn bytes(&self) -> usize {
        self.inner.core.table.buckets() * BUCKET_BYTES
    }

    /// Returns true if the states of this limit are stored in the zone's own cells, and not in the map beside it.
    pub fn keeps(&self, limit: &Limit) -> bool {
        limit.fits_cell()
    }

    /// Returns the counters of the zone and an estimate of its fill level. The cost is at most about 4096 bucket reads.
    pub fn counts(&self) -> ZoneCounts {
        let Core { table, clock, counters, .. } = &self.inner.core;
        let now = clock.now();
        let step = table.buckets().div_ceil(SAMPLED_BUCKETS);
        let (mut seen, mut live, mut shared) = (0, 0, 0);
        for bucket in (0..table.buckets()).step_by(step) {
            for content in table.contents(bucket) {
                seen += 1;
                live += usize::from(!content.is_free(now));
                shared += usize::from(!content.is_free(now) && content.is_shared());
            }
        }
        let of_all = |part: usize| (part as u128 * table.cell_count() as u128 / seen as u128) as usize;
        ZoneCounts {
            cells: table.cell_count(),
            live: of_all(live),
            shared: of_all(shared),
            inserts: counters.sum(|stripe| &stripe.inserts),
            conversions: counters.sum(|stripe| &stripe.conversions),
            shared_decisions: counters.sum(|stripe| &stripe.shared_decisions),
            forgotten: counters.sum(|stripe| &stripe.forgotten),
            retries: counters.sum(|stripe| &stripe.retries),
        }
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Zone").field("name", &self.name()).field("bytes", &self.bytes()).finish()
    }
}
