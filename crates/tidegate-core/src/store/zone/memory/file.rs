//! A zone's file, open and mapped into memory.
//!
//! The file is mapped as a whole, so a decision is a memory access and not a system call. It is used by any number of
//! processes at the same time. The lock of the file is only for the table of limits and the clock record, and never for
//! a decision.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::atomic::Cell;
use super::epoch::Reading;
use super::error::ZoneError;
use super::header::{CELLS_AT, Geometry, Header, Identity, LIMITS_AT, LIMITS_BYTES};
use super::mapping::{MappedPart, Mapping, Shareable};
use super::record::ClockRecord;
use super::wall::{SystemClocks, WallWatch};
use crate::time::{CounterClock, Shifted, Source};

/// A zone's file, which other processes may have open at the same time.
#[derive(Debug)]
pub(crate) struct ZoneFile {
    /// The path by which it was opened.
    pub(crate) path: PathBuf,
    /// The file itself, for its lock.
    pub(super) file: File,
    /// All bytes of the file. Parts of it keep it mapped after the `ZoneFile` is dropped.
    pub(super) mapping: Arc<Mapping>,
    /// Three words: the latest time, the longest debt, and the time until which unlisted limits may matter.
    pub(super) words: MappedPart<AtomicU64>,
    /// The header, which does not change after the file was created.
    pub(super) header: Header,
    /// The record with which the zone was opened.
    pub(super) record: ClockRecord,
    /// True if it was created when it was opened.
    pub(crate) is_new: bool,
    /// True while a thread of this process holds the lock of the file: the system's lock excludes processes, and not
    /// threads.
    pub(super) is_locked: AtomicBool,
}

impl ZoneFile {
    /// Opens the zone in this file, or creates one if there is no file. It is the first of its set, unless it belongs
    /// to one.
    pub(crate) fn open(
        path: &Path,
        buckets: u64,
        bucket_bytes: usize,
        identity: Option<Identity>,
    ) -> Result<ZoneFile, ZoneError> {
        require_atomic_cells(path, Cell::is_lock_free())?;
        open(path, Geometry::of(buckets, bucket_bytes), identity, &Reading::now)
    }

    /// Checks that the zone in this file can be opened, and changes nothing. Returns `None` if there is no file.
    pub(crate) fn check(
        path: &Path,
        buckets: u64,
        bucket_bytes: usize,
        identity: Option<Identity>,
    ) -> Result<Option<Identity>, ZoneError> {
        require_atomic_cells(path, Cell::is_lock_free())?;
        check(path, Geometry::of(buckets, bucket_bytes), identity)
    }

    /// Returns the set of files that it belongs to, and its place in it.
    pub(crate) fn identity(&self) -> Identity {
        self.header.identity
    }

    /// Returns the words of the table of limits.
    pub(crate) fn record_words(&self) -> MappedPart<AtomicU64> {
        self.mapping.part(LIMITS_AT, LIMITS_BYTES / size_of::<u64>())
    }

    /// Locks the file for this thread. Returns false if another thread or process holds the lock, or this thread
    /// already does. It does not wait: the caller repeats it as often as it can afford.
    pub(crate) fn try_lock(&self) -> bool {
        if self.is_locked.swap(true, Ordering::Acquire) {
            return false;
        }
        let is_ours = try_lock(&self.file);
        if !is_ours {
            self.is_locked.store(false, Ordering::Release);
        }
        is_ours
    }

    /// Releases the lock, first for other processes and then for threads of this one.
    pub(crate) fn unlock(&self) {
        unlock(&self.file);
        self.is_locked.store(false, Ordering::Release);
    }

    /// Returns the record in force, rewritten if the wall clock was set since. The caller holds the lock.
    pub(super) fn renew_record(&self, now: &Reading) -> io::Result<ClockRecord> {
        renew_record(&self.file, now)
    }

    /// Returns all cells.
    pub(crate) fn cells<T: Shareable>(&self) -> MappedPart<T> {
        let bytes = self.header.length as usize - CELLS_AT;
        self.mapping.part(CELLS_AT, bytes / size_of::<T>())
    }

    /// Returns the seed of this zone's hash.
    pub(crate) fn seed(&self) -> [u64; 2] {
        self.header.seed
    }

    /// Returns the latest time of the zone that was read, in ticks.
    pub(crate) fn latest(&self) -> &AtomicU64 {
        &self.words[0]
    }

    /// Returns the longest debt of any limit that was used in the zone, in ticks; the table maintains it.
    pub(crate) fn deepest(&self) -> &AtomicU64 {
        &self.words[1]
    }

    /// Returns the time until which states under unlisted limits may matter, in ticks.
    pub(crate) fn unlisted_until(&self) -> &AtomicU64 {
        &self.words[2]
    }

    /// Returns the time of the zone minus that of the process, in ticks, with wrapping arithmetic.
    pub(crate) fn shift(&self) -> u64 {
        self.record.offset.wrapping_sub(CounterClock::at_boot())
    }

    /// Returns the clock of the zone, which keeps its file open and its record up to date.
    pub(crate) fn clock(self: &Arc<Self>) -> Source {
        let watch = WallWatch::new(Arc::clone(self), Box::new(SystemClocks));
        Source::Shifted(Arc::new(Shifted::new(self.shift(), Arc::new(watch))))
    }

    /// Waits until everything is on disk. Writes that are not yet on disk survive the process, but not a power failure.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.mapping.flush()
    }
}

#[cfg(target_os = "linux")]
use super::open::{check, open, renew_record, require_atomic_cells};
#[cfg(target_os = "linux")]
use super::system::{try_lock, unlock};

#[cfg(not(target_os = "linux"))]
use unsupported::{check, open, renew_record, require_atomic_cells, try_lock, unlock};

/// The functions for systems without these files, each of which returns the error.
#[cfg(not(target_os = "linux"))]
mod unsupported {
    use super::super::error::ZoneProblem;
    use super::{ClockRecord, File, Geometry, Identity, Path, Reading, ZoneError, ZoneFile, io};

    pub(super) fn require_atomic_cells(path: &Path, _: bool) -> Result<(), ZoneError> {
        Err(ZoneError::new(path, ZoneProblem::NotHere))
    }

    pub(super) fn open(
        path: &Path,
        _: Geometry,
        _: Option<Identity>,
        _: &dyn Fn() -> Reading,
    ) -> Result<ZoneFile, ZoneError> {
        Err(ZoneError::new(path, ZoneProblem::NotHere))
    }

    pub(super) fn check(
        path: &Path,
        _: Geometry,
        _: Option<Identity>,
    ) -> Result<Option<Identity>, ZoneError> {
        Err(ZoneError::new(path, ZoneProblem::NotHere))
    }

    pub(super) fn renew_record(_: &File, _: &Reading) -> io::Result<ClockRecord> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn try_lock(_: &File) -> bool {
        false
    }

    pub(super) fn unlock(_: &File) {}
}
