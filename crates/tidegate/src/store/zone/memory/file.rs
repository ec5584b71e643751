//! A zone's file, open and in memory.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::atomic::Cell;
use super::epoch::Reading;
use super::error::ZoneError;
use super::header::{CELLS_AT, Geometry, Header, Identity, LIMITS_AT, LIMITS_BYTES};
use super::mapping::{Mapping, Part, Shareable};
use super::record::Record;
use super::wall::{SystemClocks, WallWatch};
use crate::time::{CounterClock, Shifted, Source};

/// A zone's file, which other processes may have open at the same time.
#[derive(Debug)]
pub(crate) struct ZoneFile {
    /// The path by which it was opened.
    pub(crate) path: PathBuf,
    /// The file itself, for its lock.
    pub(super) file: File,
    pub(super) mapping: Arc<Mapping>,
    /// Latest, deepest, and until when limits are not listed.
    pub(super) words: Part<AtomicU64>,
    pub(super) header: Header,
    /// The record by which the zone was opened.
    pub(super) record: Record,
    /// Whether it was made when it was opened.
    pub(crate) is_new: bool,
    /// Whether a thread of this process has the lock of the file: the system tells processes apart, and not threads.
    pub(super) is_locked: AtomicBool,
}

impl ZoneFile {
    /// Opens the zone in this file, or makes one if there is no file. It is the first of its set, unless it belongs to
    /// one.
    pub(crate) fn open(
        path: &Path,
        buckets: u64,
        bucket_bytes: usize,
        identity: Option<Identity>,
    ) -> Result<ZoneFile, ZoneError> {
        require_atomic_cells(path, Cell::is_lock_free())?;
        open(path, Geometry::of(buckets, bucket_bytes), identity, &Reading::now)
    }

    /// Looks whether the zone in this file could be opened, and changes nothing. Nothing if there is no file.
    pub(crate) fn check(
        path: &Path,
        buckets: u64,
        bucket_bytes: usize,
        identity: Option<Identity>,
    ) -> Result<Option<Identity>, ZoneError> {
        require_atomic_cells(path, Cell::is_lock_free())?;
        check(path, Geometry::of(buckets, bucket_bytes), identity)
    }

    /// The set of files that it belongs to, and its place in it.
    pub(crate) fn identity(&self) -> Identity {
        self.header.identity
    }

    /// The words of the table of limits.
    pub(crate) fn record_words(&self) -> Part<AtomicU64> {
        self.mapping.part(LIMITS_AT, LIMITS_BYTES / size_of::<u64>())
    }

    /// Locks the file for this thread. Returns false if another thread or process has the lock, or this thread already.
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

    pub(crate) fn unlock(&self) {
        unlock(&self.file);
        self.is_locked.store(false, Ordering::Release);
    }

    /// The record in force, written anew if the wall clock was set since. The caller has the lock.
    pub(super) fn renew_record(&self, now: &Reading) -> io::Result<Record> {
        renew_record(&self.file, now)
    }

    /// All cells.
    pub(crate) fn cells<T: Shareable>(&self) -> Part<T> {
        let bytes = self.header.length as usize - CELLS_AT;
        self.mapping.part(CELLS_AT, bytes / size_of::<T>())
    }

    /// What the hash of this zone is keyed by.
    pub(crate) fn seed(&self) -> [u64; 2] {
        self.header.seed
    }

    /// The latest time of the zone that is known to have been told, in ticks.
    pub(crate) fn latest(&self) -> &AtomicU64 {
        &self.words[0]
    }

    /// The longest debt of any limit that was used in the zone, in ticks; for the table to keep.
    pub(crate) fn deepest(&self) -> &AtomicU64 {
        &self.words[1]
    }

    /// The time until which states under limits that are not listed may matter, in ticks.
    pub(crate) fn unlisted_until(&self) -> &AtomicU64 {
        &self.words[2]
    }

    /// The time of the zone less that of the process, in ticks, without regard to overflow.
    pub(crate) fn shift(&self) -> u64 {
        self.record.offset.wrapping_sub(CounterClock::at_boot())
    }

    /// The clock of the zone, which keeps its file open and its record up to date.
    pub(crate) fn clock(self: &Arc<Self>) -> Source {
        let watch = WallWatch::new(Arc::clone(self), Box::new(SystemClocks));
        Source::Shifted(Arc::new(Shifted::new(self.shift(), Arc::new(watch))))
    }

    /// Waits until everything is on disk. What is not survives the process all the same, but not the machine.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.mapping.flush()
    }
}

#[cfg(target_os = "linux")]
use super::open::{check, open, renew_record, require_atomic_cells};
#[cfg(target_os = "linux")]
use super::system::{try_lock, unlock};

#[cfg(not(target_os = "linux"))]
use elsewhere::{check, open, renew_record, require_atomic_cells, try_lock, unlock};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::super::error::Problem;
    use super::{File, Geometry, Identity, Path, Reading, Record, ZoneError, ZoneFile, io};

    pub(super) fn require_atomic_cells(path: &Path, _: bool) -> Result<(), ZoneError> {
        Err(ZoneError::new(path, Problem::NotHere))
    }

    pub(super) fn open(
        path: &Path,
        _: Geometry,
        _: Option<Identity>,
        _: &dyn Fn() -> Reading,
    ) -> Result<ZoneFile, ZoneError> {
        Err(ZoneError::new(path, Problem::NotHere))
    }

    pub(super) fn check(
        path: &Path,
        _: Geometry,
        _: Option<Identity>,
    ) -> Result<Option<Identity>, ZoneError> {
        Err(ZoneError::new(path, Problem::NotHere))
    }

    pub(super) fn renew_record(_: &File, _: &Reading) -> io::Result<Record> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn try_lock(_: &File) -> bool {
        false
    }

    pub(super) fn unlock(_: &File) {}
}
