//! Fixed memory for any number of subjects.
//!
//! A subject is found by the hash of its name in one of two buckets, where a cell of sixteen bytes holds all that
//! is known about it; nothing is allocated, locked or cleaned up. What a flood of names can do to others is
//! bounded: see [`core`](self::core).

#[cfg(all(test, not(tidegate_models)))]
mod adversary;
mod atomic;
mod batch;
mod carry;
mod cell;
mod cells;
mod change;
mod core;
mod counters;
mod draft;
mod files;
mod memo;
pub(crate) mod memory;
pub(crate) mod sip;
mod subjects;
mod table;
#[cfg(all(test, not(tidegate_models)))]
mod tests;

pub(crate) use batch::Placed;
pub use counters::ZoneCounts;
pub(crate) use draft::{CellTakes, MAX_CELL_TAKES};
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

/// How many buckets are looked at to estimate how full a zone is.
const SAMPLED_BUCKETS: usize = 4096;

/// A store in memory of a fixed size; clones share it.
///
/// It holds about one subject per 24 bytes that owes something, and forgets nobody before. When there is no cell
/// left for a newcomer it is decided together with others who have none: it may be refused early, and nobody is
/// admitted too much. States that need more than one word (logs, sliding windows, pacers, permits) are kept in a
/// [`Map`] beside it, and of a zone in a file also in a state file.
///
/// ```
/// use tidegate::{Limit, Limiter, Zone, admit_all};
///
/// let zone = Zone::new(64 << 20);
/// let per_user = Limiter::on(&zone, "user", Limit::per_second(10).burst(20));
/// let per_ip = Limiter::on(&zone, "ip", Limit::per_minute(600));
/// assert!(admit_all([per_user.ask("ana"), per_ip.ask("192.0.2.7")]).is_allowed());
/// ```
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
    /// The most bytes of the map, unless it is as large as maps usually are.
    map_bytes: Option<usize>,
    /// The files that it is in, if it is.
    files: Option<Files>,
}

/// What becomes of the subjects of a rule when a zone has no cell for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// They are decided together with others that have no cell: perhaps refused early, never admitted too much.
    #[default]
    Share,
    /// They are forgotten, or not remembered: perhaps admitted too much, never refused early. Counted in
    /// [`ZoneCounts::forgotten`]. Of a limit that does not [fit a cell](Limit::fits_cell), and in a store without
    /// cells, nobody is forgotten.
    Forget,
}

impl Zone {
    /// An empty zone of so many bytes, in memory that is gone with the process.
    ///
    /// # Panics
    /// If that is more than a program can address. If the system has not as much, the process ends as after every
    /// failed allocation.
    pub fn new(bytes: usize) -> Zone {
        Zone::on(Cells::anonymous(Table::buckets_in(bytes)), Source::default())
    }

    /// The same with another clock.
    pub fn with_clock(bytes: usize, clock: Arc<dyn Clock>) -> Zone {
        Zone::on(Cells::anonymous(Table::buckets_in(bytes)), Source::Given(clock))
    }

    /// The same, or an error if the system gives no memory.
    ///
    /// ```
    /// assert!(tidegate::Zone::try_new(1 << 20).is_ok());
    /// assert!(tidegate::Zone::try_new(1 << 60).is_err());
    /// ```
    pub fn try_new(bytes: usize) -> io::Result<Zone> {
        Zone::try_on_clock(bytes, Source::default())
    }

    /// The same by the clock of another store.
    pub(crate) fn try_on_clock(bytes: usize, clock: Source) -> io::Result<Zone> {
        Ok(Zone::on(Cells::try_anonymous(Table::buckets_in(bytes))?, clock))
    }

    /// Bounds the map beside it, before anybody uses it.
    pub(crate) fn beside(mut self, map_bytes: usize) -> Zone {
        let inner = Arc::get_mut(&mut self.inner).expect("a zone is bounded before it is used");
        inner.map_bytes = Some(map_bytes);
        self
    }

    /// Gives the zone a name, by which an operator knows it.
    ///
    /// # Panics
    /// If somebody uses it already.
    #[must_use]
    pub fn named(mut self, name: &str) -> Zone {
        let inner = Arc::get_mut(&mut self.inner).expect("a zone is named before it is used");
        inner.name = name.into();
        self
    }

    /// Writes the time into the zone's file, if it is in one: how late it is, and what the wall clock shows if that was
    /// set since the zone was opened.
    ///
    /// Decisions do this about once per second, [`Zone::flush`] and the end of the zone do it too. Only a program that
    /// leaves its zone idle for long calls it now and then: if the wall clock was wrong when the zone was opened, is set
    /// later, and the machine restarts before the next decision, the time that it was off is overestimated, and keys owe
    /// less than they should. It costs about two readings of the clock.
    pub fn keep_time(&self) {
        self.inner.core.clock.leave_mark();
    }

    /// Returns whether days begin at midnight UTC in this zone, for a log. They do not if the wall clock was wrong when the
    /// process started, or when the file was made.
    pub fn wall_alignment(&self) -> WallAlignment {
        WallAlignment::of(&self.inner.core.clock)
    }

    /// Waits until everything that was decided so far is on disk, if the zone is in a file. What is not there yet
    /// survives the process all the same, but not a machine that loses power.
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

    /// The name by which an operator knows this zone: that of its file, unless it was named.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The bytes that its cells take, which is all that it ever takes.
    pub fn bytes(&self) -> usize {
        self.inner.core.table.buckets() * BUCKET_BYTES
    }

    /// Whether the states of this limit are kept in the zone's own cells, and not in the map beside it.
    pub fn keeps(&self, limit: &Limit) -> bool {
        limit.fits_cell()
    }

    /// What happened so far, and how full it is.
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
